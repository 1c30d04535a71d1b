//! ChaCha20-Poly1305 (RFC 8439 §2.8), put together of its two parts.
//!
//! The parts are those of crates. What the crate of the whole does with the key stream goes byte by byte
//! and by way of copies, which takes a processor without vectors as long as half of the cipher: here it
//! goes by words.

use chacha20::cipher::consts::U32;
use chacha20::cipher::{Block, KeyIvInit, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, R20};
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};
use zeroize::Zeroize;

use crate::error::Error;
use crate::hkdf::is_equal;
use crate::limits::TAG;

/// Encrypts in place: the tag. No record is nearly as long as the cipher allows, 256 GiB.
pub(crate) fn seal(key: &[u8; 32], nonce: &[u8; 12], header: &[u8], text: &mut [u8]) -> [u8; TAG] {
    let mut stream = KeyStream::new(key, nonce);
    let authenticator = stream.authenticator();
    stream.apply(text);
    tag(authenticator, header, text)
}

/// Decrypts in place what has this tag. What has another one stays as it was.
pub(crate) fn open(
    key: &[u8; 32],
    nonce: &[u8; 12],
    header: &[u8],
    text: &mut [u8],
    expected: &[u8; TAG],
) -> Result<(), Error> {
    let mut stream = KeyStream::new(key, nonce);
    let authenticator = stream.authenticator();
    if !is_equal(&tag(authenticator, header, text), expected) {
        return Err(Error::BadRecord);
    }
    stream.apply(text);
    Ok(())
}

fn tag(mut authenticator: Poly1305, header: &[u8], text: &[u8]) -> [u8; TAG] {
    authenticator.update_padded(header);
    authenticator.update_padded(text);
    let mut lengths = [0; 16];
    let (of_header, of_text) = lengths.split_at_mut(8);
    of_header.copy_from_slice(&(header.len() as u64).to_le_bytes());
    of_text.copy_from_slice(&(text.len() as u64).to_le_bytes());
    authenticator.update(&[lengths.into()]);
    authenticator.finalize().into()
}

/// Bytes of the key stream that are made at once.
const BLOCK: usize = 64;

type Core = ChaChaCore<R20, Ietf>;

/// The key stream of one record, block by block. Wiped when dropped.
struct KeyStream {
    core: Core,
    block: Block<Core>,
}

impl KeyStream {
    fn new(key: &[u8; 32], nonce: &[u8; 12]) -> Self {
        Self { core: Core::new(key.into(), nonce.into()), block: Block::<Core>::default() }
    }

    /// Not inlined: it is long, and there are two who need it.
    #[inline(never)]
    fn next(&mut self) -> &Block<Core> {
        self.core.write_keystream_block(&mut self.block);
        &self.block
    }

    /// Of the first block, of which nothing else may be used (§2.6).
    fn authenticator(&mut self) -> Poly1305 {
        let (key, _) = self.next().split_ref::<U32>();
        Poly1305::new(key)
    }

    fn apply(&mut self, text: &mut [u8]) {
        for piece in text.chunks_mut(BLOCK) {
            let (words, bytes) = piece.as_chunks_mut::<4>();
            let (key, _) = self.next().as_chunks::<4>();
            let key_of_bytes = key.get(words.len()..).unwrap_or_default().as_flattened();
            for (word, key) in words.iter_mut().zip(key) {
                *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(*key)).to_ne_bytes();
            }
            bytes.iter_mut().zip(key_of_bytes).for_each(|(byte, key)| *byte ^= key);
        }
    }
}

impl Drop for KeyStream {
    fn drop(&mut self) {
        self.block.as_mut_slice().zeroize();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use chacha20poly1305::ChaCha20Poly1305;
    use chacha20poly1305::aead::AeadInOut;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// RFC 8439 §2.8.2
    #[test]
    fn the_example_of_the_rfc() {
        let key: [u8; 32] = core::array::from_fn(|n| 0x80 + n as u8);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let header = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let plain =
            *b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
            the future, sunscreen would be it.";
        let sealed = [
            0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb, 0x7b, 0x86, 0xaf, 0xbc, 0x53, 0xef,
            0x7e, 0xc2, 0xa4, 0xad, 0xed, 0x51, 0x29, 0x6e, 0x08, 0xfe, 0xa9, 0xe2, 0xb5, 0xa7,
            0x36, 0xee, 0x62, 0xd6, 0x3d, 0xbe, 0xa4, 0x5e, 0x8c, 0xa9, 0x67, 0x12, 0x82, 0xfa,
            0xfb, 0x69, 0xda, 0x92, 0x72, 0x8b, 0x1a, 0x71, 0xde, 0x0a, 0x9e, 0x06, 0x0b, 0x29,
            0x05, 0xd6, 0xa5, 0xb6, 0x7e, 0xcd, 0x3b, 0x36, 0x92, 0xdd, 0xbd, 0x7f, 0x2d, 0x77,
            0x8b, 0x8c, 0x98, 0x03, 0xae, 0xe3, 0x28, 0x09, 0x1b, 0x58, 0xfa, 0xb3, 0x24, 0xe4,
            0xfa, 0xd6, 0x75, 0x94, 0x55, 0x85, 0x80, 0x8b, 0x48, 0x31, 0xd7, 0xbc, 0x3f, 0xf4,
            0xde, 0xf0, 0x8e, 0x4b, 0x7a, 0x9d, 0xe5, 0x76, 0xd2, 0x65, 0x86, 0xce, 0xc6, 0x4b,
            0x61, 0x16,
        ];
        let expected = [
            0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60,
            0x06, 0x91,
        ];
        let mut text = plain;
        assert_eq!(seal(&key, &nonce, &header, &mut text), expected);
        assert_eq!(text, sealed);
        assert_eq!(open(&key, &nonce, &header, &mut text, &expected), Ok(()));
        assert_eq!(text, plain);
    }

    proptest! {
        /// What the crate of the whole cipher makes of it. What was changed anywhere is refused, and stays
        /// as it was.
        #[test]
        fn it_is_the_cipher_that_others_know(
            key: [u8; 32],
            nonce: [u8; 12],
            header in vec(any::<u8>(), 0..40),
            plain in vec(any::<u8>(), 0..700),
            flip: proptest::sample::Index,
        ) {
            let mut theirs = plain.clone();
            let cipher = ChaCha20Poly1305::new(&key.into());
            let tag: [u8; TAG] = cipher
                .encrypt_inout_detached(&nonce.into(), &header, theirs.as_mut_slice().into())
                .expect("it is short")
                .into();
            let mut ours = plain.clone();
            prop_assert_eq!(seal(&key, &nonce, &header, &mut ours), tag);
            prop_assert_eq!(&ours, &theirs);

            let mut all = std::vec::Vec::from(tag);
            all.extend(header.iter().chain(&ours));
            let flipped = flip.index(all.len());
            all[flipped] ^= 1;
            let (tag_changed, rest) = all.split_first_chunk_mut().expect("it is longer");
            let (header_changed, changed) = rest.split_at_mut(header.len());
            let before = changed.to_vec();
            let opened = open(&key, &nonce, header_changed, changed, tag_changed);
            prop_assert_eq!(opened, Err(Error::BadRecord));
            prop_assert_eq!(&*changed, &before);

            prop_assert_eq!(open(&key, &nonce, &header, &mut ours, &tag), Ok(()));
            prop_assert_eq!(ours, plain);
        }
    }
}

//! HMAC and HKDF with SHA-256 (RFC 5869), which is the hash of both cipher suites.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Something of the length of a hash that nobody else may know; wiped when it is dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// What SHA-256 makes of something.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// HMAC over `parts`, one after the other. It is HKDF-Extract, too, with the salt as key.
pub(crate) fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> Secret {
    // HMAC fills short keys with zeros to the size of a block (RFC 2104).
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(place, byte)| *place = *byte);
    let mut mac = Hmac::<Sha256>::new(&block);
    block.as_mut_slice().zeroize();
    parts.iter().for_each(|part| mac.update(part));
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// HKDF-Expand-Label (§7.1). Nothing that is derived is longer than a hash, so that one block does; of
/// a shorter output it is the first bytes that count.
pub(crate) fn expand_label(secret: &Secret, label: &[u8], context: &[u8], length: u8) -> Secret {
    const PREFIX: &[u8] = b"tls13 ";
    let label_length = [(PREFIX.len() + label.len()) as u8];
    let context_length = [context.len() as u8];
    hmac(secret, &[&[0, length], &label_length, PREFIX, label, &context_length, context, &[1]])
}

/// Whether two are the same, in a time that does not tell where they differ.
pub(crate) fn is_equal(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

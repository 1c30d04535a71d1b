//! Protection of records (§5.2 to §5.5): ciphers, nonces, and what follows a key.

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit};
use zeroize::Zeroizing;

use crate::chacha20_poly1305;
use crate::error::Error;
use crate::hkdf::{Secret, expand_label};
use crate::limits::{AES_GCM_RECORDS, CHACHA20_RECORDS, TAG};

/// A cipher suite. Both hash with SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Suite {
    /// `TLS_CHACHA20_POLY1305_SHA256`
    ChaCha20Poly1305,
    /// `TLS_AES_128_GCM_SHA256`
    Aes128Gcm,
}

impl Suite {
    /// In the order of our liking: without hardware for it, AES takes several times as long.
    pub(crate) const OFFERED: [Self; 2] = [Self::ChaCha20Poly1305, Self::Aes128Gcm];

    pub(crate) fn code(self) -> u16 {
        match self {
            Self::ChaCha20Poly1305 => 0x1303,
            Self::Aes128Gcm => 0x1301,
        }
    }

    pub(crate) fn of_code(code: u16) -> Option<Self> {
        Self::OFFERED.into_iter().find(|suite| suite.code() == code)
    }

    fn key_length(self) -> u8 {
        match self {
            Self::ChaCha20Poly1305 => 32,
            Self::Aes128Gcm => 16,
        }
    }

    fn records_per_key(self) -> u64 {
        match self {
            Self::ChaCha20Poly1305 => CHACHA20_RECORDS,
            Self::Aes128Gcm => AES_GCM_RECORDS,
        }
    }
}

/// What protects the records of one direction. Wiped when dropped.
pub(crate) struct TrafficKey {
    suite: Suite,
    secret: Secret,
    key: Secret,
    iv: Zeroizing<[u8; 12]>,
    sequence: u64,
}

impl TrafficKey {
    /// §7.3
    pub(crate) fn new(suite: Suite, secret: Secret) -> Self {
        let key = expand_label(&secret, b"key", &[], suite.key_length());
        let long = expand_label(&secret, b"iv", &[], 12);
        let mut iv = Zeroizing::new([0; 12]);
        iv.iter_mut().zip(long.iter()).for_each(|(place, byte)| *place = *byte);
        Self { suite, secret, key, iv, sequence: 0 }
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// What its Finished is made with.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The key that follows this one (§7.2).
    pub(crate) fn successor(&self) -> Self {
        Self::new(self.suite, expand_label(&self.secret, b"traffic upd", &[], 32))
    }

    /// Whether it has protected as many records as it should (§5.5).
    pub(crate) fn is_worn(&self) -> bool {
        self.sequence >= self.suite.records_per_key()
    }

    /// Whether it has protected nearly as many as it may: an eighth more.
    pub(crate) fn is_used_up(&self) -> bool {
        let limit = self.suite.records_per_key();
        self.sequence >= limit + limit / 8
    }

    /// Encrypts in place; the tag is to follow.
    pub(crate) fn seal(&mut self, header: &[u8; 5], plain: &mut [u8]) -> Result<[u8; TAG], Error> {
        let nonce = self.nonce();
        let tag = match self.suite {
            Suite::ChaCha20Poly1305 => chacha20_poly1305::seal(&self.key, &nonce, header, plain),
            Suite::Aes128Gcm => self
                .aes()
                .encrypt_inout_detached((&*nonce).into(), header, plain.into())
                // Only lengths that no record has are refused.
                .map_err(|_| Error::RecordOverflow)?
                .into(),
        };
        self.advance()?;
        Ok(tag)
    }

    /// Decrypts in place what has its tag behind it.
    pub(crate) fn open<'b>(
        &mut self,
        header: &[u8; 5],
        sealed: &'b mut [u8],
    ) -> Result<&'b mut [u8], Error> {
        let nonce = self.nonce();
        let (body, tag) = sealed.split_last_chunk_mut::<TAG>().ok_or(Error::BadRecord)?;
        match self.suite {
            Suite::ChaCha20Poly1305 => {
                chacha20_poly1305::open(&self.key, &nonce, header, body, tag)?;
            }
            Suite::Aes128Gcm => self
                .aes()
                .decrypt_inout_detached(
                    (&*nonce).into(),
                    header,
                    (&mut *body).into(),
                    (&*tag).into(),
                )
                .map_err(|_| Error::BadRecord)?,
        }
        self.advance()?;
        Ok(body)
    }

    fn aes(&self) -> Aes128Gcm {
        let [key @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = &*self.key;
        Aes128Gcm::new(key.into())
    }

    /// The record's number, in the place of the last bytes, with the IV over it (§5.3).
    fn nonce(&self) -> Zeroizing<[u8; 12]> {
        let mut nonce = self.iv.clone();
        let number = self.sequence.to_be_bytes();
        nonce.iter_mut().rev().zip(number.iter().rev()).for_each(|(place, byte)| *place ^= byte);
        nonce
    }

    /// A number must not come back (§5.3).
    fn advance(&mut self) -> Result<(), Error> {
        self.sequence = self.sequence.checked_add(1).ok_or(Error::KeyUsedUp)?;
        Ok(())
    }
}

#[cfg(test)]
impl TrafficKey {
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.key[..self.suite.key_length().into()], &*self.iv)
    }

    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_once_and_only_unchanged() {
        for suite in Suite::OFFERED {
            let secret = || Zeroizing::new([7; 32]);
            let (mut ours, mut theirs) =
                (TrafficKey::new(suite, secret()), TrafficKey::new(suite, secret()));
            let header = [23, 3, 3, 0, 21];
            let mut record = [0; 21];
            for round in 0..3u8 {
                record[..5].fill(round);
                let (plain, tag) = record.split_at_mut(5);
                tag.copy_from_slice(&ours.seal(&header, plain).unwrap());
                for flipped in 0..record.len() {
                    let mut changed = record;
                    changed[flipped] ^= 1;
                    assert_eq!(theirs.open(&header, &mut changed).err(), Some(Error::BadRecord));
                }
                let mut other = header;
                other[4] ^= 1;
                let mut copy = record;
                assert_eq!(theirs.open(&other, &mut copy).err(), Some(Error::BadRecord));
                let mut copy = record;
                assert_eq!(theirs.open(&header, &mut copy).unwrap(), [round; 5]);
                assert_eq!(theirs.open(&header, &mut record).err(), Some(Error::BadRecord));
            }
        }
    }

    #[test]
    fn keys_wear_out_where_the_rfc_says() {
        let mut key = TrafficKey::new(Suite::Aes128Gcm, Zeroizing::new([7; 32]));
        assert!(!key.is_worn());
        key.skip_to(AES_GCM_RECORDS);
        assert!(key.is_worn() && !key.is_used_up());
        // 2^24.5 full records
        key.skip_to(23_726_566);
        assert!(key.is_used_up());
        key.skip_to(u64::MAX);
        assert_eq!(key.seal(&[0; 5], &mut []).err(), Some(Error::KeyUsedUp));
    }
}

//! Randomness: 32 bytes a connection, from a true random generator.
//!
//! A handshake needs three random values: those of its hello and its secret for the key exchange. All are
//! derived from the seed, by HMAC, so that a second hello can be made of it without keeping them.
//! Signatures of ours need none (RFC 6979).

use core::fmt;

use p256::SecretKey;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::hkdf::{Secret, hmac};

/// 32 bytes of true randomness, for one connection. A seed must never be used for a second one.
pub struct Seed(Zeroizing<[u8; 32]>);

/// There is no randomness, and without it no TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoEntropy;

impl Seed {
    /// Takes 32 random bytes. Bytes that are all the same are what a generator gives that is not running.
    pub fn new(bytes: [u8; 32]) -> Result<Self, NoEntropy> {
        let seed = Self(Zeroizing::new(bytes));
        let [first, rest @ ..] = &*seed.0;
        if rest.iter().all(|byte| byte == first) { Err(NoEntropy) } else { Ok(seed) }
    }

    /// Draws a seed from a generator that is fit for keys.
    pub fn draw(rng: &mut impl TryCryptoRng) -> Result<Self, NoEntropy> {
        let mut bytes = Zeroizing::new([0; 32]);
        rng.try_fill_bytes(&mut *bytes).map_err(|_| NoEntropy)?;
        Self::new(*bytes)
    }

    /// `random` of a ClientHello (§4.1.2).
    pub(crate) fn random(&self) -> Secret {
        self.derive(b"random", 0)
    }

    /// `legacy_session_id`: not empty, for the sake of middleboxes (§D.4).
    pub(crate) fn session(&self) -> Secret {
        self.derive(b"session", 0)
    }

    /// The secret of the key exchange: a number below the order of P-256, and not zero.
    pub(crate) fn key(&self) -> Option<SecretKey> {
        // The first one does, but for one in 2^32.
        (0..4).find_map(|attempt| SecretKey::from_slice(&*self.derive(b"key share", attempt)).ok())
    }

    fn derive(&self, what: &[u8], attempt: u8) -> Secret {
        hmac(&self.0, &[b"picokube-tls ", what, &[attempt]])
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed")
    }
}

impl fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the random number generator does not work: TLS cannot be spoken without it")
    }
}

impl core::error::Error for NoEntropy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_that_does_not_run_is_noticed() {
        for byte in [0, 0x55, 0xff] {
            assert_eq!(Seed::new([byte; 32]).err(), Some(NoEntropy));
        }
    }

    #[test]
    fn what_is_derived_differs_and_depends_on_the_seed() {
        let mut bytes = [0; 32];
        let mut all = [[0; 32]; 6];
        for (last, chunk) in all.chunks_mut(3).enumerate() {
            bytes[31] = 1 + last as u8;
            let seed = Seed::new(bytes).unwrap();
            chunk[0] = *seed.random();
            chunk[1] = *seed.session();
            chunk[2] = seed.key().unwrap().to_bytes().into();
        }
        for (i, one) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|other| one != other));
        }
    }
}

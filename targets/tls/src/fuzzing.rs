//! Ways into the midst of things, for fuzz targets. No part of the interface.

use pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use zeroize::Zeroizing;

use crate::certificate;
use crate::config::{Config, Time};
use crate::connection::Connection;
use crate::error::Error;
use crate::handshake::Handshake;
use crate::inbox::Inbox;
use crate::keys::EarlySecret;
use crate::limits::TAG;
use crate::protection::{Suite, TrafficKey};
use crate::seed::Seed;

/// Protects records as a server would.
pub struct Sealer(TrafficKey);

impl Sealer {
    /// With the secret of its direction.
    pub fn new(suite: Suite, secret: [u8; 32]) -> Self {
        Self(TrafficKey::new(suite, Zeroizing::new(secret)))
    }

    /// Makes a record of something that has its kind behind it: how long that is, if it fits.
    pub fn seal(&mut self, inner: &[u8], out: &mut [u8]) -> Option<usize> {
        let length = u16::try_from(inner.len() + TAG).ok()?;
        let [high, low] = length.to_be_bytes();
        let header = [23, 3, 3, high, low];
        let (place, body) = out.split_first_chunk_mut()?;
        *place = header;
        let (plain, rest) = body.split_at_mut_checked(inner.len())?;
        plain.copy_from_slice(inner);
        let tag = self.0.seal(&header, plain).ok()?;
        *rest.first_chunk_mut()? = tag;
        Some(header.len() + inner.len() + TAG)
    }

    /// Goes on with the next key.
    pub fn next_key(&mut self) {
        self.0 = self.0.successor();
    }
}

/// A connection whose keys are known.
pub fn connection(suite: Suite, secret: [u8; 32], buffer: &mut [u8]) -> Connection<'_> {
    let key = || TrafficKey::new(suite, Zeroizing::new(secret));
    let resumption = EarlySecret::new(None).exchange(&secret).master().resumption(&[0; 32]);
    Connection::new(Inbox::new(buffer), (key(), key()), resumption, [0; 32], u64::MAX, false)
}

/// A handshake whose keys are known, after its ServerHello.
pub fn handshake<'c, 'b>(
    config: &'c Config<'c>,
    seed: Seed,
    time: Time,
    suite: Suite,
    secret: [u8; 32],
    buffer: &'b mut [u8],
) -> Result<Handshake<'c, 'b>, Error> {
    let key = || TrafficKey::new(suite, Zeroizing::new(secret));
    Handshake::after_hello(config, seed, time, buffer, (key(), key()))
}

/// Checks certificates as those of a server.
pub fn verify(config: &Config<'_>, time: Time, chain: &[&[u8]]) -> bool {
    let mut certificates = [const { CertificateDer::from_slice(&[]) }; 2];
    for (place, certificate) in certificates.iter_mut().zip(chain) {
        *place = CertificateDer::from_slice(certificate);
    }
    let certificates = certificates.get(..chain.len()).unwrap_or_default();
    certificate::verify(config, time, certificates).is_ok()
}

/// Checks a signature by RSA, of every kind.
pub fn is_rsa_signature(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let check = |rsa: &certificate::Rsa| rsa.verify_signature(key, message, signature).is_ok();
    certificate::RSA.iter().copied().any(check)
}

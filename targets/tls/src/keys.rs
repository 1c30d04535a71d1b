//! The key schedule (§7.1): each secret is made of the one before, and there is no way back.

use crate::hkdf::{Hash, Secret, expand_label, hash, hmac};

const ZEROS: [u8; 32] = [0; 32];

/// The first secret: of a ticket, or of nothing.
pub(crate) struct EarlySecret(Secret);

/// The one that the key exchange leads to. It protects the rest of the handshake.
pub(crate) struct HandshakeSecret(Secret);

/// The one that protects the connection.
pub(crate) struct MasterSecret(Secret);

/// The secrets of both directions.
pub(crate) struct TrafficSecrets {
    pub(crate) client: Secret,
    pub(crate) server: Secret,
}

impl EarlySecret {
    pub(crate) fn new(ticket: Option<&[u8; 32]>) -> Self {
        Self(hmac(&ZEROS, &[ticket.unwrap_or(&ZEROS)]))
    }

    /// Proves that we have the key of a ticket, to the hello up to here (§4.2.11.2).
    pub(crate) fn binder(&self, hello: &Hash) -> Secret {
        let key = derive(&self.0, b"res binder", &hash(&[]));
        finished(&key, hello)
    }

    pub(crate) fn exchange(&self, shared: &[u8]) -> HandshakeSecret {
        HandshakeSecret(next(&self.0, shared))
    }
}

impl HandshakeSecret {
    /// With the transcript up to ServerHello.
    pub(crate) fn traffic(&self, transcript: &Hash) -> TrafficSecrets {
        TrafficSecrets {
            client: derive(&self.0, b"c hs traffic", transcript),
            server: derive(&self.0, b"s hs traffic", transcript),
        }
    }

    pub(crate) fn master(&self) -> MasterSecret {
        MasterSecret(next(&self.0, &ZEROS))
    }
}

impl MasterSecret {
    /// With the transcript up to the server's Finished.
    pub(crate) fn traffic(&self, transcript: &Hash) -> TrafficSecrets {
        TrafficSecrets {
            client: derive(&self.0, b"c ap traffic", transcript),
            server: derive(&self.0, b"s ap traffic", transcript),
        }
    }

    /// What tickets are made of, with the transcript up to our Finished.
    pub(crate) fn resumption(&self, transcript: &Hash) -> ResumptionSecret {
        ResumptionSecret(derive(&self.0, b"res master", transcript))
    }
}

/// What the keys of tickets are made of.
pub(crate) struct ResumptionSecret(Secret);

impl ResumptionSecret {
    /// The key of a ticket (§4.6.1).
    pub(crate) fn psk(&self, nonce: &[u8]) -> Secret {
        expand_label(&self.0, b"resumption", nonce, 32)
    }
}

/// `verify_data` of a Finished (§4.4.4), with the secret of its direction.
pub(crate) fn finished(secret: &Secret, transcript: &Hash) -> Secret {
    let key = expand_label(secret, b"finished", &[], 32);
    hmac(&key, &[transcript])
}

fn derive(secret: &Secret, label: &[u8], transcript: &Hash) -> Secret {
    expand_label(secret, label, transcript, 32)
}

fn next(secret: &Secret, input: &[u8]) -> Secret {
    let salt = derive(secret, b"derived", &hash(&[]));
    hmac(&salt, &[input])
}

#[cfg(test)]
impl HandshakeSecret {
    pub(crate) fn bytes(&self) -> [u8; 32] {
        *self.0
    }
}

#[cfg(test)]
impl MasterSecret {
    pub(crate) fn bytes(&self) -> [u8; 32] {
        *self.0
    }
}

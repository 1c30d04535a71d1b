//! What a certificate says of itself, for those who want to know before a handshake, or between two.

use super::fields::{Fields, KeyKind, Usage};

/// What a certificate says of itself. Nothing is verified by reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Facts {
    /// When it begins, in seconds since 1970.
    pub not_before: u64,
    /// When it is over, in seconds since 1970.
    pub not_after: u64,
    /// Whether it is that of an authority, whose key may sign certificates.
    pub is_authority: bool,
    /// Whether clients may show it, with a key that may sign.
    pub is_for_clients: bool,
    /// What sort of key it has.
    pub key: KeyKind,
}

impl Facts {
    /// Reads a certificate of version 3, in DER.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let fields = Fields::of(certificate)?;
        Some(Self {
            not_before: fields.not_before(),
            not_after: fields.not_after(),
            is_authority: fields.is_authority() && fields.allows(Usage::KeyCertSign),
            is_for_clients: fields.is_for_clients() && fields.allows(Usage::DigitalSignature),
            key: fields.key_kind(),
        })
    }
}

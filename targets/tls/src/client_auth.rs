//! Who we are: a certificate and its key, for a server that asks (§4.3.2, §4.4.2, §4.4.3).

use core::fmt;

use p256::SecretKey;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::sec1::ToSec1Point;

use crate::bytes::{Reader, Writer};
use crate::certificate::{ECDSA_SECP256R1_SHA256, Fields};
use crate::error::{Error, Violation};
use crate::extension::{self, Extensions};
use crate::hkdf::Hash;
use crate::message;
use crate::proof;

/// A certificate of ours, and its key on P-256.
#[derive(Clone)]
pub struct Identity<'a> {
    chain: &'a [&'a [u8]],
    key: SigningKey,
    expires: u64,
}

/// Why a certificate and a key are no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum IdentityError {
    /// There is no certificate, or it cannot be read.
    Certificate,
    /// The certificates take more room than a record has.
    TooLong,
    /// The key is not one of P-256.
    Key,
    /// The key is not that of the certificate.
    Mismatch,
}

impl<'a> Identity<'a> {
    /// Takes certificates in DER, the own one first, and the private key: a number of P-256, 32 bytes.
    pub fn new(chain: &'a [&'a [u8]], key: &[u8; 32]) -> Result<Self, IdentityError> {
        let own = chain.first().ok_or(IdentityError::Certificate)?;
        let fields = Fields::of(own).ok_or(IdentityError::Certificate)?;
        let lengths = chain.iter().map(|certificate| certificate.len() + 5);
        if lengths.sum::<usize>() > crate::MAX_DATA - 8 {
            return Err(IdentityError::TooLong);
        }
        let key = SecretKey::from_slice(key).map_err(|_| IdentityError::Key)?;
        let public = key.public_key().to_sec1_point(false);
        // Both are public.
        if fields.public_key() != Some(public.as_bytes()) {
            return Err(IdentityError::Mismatch);
        }
        Ok(Self { chain, key: SigningKey::from(&key), expires: fields.not_after() })
    }

    /// When the certificate is over, in seconds since 1970.
    pub fn expires(&self) -> u64 {
        self.expires
    }

    pub(crate) fn chain(&self) -> &'a [&'a [u8]] {
        self.chain
    }
}

/// Reads the body of a CertificateRequest: whether the server can check a signature of ours.
pub(crate) fn read_request(body: &[u8]) -> Result<bool, Error> {
    let mut reader = Reader::new(body);
    // §4.3.2: without a context, unless it comes after the handshake, which we do not offer.
    if !reader.list8()?.is_empty() {
        return Err(Violation::CertificateContext.into());
    }
    let mut extensions = Extensions::last(reader)?;
    let mut can_check = None;
    while let Some((kind, mut content)) = extensions.next()? {
        match kind {
            extension::SIGNATURE_ALGORITHMS => {
                let mut schemes = content.list16()?;
                content.finish()?;
                let mut found = false;
                if schemes.is_empty() {
                    return Err(Violation::Malformed.into());
                }
                while !schemes.is_empty() {
                    found |= schemes.u16()? == ECDSA_SECP256R1_SHA256;
                }
                can_check = Some(found);
            }
            // §4.2: not for this message.
            extension::KEY_SHARE
            | extension::PRE_SHARED_KEY
            | extension::SUPPORTED_VERSIONS
            | extension::COOKIE
            | extension::ALPN
            | extension::SUPPORTED_GROUPS
            | extension::PSK_KEY_EXCHANGE_MODES
            | extension::EARLY_DATA => return Err(Violation::MisplacedExtension.into()),
            // Which authorities it knows and the like: there is but one certificate to show. What is not
            // known is to be ignored.
            _ => {}
        }
    }
    can_check.ok_or(Violation::MissingExtension.into())
}

/// Writes a Certificate with what we have to show, which may be nothing (§4.4.2).
pub(crate) fn write_certificate(w: &mut Writer<'_>, chain: &[&[u8]]) -> Result<(), Error> {
    w.u8(message::CERTIFICATE)?;
    w.list24(|w| {
        w.list8(|_| Ok(()))?;
        w.list24(|w| {
            chain.iter().try_for_each(|certificate| {
                w.list24(|w| w.put(certificate))?;
                w.list16(|_| Ok(()))
            })
        })
    })
}

/// Writes a CertificateVerify: the transcript up to our Certificate, signed (§4.4.3).
pub(crate) fn write_verify(
    w: &mut Writer<'_>,
    identity: &Identity<'_>,
    transcript: &Hash,
) -> Result<(), Error> {
    let signed = proof::signed(proof::CLIENT, transcript);
    // RFC 6979: no randomness, so none can fail.
    let signature: DerSignature = identity.key.sign(&signed);
    w.u8(message::CERTIFICATE_VERIFY)?;
    w.list24(|w| {
        w.u16(ECDSA_SECP256R1_SHA256)?;
        w.list16(|w| w.put(signature.as_bytes()))
    })
}

impl fmt::Debug for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the client certificate is none in DER",
            Self::TooLong => {
                "the client certificates take more than 16 KB: leave the authority out"
            }
            Self::Key => "the client key is not one of P-256: make a new one with it",
            Self::Mismatch => "client certificate and client key do not belong together",
        })
    }
}

impl core::error::Error for IdentityError {}

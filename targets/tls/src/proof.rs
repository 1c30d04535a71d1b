//! How a server proves who it is: Certificate and CertificateVerify (§4.4.2, §4.4.3).

use pki_types::CertificateDer;

use crate::bytes::Reader;
use crate::certificate::{self, Accepted, Refusal};
use crate::config::{Config, Time};
use crate::error::{Error, Violation};
use crate::hkdf::Hash;
use crate::limits::MAX_CHAIN;
use crate::message;

/// What a server signs.
pub(crate) const SERVER: &[u8; 34] = b"TLS 1.3, server CertificateVerify\0";
/// What a client signs.
pub(crate) const CLIENT: &[u8; 34] = b"TLS 1.3, client CertificateVerify\0";

/// Where the server's own certificate begins in its message: behind the header, an empty context and two
/// lengths.
pub(crate) const OWN_CERTIFICATE: usize = message::HEADER + 1 + 3 + 3;

/// Reads the body of a Certificate and checks what is in it; how long the first one is.
pub(crate) fn certificates(
    body: &[u8],
    config: &Config<'_>,
    time: Time,
) -> Result<(usize, Accepted), Error> {
    let mut reader = Reader::new(body);
    if !reader.list8()?.is_empty() {
        return Err(Violation::CertificateContext.into());
    }
    let mut entries = reader.list24()?;
    reader.finish()?;
    let mut chain = [const { CertificateDer::from_slice(&[]) }; MAX_CHAIN];
    let mut count = 0;
    while !entries.is_empty() {
        let certificate = entries.list24()?.rest();
        if certificate.is_empty() {
            return Err(Violation::Malformed.into());
        }
        // §4.4.2: only answers to what was asked for, and nothing was.
        if !entries.list16()?.is_empty() {
            return Err(Violation::UnsolicitedExtension.into());
        }
        let place = chain.get_mut(count).ok_or(Refusal::TooMany)?;
        *place = CertificateDer::from_slice(certificate);
        count += 1;
    }
    let chain = chain.get(..count).unwrap_or_default();
    // §4.4.2.4
    let own = chain.first().ok_or(Violation::NoCertificate)?.len();
    let accepted = certificate::verify(config, time, chain)?;
    Ok((own, accepted))
}

/// Reads the body of a CertificateVerify and checks that it is signed with the key of the certificate.
pub(crate) fn verify(body: &[u8], certificate: &[u8], transcript: &Hash) -> Result<(), Error> {
    let mut reader = Reader::new(body);
    let scheme = reader.u16()?;
    let signature = reader.list16()?.rest();
    reader.finish()?;
    let signed = signed(SERVER, transcript);
    certificate::is_signature(certificate, scheme, &signed, signature)
}

/// What is signed: nothing that could be taken for anything else (§4.4.3).
pub(crate) fn signed(context: &[u8; 34], transcript: &Hash) -> [u8; 130] {
    let mut content = [0x20; 130];
    let parts = context.iter().chain(transcript);
    content.iter_mut().skip(64).zip(parts).for_each(|(place, byte)| *place = *byte);
    content
}

//! From the server's certificate to an authority that is trusted (RFC 5280, 6): webpki goes the way, and
//! this adds what it leaves out.

use core::time::Duration;

use pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, Error as Webpki, KeyUsage, VerifiedPath, anchor_from_trusted_cert};

use super::fields::{Fields, Usage};
use super::{Accepted, Refusal, algorithms};
use crate::config::{Config, Time};
use crate::limits::{MAX_ANCHORS, MAX_CHAIN};

/// Checks a server's certificates, its own first.
pub(crate) fn verify(
    config: &Config<'_>,
    time: Time,
    chain: &[CertificateDer<'_>],
) -> Result<Accepted, Refusal> {
    let (own, intermediates) = chain.split_first().ok_or(Refusal::Malformed)?;
    let fields = Fields::of(own).ok_or(Refusal::Malformed)?;
    let server = EndEntityCert::try_from(own).map_err(|error| Refusal::of_webpki(&error))?;
    lead_to_anchor(config, time, &server, intermediates)?;
    // RFC 6125 and RFC 9525: the subject's common name is no name; an address is compared with addresses
    // only.
    server.verify_is_valid_for_subject_name(config.server()).map_err(|error| match error {
        Webpki::CertNotValidForName(_) => Refusal::wrong_name(config.name(), &fields),
        error => Refusal::of_webpki(&error),
    })?;
    // §4.4.2.2: if there is a key usage, it has to have this.
    if !fields.allows(Usage::DigitalSignature) {
        return Err(Refusal::KeyNotForSignatures);
    }
    Ok(Accepted { expires: fields.not_after() })
}

fn lead_to_anchor(
    config: &Config<'_>,
    time: Time,
    server: &EndEntityCert<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Result<(), Refusal> {
    let certificates: [CertificateDer<'_>; MAX_ANCHORS] = core::array::from_fn(|index| {
        CertificateDer::from(config.anchors().get(index).copied().unwrap_or_default())
    });
    // The configuration has been checked: there is a first one, and each can be read.
    let first = certificates.first().ok_or(Refusal::UnknownIssuer)?;
    let first = anchor_from_trusted_cert(first).map_err(|error| Refusal::of_webpki(&error))?;
    let anchors: [TrustAnchor<'_>; MAX_ANCHORS] = core::array::from_fn(|index| {
        let certificate = certificates.get(index).map(anchor_from_trusted_cert);
        certificate.and_then(Result::ok).unwrap_or_else(|| first.clone())
    });
    let anchors = anchors.get(..config.anchors().len()).unwrap_or_default();
    let at = |time: u64| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(time));
        server
            .verify_for_usage(
                algorithms::FOR_CERTIFICATES,
                anchors,
                intermediates,
                time,
                KeyUsage::server_auth(),
                None,
                Some(&issuers_may_sign),
            )
            .map(drop)
    };
    let mut now = match time {
        Time::Exactly(now) => return at(now).map_err(|error| Refusal::of_webpki(&error)),
        Time::AtLeast(now) => now,
    };
    // Each certificate on the way may tell that it is later than was known, once.
    let mut result = at(now);
    for _ in 0..MAX_CHAIN {
        let Err(Webpki::CertNotValidYet { not_before, .. }) = &result else { break };
        now = not_before.as_secs().max(now);
        result = at(now);
    }
    result.map_err(|error| Refusal::of_webpki(&error))
}

/// RFC 5280, 6.1.4 (n): who signs certificates has a key for that, if it says what for.
fn issuers_may_sign(path: &VerifiedPath<'_>) -> Result<(), Webpki> {
    let mut issuers = path.intermediate_certificates();
    let may_sign =
        |der: &[u8]| Fields::of(der).is_some_and(|issuer| issuer.allows(Usage::KeyCertSign));
    if issuers.all(|issuer| may_sign(&issuer.der())) {
        Ok(())
    } else {
        Err(Webpki::EndEntityUsedAsCa)
    }
}

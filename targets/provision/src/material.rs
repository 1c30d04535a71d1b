//! Certificates: from PEM to DER, and whether they are fit.

use anyhow::{Context, Result, ensure};
use picokube_config::MAX_CERTIFICATES;
use picokube_kubeconfig::Material;
use picokube_tls::Facts;
use pki_types::CertificateDer;
use pki_types::pem::PemObject;

/// The certificates that are in it, in DER.
pub(crate) fn certificates(material: &Material) -> Result<Vec<Vec<u8>>> {
    let certificates: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&material.bytes()?)
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<Result<_, _>>()
        .with_context(|| format!("a certificate in {material} is broken"))?;
    ensure!(!certificates.is_empty(), "there is no certificate in {material}, which has to be PEM");
    ensure!(
        certificates.len() <= MAX_CERTIFICATES,
        "{material} has {} certificates, and the device has room for {MAX_CERTIFICATES}: leave out those \
         that have nothing to do with this cluster",
        certificates.len()
    );
    Ok(certificates)
}

/// Authorities that may have issued a server's certificate, in DER.
pub(crate) fn authorities(material: &Material, now: u64) -> Result<Vec<Vec<u8>>> {
    let certificates = certificates(material)?;
    for der in &certificates {
        let facts = facts(der, material)?;
        ensure!(
            facts.is_authority,
            "a certificate in {material} is not that of an authority (CA:TRUE, keyCertSign), but that of a \
             server or client: give the one that has issued the server's; for k3s that is server-ca.crt"
        );
        check_time("the authority's certificate", material, &facts, now)?;
    }
    Ok(certificates)
}

pub(crate) fn facts(der: &[u8], material: &Material) -> Result<Facts> {
    Facts::of(der)
        .with_context(|| format!("a certificate in {material} is none of version 3 (X.509)"))
}

/// Whether it has begun and is not over.
pub(crate) fn check_time(what: &str, material: &Material, facts: &Facts, now: u64) -> Result<()> {
    let Facts { not_before, not_after, .. } = *facts;
    ensure!(
        now >= not_before,
        "{what} in {material} begins in {}: is this machine's clock right?",
        span(not_before.saturating_sub(now))
    );
    ensure!(
        now < not_after,
        "{what} in {material} ended {} ago: renew it",
        span(now.saturating_sub(not_after))
    );
    Ok(())
}

/// A time for people.
pub(crate) fn span(seconds: u64) -> String {
    let (unit, count) = match seconds {
        0..=119 => ("second", seconds),
        120..=7199 => ("minute", seconds / 60),
        7200..=172_799 => ("hour", seconds / 3600),
        _ => ("day", seconds / 86_400),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

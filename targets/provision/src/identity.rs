//! The device's own certificate and key.

use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use p256::SecretKey;
use p256::pkcs8::DecodePrivateKey;
use picokube_kubeconfig::Material;
use picokube_tls::KeyKind;
use pki_types::PrivateKeyDer;
use pki_types::pem::PemObject;

use crate::material::{certificates, check_time, facts, span};

/// So long before a certificate or a token ends, it is worth a word.
pub(crate) const SOON: u64 = 30 * 86_400;

/// A certificate of the device's own, and its key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, then those between it and an authority, in DER.
    pub chain: Vec<Vec<u8>>,
    key: [u8; 32],
}

impl Identity {
    /// The private key: a number of P-256.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

/// Without the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

/// Reads and checks a certificate and its key.
pub(crate) fn identity(
    certificate: &Material,
    key: &Material,
    now: u64,
    notes: &mut Vec<String>,
) -> Result<Identity> {
    let chain = certificates(certificate)?;
    for der in &chain {
        check_time("the client certificate", certificate, &facts(der, certificate)?, now)?;
    }
    let own = chain.first().context("there is no certificate")?;
    let facts = facts(own, certificate)?;
    match facts.key {
        KeyKind::P256 => {}
        KeyKind::Rsa => bail!("the client certificate in {certificate} has an RSA key. {ADVICE}"),
        _ => bail!(
            "the client certificate in {certificate} has a key that is not on P-256. {ADVICE}"
        ),
    }
    ensure!(
        facts.is_for_clients,
        "the certificate in {certificate} is not for clients: it needs the extended key usage clientAuth, \
         and digitalSignature if it has a key usage"
    );
    let scalar = scalar(key)?;
    let slices: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    // As the device will.
    picokube_tls::Identity::new(&slices, &scalar)
        .with_context(|| format!("{certificate} and {key}"))?;
    let left = facts.not_after.saturating_sub(now);
    if left < SOON {
        notes.push(format!(
            "the client certificate ends in {}: see docs/porting.md for a new one",
            span(left)
        ));
    }
    Ok(Identity { chain, key: scalar })
}

const ADVICE: &str = "The device signs with P-256 only: make a key with `openssl ecparam -name prime256v1 \
                      -genkey -noout`, have the cluster sign a certificate for it, or give a token \
                      instead";

/// The number that a private key is.
fn scalar(material: &Material) -> Result<[u8; 32]> {
    let pem = material.bytes()?;
    if pem.windows(ENCRYPTED.len()).any(|bytes| bytes == ENCRYPTED) {
        bail!("the client key in {material} is encrypted: `openssl pkey` takes the password off");
    }
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .with_context(|| format!("there is no private key in {material}, which has to be PEM"))?;
    let key = match &key {
        PrivateKeyDer::Sec1(der) => SecretKey::from_sec1_der(der.secret_sec1_der()).ok(),
        PrivateKeyDer::Pkcs8(der) => SecretKey::from_pkcs8_der(der.secret_pkcs8_der()).ok(),
        PrivateKeyDer::Pkcs1(_) => bail!("the client key in {material} is an RSA key. {ADVICE}"),
        _ => None,
    };
    let key =
        key.with_context(|| format!("the client key in {material} is not on P-256. {ADVICE}"))?;
    Ok(key.to_bytes().into())
}

const ENCRYPTED: &[u8] = b"ENCRYPTED";

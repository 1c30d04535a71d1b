//! Authorities of a cluster's own: one vouches for its server, another one for its clients.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer};
use rcgen::{KeyPair, KeyUsagePurpose};

use super::names::ServerNames;

/// How long a client's certificate is good for, as `kubeadm` has it.
const CLIENT_VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Clocks of others may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// Whoever signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, both in PEM.
pub struct Identity {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

impl Authority {
    /// A new one.
    pub(super) fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let parameters = Self::parameters(name)?;
        let pem = parameters.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(parameters, key), pem })
    }

    /// One that was made here before, under the same name.
    pub(super) fn from_pem(name: &str, key_pem: &str, pem: String) -> Result<Self> {
        let key = KeyPair::from_pem(key_pem)?;
        Ok(Self { issuer: Issuer::new(Self::parameters(name)?, key), pem })
    }

    fn parameters(name: &str) -> Result<CertificateParams> {
        let mut parameters = CertificateParams::new(Vec::<String>::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.distinguished_name.push(DnType::CommonName, name);
        Ok(parameters)
    }

    /// Its own certificate, in PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Its private key, in PEM.
    pub(super) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for a server, in PEM.
    pub(super) fn sign_server(&self, names: &ServerNames, key: &KeyPair) -> Result<String> {
        let mut server = CertificateParams::new(names.all())?;
        server.distinguished_name.push(DnType::CommonName, "picokube");
        Ok(server.signed_by(key, &self.issuer)?.pem())
    }

    /// A certificate for a client, on P-256, and its key.
    pub(super) fn identify(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut client = CertificateParams::new(Vec::<String>::new())?;
        let now = SystemTime::now();
        client.not_before = (now - CLOCK_SKEW).into();
        client.not_after = (now + CLIENT_VALIDITY).into();
        client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        client.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            client.distinguished_name.push(DnType::OrganizationName, group);
        }
        let key = KeyPair::generate()?;
        let certificate_pem = client.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate_pem, key_pem: key.serialize_pem() })
    }
}

//! Certificates: given by files, or made at the first start.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::private;

/// What a directory of generated certificates has in it.
pub const FILES: [&str; 4] = ["ca.crt", "server.crt", "server.key", "token"];

/// A server certificate and whoever vouches for it.
#[derive(Debug)]
pub struct Certificates {
    /// What clients have to trust, in PEM.
    pub authority_pem: String,
    /// The certificate chain of the server, in PEM.
    pub chain_pem: String,
    key_pem: String,
}

impl Certificates {
    /// Reads a certificate chain and its key; clients have to trust the chain.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self> {
        let (chain_pem, key_pem) = (read(chain)?, read(key)?);
        Ok(Self { authority_pem: chain_pem.clone(), chain_pem, key_pem })
    }

    /// Takes the certificates in `directory`, or makes an authority and a server certificate for
    /// `address` there. The keys are readable for the owner only.
    pub fn in_directory(directory: &Path, address: IpAddr) -> Result<Self> {
        let file = |name: &str| directory.join(name);
        let [authority, chain, key, _] = FILES.map(file);
        if !(authority.exists() && chain.exists() && key.exists()) {
            let made = Self::generate(address)?;
            private::create_directory(directory)?;
            private::write(&key, &made.key_pem)?;
            private::write(&chain, &made.chain_pem)?;
            private::write(&authority, &made.authority_pem)?;
            return Ok(made);
        }
        Ok(Self {
            authority_pem: private::read(&authority)?,
            chain_pem: private::read(&chain)?,
            key_pem: private::read(&key)?,
        })
    }

    /// Makes an authority and a server certificate for `address` and for loopback.
    pub fn generate(address: IpAddr) -> Result<Self> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::<String>::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "picokube-ca");
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let mut names: Vec<String> =
            ["localhost", "kubernetes", "kubernetes.default.svc", "127.0.0.1", "::1"]
                .map(str::to_owned)
                .to_vec();
        if !address.is_unspecified() {
            names.push(address.to_string());
        }
        names.sort();
        names.dedup();
        let server_key = KeyPair::generate()?;
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "picokube");
        let server_certificate = server.signed_by(&server_key, &issuer)?;
        Ok(Self {
            authority_pem: authority_certificate.pem(),
            chain_pem: server_certificate.pem(),
            key_pem: server_key.serialize_pem(),
        })
    }

    /// What rustls needs to serve with them, speaking HTTP/2 and HTTP/1.1.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_slice_iter(self.chain_pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("the certificate is not PEM")?;
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .context("the private key is not PEM")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("the certificate and the private key do not belong together")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The token in `directory`, made at the first start.
pub fn token_in_directory(directory: &Path) -> Result<String> {
    let [.., token] = FILES;
    let path = directory.join(token);
    if path.exists() {
        let token = private::read(&path)?;
        let token = token.trim();
        anyhow::ensure!(!token.is_empty(), "{} is empty", path.display());
        return Ok(token.to_owned());
    }
    private::create_directory(directory)?;
    let token = new_token()?;
    private::write(&path, &token)?;
    Ok(token)
}

/// A token of 256 random bits.
pub fn new_token() -> Result<String> {
    use base64::Engine;
    let mut bytes = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    provider
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_certificates_can_serve() {
        let certificates = Certificates::generate("192.0.2.7".parse().unwrap()).unwrap();
        certificates.server_config().unwrap();
        assert_ne!(certificates.authority_pem, certificates.chain_pem);
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (new_token().unwrap(), new_token().unwrap());
        assert!(one.len() >= 43 && one != two);
    }
}

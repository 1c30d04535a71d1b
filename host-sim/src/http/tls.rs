//! Certificates: given by files, or made at the first start.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::KeyPair;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoClientAuth, ParsedCertificate};

use super::authority::Authority;
pub use super::authority::Identity;
use super::client_certificates::ClientAuthorities;
use super::names::{ServerNames, server_name};

use crate::private;

/// What a directory of generated certificates has in it.
pub const FILES: [&str; 7] =
    ["ca.crt", "ca.key", "server.crt", "server.key", CLIENT_FILES[0], CLIENT_FILES[1], TOKEN_FILE];

const CLIENT_FILES: [&str; 2] = ["client-ca.crt", "client-ca.key"];
const TOKEN_FILE: &str = "token";

/// Names of the authorities.
const SERVERS: &str = "picokube-ca";
const CLIENTS: &str = "picokube-client-ca";

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

    /// Takes the certificates in `directory`, or makes there what is missing: an authority, and a
    /// server certificate for `names`. One that lacks a name is renewed by the same authority, so
    /// that clients trust it as before; `news` tells of it. The keys are readable for the owner only.
    pub fn in_directory(
        directory: &Path,
        names: &ServerNames,
        mut news: impl FnMut(&str),
    ) -> Result<Self> {
        let file = |name: &str| directory.join(name);
        let [authority, authority_key, chain, key, ..] = FILES.map(file);
        if !(authority.exists() && chain.exists() && key.exists()) {
            let (issuer, made) = Self::with_authority(names)?;
            private::create_directory(directory)?;
            return made.write_to(directory, &issuer);
        }
        let found = Self {
            authority_pem: private::read(&authority)?,
            chain_pem: private::read(&chain)?,
            key_pem: private::read(&key)?,
        };
        // Also where it is not needed: reading it closes it to others.
        let issuer_key =
            authority_key.exists().then(|| private::read(&authority_key)).transpose()?;
        let missing = found.missing(names.all())?;
        if missing.is_empty() {
            return Ok(found);
        }
        let missing = missing.join(", ");
        let Some(issuer_key) = issuer_key else {
            let (issuer, made) = Self::with_authority(names)?;
            news(&format!(
                "the certificate in {} does not name {missing}, and the key of its authority was \
                 not kept: both were made anew, and clients need the new kubeconfig or ca.crt",
                directory.display()
            ));
            return made.write_to(directory, &issuer);
        };
        let issuer = Authority::from_pem(SERVERS, &issuer_key, found.authority_pem)
            .with_context(|| format!("{} is no private key", authority_key.display()))?;
        let server_key = KeyPair::from_pem(&found.key_pem)
            .with_context(|| format!("{} is no private key", key.display()))?;
        let renewed = Self::signed_by(&issuer, names, &server_key)?;
        private::write(&chain, &renewed.chain_pem)?;
        news(&format!(
            "the certificate in {} did not name {missing} and was renewed; clients that trust its \
             authority notice nothing",
            directory.display()
        ));
        Ok(renewed)
    }

    /// Makes an authority and a server certificate for `names`.
    pub fn generate(names: &ServerNames) -> Result<Self> {
        Ok(Self::with_authority(names)?.1)
    }

    fn with_authority(names: &ServerNames) -> Result<(Authority, Self)> {
        let authority = Authority::new(SERVERS)?;
        let certificates = Self::signed_by(&authority, names, &KeyPair::generate()?)?;
        Ok((authority, certificates))
    }

    fn signed_by(authority: &Authority, names: &ServerNames, key: &KeyPair) -> Result<Self> {
        Ok(Self {
            authority_pem: authority.pem().to_owned(),
            chain_pem: authority.sign_server(names, key)?,
            key_pem: key.serialize_pem(),
        })
    }

    /// Those names that the server certificate is not valid for.
    pub fn missing(&self, names: &[String]) -> Result<Vec<String>> {
        let certificate = CertificateDer::from_pem_slice(self.chain_pem.as_bytes())
            .context("the certificate is not PEM")?;
        let certificate =
            ParsedCertificate::try_from(&certificate).context("the certificate cannot be read")?;
        let mut missing = Vec::new();
        for name in names {
            if verify_server_name(&certificate, &server_name(name)?).is_err() {
                missing.push(name.clone());
            }
        }
        Ok(missing)
    }

    fn write_to(self, directory: &Path, authority: &Authority) -> Result<Self> {
        private::write(&directory.join("ca.key"), &authority.key_pem())?;
        private::write(&directory.join("ca.crt"), &self.authority_pem)?;
        private::write(&directory.join("server.key"), &self.key_pem)?;
        private::write(&directory.join("server.crt"), &self.chain_pem)?;
        Ok(self)
    }

    /// What rustls needs to serve with them, speaking HTTP/2 and HTTP/1.1, to clients that may show a
    /// certificate of one of these authorities.
    pub fn server_config(&self, clients: Option<&ClientAuthorities>) -> Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_slice_iter(self.chain_pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("the certificate is not PEM")?;
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .context("the private key is not PEM")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(match clients {
                Some(clients) => clients.handshake(),
                None => Arc::new(NoClientAuth),
            })
            .with_single_cert(chain, key)
            .context("the certificate and the private key do not belong together")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Clients come back by a ticket, however many others were there meanwhile. One is enough, as in
        // Go: each connection brings the next.
        config.ticketer = rustls::crypto::ring::Ticketer::new()?;
        config.send_tls13_tickets = 1;
        Ok(Arc::new(config))
    }
}

/// The authority of a cluster's clients.
pub struct Clients(Authority);

impl Clients {
    /// A new one.
    pub fn generate() -> Result<Self> {
        Ok(Self(Authority::new(CLIENTS)?))
    }

    /// The one in `directory`, made at the first start. Its key is readable for the owner only.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        let [certificate, key] = CLIENT_FILES.map(|name| directory.join(name));
        if certificate.exists() && key.exists() {
            let (pem, key_pem) = (private::read(&certificate)?, private::read(&key)?);
            let authority = Authority::from_pem(CLIENTS, &key_pem, pem);
            let shown = key.display();
            return Ok(Self(authority.with_context(|| format!("{shown} is no private key"))?));
        }
        let made = Self::generate()?;
        private::create_directory(directory)?;
        private::write(&key, &made.0.key_pem())?;
        private::write(&certificate, made.0.pem())?;
        Ok(made)
    }

    /// What a server has to know of it.
    pub fn authorities(&self) -> Result<ClientAuthorities> {
        ClientAuthorities::from_pem(self.0.pem().as_bytes())
    }

    /// A certificate for a user, good for a year.
    pub fn identify(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        self.0.identify(user, group)
    }
}

/// The token in `directory`, made at the first start.
pub fn token_in_directory(directory: &Path) -> Result<String> {
    let path = directory.join(TOKEN_FILE);
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

    fn names(given: &[&str]) -> ServerNames {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        ServerNames::of([192, 0, 2, 7].into(), &given).unwrap()
    }

    #[test]
    fn generated_certificates_can_serve_and_have_every_name() {
        let names = names(&["*.example.test", "ci.test", "2001:db8::7"]);
        let certificates = Certificates::generate(&names).unwrap();
        certificates.server_config(None).unwrap();
        assert_ne!(certificates.authority_pem, certificates.chain_pem);
        assert_eq!(certificates.missing(names.all()).unwrap(), Vec::<String>::new());
        let others = ["other.test".to_owned(), "192.0.2.8".to_owned()];
        assert_eq!(certificates.missing(&others).unwrap(), others);
    }

    #[test]
    fn a_certificate_that_lacks_a_name_is_renewed_by_its_authority() {
        let directory = tempfile::tempdir().unwrap();
        let mut news = Vec::new();
        let mut start = |given: &[&str]| {
            let tell = |text: &str| news.push(text.to_owned());
            let made = Certificates::in_directory(directory.path(), &names(given), tell).unwrap();
            made.server_config(None).unwrap();
            made
        };
        let first = start(&[]);
        let same = start(&[]);
        assert_eq!(first.chain_pem, same.chain_pem);
        let renewed = start(&["ci.test"]);
        assert_ne!(first.chain_pem, renewed.chain_pem);
        assert_eq!(first.authority_pem, renewed.authority_pem);
        assert_eq!(start(&["ci.test"]).chain_pem, renewed.chain_pem);
        assert_eq!(start(&[]).chain_pem, renewed.chain_pem, "names too many are no harm");

        // As made by a version that did not keep the authority's key.
        std::fs::remove_file(directory.path().join("ca.key")).unwrap();
        assert_ne!(start(&["other.test"]).authority_pem, first.authority_pem);
        assert_eq!(news.len(), 2);
        assert!(news[0].contains("ci.test") && news[0].contains("notice nothing"), "{}", news[0]);
        assert!(news[1].contains("kubeconfig"), "{}", news[1]);
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (new_token().unwrap(), new_token().unwrap());
        assert!(one.len() >= 43 && one != two);
    }
}

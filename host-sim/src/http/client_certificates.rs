//! Who a client is by its certificate.
//!
//! As in kube-apiserver: the handshake asks for a certificate and takes any whose key the client has.
//! Who has signed it, for what and for how long is looked at with every request, so that one that has
//! expired on an open connection opens nothing any more, and whoever is refused hears why (401). The
//! certificate's common name is the user, its organizations are the groups.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use crate::server::request::User;

/// Who may say who clients are.
#[derive(Clone, Debug)]
pub struct ClientAuthorities {
    trust: Arc<dyn ClientCertVerifier>,
}

impl ClientAuthorities {
    /// Reads their certificates.
    pub fn from_file(path: &Path) -> Result<Self> {
        let name = path.display();
        let pem = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        Self::from_pem(&pem).with_context(|| format!("{name} has no authorities of clients"))
    }

    /// The authorities whose certificates these are.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.context("a certificate is no PEM")?;
            roots.add(certificate).context("a certificate cannot be read")?;
        }
        ensure!(!roots.is_empty(), "there is no certificate in it");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self { trust: verifier.build()? })
    }

    /// What a handshake asks of clients: a certificate if they have one, and its key.
    pub(super) fn handshake(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate(self.trust.clone()))
    }

    /// The user whom a client's certificate names, which comes first in `chain`; `None` if it has no
    /// name.
    pub(super) fn user(&self, chain: &[CertificateDer<'_>]) -> Result<Option<User>, Unverified> {
        let (certificate, intermediates) = chain.split_first().ok_or(Unverified)?;
        self.trust
            .verify_client_cert(certificate, intermediates, UnixTime::now())
            .map_err(|_| Unverified)?;
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| Unverified)?;
        let subject = parsed.subject();
        // Of several names the last one counts, as in Go.
        let Some(name) = subject.iter_common_name().filter_map(text).last() else {
            return Ok(None);
        };
        let groups = subject.iter_organization().filter_map(text).collect();
        Ok(Some(User::authenticated(name, groups, fingerprint(certificate))))
    }
}

/// Upstream's id of a certificate.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("X509SHA256={}", digits.collect::<String>())
}

/// A certificate that none of the authorities has signed, that has expired, or that is not for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unverified;

fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    attribute.as_str().ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Takes certificates of strangers, too, as long as the client has the key. Those who may sign are only
/// named, so that a client with several certificates knows which one to show.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // Each request has `ClientAuthorities::user` look at it.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

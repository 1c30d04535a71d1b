//! A folder with the files that people have: certificates, keys, kubeconfigs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256,
    date_time_ymd,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;

/// Nobody is there; the address is for documents.
pub(crate) const SERVER: &str = "https://192.0.2.10:6443";

/// 1 July 2026.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_782_864_000)
}

/// A folder, and the authority of a cluster.
pub(crate) struct Folder {
    directory: TempDir,
    key: KeyPair,
    /// The year in which what it issues ends.
    until: i32,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), key: p256(), until: 2027 }
    }

    /// The same for tests that do not say what time it is.
    pub(crate) fn lasting() -> Self {
        Self { until: 2126, ..Self::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What is in a file, for a kubeconfig.
    pub(crate) fn base64(&self, name: &str) -> String {
        STANDARD.encode(std::fs::read(self.path().join(name)).unwrap())
    }

    /// Writes `ca.crt`; gives its DER.
    pub(crate) fn authority(&self) -> Vec<u8> {
        self.authority_with(|_| {})
    }

    pub(crate) fn authority_with(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = self.authority_params();
        change(&mut params);
        let certificate = params.self_signed(&self.key).unwrap();
        self.file("ca.crt", &certificate.pem());
        certificate.der().to_vec()
    }

    fn authority_params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "cluster-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(self.until + 9, 1, 1);
        params
    }

    /// Writes `client.crt` and `client.key`; gives the certificate's DER.
    pub(crate) fn client(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        self.client_of(p256(), change)
    }

    pub(crate) fn client_of(
        &self,
        key: KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "gateway-7");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(self.until, 1, 1);
        change(&mut params);
        let certificate = self.issue(&params, &key);
        self.file("client.crt", &certificate.pem());
        self.write_key("client.key", &key);
        certificate.der().to_vec()
    }

    /// A certificate of the authority's.
    pub(crate) fn issue(&self, params: &CertificateParams, key: &KeyPair) -> rcgen::Certificate {
        params.signed_by(key, &Issuer::from_params(&self.authority_params(), &self.key)).unwrap()
    }

    pub(crate) fn write_key(&self, name: &str, key: &KeyPair) {
        self.file(name, &key.serialize_pem());
    }

    /// Writes `config` with two contexts, `first` with this cluster and user, and gives its path.
    pub(crate) fn kubeconfig(&self, cluster: &str, user: &str) -> PathBuf {
        let text = format!(
            "current-context: first
contexts:
- {{name: first, context: {{cluster: edge, user: device, namespace: default}}}}
- {{name: second, context: {{cluster: edge, user: other, namespace: edge}}}}
- {{name: lost, context: {{cluster: nowhere, user: device}}}}
- {{name: nobody, context: {{cluster: edge, user: unknown}}}}
clusters:
- {{name: edge, cluster: {{{cluster}}}}}
users:
- {{name: device, user: {{{user}}}}}
- {{name: other, user: {{token: of-the-second}}}}
"
        );
        self.file("config", &text)
    }
}

pub(crate) fn p256() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

pub(crate) fn p384() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap()
}

/// One that need not be made.
pub(crate) fn rsa() -> KeyPair {
    let der = &include_bytes!("../../../tls/tests/data/rsa2048.pkcs8")[..];
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_RSA_SHA256).unwrap()
}

//! Certificate authorities, and what they issue.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, PKCS_RSA_SHA384,
    PKCS_RSA_SHA512, SignatureAlgorithm, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) params: CertificateParams,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) key: KeyPair,
}

impl Issued {
    pub(crate) fn of(params: CertificateParams, certificate: &Certificate, key: KeyPair) -> Self {
        Self { params, der: certificate.der().clone(), key }
    }

    /// Issues another one.
    pub(crate) fn issue(&self, params: CertificateParams, key: KeyPair) -> Issued {
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Issued::of(params, &certificate, key)
    }

    /// Issues one for a server.
    pub(crate) fn server(&self, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = server();
        change(&mut params);
        self.issue(params, p256())
    }

    /// Issues one for a client.
    pub(crate) fn client(&self) -> Issued {
        let mut params = server();
        params.subject_alt_names.clear();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, p256())
    }

    /// The private number of a key on P-256: what is 32 bytes long in its PKCS #8.
    pub(crate) fn scalar(&self) -> [u8; 32] {
        let der = self.key.serialize_der();
        let at = der.windows(2).position(|bytes| bytes == [4, 32]).unwrap();
        der[at + 2..at + 34].try_into().unwrap()
    }
}

pub(crate) fn p256() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

/// One of the keys in `tests/data`, which take too long to make.
pub(crate) fn rsa(bits: usize, algorithm: &'static SignatureAlgorithm) -> KeyPair {
    let path = format!("{}/tests/data/rsa{bits}.pkcs8", env!("CARGO_MANIFEST_DIR"));
    let der = std::fs::read(path).unwrap();
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), algorithm).unwrap()
}

/// RSA with each hash.
pub(crate) fn rsa_algorithms() -> [&'static SignatureAlgorithm; 3] {
    [&PKCS_RSA_SHA256, &PKCS_RSA_SHA384, &PKCS_RSA_SHA512]
}

/// What an authority's certificate says.
pub(crate) fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(2035, 1, 1);
    params
}

/// An authority that has signed itself.
pub(crate) fn authority_with(name: &str, key: KeyPair) -> Issued {
    let params = authority_params(name);
    let certificate = params.self_signed(&key).unwrap();
    Issued::of(params, &certificate, key)
}

pub(crate) fn authority(name: &str) -> Issued {
    authority_with(name, p256())
}

/// What a server's certificate says, as a cluster's does.
pub(crate) fn server() -> CertificateParams {
    let names = ["kubernetes", "kubernetes.default", "10.0.2.2", "::1"];
    let mut params = CertificateParams::new(names.map(String::from)).unwrap();
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.not_before = date_time_ymd(2025, 7, 1);
    params.not_after = date_time_ymd(2026, 7, 1);
    params
}

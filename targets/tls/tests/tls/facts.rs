//! What certificates say of themselves.

use picokube_tls::{Facts, KeyKind};
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, date_time_ymd,
};

use crate::support::authority::{authority, p256, rsa};

/// 1 July 2025 and 2026.
const BEGIN: u64 = 1_751_328_000;
const END: u64 = 1_782_864_000;

#[test]
fn times_keys_and_what_they_are_for() {
    let authority = authority("ca");
    let own = Facts::of(&authority.der).unwrap();
    assert!(own.is_authority && !own.is_for_clients, "its key signs certificates, nothing else");
    let server = Facts::of(&authority.server(|_| {}).der).unwrap();
    assert!(!server.is_authority && !server.is_for_clients);
    assert_eq!((server.not_before, server.not_after, server.key), (BEGIN, END, KeyKind::P256));
    let client = Facts::of(&authority.client().der).unwrap();
    assert!(!client.is_authority && client.is_for_clients);
}

#[test]
fn what_is_not_said_is_allowed_and_what_is_said_counts() {
    let facts = |change: fn(&mut CertificateParams)| {
        Facts::of(&authority("ca").server(change).der).unwrap()
    };
    assert!(facts(|params| params.extended_key_usages.clear()).is_for_clients);
    assert!(
        facts(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any])
            .is_for_clients
    );
    let cannot_sign = facts(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    });
    assert!(!cannot_sign.is_for_clients);
    let may_not_issue = facts(|params| {
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    });
    assert!(!may_not_issue.is_authority);
    assert!(!facts(|params| params.is_ca = IsCa::ExplicitNoCa).is_authority);
    assert_eq!(facts(|params| params.not_before = date_time_ymd(1960, 1, 1)).not_before, 0);
}

#[test]
fn keys_that_are_not_of_p256_are_told() {
    let issue = |key: KeyPair| {
        let authority = authority("ca");
        Facts::of(&authority.issue(CertificateParams::default(), key).der).unwrap().key
    };
    assert_eq!(issue(p256()), KeyKind::P256);
    assert_eq!(issue(rsa(2048, &PKCS_RSA_SHA256)), KeyKind::Rsa);
    assert_eq!(issue(KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap()), KeyKind::Other);
}

#[test]
fn what_is_no_certificate_says_nothing() {
    let good = authority("ca").der;
    for cut in 0..good.len() {
        assert_eq!(Facts::of(&good[..cut]), None, "{cut}");
    }
    assert_eq!(Facts::of(b"-----BEGIN CERTIFICATE-----"), None);
}

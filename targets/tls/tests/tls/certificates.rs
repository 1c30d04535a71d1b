//! Servers that are not who they say they are: refused, with a reason, and without the token.

use picokube_tls::{Alert, Config, ConfigError, Error, Identity, IdentityError, Refusal, Time};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, KeyUsagePurpose, NameConstraints, date_time_ymd,
};

use crate::rustls_server::{Server, Setup};
use crate::support::authority::{self, Issued, authority, authority_params, p256};
use crate::support::{NOW, Options, attempt};

/// Why a server with this chain, and the key of its first, is refused.
fn refusal(authority: &Issued, chain: &[&Issued], name: &str) -> Refusal {
    refusal_at(authority, chain, name, Time::Exactly(NOW))
}

fn refusal_at(authority: &Issued, chain: &[&Issued], name: &str, time: Time) -> Refusal {
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new(name, &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(chain, chain[0]));
    let error = attempt(&Options { time, ..Options::new(&config) }, &mut server).unwrap_err();
    assert_eq!(server.got, b"", "the token was sent");
    assert!(server.error.is_some(), "the server was not told");
    let Error::Certificate(refusal) = error else { panic!("{error:?}") };
    refusal
}

/// The same for a certificate that differs from a good one by `change`.
fn changed(change: impl FnOnce(&mut CertificateParams)) -> Refusal {
    let authority = authority("ca");
    let issued = authority.server(change);
    refusal(&authority, &[&issued], "kubernetes")
}

#[test]
fn of_another_name() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let refused = refusal(&authority, &[&issued], "example.org");
    let text = refused.to_string();
    let start = "the server's certificate is for kubernetes, kubernetes.default, 10.0.2.2, ::1, \
                 not for example.org:";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(Error::from(refused).alert(), Some(Alert::CERTIFICATE_UNKNOWN));
    for name in ["kube", "kubernetes.default.svc", "a.kubernetes", "10.0.2.3", "::2"] {
        assert!(matches!(refusal(&authority, &[&issued], name), Refusal::Name { .. }), "{name}");
    }
    // What is too long to be shown is cut.
    let long = authority.server(|params| {
        params.subject_alt_names =
            vec![rcgen::SanType::DnsName("long-".repeat(12).try_into().unwrap())];
    });
    assert!(refusal(&authority, &[&long], "kubernetes").to_string().contains("long-long-"));
}

#[test]
fn without_the_address_among_its_names() {
    // A name that looks like an address is none.
    let refused = changed_for("10.0.2.2", |params| {
        params.subject_alt_names = vec![rcgen::SanType::DnsName("10.0.2.2".try_into().unwrap())];
    });
    assert!(matches!(refused, Refusal::Name { .. } | Refusal::Malformed), "{refused:?}");
    let refused = changed_for("10.0.2.2", |params| params.subject_alt_names.truncate(2));
    assert!(matches!(refused, Refusal::Name { .. }), "{refused:?}");
    // The subject is no name either.
    let refused = changed_for("kube-apiserver", |params| params.subject_alt_names.clear());
    assert!(matches!(refused, Refusal::Name { .. }), "{refused:?}");
    assert!(
        refused.to_string().contains("for no name at all, not for kube-apiserver"),
        "{refused}"
    );
}

fn changed_for(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Refusal {
    let authority = authority("ca");
    let issued = authority.server(change);
    refusal(&authority, &[&issued], name)
}

#[test]
fn expired_or_not_yet_valid() {
    let refused = changed(|params| params.not_after = date_time_ymd(2025, 12, 31));
    assert_eq!(refused, Refusal::Expired { now: NOW, not_after: NOW - 24 * 3600 });
    assert_eq!(Error::from(refused).alert(), Some(Alert::CERTIFICATE_EXPIRED));
    assert!(refused.to_string().contains("ended 86400 s ago"), "{refused}");
    let refused = changed(|params| params.not_before = date_time_ymd(2026, 1, 2));
    assert_eq!(refused, Refusal::NotYetValid { now: NOW, not_before: NOW + 24 * 3600 });
    // Where the clock only says "at least", a certificate between that is over still counts.
    let authority = authority("ca");
    let mut params = authority_params("between");
    params.not_after = date_time_ymd(2025, 6, 1);
    let between = authority.issue(params, p256());
    let issued = between.server(|_| {});
    let chain = [&issued, &between];
    // The server's own begins on 2025-07-01, when the one between was over.
    let refused =
        refusal_at(&authority, &chain, "kubernetes", Time::AtLeast(NOW - 300 * 24 * 3600));
    assert!(matches!(refused, Refusal::Expired { .. }), "{refused:?}");
}

#[test]
fn of_an_authority_that_is_not_trusted() {
    let trusted = authority("ca");
    // Of another name; of the same name, with another key; of nobody.
    let stranger = authority("stranger").server(|_| {});
    assert_eq!(refusal(&trusted, &[&stranger], "kubernetes"), Refusal::UnknownIssuer);
    let forger = authority("ca");
    let forged = forger.server(|_| {});
    assert_eq!(refusal(&trusted, &[&forged], "kubernetes"), Refusal::Signature);
    assert_eq!(refusal(&trusted, &[&forged, &forger], "kubernetes"), Refusal::Signature);
    let params = authority::server();
    let key = p256();
    let certificate = params.self_signed(&key).unwrap();
    let self_signed = Issued::of(params, &certificate, key);
    assert_eq!(refusal(&trusted, &[&self_signed], "kubernetes"), Refusal::UnknownIssuer);
    // One between that is not sent.
    let between = trusted.issue(authority_params("between"), p256());
    let issued = between.server(|_| {});
    assert_eq!(refusal(&trusted, &[&issued], "kubernetes"), Refusal::UnknownIssuer);
}

#[test]
fn signed_by_what_may_not_sign() {
    let authority = authority("ca");
    // Some client's certificate, of the same authority.
    let client = authority.client();
    let forged = client.server(|_| {});
    assert_eq!(
        refusal(&authority, &[&forged, &client], "kubernetes"),
        Refusal::IssuerIsNoAuthority
    );
    // One that may not according to its key usage, although it is an authority.
    let mut params = authority_params("between");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let between = authority.issue(params, p256());
    let issued = between.server(|_| {});
    assert_eq!(
        refusal(&authority, &[&issued, &between], "kubernetes"),
        Refusal::IssuerIsNoAuthority
    );
    // One that may, but not for others that sign.
    let mut params = authority_params("short");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let short = authority.issue(params, p256());
    let between = short.issue(authority_params("between"), p256());
    let issued = between.server(|_| {});
    let refused = refusal(&authority, &[&issued, &between, &short], "kubernetes");
    assert_eq!(refused, Refusal::Constraint);
    // One that may not for this name.
    let mut params = authority_params("elsewhere");
    let excluded_subtrees = vec![GeneralSubtree::DnsName("kubernetes".into())];
    params.name_constraints =
        Some(NameConstraints { permitted_subtrees: Vec::new(), excluded_subtrees });
    let elsewhere = authority.issue(params, p256());
    let issued = elsewhere.server(|_| {});
    assert_eq!(refusal(&authority, &[&issued, &elsewhere], "kubernetes"), Refusal::Constraint);
}

#[test]
fn for_something_else() {
    let refused = changed(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    assert_eq!(refused, Refusal::NotForServers);
    let refused = changed(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment]);
    assert_eq!(refused, Refusal::KeyNotForSignatures);
    let refused = changed(|params| params.key_usages = vec![KeyUsagePurpose::KeyCertSign]);
    assert_eq!(refused, Refusal::KeyNotForSignatures);
    let refused = changed(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    assert_eq!(refused, Refusal::IsAnAuthority);
    let refused = changed(|params| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions.push(unknown);
    });
    assert_eq!(refused, Refusal::Unsupported);
    // Those without any restriction are fine.
    let authority = authority("ca");
    let issued = authority.server(|params| {
        params.key_usages.clear();
        params.extended_key_usages.clear();
    });
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    attempt(&Options::new(&config), &mut server).unwrap();
}

#[test]
fn of_a_kind_that_is_not_supported() {
    let authority = authority("ca");
    let p384 = || rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let other = authority::authority_with("p384", p384());
    let issued = other.server(|_| {});
    assert_eq!(refusal(&other, &[&issued], "kubernetes"), Refusal::Unsupported);
    // Too many of them.
    let mut chain = vec![authority.issue(authority_params("0"), p256())];
    for number in 1..5 {
        let next = chain[0].issue(authority_params(&number.to_string()), p256());
        chain.insert(0, next);
    }
    let issued = chain[0].server(|_| {});
    let chain: Vec<&Issued> = std::iter::once(&issued).chain(&chain).collect();
    assert_eq!(refusal(&authority, &chain, "kubernetes"), Refusal::TooMany);
}

#[test]
fn with_the_key_of_somebody_else() {
    let authority = authority("ca");
    let (issued, other) = (authority.server(|_| {}), authority.server(|_| {}));
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(&[&issued], &other));
    let error = attempt(&Options::new(&config), &mut server).unwrap_err();
    assert_eq!((error, error.alert()), (Error::NotTheKey, Some(Alert::DECRYPT_ERROR)));
    assert_eq!(server.got, b"");
}

#[test]
fn of_another_protocol_or_version() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let refused = |setup: Setup| {
        let mut server = Server::new(&setup.config(&[&issued], &issued));
        let error = attempt(&Options::new(&config), &mut server).unwrap_err();
        assert_eq!(server.got, b"");
        error
    };
    let protocols = vec![b"http/1.1".to_vec()];
    let error = refused(Setup { protocols, ..Setup::default() });
    assert_eq!(error, Error::Alert(Alert::NO_APPLICATION_PROTOCOL));
    // One that does not know of such protocols.
    let error = refused(Setup { protocols: Vec::new(), ..Setup::default() });
    assert_eq!(error, Error::NoApplicationProtocol);
    let error = refused(Setup { versions: vec![&rustls::version::TLS12], ..Setup::default() });
    assert!(matches!(error, Error::Alert(_)), "{error:?}");
}

#[test]
fn a_configuration_that_is_none_is_told_so() {
    let authority = authority("ca");
    let (client, other) = (authority.client(), authority.client());
    let anchors: [&[u8]; 1] = [&authority.der];
    assert_eq!(Config::new("no name", &anchors).err(), Some(ConfigError::ServerName));
    assert_eq!(Config::new("", &anchors).err(), Some(ConfigError::ServerName));
    assert_eq!(Config::new("kubernetes", &[]).err(), Some(ConfigError::NoAnchor));
    assert_eq!(
        Config::new("kubernetes", &[&authority.der, b"pem"]).err(),
        Some(ConfigError::Anchor(1))
    );
    let nine: [&[u8]; 9] = [&authority.der; 9];
    assert_eq!(Config::new("kubernetes", &nine).err(), Some(ConfigError::TooManyAnchors));
    let config = Config::new("kubernetes", &anchors).unwrap();
    assert_eq!(config.with_protocol(b"").err(), Some(ConfigError::Protocol));

    let chain: [&[u8]; 1] = [&client.der];
    assert!(Identity::new(&chain, &client.scalar()).is_ok());
    assert_eq!(Identity::new(&chain, &other.scalar()).err(), Some(IdentityError::Mismatch));
    assert_eq!(Identity::new(&chain, &[0; 32]).err(), Some(IdentityError::Key));
    assert_eq!(Identity::new(&chain, &[255; 32]).err(), Some(IdentityError::Key));
    assert_eq!(Identity::new(&[], &client.scalar()).err(), Some(IdentityError::Certificate));
    assert_eq!(Identity::new(&[b"pem"], &client.scalar()).err(), Some(IdentityError::Certificate));
    let long: Vec<&[u8]> = vec![&client.der; 60];
    assert_eq!(Identity::new(&long, &client.scalar()).err(), Some(IdentityError::TooLong));
}

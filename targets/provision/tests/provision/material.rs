//! From a kubeconfig or files to a page, and everything that is refused on the way.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picokube_config::{Document, PAGE, read_page, write_page};
use picokube_provision::{Access, AccessArguments};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PublicKeyData, date_time_ymd,
};

use crate::folder::{self, Folder, SERVER, now};

fn access(arguments: &AccessArguments) -> Result<Access> {
    arguments.access_at(now())
}

#[test]
fn a_kubeconfig_becomes_a_page() {
    let folder = Folder::new();
    let (authority, client) = (folder.authority(), folder.client(|_| {}));
    let kubeconfig = folder.kubeconfig(
        &format!(
            "server: {SERVER}, tls-server-name: kubernetes.default, certificate-authority: ca.crt"
        ),
        "token: secret, client-certificate: client.crt, client-key: client.key",
    );
    let access =
        access(&AccessArguments { kubeconfig: Some(kubeconfig), ..Default::default() }).unwrap();
    assert!(access.notes.is_empty(), "{:?}", access.notes);
    let document = access.apply(Document { identity: "gateway-7", ..Document::default() });
    let mut page = [0xff; PAGE];
    write_page(&document, &mut page).unwrap();
    let configuration = read_page(&page).unwrap();
    assert_eq!(configuration.server.to_string(), "192.0.2.10:6443");
    assert_eq!(configuration.host, "192.0.2.10:6443");
    assert_eq!(configuration.authorization, Some("Bearer secret"));
    let tls = configuration.tls.unwrap();
    assert_eq!(tls.name, "kubernetes.default");
    assert_eq!(tls.authorities.as_slice(), [&authority[..]]);
    let own = tls.identity.unwrap();
    assert_eq!(own.chain.as_slice(), [&client[..]]);
    // What the device does with it.
    picokube_tls::Identity::new(own.chain.as_slice(), own.key.0).unwrap();
}

#[test]
fn data_in_the_kubeconfig_is_as_good_as_files() {
    let folder = Folder::new();
    let (authority, client) = (folder.authority(), folder.client(|_| {}));
    let data = |name: &str| folder.base64(name);
    let kubeconfig = folder.kubeconfig(
        &format!("server: {SERVER}, certificate-authority-data: {}", data("ca.crt")),
        &format!(
            "client-certificate-data: {}, client-key-data: {}",
            data("client.crt"),
            data("client.key")
        ),
    );
    let access =
        access(&AccessArguments { kubeconfig: Some(kubeconfig), ..Default::default() }).unwrap();
    let tls = access.tls.unwrap();
    assert_eq!((tls.name.as_str(), tls.authorities), ("192.0.2.10", vec![authority]));
    assert_eq!(tls.identity.unwrap().chain, [client]);
}

#[test]
fn what_is_given_counts_instead_of_what_is_in_the_kubeconfig() {
    let folder = Folder::new();
    folder.authority();
    let cluster = "server: 'https://127.0.0.1:6443', certificate-authority: ca.crt";
    let kubeconfig = Some(folder.kubeconfig(cluster, "token: secret"));
    let given = AccessArguments { kubeconfig, ..Default::default() };
    let error = format!("{:#}", access(&given).unwrap_err());
    assert!(error.contains("give the address by which others reach"), "{error}");
    let server = Some(SERVER.to_owned());
    let token_file = Some(folder.file("token", "another\n"));
    let tls_server_name = Some("kubernetes".to_owned());
    let access = access(&AccessArguments { server, token_file, tls_server_name, ..given }).unwrap();
    assert_eq!(access.server, "192.0.2.10:6443");
    assert_eq!(access.authorization.as_deref(), Some("Bearer another"));
    assert_eq!(access.tls.unwrap().name, "kubernetes");
}

#[test]
fn contexts_are_chosen_by_name() {
    let folder = Folder::new();
    folder.authority();
    let kubeconfig = Some(
        folder.kubeconfig(&format!("server: {SERVER}, certificate-authority: ca.crt"), "token: a"),
    );
    let choose = |context: &str| {
        let context = Some(context.to_owned());
        access(&AccessArguments { kubeconfig: kubeconfig.clone(), context, ..Default::default() })
    };
    let access = choose("second").unwrap();
    assert_eq!(access.authorization.as_deref(), Some("Bearer of-the-second"));
    assert!(access.notes[0].contains("--namespace edge"), "{:?}", access.notes);
    for (context, said) in [
        ("third", "there is no context \"third\""),
        ("lost", "there is no cluster \"nowhere\""),
        ("nobody", "there is no user \"unknown\""),
    ] {
        let error = format!("{:#}", choose(context).unwrap_err());
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_only_a_pc_can_do_is_refused() {
    let folder = Folder::new();
    folder.authority();
    let trusted = format!("server: {SERVER}, certificate-authority: ca.crt");
    for (cluster, user, said) in [
        (
            &*format!("{trusted}, insecure-skip-tls-verify: true"),
            "token: a",
            "give the cluster's certificate-authority",
        ),
        (
            &format!("{trusted}, proxy-url: 'http://10.0.0.1:3128'"),
            "token: a",
            "proxy-url is not supported",
        ),
        (&trusted, "exec: {command: aws}", "exec credentials are not supported"),
        (&trusted, "auth-provider: {name: gcp}", "an auth-provider is not supported"),
        (&trusted, "username: a, password: b", "a username and password are not supported"),
        (&trusted, "token: a, as: b", "impersonation (as) is not supported"),
        (&trusted, "tokenFile: nowhere", "cannot read the tokenFile"),
        (&trusted, "client-certificate: client.crt", "are given together"),
        (&format!("server: {SERVER}"), "token: a", "give --certificate-authority"),
        (&trusted.replace("https://", "http://"), "token: a", "is no https:// server"),
        (&trusted.replace("192.0.2.10", "127.0.0.1"), "token: a", "is the device itself"),
        (
            &format!("{trusted}, tls-server-name: 'a b'"),
            "token: a",
            "neither a DNS name nor an IP address",
        ),
        (&trusted, "token: 'two words'", "characters that no token has"),
    ] {
        let kubeconfig = Some(folder.kubeconfig(cluster, user));
        let refused = access(&AccessArguments { kubeconfig, ..Default::default() });
        let error = format!("{:#}", refused.expect_err(said));
        assert!(error.contains(said), "{cluster} {user}: {error}");
        assert!(!error.contains("two words"), "the token is shown: {error}");
    }
}

#[test]
fn a_file_that_is_no_kubeconfig_is_refused() {
    let folder = Folder::new();
    let refused = |text: &str| {
        let kubeconfig = Some(folder.file("config", text));
        let refused = access(&AccessArguments { kubeconfig, ..Default::default() });
        format!("{:#}", refused.unwrap_err())
    };
    let two = "current-context: a\n---\ncurrent-context: b\n";
    assert!(refused(two).contains("one YAML document"), "{}", refused(two));
    assert!(refused("[1, 2]").contains("is no kubeconfig"));
    assert!(refused("{}").contains("no current-context"));
    let missing = AccessArguments { kubeconfig: Some("no/such/file".into()), ..Default::default() };
    assert!(format!("{:#}", access(&missing).unwrap_err()).contains("cannot read no/such/file"));
}

/// What is said of files in the folder, for a device that is to work `days` from now.
fn refusal_in(folder: &Folder, days: i64, with_client: bool) -> Option<String> {
    let file = |name: &str| Some(folder.path().join(name));
    let given = AccessArguments {
        server: Some(SERVER.to_owned()),
        certificate_authority: file("ca.crt"),
        token_file: Some(folder.file("token", "secret")),
        client_certificate: file("client.crt").filter(|_| with_client),
        client_key: file("client.key").filter(|_| with_client),
        ..Default::default()
    };
    let day = Duration::from_secs(86_400) * days.unsigned_abs() as u32;
    let then = if days < 0 { now() - day } else { now() + day };
    given.access_at(then).err().map(|error| format!("{error:#}"))
}

#[track_caller]
fn says(refusal: Option<String>, said: &str) {
    let refusal = refusal.expect(said);
    assert!(refusal.contains(said), "{refusal}");
}

#[test]
fn authorities_that_are_none_are_refused() {
    let folder = Folder::new();
    folder.authority();
    assert_eq!(refusal_in(&folder, 0, false), None);
    says(refusal_in(&folder, 4000, false), "the authority's certificate in");
    says(refusal_in(&folder, 4000, false), "ago: renew it");
    says(refusal_in(&folder, -200, false), "is this machine's clock right?");
    folder.authority_with(|params| params.is_ca = IsCa::ExplicitNoCa);
    says(refusal_in(&folder, 0, false), "is not that of an authority");
    folder.authority_with(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
    says(refusal_in(&folder, 0, false), "is not that of an authority");
    folder.file("ca.crt", "nothing");
    says(refusal_in(&folder, 0, false), "there is no certificate in");
    folder.file("ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    says(refusal_in(&folder, 0, false), "none of version 3");
    folder.authority();
    let pem = std::fs::read_to_string(folder.path().join("ca.crt")).unwrap();
    folder.file("ca.crt", &pem.repeat(5));
    says(refusal_in(&folder, 0, false), "has 5 certificates, and the device has room for 4");
    folder.file("ca.crt", &pem.repeat(4));
    assert_eq!(refusal_in(&folder, 0, false), None);
}

#[test]
fn client_certificates_that_are_unfit_are_refused() {
    let folder = Folder::new();
    folder.authority();
    folder.client(|_| {});
    assert_eq!(refusal_in(&folder, 0, true), None);
    // It ends before the authority.
    says(refusal_in(&folder, 500, true), "the client certificate in");
    folder.client(|params| params.not_before = date_time_ymd(2026, 7, 3));
    says(refusal_in(&folder, 0, true), "begins in");
    folder.client(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
    says(refusal_in(&folder, 0, true), "clientAuth");
    folder.client(|params: &mut CertificateParams| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)
    });
    assert_eq!(refusal_in(&folder, 0, true), None, "Kubernetes takes it");

    folder.client(|_| {});
    folder.write_key("client.key", &folder::p256());
    says(refusal_in(&folder, 0, true), "do not belong together");
    folder.write_key("client.key", &folder::rsa());
    says(refusal_in(&folder, 0, true), "is not on P-256. The device signs with P-256 only");
    folder.write_key("client.key", &folder::p384());
    says(refusal_in(&folder, 0, true), "is not on P-256");
    folder.file(
        "client.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    says(refusal_in(&folder, 0, true), "is encrypted");
    folder.file("client.key", "nothing");
    says(refusal_in(&folder, 0, true), "there is no private key in");
    for (key, said) in
        [(folder::rsa(), "has an RSA key"), (folder::p384(), "a key that is not on P-256")]
    {
        folder.client_of(key, |_| {});
        says(refusal_in(&folder, 0, true), said);
    }
}

#[test]
fn a_key_of_openssl_is_read() {
    let folder = Folder::new();
    folder.authority();
    let key = folder::p256();
    folder.client_of(KeyPair::from_pem(&key.serialize_pem()).unwrap(), |_| {});
    // "BEGIN EC PRIVATE KEY", with its curve before it, as `openssl ecparam -genkey` writes it.
    folder.file("client.key", &sec1_pem(&key));
    assert_eq!(refusal_in(&folder, 0, true), None);
}

/// The form of RFC 5915, with the curve in front.
fn sec1_pem(key: &KeyPair) -> String {
    const CURVE: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let pkcs8 = key.serialize_der();
    let at = pkcs8.windows(2).position(|bytes| bytes == [4, 32]).unwrap();
    let mut der = vec![0x30, 0x77, 2, 1, 1];
    der.extend(&pkcs8[at..at + 34]);
    der.extend([0xa0, 10].iter().chain(&CURVE));
    der.extend([0xa1, 0x44, 3, 0x42, 0].iter().chain(key.der_bytes()));
    let block = |label: &str, der: &[u8]| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    };
    block("EC PARAMETERS", &CURVE) + &block("EC PRIVATE KEY", &der)
}

#[test]
fn what_ends_soon_is_told() {
    let folder = Folder::new();
    folder.authority();
    folder.client(|params| params.not_after = date_time_ymd(2026, 7, 13));
    let file = |name: &str| Some(Path::new(folder.path()).join(name));
    let unknown = AccessArguments {
        server: Some("https://localhost.example.invalid:6443".to_owned()),
        ..Default::default()
    };
    assert!(access(&unknown).is_err(), "a name that nobody knows");
    let given = AccessArguments {
        server: Some(SERVER.to_owned()),
        certificate_authority: file("ca.crt"),
        client_certificate: file("client.crt"),
        client_key: file("client.key"),
        ..Default::default()
    };
    let notes = access(&given).unwrap().notes;
    assert!(notes[0].starts_with("the client certificate ends in 12 days"), "{notes:?}");
    let plain = AccessArguments {
        server: Some("192.0.2.10:8001".to_owned()),
        token_file: Some(folder.file("token", "secret")),
        ..Default::default()
    };
    let found = access(&plain).unwrap();
    assert!(found.tls.is_none() && found.notes[0].contains("in the clear"), "{:?}", found.notes);
}

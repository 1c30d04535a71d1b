//! Clients that say by a certificate who they are.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::support::{Server, read_response};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Whoever signs clients' certificates.
struct Authority(Issuer<'static, KeyPair>);

/// A certificate, its key, and what vouches for it in between.
struct Shown(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Authority {
    fn new(name: &str) -> (Self, String) {
        let key = KeyPair::generate().expect("a key");
        let parameters = Self::parameters(name);
        let pem = parameters.self_signed(&key).expect("signed").pem();
        (Self(Issuer::new(parameters, key)), pem)
    }

    fn parameters(name: &str) -> CertificateParams {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters
    }

    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let mut client = CertificateParams::default();
        client.distinguished_name = rcgen::DistinguishedName::new();
        client.distinguished_name.push(DnType::CommonName, "alice");
        client.distinguished_name.push(DnType::OrganizationName, "developers");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut client);
        let key = KeyPair::generate().expect("a key");
        let certificate = client.signed_by(&key, &self.0).expect("signed");
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("PEM");
        Shown(vec![certificate.der().clone()], key)
    }

    /// The same by somebody whom this authority has made one.
    fn sign_through(&self, name: &str) -> Shown {
        let key = KeyPair::generate().expect("a key");
        let parameters = Self::parameters(name);
        let between = parameters.signed_by(&key, &self.0).expect("signed").der().clone();
        let Shown(mut chain, key) = Self(Issuer::new(parameters, key)).sign(|_| {});
        chain.push(between);
        Shown(chain, key)
    }
}

/// A server and those who ask it.
struct Site {
    server: Server,
    token: String,
    roots: Arc<RootCertStore>,
}

impl Site {
    fn new(directory: &Path, arguments: &[&str]) -> Self {
        let file = directory.join("kubeconfig");
        let kubeconfig = ["--write-kubeconfig", file.to_str().expect("UTF-8")];
        let server = Server::start(&[&kubeconfig, arguments].concat());
        let config = read(&file);
        let roots = Arc::new(roots(&config));
        let token = config["users"][0]["user"]["token"].as_str().unwrap_or_default().to_owned();
        Self { server, token, roots }
    }

    fn connect(&self, shown: Option<&Shown>) -> Connection {
        self.connect_as(&self.client(shown))
    }

    fn client(&self, shown: Option<&Shown>) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(self.roots.clone());
        Arc::new(match shown {
            Some(Shown(chain, key)) => config
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .expect("certificate and key"),
            None => config.with_no_client_auth(),
        })
    }

    fn connect_as(&self, client: &Arc<ClientConfig>) -> Connection {
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connection = ClientConnection::new(client.clone(), name).expect("a configuration");
        let stream = TcpStream::connect(&self.server.address).expect("connects");
        Connection(BufReader::new(StreamOwned::new(connection, stream)))
    }
}

struct Connection(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Connection {
    fn ask(&mut self, method: &str, path: &str, token: Option<&str>) -> (u16, Value) {
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let body = if method == "POST" { "{}" } else { "" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            token.unwrap_or_default(),
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).expect("sent");
        let (status, body) = read_response(&mut self.0).expect("an answer");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Status and, if the server knows who asks, name and groups.
    fn who_am_i(&mut self, token: Option<&str>) -> (u16, Value) {
        let (status, review) = self.ask("POST", REVIEWS, token);
        let user = &review["status"]["userInfo"];
        (status, json!([user["username"], user["groups"]]))
    }
}

#[test]
fn a_certificate_names_user_and_groups_and_a_bad_one_opens_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("clients.crt");
    let (authority, pem) = Authority::new("clients");
    let (second, second_pem) = Authority::new("more clients");
    let (stranger, _) = Authority::new("clients");
    std::fs::write(&ca, pem + &second_pem).expect("written");
    let audit = directory.path().join("audit.log");
    let site = Site::new(
        directory.path(),
        &[
            "--client-ca-file",
            ca.to_str().expect("UTF-8"),
            "--audit-log-path",
            audit.to_str().expect("UTF-8"),
        ],
    );
    let alice = json!(["alice", ["developers", "system:authenticated"]]);
    let admin = json!(["kubernetes-admin", ["system:masters", "system:authenticated"]]);
    let token = Some(site.token.as_str());

    let good = authority.sign(|_| {});
    assert_eq!(site.connect(Some(&good)).who_am_i(None), (201, alice.clone()));
    // As upstream, a certificate comes before a token, whatever that is worth.
    for token in [token, Some("wrong")] {
        assert_eq!(site.connect(Some(&good)).who_am_i(token), (201, alice.clone()), "{token:?}");
    }
    let through = authority.sign_through("in between");
    assert_eq!(site.connect(Some(&through)).who_am_i(None), (201, alice.clone()));
    let without_usage = second.sign(|client| client.extended_key_usages.clear());
    assert_eq!(site.connect(Some(&without_usage)).who_am_i(None), (201, alice.clone()));
    let groups = authority.sign(|client| {
        let name = &mut client.distinguished_name;
        name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters");
        name.push(DnType::CustomDnType(vec![2, 5, 4, 3]), "bob");
    });
    let bob = json!(["bob", ["developers", "system:masters", "system:authenticated"]]);
    assert_eq!(site.connect(Some(&groups)).who_am_i(None), (201, bob), "the last name counts");

    let nobody = authority.sign(|client| {
        client.distinguished_name = rcgen::DistinguishedName::new();
        client.distinguished_name.push(DnType::OrganizationName, "system:masters");
    });
    let now = SystemTime::now();
    let wrong = [
        ("of a stranger by the same name", stranger.sign(|_| {})),
        ("of somebody whom a stranger vouches for", stranger.sign_through("clients")),
        ("that has expired", authority.sign(|client| client.not_after = (now - DAY).into())),
        ("of tomorrow", authority.sign(|client| client.not_before = (now + DAY).into())),
        (
            "of a server",
            authority.sign(|client| {
                client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            }),
        ),
    ];
    for (what, shown) in &wrong {
        let mut connection = site.connect(Some(shown));
        assert_eq!(connection.who_am_i(None).0, 401, "a certificate {what}");
        let (status, refusal) = connection.ask("GET", "/api/v1/namespaces", None);
        assert_eq!((status, &refusal["reason"]), (401, &json!("Unauthorized")), "{what}");
        // What is open to everybody is not to those who are not who they say.
        assert_eq!(connection.ask("GET", "/healthz", None).0, 401, "a certificate {what}");
        assert_eq!(connection.who_am_i(Some("wrong")).0, 401, "a certificate {what}");
        assert_eq!(connection.who_am_i(token), (201, admin.clone()), "a certificate {what}");
    }
    for shown in [None, Some(&nobody)] {
        let mut connection = site.connect(shown);
        assert_eq!(connection.who_am_i(None).0, 401);
        assert_eq!(connection.ask("GET", "/healthz", None).0, 200);
        assert_eq!(connection.who_am_i(token), (201, admin.clone()));
    }

    let Site { server, .. } = site;
    server.interrupt();
    let text = std::fs::read_to_string(&audit).expect("written");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let users: Vec<Value> = events.map(|event: Value| event["user"].clone()).collect();
    assert_eq!(json!([users[0]["username"], users[0]["groups"]]), alice);
    let id = &users[0]["extra"]["authentication.kubernetes.io/credential-id"][0];
    let id = id.as_str().expect("an id").strip_prefix("X509SHA256=").expect("of a certificate");
    assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let refused =
        users.iter().filter(|user| user.as_object().is_some_and(serde_json::Map::is_empty));
    assert_eq!(refused.count(), 4 * wrong.len() + 2, "who was refused has no name");
}

#[test]
fn a_certificate_that_expires_on_an_open_connection_opens_nothing_any_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("clients.crt");
    let (authority, pem) = Authority::new("clients");
    std::fs::write(&ca, pem).expect("written");
    let site = Site::new(directory.path(), &["--client-ca-file", ca.to_str().expect("UTF-8")]);
    // Certificates know whole seconds; on a busy machine it may take some until it is shown.
    let mut valid = Duration::from_secs(2);
    let mut connection = loop {
        let end = SystemTime::now() + valid;
        let shown = authority.sign(|client| client.not_after = end.into());
        let mut connection = site.connect(Some(&shown));
        if connection.who_am_i(None).0 == 201 {
            break connection;
        }
        assert!(valid < crate::support::PATIENCE, "it never was in time");
        valid *= 2;
    };
    crate::support::eventually("it has expired", || {
        (connection.who_am_i(None).0 == 401).then_some(())
    });
}

#[test]
fn a_ticket_brings_a_client_back_as_who_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let user = ["--kubeconfig-user", "edge-7"];
    let site = Site::new(directory.path(), &user);
    let shown = Shown::from_kubeconfig(&directory.path().join("kubeconfig"));
    let (client, other) = (site.client(Some(&shown)), site.client(None));
    let edge = json!(["edge-7", ["system:authenticated"]]);
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
        let mut connection = site.connect_as(&client);
        assert_eq!(connection.who_am_i(None), (201, edge.clone()));
        assert_eq!(connection.0.get_ref().conn.handshake_kind(), Some(kind));
        // A ticket does not tell of others, and theirs are no better than they were.
        assert_eq!(site.connect_as(&other).who_am_i(None).0, 401);
    }
}

#[test]
fn a_secure_cluster_makes_certificates_for_clients_itself() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = directory.path().join("pki");
    let arguments = |user| {
        let pki = ["--cert-dir", pki.to_str().expect("UTF-8")];
        [&pki[..], &["--kubeconfig-user", user, "--kubeconfig-group", "gateways"]].concat()
    };
    let site = Site::new(directory.path(), &arguments("edge-7"));
    let first = Shown::from_kubeconfig(&directory.path().join("kubeconfig"));
    let edge = json!(["edge-7", ["gateways", "system:authenticated"]]);
    assert_eq!(site.connect(Some(&first)).who_am_i(None), (201, edge.clone()));
    assert_eq!(site.token, "", "a kubeconfig has one way in");
    assert_eq!(site.connect(None).who_am_i(None).0, 401);
    drop(site);

    // The authority is kept, and another user's certificate does not end the first one's.
    let site = Site::new(directory.path(), &arguments("edge-8"));
    let second = Shown::from_kubeconfig(&directory.path().join("kubeconfig"));
    assert_eq!(site.connect(Some(&first)).who_am_i(None), (201, edge));
    let edge = json!(["edge-8", ["gateways", "system:authenticated"]]);
    assert_eq!(site.connect(Some(&second)).who_am_i(None), (201, edge));
    // Servers' and clients' authorities are two: a server's certificate makes nobody a user.
    let server = Shown::from_files(&pki.join("server.crt"), &pki.join("server.key"));
    assert_eq!(site.connect(Some(&server)).who_am_i(None).0, 401);
}

#[test]
fn authorities_that_are_none_are_explained() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("clients.crt");
    let path = file.to_str().expect("UTF-8");
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_picokube");
        let output = std::process::Command::new(program).arg("server").args(arguments).output();
        let output = output.expect("it runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = run(&["--client-ca-file", path]);
    assert!(error.contains("cannot read") && error.contains("clients.crt"), "{error}");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in ["", "no certificate", broken] {
        std::fs::write(&file, text).expect("written");
        let error = run(&["--client-ca-file", path]);
        assert!(error.contains("clients.crt has no authorities of clients"), "{error}");
    }
    let error = run(&["--kubeconfig-user", "alice"]);
    assert!(error.contains("--write-kubeconfig"), "{error}");
    let signed_elsewhere = ["--write-kubeconfig", "k", "--kubeconfig-user", "alice"];
    let error = run(&[&["--client-ca-file", path], &signed_elsewhere[..]].concat());
    assert!(error.contains("--kubeconfig-user"), "{error}");
}

impl Shown {
    fn from_kubeconfig(file: &Path) -> Self {
        let user = &read(file)["users"][0]["user"];
        let data = |field: &str| decode(&user[field]);
        Self::from_pem(&data("client-certificate-data"), &data("client-key-data"))
    }

    fn from_files(certificate: &Path, key: &Path) -> Self {
        let read = |path| std::fs::read(path).expect("there");
        Self::from_pem(&read(certificate), &read(key))
    }

    fn from_pem(chain: &[u8], key: &[u8]) -> Self {
        let chain = CertificateDer::pem_slice_iter(chain).map(|der| der.expect("PEM")).collect();
        Self(chain, PrivateKeyDer::from_pem_slice(key).expect("PEM"))
    }
}

fn read(kubeconfig: &Path) -> Value {
    let text = std::fs::read_to_string(kubeconfig).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

fn roots(config: &Value) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let pem = decode(&config["clusters"][0]["cluster"]["certificate-authority-data"]);
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    roots
}

fn decode(field: &Value) -> Vec<u8> {
    use base64::Engine;
    let text = field.as_str().expect("base64");
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

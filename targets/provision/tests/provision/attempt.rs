//! Going to a server as the device would.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use picokube_provision::{Access, AccessArguments};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};

use crate::folder::{self, Folder, SERVER};

const NOTHING: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The head of an answer with status 200, and no body.
const OK: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
/// The same with 401.
const UNAUTHORIZED: &[u8] = &[0, 0, 5, 1, 5, 0, 0, 0, 1, 8, 3, b'4', b'0', b'1'];
const FORBIDDEN: &[u8] = &[0, 0, 5, 1, 5, 0, 0, 0, 1, 8, 3, b'4', b'0', b'3'];

/// A cluster's authority, and a server with a certificate of its own. It gives one answer.
struct Server {
    folder: Folder,
    name: &'static str,
    protocol: &'static [u8],
    answer: &'static [u8],
    wants_certificate: bool,
}

impl Server {
    fn with(answer: &'static [u8]) -> Self {
        let name = "kubernetes";
        Self { folder: Folder::lasting(), name, protocol: b"h2", answer, wants_certificate: false }
    }

    /// What a device finds, and all that the server got to read of what it was sent in secret.
    fn meets(self, change: impl FnOnce(&Folder, &mut Access)) -> (Result<String, String>, Vec<u8>) {
        let mut access = self.access();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        access.server = listener.local_addr().unwrap().to_string();
        change(&self.folder, &mut access);
        let serving = self.serve(listener);
        let tried = access.try_out(None).map_err(|error| format!("{error:#}"));
        (tried, serving.join().unwrap())
    }

    fn access(&self) -> Access {
        self.folder.authority();
        self.folder.client(|_| {});
        let file = |name: &str| Some(self.folder.path().join(name));
        let given = AccessArguments {
            server: Some(SERVER.to_owned()),
            certificate_authority: file("ca.crt"),
            tls_server_name: Some("kubernetes".to_owned()),
            token_file: Some(self.folder.file("token", "the-secret")),
            client_certificate: file("client.crt").filter(|_| self.wants_certificate),
            client_key: file("client.key").filter(|_| self.wants_certificate),
            ..Default::default()
        };
        given.access_at(SystemTime::now()).unwrap()
    }

    fn serve(self, listener: TcpListener) -> JoinHandle<Vec<u8>> {
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut tls = ServerConnection::new(Arc::new(self.config())).unwrap();
            let mut stream = Stream::new(&mut tls, &mut socket);
            let mut got = Vec::new();
            // Either side may hang up.
            let _ = answer(&mut stream, self.answer, &mut got);
            got
        })
    }

    fn config(&self) -> ServerConfig {
        let key = folder::p256();
        let mut params = CertificateParams::new([self.name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = self.folder.issue(&params, &key).der().clone();
        let authority = CertificateDer::from(self.folder.authority());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if self.wants_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(authority).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(vec![certificate], der(&key)).unwrap();
        config.alpn_protocols = vec![self.protocol.to_vec()];
        config
    }
}

fn der(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}

/// Waits for a request, answers it, and listens on until the end.
fn answer(
    stream: &mut (impl Read + Write),
    answer: &[u8],
    got: &mut Vec<u8>,
) -> std::io::Result<()> {
    stream.write_all(NOTHING)?;
    let mut is_answered = false;
    loop {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        got.extend(&bytes[..count]);
        if !is_answered && has_request(got) {
            stream.write_all(answer)?;
            is_answered = true;
        }
    }
}

/// Whether there is a frame of headers behind the preface.
fn has_request(got: &[u8]) -> bool {
    let mut frames = got.get(24..).unwrap_or_default();
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if rest.len() < length {
            return false;
        }
        if *kind == 1 {
            return true;
        }
        frames = &rest[length..];
    }
    false
}

/// Whether the token is in it.
fn has_token(got: &[u8]) -> bool {
    got.windows(10).any(|bytes| bytes == b"the-secret")
}

#[test]
fn a_server_that_lets_the_device_in() {
    let (tried, got) = Server::with(OK).meets(|_, _| {});
    let said = tried.unwrap();
    assert!(said.contains("has proved to be kubernetes"), "{said}");
    assert!(said.ends_with("it lets this device list Deployments"), "{said}");
    assert!(has_token(&got));
}

#[test]
fn by_client_certificate() {
    let server = Server { wants_certificate: true, ..Server::with(OK) };
    server.meets(|_, _| {}).0.unwrap();
    let server = Server { wants_certificate: true, ..Server::with(OK) };
    let (tried, got) = server.meets(|_, access| access.tls.as_mut().unwrap().identity = None);
    let error = tried.unwrap_err();
    assert!(error.contains("it wants a client certificate: configure one"), "{error}");
    assert_eq!(got, b"");
}

#[test]
fn a_server_that_refuses_says_why() {
    for (answer, said) in [(UNAUTHORIZED, "of this cluster?"), (FORBIDDEN, "deploy/rbac.yaml")] {
        let error = Server::with(answer).meets(|_, _| {}).0.unwrap_err();
        assert!(error.contains("has proved to be") && error.contains(said), "{error}");
    }
}

#[test]
fn nothing_is_told_to_a_server_that_is_another() {
    let another = |_: &Folder, access: &mut Access| {
        access.tls.as_mut().unwrap().authorities = vec![Folder::lasting().authority()];
    };
    let (tried, got) = Server::with(OK).meets(another);
    let error = tried.unwrap_err();
    assert!(error.contains("has not proved to be kubernetes"), "{error}");
    assert!(error.contains("has the authority been made anew?"), "{error}");
    assert_eq!(got, b"");

    let (tried, got) = Server { name: "example.org", ..Server::with(OK) }.meets(|_, _| {});
    assert!(tried.unwrap_err().contains("is for example.org, not for kubernetes"));
    assert_eq!(got, b"");

    let (tried, got) = Server { protocol: b"http/1.1", ..Server::with(OK) }.meets(|_, _| {});
    assert!(tried.unwrap_err().contains("does not speak the protocol"));
    assert_eq!(got, b"");
}

#[test]
fn where_nobody_listens_or_nothing_is_proved() {
    let server = Server::with(OK);
    let mut access = server.access();
    // Bound, and gone.
    access.server = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = format!("{:#}", access.try_out(None).unwrap_err());
    assert!(error.contains("cannot reach 127.0.0.1"), "{error}");
    access.tls = None;
    let error = format!("{:#}", access.try_out(None).unwrap_err());
    assert!(error.contains("a check is for https:// servers"), "{error}");
}

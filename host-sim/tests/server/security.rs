//! TLS and tokens wherever others could listen in.

use std::io::BufReader;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use crate::support::{Server, read_response};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::Write;

#[test]
fn a_secure_server_wants_tls_and_its_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kubeconfig");
    let path = file.to_str().expect("UTF-8");
    let server = Server::start(&["--secure", "--write-kubeconfig", path]);
    let config: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let token = config["users"][0]["user"]["token"].as_str().expect("a token").to_owned();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others could read the token");
    }
    let tls = client_config(authority.as_str().expect("a certificate"));
    let ask_for = |request: &str, authorization: &str| {
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connection = ClientConnection::new(tls.clone(), name).expect("a configuration");
        let stream = TcpStream::connect(&server.address).expect("connects");
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        let request = format!("{request} HTTP/1.1\r\nhost: x\r\n{authorization}\r\n");
        stream.get_mut().write_all(request.as_bytes()).expect("sent");
        let (status, body) = read_response(&mut stream).expect("an answer");
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    let ask = |authorization: &str| ask_for("GET /api/v1/namespaces", authorization).0;
    assert_eq!(ask(&format!("authorization: Bearer {token}\r\n")), 200);
    assert_eq!(ask("authorization: Bearer wrong\r\n"), 401);
    assert_eq!(ask(""), 401, "there is no anonymous access");

    // A kubelet that probes the server has no token. The same paths as upstream are for everybody.
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(ask_for(&format!("GET {path}"), ""), (200, "ok".to_owned()), "{path}");
    }
    let (status, version) = ask_for("GET /version", "");
    assert!(status == 200 && version.contains("gitVersion"), "{version}");
    assert_eq!(ask_for("GET /readyz?verbose", "").0, 200);
    assert_eq!(ask_for("GET /healthz", "authorization: Bearer wrong\r\n").0, 401);
    for request in [
        "POST /healthz",
        "GET /healthz/ping",
        "GET /healthz/../metrics",
        "GET //healthz",
        "GET /metrics",
        "GET /",
        "GET /api",
        "GET /apis",
        "GET /openapi/v2",
        "GET /api/v1/namespaces/default/pods/healthz",
    ] {
        assert_eq!(ask_for(request, "").0, 401, "{request}");
    }

    let plain = crate::support::Client::new(&server.address).request("GET", "/healthz", "", b"");
    assert!(plain.is_err() || plain.is_ok_and(|(status, _)| status != 200));
}

#[test]
fn a_server_for_others_must_be_able_to_tell_its_token_to_somebody() {
    let output = Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["server", "--listen", "0.0.0.0:0"])
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("--write-kubeconfig"), "{message}");
}

#[test]
fn certificates_and_token_are_made_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = directory.path().join("pki");
    let path = pki.to_str().expect("UTF-8");
    let read = |name: &str| std::fs::read_to_string(pki.join(name)).expect("made");
    let files =
        ["ca.crt", "ca.key", "server.crt", "server.key", "client-ca.crt", "client-ca.key", "token"];
    drop(Server::start(&["--secure", "--cert-dir", path]));
    let first = files.map(read);
    drop(Server::start(&["--secure", "--cert-dir", path]));
    assert_eq!(files.map(read), first);
    #[cfg(unix)]
    for file in files {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(pki.join(file)).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others could read {file}");
    }
}

/// A client that trusts what the kubeconfig says, and asks for the names of a server.
fn ask_as(config: &Value, address: &str, name: &str) -> Result<u16, String> {
    let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let token = config["users"][0]["user"]["token"].as_str().expect("a token");
    let tls = client_config(authority.as_str().expect("a certificate"));
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let connection = ClientConnection::new(tls, name).expect("a configuration");
    let stream = TcpStream::connect(address).expect("connects");
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let request = format!(
        "GET /api/v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.get_mut().write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let answer = read_response(&mut stream).map_err(|error| error.to_string())?;
    Ok(answer.0)
}

#[test]
fn a_server_for_others_has_the_names_they_use() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kubeconfig");
    let (kubeconfig, pki) = (file.to_str().expect("UTF-8"), directory.path().join("pki"));
    let pki = pki.to_str().expect("UTF-8");
    let read = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON")
    };
    let options = ["--cert-dir", pki, "--write-kubeconfig", kubeconfig];

    // At an address of its own: that is where the kubeconfig leads.
    let server = Server::start_at("127.0.0.2:0", &[&["--secure"], &options[..]].concat());
    let first = read();
    assert_eq!(first["clusters"][0]["cluster"]["server"], format!("https://{}", server.address));
    assert_eq!(ask_as(&first, &server.address, "127.0.0.2"), Ok(200));
    let refusal = ask_as(&first, &server.address, "picokube.test").expect_err("a strange name");
    assert!(refusal.contains("not valid for name"), "{refusal}");
    drop(server);

    // At every address, with names: the certificate is renewed by the authority that is trusted.
    let names = ["--tls-san", "picokube.test", "--tls-san", "127.0.0.3"];
    let server = Server::start_at("0.0.0.0:0", &[&names, &options[..]].concat());
    let port = server.address.rsplit(':').next().expect("a port");
    let second = read();
    let leads_to = &second["clusters"][0]["cluster"]["server"];
    assert_eq!(*leads_to, format!("https://picokube.test:{port}"));
    for (address, name) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "picokube.test"),
        ("127.0.0.3", "127.0.0.3"),
        ("127.0.0.1", "localhost"),
    ] {
        let address = format!("{address}:{port}");
        assert_eq!(ask_as(&first, &address, name), Ok(200), "{name} with the first kubeconfig");
    }
    drop(server);

    // Without names: the kubeconfig leads to where others find this machine.
    let server = Server::start_at("0.0.0.0:0", &options);
    let third = read();
    let leads_to = third["clusters"][0]["cluster"]["server"].as_str().expect("a URL");
    let host = leads_to.trim_start_matches("https://").rsplit_once(':').expect("a port").0;
    assert_eq!(ask_as(&third, &server.address, host), Ok(200), "{leads_to}");
}

#[test]
fn a_server_on_loopback_can_be_known_to_an_emulated_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kubeconfig");
    let kubeconfig = ["--write-kubeconfig", file.to_str().expect("UTF-8")];
    let read = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON")
    };
    let start = |names: &[&str]| Server::start(&[&kubeconfig, names].concat());
    // QEMU's guests find their host's loopback at 10.0.2.2.
    let server = start(&["--tls-san", "10.0.2.2"]);
    let port = server.address.rsplit(':').next().expect("a port");
    let (config, address) = (read(), &server.address);
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("https://10.0.2.2:{port}"));
    for name in ["10.0.2.2", "127.0.0.1", "::1", "localhost", "kubernetes.default.svc"] {
        assert_eq!(ask_as(&config, address, name), Ok(200), "{name}");
    }
    // For both at once: the first name is for the kubeconfig.
    let server = start(&["--tls-san", "127.0.0.1", "--tls-san", "10.0.2.2"]);
    let (config, address) = (read(), &server.address);
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("https://{address}"));
    assert_eq!(ask_as(&config, address, "10.0.2.2"), Ok(200));
}

#[test]
fn names_that_are_none_are_explained() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_picokube")).args(arguments).output();
        let output = output.expect("it runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = run(&["server", "--tls-san", "http://x", "--write-kubeconfig", "/dev/null"]);
    assert!(error.contains("--tls-san http://x"), "{error}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    drop(Server::start(&["--secure", "--cert-dir", &file("")]));
    let error = run(&[
        "server",
        "--tls-cert-file",
        &file("server.crt"),
        "--tls-private-key-file",
        &file("server.key"),
        "--tls-san",
        "other.test",
        "--write-kubeconfig",
        &file("kubeconfig"),
    ]);
    assert!(error.contains("server.crt is not valid for --tls-san other.test"), "{error}");
}

fn client_config(authority_base64: &str) -> Arc<ClientConfig> {
    use base64::Engine;
    let pem = base64::engine::general_purpose::STANDARD.decode(authority_base64).expect("base64");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

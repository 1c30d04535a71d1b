//! Web pages that try to reach the open port: by DNS rebinding, or from another origin.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;

use crate::support::{CONFIG_MAPS, Server, read_response};

#[test]
fn only_accepted_hosts_are_served() {
    let server = Server::start(&["--accept-hosts", r"localhost,.*\.example\.com"]);
    let served = |head: &str| {
        let (status, body) =
            ask(&server, &format!("GET /api/v1/namespaces HTTP/1.1\r\n{head}\r\n"));
        assert!(matches!(status, 200 | 403), "{head}: {status} {body}");
        status == 200
    };
    for host in [
        "localhost",
        "localhost:8001",
        "LocalHost:1",
        "kube.example.com:8001",
        // Addresses are not looked up in a DNS that somebody else controls. The emulated board
        // knows this machine as 10.0.2.2.
        "127.0.0.1",
        "127.0.0.1:8001",
        "10.0.2.2:8001",
        "[::1]",
        "[::1]:8001",
        "[fe80::1]:8001",
    ] {
        assert!(served(&format!("host: {host}\r\n")), "{host} was refused");
    }
    for host in [
        "evil.org",
        "evil.org:8001",
        "localhost.evil.org",
        "evil-localhost",
        "kube.example.com.evil.org",
        "127.0.0.1.evil.org",
        "127.0.0.1@evil.org",
        "evil.org@localhost",
        "[::1].evil.org",
        "::1",
        "localhost:port",
        "local host",
    ] {
        assert!(!served(&format!("host: {host}\r\n")), "{host} was served");
    }
    // No browser leaves the header out.
    assert!(served(""));
    assert!(!served("host: localhost\r\nhost: evil.org\r\n"), "every one counts");
    assert!(!served("host: evil.org\r\nhost: localhost\r\n"), "every one counts");
    let (status, _) =
        ask(&server, "GET http://evil.org/version HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(status, 403, "a target with a host counts too");
    let (status, _) = ask(&server, "GET /version HTTP/1.0\r\n\r\n");
    assert_eq!(status, 200, "HTTP/1.0 knows no hosts");

    let (status, refusal) = ask(&server, "GET /healthz HTTP/1.1\r\nhost: evil.org:80\r\n\r\n");
    assert_eq!(status, 403);
    assert_eq!((&refusal["kind"], &refusal["reason"]), (&"Status".into(), &"Forbidden".into()));
    let message = refusal["message"].as_str().expect("a message");
    assert!(message.contains("\"evil.org\"") && message.contains("--accept-hosts"), "{message}");
}

#[test]
fn writes_from_other_origins_are_refused() {
    let server = Server::start(&[]);
    let body = r#"{"metadata":{"generateName":"c-"}}"#;
    let post = |headers: &str| {
        let length = body.len();
        let head = format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{headers}content-length: {length}\r\n");
        // What a page may send to another origin without asking first.
        ask(&server, &format!("{head}content-type: text/plain\r\n\r\n{body}"))
    };
    for (host, origin) in [
        ("127.0.0.1:8001", "http://evil.org"),
        ("127.0.0.1:8001", "http://evil.org:8001"),
        // A page can be loaded from an address, too.
        ("127.0.0.1:8001", "http://192.0.2.7"),
        ("127.0.0.1:8001", "http://192.0.2.7:8001"),
        ("127.0.0.1:8001", "null"),
        ("127.0.0.1:8001", "http://localhost.evil.org"),
        ("10.0.2.2:8001", "http://10.0.2.3:8001"),
        ("10.0.2.2:8001", "http://10.0.2.2:9000"),
    ] {
        let (status, refusal) = post(&format!("host: {host}\r\norigin: {origin}\r\n"));
        assert_eq!(status, 403, "{origin}: {refusal}");
        let message = refusal["message"].as_str().expect("a message");
        assert!(message.contains(origin) && message.contains("--accept-hosts"), "{message}");
    }
    for (host, origin) in [
        ("127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("127.0.0.1:8001", "http://localhost:3000"),
        ("[::1]:8001", "http://[::1]:8001"),
        // A page of this very server, as far as the browser can tell.
        ("10.0.2.2:8001", "http://10.0.2.2:8001"),
    ] {
        let (status, answer) = post(&format!("host: {host}\r\norigin: {origin}\r\n"));
        assert_ne!(status, 403, "{origin}: {answer}");
    }
    let both = "host: localhost\r\norigin: http://localhost\r\norigin: http://evil.org\r\n";
    assert_eq!(post(both).0, 403, "every one counts");
    // The browser keeps the answer to a read from a page of another origin by itself.
    let get = "GET /version HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.org\r\n\r\n";
    assert_eq!(ask(&server, get).0, 200);
}

#[tokio::test]
async fn http2_has_its_hosts_in_another_place() {
    let server = Server::start(&[]);
    let stream = tokio::net::TcpStream::connect(&server.address).await.expect("connects");
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut client, connection) = handshake.await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    for (authority, expected) in
        [("127.0.0.1:8001", 200), ("localhost", 200), ("evil.org:8001", 403), ("evil.org", 403)]
    {
        let request = hyper::Request::get(format!("http://{authority}/version"));
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let answer = client.send_request(request).await.expect("an answer");
        assert_eq!(answer.status(), expected, "{authority}");
        answer.into_body().collect().await.expect("a body");
    }
    connection.abort();
}

#[test]
fn patterns_that_are_none_are_explained() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["server", "--listen", "127.0.0.1:0", "--accept-hosts", "^localhost$,("])
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("--accept-hosts") && message.contains("unclosed group"), "{message}");
}

/// Sends a request as it is; an answer that is no JSON is null.
fn ask(server: &Server, request: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(&server.address).expect("connects");
    stream.write_all(request.as_bytes()).expect("sent");
    let (status, body) = read_response(&mut BufReader::new(stream)).expect("an answer");
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

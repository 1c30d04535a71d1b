//! What one client may take, and that others do not notice.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{CONFIG_MAPS, PATIENCE, Server, Watch, config_map, eventually, read_response};

#[test]
fn bodies_headers_and_watches_are_bounded() {
    let server = Server::start(&["--max-watches", "2"]);
    for size in [(3 << 20) + 1, 12 << 20] {
        let large = vec![b' '; size];
        let (status, error) = server
            .client()
            .request("POST", CONFIG_MAPS, "application/json", &large)
            .expect("an answer after all was sent");
        assert_eq!((status, error["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
    }

    let mut stream = TcpStream::connect(&server.address).expect("connects");
    let header = format!("GET /healthz HTTP/1.1\r\nx-large: {}\r\n\r\n", "x".repeat(256 << 10));
    // The server may close before it has read everything.
    let _ = stream.write_all(header.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");

    let path = format!("{CONFIG_MAPS}?watch=1");
    let (_one, _two) = (Watch::open(&server.address, &path), Watch::open(&server.address, &path));
    let (status, error) = server.client().get(&path);
    assert_eq!((status, error["reason"].as_str()), (429, Some("TooManyRequests")));
    drop(_two);
    eventually("the place is free again", || {
        let mut stream = TcpStream::connect(&server.address).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").ok()?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok()?;
        (&status == b"HTTP/1.1 200").then_some(())
    });
}

#[test]
fn broken_requests_do_no_harm() {
    let server = Server::start(&[]);
    for garbage in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/v1/namespaces/default/pods HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{",
        b"POST /api/v1/namespaces/default/pods HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\
          \r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish that is no frame",
    ] {
        let mut stream = TcpStream::connect(&server.address).expect("connects");
        stream.write_all(garbage).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("closed");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("HTTP/1.1 2"), "{garbage:?} was taken: {answer}");
    }
    assert_eq!(server.client().get("/api/v1/namespaces").0, 200);
}

#[test]
fn a_client_that_does_not_read_its_watch_holds_nothing_up() {
    // Nobody is cut off for being slow, however slow this machine is.
    let server = Server::start(&["--watch-history", "100", "--request-timeout", "1h"]);
    let mut client = server.client();
    let value = "x".repeat(100_000);
    assert_eq!(client.post(CONFIG_MAPS, &config_map("c", "")).0, 201);
    let lazy: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).expect("connects");
            write!(stream, "GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .expect("sent");
            stream
        })
        .collect();
    let mut diligent = Watch::open(&server.address, &format!("{CONFIG_MAPS}?watch=1"));
    let before = memory(server.id());
    for round in 0..300 {
        let (status, object) =
            client.put(&format!("{CONFIG_MAPS}/c"), &config_map("c", &format!("{round}{value}")));
        assert_eq!(status, 200);
        let written = &object["metadata"]["resourceVersion"];
        let told = |event: Value| event["object"]["metadata"]["resourceVersion"] == *written;
        while !told(diligent.next().expect("who reads is served on")) {}
    }
    // 300 versions of 100 KB to 50 watches would be 1.5 GB; a hundred versions and what the
    // sockets hold is all that may be there.
    let grown = memory(server.id()).saturating_sub(before);
    assert!(grown < 150 << 20, "the server grew by {grown} bytes");
    // Whoever comes back too late is told so, in its stream.
    let mut late = std::io::BufReader::new(lazy.into_iter().next().expect("one"));
    late.get_mut().set_read_timeout(Some(PATIENCE)).expect("settable");
    let (status, body) = read_response(&mut late).expect("the watch ends");
    assert_eq!(status, 200);
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(body.contains(r#""code":410"#), "…{}", &body[body.len().saturating_sub(300)..]);
}

fn memory(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    let kib: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib * 1024
}

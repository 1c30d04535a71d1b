//! Too many requests at once: who comes too many is told so, and slow clients keep nobody out.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{CONFIG_MAPS, PATIENCE, Server, config_map, eventually, read_response};

/// A connection over which a request was sent, or its beginning.
fn begin(server: &Server, text: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&server.address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("settable");
    stream.write_all(text.as_bytes()).expect("sent");
    BufReader::new(stream)
}

/// A write whose body has begun and does not go on.
fn begin_write(server: &Server) -> BufReader<TcpStream> {
    let head =
        format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{{");
    begin(server, &head)
}

/// The head and the Status of an answer.
fn raw(server: &Server, request: &str) -> (String, Value) {
    let mut stream = begin(server, request);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), serde_json::from_str(body).unwrap_or_default())
}

fn metric(server: &Server, name: &str) -> u64 {
    let (_, body) =
        read_response(&mut begin(server, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .expect("an answer");
    let text = String::from_utf8(body).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
}

#[test]
fn reads_have_places_and_watches_and_probes_need_none() {
    let server = Server::start(&["--max-requests-inflight", "1"]);
    let namespaces = "/api/v1/namespaces";
    let watch = format!("GET {namespaces}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let _watches = [begin(&server, &watch), begin(&server, &watch)];
    let (head, status) = eventually("a read finds the place taken", || {
        // It waits up to three seconds for a version that does not come about.
        let future =
            format!("GET {namespaces}?resourceVersion=999999 HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let _waiting = begin(&server, &future);
        let (head, status) = raw(
            &server,
            &format!("GET {namespaces} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
        );
        if head.starts_with("http/1.1 200") {
            return None;
        }
        let probe =
            raw(&server, "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert!(probe.0.starts_with("http/1.1 200"), "{}", probe.0);
        let mut client = server.client();
        let write = client.post(CONFIG_MAPS, &config_map("write", "has a place of its own"));
        assert!(matches!(write.0, 201 | 409), "{write:?}");
        Some((head, status))
    });
    assert!(head.starts_with("http/1.1 429"), "{head}");
    assert!(head.contains("\r\nretry-after: 1"), "{head}");
    assert_eq!(status["reason"], "TooManyRequests");
    assert_eq!(status["message"], "Too many requests, please try again later.");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    eventually("the place is free again", || {
        (server.client().get(namespaces).0 == 200).then_some(())
    });
}

#[test]
fn bodies_that_drip_keep_nobody_out() {
    let server = Server::start(&["--max-mutating-requests-inflight", "1"]);
    let mut slow = begin_write(&server);
    eventually("its place is taken", || (mutating(&server) == 1).then_some(()));
    let mut tries = 0;
    eventually("a whole request gets through", || {
        tries += 1;
        let (status, object) = server.client().post(CONFIG_MAPS, &config_map("quick", "1"));
        assert!(matches!(status, 201 | 429), "{object}");
        (status == 201).then_some(())
    });
    // The slow one was told to come again, and so was everybody before.
    let (status, body) = read_response(&mut slow).expect("an answer");
    assert_eq!(status, 429, "{}", String::from_utf8_lossy(&body));
    assert_eq!(metric(&server, "picokube_dropped_requests_total"), tries);
    // If nobody needs its place, it may take its time.
    let mut slow = begin_write(&server);
    eventually("its place is taken", || (mutating(&server) == 1).then_some(()));
    let rest = format!("{:<99}", r#""metadata":{"name":"slow"}}"#);
    slow.get_mut().write_all(rest.as_bytes()).expect("sent");
    assert_eq!(read_response(&mut slow).expect("an answer").0, 201);
    assert_eq!(mutating(&server), 0);
}

fn mutating(server: &Server) -> u64 {
    metric(server, r#"apiserver_current_inflight_requests{request_kind="mutating"}"#)
}

#[test]
fn a_request_has_its_time() {
    let server = Server::start(&["--request-timeout", "1s"]);
    let mut body = begin_write(&server);
    let mut unfinished = begin(&server, "GET /healthz HTTP/1.1\r\nhost:");
    let mut silent = begin(&server, "");
    let (status, text) = read_response(&mut body).expect("an answer");
    assert_eq!(status, 504, "{}", String::from_utf8_lossy(&text));
    for stream in [&mut unfinished, &mut silent] {
        // Hung up, in order or not, and never a time-out of this test.
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(
            ended.as_ref().map_or_else(|e| e.kind() != std::io::ErrorKind::WouldBlock, |_| true)
        );
    }
}

#[test]
fn idle_connections_make_room_for_others() {
    let server = Server::start(&["--max-connections", "4"]);
    let probe = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut idle: Vec<_> = (0..4).map(|_| begin(&server, probe)).collect();
    for stream in &mut idle {
        assert_eq!(read_response(stream).expect("an answer").0, 200);
    }
    let watch = format!("GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    idle.push(begin(&server, &watch));
    for _ in 0..20 {
        assert_eq!(server.client().get("/api/v1/namespaces").0, 200);
    }
    idle[0].read_to_end(&mut Vec::new()).expect("the oldest was closed");
    eventually("they are counted no more", || {
        (metric(&server, "apiserver_open_connections") <= 4).then_some(())
    });
    // Who is at work stays.
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("news", "1")).0, 201);
    let mut seen = String::new();
    let mut byte = [0];
    while !seen.contains("\"news\"") {
        idle[4].read_exact(&mut byte).expect("the watch goes on");
        seen.push(byte[0] as char);
    }
}

#[test]
fn limits_that_cannot_be_are_explained() {
    for (flag, value, word) in [
        ("--max-body-bytes-inflight", "1Mi", "4Mi"),
        ("--max-body-bytes-inflight", "lots", "128Mi"),
        ("--request-timeout", "soon", "90s"),
        ("--max-requests-inflight", "-1", "--max-requests-inflight"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_picokube"))
            .args(["server", &format!("{flag}={value}")])
            .output()
            .expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && error.contains(flag) && error.contains(word),
            "{error}"
        );
    }
}

//! The audit log and the access log, as a reader finds them.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Server, Watch, config_map, eventually, read_response};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn events(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("written");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The event of a request, by its id.
fn about<'a>(events: &'a [Value], id: &str, stage: &str) -> &'a Value {
    let found = events.iter().find(|event| event["auditID"] == id && event["stage"] == stage);
    found.unwrap_or_else(|| panic!("nothing about {id}"))
}

/// Sends a request with an id of its own.
fn send(server: &Server, id: &str, method: &str, path: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(&server.address).expect("connects");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\naudit-id: {id}\r\nuser-agent: \"quoted\" agent\r\n\
         x-forwarded-for: 192.0.2.9\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    read_response(&mut std::io::BufReader::new(stream)).expect("an answer").0
}

#[test]
fn the_audit_log_says_who_did_what_and_never_what_a_secret_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let (audit, access) = (directory.path().join("audit.log"), directory.path().join("access.log"));
    let server = Server::start(&[
        "--audit-log-path",
        audit.to_str().expect("UTF-8"),
        &format!("--access-log={}", access.display()),
    ]);
    let hidden = "aHVudGVyMg==";
    let secret = json!({"metadata": {"name": "s"}, "data": {"password": hidden}});
    assert_eq!(send(&server, "made", "POST", SECRETS, &secret.to_string()), 201);
    let wrong = json!({"metadata": {"name": "t"}, "type": hidden, "data": {"no key": hidden}});
    assert_eq!(send(&server, "wrong", "POST", SECRETS, &wrong.to_string()), 422);
    assert_eq!(send(&server, "gone", "GET", &format!("{CONFIG_MAPS}/none?x=y"), ""), 404);
    assert_eq!(send(&server, "probe", "GET", "/healthz", ""), 200);
    let scale = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    assert_eq!(send(&server, "scale", "GET", scale, ""), 404);
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("c", "1")).0, 201);
    let watch = Watch::open(&server.address, &format!("{CONFIG_MAPS}?watch=1"));
    eventually("the watch is told of when it begins", || {
        events(&audit).iter().any(|event| event["stage"] == "ResponseStarted").then_some(())
    });
    // A reader takes the file away; nothing is lost.
    let moved = directory.path().join("audit.log.1");
    std::fs::rename(&audit, &moved).expect("moved");
    drop(watch);
    eventually("the end of the watch is in a new file", || {
        let done = |event: &Value| event["verb"] == "watch" && event["stage"] == "ResponseComplete";
        (audit.exists() && events(&audit).iter().any(done)).then_some(())
    });
    assert_eq!(send(&server, "last", "GET", "/version", ""), 200);
    server.interrupt();

    let (before, after) = (events(&moved), events(&audit));
    assert_eq!(about(&after, "last", "ResponseComplete")["requestURI"], "/version");
    let text = std::fs::read_to_string(&moved).expect("there");
    assert!(!text.contains(hidden) && !text.contains("hunter2"), "{text}");
    let made = about(&before, "made", "ResponseComplete");
    let mut constant = made.clone();
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        let text = made[time].as_str().expect("a time");
        assert!(text.len() == 27 && text.ends_with('Z'), "{text}");
        constant.as_object_mut().expect("an object").remove(time);
    }
    assert_eq!(
        constant,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": "made", "stage": "ResponseComplete",
            "requestURI": SECRETS, "verb": "create",
            "user": {
                "username": "kubernetes-admin",
                "groups": ["system:masters", "system:authenticated"],
            },
            "sourceIPs": ["192.0.2.9", "127.0.0.1"],
            "userAgent": "\"quoted\" agent",
            "objectRef": {
                "resource": "secrets", "namespace": "default", "name": "s", "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "annotations": {
                "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "",
            },
        })
    );
    let wrong = &about(&before, "wrong", "ResponseComplete")["responseStatus"];
    assert_eq!((&wrong["code"], &wrong["reason"]), (&json!(422), &json!("Invalid")));
    let gone = about(&before, "gone", "ResponseComplete");
    assert_eq!(gone["requestURI"], format!("{CONFIG_MAPS}/none?x=y"));
    assert_eq!(gone["responseStatus"]["message"], "configmaps \"none\" not found");
    assert_eq!(gone["responseStatus"]["status"], "Failure");
    let probe = about(&before, "probe", "ResponseComplete");
    assert!(probe["objectRef"].is_null() && probe["verb"] == "get", "{probe}");
    let scale = &about(&before, "scale", "ResponseComplete")["objectRef"];
    assert_eq!((&scale["subresource"], &scale["apiGroup"]), (&json!("scale"), &json!("apps")));

    let text = std::fs::read_to_string(&access).expect("there");
    let line = text.lines().find(|line| line.contains("audit-id=\"gone\"")).expect("a line");
    for part in [
        "method=GET",
        "/none?x=y\"",
        " verb=get ",
        " status=404 ",
        " user=\"kubernetes-admin\" ",
        " source=192.0.2.9 ",
        r#" agent="\"quoted\" agent" "#,
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    assert!(!line.contains(" bytes=0 ") && line.contains(" ms="), "{line}");
    assert!(text.contains("audit-id=\"last\""), "the end is missing");
    #[cfg(unix)]
    for file in [&audit, &moved, &access] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn every_answer_has_an_id_and_a_full_disk_stops_nobody() {
    let server = Server::start(&["--audit-log-path", "/dev/full"]);
    let ask = || {
        let mut stream = TcpStream::connect(&server.address).expect("connects");
        write!(stream, "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .expect("sent");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let mut lines = text.lines();
        let id = lines.find_map(|line| line.strip_prefix("audit-id: ")).expect("an id");
        assert_eq!(id.len(), 36, "{id}");
        id.to_owned()
    };
    assert_ne!(ask(), ask());
    eventually("what is lost is counted", || {
        let mut stream = TcpStream::connect(&server.address).expect("connects");
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
        let (_, body) = read_response(&mut std::io::BufReader::new(stream)).expect("an answer");
        let text = String::from_utf8(body).expect("text");
        let lost = text
            .lines()
            .find_map(|line| line.strip_prefix("apiserver_audit_error_total{plugin=\"log\"} "));
        (lost.expect("counted").parse::<u64>().expect("a number") >= 2).then_some(())
    });
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("c", "1")).0, 201);
}

#[test]
fn a_log_that_cannot_be_opened_is_explained() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_picokube"))
        .args(["server", "--audit-log-path", "/dev/null/audit.log"])
        .output()
        .expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("/dev/null/audit.log"), "{error}");
}

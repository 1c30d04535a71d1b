//! Malformed JSON and protobuf at every position.

use anyhow::{Context, Result, ensure};
use picokube_tests::http::Client;
use picokube_tests::picokube::Picokube;
use serde_json::json;

use super::case::check_status;
use super::{CONFIG_MAPS, DEPLOYMENTS, deployment, everything, stage};

#[test]
fn json_that_is_cut_or_corrupted_anywhere_is_refused() -> Result<()> {
    let server = stage()?;
    let before = everything(&server)?;
    let json = deployment("web").to_string().into_bytes();
    let item = format!("{DEPLOYMENTS}/web");
    let routes = [
        ("POST", DEPLOYMENTS, "application/json"),
        ("PUT", item.as_str(), "application/json"),
        ("PATCH", item.as_str(), "application/merge-patch+json"),
        ("PATCH", item.as_str(), "application/strategic-merge-patch+json"),
        ("PATCH", item.as_str(), "application/json-patch+json"),
    ];
    let mut client = Client::connect(server.address())?;
    for at in 0..json.len() {
        let mut zero = json.clone();
        zero[at] = 0;
        let mut no_text = json.clone();
        no_text[at] = 0xff;
        // Nothing at all is a patch that changes nothing to some, and no object to others.
        let cut = if at == 0 { b"{".to_vec() } else { json[..at].to_vec() };
        for body in [cut, zero, no_text] {
            for (method, path, media_type) in routes {
                let headers = [("content-type", media_type)];
                let answer = client.send(method, path, &headers, &body)?;
                let place = || format!("{method} {media_type}, byte {at}");
                ensure!(answer.status == 400, "{}: {} {}", place(), answer.status, answer.text());
                check_status(&answer).with_context(place)?;
            }
        }
    }
    assert_eq!(everything(&server)?, before);
    Ok(())
}

#[test]
fn protobuf_that_is_cut_or_corrupted_anywhere_breaks_nothing() -> Result<()> {
    let server = Picokube::server()?;
    let message = protobuf_config_map();
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let mut client = Client::connect(server.address())?;
    let answer = client.send("POST", &path, &headers, &message)?;
    ensure!(answer.status == 201, "the whole message: {}", answer.text());
    assert_eq!(answer.json()?["data"], json!({"key": "value"}));
    for at in 0..message.len() {
        let mut bodies = vec![message[..at].to_vec()];
        for corruption in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut body = message.clone();
            body[at] = corruption;
            bodies.push(body);
        }
        for body in bodies {
            // A changed letter is a changed name; only what cannot be read is an error.
            let answer = client.send("POST", &path, &headers, &body)?;
            ensure!(
                matches!(answer.status, 201 | 400 | 409 | 422),
                "byte {at} of {body:?}: {} {}",
                answer.status,
                answer.text()
            );
            if answer.status >= 300 {
                check_status(&answer)?;
            }
        }
    }
    Ok(())
}

/// A ConfigMap as kubectl would send it: a magic number, the envelope, the object.
fn protobuf_config_map() -> Vec<u8> {
    let metadata = field(1, b"some-name");
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let object = [field(1, &metadata), field(2, &entry)].concat();
    let type_meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let envelope = [field(1, &type_meta), field(2, &object)].concat();
    [b"k8s\0".to_vec(), envelope].concat()
}

/// A length-delimited field of fewer than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, content.len() as u8];
    bytes.extend_from_slice(content);
    bytes
}

//! Patches that are small and would make much.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Server, config_map};

const JSON: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

#[test]
fn a_small_patch_makes_no_large_document() {
    let server = Server::start(&[]);
    let mut client = server.client();
    assert_eq!(client.post(CONFIG_MAPS, &config_map("c", &"x".repeat(1000))).0, 201);
    let mut patch = |media_type: &str, body: &[u8]| {
        let path = format!("{CONFIG_MAPS}/c?fieldManager=test");
        client.request("PATCH", &path, media_type, body).expect("the server lives")
    };

    // Each copy doubles the document.
    let copies: Vec<Value> = (0..14)
        .map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/x{i}")}))
        .collect();
    let (status, refusal) = patch(JSON, json!(copies).to_string().as_bytes());
    let message = refusal["message"].as_str().expect("a message");
    assert_eq!((status, refusal["reason"].as_str()), (422, Some("Invalid")), "{message}");
    assert!(message.contains("the accumulated size increase of copy is"), "{message}");
    assert!(message.ends_with("exceeding the limit 3145728"), "{message}");

    // Each round of moves puts the document a hundred levels deeper, until whoever goes through it
    // runs out of stack.
    let shell = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
    let bottom = format!("/b{}", "/a".repeat(101));
    let mut moves = vec![json!({"op": "add", "path": "/a", "value": {}})];
    for _ in 0..1500 {
        moves.push(json!({"op": "add", "path": "/b", "value": shell}));
        moves.push(json!({"op": "move", "from": "/a", "path": bottom}));
        moves.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    let (status, refusal) = patch(JSON, json!(moves).to_string().as_bytes());
    let message = refusal["message"].as_str().expect("a message");
    assert_eq!((status, refusal["reason"].as_str()), (422, Some("Invalid")), "{message}");
    assert!(message.contains("nested deeper than 127 levels"), "{message}");

    // Each move shifts the whole list, twice.
    let mut shifts = vec![json!({"op": "add", "path": "/a", "value": vec![0; 4000]})];
    shifts.resize(9999, json!({"op": "move", "from": "/a/0", "path": "/a/0"}));
    let (status, refusal) = patch(JSON, json!(shifts).to_string().as_bytes());
    let message = refusal["message"].as_str().expect("a message");
    assert_eq!((status, refusal["reason"].as_str()), (422, Some("Invalid")), "{message}");
    assert!(message.contains("send it in smaller patches"), "{message}");

    // An alias in YAML stands for all that its anchor has.
    let anchor =
        format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  a: &a {}\n", "x".repeat(100_000));
    let aliases: String = (0..99).map(|i| format!("  a{i}: *a\n")).collect();
    let (status, refusal) = patch(APPLY, format!("{anchor}{aliases}").as_bytes());
    let message = refusal["message"].as_str().unwrap_or_default();
    assert_eq!((status, refusal["reason"].as_str()), (400, Some("BadRequest")), "{message}");
    assert!(message.contains("error decoding YAML"), "{message}");

    assert_eq!(client.get(&format!("{CONFIG_MAPS}/c")).1["data"]["value"], "x".repeat(1000));
}

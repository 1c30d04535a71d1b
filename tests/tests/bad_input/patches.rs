//! Patches that cannot be read, do not apply, or lead to something invalid.

use serde_json::{Value, json};

use super::case::Case;
use super::{DEPLOYMENTS, deployment};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn patch(
    name: &'static str,
    media_type: &str,
    body: impl ToString,
    code: u16,
    reason: &'static str,
) -> Case {
    at("", name, media_type, body, code, reason)
}

/// A patch with something behind the name of the object.
fn at(
    tail: &str,
    name: &'static str,
    media_type: &str,
    body: impl ToString,
    code: u16,
    reason: &'static str,
) -> Case {
    let path = format!("{DEPLOYMENTS}/web{tail}");
    Case::new(name, "PATCH", path, code, reason).body(media_type, body.to_string())
}

fn operation(op: &str, path: &str, value: Value) -> Value {
    json!([{"op": op, "path": path, "value": value}])
}

pub(crate) fn cases() -> Vec<Case> {
    let bad = "BadRequest";
    let other = "UnsupportedMediaType";
    let many: Vec<_> = (0..10_001).map(|_| json!({"op": "test", "path": ""})).collect();
    let apply = "?fieldManager=tester";
    let mut foreign = deployment("web");
    foreign["spec"]["replicas"] = json!(9);
    let mut managed = deployment("web");
    managed["metadata"]["managedFields"] = json!([{"manager": "me", "operation": "Apply"}]);
    let mut unknown = deployment("web");
    unknown["spec"]["replicaz"] = json!(9);
    vec![
        patch("patch as text", "text/plain", "{}", 415, other),
        patch("patch as plain JSON", "application/json", "{}", 415, other),
        patch("patch of an unknown type", "application/magic-patch+json", "{}", 415, other),
        patch("operations as an object", JSON, "{}", 400, bad),
        patch("operations as numbers", JSON, "[1]", 400, bad),
        patch("operation without a path", JSON, json!([{"op": "add", "value": 1}]), 400, bad),
        patch("unknown operation", JSON, operation("explode", "/spec", json!(1)), 400, bad),
        patch("path without a slash", JSON, operation("add", "spec", json!(1)), 400, bad),
        patch("removal of nothing", JSON, json!([{"op": "remove", "path": "/no"}]), 422, "Invalid"),
        patch(
            "replacement of nothing",
            JSON,
            operation("replace", "/spec/no", json!(1)),
            422,
            "Invalid",
        ),
        patch(
            "test that fails",
            JSON,
            operation("test", "/spec/replicas", json!(9)),
            422,
            "Invalid",
        ),
        patch(
            "index beyond the list",
            JSON,
            operation("add", "/spec/template/spec/containers/7", json!({})),
            422,
            "Invalid",
        ),
        patch(
            "index with a sign",
            JSON,
            operation("add", "/spec/template/spec/containers/-1", json!({})),
            422,
            "Invalid",
        ),
        patch(
            "move into itself",
            JSON,
            json!([{"op": "move", "from": "/spec", "path": "/spec/template/spec"}]),
            422,
            "Invalid",
        ),
        patch("ten thousand operations and one", JSON, json!(many), 413, "RequestEntityTooLarge"),
        patch(
            "everything removed",
            JSON,
            json!([{"op": "remove", "path": "/spec"}]),
            422,
            "Invalid",
        ),
        patch(
            "document replaced by text",
            JSON,
            operation("replace", "", json!("x")),
            422,
            "Invalid",
        ),
        patch("merge patch as a list", MERGE, "[]", 400, bad),
        patch("merge patch as text", MERGE, "\"x\"", 400, bad),
        patch("merge patch as null", MERGE, "null", 400, bad),
        patch("merge patch of nothing", MERGE, "", 400, bad),
        patch("merge patch beyond depth", MERGE, "{\"a\":".repeat(100_000), 400, bad),
        patch("new name", MERGE, json!({"metadata": {"name": "x"}}), 422, "Invalid"),
        patch("new namespace", MERGE, json!({"metadata": {"namespace": "x"}}), 400, bad),
        patch("new kind", MERGE, json!({"kind": "Pod"}), 422, "Invalid"),
        patch("uid of a stranger", MERGE, json!({"metadata": {"uid": "x"}}), 409, "Conflict"),
        patch("old version", MERGE, json!({"metadata": {"resourceVersion": "1"}}), 409, "Conflict"),
        patch("patched below zero", MERGE, json!({"spec": {"replicas": -1}}), 422, "Invalid"),
        patch("patched with text", MERGE, json!({"spec": {"replicas": "x"}}), 422, "Invalid"),
        patch("selector patched", MERGE, json!({"spec": {"selector": null}}), 422, "Invalid"),
        at(
            "?fieldValidation=Strict",
            "unknown field patched, strictly",
            MERGE,
            json!({"spec": {"replicaz": 1}}),
            422,
            "Invalid",
        ),
        at("?force=true", "force without apply", MERGE, "{}", 422, "Invalid"),
        patch("strategic patch as a list", STRATEGIC, "[]", 400, bad),
        patch("unknown directive", STRATEGIC, json!({"spec": {"$patch": "explode"}}), 400, bad),
        patch(
            "container without its name",
            STRATEGIC,
            json!({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
            400,
            bad,
        ),
        patch(
            "list of containers as text",
            STRATEGIC,
            json!({"spec": {"template": {"spec": {"containers": "all"}}}}),
            422,
            "Invalid",
        ),
        patch("apply without a manager", APPLY, deployment("web"), 422, "Invalid"),
        at(apply, "apply of broken YAML", APPLY, "a: [", 400, bad),
        at(apply, "apply of nothing", APPLY, "", 400, bad),
        at(apply, "apply of a list", APPLY, "[]", 400, bad),
        at(apply, "apply without a kind", APPLY, json!({"metadata": {"name": "web"}}), 400, bad),
        at(apply, "apply of another name", APPLY, deployment("other"), 422, "Invalid"),
        at(apply, "apply of what others own", APPLY, foreign, 409, "Conflict"),
        at(apply, "apply with managed fields", APPLY, managed, 400, bad),
        at(
            "?fieldManager=tester&fieldValidation=Strict",
            "apply of an unknown field, strictly",
            APPLY,
            unknown,
            400,
            bad,
        ),
        at("-none", "patch of what is not there", MERGE, "{}", 404, "NotFound"),
        at(
            "/scale",
            "scale patched below zero",
            MERGE,
            json!({"spec": {"replicas": -1}}),
            422,
            "Invalid",
        ),
        at(
            "/scale",
            "scale patched with text",
            MERGE,
            json!({"spec": {"replicas": "x"}}),
            422,
            "Invalid",
        ),
        at(
            "/status",
            "status patched below zero",
            MERGE,
            json!({"status": {"replicas": -1}}),
            422,
            "Invalid",
        ),
    ]
}

//! A StatefulSet `db`, as tests make it and look at it by kubectl.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::lab::{name, text};

/// What kubectl calls it.
pub const DB: &str = "statefulset/db";

/// Its template.
pub fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "app", "image": image,
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
    })
}

/// What its claims ask for.
pub fn claim_spec() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}

/// Two pods with a claim each.
pub fn manifest(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "selector": {"matchLabels": {"app": "db"}},
            "template": template(image),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec()}],
        },
    })
}

/// A StatefulSet of so many pods of an image, without claims.
pub fn set_of(image: &str, replicas: usize) -> Value {
    let mut set = manifest(image);
    set["spec"]["replicas"] = json!(replicas);
    set["spec"]["volumeClaimTemplates"] = json!([]);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([]);
    set
}

/// Creates a set and waits for its pods.
pub fn create(kubectl: &Kubectl<'_>, set: &Value) -> Result<()> {
    let said = kubectl.ok_with(&["create", "--filename=-"], &set.to_string())?;
    assert_eq!(said.trim(), "statefulset.apps/db created");
    rolled_out(kubectl).map(|_| ())
}

/// Waits, as people do; gives what was said.
pub fn rolled_out(kubectl: &Kubectl<'_>) -> Result<String> {
    let said = kubectl.ok(&["rollout", "status", DB, "--timeout=10m"])?;
    ensure!(said.contains("roll out complete"), "{said}");
    Ok(said)
}

/// All objects of a kind.
pub fn items(kubectl: &Kubectl<'_>, kind: &str) -> Result<Vec<Value>> {
    let list = kubectl.json(&["get", kind, "--output=json"])?;
    Ok(list["items"].as_array().context("a list without items")?.clone())
}

/// Names and images of the pods that are there, by name.
pub fn images(kubectl: &Kubectl<'_>) -> Result<Vec<String>> {
    let pods = items(kubectl, "pods")?;
    let image = |pod: &Value| text(&pod["spec"]["containers"][0]["image"]).to_owned();
    Ok(pods.iter().map(|pod| format!("{} {}", name(pod), image(pod))).collect())
}

/// Names and identities of all objects of a kind, by name.
pub fn identities(kubectl: &Kubectl<'_>, kind: &str) -> Result<Vec<String>> {
    let all = items(kubectl, kind)?;
    Ok(all.iter().map(|one| format!("{} {}", name(one), text(&one["metadata"]["uid"]))).collect())
}

/// What the set's events with this reason say, in the order in which they came.
pub fn told(kubectl: &Kubectl<'_>, reason: &str) -> Result<Vec<String>> {
    let events = ["get", "events", "--sort-by=.metadata.resourceVersion", "--output=json"];
    let events = kubectl.json(&events)?;
    let events = events["items"].as_array().context("a list without items")?;
    let of_set = events.iter().filter(|event| {
        event["involvedObject"]["kind"] == "StatefulSet" && event["reason"] == reason
    });
    Ok(of_set.map(|event| text(&event["message"]).to_owned()).collect())
}

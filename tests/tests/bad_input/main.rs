//! Requests as no client should send them: each gets the right Status, and the server goes on.

mod bodies;
mod bytes;
mod case;
mod framing;
mod patches;
mod paths;
mod queries;
mod writes;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use case::Case;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

/// What every case finds: a Deployment and a pod that is already on a node, and a lease.
fn stage() -> Result<Picokube> {
    let server = Picokube::server()?;
    server.create(DEPLOYMENTS, &deployment("web"))?;
    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = json!("node-1");
    server.create(PODS, &bound)?;
    server
        .create(LEASES, &json!({"metadata": {"name": "lock"}, "spec": {"holderIdentity": "a"}}))?;
    Ok(server)
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "app",
                    "image": "app:1",
                    "ports": [{"containerPort": 8080}],
                    "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                }]},
            },
        },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    })
}

/// Everything that is stored, with its versions.
fn everything(server: &Picokube) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for collection in ["/apis/apps/v1/deployments", "/api/v1/pods", "/api/v1/configmaps"] {
        all.push(server.get(collection)?.json()?["items"].clone());
    }
    all.push(server.get(LEASES)?.json()?["items"].clone());
    all.push(server.get(STATEFUL_SETS)?.json()?["items"].clone());
    Ok(all)
}

#[test]
fn every_bad_request_gets_its_status_and_changes_nothing() -> Result<()> {
    let server = stage()?;
    let before = everything(&server)?;
    let mut cases = bodies::cases();
    cases.extend(writes::cases());
    cases.extend(patches::cases());
    cases.extend(queries::cases());
    cases.extend(paths::cases());
    cases.extend(framing::cases());
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    ensure!(cases.len() >= 100, "only {} cases", cases.len());

    let wrong: Vec<String> = cases.iter().filter_map(|case| complaint(&server, case)).collect();
    ensure!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(everything(&server)?, before, "a request that was refused has changed something");
    server.create(CONFIG_MAPS, &json!({"metadata": {"name": "alive"}}))?;
    Ok(())
}

/// What is wrong with the answer to a case.
fn complaint(server: &Picokube, case: &Case) -> Option<String> {
    let result = case.send(server).and_then(|answer| case.check(&answer));
    result.err().map(|error| format!("{}: {error:#}", case.name))
}

#[test]
fn a_body_far_over_the_limit_is_still_answered() -> Result<()> {
    let server = Picokube::server()?;
    // The answer comes while the client is still sending; it must not be lost with that.
    for _ in 0..10 {
        let mut client = picokube_tests::http::Client::connect(server.address())?;
        let text = "x".repeat(8 << 20);
        let body = json!({"metadata": {"name": "big"}, "data": {"text": text}}).to_string();
        let answer = client
            .send("POST", CONFIG_MAPS, &[("content-type", "application/json")], body.as_bytes())
            .context("the answer to a body of 8 MiB")?;
        assert_eq!(answer.status, 413);
        assert_eq!(answer.json()?["reason"], "RequestEntityTooLarge");
    }
    Ok(())
}

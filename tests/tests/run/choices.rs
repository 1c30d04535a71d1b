//! What can be chosen: which objects, which controllers, how fast.

use anyhow::{Result, ensure};
use picokube_tests::http::Client;
use picokube_tests::lab::{Lab, number};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use super::{controllers, deployment, wait_until_available};

fn is_untouched(object: &Value) -> bool {
    let status = object["status"].as_object();
    status.is_none_or(|status| status.values().all(|value| value.is_null() || *value == 0))
}

#[test]
fn one_namespace_can_be_chosen() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let (other, chosen) = (Lab::new(&cluster, "other")?, Lab::new(&cluster, "chosen")?);
    other.create("deployments", &deployment("web"))?;
    chosen.create("deployments", &deployment("web"))?;
    let _controllers = controllers(&cluster, &["--namespace", "chosen"])?;
    wait_until_available(&chosen, "web")?;
    ensure!(is_untouched(&other.get("deployments/web")?), "another namespace was touched");
    assert_eq!(other.list("replicasets")?.len(), 0);
    Ok(())
}

#[test]
fn several_namespaces_can_be_chosen() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let labs = ["other", "first", "second"].map(|name| Lab::new(&cluster, name));
    let [other, first, second] = labs;
    let (other, first, second) = (other?, first?, second?);
    for lab in [&other, &first] {
        lab.create("deployments", &deployment("web"))?;
    }
    let options = ["--namespace", "first", "--namespace", "second"];
    let _controllers = controllers(&cluster, &options)?;
    wait_until_available(&first, "web")?;
    // What comes later comes by watch.
    for lab in [&other, &second] {
        lab.create("deployments", &deployment("late"))?;
    }
    wait_until_available(&second, "late")?;
    for name in ["web", "late"] {
        let path = format!("deployments/{name}");
        ensure!(is_untouched(&other.get(&path)?), "another namespace was touched");
    }
    assert_eq!(other.list("replicasets")?.len(), 0);
    Ok(())
}

#[test]
fn labels_can_be_chosen() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let lab = Lab::new(&cluster, "labels")?;
    for name in ["other", "chosen"] {
        lab.create("deployments", &deployment(name))?;
    }
    let _controllers = controllers(&cluster, &["--selector", "app in (chosen)"])?;
    wait_until_available(&lab, "chosen")?;
    ensure!(is_untouched(&lab.get("deployments/other")?), "another Deployment was touched");
    assert_eq!(lab.list("replicasets")?.len(), 1);
    Ok(())
}

#[test]
fn controllers_can_be_chosen() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let lab = Lab::new(&cluster, "controllers")?;
    lab.create("deployments", &deployment("web"))?;
    let deployments_only = controllers(&cluster, &["--controllers", "*,-replicaset"])?;
    lab.wait("there is a ReplicaSet", || Ok(lab.list("replicasets")?.len() == 1))?;
    lab.wait_for("deployments/web", "it was observed", |deployment| {
        number(&deployment["status"]["observedGeneration"]) == 1
    })?;
    assert_eq!(lab.list("pods")?.len(), 0, "nobody makes pods");
    drop(deployments_only);

    let _replica_sets_only = controllers(&cluster, &["--controllers", "replicaset-controller"])?;
    lab.wait("there are pods", || Ok(lab.list("pods")?.len() == 2))?;
    lab.wait("they are counted", || {
        Ok(number(&lab.list("replicasets")?[0]["status"]["readyReplicas"]) == 2)
    })?;
    let seen = lab.get("deployments/web")?;
    assert_eq!(number(&seen["status"]["readyReplicas"]), 0, "nobody looks at Deployments");
    Ok(())
}

#[test]
fn feature_gates_can_be_chosen() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let lab = Lab::new(&cluster, "gates")?;
    lab.create("deployments", &deployment("web"))?;
    let without = controllers(&cluster, &[])?;
    wait_until_available(&lab, "web")?;
    assert!(lab.get("deployments/web")?["status"]["terminatingReplicas"].is_null());
    drop(without);
    let gate = "DeploymentReplicaSetTerminatingReplicas=true";
    let _with = controllers(&cluster, &["--feature-gates", gate])?;
    lab.patch("deployments/web", &json!({"spec": {"replicas": 3}}))?;
    lab.wait_for("deployments/web", "those that go are counted", |deployment| {
        deployment["status"]["terminatingReplicas"] == 0
    })?;
    Ok(())
}

#[test]
fn who_may_ask_little_gets_there_too() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let lab = Lab::new(&cluster, "slow")?;
    lab.create("deployments", &deployment("web"))?;
    let slow = ["--kube-api-qps", "5", "--kube-api-burst", "1", "--capacity", "tiny"];
    let _controllers = controllers(&cluster, &slow)?;
    wait_until_available(&lab, "web")
}

#[test]
fn metrics_and_health_are_served() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let lab = Lab::new(&cluster, "metrics")?;
    let controllers = controllers(&cluster, &["--metrics-bind-address", "127.0.0.1:0"])?;
    let line = controllers.line_with(&["metrics and health on http://"])?;
    let address = line.rsplit('/').next().unwrap_or_default().parse()?;
    let get = |path: &str| Client::connect(address)?.send("GET", path, &[], b"");
    lab.wait("they are ready", || Ok(get("/readyz")?.status == 200))?;
    for path in ["/healthz", "/livez"] {
        assert_eq!((get(path)?.status, get(path)?.text().as_str()), (200, "ok"), "{path}");
    }
    let verbose = get("/readyz?verbose")?.text();
    for line in ["[+]deployment-controller ok", "[+]caches ok", "readyz check passed"] {
        ensure!(verbose.contains(line), "no {line} in\n{verbose}");
    }
    assert_eq!(get("/else")?.status, 404);

    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")?;
    let metrics = get("/metrics")?;
    assert_eq!(metrics.status, 200);
    let page = metrics.text();
    for beginning in [
        "workqueue_depth{name=\"deployment\"} ",
        "workqueue_adds_total{name=\"replicaset\"} ",
        "workqueue_retries_total{name=\"replicaset\"} ",
        "picokube_blind_owners{kind=\"ReplicaSet\"} 0",
        "picokube_cached_objects{kind=\"Pod\"} 2",
        "picokube_conflicts_total 0",
        "picokube_network_sent_bytes_total ",
    ] {
        ensure!(page.lines().any(|line| line.starts_with(beginning)), "no {beginning} in\n{page}");
    }
    Ok(())
}

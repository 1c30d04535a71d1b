//! `kubectl delete` in its three cascade modes, and what else it takes.

use anyhow::{Result, ensure};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use super::{DEPLOYMENTS, PODS, REPLICA_SETS, pod, replica_set};

/// A Deployment with a ReplicaSet with two pods, as the controllers would have made them.
fn family(server: &Picokube, kubectl: &Kubectl<'_>) -> Result<()> {
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let deployment = server.get(&format!("{DEPLOYMENTS}/small"))?.json()?;
    let set = server.create(REPLICA_SETS, &replica_set("small-1", Some(&deployment)))?;
    for name in ["small-1-a", "small-1-b"] {
        server.create(PODS, &pod(name, Some(&set)))?;
    }
    Ok(())
}

fn count(server: &Picokube, collection: &str) -> Result<usize> {
    let list: Value = server.get(collection)?.json()?;
    Ok(list["items"].as_array().map_or(0, Vec::len))
}

#[test]
fn in_the_background_dependents_follow() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    family(&server, &kubectl)?;
    let said = kubectl.ok(&["delete", "deployment/small"])?;
    assert_eq!(said.trim(), "deployment.apps \"small\" deleted");
    assert_eq!(count(&server, DEPLOYMENTS)?, 0);
    server.wait_until("the ReplicaSet and its pods are gone", || {
        Ok(count(&server, REPLICA_SETS)? + count(&server, PODS)? == 0)
    })
}

#[test]
fn in_the_foreground_the_owner_is_the_last() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    family(&server, &kubectl)?;
    // A finalizer holds one pod, and with it everybody above.
    let held = format!("{PODS}/small-1-a");
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    server.send_json("PATCH", &held, &hold)?;
    kubectl.ok(&["delete", "deployment/small", "--cascade=foreground", "--wait=false"])?;
    server.wait_until("only the held pod is left", || Ok(count(&server, PODS)? == 1))?;
    for object in ["deployment/small", "replicaset/small-1"] {
        let finalizers = kubectl.field(object, ".metadata.finalizers[*]")?;
        assert_eq!(finalizers, "foregroundDeletion", "{object}");
        ensure!(!kubectl.field(object, ".metadata.deletionTimestamp")?.is_empty(), "{object}");
    }
    let release = json!({"metadata": {"finalizers": null}});
    server.send_json("PATCH", &held, &release)?;
    server.wait_until("the Deployment has followed", || Ok(count(&server, DEPLOYMENTS)? == 0))?;
    assert_eq!(count(&server, REPLICA_SETS)? + count(&server, PODS)?, 0);

    // And as most people do it: kubectl waits by itself.
    family(&server, &kubectl)?;
    kubectl.ok(&["delete", "deployment/small", "--cascade=foreground"])?;
    assert_eq!(count(&server, REPLICA_SETS)? + count(&server, PODS)?, 0);
    Ok(())
}

#[test]
fn orphans_stay_and_have_no_owner() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    family(&server, &kubectl)?;
    kubectl.ok(&["delete", "deployment/small", "--cascade=orphan"])?;
    ensure!(!kubectl.has("deployment/small")?, "the Deployment is still there");
    assert_eq!(kubectl.field("replicaset/small-1", ".metadata.ownerReferences")?, "");
    assert_eq!(count(&server, PODS)?, 2);
    assert_eq!(kubectl.field("pod/small-1-a", ".metadata.ownerReferences[0].name")?, "small-1");
    kubectl.ok(&["delete", "replicaset/small-1", "--cascade=orphan"])?;
    assert_eq!(kubectl.field("pod/small-1-a", ".metadata.ownerReferences")?, "");
    Ok(())
}

#[test]
fn many_can_be_deleted_at_once() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    for name in ["a", "b", "c", "d"] {
        server.create(PODS, &pod(name, None))?;
    }
    kubectl.ok(&["label", "pods", "a", "b", "group=one"])?;
    kubectl.ok(&["delete", "pods", "--selector=group=one"])?;
    assert_eq!(kubectl.ok(&["get", "pods", "--output=name"])?, "pod/c\npod/d\n");
    kubectl.ok(&["delete", "pods", "--all", "--grace-period=0", "--force"])?;
    assert_eq!(count(&server, PODS)?, 0);
    let complaint = kubectl.refused(&["delete", "pod", "a"], "")?;
    ensure!(complaint.contains("pods \"a\" not found"), "{complaint}");
    kubectl.ok(&["delete", "pod", "a", "--ignore-not-found"])?;
    Ok(())
}

#[test]
fn a_namespace_takes_everything_with_it() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "namespace", "gone"])?;
    kubectl.ok(&["--namespace=gone", "apply", "--filename=shop"])?;
    kubectl.ok(&["delete", "namespace", "gone", "--timeout=10m"])?;
    ensure!(!kubectl.has("namespace/gone")?, "the namespace is still there");
    for collection in ["/api/v1/pods", "/apis/apps/v1/deployments", "/api/v1/configmaps"] {
        let list = server.get(collection)?.json()?;
        let left = list["items"].as_array().into_iter().flatten();
        let left = left.filter(|item| item["metadata"]["namespace"] == "gone").count();
        assert_eq!(left, 0, "{collection}");
    }
    let complaint = kubectl.refused(&["delete", "namespace", "kube-system"], "")?;
    ensure!(complaint.contains("(Forbidden)"), "{complaint}");
    Ok(())
}

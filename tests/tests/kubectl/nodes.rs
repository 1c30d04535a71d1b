//! A cluster with simulated nodes.

use anyhow::{Result, ensure};
use picokube_tests::picokube::Picokube;

use picokube_tests::kubectl::has_row;

#[test]
fn a_pod_runs_and_ends() -> Result<()> {
    let server = Picokube::with_nodes(2)?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=10m"])?;
    let nodes = kubectl.ok(&["get", "nodes", "--no-headers"])?;
    assert_eq!(nodes.lines().filter(|line| line.contains(" Ready ")).count(), 2, "{nodes}");
    kubectl.ok(&["run", "hello", "--image=nginx"])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=10m"])?;
    let table = kubectl.ok(&["get", "pods", "--output=wide"])?;
    ensure!(has_row(&table, &["hello", "1/1", "Running", "0"]), "{table}");
    let text = kubectl.ok(&["describe", "pod", "hello"])?;
    ensure!(has_row(&text, &["Ready", "True"]), "{text}");
    ensure!(!kubectl.field("pod/hello", ".spec.nodeName")?.is_empty(), "it has no node");
    ensure!(!kubectl.field("pod/hello", ".status.podIP")?.is_empty(), "it has no address");
    kubectl.ok(&["logs", "hello"])?;
    kubectl.ok(&["delete", "pod", "hello", "--timeout=10m"])?;
    ensure!(!kubectl.has("pod/hello")?, "it is still there");
    Ok(())
}

#[test]
fn a_node_can_be_drained_and_used_again() -> Result<()> {
    let server = Picokube::with_nodes(1)?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["run", "hello", "--image=nginx"])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=10m"])?;
    let node = kubectl.field("pod/hello", ".spec.nodeName")?;
    let said = kubectl.ok(&["drain", &node, "--force", "--timeout=10m"])?;
    // Older ones look for the group of disruption budgets, and delete where it is not served.
    if kubectl.minor() >= 22 {
        ensure!(said.contains("evicted"), "{said}");
    }
    ensure!(!kubectl.has("pod/hello")?, "it is still there");
    assert_eq!(kubectl.field(&format!("node/{node}"), ".spec.unschedulable")?, "true");
    let table = kubectl.ok(&["get", "nodes"])?;
    ensure!(has_row(&table, &[&node, "Ready,SchedulingDisabled"]), "{table}");

    kubectl.ok(&["run", "later", "--image=nginx"])?;
    server.wait_until("the scheduler has said that there is no place", || {
        let reason = "{.status.conditions[?(@.type==\"PodScheduled\")].reason}";
        Ok(kubectl.ok(&["get", "pod/later", &format!("-ojsonpath={reason}")])? == "Unschedulable")
    })?;
    kubectl.ok(&["uncordon", &node])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/later", "--timeout=10m"])?;
    Ok(())
}

#[test]
fn ctrl_c_ends_the_cluster_in_good_order() -> Result<()> {
    let server = Picokube::with_nodes(1)?;
    let kubectl = server.kubectl()?;
    let watching = kubectl.follow(&["get", "namespaces", "--watch"])?;
    watching.line_with(&["default", "Active"])?;
    ensure!(server.interrupt()?.success(), "it ended with an error");
    Ok(())
}

#[test]
fn a_cluster_on_disk_outlives_its_process() -> Result<()> {
    let mut cluster = Picokube::on_disk(&["up", "--nodes", "1", "--no-controllers"])?;
    cluster.kubectl()?.ok(&["run", "hello", "--image=app:1"])?;
    cluster.kubectl()?.ok(&["wait", "pod/hello", "--for=condition=Ready", "--timeout=10m"])?;
    let uid = cluster.kubectl()?.field("pod/hello", ".metadata.uid")?;
    let address = cluster.address();
    cluster.restart()?;
    assert_eq!(cluster.address(), address);
    assert_eq!(cluster.kubectl()?.field("pod/hello", ".metadata.uid")?, uid);
    Ok(())
}

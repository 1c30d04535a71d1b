//! A cluster with simulated nodes.

use anyhow::{Result, ensure};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::server::Server;

use super::has_row;

#[test]
fn a_pod_runs_and_ends() -> Result<()> {
    let server = Server::with_nodes(2)?;
    let kubectl = Kubectl::new(&server)?;
    kubectl.ok(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=120s"])?;
    let nodes = kubectl.ok(&["get", "nodes", "--no-headers"])?;
    assert_eq!(nodes.lines().filter(|line| line.contains(" Ready ")).count(), 2, "{nodes}");
    kubectl.ok(&["run", "hello", "--image=nginx"])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=120s"])?;
    let table = kubectl.ok(&["get", "pods", "--output=wide"])?;
    ensure!(has_row(&table, &["hello", "1/1", "Running", "0"]), "{table}");
    let text = kubectl.ok(&["describe", "pod", "hello"])?;
    ensure!(has_row(&text, &["Ready", "True"]), "{text}");
    ensure!(!kubectl.field("pod/hello", ".spec.nodeName")?.is_empty(), "it has no node");
    ensure!(!kubectl.field("pod/hello", ".status.podIP")?.is_empty(), "it has no address");
    kubectl.ok(&["logs", "hello"])?;
    kubectl.ok(&["delete", "pod", "hello", "--timeout=120s"])?;
    ensure!(!kubectl.has("pod/hello")?, "it is still there");
    Ok(())
}

#[test]
fn a_node_can_be_drained_and_used_again() -> Result<()> {
    let server = Server::with_nodes(1)?;
    let kubectl = Kubectl::new(&server)?;
    kubectl.ok(&["run", "hello", "--image=nginx"])?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=120s"])?;
    let node = kubectl.field("pod/hello", ".spec.nodeName")?;
    let said = kubectl.ok(&["drain", &node, "--force", "--timeout=120s"])?;
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
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/later", "--timeout=120s"])?;
    Ok(())
}

#[test]
fn ctrl_c_ends_the_cluster_in_good_order() -> Result<()> {
    let server = Server::with_nodes(1)?;
    let kubectl = Kubectl::new(&server)?;
    let watching = kubectl.follow(&["get", "namespaces", "--watch"])?;
    watching.line_with(&["default", "Active"])?;
    ensure!(server.interrupt()?.success(), "it ended with an error");
    Ok(())
}

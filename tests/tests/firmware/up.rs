//! `picokube up --firmware`: a whole cluster in one command, its controllers on the device.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use picokube_tests::cargo::program;
use picokube_tests::firmware;
use picokube_tests::following::Following;
use picokube_tests::http::Client;
use picokube_tests::picokube::binary;
use picokube_tests::port::Port;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn the_controllers_run_on_the_device_and_its_log_is_shown() -> Result<()> {
    build_emulator()?;
    let directory = TempDir::new()?;
    let kubeconfig = directory.path().join("kubeconfig");
    let mut command = up(&kubeconfig)?;
    command.arg("--firmware").arg(firmware::image()?.path());
    let port = Port::free()?;
    let pages = port.address();
    command.args(["--status-lag", "0", "--metrics-bind-address", &pages.to_string()]);
    let cluster = Following::start(command)?;
    cluster.line_with(&["mps2-an386, reference: room for 512 pods"])?;
    cluster.line_with(&["the server has to prove that it is 127.0.0.1"])?;
    cluster.line_with(&["the controllers have started"])?;
    for arguments in [
        &["create", "deployment", "web", "--image=app:1", "--replicas=2"][..],
        &["rollout", "status", "deployment/web", "--timeout=10m"],
    ] {
        kubectl(&kubeconfig, directory.path(), arguments)?;
    }
    let ready = Client::connect(pages)?.send("GET", "/readyz", &[], b"")?;
    ensure!(ready.status == 200, "the device's own pages: {}", ready.text());
    Ok(())
}

#[test]
fn plain_http_has_to_be_asked_for() -> Result<()> {
    build_emulator()?;
    let directory = TempDir::new()?;
    let mut command = up(&directory.path().join("kubeconfig"))?;
    command.arg("--firmware").arg(firmware::image()?.path()).arg("--firmware-plain-http");
    let cluster = Following::start(command)?;
    cluster.line_with(&["listening on http://"])?;
    cluster.line_with(&["the controllers have started"])?;
    Ok(())
}

#[test]
fn of_two_devices_one_leads_and_gives_that_back_at_the_end() -> Result<()> {
    build_emulator()?;
    let directory = TempDir::new()?;
    let (kubeconfig, data) = (directory.path().join("kubeconfig"), directory.path().join("data"));
    let image = firmware::image()?;
    let start = || -> Result<Following> {
        let mut command = up(&kubeconfig)?;
        command.args(["--standby", "--firmware"]).arg(image.path()).arg("--data").arg(&data);
        Following::start(command)
    };
    let cluster = start()?;
    cluster.line_with(&["two emulated Cortex-M4, of which one stands by"])?;
    let leads = cluster.line_with(&["picokube-", "leads as picokube-", "kube-system/picokube"])?;
    let (_, leader) = leads.split_once("leads as ").context("no leader")?;
    let leader = leader.split(',').next().unwrap_or_default();
    // Each device speaks for itself, and the screen for both.
    cluster.line_ever_with(&["picokube-", &format!("stands by; {leader} leads")])?;
    cluster.line_ever_with(&["nodes: 2", &format!("leader: {leader} (picokube)")])?;
    cluster.interrupt()?;
    ensure!(cluster.ends_well()?);
    let lease = lease_on_disk(&data)?;
    ensure!(lease["spec"]["holderIdentity"].is_null(), "it was not given back: {lease}");
    ensure!(lease["spec"]["acquireTime"].is_string(), "nobody has ever led: {lease}");
    let again = start()?;
    again.line_with(&["leads as picokube-"])?;
    Ok(())
}

/// The Lease that a cluster has left on its disk.
fn lease_on_disk(data: &Path) -> Result<Value> {
    let mut command = Command::new(binary()?);
    command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    let server = Following::start(command)?;
    let line = server.line_with(&["listening on http://"])?;
    let address = line.rsplit('/').next().context("no address")?.parse()?;
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/picokube";
    Client::connect(address)?.send("GET", path, &[], b"")?.json()
}

#[test]
fn an_image_that_is_not_there_is_named() -> Result<()> {
    build_emulator()?;
    let directory = TempDir::new()?;
    let mut command = up(&directory.path().join("kubeconfig"))?;
    command.args(["--firmware", "no/such/image.elf"]);
    let said = Following::start(command)?.fails()?;
    let told = "there is no firmware at no/such/image.elf: `cargo xtask firmware build` builds it";
    ensure!(said.contains(told), "{said}");
    Ok(())
}

/// Runs a command that has to work.
fn kubectl(kubeconfig: &Path, home: &Path, arguments: &[&str]) -> Result<()> {
    let mut kubectl = Command::new("kubectl");
    kubectl.env("KUBECONFIG", kubeconfig).env("HOME", home);
    let output = kubectl.args(arguments).output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments:?}: {complaints}");
    Ok(())
}

fn up(kubeconfig: &Path) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(["up", "--nodes", "2", "--listen", "127.0.0.1:0", "--write-kubeconfig"]);
    command.arg(kubeconfig);
    Ok(command)
}

/// `picokube` looks for the emulator's program beside itself.
fn build_emulator() -> Result<()> {
    program("picokube-qemu", &[], "picokube-qemu").map(drop)
}

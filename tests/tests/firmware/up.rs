//! `picokube up --firmware`: a whole cluster in one command, its controllers on the device.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use picokube_tests::cargo::program;
use picokube_tests::firmware;
use picokube_tests::following::Following;
use picokube_tests::http::Client;
use picokube_tests::picokube::binary;
use tempfile::TempDir;

#[test]
fn the_controllers_run_on_the_device_and_its_log_is_shown() -> Result<()> {
    build_emulator()?;
    let directory = TempDir::new()?;
    let kubeconfig = directory.path().join("kubeconfig");
    let mut command = up(&kubeconfig)?;
    command.arg("--firmware").arg(firmware::image()?.path());
    let pages = firmware::free_address()?;
    command.args(["--status-lag", "0", "--metrics-bind-address", &pages.to_string()]);
    let cluster = Following::start(command)?;
    cluster.line_with(&["mps2-an386, reference: room for 512 pods"])?;
    cluster.line_with(&["the controllers have started"])?;
    for arguments in [
        &["create", "deployment", "web", "--image=app:1", "--replicas=2"][..],
        &["rollout", "status", "deployment/web", "--timeout=10m"],
    ] {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("KUBECONFIG", &kubeconfig).env("HOME", directory.path());
        let output = kubectl.args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {arguments:?}: {said}");
    }
    let ready = Client::connect(pages)?.send("GET", "/readyz", &[], b"")?;
    ensure!(ready.status == 200, "the device's own pages: {}", ready.text());
    Ok(())
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

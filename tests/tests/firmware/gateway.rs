//! docs/gateway.md, whose own commands are run.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use picokube_tests::cargo::program;
use picokube_tests::document;
use picokube_tests::firmware;
use picokube_tests::following::Following;
use picokube_tests::picokube::binary;
use tempfile::TempDir;

const DOCUMENT: &str = include_str!("../../../docs/gateway.md");

/// What the document calls `cargo xtask` is the one that is built already.
const CARGO: &str = "#!/bin/sh\nset -eu\ntest \"$1\" = xtask\nshift\nexec \"$XTASK\" \"$@\"\n";

#[test]
fn the_commands_of_the_guide_work_with_a_token() -> Result<()> {
    follow("token", 8)
}

#[test]
fn the_commands_of_the_guide_work_with_a_certificate() -> Result<()> {
    follow("certificate", 9)
}

fn follow(way: &str, blocks: usize) -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let (pki, admin, tools) = (path.join("pki"), path.join("admin"), path.join("tools"));
    let mut command = Command::new(binary()?);
    command.args(["up", "--no-controllers", "--nodes", "2", "--listen", "0.0.0.0:0"]);
    command.arg("--cert-dir").arg(&pki).arg("--write-kubeconfig").arg(&admin);
    let cluster = Following::start(command)?;
    // A page that leads to loopback is refused: for a device that is the device itself.
    let line = cluster.line_with(&["for others: https://"])?;
    let server = line.rsplit(' ').next().unwrap_or_default();

    // In place of the service account's: picokube issues no such tokens.
    std::fs::copy(pki.join("token"), path.join("token"))?;
    std::fs::create_dir(&tools)?;
    std::os::unix::fs::symlink(binary()?, tools.join("picokube"))?;
    executable(&tools.join("cargo"), CARGO)?;
    let xtask = program("xtask", &["--bin", "xtask"], "xtask")?;
    let image = firmware::image()?;
    let search = format!("{}:{}", tools.display(), std::env::var("PATH")?);
    let ran = document::run(DOCUMENT, way, path, |shell| {
        shell.env("KUBECONFIG", &admin).env("HOME", path).env("PATH", &search);
        shell.env("SERVER", server).env("PKI", &pki).env("IMAGE", image.path());
        shell.env("XTASK", &xtask);
    })?;
    ensure!(ran == blocks, "{ran} blocks ran");
    let page = std::fs::read_to_string(path.join("gateway-7.hex"))?;
    ensure!(page.starts_with(':'), "no Intel HEX");
    Ok(())
}

fn executable(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

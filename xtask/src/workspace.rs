//! Where things are in this workspace, and which targets its firmware has.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo::cargo;

/// The target of the reference firmware.
pub(crate) const FIRMWARE_TARGET: &str = "thumbv7em-none-eabihf";
/// The least of the Cortex-M, without atomics: what builds for it builds for all.
pub(crate) const SMALLEST_TARGET: &str = "thumbv6m-none-eabi";
/// The newest of the Cortex-M that have a board here.
pub(crate) const MAINLINE_TARGET: &str = "thumbv8m.main-none-eabihf";
/// Crates that must build for any microcontroller.
pub(crate) const NO_STD_CRATES: [&str; 4] =
    ["picokube-core", "picokube-driver", "picokube-http2", "picokube-tls"];

/// Makes cargo act on all that is for a PC, with one set of features for what is shipped and what
/// tests it.
pub(crate) const ON_A_PC: [&str; 7] = [
    "--workspace",
    "--exclude",
    crate::firmware::PACKAGE,
    "--exclude",
    "picokube-firmware",
    "--exclude",
    picokube_qemu::DECODER,
];
/// The same, with what must be built apart.
pub(crate) const IN_THE_WORKSPACE: [&str; 5] =
    ["--workspace", "--exclude", crate::firmware::PACKAGE, "--exclude", "picokube-firmware"];
/// Makes cargo act on what is for a PC and must not be built together with the rest.
pub(crate) const APART: [&str; 2] = ["--package", picokube_qemu::DECODER];

/// In the environment of what a test run starts: the folder in which all programs are built already.
pub(crate) const BUILT: &str = "PICOKUBE_BUILT";

/// A program of the workspace's: as a test run has built it, or by cargo, which builds it if need be.
pub(crate) fn program(package: &str, kind: &str, name: &str) -> Command {
    if let Some(built) = std::env::var_os(BUILT) {
        return Command::new(Path::new(&built).join(name));
    }
    let mut cargo = cargo(&root());
    cargo.args(["run", "--quiet", "--package", package, kind, name, "--"]);
    cargo
}

/// Where cargo builds for this machine.
pub(crate) fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| root().join("target"))
}

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files that git knows or would add, below `root`.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("git is needed to list the files of the workspace")?;
    ensure!(output.status.success(), "git ls-files failed in {}", root.display());
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    // A file that was deleted but not yet committed is still listed.
    Ok(names.lines().map(|name| root.join(name)).filter(|path| path.is_file()).collect())
}

/// What `cargo metadata` says of the workspace, for one target platform if given.
pub(crate) fn metadata(root: &Path, platform: Option<&str>) -> Result<Value> {
    let mut cargo = cargo(root);
    cargo.args(["metadata", "--format-version=1", "--locked"]);
    if let Some(platform) = platform {
        cargo.args(["--filter-platform", platform]);
    }
    let output = cargo.output().context("cannot run cargo metadata")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed:\n{errors}");
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

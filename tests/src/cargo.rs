//! cargo, as a user would start it in the workspace, and the programs that it builds.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

#[path = "../../xtask/src/cargo.rs"]
mod anywhere;

/// cargo in the workspace, which builds nothing anew that is built already.
pub fn cargo() -> Command {
    anywhere::cargo(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

/// The folder in which `cargo xtask test` has built all programs that tests start.
pub fn built() -> Option<PathBuf> {
    std::env::var_os("PICOKUBE_BUILT").map(PathBuf::from)
}

/// A program of `package`: one that was built for this test run or, in a test that is run by hand, by
/// cargo with these words.
pub fn program(package: &str, words: &[&str], name: &str) -> Result<PathBuf> {
    if let Some(built) = built() {
        return Ok(built.join(name));
    }
    let output = cargo()
        .args(["build", "--quiet", "--package", package])
        .args(words)
        .args(["--message-format", "json-render-diagnostics"])
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo build --package {package}` failed:\n{errors}");
    let messages = String::from_utf8(output.stdout)?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executables.next_back().with_context(|| format!("cargo did not say where it put {name}"))
}

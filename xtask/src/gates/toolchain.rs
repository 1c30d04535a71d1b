//! The checks that come with Rust: rustfmt, clippy, rustdoc.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::setup::embedded_cargo;
use crate::workspace::{FIRMWARE_TARGET, ON_A_PC};

pub(super) fn fmt(root: &Path) -> Result<String> {
    process::run(cargo(root, "fmt").args(["--all", "--check"]))?;
    Ok("all code is laid out by rustfmt".to_owned())
}

pub(super) fn clippy(root: &Path, targets: &[&str], packages: &[&str]) -> Result<String> {
    let mut cargo = cargo(root, "clippy");
    cargo.arg("--quiet").args(targets).args(packages);
    process::run(cargo.args(["--", "--deny", "warnings"]))?;
    Ok("no warnings on this machine's target".to_owned())
}

/// Lets clippy have a look at the workspace's own crates while cargo compiles them, as `cargo clippy` does
/// without compiling: what depends on them needs no second look at everything. Warnings are errors.
///
/// clippy's compiler leaves optimisation to LLVM alone: what is shipped or measured is built without it.
pub(crate) fn with_clippy(cargo: &mut Command) -> &mut Command {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", ["--deny", "warnings", ""].join("__CLIPPY_HACKERY__"))
}

pub(super) fn clippy_firmware(root: &Path, package: &str, target: &Path) -> Result<String> {
    let mut cargo = embedded_cargo("clippy");
    cargo.current_dir(root).args(["--quiet", "--target", FIRMWARE_TARGET]);
    cargo.args(["--package", package, "--all-features", "--profile", "firmware"]);
    cargo.arg("--target-dir").arg(target);
    process::run(cargo.args(["--", "--deny", "warnings"]))?;
    Ok(format!("no warnings on {FIRMWARE_TARGET}"))
}

pub(super) fn doc(root: &Path) -> Result<String> {
    let mut cargo = cargo(root, "doc");
    cargo.env("RUSTDOCFLAGS", "--deny warnings");
    cargo.args(["--quiet", "--no-deps", "--document-private-items"]).args(ON_A_PC);
    process::run(&mut cargo)?;
    Ok("all documentation builds, and its links lead somewhere".to_owned())
}

fn cargo(root: &Path, subcommand: &str) -> Command {
    let mut cargo = crate::cargo::cargo(root);
    cargo.arg(subcommand);
    cargo
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A crate with one flaw.
    fn crate_with(source: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest = "[package]\nname = \"flawed\"\nedition = \"2024\"\n[workspace]\n\
                        [profile.firmware]\ninherits = \"release\"\n";
        fs::write(folder.path().join("Cargo.toml"), manifest).expect("a manifest");
        fs::create_dir(folder.path().join("src")).expect("a folder");
        fs::write(folder.path().join("src/lib.rs"), source).expect("a source file");
        folder
    }

    #[test]
    fn fmt_fails_on_layout_of_another_kind() {
        assert!(fmt(crate_with("pub fn f() {}\n").path()).is_ok());
        assert!(fmt(crate_with("pub fn f( ) { }\n").path()).is_err());
    }

    #[test]
    fn clippy_fails_on_a_warning() {
        assert!(clippy(crate_with("pub fn f() {}\n").path(), &["--all-targets"], &[]).is_ok());
        let flawed = "pub fn f(x: Vec<u8>) -> bool { x.len() == 0 }\n";
        assert!(clippy(crate_with(flawed).path(), &["--all-targets"], &[]).is_err());
    }

    #[test]
    fn a_build_of_tests_fails_on_a_warning_of_clippys() {
        let build = |source| {
            let folder = crate_with(source);
            process::run(with_clippy(cargo(folder.path(), "test").arg("--no-run")))
        };
        assert!(build("pub fn f() {}\n").is_ok());
        assert!(build("pub fn f(x: Vec<u8>) -> bool { x.len() == 0 }\n").is_err());
    }

    #[test]
    fn clippy_fails_on_a_warning_on_the_bare_metal_target() {
        let check = |source| {
            let folder = crate_with(source);
            clippy_firmware(folder.path(), "flawed", &folder.path().join("target"))
        };
        assert!(check("#![no_std]\npub fn f() {}\n").is_ok());
        let only_there = "#![no_std]\n#[cfg(target_os = \"none\")]\n\
                          pub fn f(x: &[u8]) -> bool { x.len() == 0 }\n";
        assert!(check(only_there).is_err());
    }

    #[test]
    fn doc_fails_on_a_link_to_nowhere() {
        assert!(doc(crate_with("//! Fine.\n").path()).is_ok());
        assert!(doc(crate_with("//! See [`Missing`].\n").path()).is_err());
    }
}

//! Bringing a bare machine to the point where firmware builds and runs.
//!
//! Every step first looks whether there is anything to do, so that calling this again is quick.

mod debian;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use crate::workspace::{self, FIRMWARE_TARGET, MAINLINE_TARGET, SMALLEST_TARGET};

const TARGETS: [&str; 3] = [FIRMWARE_TARGET, SMALLEST_TARGET, MAINLINE_TARGET];

/// `cargo xtask setup`.
pub(crate) fn run() -> Result<()> {
    bare_metal_targets()?;
    program(picokube_qemu::PROGRAM, "runs the firmware", debian::install_qemu)?;
    program("kubectl", "tests the API server", || debian::install(&["kubernetes-client"]))?;
    program("openssl", "tests the TLS client", || debian::install(&["openssl"]))?;
    program("c++", "builds libFuzzer", || debian::install(&["g++"]))
}

/// `cargo SUBCOMMAND` by a toolchain that has the bare-metal targets.
pub(crate) fn embedded_cargo(subcommand: &str) -> Command {
    let mut cargo = match Toolchain::with_targets() {
        Some(Toolchain::Debian) => debian::cargo(subcommand),
        _ => {
            let mut cargo = crate::cargo::cargo(&workspace::root());
            cargo.arg(subcommand);
            cargo
        }
    };
    cargo.arg("--config").arg(same_in_every_home());
    cargo
}

/// Panics say where in the source they are. In an image, these paths must not tell in whose home it was
/// built, nor make it longer there.
fn same_in_every_home() -> String {
    let [cargo_home, root] = folders();
    let flags = [(cargo_home, "cargo"), (root, "picokube")]
        .map(|(folder, name)| format!("--remap-path-prefix={folder}={name}"));
    format!("target.'cfg(all(target_arch = \"arm\", target_os = \"none\"))'.rustflags={flags:?}")
}

/// Where what firmware is built from is on this machine: that of others, and ours.
pub(crate) fn folders() -> [String; 2] {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    let root = workspace::root();
    let root = root.canonicalize().unwrap_or(root);
    [cargo_home, root.display().to_string()]
}

/// Which compiler builds firmware.
enum Toolchain {
    /// The one that builds everything else, too.
    Default,
    /// Debian's, with libraries that we have compiled for it.
    Debian,
}

impl Toolchain {
    fn with_targets() -> Option<Self> {
        if !debian::forced() && has_targets(Path::new("rustc")) {
            return Some(Self::Default);
        }
        has_targets(Path::new(debian::RUSTC)).then_some(Self::Debian)
    }
}

/// Whether `rustc` finds the `core` library of every target.
fn has_targets(rustc: &Path) -> bool {
    TARGETS.iter().all(|target| {
        let mut command = Command::new(rustc);
        command.args(["--print", "target-libdir", "--target", target]);
        let Ok(folder) = process::output(&mut command) else { return false };
        let Ok(files) = PathBuf::from(folder.trim()).read_dir() else { return false };
        files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
    })
}

fn bare_metal_targets() -> Result<()> {
    if Toolchain::with_targets().is_some() {
        return Ok(());
    }
    if !debian::forced() && process::exists("rustup") {
        say(&format!("adding the targets {} with rustup", TARGETS.join(", ")));
        // Bounded, because a machine without this network may hang instead of failing.
        let mut rustup = Command::new("timeout");
        rustup.args(["120", "rustup", "target", "add"]).args(TARGETS);
        if process::run(&mut rustup).is_ok() && has_targets(Path::new("rustc")) {
            return Ok(());
        }
        say("rustup cannot add them; trying Debian's compiler instead");
    }
    debian::install_compiler(&TARGETS)?;
    match Toolchain::with_targets() {
        Some(_) => Ok(()),
        None => bail!("Debian's compiler is installed and still lacks {}", TARGETS.join(", ")),
    }
}

/// Installs a program unless it is there.
fn program(name: &str, what_it_does: &str, install: impl Fn() -> Result<()>) -> Result<()> {
    if process::exists(name) {
        return Ok(());
    }
    say(&format!("installing {name}, which {what_it_does}"));
    install()?;
    if process::exists(name) {
        return Ok(());
    }
    bail!("{name} is installed and cannot be started")
}

fn say(what: &str) {
    eprintln!("setup: {what}");
}

//! What Debian's packages can provide.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::say;
use crate::process;

/// Debian's compiler, which is current because browsers need it.
pub(super) const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const CLIPPY: &str = "/usr/bin/cargo-clippy";
/// The packages of both, of clippy, of the standard library's source, and of a linker.
const COMPILER: [&str; 5] = ["rustc-web", "cargo-web", "rust-web-clippy", "rust-web-src", "lld-22"];
/// One file of each package.
const COMPILER_FILES: [&str; 4] = [RUSTC, CARGO, CLIPPY, LINKER];
const LINKER: &str = "/usr/lib/llvm-22/bin/lld";

/// `cargo SUBCOMMAND` by that compiler, also where rustup stands first in the path.
pub(super) fn cargo(subcommand: &str) -> Command {
    // cargo would look for clippy beside rustup's before it looks beside itself.
    let mut cargo = Command::new(if subcommand == "clippy" { CLIPPY } else { CARGO });
    cargo.arg(subcommand).env("CARGO", CARGO).env("RUSTC", RUSTC).env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

/// Whether the user wants Debian's compiler even where rustup works (`PICOKUBE_TOOLCHAIN=debian`).
pub(super) fn forced() -> bool {
    std::env::var_os("PICOKUBE_TOOLCHAIN").is_some_and(|name| name == "debian")
}

/// Installs packages, or says what to do by hand.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    check_possible(packages)?;
    apt(&["update"], &[])?;
    apt(&["install"], packages)
}

/// Installs QEMU for Arm.
///
/// A machine that has Debian 12's backported `qemu-utils` refuses the ordinary `qemu-system-arm`,
/// so there it comes from backports, too, by package lists that are used for this alone.
pub(super) fn install_qemu() -> Result<()> {
    const PACKAGE: &str = "qemu-system-arm";
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Version}", "qemu-utils"]);
    let backported = process::output(&mut query).is_ok_and(|version| version.contains("bpo"));
    if !backported {
        return install(&[PACKAGE]);
    }
    check_possible(&[PACKAGE])?;
    let lists = TemporaryLists::with_backports()?;
    let options = lists.apt_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    apt(&[&options[..], &["update"]].concat(), &[])?;
    apt(&[&options[..], &["--target-release=bookworm-backports", "install"]].concat(), &[PACKAGE])
}

/// Installs Debian's compiler and compiles `core` and `alloc` for `targets` with it: Debian ships
/// no bare-metal ones.
pub(super) fn install_compiler(targets: &[&str]) -> Result<()> {
    if !COMPILER_FILES.iter().all(|file| Path::new(file).exists()) {
        say("installing Debian's Rust compiler and a linker");
        install(&COMPILER)?;
    }
    check_possible(&COMPILER)?;
    let version = process::output(Command::new(RUSTC).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say which platform it runs on")?;
    // rustc looks for its linker under this name; Debian has the same program under another.
    let tools = format!("/usr/lib/rustlib/{host}/bin");
    fs::create_dir_all(&tools)?;
    let linker = format!("{tools}/rust-lld");
    if !Path::new(&linker).exists() {
        symlink(LINKER, &linker).with_context(|| format!("cannot make {linker}"))?;
    }
    for target in targets {
        install_libraries(target)?;
    }
    Ok(())
}

fn install_libraries(target: &str) -> Result<()> {
    say(&format!("compiling core and alloc for {target}, which takes a minute"));
    let scratch = std::env::temp_dir().join(format!("picokube-setup-{}", std::process::id()));
    let result = build_libraries(target, &scratch);
    // Left behind only if it cannot be removed, which the next run does not mind.
    let _ = fs::remove_dir_all(&scratch);
    result
}

fn build_libraries(target: &str, scratch: &Path) -> Result<()> {
    fs::create_dir_all(scratch.join("src"))?;
    fs::write(scratch.join("src/lib.rs"), "#![no_std]\n")?;
    let manifest = "[package]\nname = \"empty\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(scratch.join("Cargo.toml"), manifest)?;
    let mut cargo = cargo("build");
    cargo
        .current_dir(scratch)
        .args(["--quiet", "--release", "-Zbuild-std=core,alloc", "--target", target])
        // `-Z` flags are for nightly compilers, unless one insists.
        .env("RUSTC_BOOTSTRAP", "1")
        // Without bitcode in the libraries, link-time optimisation of firmware fails.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .env_remove("CARGO_BUILD_TARGET");
    process::run(&mut cargo)?;
    let libraries = format!("/usr/lib/rustlib/{target}/lib");
    fs::create_dir_all(&libraries)?;
    let built = scratch.join("target").join(target).join("release/deps");
    let mut copied = 0;
    for file in built.read_dir()?.flatten() {
        let name = file.file_name();
        let wanted = ["libcore-", "liballoc-", "libcompiler_builtins-"];
        let text = name.to_string_lossy();
        if text.ends_with(".rlib") && wanted.iter().any(|prefix| text.starts_with(prefix)) {
            fs::copy(file.path(), Path::new(&libraries).join(&name))?;
            copied += 1;
        }
    }
    ensure!(copied == 3, "expected core, alloc and compiler_builtins, found {copied} libraries");
    Ok(())
}

/// Fails, with advice, where packages cannot be installed.
fn check_possible(packages: &[&str]) -> Result<()> {
    let packages = packages.join(" ");
    if !process::exists("apt-get") {
        bail!(
            "this is not a Debian system: install the equivalents of these packages by hand, \
             then run this again: {packages}"
        );
    }
    let user = process::output(Command::new("id").arg("-u"))?;
    if user.trim() != "0" {
        bail!(
            "packages are installed by root: run `sudo apt-get install {packages}`, or this \
             command as root"
        );
    }
    Ok(())
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet", "--yes", "--no-install-recommends", "--option=Dpkg::Use-Pty=0"]);
    apt.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    // apt's chatter is for standard error: our standard output may be read by a program.
    let output = apt.output().context("cannot run apt-get")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed:\n{said}{errors}", process::describe(&apt));
    }
    Ok(())
}

/// Package lists of the machine's own sources plus backports, apart from the machine's lists.
struct TemporaryLists {
    folder: std::path::PathBuf,
}

impl TemporaryLists {
    fn with_backports() -> Result<Self> {
        const SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";
        let folder = std::env::temp_dir().join(format!("picokube-apt-{}", std::process::id()));
        for part in ["parts", "lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let sources = fs::read_to_string(SOURCES)
            .with_context(|| format!("cannot read {SOURCES} to add backports to it"))?;
        let with_backports: String = sources
            .lines()
            .map(|line| match line.strip_prefix("Suites: bookworm bookworm-updates") {
                Some("") => "Suites: bookworm bookworm-updates bookworm-backports\n".to_owned(),
                _ => format!("{line}\n"),
            })
            .collect();
        fs::write(folder.join("parts/debian.sources"), with_backports)?;
        Ok(Self { folder })
    }

    fn apt_options(&self) -> Vec<String> {
        let folder = self.folder.display();
        vec![
            "--option=Dir::Etc::SourceList=/dev/null".to_owned(),
            format!("--option=Dir::Etc::SourceParts={folder}/parts"),
            format!("--option=Dir::State::lists={folder}/lists"),
            format!("--option=Dir::Cache={folder}/cache"),
        ]
    }
}

impl Drop for TemporaryLists {
    fn drop(&mut self) {
        // Left behind only if it cannot be removed; it is in the temporary folder anyway.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

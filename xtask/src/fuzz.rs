//! `cargo xtask fuzz`: every fuzz target for a while, from its committed corpus.
//!
//! libFuzzer wants a program that counts which of its edges were taken. A stable compiler can do that
//! when told so by LLVM's names, so neither a nightly one nor cargo-fuzz is needed. There is no address
//! sanitizer: what is fuzzed has no unsafe code, and an overflow or a broken assertion is a panic.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{process, workspace};

const CORE: &str = "core/fuzz";
const HTTP2: &str = "targets/http2/fuzz";
const SERVER: &str = "host-sim/fuzz";
const TLS: &str = "targets/tls/fuzz";

/// In a test run: enough to replay the corpus and try some more.
const BRIEFLY: u32 = 5;

/// What makes a program fit for libFuzzer.
const FLAGS: [&str; 9] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Ccodegen-units=1",
];

/// Runs every target, or one, for `seconds`.
pub(crate) fn run(seconds: u32, only: Option<&str>) -> Result<String> {
    let mut targets = Vec::new();
    for folder in [CORE, HTTP2, SERVER, TLS] {
        let source = |name| workspace::root().join(folder).join(format!("fuzz_targets/{name}.rs"));
        if only.is_none_or(|only| source(only).is_file()) {
            targets.extend(build(folder)?);
        }
    }
    targets.retain(|target| only.is_none_or(|only| target.name == only));
    ensure!(!targets.is_empty(), "there is no fuzz target {}", only.unwrap_or_default());
    run_all(&targets, seconds)
}

/// Runs the targets of what is flashed only: the server takes minutes to build for fuzzing, and its
/// corpus is replayed by an ordinary test.
pub(crate) fn run_briefly() -> Result<String> {
    let mut targets = build(CORE)?;
    targets.extend(build(HTTP2)?);
    targets.extend(build(TLS)?);
    run_all(&targets, BRIEFLY)
}

/// A fuzz target.
struct Target {
    name: String,
    program: PathBuf,
    /// Where its corpus is, and where an input that breaks it goes.
    folder: PathBuf,
}

/// Builds all targets of a folder.
fn build(folder: &str) -> Result<Vec<Target>> {
    let folder = workspace::root().join(folder);
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say which platform it runs on")?;
    let mut cargo = crate::cargo::cargo(&folder);
    // Named, so that what runs while building is built without the flags.
    cargo.args(["build", "--release", "--locked", "--bins", "--target", host]);
    cargo.arg("--target-dir").arg(workspace::target().join("fuzz"));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    let messages = process::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    let built = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let program = PathBuf::from(message["executable"].as_str()?);
        let name = message["target"]["name"].as_str()?.to_owned();
        Some(Target { name, program, folder: folder.clone() })
    });
    Ok(built.collect())
}

fn run_all(targets: &[Target], seconds: u32) -> Result<String> {
    for target in targets {
        eprintln!("fuzzing {} for {seconds} s", target.name);
        fuzz(target, seconds)?;
    }
    Ok(format!("{} targets, {seconds} s each, found nothing", targets.len()))
}

fn fuzz(Target { name, program, folder }: &Target, seconds: u32) -> Result<()> {
    // New inputs go to the first folder; the committed corpus stays as it is.
    let found = std::env::temp_dir().join(format!("picokube-fuzz-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&found)?;
    let broken = folder.join("artifacts").join(name);
    std::fs::create_dir_all(&broken)?;
    let mut command = Command::new(program);
    command.arg(&found).arg(folder.join("corpus").join(name));
    command.args(["-verbosity=0", "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
    command.arg(format!("-artifact_prefix={}/", broken.display()));
    let result = process::output(&mut command).map(drop);
    // Left behind only if it cannot be removed; it is in the temporary folder anyway.
    let _ = std::fs::remove_dir_all(&found);
    remove_if_empty(&broken);
    remove_if_empty(&folder.join("artifacts"));
    result
}

fn remove_if_empty(folder: &Path) {
    // Removing a folder fails if something is in it, which is what is wanted.
    let _ = std::fs::remove_dir(folder);
}

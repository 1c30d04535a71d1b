//! `cargo xtask fuzz`: every fuzz target for a while, from its committed corpus.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

const CORE: &str = "core/fuzz";
const SERVER: &str = "host-sim/fuzz";

/// Runs every target for `seconds`, where a nightly compiler and cargo-fuzz are at hand.
pub(crate) fn run(seconds: u32) -> Result<String> {
    run_folders(&[CORE, SERVER], seconds)
}

/// Runs the targets of core only: the server takes minutes to build for fuzzing, and its corpus
/// is replayed by an ordinary test.
pub(crate) fn run_briefly(seconds: u32) -> Result<String> {
    run_folders(&[CORE], seconds)
}

fn run_folders(folders: &[&str], seconds: u32) -> Result<String> {
    if process::output(cargo_fuzz().arg("--version")).is_err() {
        return Ok("skipped: needs a nightly compiler and `cargo install cargo-fuzz`".to_owned());
    }
    let mut targets = 0;
    for folder in folders {
        let folder = workspace::root().join(folder);
        let list = process::output(cargo_fuzz().args(["list", "--fuzz-dir"]).arg(&folder))?;
        for target in list.split_whitespace() {
            fuzz(&folder, target, seconds)?;
            targets += 1;
        }
    }
    Ok(format!("{targets} targets, {seconds} s each, found nothing"))
}

fn fuzz(folder: &Path, target: &str, seconds: u32) -> Result<()> {
    println!("fuzzing {target}");
    // New inputs go to the first folder; the committed corpus stays as it is.
    let found = std::env::temp_dir().join(format!("picokube-fuzz-{}-{target}", std::process::id()));
    std::fs::create_dir_all(&found)?;
    let mut command = cargo_fuzz();
    command.arg("run").arg("--fuzz-dir").arg(folder).arg(target);
    command.arg(&found).arg(folder.join("corpus").join(target));
    command.args(["--", "-verbosity=0", &format!("-max_total_time={seconds}")]);
    let result = process::output(&mut command).map(drop);
    // Left behind only if it cannot be removed; it is in the temporary folder anyway.
    let _ = std::fs::remove_dir_all(&found);
    result
}

fn cargo_fuzz() -> Command {
    let mut cargo = Command::new("cargo");
    // This process was started by a cargo of another toolchain, whose variables would win.
    cargo.args(["+nightly", "fuzz"]).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

//! The firmware of real boards builds and fits, and what is particular about a board stays small.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::setup::embedded_cargo;
use crate::{firmware, process};

/// Folders below `targets`. Each is a workspace of its own that says which target it is for.
const BOARDS: [&str; 2] = ["nucleo-h743zi", "w5500-evb-pico2"];
/// Everything else is shared.
const MOST_LINES: usize = 300;

pub(super) fn check(root: &Path) -> Result<String> {
    for board in BOARDS {
        build(root, board)?;
    }
    Ok(format!("{} build and fit their memory maps", BOARDS.join(" and ")))
}

fn build(root: &Path, board: &str) -> Result<()> {
    let folder = root.join("targets").join(board);
    let lines = fs::read_to_string(folder.join("src/main.rs"))?.lines().count();
    if lines > MOST_LINES {
        bail!("{board} has {lines} lines of its own, more than {MOST_LINES}");
    }
    let mut cargo = embedded_cargo("build");
    cargo.current_dir(&folder).args(["--quiet", "--locked", "--profile", "firmware"]);
    // What debuggers read is not flashed, and nobody debugs this one.
    cargo.args(["--config", "profile.firmware.debug=false"]);
    process::run(cargo.arg("--target-dir").arg(firmware::target()))
}

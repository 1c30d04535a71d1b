//! The checks that every change passes. Each can be called alone, and each is shown to fail when
//! it should by `xtask/tests` or by its own tests.

mod boards;
mod dependencies;
mod frames;
mod image;
mod purity;
mod sizes;
mod thumb;
mod tidy;
mod toolchain;

pub(crate) use toolchain::with_clippy;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::IN_THE_WORKSPACE;
use crate::{firmware, setup, workspace};

/// Test programs that are built only by name.
const SIMULATION: [&str; 10] = [
    "--test",
    "planted",
    "--test",
    "seeds",
    "--test",
    "shipped",
    "--test",
    "shipped_planted",
    "--test",
    "sweeps",
];
/// The package that has them, as they are built.
const SIMULATED: [&str; 5] =
    ["--package", "picokube", "--no-default-features", "--features", "driver,planted-bugs"];
const PLANTED_BUGS: [&str; 2] = ["--features", "picokube/planted-bugs"];

/// A check.
#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Gate {
    /// Layout of the code: rustfmt
    Fmt,
    /// Rules that need no compiler: length of lines and files, banned words, promises of crates
    Tidy,
    /// Licences, banned crates and duplicate versions of all dependencies, by deny.toml
    Deny,
    /// clippy, warnings denied, on this machine's target
    Clippy,
    /// The same, of what a quick test run does not build: the simulation's programs
    ClippyRest,
    /// clippy, warnings denied, on the bare-metal target
    ClippyFirmware,
    /// rustdoc, warnings denied
    Doc,
    /// Core, driver and HTTP/2 build for the smallest targets and reach neither std nor an allocator
    Purity,
    /// Flash, RAM, stack and stack frames of the firmware against budget.toml
    Sizes,
    /// The firmware of real boards builds and fits
    Boards,
}

impl Gate {
    /// Runs the check. Returns what it found to be so, for people.
    pub(crate) fn run(self) -> Result<String> {
        let root = workspace::root();
        match self {
            Self::Fmt => toolchain::fmt(&root),
            Self::Tidy => tidy::check(&root),
            Self::Deny => dependencies::check(&root),
            Self::Clippy => {
                // In one go with what is built apart: nothing is run here, so features do not matter.
                let packages = [&IN_THE_WORKSPACE[..], &PLANTED_BUGS].concat();
                toolchain::clippy(&root, &["--all-targets"], &packages)?;
                toolchain::clippy(&root, &SIMULATION, &packages)
            }
            Self::ClippyRest => toolchain::clippy(&root, &SIMULATION, &SIMULATED),
            Self::ClippyFirmware => {
                setup::run()?;
                toolchain::clippy_firmware(&root, firmware::PACKAGE, &firmware::target())
            }
            Self::Doc => toolchain::doc(&root),
            Self::Purity => {
                setup::run()?;
                purity::check(&root)
            }
            Self::Sizes => {
                setup::run()?;
                firmware::build_decoder()?;
                sizes::check(&root)
            }
            Self::Boards => {
                setup::run()?;
                boards::check(&root)
            }
        }
    }
}

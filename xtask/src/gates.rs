//! The checks that every change passes. Each can be called alone, and each is shown to fail when
//! it should by `xtask/tests` or by its own tests.

mod boards;
mod dependencies;
mod purity;
mod sizes;
mod tidy;
mod toolchain;

use anyhow::Result;
use clap::Subcommand;

use crate::{firmware, setup, workspace};

/// A check.
#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Gate {
    /// Layout of the code: rustfmt
    Fmt,
    /// Rules that need no compiler: length of lines and files, banned words, promises of crates
    Tidy,
    /// Licences, banned crates and duplicate versions of all dependencies, by deny.toml
    Deny,
    /// clippy, warnings denied, on this machine and on the bare-metal target
    Clippy,
    /// rustdoc, warnings denied
    Doc,
    /// Core and driver build for the smallest targets and reach neither std nor an allocator
    Purity,
    /// Flash, RAM and stack of the firmware against budget.toml
    Sizes,
    /// The firmware of real boards builds and fits
    Boards,
}

impl Gate {
    /// In the order in which a mistake shows soonest.
    pub(crate) const ALL: [Self; 8] = [
        Self::Fmt,
        Self::Tidy,
        Self::Deny,
        Self::Clippy,
        Self::Doc,
        Self::Purity,
        Self::Sizes,
        Self::Boards,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Deny => "deny",
            Self::Clippy => "clippy",
            Self::Doc => "doc",
            Self::Purity => "purity",
            Self::Sizes => "sizes",
            Self::Boards => "boards",
        }
    }

    /// Runs the check. Returns what it found to be so, for people.
    pub(crate) fn run(self) -> Result<String> {
        let root = workspace::root();
        match self {
            Self::Fmt => toolchain::fmt(&root),
            Self::Tidy => tidy::check(&root),
            Self::Deny => dependencies::check(&root),
            Self::Clippy => {
                setup::run()?;
                toolchain::clippy(&root)?;
                toolchain::clippy_bare_metal(&root, firmware::PACKAGE)
            }
            Self::Doc => toolchain::doc(&root),
            Self::Purity => {
                setup::run()?;
                purity::check(&root)
            }
            Self::Sizes => {
                setup::run()?;
                sizes::check(&root)
            }
            Self::Boards => {
                setup::run()?;
                boards::check(&root)
            }
        }
    }
}

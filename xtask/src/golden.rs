//! `cargo xtask golden`: the golden scenarios, all of them.

use anyhow::Result;

use crate::{process, setup, workspace};

/// Plays all scenarios, or some, against the controllers on a PC or in firmware.
pub(crate) fn run(on_firmware: bool, only: Option<&str>) -> Result<()> {
    let mut cargo = crate::cargo::cargo(&workspace::root());
    cargo.args(["test", "--package", "picokube-tests", "--test"]);
    if on_firmware {
        setup::run()?;
        // A test run plays a third of them.
        cargo.env("PICOKUBE_GOLDEN_ALL", "1").args(["golden_device", "--"]);
    } else {
        cargo.args(["golden", "--"]);
    }
    if let Some(only) = only {
        cargo.env("PICOKUBE_GOLDEN_ONLY", only);
    }
    process::run(cargo.arg("--nocapture"))
}

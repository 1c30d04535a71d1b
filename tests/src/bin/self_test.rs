//! `picokube-self-test ELF`: boots that firmware for its self-test and prints its log.
//!
//! A program, so that `cargo xtask` itself need not be built with all that tests are built with.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use picokube_qemu::Image;
use picokube_tests::firmware;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let image = std::env::args().nth(1).context("which firmware?")?;
    let image = Arc::new(Image::open(Path::new(&image))?);
    let status = firmware::self_test(&image, |line| println!("{line}"))?;
    Ok(status.success())
}

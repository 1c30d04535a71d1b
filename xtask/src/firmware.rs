//! Building the firmware and running it in QEMU.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_qemu::{HOST_SEEN_BY_GUEST, Image, Line, Machine};
use serde_json::Value;

use crate::workspace::{self, FIRMWARE_TARGET};
use crate::{process, setup};

/// The firmware that runs in QEMU.
pub(crate) const PACKAGE: &str = "picokube-mps2-an386";

/// No self-test is silent for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Builds the image as it would be flashed.
pub(crate) fn build() -> Result<PathBuf> {
    let mut cargo = setup::embedded_cargo("build");
    cargo.current_dir(workspace::root());
    cargo.args(["--package", PACKAGE, "--profile", "firmware", "--target", FIRMWARE_TARGET]);
    let messages = process::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo has built the firmware and not said where it is")
}

/// `firmware run`: shows the log of a firmware that talks to `server`, until interrupted.
pub(crate) fn connect(server: SocketAddr) -> Result<()> {
    ensure!(
        server.ip().is_loopback(),
        "QEMU's network leads the firmware to this machine's loopback only, and {server} is not there"
    );
    let image = image()?;
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", server.port());
    println!("The firmware talks to {server}. Ctrl-C ends it.");
    let mut machine = Machine::boot(&image, &["connect", &address])?;
    // An idle firmware has nothing to log.
    while let Some(line) = machine.next_line(Duration::MAX)? {
        println!("{line}");
    }
    let status = machine.wait(PATIENCE)?;
    ensure!(status.success(), "the firmware has stopped ({status})");
    Ok(())
}

/// `firmware run --self-test`: shows the log of the driver's cases and succeeds if they pass.
pub(crate) fn self_test() -> Result<()> {
    run_self_test(|line| println!("{line}"))
}

/// Boots the firmware for its self-test and hands every log line to `see`.
pub(crate) fn run_self_test(see: impl FnMut(&Line)) -> Result<()> {
    let status = picokube_tests::firmware::self_test(&image()?, see)?;
    ensure!(status.success(), "the firmware's self-test has failed");
    Ok(())
}

fn image() -> Result<Arc<Image>> {
    setup::run()?;
    Ok(Arc::new(Image::open(&build()?)?))
}

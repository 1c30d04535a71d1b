//! The firmware under test.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_qemu::{HOST_SEEN_BY_GUEST, Image, Line, Machine};

use crate::peer::Peer;

/// No self-test is silent for so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Builds the firmware as it would be flashed, by the same command as a user.
pub fn image() -> Result<Image> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["run", "--quiet", "--package", "xtask", "--", "firmware", "build"])
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo xtask firmware build` failed:\n{errors}");
    // The last word it prints is the path of the image.
    let path = String::from_utf8(output.stdout)?;
    Image::open(Path::new(path.trim()))
}

/// Boots the firmware for its self-test against a peer of its own and hands every log line to
/// `see`. Returns how the emulation ended.
pub fn self_test(image: &Arc<Image>, mut see: impl FnMut(&Line)) -> Result<ExitStatus> {
    let peer = Peer::start().context("cannot start the test peer")?;
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", peer.address().port());
    let black_hole = peer.black_hole_port().to_string();
    let mut machine = Machine::boot(image, &["self-test", &address, &black_hole])?;
    while let Some(line) = machine.next_line(PATIENCE)? {
        see(&line);
    }
    machine.wait(PATIENCE)
}

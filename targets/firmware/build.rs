//! Says which of the two ways of guarding a stack the processor has, and when the firmware was made.

use std::path::Path;
use std::process::Command;

/// The first release, for a source tree without history.
const FIRST_RELEASE: u64 = 1_767_225_600;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(armv8m)");
    if std::env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv8m")) {
        println!("cargo:rustc-cfg=armv8m");
    }
    println!("cargo:rustc-env=PICOKUBE_MADE_AT={}", made_at());
}

/// Seconds since 1970: those of `SOURCE_DATE_EPOCH`, or of the commit. Not those of the build, so that the
/// same source gives the same image.
fn made_at() -> u64 {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    given.or_else(committed_at).unwrap_or(FIRST_RELEASE).max(FIRST_RELEASE)
}

fn committed_at() -> Option<u64> {
    // What changes with every commit that is made or looked at.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--format=%ct"])?.parse().ok()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

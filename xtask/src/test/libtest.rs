//! Runs a test program and reads what Rust's test harness says.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process;

/// What came of a test program.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tests {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// How long each test took.
    pub(super) times: Vec<(String, Duration)>,
}

/// Runs the tests of `program`, `threads` at a time, those only whose names contain `filter`. What it
/// prints goes to `log`.
pub(super) fn run(
    program: &mut Command,
    threads: usize,
    filter: Option<&str>,
    log: &Path,
) -> Result<Tests> {
    program.args([&format!("--test-threads={threads}"), "--color=never"]);
    program.args(filter);
    // How long each test took is told by nightly harnesses, unless one insists.
    program.args(["--report-time", "-Zunstable-options"]).env("RUSTC_BOOTSTRAP", "1");
    let mut tests = Tests::default();
    let ended = process::run_logged(program, log, |line| tests.see(line));
    if ended.is_err() || tests.failed > 0 {
        let Tests { passed, failed, .. } = tests;
        return Err(Failed { passed, failed, log: log.to_owned() }.into());
    }
    Ok(tests)
}

/// A test program that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) passed: usize,
    pub(super) failed: usize,
    log: PathBuf,
}

impl Error for Failed {}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, log } = self;
        write!(f, "{passed} passed, {failed} failed; all it said is in {}", log.display())
    }
}

impl Tests {
    /// Reads a line of the harness.
    pub(super) fn see(&mut self, line: &str) {
        if let Some((name, time)) = timed(line) {
            self.times.push((name.to_owned(), time));
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let number = |label: &str| {
            let before = result.split(label).next().filter(|before| before.len() < result.len());
            before.and_then(|text| text.split_whitespace().last()?.parse().ok()).unwrap_or(0)
        };
        self.passed += number(" passed");
        self.failed += number(" failed");
    }
}

/// `test a::b ... ok <0.123s>`
fn timed(line: &str) -> Option<(&str, Duration)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.rsplit_once('<')?.1.strip_suffix("s>")?;
    Some((name, Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_is_understood() {
        let mut tests = Tests::default();
        tests.see("running 3 tests");
        tests.see("test a::b ... ok <0.250s>");
        tests.see("test c ... FAILED <1.500s>");
        tests.see("test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured");
        tests.see("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured");
        assert_eq!((tests.passed, tests.failed), (19, 1));
        let time =
            |name: &str, milliseconds| (name.to_owned(), Duration::from_millis(milliseconds));
        assert_eq!(tests.times, [time("a::b", 250), time("c", 1500)]);
    }
}

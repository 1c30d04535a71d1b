//! `cargo xtask test`: all gates, all tests, one summary.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::gates::Gate;
use crate::{fuzz, process, setup, workspace};

/// Enough to replay the corpus and try some more.
const FUZZ_SECONDS: u32 = 5;

/// The only build that has mistakes in it: the simulation must find every one.
const PLANTED_BUGS: [&str; 8] = [
    "--package",
    "picokube",
    "--features",
    "planted-bugs",
    "--test",
    "planted",
    "--",
    "--nocapture",
];

pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let mut summary = Summary::default();
    summary.step("setup", || setup::run().map(|()| "the machine has what it needs".to_owned()));
    for gate in Gate::ALL {
        summary.step(gate.name(), || gate.run());
    }
    summary.tests();
    summary.step("fuzz", || fuzz::run_briefly(FUZZ_SECONDS));
    summary.print(start);
    if summary.failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", summary.failed.join(", "))
}

#[derive(Default)]
struct Summary {
    lines: Vec<String>,
    failed: Vec<String>,
    tests: Count,
}

impl Summary {
    fn step(&mut self, name: &str, work: impl FnOnce() -> Result<String>) {
        println!("==> {name}");
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs();
        let verdict = match result {
            Ok(report) => {
                println!("{}", report.trim_end());
                let first = report.lines().next().unwrap_or_default().trim().to_owned();
                // A table's heading says nothing alone.
                let what =
                    if report.lines().count() > 1 { "within budget".to_owned() } else { first };
                format!("ok      {what}")
            }
            Err(error) => {
                eprintln!("{name} failed: {error:#}");
                self.failed.push(name.to_owned());
                "FAILED".to_owned()
            }
        };
        self.lines.push(format!("{name:<8} {seconds:>4} s  {verdict}"));
    }

    /// Runs tests in lots, so that the tools of one do not change the features of the other.
    fn tests(&mut self) {
        self.lot("tests", &[]);
        self.lot("planted", &PLANTED_BUGS);
        self.lot("systems", &workspace::not_shipped());
    }

    fn lot(&mut self, name: &str, packages: &[&str]) {
        let mut count = Count::default();
        self.step(name, || {
            let mut cargo = crate::cargo::cargo(&workspace::root());
            cargo.args(["test", "--no-fail-fast"]).args(packages);
            let result = process::run_watched(&mut cargo, |line| count.see(line));
            result.map(|()| format!("{} tests passed", count.passed))
        });
        self.tests.passed += count.passed;
        self.tests.failed += count.failed;
    }

    fn print(&self, start: Instant) {
        let seconds = start.elapsed().as_secs();
        println!("\n==> summary, after {} min {} s", seconds / 60, seconds % 60);
        for line in &self.lines {
            println!("{line}");
        }
        println!("{} passed, {} failed", self.tests.passed, self.tests.failed);
    }
}

/// How many tests have run, by cargo's closing lines.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
}

impl Count {
    fn see(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let number = |label: &str| {
            let before = result.split(label).next().filter(|before| before.len() < result.len());
            before.and_then(|text| text.split_whitespace().last()?.parse().ok()).unwrap_or(0)
        };
        self.passed += number(" passed");
        self.failed += number(" failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_cargos_closing_lines() {
        let mut count = Count::default();
        count.see("running 3 tests");
        count.see("test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured");
        count.see("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured");
        assert_eq!((count.passed, count.failed), (19, 1));
    }
}

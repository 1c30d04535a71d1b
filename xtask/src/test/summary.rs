//! What came of a test run: a line a job, where the time went, and what was slow.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Report;
use super::schedule::{Done, Verdict};
use crate::process::Stat;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// How many plays of golden scenarios may be repeated in a run. None is, unless a machine is so busy that
/// plays get a tenth of the processor they need; what is repeated in two runs is a bug.
const MOST_REPEATED: usize = 1;

pub(super) struct Summary {
    start: Instant,
    /// The processor time of the build that came before.
    before: Option<Duration>,
    lines: Vec<String>,
    failed: Vec<String>,
    passed_tests: usize,
    failed_tests: usize,
    /// How long each test took, with its program.
    times: Vec<(Duration, String)>,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            before: Stat::of("self").map(|stat| stat.children),
            lines: Vec::new(),
            failed: Vec::new(),
            passed_tests: 0,
            failed_tests: 0,
            times: Vec::new(),
        }
    }

    /// Takes in what came of a job; gives the line that tells of it.
    pub(super) fn add(&mut self, done: &Done<Report>) -> String {
        let Done { name, began, took, worked, result } = done;
        let verdict = match result {
            Verdict::Succeeded(Report::Checked(report)) => format!("ok      {}", gist(report)),
            Verdict::Succeeded(Report::Built(programs)) => {
                format!("ok      {} test programs", programs.len())
            }
            Verdict::Succeeded(Report::Tested(tests)) => {
                self.passed_tests += tests.passed;
                let times = tests.times.iter();
                self.times.extend(times.map(|(test, took)| (*took, format!("{name}: {test}"))));
                format!("ok      {} tests passed", tests.passed)
            }
            Verdict::Failed(error) => {
                let tests = error.downcast_ref::<super::libtest::Failed>();
                self.passed_tests += tests.map_or(0, |tests| tests.passed);
                self.failed_tests += tests.map_or(0, |tests| tests.failed);
                self.failed.push(name.clone());
                format!("FAILED  {}", gist(&format!("{error:#}")))
            }
            Verdict::NotRun(missing) => {
                self.failed.push(name.clone());
                format!("NOT RUN without {missing}")
            }
        };
        let (began, took, worked) = (began.as_secs(), took.as_secs(), worked.as_secs());
        let line = format!("{name:<22} {began:>5} s + {took:>4} s {worked:>5} s  {verdict}");
        self.lines.push(line.clone());
        line
    }

    /// Jobs that failed, or that could not run because another one failed.
    pub(super) fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Too many plays that had to be repeated are a failure: they tell of a race, of ours or of the player's.
    fn judge_plays(&mut self, plays: &str) {
        // A line each; indented ones tell what differed.
        let repeated = plays.lines().filter(|line| !line.starts_with(' ')).count();
        if repeated > MOST_REPEATED {
            println!("{repeated} were repeated, and {MOST_REPEATED} may be");
            self.failed.push("repeated plays".to_owned());
        }
    }

    /// Prints everything.
    pub(super) fn print(&mut self, plays: &Path, coverage: &Path, cores: usize) -> Result<()> {
        let took = self.start.elapsed();
        let seconds = took.as_secs();
        println!("\n==> summary, after {} min {} s", seconds / 60, seconds % 60);
        println!("{:<22} {:>5}     {:>4}   {:>7}", "", "began", "took", "worked");
        for line in &self.lines {
            println!("{line}");
        }
        self.times.sort_unstable_by_key(|(took, _)| std::cmp::Reverse(*took));
        if !self.times.is_empty() {
            println!("\nslowest tests");
        }
        for (took, test) in self.times.iter().take(SLOWEST) {
            println!("{:>7.1} s  {test}", took.as_secs_f64());
        }
        if let (Some(before), Some(after)) = (self.before, Stat::of("self")) {
            let worked = after.children - before;
            let share = worked.as_secs_f64() / took.as_secs_f64() / cores as f64;
            println!(
                "\n{} s of processor time: {:.0} % of {cores} cores",
                worked.as_secs(),
                share * 100.0
            );
        }
        if coverage.exists() {
            print_coverage(coverage)?;
        }
        if plays.exists() {
            let plays = fs::read_to_string(plays)?;
            println!("\nplays of golden scenarios that were repeated:\n{plays}");
            self.judge_plays(&plays);
        }
        println!("\n{} passed, {} failed", self.passed_tests, self.failed_tests);
        Ok(())
    }
}

/// What each test of the simulation has tried.
fn print_coverage(folder: &Path) -> Result<()> {
    let mut files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        print!("\n{}: {}", file.file_name().display(), fs::read_to_string(file.path())?);
    }
    Ok(())
}

/// The first line of a report; of a table, whose heading says nothing alone, that it is one.
fn gist(report: &str) -> &str {
    let mut lines = report.lines();
    match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => "within budget",
        (Some(line), None) => line.trim(),
        (None, _) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_too_many_repeated_plays_has_failed() {
        let mut summary = Summary::new();
        let play = "d-create on a PC: events\n    - [2]: {}\n    + [3]: {}\n";
        summary.judge_plays(&play.repeat(MOST_REPEATED));
        assert!(summary.failed().is_empty());
        summary.judge_plays(&play.repeat(MOST_REPEATED + 1));
        assert_eq!(summary.failed(), ["repeated plays"]);
    }
}

//! `cargo xtask test`: all gates, all tests, one summary.
//!
//! Everything is a job of the [schedule]: gates and builds are this program again, with one command;
//! the [test programs](programs) are built once and run side by side, those that wait beside those
//! that work. What a job says is in `target/test-run`, and is shown if it fails.

mod libtest;
mod plan;
mod programs;
mod schedule;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{process, workspace};
use libtest::Tests;
pub(crate) use plan::Selection;
use plan::{Step, Work};
use programs::Program;
use schedule::{Done, Job, Lane, Verdict};
use summary::Summary;

/// What a job has to tell when it has succeeded.
enum Report {
    /// A check: what it found to be so.
    Checked(String),
    /// The test programs are built.
    Built(Vec<Program>),
    /// A test program has run.
    Tested(Tests),
}

/// Runs everything, or what is selected.
pub(crate) fn run(selection: &Selection) -> Result<()> {
    let mut summary = Summary::new();
    let run = Run::new(selection)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let steps = selection.steps();
    let jobs = steps.iter().map(|step| run.step(*step)).collect();
    schedule::run(
        jobs,
        cores,
        |name| println!("  …  {name}"),
        |done| run.ended(done, &mut summary),
    );
    summary.print(&run.plays, &run.coverage, cores)?;
    let failed = summary.failed();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

/// One run of the tests.
struct Run<'a> {
    selection: &'a Selection,
    /// For a log of each job.
    folder: PathBuf,
    /// Where plays of golden scenarios write that they had to be repeated.
    plays: PathBuf,
    /// Where tests of the simulation write what they have tried, a file each.
    coverage: PathBuf,
}

impl<'a> Run<'a> {
    fn new(selection: &'a Selection) -> Result<Self> {
        let folder = workspace::target().join("test-run");
        // What the last run has left would be taken for this one's.
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot remove the logs of the last run")?;
        }
        fs::create_dir_all(&folder)?;
        let folder = fs::canonicalize(folder)?;
        let (plays, coverage) = (folder.join("plays"), folder.join("coverage"));
        Ok(Self { selection, folder, plays, coverage })
    }

    /// The job of a step.
    fn step(&self, step: Step) -> Job<Report> {
        let log = self.log(step.name);
        let uses_built = step.needs.contains(&"build") || step.needs.contains(&"images");
        let work: Box<dyn FnOnce() -> Result<Report> + Send> = match step.work {
            Work::Command(words) => Box::new(move || command(step.lane, words, uses_built, &log)),
            Work::Build(words) => Box::new(move || programs::build(words, &log).map(Report::Built)),
            Work::BuildApart(words) => Box::new(move || {
                programs::build_apart(words, &log).map(|(tests, _)| Report::Built(tests))
            }),
            Work::Test(words) => Box::new(move || cargo_test(words, &log).map(Report::Tested)),
        };
        Job { name: step.name.to_owned(), lane: step.lane, needs: step.needs.to_vec(), work }
    }

    /// The job of a test program.
    fn program(&self, program: Program, filter: Option<String>) -> Job<Report> {
        let log = self.log(&program.name);
        let mut command = program.command();
        command.env("PICOKUBE_PLAYS", &self.plays).env("PICOKUBE_COVERAGE", &self.coverage);
        let Program { name, lane, threads, needs, .. } = program;
        let work = move || {
            libtest::run(&mut command, threads, filter.as_deref(), &log).map(Report::Tested)
        };
        Job { name, lane, needs: needs.to_vec(), work: Box::new(work) }
    }

    /// Tells how a job ended; gives what is to be done now.
    fn ended(&self, done: Done<Report>, summary: &mut Summary) -> Vec<Job<Report>> {
        if let Verdict::Failed(error) = &done.result {
            show(&self.log(&done.name));
            println!("{} failed: {error:#}", done.name);
        }
        println!("{}", summary.add(&done));
        if let Verdict::Succeeded(Report::Checked(table)) = &done.result
            && table.lines().count() > 1
        {
            println!("{table}");
        }
        let Verdict::Succeeded(Report::Built(programs)) = done.result else { return Vec::new() };
        let chosen = programs.into_iter().filter_map(|program| {
            let filter = self.selection.filter(&program)?;
            Some(self.program(program, filter))
        });
        chosen.collect()
    }

    fn log(&self, job: &str) -> PathBuf {
        self.folder.join(format!("{job}.log"))
    }
}

/// Runs this program with another command.
fn command(lane: Lane, words: &[&str], uses_built: bool, log: &Path) -> Result<Report> {
    let mut command = lane.command(&std::env::current_exe()?);
    if uses_built {
        command.env(workspace::BUILT, programs::built());
    }
    let mut said = Vec::new();
    process::run_logged(command.args(words), log, |line| said.push(line.trim_end().to_owned()))?;
    Ok(Report::Checked(said.join("\n")))
}

/// Runs tests that only cargo can run.
fn cargo_test(words: &[&[&str]], log: &Path) -> Result<Tests> {
    let mut tests = Tests::default();
    // With what the other tests were built with: nothing is built anew.
    let mut cargo = programs::cargo(words);
    process::run_logged(crate::gates::with_clippy(&mut cargo), log, |line| tests.see(line))?;
    Ok(tests)
}

/// Shows a log.
fn show(log: &Path) {
    match fs::read(log) {
        Ok(log) => println!("{}", String::from_utf8_lossy(&log)),
        Err(error) => println!("cannot read {}: {error}", log.display()),
    }
}

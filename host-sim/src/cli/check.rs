//! `picokube check`: runs of the deterministic simulation, and the story of one that fails.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::sim::{self, Outcome, Plan, Violation, Workload};

use super::{CheckOptions, WorkloadOption};

/// Lines of the story of a failure.
const STORY: usize = 25;
/// Lines of a trace that are kept for `--trace` and pictures.
const WHOLE_TRACE: usize = 1_000_000;
/// How often a plan is run to make it smaller.
const SHRINKING_RUNS: usize = 400;
const REFRESH: Duration = Duration::from_millis(500);

pub(super) fn check(options: &CheckOptions) -> Result<()> {
    match options.seed {
        Some(seed) => check_one(options, seed),
        None => check_many(options),
    }
}

fn plan(options: &CheckOptions, seed: u64) -> Plan {
    match (options.deployments, options.workload) {
        (Some(deployments), _) => Plan::of_deployments(seed, usize::from(deployments)),
        (None, Some(workload)) => Plan::of_workload(seed, workload.into()),
        (None, None) => Plan::from_seed(seed),
    }
}

impl From<WorkloadOption> for Workload {
    fn from(option: WorkloadOption) -> Self {
        match option {
            WorkloadOption::Deployments => Self::Deployments,
            WorkloadOption::StatefulSets => Self::StatefulSets,
            WorkloadOption::Both => Self::Both,
        }
    }
}

/// One seed, with everything that can be said about it.
fn check_one(options: &CheckOptions, seed: u64) -> Result<()> {
    let plan = plan(options, seed);
    let begun = Instant::now();
    let outcome = sim::run(&plan, WHOLE_TRACE);
    let took = begun.elapsed();
    if options.trace {
        let mut out = std::io::stdout().lock();
        for line in outcome.trace.lines() {
            // Who has had enough closes the pipe.
            if writeln!(out, "{line}").is_err() {
                break;
            }
        }
    }
    if let Some(path) = &options.picture {
        draw(path, &plan, &outcome)?;
    }
    println!(
        "seed {seed}: {} requests, {} events, {} faults, {} boots in {:.0} s of simulated time, \
         {:.0} ms; trace {:016x}",
        outcome.counts.requests,
        outcome.counts.events,
        outcome.counts.faults,
        outcome.counts.boots,
        outcome.lasted.as_secs_f64(),
        took.as_secs_f64() * 1000.0,
        outcome.trace.hash(),
    );
    match &outcome.violation {
        None => Ok(()),
        Some(violation) => {
            tell(options, &plan, &outcome, violation);
            bail!("seed {seed} violates: {}", violation.property)
        }
    }
}

fn draw(path: &Path, plan: &Plan, outcome: &Outcome) -> Result<()> {
    std::fs::write(path, sim::picture(plan, outcome))
        .with_context(|| format!("cannot write the picture to {}", path.display()))?;
    eprintln!("picture: {}", path.display());
    Ok(())
}

/// What many runs have come to.
#[derive(Default)]
struct Tally {
    runs: u64,
    simulated_secs: f64,
    requests: u64,
    events: u64,
    faults: u64,
    boots: u64,
    converged: Vec<f32>,
    failed: Vec<u64>,
}

/// Many seeds, on all cores, until the first that fails.
fn check_many(options: &CheckOptions) -> Result<()> {
    let (first, count) = (options.from, options.seeds);
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let begun = Instant::now();
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - first >= count {
                        return;
                    }
                    let outcome = sim::run(&plan(options, seed), 0);
                    let mut tally = tally.lock().unwrap_or_else(|error| error.into_inner());
                    tally.add(seed, &outcome);
                    if !tally.failed.is_empty() {
                        // Nobody begins another one.
                        next.store(first.saturating_add(count), Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| show_progress(&tally, count, begun));
    });
    let mut tally = tally.into_inner().unwrap_or_else(|error| error.into_inner());
    print!("{}", tally.table(begun.elapsed(), jobs));
    tally.failed.sort_unstable();
    let Some(&seed) = tally.failed.first() else { return Ok(()) };
    let plan = plan(options, seed);
    let outcome = sim::run(&plan, STORY);
    if let Some(violation) = &outcome.violation {
        tell(options, &plan, &outcome, violation);
    }
    bail!("seed {seed} fails")
}

/// A line that is written over and over in a terminal, and now and then elsewhere.
fn show_progress(tally: &Mutex<Tally>, count: u64, begun: Instant) {
    let is_terminal = std::io::stderr().is_terminal();
    let every = if is_terminal { REFRESH } else { Duration::from_secs(30) };
    let mut shown = Instant::now();
    loop {
        std::thread::sleep(REFRESH.min(Duration::from_millis(100)));
        let tally = tally.lock().unwrap_or_else(|error| error.into_inner());
        let is_over = tally.runs >= count || !tally.failed.is_empty();
        if shown.elapsed() >= every && !is_over {
            shown = Instant::now();
            let line = progress(&tally, count, begun.elapsed());
            let (start, end) = if is_terminal { ("\r\x1b[K", "") } else { ("", "\n") };
            eprint!("{start}{line}{end}");
        }
        if is_over {
            if is_terminal {
                eprint!("\r\x1b[K");
            }
            return;
        }
    }
}

fn progress(tally: &Tally, count: u64, elapsed: Duration) -> String {
    const WIDTH: u64 = 30;
    let done = (tally.runs * WIDTH).checked_div(count).unwrap_or(WIDTH).min(WIDTH) as usize;
    let bar = format!("{}{}", "#".repeat(done), "-".repeat(WIDTH as usize - done));
    let seconds = elapsed.as_secs_f64().max(1e-9);
    format!(
        "[{bar}] {} of {count} seeds, {:.0} runs/s, {:.1} simulated hours, {:.0}x real time",
        tally.runs,
        tally.runs as f64 / seconds,
        tally.simulated_secs / 3600.0,
        tally.simulated_secs / seconds,
    )
}

impl Tally {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.runs += 1;
        self.simulated_secs += outcome.lasted.as_secs_f64();
        self.requests += outcome.counts.requests;
        self.events += outcome.counts.events;
        self.faults += outcome.counts.faults;
        self.boots += outcome.counts.boots;
        self.converged.extend(outcome.converged_after.map(|after| after.as_secs_f64() as f32));
        if outcome.violation.is_some() {
            self.failed.push(seed);
        }
    }

    fn table(&mut self, elapsed: Duration, jobs: usize) -> String {
        self.converged.sort_by(f32::total_cmp);
        let quantile = |percent: usize| {
            let last = self.converged.len().saturating_sub(1);
            let at = (self.converged.len() * percent / 100).min(last);
            self.converged.get(at).map_or("-".to_owned(), |seconds| format!("{seconds:.1} s"))
        };
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let speed = self.simulated_secs / seconds / jobs as f64;
        let rows = [
            ("seeds", self.runs.to_string()),
            ("violations", self.failed.len().to_string()),
            ("simulated time", format!("{:.1} h", self.simulated_secs / 3600.0)),
            ("real time", format!("{seconds:.1} s on {jobs} cores")),
            ("speed", format!("{speed:.0}x real time per core")),
            ("requests of controllers", self.requests.to_string()),
            ("events of watches", self.events.to_string()),
            ("faults that struck", self.faults.to_string()),
            ("boots of controllers", self.boots.to_string()),
            ("as desired after (median)", quantile(50)),
            ("as desired after (99 %)", quantile(99)),
            ("as desired after (longest)", quantile(100)),
        ];
        rows.iter().fold(String::new(), |mut table, (name, value)| {
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{name:<28}{value}");
            table
        })
    }
}

/// The story of a failure: what was violated, what led to it, how to see it again, and the least
/// that is needed for it.
fn tell(options: &CheckOptions, plan: &Plan, outcome: &Outcome, violation: &Violation) {
    let seed = plan.seed;
    println!("\nVIOLATED: {}\n  at {} s: {}", violation.property, violation.at, violation.detail);
    println!("\nThe last that happened:");
    let lines: Vec<_> = outcome.trace.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(STORY)) {
        println!("  {line}");
    }
    let size = options.deployments.map_or(String::new(), |n| format!(" --deployments {n}"));
    let workload = options.workload.as_ref().and_then(clap::ValueEnum::to_possible_value);
    let workload = workload.map_or(String::new(), |it| format!(" --workload {}", it.get_name()));
    println!("\nTo see all of it:\n  picokube check --seed {seed}{size}{workload} --trace");
    if options.no_shrink {
        return;
    }
    eprintln!("\nlooking for the least that still fails ...");
    let shrunk = sim::shrink(plan, violation.property, STORY, SHRINKING_RUNS, |_| {});
    println!("\nThe least that still fails ({} runs to find it):", shrunk.runs);
    for action in &shrunk.plan.actions {
        println!("  {:?}: {:?}", action.when, action.what);
    }
    for fault in &shrunk.plan.faults {
        println!("  {:?}: {}", fault.when, fault.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_how_far_and_how_fast() {
        let tally = Tally { runs: 50, simulated_secs: 7200.0, ..Tally::default() };
        let line = progress(&tally, 100, Duration::from_secs(2));
        assert!(line.starts_with("[###############---------------] 50 of 100 seeds, 25 runs/s"));
        assert!(line.ends_with("2.0 simulated hours, 3600x real time"), "{line}");
    }

    #[test]
    fn the_table_has_the_longest_convergence() {
        let mut tally = Tally { converged: vec![3.0, 1.0, 2.0], runs: 3, ..Tally::default() };
        let table = tally.table(Duration::from_secs(1), 2);
        assert!(table.contains("as desired after (longest)  3.0 s"), "{table}");
    }
}

//! `picokube check`: runs of the deterministic simulation, and the story of those that fail.

mod options;
mod page;
mod report;
mod tale;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::sim::{self, Outcome, Plan, Tally};

pub(super) use options::CheckOptions;
use tale::{Tale, WHOLE_TRACE};

const REFRESH: Duration = Duration::from_millis(500);
/// Of so many failures the story is told.
const MOST_TALES: usize = 10;

/// Whether all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Held,
    Violated,
}

/// Runs what was asked for. 0 if everything held, 1 if not, 2 if it could not be tried or told.
pub(super) fn check(options: &CheckOptions) -> ExitCode {
    let verdict = match (options.seed, &options.plan) {
        (Some(seed), _) => check_one(options, &options.plan(seed)),
        (None, Some(file)) => read(file).and_then(|plan| check_one(options, &plan)),
        (None, None) => check_many(options),
    };
    match verdict {
        Ok(Verdict::Held) => ExitCode::SUCCESS,
        Ok(Verdict::Violated) => ExitCode::from(1),
        Err(error) => {
            eprintln!("picokube: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn read(file: &Path) -> Result<Plan> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Plan::from_text(&text).with_context(|| format!("cannot use {}", file.display()))
}

/// One plan, with everything that can be said about it.
fn check_one(options: &CheckOptions, plan: &Plan) -> Result<Verdict> {
    let seed = plan.seed;
    let begun = Instant::now();
    let outcome = sim::run(plan, WHOLE_TRACE);
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
        draw(path, plan, &outcome)?;
    }
    say!(
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
    let Some(violation) = &outcome.violation else { return Ok(Verdict::Held) };
    if let Some(tale) = Tale::of(plan, options.repeat(seed), !options.no_shrink) {
        say!("\n{}", tale.text().trim_end());
        keep(options, std::slice::from_ref(&tale))?;
    }
    eprintln!("picokube: seed {seed} violates: {}", violation.property);
    Ok(Verdict::Violated)
}

fn draw(path: &Path, plan: &Plan, outcome: &Outcome) -> Result<()> {
    write(path, &sim::picture(plan, outcome))?;
    eprintln!("picture: {}", path.display());
    Ok(())
}

/// Keeps the plans of what has failed, if that was asked for.
fn keep(options: &CheckOptions, tales: &[Tale]) -> Result<()> {
    let Some(directory) = options.keep.as_ref().filter(|_| !tales.is_empty()) else {
        return Ok(());
    };
    let made = std::fs::create_dir_all(directory);
    made.with_context(|| format!("cannot make {}", directory.display()))?;
    for tale in tales {
        let path = directory.join(format!("seed-{}.json", tale.seed));
        write(&path, &tale.plan.to_text())?;
        eprintln!("kept: picokube check --plan {}", path.display());
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Many seeds, on all cores, until the first that fails, or all of them.
fn check_many(options: &CheckOptions) -> Result<Verdict> {
    // Whoever waits for a report hears at once that there will be none.
    for path in [&options.junit, &options.html].into_iter().flatten() {
        write(path, "")?;
    }
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
                    let started = Instant::now();
                    let outcome = sim::run(&options.plan(seed), 0);
                    let mut tally = tally.lock().unwrap_or_else(|error| error.into_inner());
                    tally.add(seed, &outcome, started.elapsed());
                    if !tally.failed.is_empty() && !options.keep_going {
                        // Nobody begins another one.
                        next.store(first.saturating_add(count), Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| show_progress(&tally, options, begun));
    });
    let mut tally = tally.into_inner().unwrap_or_else(|error| error.into_inner());
    tally.sort();
    tell(options, &tally, begun.elapsed(), jobs)
}

/// Says what came of it, in all the ways that were asked for.
fn tell(options: &CheckOptions, tally: &Tally, elapsed: Duration, jobs: usize) -> Result<Verdict> {
    let failures = tally.failed.iter().take(MOST_TALES);
    let tales: Vec<Tale> = failures
        .filter_map(|it| {
            Tale::of(&options.plan(it.seed), options.repeat(it.seed), !options.no_shrink)
        })
        .collect();
    if options.json {
        say!("{:#}", report::json(tally, &tales, elapsed, jobs));
    } else {
        say!("{}", tally.table(elapsed, jobs).trim_end());
        tales.iter().for_each(|tale| say!("\n{}", tale.text().trim_end()));
    }
    keep(options, &tales)?;
    if let Some(path) = &options.junit {
        write(path, &report::junit(tally, &tales, elapsed))?;
    }
    if let Some(path) = &options.html {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let command = format!("picokube {}", command.join(" "));
        write(path, &page::page(tally, &tales, &command, elapsed, jobs))?;
    }
    let seeds: Vec<String> = tally.failed.iter().map(|it| it.seed.to_string()).collect();
    match &seeds[..] {
        [] => return Ok(Verdict::Held),
        [seed] => eprintln!("picokube: seed {seed} fails"),
        _ => eprintln!("picokube: {} seeds fail: {}", seeds.len(), seeds.join(", ")),
    }
    Ok(Verdict::Violated)
}

/// A line that is written over and over in a terminal, and now and then elsewhere.
fn show_progress(tally: &Mutex<Tally>, options: &CheckOptions, begun: Instant) {
    let count = options.seeds;
    let is_terminal = std::io::stderr().is_terminal();
    let every = if is_terminal { REFRESH } else { Duration::from_secs(30) };
    let mut shown = Instant::now();
    loop {
        std::thread::sleep(REFRESH.min(Duration::from_millis(100)));
        let tally = tally.lock().unwrap_or_else(|error| error.into_inner());
        let has_failed = !tally.failed.is_empty() && !options.keep_going;
        let is_over = tally.runs >= count || has_failed;
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
    let failed = match tally.failed.len() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!(
        "[{bar}] {} of {count} seeds{failed}, {:.0} runs/s, {:.1} simulated hours, {:.0}x real time",
        tally.runs,
        tally.runs as f64 / seconds,
        tally.simulated_secs / 3600.0,
        tally.simulated_secs / seconds,
    )
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
}

//! Runs jobs side by side: each when what it needs is there and its lane has room.
//!
//! A job is a piece of work with a name. What it prints goes to its own log, so that jobs do not talk
//! into each other's sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::process;

/// What a job has to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Takes next to nothing.
    Light,
    /// cargo in the host's target directory, which it locks.
    Host,
    /// cargo in the firmware's target directories.
    Embedded,
    /// Keeps a core busy.
    Core,
    /// Mostly waits.
    Waiting,
    /// Is held to what happens in real time: of what waits, nothing runs beside it.
    RealTime,
}

impl Lane {
    /// How many of its jobs run at a time, on a machine with so many cores.
    fn width(self, cores: usize) -> usize {
        match self {
            Self::Light => usize::MAX,
            Self::Host | Self::Embedded | Self::RealTime => 1,
            Self::Core => cores,
            Self::Waiting => 4 * cores,
        }
    }

    /// Runs a program. What waits goes first, so that what it waits for is not late because of us.
    pub(super) fn command(self, program: &Path) -> Command {
        match self {
            Self::Waiting | Self::RealTime => Command::new(program),
            Self::Light | Self::Host | Self::Embedded | Self::Core => process::patient(program),
        }
    }

    /// What it does not run beside.
    fn disturbs(self) -> Option<Self> {
        match self {
            Self::Waiting => Some(Self::RealTime),
            Self::RealTime => Some(Self::Waiting),
            Self::Light | Self::Host | Self::Embedded | Self::Core => None,
        }
    }
}

/// A piece of work.
pub(super) struct Job<T> {
    pub(super) name: String,
    pub(super) lane: Lane,
    /// Jobs that must have succeeded before. One that is not there counts as done.
    pub(super) needs: Vec<&'static str>,
    pub(super) work: Box<dyn FnOnce() -> Result<T> + Send>,
}

/// A job that has ended.
pub(super) struct Done<T> {
    pub(super) name: String,
    /// When it began, since all of them did.
    pub(super) began: Duration,
    pub(super) took: Duration,
    /// The processor time of the programs that it has run.
    pub(super) worked: Duration,
    pub(super) result: Verdict<T>,
}

/// How a job ended.
pub(super) enum Verdict<T> {
    Succeeded(T),
    Failed(anyhow::Error),
    /// What it needs has failed: that job's name.
    NotRun(String),
}

/// Runs all jobs, earlier ones first where there is a choice. `ended` hears of each that has ended, and
/// may give more.
pub(super) fn run<T: Send>(
    jobs: Vec<Job<T>>,
    cores: usize,
    mut began: impl FnMut(&str),
    mut ended: impl FnMut(Done<T>) -> Vec<Job<T>>,
) {
    let start = Instant::now();
    let mut waiting = jobs;
    let mut busy = BTreeMap::<Lane, usize>::new();
    let mut failed = BTreeSet::new();
    thread::scope(|scope| {
        let (sender, finished) = channel();
        let mut running = BTreeSet::new();
        loop {
            while let Some(at) = next(&waiting, &running, &busy, &failed, cores) {
                let Job { name, lane, needs, work } = waiting.remove(at);
                if let Some(missing) = needs.iter().find(|need| failed.contains(**need)) {
                    let result = Verdict::NotRun((*missing).to_owned());
                    failed.insert(name.clone());
                    let (began, took, worked) = (start.elapsed(), Duration::ZERO, Duration::ZERO);
                    waiting.extend(ended(Done { name, began, took, worked, result }));
                    continue;
                }
                began(&name);
                *busy.entry(lane).or_default() += 1;
                running.insert(name.clone());
                let sender = sender.clone();
                scope.spawn(move || {
                    let began = start.elapsed();
                    let result = match panic::catch_unwind(AssertUnwindSafe(work)) {
                        Ok(Ok(report)) => Verdict::Succeeded(report),
                        Ok(Err(error)) => Verdict::Failed(error),
                        Err(_) => Verdict::Failed(anyhow!("it panicked")),
                    };
                    let took = start.elapsed() - began;
                    // Every job has a thread of its own.
                    let worked = process::processor_time();
                    // The other end outlives all jobs.
                    let _ = sender.send((lane, Done { name, began, took, worked, result }));
                });
            }
            if running.is_empty() {
                return;
            }
            let Ok((lane, done)) = finished.recv() else { return };
            running.remove(&done.name);
            busy.entry(lane).and_modify(|count| *count -= 1);
            if !matches!(done.result, Verdict::Succeeded(_)) {
                failed.insert(done.name.clone());
            }
            waiting.extend(ended(done));
        }
    });
}

/// The first job that can begin, or that never will.
fn next<T>(
    waiting: &[Job<T>],
    running: &BTreeSet<String>,
    busy: &BTreeMap<Lane, usize>,
    failed: &BTreeSet<String>,
    cores: usize,
) -> Option<usize> {
    let is_awaited =
        |need: &str| running.contains(need) || waiting.iter().any(|job| job.name == need);
    let is_ready = |job: &Job<T>| !job.needs.iter().any(|need| is_awaited(need));
    let is_real_time = |job: &Job<T>| job.lane == Lane::RealTime && is_ready(job);
    // Else there would always be something that waits.
    let real_time_is_due = waiting.iter().any(is_real_time);
    waiting.iter().position(|job| {
        let is_lost = job.needs.iter().any(|need| failed.contains(*need));
        let running = |lane: Lane| busy.get(&lane).copied().unwrap_or(0);
        let has_room = running(job.lane) < job.lane.width(cores)
            && job.lane.disturbs().is_none_or(|other| running(other) == 0)
            && !(job.lane == Lane::Waiting && real_time_is_due);
        is_lost || has_room && is_ready(job)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    fn job(
        name: &str,
        lane: Lane,
        needs: &[&'static str],
        work: impl FnOnce() -> Result<usize> + Send + 'static,
    ) -> Job<usize> {
        Job { name: name.to_owned(), lane, needs: needs.to_vec(), work: Box::new(work) }
    }

    /// The names of jobs in the order in which they ended, with what became of them.
    fn verdicts(jobs: Vec<Job<usize>>) -> Vec<String> {
        let mut told = Vec::new();
        run(
            jobs,
            2,
            |_| {},
            |done| {
                told.push(match done.result {
                    Verdict::Succeeded(_) => format!("{} ok", done.name),
                    Verdict::Failed(_) => format!("{} failed", done.name),
                    Verdict::NotRun(missing) => format!("{} without {missing}", done.name),
                });
                Vec::new()
            },
        );
        told
    }

    #[test]
    fn a_job_waits_for_what_it_needs_and_is_not_run_without() {
        let told = verdicts(vec![
            job("tests", Lane::Light, &["build"], || Ok(1)),
            job("build", Lane::Host, &[], || Ok(1)),
            job("run", Lane::Light, &["images"], || Ok(1)),
            job("report", Lane::Light, &["run"], || Ok(1)),
            job("images", Lane::Host, &["build"], || bail!("no linker")),
            job("alone", Lane::Light, &["of another selection"], || Ok(1)),
        ]);
        let place = |what: &str| told.iter().position(|told| told == what).expect(what);
        assert!(place("build ok") < place("tests ok"));
        assert!(place("images failed") < place("run without images"));
        assert!(place("run without images") < place("report without run"));
        assert!(told.contains(&"alone ok".to_owned()));
    }

    #[test]
    fn jobs_of_one_lane_run_as_wide_as_it_is() {
        static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let narrow = || {
            let now = AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1;
            MOST.fetch_max(now, Ordering::SeqCst);
            thread::yield_now();
            AT_ONCE.fetch_sub(1, Ordering::SeqCst);
            Ok(1)
        };
        let jobs = (0..20).map(|number| job(&number.to_string(), Lane::Host, &[], narrow));
        assert_eq!(verdicts(jobs.collect()).len(), 20);
        assert_eq!(MOST.load(Ordering::SeqCst), 1);
        // All eight have to be there at once to get any further.
        static ALL: Barrier = Barrier::new(8);
        let wide = || {
            ALL.wait();
            Ok(1)
        };
        let jobs = (0..8).map(|number| job(&number.to_string(), Lane::Waiting, &[], wide));
        assert_eq!(verdicts(jobs.collect()).len(), 8);
    }

    #[test]
    fn nothing_that_waits_runs_beside_what_is_held_to_real_time() {
        static WAITING: AtomicUsize = AtomicUsize::new(0);
        static REAL_TIME: AtomicUsize = AtomicUsize::new(0);
        let beside = |mine: &'static AtomicUsize, others: &'static AtomicUsize| {
            move || {
                mine.fetch_add(1, Ordering::SeqCst);
                let disturbed = (0..100).any(|_| {
                    thread::yield_now();
                    others.load(Ordering::SeqCst) > 0
                });
                mine.fetch_sub(1, Ordering::SeqCst);
                if disturbed { bail!("disturbed") } else { Ok(1) }
            }
        };
        let jobs = (0..40).map(|number| match number % 4 {
            0 => job(&number.to_string(), Lane::RealTime, &[], beside(&REAL_TIME, &WAITING)),
            _ => job(&number.to_string(), Lane::Waiting, &[], beside(&WAITING, &REAL_TIME)),
        });
        let told = verdicts(jobs.collect());
        assert_eq!(told.len(), 40);
        assert!(told.iter().all(|told| told.ends_with("ok")), "{told:?}");
    }

    #[test]
    fn a_job_that_has_ended_may_give_more() {
        let mut sum = 0;
        let first = vec![job("first", Lane::Light, &[], || Ok(1))];
        run(
            first,
            1,
            |_| {},
            |done| {
                let Verdict::Succeeded(number) = done.result else { return Vec::new() };
                sum += number;
                let more = (done.name == "first")
                    .then(|| job("second", Lane::Core, &["first"], || Ok(10)));
                more.into_iter().collect()
            },
        );
        assert_eq!(sum, 11);
    }
}

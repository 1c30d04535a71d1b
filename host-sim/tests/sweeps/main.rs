//! Systematic sweeps: every golden scenario in virtual time, struck at every point.
//!
//! A scenario is played without faults, which must come out as the recording of the real
//! controllers. Then it is played anew for every request of the controller, which dies before or
//! after it, and for every event of its watches, which is dropped, delayed or told again. Each
//! time all properties of the simulation must hold, and the end must be that of the run without
//! faults.
//!
//! Unless all is asked for, deaths that leave the same behind (see [`picokube::sim::Deaths`]) share
//! a run, and one event of twenty is struck: the commit, or `PICOKUBE_SWEEP`, chooses which.
//!
//! | variable | meaning |
//! |---|---|
//! | `PICOKUBE_SWEEP` | `all`: every point gets a run of its own; or the number of a turn |
//! | `PICOKUBE_SWEEP_ONLY` | names of scenarios, with commas between; `*` at the end for all that begin so |
//! | `PICOKUBE_SWEEP_BLOWS` | some of `kill-before,kill-after,drop,delay,rewind` |
//! | `PICOKUBE_SWEEP_POINT` | one point, such as `kill-after:17`: its whole trace is printed |

#[path = "../support/commit.rs"]
mod commit;
mod ending;
mod point;
mod theatre;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use mimalloc::MiMalloc;
use picokube::sim::{Counts, Deaths, Outcome};
use picokube_golden::{Detail, RACES, Report, Scenario, directory};

use ending::Ending;
use point::{Blow, Point};

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What the controllers are there for.
const SWEPT: [&str; 5] = ["d-", "dt-", "rs-", "s-", "sg-"];

/// How many turns it takes to strike every event.
const TURNS: u64 = 20;

/// Facets that races decide which the simulation lets end otherwise: scenario and facet.
///
/// - The garbage collector is so quick that a pod is seen to go before its ReplicaSet is.
/// - Pods that go take no time, or come in another order, and ReplicaSets and StatefulSets tell so
///   more or less often.
const OTHER_RACES: [(&str, &str); 8] = [
    ("d-delete-background", "pod-order"),
    ("d-hash-collision", "pod-order"),
    ("dt-scale-down", "strict-Deployment"),
    ("dt-scale-down", "strict-ReplicaSet"),
    ("s-parallel", "strict-StatefulSet"),
    ("sg-max-unavailable-2", "pod-order"),
    ("sg-max-unavailable-pct-parallel", "strict-StatefulSet"),
    ("sg-max-unavailable-unhealthy", "pod-order"),
];

/// Enough for every line of a run.
const WHOLE_TRACE: usize = 1_000_000;

#[test]
fn whatever_strikes_a_scenario_ends_the_same() -> Result<()> {
    let scenarios = scenarios()?;
    if let Ok(point) = env::var("PICOKUBE_SWEEP_POINT") {
        let point = point.parse()?;
        return scenarios.iter().try_for_each(|scenario| show(scenario, point));
    }
    let choice = Choice::made()?;
    let begun = Instant::now();
    let acts: Vec<Result<Act>> = side_by_side(&scenarios, Act::rehearse);
    let acts: Vec<Act> = acts.into_iter().collect::<Result<_>>()?;
    let jobs: Vec<(&Act, Point)> = acts
        .iter()
        .flat_map(|act| act.chosen(choice).into_iter().map(move |point| (act, point)))
        .collect();
    let points: usize = acts.iter().map(|act| Point::all(&act.counts).count()).sum();
    eprintln!("{} scenarios with {points} points; {choice}: {} runs", acts.len(), jobs.len());
    let failures = side_by_side(&jobs, |(act, point)| act.failure(*point));
    let mut failed = BTreeMap::<&str, Vec<String>>::new();
    for ((act, point), failure) in jobs.iter().zip(failures) {
        if let Some(failure) = failure {
            failed.entry(&act.scenario.name).or_default().push(format!("{point}: {failure}"));
        }
    }
    eprint!("{}", table(&acts, choice, &failed));
    eprintln!("{} runs in {:.1} s", jobs.len(), begun.elapsed().as_secs_f64());
    let told: Vec<String> = failed.iter().map(|(name, all)| story(name, all)).collect();
    ensure!(told.is_empty(), "{}", told.concat());
    Ok(())
}

/// Which points get a run of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    All,
    /// One of the points at which the same is left behind, and the events whose turn it is.
    Turn(u64),
}

impl Choice {
    fn made() -> Result<Self> {
        if env::var("PICOKUBE_SWEEP").is_ok_and(|choice| choice == "all") {
            return Ok(Self::All);
        }
        let (turn, _) = commit::beginning("PICOKUBE_SWEEP");
        Ok(Self::Turn(turn % TURNS))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("PICOKUBE_SWEEP=all"),
            Self::Turn(turn) => write!(f, "PICOKUBE_SWEEP={turn}"),
        }
    }
}

/// A scenario, and what comes of it if nothing goes wrong.
struct Act {
    scenario: Arc<Scenario>,
    counts: Counts,
    deaths: Deaths,
    ending: Ending,
}

impl Act {
    /// Plays a scenario twice without faults: it must be the same run, and as recorded.
    fn rehearse(scenario: &Arc<Scenario>) -> Result<Self> {
        let name = &scenario.name;
        let (run, outcome) = theatre::play(scenario, Vec::new(), Detail::Everything)
            .with_context(|| name.clone())?;
        let (_, again) = theatre::play(scenario, Vec::new(), Detail::Ending)?;
        ensure!(again.trace.hash() == outcome.trace.hash(), "{name} is not the same run twice");
        let ending = Ending::of(scenario, &run);
        let mut report = Report::new(scenario, run);
        for (_, facet) in RACES.iter().chain(&OTHER_RACES).filter(|(race, _)| race == name) {
            report.let_go(facet);
        }
        ensure!(report.is_success(), "{report}");
        let Outcome { counts, deaths, .. } = outcome;
        Ok(Self { scenario: scenario.clone(), counts, deaths, ending })
    }

    fn chosen(&self, choice: Choice) -> Vec<Point> {
        let blows = env::var("PICOKUBE_SWEEP_BLOWS").ok();
        let is_asked_for = |point: &Point| {
            let mut names = blows.iter().flat_map(|blows| blows.split(','));
            blows.is_none() || names.any(|name| name == point.blow.name())
        };
        let points = Point::all(&self.counts).filter(is_asked_for);
        let Choice::Turn(turn) = choice else { return points.collect() };
        let mut known = BTreeSet::new();
        let (mut deaths, mut events): (Vec<Point>, Vec<Point>) =
            points.partition(|point| matches!(point.blow, Blow::KillBefore | Blow::KillAfter));
        deaths.retain(|death| death.leftover(&self.deaths).is_none_or(|left| known.insert(left)));
        // Not all sorts at the same event.
        events.retain(|point| (point.number + point.blow as u64 + turn).is_multiple_of(TURNS));
        deaths.into_iter().chain(events).collect()
    }

    /// What is wrong when the scenario is struck there.
    fn failure(&self, point: Point) -> Option<String> {
        let (run, outcome) =
            match theatre::play(&self.scenario, vec![point.fault()], Detail::Ending) {
                Ok(played) => played,
                Err(error) => return Some(format!("{error:#}")),
            };
        self.judge(&run, &outcome).err().map(|error| format!("{error:#}"))
    }

    fn judge(&self, run: &picokube_golden::report::Run, outcome: &Outcome) -> Result<()> {
        ensure!(outcome.counts.faults == 1, "{} faults have struck", outcome.counts.faults);
        ensure!(run.failures.is_empty(), "{}", run.failures.join("; "));
        let differences = self.ending.differences(&Ending::of(&self.scenario, run));
        ensure!(differences.is_empty(), "the end differs: {}", differences.join("; "));
        Ok(())
    }
}

/// One point of a scenario, line by line.
fn show(scenario: &Arc<Scenario>, point: Point) -> Result<()> {
    let act = Act::rehearse(scenario)?;
    let (run, outcome) =
        theatre::perform(scenario, vec![point.fault()], Detail::Ending, WHOLE_TRACE)?;
    outcome.trace.lines().for_each(|line| println!("{line}"));
    if let Some(violation) = &outcome.violation {
        bail!("{}: {}", violation.property, violation.detail);
    }
    act.judge(&run?, &outcome)
}

/// Does something to all of them, on all cores.
fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(index) else { return };
                    let result = work(one);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn scenarios() -> Result<Vec<Arc<Scenario>>> {
    let only = env::var("PICOKUBE_SWEEP_ONLY").unwrap_or("*".to_owned());
    let is_wanted = |name: &str| {
        let named = only.split(',').any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        });
        named && SWEPT.iter().any(|prefix| name.starts_with(prefix))
    };
    let scenarios = Scenario::load_all(&directory(), is_wanted)?;
    ensure!(!scenarios.is_empty(), "no scenario is called {only}");
    Ok(scenarios.into_iter().map(Arc::new).collect())
}

fn table(acts: &[Act], choice: Choice, failed: &BTreeMap<&str, Vec<String>>) -> String {
    let mut table =
        format!("{:<32}{:>9}{:>9}{:>9}{:>9}\n", "scenario", "requests", "events", "runs", "failed");
    for act in acts {
        let name = act.scenario.name.as_str();
        let (runs, failed) = (act.chosen(choice).len(), failed.get(name).map_or(0, Vec::len));
        let Counts { sent, events, .. } = act.counts;
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{name:<32}{sent:>9}{events:>9}{runs:>9}{failed:>9}");
    }
    table
}

/// The first failures of a scenario, and how to see them.
fn story(name: &str, failures: &[String]) -> String {
    let some: Vec<String> =
        failures.iter().take(12).map(|failure| format!("  {failure}\n")).collect();
    format!(
        "{name}: {} points fail\n{}  see: PICOKUBE_SWEEP_ONLY={name} PICOKUBE_SWEEP_POINT=... \
         cargo test -p picokube --profile simulation --test sweeps -- --nocapture\n",
        failures.len(),
        some.concat(),
    )
}

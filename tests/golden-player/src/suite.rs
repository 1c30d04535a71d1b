//! Many scenarios in one go: which ones, how often, and what came of all.
//!
//! | variable | meaning |
//! |---|---|
//! | `PICOKUBE_GOLDEN_ONLY` | names of scenarios, with commas between; `*` at the end for all that begin so |
//! | `PICOKUBE_GOLDEN_JOBS` | how many scenarios are played at a time |
//! | `PICOKUBE_GOLDEN_OUT` | a directory for what happened, in the form of recordings |
//! | `PICOKUBE_PLAYS` | a file to which a line is added for every play that was worth another try |

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Report, Scenario, Server};

/// How often a scenario is played in which nothing is wrong but a question of timing.
const TRIES: usize = 3;

/// How many lines of a facet that differs go into the note about a repeated play.
const WORTH_NOTING: usize = 6;

/// Scenarios, and what they are held to.
#[derive(Clone, Copy, Debug)]
pub struct Suite<'a> {
    /// Where the controllers are, for people.
    pub place: &'a str,
    /// Names or, with `*` at the end, beginnings of names.
    pub scenarios: &'a [&'a str],
    /// Which of them, where several suites play one each in turn.
    pub share: Share,
    /// Facets that scenarios are not held to: scenario, by name or beginning, and facet.
    pub let_go: &'a [(&'a str, &'a str)],
    /// Whether there are controllers of Deployments and ReplicaSets.
    pub has_controllers: bool,
    /// How many are played at a time, without `PICOKUBE_GOLDEN_JOBS`.
    pub jobs: usize,
}

/// Some of the scenarios; others play the rest.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which one, counted from zero.
    pub number: usize,
    /// Out of so many.
    pub of: usize,
}

impl Share {
    /// All of them.
    pub const ALL: Self = Self { number: 0, of: 1 };
}

impl Suite<'_> {
    /// Plays those that `PICOKUBE_GOLDEN_ONLY` names, or all. `start` starts what they are played
    /// against, if there are any.
    pub fn play<T>(&self, start: impl FnOnce() -> Result<(Server, T)>) -> Result<()> {
        let mut waiting = self.wanted()?;
        let count = waiting.len();
        if count == 0 {
            return Ok(());
        }
        let (server, _running) = start()?;
        let jobs = env::var("PICOKUBE_GOLDEN_JOBS").map_or(Ok(self.jobs), |jobs| jobs.parse());
        let jobs = jobs.context("PICOKUBE_GOLDEN_JOBS")?;
        let mut failures = BTreeMap::new();
        let mut spared = Spared::default();
        for attempt in 1..=TRIES {
            // Those that are played again have the machine to themselves.
            let jobs = if attempt == 1 { jobs } else { 1 };
            let is_last = attempt == TRIES;
            let round = Round { server: &server, jobs, is_last };
            let again = self.round(round, waiting.clone(), &mut failures, &mut spared)?;
            waiting.retain(|scenario| again.contains(&scenario.name));
        }
        let Spared { facets, same } = spared;
        eprintln!("{count} scenarios; of {facets} facets that were not held, {same} are the same");
        let told: Vec<String> = failures.into_values().collect();
        ensure!(told.is_empty(), "{} of {count} failed:\n{}", told.len(), told.join("\n"));
        Ok(())
    }

    fn wanted(&self) -> Result<Vec<Scenario>> {
        let only = env::var("PICOKUBE_GOLDEN_ONLY").unwrap_or("*".to_owned());
        let is_wanted = |name: &str| only.split(',').any(|pattern| matches(pattern, name));
        let mut scenarios = Scenario::load_all(&super::directory(), is_wanted)?;
        ensure!(!scenarios.is_empty(), "no scenario is called {only}");
        scenarios.retain(|one| self.scenarios.iter().any(|pattern| matches(pattern, &one.name)));
        let Share { number, of } = self.share;
        Ok(scenarios.into_iter().skip(number).step_by(of).collect())
    }

    /// Plays each once. Says which are worth another try; all others that went wrong are failures.
    fn round(
        &self,
        Round { server, jobs, is_last }: Round<'_>,
        scenarios: Vec<Scenario>,
        failures: &mut BTreeMap<String, String>,
        spared: &mut Spared,
    ) -> Result<BTreeSet<String>> {
        let out = env::var("PICOKUBE_GOLDEN_OUT").ok();
        let mut again = BTreeSet::new();
        super::run_all(server, scenarios, jobs, self.has_controllers, |name, report| {
            let report = report.map(|mut report| {
                let here = self.let_go.iter().filter(|(pattern, _)| matches(pattern, name));
                here.filter_map(|(_, facet)| report.let_go(facet))
                    .for_each(|same| spared.count(same));
                report
            });
            let told = match &report {
                Ok(report) => report.to_string(),
                Err(error) => format!("{name}: {error:#}"),
            };
            eprintln!("{told}");
            if let (Ok(report), Some(out)) = (&report, &out) {
                report.save(&Path::new(out).join(name)).expect("a directory to write to");
            }
            match report {
                Ok(report) if report.is_success() => {}
                Ok(report) if report.is_question_of_timing() && !is_last => {
                    note(&self.tell(&report)).expect("a file to write to");
                    again.insert(name.to_owned());
                }
                _ => {
                    failures.insert(name.to_owned(), told);
                }
            }
        })?;
        Ok(again)
    }

    /// Which play is repeated, and what was different: the cause is to be found, not only counted.
    fn tell(&self, report: &Report) -> String {
        let broken: Vec<&str> = report.broken_facets().map(|one| &*one.facet).collect();
        let first = format!("{} on {}: {}", report.scenario, self.place, broken.join(", "));
        let differences =
            report.broken_facets().flat_map(|one| one.differences.iter().take(WORTH_NOTING));
        std::iter::once(first)
            .chain(differences.map(|line| format!("    {line}")))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Counts a play that is repeated where the test run can see it: a line, and indented ones of what differed.
fn note(play: &str) -> Result<()> {
    let Some(plays) = env::var_os("PICOKUBE_PLAYS") else { return Ok(()) };
    let mut plays = OpenOptions::new().create(true).append(true).open(plays)?;
    // In one piece: other suites add to it, too.
    Ok(plays.write_all(format!("{play}\n").as_bytes())?)
}

/// How one round is played.
struct Round<'a> {
    server: &'a Server,
    jobs: usize,
    is_last: bool,
}

/// Facets that were let go, over all runs.
#[derive(Default)]
struct Spared {
    facets: usize,
    same: usize,
}

impl Spared {
    fn count(&mut self, is_same: bool) {
        self.facets += 1;
        self.same += usize::from(is_same);
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

//! What many runs have come to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::{Break, Fault, Outcome, Violation};

/// How many characters wide the table of what was tried may be.
const WIDTH: usize = 110;

/// What many runs have come to.
#[derive(Default)]
pub struct Tally {
    /// Seeds that were run.
    pub runs: u64,
    /// How long all of them lasted, in simulated time.
    pub simulated_secs: f64,
    /// Requests of controllers.
    pub requests: u64,
    /// Events of watches.
    pub events: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Boots of controllers.
    pub boots: u64,
    /// How many seconds it took until everything was as desired, where it became so.
    pub converged: Vec<f32>,
    /// Every seed, and how many seconds it took.
    pub seeds: Vec<(u64, f32)>,
    /// Seeds that violate a property.
    pub failed: Vec<Failure>,
    /// Faults that struck, by sort.
    pub struck: BTreeMap<&'static str, u64>,
    /// Changes of controllers that were judged, by what they did to which resource.
    pub judged: BTreeMap<(&'static str, &'static str), u64>,
}

/// A seed that violates a property.
pub struct Failure {
    /// Which.
    pub seed: u64,
    /// What does not hold.
    pub violation: Violation,
}

impl Tally {
    /// Takes in what a seed came to, and how long that took.
    pub fn add(&mut self, seed: u64, outcome: &Outcome, took: Duration) {
        self.runs += 1;
        self.simulated_secs += outcome.lasted.as_secs_f64();
        self.requests += outcome.counts.requests;
        self.events += outcome.counts.events;
        self.faults += outcome.counts.faults;
        self.boots += outcome.counts.boots;
        self.converged.extend(outcome.converged_after.map(|after| after.as_secs_f64() as f32));
        self.seeds.push((seed, took.as_secs_f32()));
        for (sort, count) in &outcome.struck {
            *self.struck.entry(sort).or_default() += count;
        }
        for (what, count) in &outcome.judged {
            *self.judged.entry(*what).or_default() += count;
        }
        if let Some(violation) = outcome.violation.clone() {
            self.failed.push(Failure { seed, violation });
        }
    }

    /// Brings what threads have added into order.
    pub fn sort(&mut self) {
        self.converged.sort_by(f32::total_cmp);
        self.seeds.sort_by_key(|(seed, _)| *seed);
        self.failed.sort_by_key(|failure| failure.seed);
    }

    /// Every sort of fault, and how often it struck; those of connections only where there are some.
    pub fn coverage(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let struck = |sort: &str| self.struck.get(sort).copied().unwrap_or(0);
        let sorts = Fault::one_of_each().into_iter().map(Fault::sort);
        let of_connections = Break::one_of_each().map(|it| Fault::Connections(it).sort());
        let of_connections = of_connections.into_iter().filter(move |sort| struck(sort) > 0);
        sorts.chain(of_connections).map(move |sort| (sort, struck(sort)))
    }

    /// What was tried: how often each sort of fault struck, and which changes of controllers were judged.
    pub fn tried(&self) -> String {
        let judged = self.judged.iter();
        let judged = judged.map(|((plural, done), count)| (format!("{plural}: {done}"), *count));
        format!(
            "{} seeds, {:.1} simulated hours; faults that struck\n\
             {}changes of controllers that were judged\n{}",
            self.runs,
            self.simulated_secs / 3600.0,
            columns(self.coverage().map(|(sort, count)| (sort.to_owned(), count))),
            columns(judged),
        )
    }

    /// How long it took until everything was as desired, in so many percent of the runs.
    pub fn converged_within(&self, percent: usize) -> Option<f32> {
        let last = self.converged.len().checked_sub(1)?;
        self.converged.get((self.converged.len() * percent / 100).min(last)).copied()
    }

    /// What there is to say, line by line.
    pub fn rows(&self, elapsed: Duration, jobs: usize) -> Vec<(&'static str, String)> {
        let within = |percent| {
            self.converged_within(percent)
                .map_or("-".to_owned(), |seconds| format!("{seconds:.1} s"))
        };
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let speed = self.simulated_secs / seconds / jobs as f64;
        vec![
            ("seeds", self.runs.to_string()),
            ("violations", self.failed.len().to_string()),
            ("simulated time", format!("{:.1} h", self.simulated_secs / 3600.0)),
            ("real time", format!("{seconds:.1} s on {jobs} cores")),
            ("speed", format!("{speed:.0}x real time per core")),
            ("requests of controllers", self.requests.to_string()),
            ("events of watches", self.events.to_string()),
            ("faults that struck", self.faults.to_string()),
            ("boots of controllers", self.boots.to_string()),
            ("changes that were judged", self.judged.values().sum::<u64>().to_string()),
            ("as desired after (median)", within(50)),
            ("as desired after (99 %)", within(99)),
            ("as desired after (longest)", within(100)),
        ]
    }

    /// The same as a table.
    pub fn table(&self, elapsed: Duration, jobs: usize) -> String {
        self.rows(elapsed, jobs).iter().fold(String::new(), |mut table, (name, value)| {
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{name:<28}{value}");
            table
        })
    }
}

/// Names and numbers, row by row in columns of equal width.
fn columns(entries: impl Iterator<Item = (String, u64)>) -> String {
    let entries: Vec<(String, u64)> = entries.collect();
    let name = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let number = entries.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    let of_row = |row: &[(String, u64)]| {
        let cells = row.iter().map(|(text, count)| format!("  {text:<name$} {count:>number$}"));
        cells.collect::<String>() + "\n"
    };
    let fitting = (WIDTH / (name + number + 3)).max(1);
    entries.chunks(fitting).map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_longest_convergence() {
        let mut tally = Tally { converged: vec![3.0, 1.0, 2.0], runs: 3, ..Tally::default() };
        tally.sort();
        let table = tally.table(Duration::from_secs(1), 2);
        assert!(table.contains("as desired after (longest)  3.0 s"), "{table}");
    }

    #[test]
    fn what_was_tried_stands_in_columns() {
        let judged = BTreeMap::from([(("pods", "created"), 12), (("replicasets", "scaled"), 3)]);
        let tally = Tally { runs: 2, judged, ..Tally::default() };
        let tried = tally.tried();
        assert!(tried.starts_with("2 seeds, 0.0 simulated hours; faults"), "{tried}");
        assert!(tried.ends_with("\n  pods: created       12  replicasets: scaled  3\n"), "{tried}");
        assert!(tried.lines().all(|line| line.chars().count() <= WIDTH), "{tried}");
    }

    #[test]
    fn every_sort_of_fault_is_listed_whether_it_struck_or_not() {
        let struck = BTreeMap::from([("link down", 3)]);
        let tally = Tally { struck, ..Tally::default() };
        let coverage: BTreeMap<_, _> = tally.coverage().collect();
        assert_eq!((coverage["link down"], coverage["request lost"]), (3, 0));
    }
}

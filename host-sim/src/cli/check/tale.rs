//! The story of a seed that fails: what was violated, what led to it, how to see it again, and the least
//! that is needed for it.

use std::fmt::Write as _;

use crate::sim::{self, Plan, Violation};

/// Lines of the story of a failure.
const STORY: usize = 25;
/// Lines of a trace that are kept for `--trace` and pictures.
pub(super) const WHOLE_TRACE: usize = 1_000_000;
/// How often a plan is run to make it smaller.
const SHRINKING_RUNS: usize = 400;

/// The story of a failure.
pub(super) struct Tale {
    pub(super) seed: u64,
    pub(super) violation: Violation,
    /// The last that happened.
    pub(super) last: Vec<String>,
    /// The command that shows all of it.
    pub(super) repeat: String,
    /// What users do and what breaks, as little as is needed; and how many runs it took to find that.
    pub(super) least: Option<(Vec<String>, usize)>,
    /// The least, or else all of it, to be run again.
    pub(super) plan: Plan,
    /// An SVG document.
    pub(super) picture: String,
}

impl Tale {
    /// Runs a plan once more and tells of it, if it fails; `shrinks` if the least is to be looked for.
    pub(super) fn of(plan: &Plan, repeat: String, shrinks: bool) -> Option<Self> {
        let outcome = sim::run(plan, WHOLE_TRACE);
        let violation = outcome.violation.clone()?;
        let before = outcome.trace.lines().count().saturating_sub(STORY);
        let last = outcome.trace.lines().skip(before).map(ToString::to_string).collect();
        let shrunk = shrinks.then(|| {
            eprintln!("looking for the least of seed {} that still fails ...", plan.seed);
            sim::shrink(plan, violation.property, 0, SHRINKING_RUNS, |_| {})
        });
        let least = shrunk.as_ref().map(|shrunk| {
            let actions =
                shrunk.plan.actions.iter().map(|it| format!("{:?}: {:?}", it.when, it.what));
            let faults = shrunk.plan.faults.iter().map(|it| format!("{:?}: {}", it.when, it.what));
            (actions.chain(faults).collect(), shrunk.runs)
        });
        let picture = sim::picture(plan, &outcome);
        let seed = plan.seed;
        let plan = shrunk.map_or_else(|| plan.clone(), |shrunk| shrunk.plan);
        Some(Self { seed, violation, last, repeat, least, plan, picture })
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        let Violation { property, detail, at } = &self.violation;
        let mut text =
            format!("VIOLATED: {property}\n  at {at} s: {detail}\n\nThe last that happened:\n");
        // Writing to a String cannot fail.
        for line in &self.last {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "\nTo see all of it:\n  {}", self.repeat);
        if let Some((least, runs)) = &self.least {
            let _ = writeln!(text, "\nThe least that still fails ({runs} runs to find it):");
            for line in least {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

//! The options of `picokube check`.

use std::path::PathBuf;

use clap::Args;

use crate::sim::{Plan, Protocol, Workload};

/// Options of `picokube check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    picokube check --seeds 10000                  ten thousand clusters, each with its own faults\n  \
    picokube check --seed 42 --trace              one of them, line by line\n  \
    picokube check --seed 42 --picture 42.svg     the same as a picture\n  \
    picokube check --seeds 20 --deployments 20    larger clusters\n  \
    picokube check --election --seeds 1000        managers of which one leads\n  \
    picokube check --driver http2 --seeds 1000    with the driver that is shipped, and its bytes\n  \
    picokube check --seeds 500 --keep-going --html report.html --junit report.xml\n  \
    \u{20}                                             all that fail, for people and for CI\n  \
    picokube check --seeds 500 --keep plans       the least of what fails, as plans\n  \
    picokube check --plan plans/seed-42.json      one of them\n\n\
    The real controllers and the real API server's rules run in virtual time, in one thread, with\n\
    a network, clocks and users that do their worst. The same seed is the same run, byte for byte.\n\
    Exit status: 0 if everything held, 1 if a property was violated, 2 if nothing could be tried.\n\
    See docs/reliability.md.")]
pub(in crate::cli) struct CheckOptions {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(super) from: u64,
    /// Run this seed alone
    #[arg(long, value_name = "SEED", group = "one", conflicts_with_all = ["seeds", "from"])]
    pub(super) seed: Option<u64>,
    /// Run the plan that this file holds
    #[arg(
        long,
        value_name = "FILE",
        group = "one",
        conflicts_with_all = ["seeds", "from", "workload", "deployments", "election"],
    )]
    pub(super) plan: Option<PathBuf>,
    /// Keep the least that still fails of each seed that fails, as a plan in this directory
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Show everything that happens
    #[arg(long, requires = "one")]
    pub(super) trace: bool,
    /// Draw what happens into an SVG file
    #[arg(long, value_name = "FILE", requires = "one")]
    pub(super) picture: Option<PathBuf>,
    /// What users work with [default: by the seed]
    #[arg(long, value_name = "WHAT")]
    pub(super) workload: Option<WorkloadOption>,
    /// Deployments of each cluster, which has no StatefulSets then [default: one to five]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=60),
        conflicts_with = "workload",
    )]
    pub(super) deployments: Option<u8>,
    /// Two or three managers of which one leads, with clocks that differ
    #[arg(long, conflicts_with_all = ["workload", "deployments"])]
    pub(super) election: bool,
    /// The driver that is shipped inside, over simulated connections: HTTP/1.1, or HTTP/2
    #[arg(long, value_name = "PROTOCOL", conflicts_with = "election")]
    pub(super) driver: Option<ProtocolOption>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) jobs: usize,
    /// Do not look for the least that still fails
    #[arg(long)]
    pub(super) no_shrink: bool,
    /// Go on after a seed that fails
    #[arg(long, conflicts_with = "one")]
    pub(super) keep_going: bool,
    /// Print what came of it as JSON
    #[arg(long, conflicts_with = "one")]
    pub(super) json: bool,
    /// Write a report for CI, one test case a seed
    #[arg(long, value_name = "FILE", conflicts_with = "one")]
    pub(super) junit: Option<PathBuf>,
    /// Write a page for people: what was tried, and what failed with picture and story
    #[arg(long, value_name = "FILE", conflicts_with = "one")]
    pub(super) html: Option<PathBuf>,
}

/// What users of simulated clusters work with.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum WorkloadOption {
    /// Deployments alone, without a StatefulSet controller
    Deployments,
    /// StatefulSets alone
    #[value(name = "statefulsets")]
    StatefulSets,
    /// Both
    Both,
}

/// What the driver that is shipped speaks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum ProtocolOption {
    /// A connection for each watch and for each request at a time
    Http1,
    /// One connection for all, without TLS
    Http2,
}

impl CheckOptions {
    /// The plan of a seed.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        let plan = self.plan_of_cluster(seed);
        match self.driver {
            Some(ProtocolOption::Http1) => plan.with_driver(Protocol::Http1),
            Some(ProtocolOption::Http2) => plan.with_driver(Protocol::Http2),
            None => plan,
        }
    }

    fn plan_of_cluster(&self, seed: u64) -> Plan {
        if self.election {
            return Plan::with_election(seed);
        }
        match (self.deployments, self.workload) {
            (Some(deployments), _) => Plan::of_deployments(seed, usize::from(deployments)),
            (None, Some(workload)) => Plan::of_workload(seed, workload.into()),
            (None, None) => Plan::from_seed(seed),
        }
    }

    /// How to see all of one run.
    pub(super) fn repeat(&self, seed: u64) -> String {
        if let Some(file) = &self.plan {
            return format!("picokube check --plan {} --trace", file.display());
        }
        let size = self.deployments.map_or(String::new(), |n| format!(" --deployments {n}"));
        let workload = self.workload.as_ref().and_then(clap::ValueEnum::to_possible_value);
        let workload =
            workload.map_or(String::new(), |it| format!(" --workload {}", it.get_name()));
        let election = if self.election { " --election" } else { "" };
        let driver = match self.driver {
            Some(ProtocolOption::Http1) => " --driver http1",
            Some(ProtocolOption::Http2) => " --driver http2",
            None => "",
        };
        format!("picokube check --seed {seed}{size}{workload}{election}{driver} --trace")
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

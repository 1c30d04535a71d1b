//! The golden scenarios, played against `picokube up`.
//!
//! Environment, beside that of [`picokube_tests::golden::suite`]:
//!
//! | variable | meaning |
//! |---|---|
//! | `PICOKUBE_GOLDEN_BASE` | a running API server, with controllers, that leaves pods alone |
//! | `PICOKUBE_GOLDEN_TOKEN` | the bearer token it wants |

use std::env;

use anyhow::Result;
use picokube_tests::golden::suite::{Share, Suite};
use picokube_tests::golden::{RACES, Server};
use picokube_tests::picokube::Picokube;

#[test]
fn every_sort_of_step_goes_as_it_should_without_controllers() -> Result<()> {
    play(&["x-*"], &["--manual", "--no-controllers"])
}

/// Several clusters go through them side by side: each has few plays at a time, so that none of them waits
/// for the controllers' few lanes while another one has them.
macro_rules! shares {
    ($scenarios:expr, $of:literal: $($name:ident $number:literal)*) => {
        $(
            #[test]
            fn $name() -> Result<()> {
                play_share(&$scenarios, Share { number: $number, of: $of }, &["--manual"])
            }
        )*
    };
}

shares! { ["d-*", "rs-*"], 5:
    deployments_and_replica_sets_behave_as_recorded_1 0
    deployments_and_replica_sets_behave_as_recorded_2 1
    deployments_and_replica_sets_behave_as_recorded_3 2
    deployments_and_replica_sets_behave_as_recorded_4 3
    deployments_and_replica_sets_behave_as_recorded_5 4
}

shares! { ["s-*"], 2:
    stateful_sets_behave_as_recorded_1 0
    stateful_sets_behave_as_recorded_2 1
}

#[test]
fn deployments_that_count_terminating_replicas_behave_as_recorded() -> Result<()> {
    let gate = "DeploymentReplicaSetTerminatingReplicas=true";
    play(&["dt-*"], &["--manual", "--feature-gates", gate])
}

#[test]
fn stateful_sets_that_may_have_several_pods_unavailable_behave_as_recorded() -> Result<()> {
    play(&["sg-*"], &["--manual", "--feature-gates", "MaxUnavailableStatefulSet=true"])
}

fn play(scenarios: &[&str], options: &[&str]) -> Result<()> {
    play_share(scenarios, Share::ALL, options)
}

fn play_share(scenarios: &[&str], share: Share, options: &[&str]) -> Result<()> {
    let has_controllers = !options.contains(&"--no-controllers");
    let suite = Suite { place: "a PC", scenarios, share, let_go: &RACES, has_controllers, jobs: 2 };
    suite.play(|| server(options))
}

/// The server to play against, and the process it is, if we have started it.
fn server(options: &[&str]) -> Result<(Server, Option<Picokube>)> {
    if let Ok(base) = env::var("PICOKUBE_GOLDEN_BASE") {
        let token = env::var("PICOKUBE_GOLDEN_TOKEN").ok();
        return Ok((Server { token, ..Server::new(base) }, None));
    }
    let picokube = Picokube::up(options)?;
    Ok((Server::new(picokube.base()), Some(picokube)))
}

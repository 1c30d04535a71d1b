//! Upstream's own tests of the controllers and of the server, told anew, against the real
//! server and the real controllers. All tests share two clusters, which differ in feature gates.

use anyhow::Result;
use picokube_tests::lab::Shared;
use picokube_tests::upstream::Scenario;
use picokube_tests::{
    api_scenarios, gated_stateful_upstream_scenarios, gated_upstream_scenarios,
    stateful_upstream_scenarios, upstream_scenarios,
};

static CLUSTER: Shared = Shared::new(&["up", "--nodes", "3"]);
static GATED: Shared = Shared::new(&[
    "up",
    "--nodes",
    "3",
    "--feature-gates",
    "DeploymentReplicaSetTerminatingReplicas=true,MaxUnavailableStatefulSet=true",
]);

fn run(cluster: &Shared, scenario: Scenario) -> Result<()> {
    let cluster = cluster.cluster()?;
    scenario(&cluster)
}

macro_rules! tests_of {
    ($cluster:ident: $($module:ident: $($name:ident)*;)*) => {
        $(
            mod $module {
                use super::*;

                $(
                    #[test]
                    fn $name() -> Result<()> {
                        run(&$cluster, picokube_tests::upstream::$module::$name)
                    }
                )*
            }
        )*
    };
}

macro_rules! tests {
    ($($all:tt)*) => { tests_of! { CLUSTER: $($all)* } };
}
upstream_scenarios!(tests);
stateful_upstream_scenarios!(tests);
api_scenarios!(tests);

mod gated {
    use super::*;

    macro_rules! tests {
        ($($all:tt)*) => { tests_of! { GATED: $($all)* } };
    }
    gated_upstream_scenarios!(tests);
    gated_stateful_upstream_scenarios!(tests);
}

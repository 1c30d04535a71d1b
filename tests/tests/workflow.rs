//! What people do with kubectl and a Deployment: the real kubectl, the real server, the real
//! controllers. All tests share a cluster.

use anyhow::Result;
use picokube_tests::lab::Shared;
use picokube_tests::workflow::{self, Workflow};
use picokube_tests::workflows;

static CLUSTER: Shared = Shared::new(&["up", "--nodes", "3"]);

fn run(workflow: Workflow) -> Result<()> {
    let cluster = CLUSTER.cluster()?;
    workflow(&cluster)
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() -> Result<()> {
                run(workflow::$name)
            }
        )*
    };
}
workflows!(tests);

/// Not among those that are run on a device, whose firmware has it only if it is built with it.
#[test]
fn a_replication_controller_keeps_its_pods() -> Result<()> {
    run(workflow::a_replication_controller_keeps_its_pods)
}

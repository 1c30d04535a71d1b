//! What people do with kubectl and a Deployment: the real kubectl, the real server, the real
//! controllers. All tests share a cluster.

use anyhow::Result;
use picokube_tests::lab::Shared;
use picokube_tests::workflow::{self, Workflow};

static CLUSTER: Shared = Shared::new(&["up", "--nodes", "3"]);

fn run(workflow: Workflow) -> Result<()> {
    let cluster = CLUSTER.cluster()?;
    workflow(&cluster)
}

/// A test of each name; all of them have to be there.
macro_rules! workflows {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() -> Result<()> {
                run(workflow::$name)
            }
        )*

        #[test]
        fn no_workflow_is_left_out() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(workflow::ALL.map(|(name, _)| name), tested);
        }
    };
}

workflows! {
    rollouts_have_a_history_and_are_undone
    a_paused_deployment_collects_changes
    restart_replaces_every_pod
    a_bad_tag_is_undone
    a_rollout_is_followed_to_its_end
    a_rollout_is_scaled_in_proportion
    an_autoscaler_scales
    a_deployment_deleted_in_the_background
    a_deployment_deleted_in_the_foreground
    a_deployment_deleted_without_its_pods
    a_pod_labelled_away_is_replaced
    a_deleted_pod_is_replaced
    describe_tells_the_story
}

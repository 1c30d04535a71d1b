//! Creating, rolling out and scaling Deployments.

use serde_json::json;

use crate::cluster::{Cluster, Memory, Space};
use crate::user::deployment;

fn with_cluster(scenario: impl Fn(&mut Cluster<'_>)) {
    for seed in 1..6 {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::new(&mut memory, &mut space, seed);
        scenario(&mut cluster);
    }
}

#[test]
fn a_new_deployment_gets_its_pods() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        let status = &cluster.deployment("web")["status"];
        assert_eq!(status["readyReplicas"], json!(3), "{status}");
        assert_eq!(status["availableReplicas"], json!(3));
        assert_eq!(cluster.sets(), [("app:v1".into(), 3)]);
        assert_eq!(cluster.pods(|_| true).len(), 3);
        let done = Some(("True".to_string(), "NewReplicaSetAvailable".to_string()));
        assert_eq!(cluster.condition("web", "Progressing"), done);
        assert_eq!(cluster.events("ScalingReplicaSet"), ["Scaled up replica set A from 0 to 3"]);
        assert_eq!(cluster.events("SuccessfulCreate").len(), 3);
        cluster.assert_economy();
    });
}

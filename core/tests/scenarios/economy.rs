//! How many requests a rollout takes, and how few when nothing happens.

use picokube_core::manager::{ControllerName, Settings};
use picokube_core::time::Duration;

use crate::cluster::{with_cluster, with_settings};
use crate::user::deployment;

/// kube-controller-manager needs 93 writes for this, and 12 more that are refused as conflicts.
#[test]
fn a_rolling_update_of_ten_takes_at_most_70_writes() {
    for pace in [1, 3, 10, 30] {
        let status_lag = Settings::STATUS_LAG;
        with_settings(Settings { rate: None, status_lag, ..Settings::DEFAULT }, |cluster| {
            cluster.create("deployments", deployment("web", 10));
            cluster.rollout();
            let before = cluster.server.log.len();
            cluster.set_image("web", "app:v2");
            cluster.quick_rollout(Duration::from_millis(pace));
            assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v2".into(), 10)]);
            let of_kubelet = |(method, target, _): &&(String, String, u16)| {
                target.contains("/pods/") && (method == "PATCH" || method == "DELETE")
            };
            let log = &cluster.server.log[before + 1..];
            let writes = log.iter().filter(|(method, ..)| method != "GET");
            // The kubelet binds and readies ten pods, and removes ten that the manager deleted.
            let writes = writes.count() - log.iter().filter(of_kubelet).count() + 10;
            assert!(writes <= 70, "{writes} writes at a pace of {pace} ms");
            cluster.assert_economy();
        });
    }
}

#[test]
fn nothing_is_sent_while_nothing_happens() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 5));
        cluster.rollout();
        let before = cluster.server.log.len();
        let syncs = cluster.manager.syncs(ControllerName::Deployment);
        cluster.run(Duration::from_secs(600));
        assert_eq!(cluster.server.log.len(), before);
        assert_eq!(cluster.manager.syncs(ControllerName::Deployment), syncs);
    });
}

//! Who leads, leads no more, and leads again.

use picokube_core::leader_election::LeaderElection;
use picokube_core::manager::{Method, Settings};
use picokube_core::time::Duration;

use crate::cluster::with_settings;
use crate::user::replica_set;

/// What a leader awaits that loses the Lease may never come, and whatever has come it reads before it acts
/// again: nothing holds it up then.
#[test]
fn who_leads_again_awaits_nothing_of_before() {
    let leader_election = Some(LeaderElection { identity: "one", ..LeaderElection::DEFAULT });
    let settings = Settings { rate: None, leader_election, ..Settings::DEFAULT };
    with_settings(settings, |cluster| {
        cluster.create("replicasets", replica_set("db", 3));
        // The first of three creations is lost; the others have not begun.
        let is_creation = |method, target: &str| method == Method::Post && target.contains("/pods");
        cluster.until_sent(|request| is_creation(request.method, &request.target));
        cluster.refused = Some("/leases");
        cluster.run(Duration::from_secs(15));
        assert!(!cluster.manager.leads());
        cluster.refused = None;
        cluster.run(Duration::from_secs(60));
        assert!(cluster.manager.leads());
        assert_eq!(cluster.pods(|_| true).len(), 3);
    });
}

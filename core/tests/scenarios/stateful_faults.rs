//! StatefulSets when things go wrong: one request after the other.

use picokube_core::kind::Kind;
use picokube_core::manager::Settings;
use picokube_core::time::Duration;
use serde_json::{Value, json};

use crate::cluster::{Accident, Cluster, Space};
use crate::stateful::{Memory, inspect, stateful_set, with, with_claim};

/// What a user does one after the other.
const STEPS: [fn(&mut Cluster<'_>); 4] = [
    |_| (),
    |cluster| cluster.set_image_of_set("web", "app:v2"),
    |cluster| cluster.scale_set("web", 5),
    |cluster| cluster.scale_set("web", 1),
];

/// A cluster that nobody has begun with.
fn new_cluster(seed: u64) -> Cluster<'static> {
    let memory = Box::leak(Box::new(Memory::new()));
    let space = Box::leak(Box::new(Space::new()));
    let settings = Settings { rate: None, ..Settings::DEFAULT };
    let mut cluster = Cluster::of(memory.parts(), space, seed, settings);
    cluster.inspect = Some(inspect);
    cluster
}

/// The course with an accident at one of its requests.
struct Course {
    set: Value,
    accident: Option<(usize, Accident)>,
    lag: Vec<(Kind, Duration)>,
}

impl Course {
    fn new(set: &Value) -> Self {
        Self { set: set.clone(), accident: None, lag: vec![] }
    }

    /// What is there in the end, and all requests.
    fn run(&self) -> (Vec<String>, Vec<(String, String)>) {
        let context = format!("{:?} {:?}", self.accident, self.lag);
        let mut cluster = new_cluster(1);
        cluster.accident_at = self.accident;
        cluster.lag = self.lag.iter().copied().collect();
        cluster.create("statefulsets", self.set.clone());
        let mut sent = Vec::new();
        for step in STEPS {
            step(&mut cluster);
            cluster.patient_rollout();
            if cluster.has_crashed {
                let server = core::mem::take(&mut cluster.server);
                sent.append(&mut cluster.sent);
                let lag = core::mem::take(&mut cluster.lag);
                cluster = new_cluster(2);
                cluster.server = server;
                cluster.lag = lag;
                cluster.patient_rollout();
            }
        }
        cluster.assert_rests(&context);
        sent.append(&mut cluster.sent);
        (cluster.summary(), sent)
    }
}

/// The sets that go through it all.
fn sets() -> Vec<Value> {
    let set = with_claim(stateful_set("web", 3));
    let delete = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let deleting = with(set.clone(), "persistentVolumeClaimRetentionPolicy", delete);
    let parallel = with(deleting.clone(), "podManagementPolicy", json!("Parallel"));
    vec![set, deleting, parallel]
}

/// Every request of the course meets each of these accidents, and all ends as without.
fn meets(accidents: &[Accident], lag: &[(Kind, Duration)]) {
    for set in sets() {
        let (expected, sent) = Course::new(&set).run();
        for number in 0..sent.len() {
            for accident in accidents {
                let is_delete = sent[number].0 == "DELETE";
                let accident = match accident {
                    // What is not there is gone indeed.
                    Accident::Refused(404, _) if is_delete => Accident::Deleted,
                    _ => *accident,
                };
                let course = Course {
                    set: set.clone(),
                    accident: Some((number, accident)),
                    lag: lag.to_vec(),
                };
                let (end, again) = course.run();
                let context = format!("{accident:?} at {number}: {:?}", sent[number]);
                assert_eq!(end, expected, "{context}\n{}", brief(&again));
                assert!(again.len() <= sent.len() + 25, "{context}: {}", brief(&again));
            }
        }
    }
}

#[test]
fn a_refusal_changes_nothing_in_the_end() {
    let refused = Accident::Refused;
    meets(
        &[refused(409, "Conflict"), refused(500, "InternalError"), refused(404, "NotFound")],
        &[],
    );
}

#[test]
fn a_lost_request_or_answer_changes_nothing_in_the_end() {
    meets(&[Accident::LostBefore, Accident::LostAfter], &[]);
}

#[test]
fn a_restart_changes_nothing_in_the_end() {
    meets(&[Accident::CrashBefore, Accident::CrashAfter], &[]);
}

const WATCHED: [Kind; 4] =
    [Kind::Pod, Kind::StatefulSet, Kind::ControllerRevision, Kind::PersistentVolumeClaim];

#[test]
fn watches_that_lag_behind_change_nothing_in_the_end() {
    for set in sets() {
        let (expected, sent) = Course::new(&set).run();
        for bits in 1..16 {
            for millis in [3, 400, 2_500] {
                let lags = WATCHED.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                let lag = lags.map(|(_, kind)| (*kind, Duration::from_millis(millis))).collect();
                let course = Course { lag, ..Course::new(&set) };
                let (end, again) = course.run();
                assert_eq!(end, expected, "{:?} {}", course.lag, brief(&again));
                assert!(again.len() <= sent.len() + 25, "{:?} {}", course.lag, brief(&again));
            }
        }
    }
}

#[test]
fn an_answer_lost_while_the_watches_lag_behind_changes_nothing_in_the_end() {
    let lag = Duration::from_millis(2_500);
    meets(&[Accident::LostAfter], &WATCHED.map(|kind| (kind, lag)));
}

/// Requests, a line each.
fn brief(sent: &[(String, String)]) -> String {
    let line = |(method, target): &(String, String)| {
        format!("{method} {}\n", target.rsplit("/default/").next().unwrap())
    };
    sent.iter().map(line).collect()
}

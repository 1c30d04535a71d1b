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
                let (lag, now) = (core::mem::take(&mut cluster.lag), cluster.now);
                cluster = new_cluster(2);
                cluster.now = now;
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
    let slow = with(set.clone(), "minReadySeconds", json!(5));
    vec![set, deleting, parallel, slow]
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

/// Accidents of which any number may happen.
const STORM: &[Accident] = &[
    Accident::LostBefore,
    Accident::LostAfter,
    Accident::Refused(409, "Conflict"),
    Accident::Refused(500, "InternalError"),
    Accident::SourceGone,
    Accident::CrashBefore,
    Accident::CrashAfter,
];

#[test]
fn a_storm_of_accidents_changes_nothing_in_the_end() {
    for set in sets() {
        let set = with(set, "revisionHistoryLimit", json!(1));
        let (expected, sent) = Course::new(&set).run();
        let mut all = 0;
        for seed in 0..60 {
            let millis = [0, 0, 400, 2_500][seed as usize % 4];
            let mut cluster = new_cluster(seed);
            cluster.lag = WATCHED.map(|kind| (kind, Duration::from_millis(millis))).into();
            cluster.storm = Some((5, STORM));
            cluster.create("statefulsets", set.clone());
            let mut requests = 0;
            for step in STEPS {
                step(&mut cluster);
                for again in 0..200 {
                    cluster.patient_rollout();
                    if again > 10 {
                        cluster.storm = None;
                    }
                    if cluster.has_crashed {
                        let mut next = new_cluster(seed * 1_000 + again);
                        next.server = core::mem::take(&mut cluster.server);
                        next.lag = core::mem::take(&mut cluster.lag);
                        next.storm = cluster.storm;
                        next.now = cluster.now;
                        requests += cluster.sent.len();
                        cluster = next;
                    } else if again > 10 {
                        break;
                    }
                    cluster.run(Duration::from_secs(100));
                }
                cluster.run(Duration::from_secs(1_100));
                cluster.patient_rollout();
                cluster.storm = Some((5, STORM));
            }
            cluster.storm = None;
            cluster.assert_rests(&format!("seed {seed}"));
            requests += cluster.sent.len();
            assert_eq!(cluster.summary(), expected, "seed {seed}\n{}", brief(&cluster.sent));
            assert!(requests < 6 * sent.len(), "seed {seed}: {requests} requests");
            all += requests;
        }
        assert!(all > 60 * sent.len(), "it was a storm");
    }
}

/// Requests, a line each.
fn brief(sent: &[(String, String)]) -> String {
    let line = |(method, target): &(String, String)| {
        format!("{method} {}\n", target.rsplit("/default/").next().unwrap())
    };
    sent.iter().map(line).collect()
}

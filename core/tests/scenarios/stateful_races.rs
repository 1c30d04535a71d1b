//! StatefulSets when something else happens in the midst of a sync.

use picokube_core::kind::Kind;
use picokube_core::manager::{Settings, Workspace};
use picokube_core::time::Duration;
use serde_json::{Value, json};

use crate::cluster::{Accident, Cluster, Space};
use crate::stateful::{inspect, stateful_set, with, with_claim, with_stateful};

const NO_RATE: Settings = Settings { rate: None, ..Settings::DEFAULT };

/// Every set is as it wants to be.
fn assert_done(cluster: &mut Cluster<'_>, context: &str) {
    cluster.run(Duration::from_secs(1_100));
    cluster.patient_rollout();
    cluster.assert_rests(context);
    for set in cluster.server.of("statefulsets") {
        let (name, spec, status) = (&set["metadata"]["name"], &set["spec"], &set["status"]);
        let name = name.as_str().unwrap();
        let image = &spec["template"]["spec"]["containers"][0]["image"];
        for field in ["replicas", "availableReplicas", "updatedReplicas"] {
            assert_eq!(status[field], spec["replicas"], "{context}: {name} {field}");
        }
        assert_eq!(status["observedGeneration"], set["metadata"]["generation"], "{context}");
        assert_eq!(status["currentRevision"], status["updateRevision"], "{context}");
        let owner = &set["metadata"]["uid"];
        let is_ours = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == *owner;
        let pods: Vec<_> = cluster.server.of("pods").filter(is_ours).collect();
        assert_eq!(json!(pods.len()), spec["replicas"], "{context}: {name}");
        for pod in pods {
            assert_eq!(pod["spec"]["containers"][0]["image"], *image, "{context}: {name}");
            assert_eq!(
                pod["metadata"]["labels"]["controller-revision-hash"], status["updateRevision"],
                "{context}: {name}"
            );
        }
    }
}

/// A deletion is asked for once, though the watch takes its time to tell of it.
#[test]
fn a_revision_of_the_history_is_deleted_once() {
    with_stateful(|cluster| {
        let set = with(stateful_set("web", 1), "revisionHistoryLimit", json!(0));
        cluster.create("statefulsets", set);
        cluster.patient_rollout();
        cluster.lag.insert(Kind::ControllerRevision, Duration::from_secs(3));
        cluster.set_image_of_set("web", "app:v2");
        cluster.patient_rollout();
        assert_eq!(cluster.revisions(), [(2, "app:v2".into())]);
        let deletions = cluster.writes("DELETE", "controllerrevisions").len();
        assert!(deletions <= 2, "{deletions}");
        assert_done(cluster, "updated");
    });
}

/// The watch has not told yet that the revision of a set that was has been left behind: a second one of
/// the same template would make every pod outdated.
#[test]
fn a_revision_that_was_left_behind_is_not_made_again() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 2));
        cluster.patient_rollout();
        cluster.lag.insert(Kind::ControllerRevision, Duration::from_secs(30));
        let orphan = json!({"metadata": {"ownerReferences": null}});
        let revision = cluster.server.of("controllerrevisions").next().unwrap();
        let revision = revision["metadata"]["name"].as_str().unwrap().to_string();
        cluster.patch("controllerrevisions", &revision, &orphan);
        for pod in ["web-0", "web-1"] {
            cluster.patch("pods", pod, &orphan);
        }
        cluster.server.expel("statefulsets", "default", "web");
        cluster.run(Duration::from_secs(1));
        cluster.create("statefulsets", stateful_set("web", 2));
        assert_done(cluster, "created again");
        assert_eq!(cluster.server.of("controllerrevisions").count(), 1);
        assert_eq!(cluster.writes("DELETE", "pods"), Vec::<String>::new());
    });
}

/// The answer to the deletion of a pod that has ended shows it as it was last. It is not on its way out, it
/// has gone: what Kubernetes writes meanwhile counts it as one of the current revision.
#[test]
fn a_pod_that_goes_at_once_is_never_told_to_be_going() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 3));
        cluster.patient_rollout();
        cluster.lag.insert(Kind::Pod, Duration::from_secs(5));
        let begin = cluster.server.history.len();
        cluster.pod("web-1", Some("status"), &json!({"status": {"phase": "Failed"}}));
        cluster.run(Duration::from_secs(9));
        assert_eq!(cluster.writes("DELETE", "pods").len(), 1);
        let told =
            cluster.server.history[begin..].iter().filter(|(_, kind, ..)| kind == "statefulsets");
        for (.., set) in told {
            let status = &set["status"];
            assert_eq!(status["currentReplicas"], status["replicas"], "{status}");
        }
        assert_done(cluster, "made anew");
    });
}

/// A pod is made for a claim that has gone, as the watch tells only later: the pod waits for it, and
/// nothing else will ever happen to it.
#[test]
fn a_claim_that_was_gone_all_along_is_made_anew() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 1)));
        cluster.patient_rollout();
        cluster.lag.insert(Kind::PersistentVolumeClaim, Duration::from_secs(30));
        cluster.server.expel("persistentvolumeclaims", "default", "data-web-0");
        cluster.server.expel("pods", "default", "web-0");
        cluster.run(Duration::from_secs(10));
        assert_eq!(cluster.pod_history("ADDED"), ["web-0", "web-0"]);
        cluster.run(Duration::from_secs(60));
        let claims: Vec<_> = cluster.server.of("persistentvolumeclaims").collect();
        assert_eq!(claims.len(), 1);
        assert_done(cluster, "made anew");
    });
}

/// A pod that belongs to nobody stood in the way for long: its end is heard of, whatever the back-off.
#[test]
fn a_name_that_is_free_again_is_taken_at_once() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 2));
        cluster.patient_rollout();
        cluster.patch("pods", "web-1", &json!({"metadata": {"labels": {"app": "other"}}}));
        cluster.run(Duration::from_secs(600));
        assert_eq!(cluster.pod_history("ADDED"), ["web-0", "web-1"]);
        cluster.server.expel("pods", "default", "web-1");
        cluster.run(Duration::from_secs(1));
        assert_eq!(cluster.pod_history("ADDED"), ["web-0", "web-1", "web-1"]);
        assert_done(cluster, "made anew");
    });
}

/// The set is deleted without its claims while the watches lag behind: who gives a claim to a set that
/// was, gives it to the garbage collector.
#[test]
fn a_claim_that_was_left_behind_is_not_given_to_the_set_that_was() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 1)));
        cluster.patient_rollout();
        let uid = cluster.server.get("statefulsets", "web").unwrap()["metadata"]["uid"].clone();
        for kind in [Kind::StatefulSet, Kind::Pod, Kind::PersistentVolumeClaim] {
            cluster.lag.insert(kind, Duration::from_secs(30));
        }
        let policy = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
        let policy = json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
        cluster.patch("statefulsets", "web", &policy);
        cluster.run(Duration::from_secs(29));
        cluster.advance(Duration::from_secs(29));
        // The garbage collector lets go of the claim, which changes it, and the set goes.
        let orphan = json!({"metadata": {"annotations": {"orphaned": "by the collector"}}});
        cluster.patch("persistentvolumeclaims", "data-web-0", &orphan);
        cluster.server.expel("statefulsets", "default", "web");
        cluster.run(Duration::from_secs(100));
        let claim = cluster.server.get("persistentvolumeclaims", "data-web-0").unwrap();
        let owners = claim["metadata"]["ownerReferences"].to_string();
        assert!(!owners.contains(uid.as_str().unwrap()), "{claim}");
    });
}

/// The claim is another one than is known, until the watch tells: nobody waits for the back-off then.
#[test]
fn a_claim_that_had_changed_is_given_to_its_set_when_the_watch_tells() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 1)));
        cluster.patient_rollout();
        cluster.lag.insert(Kind::PersistentVolumeClaim, Duration::from_secs(600));
        let changed = json!({"metadata": {"annotations": {"changed": "by somebody"}}});
        cluster.patch("persistentvolumeclaims", "data-web-0", &changed);
        let policy = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
        let policy = json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
        cluster.patch("statefulsets", "web", &policy);
        cluster.run(Duration::from_secs(605));
        assert_eq!(cluster.claim_owners("data-web-0"), ["StatefulSet web"]);
        assert_done(cluster, "given");
    });
}

/// Somebody else has made a revision, and the watch tells of it when all is done.
#[test]
fn a_revision_that_is_told_of_late_is_looked_at() {
    with_stateful(|cluster| {
        let set = with(stateful_set("web", 1), "revisionHistoryLimit", json!(0));
        cluster.create("statefulsets", set);
        cluster.patient_rollout();
        let mut other = cluster.server.of("controllerrevisions").next().unwrap().clone();
        other["metadata"]["name"] = json!("web-other");
        other["data"]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:other");
        other["revision"] = json!(2);
        cluster.create("controllerrevisions", other);
        cluster.run(Duration::from_secs(60));
        // It was the newest, and is history.
        assert_eq!(cluster.revisions(), [(3, "app:v1".into())]);
        assert_done(cluster, "told");
    });
}

/// The pod of the set that was is known to be there for long after it has gone.
#[test]
fn a_revision_that_is_told_of_late_to_be_nobodys_is_adopted() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 1));
        cluster.patient_rollout();
        let revision = cluster.server.of("controllerrevisions").next().unwrap();
        let revision = revision["metadata"]["name"].as_str().unwrap().to_string();
        cluster.lag.insert(Kind::ControllerRevision, Duration::from_secs(30));
        let orphan = json!({"metadata": {"ownerReferences": null}});
        cluster.patch("controllerrevisions", &revision, &orphan);
        cluster.patch("pods", "web-0", &orphan);
        cluster.server.expel("statefulsets", "default", "web");
        cluster.run(Duration::from_secs(1));
        // Its pod stays as it is, and so has to stay what it is made of.
        let mut other = stateful_set("web", 1);
        other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
        other["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
        cluster.create("statefulsets", other);
        cluster.run(Duration::from_secs(200));
        let revision = cluster.server.get("controllerrevisions", &revision).unwrap();
        let owner = &revision["metadata"]["ownerReferences"][0]["name"];
        assert_eq!(*owner, json!("web"), "{revision}");
    });
}

#[test]
fn the_pod_of_a_set_that_was_is_waited_for_no_longer_than_it_is_known() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 1));
        cluster.patient_rollout();
        cluster.lag.insert(Kind::Pod, Duration::from_secs(600));
        cluster.server.expel("pods", "default", "web-0");
        cluster.server.expel("statefulsets", "default", "web");
        cluster.run(Duration::from_secs(1));
        cluster.create("statefulsets", stateful_set("web", 1));
        cluster.run(Duration::from_secs(601));
        assert_eq!(cluster.pod_history("ADDED"), ["web-0", "web-0"]);
    });
}

/// With OrderedReady, nothing follows what failed.
#[test]
fn pods_that_are_put_in_order_wait_for_each_other() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 3));
        cluster.patient_rollout();
        let label = "statefulset.kubernetes.io/pod-name";
        for pod in ["web-0", "web-1", "web-2"] {
            cluster.patch("pods", pod, &json!({"metadata": {"labels": {label: null}}}));
        }
        cluster.accident = Some(("/pods/web-1".into(), Accident::Refused(500, "InternalError")));
        cluster.patient_rollout();
        assert!(cluster.accident.is_none());
        let patches = cluster.writes("PATCH", "pods");
        let first = |name: &str| patches.iter().position(|it| it == name);
        assert_eq!(patches.iter().filter(|it| *it == "web-1").count(), 2, "{patches:?}");
        let last = patches.iter().rposition(|it| it == "web-1");
        assert!(first("web-2") > last, "{patches:?}");
        assert_done(cluster, "labelled");
    });
}

/// What waits for the server to be less busy is not sent for another set or revision.
#[test]
fn a_request_that_is_sent_again_is_about_the_same_objects() {
    for part in ["/pods", "/controllerrevisions", "/persistentvolumeclaims", "/status"] {
        for way in ["delete", "recreate", "revision"] {
            with_stateful(|cluster| {
                let set = with_claim(stateful_set("web", 2));
                cluster.create("statefulsets", set.clone());
                cluster.refused = Some(part);
                cluster.run(Duration::from_secs(5));
                let before = cluster.server.history.len();
                match way {
                    "delete" => cluster.delete("statefulsets", "web"),
                    "recreate" => {
                        cluster.delete("statefulsets", "web");
                        let mut other = set.clone();
                        other["spec"]["template"]["spec"]["containers"][0]["image"] =
                            json!("app:other");
                        cluster.create("statefulsets", other);
                    }
                    _ => {
                        let found = cluster.server.of("controllerrevisions").next();
                        if let Some(mut revision) = found.cloned() {
                            let name = revision["metadata"]["name"].as_str().unwrap().to_string();
                            cluster.delete("controllerrevisions", &name);
                            cluster.run(Duration::from_secs(1));
                            // Somebody else's takes its place.
                            revision["metadata"] = json!({"name": "other"});
                            revision["data"]["spec"]["template"]["spec"]["containers"][0]["image"] =
                                json!("app:other");
                            cluster.create("controllerrevisions", revision);
                        }
                    }
                }
                cluster.run(Duration::from_secs(1));
                cluster.refused = None;
                cluster.run(Duration::from_secs(700));
                let context = format!("{part} {way}");
                assert_done(cluster, &context);
                let came = cluster.server.history.iter().skip(before);
                for (.., pod) in came.filter(|(_, kind, it, _)| kind == "pods" && *it == "ADDED") {
                    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap();
                    assert_eq!(image == "app:other", way == "recreate", "{context}: {pod}");
                }
            });
        }
    }
}

/// What a user may do at any moment.
type Deed = fn(&mut Cluster<'_>);

const DEEDS: [(&str, Deed); 7] = [
    ("update", |cluster| cluster.set_image_of_set("web", "app:v3")),
    ("scale", |cluster| cluster.scale_set("web", 5)),
    ("roll back", |cluster| cluster.set_image_of_set("web", "app:v1")),
    ("recreate", |cluster| {
        cluster.delete("statefulsets", "web");
        let set = stateful_set("web", 2);
        cluster.create("statefulsets", with_claim(set));
    }),
    ("delete a pod", |cluster| cluster.delete("pods", "web-2")),
    ("delete all revisions", |cluster| {
        let revisions = cluster.server.of("controllerrevisions");
        let names: Vec<_> = revisions.map(|it| it["metadata"]["name"].clone()).collect();
        let delete = |name: &Value| cluster.delete("controllerrevisions", name.as_str().unwrap());
        names.iter().for_each(delete);
    }),
    ("fail a pod", |cluster| {
        if cluster.server.get("pods", "web-1").is_some() {
            cluster.pod("web-1", Some("status"), &json!({"status": {"phase": "Failed"}}));
        }
    }),
];

/// Whatever a user does in the midst of a rollout, the end is good.
#[test]
fn a_change_in_the_midst_of_a_sync_ends_well() {
    for policy in ["OrderedReady", "Parallel"] {
        for (name, deed) in DEEDS {
            for steps in 0..40 {
                let mut memory = Box::new(crate::stateful::Memory::new());
                let mut space = Box::new(Space::new());
                let mut cluster = Cluster::of(memory.parts(), &mut space, steps, NO_RATE);
                let set = with_claim(stateful_set("web", 3));
                let set = with(set, "podManagementPolicy", json!(policy));
                cluster.create("statefulsets", set);
                cluster.patient_rollout();
                cluster.set_image_of_set("web", "app:v2");
                for at in 0..steps {
                    if !cluster.step() && !cluster.kubelet() {
                        break;
                    }
                    if at % 9 == 8 {
                        cluster.kubelet();
                    }
                }
                deed(&mut cluster);
                cluster.run(Duration::from_secs(5));
                let sent = cluster.sent.len();
                assert!(sent < 120, "{name} after {steps}: {sent}");
                cluster.patient_rollout();
                assert_done(&mut cluster, &format!("{name} after {steps} steps, {policy}"));
            }
        }
    }
}

/// A step whose revision has gone is given up at once: nobody waits for something else to happen.
#[test]
fn a_revision_that_goes_before_its_pod_comes_is_made_anew() {
    for seed in 0..40 {
        let mut memory = Box::new(crate::stateful::Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::of(memory.parts(), &mut space, seed, NO_RATE);
        cluster.create("statefulsets", with_claim(stateful_set("web", 1)));
        while cluster.server.get("persistentvolumeclaims", "data-web-0").is_none() {
            if !cluster.step() {
                cluster.advance(Duration::from_millis(1));
            }
        }
        let revision = cluster.server.of("controllerrevisions").next().unwrap();
        let name = revision["metadata"]["name"].as_str().unwrap().to_string();
        cluster.delete("controllerrevisions", &name);
        // As long as anything happens by itself.
        while cluster.step() {}
        let is_there = cluster.server.get("pods", "web-0").is_some();
        let waits = cluster
            .manager
            .poll_at()
            .is_some_and(|at| at.since(cluster.now) < Duration::from_secs(1));
        assert!(is_there || waits, "seed {seed}: nobody is going to go on");
        assert_done(&mut cluster, "made anew");
        assert_eq!(cluster.server.of("controllerrevisions").count(), 1);
    }
}

/// A pod that has taken the name and the place of one that was to be deleted stays, if it is what is wanted.
#[test]
fn a_pod_that_takes_the_place_of_another_is_not_deleted_for_it() {
    for seed in 0..40 {
        let mut memory = Box::new(crate::stateful::Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::of(memory.parts(), &mut space, seed, NO_RATE);
        let set = with(stateful_set("web", 2), "podManagementPolicy", json!("Parallel"));
        cluster.create("statefulsets", set);
        cluster.patient_rollout();
        let good = cluster.server.get("pods", "web-1").unwrap().clone();
        for pod in ["web-0", "web-1"] {
            cluster.pod(pod, Some("status"), &json!({"status": {"phase": "Failed"}}));
        }
        // Both are going to be deleted, one after the other.
        while cluster.writes("DELETE", "pods").is_empty() {
            if !cluster.step() {
                cluster.advance(Duration::from_millis(1));
            }
        }
        let other = cluster.replace_pod("web-1", &good);
        cluster.patient_rollout();
        let pod = cluster.server.get("pods", "web-1").unwrap();
        assert_eq!(pod["metadata"]["uid"], other, "seed {seed}");
        assert_done(&mut cluster, "replaced");
    }
}

impl Cluster<'_> {
    /// Somebody else deletes a pod and makes another of the same name, which runs; its uid.
    fn replace_pod(&mut self, name: &str, good: &Value) -> Value {
        self.finish(name);
        let mut pod = good.clone();
        pod["metadata"]["name"] = json!(name);
        let status = pod["status"].take();
        let uid = self.create("pods", pod)["metadata"]["uid"].clone();
        self.pod(name, Some("status"), &json!({"status": status}));
        uid
    }
}

/// Several sets share what there is to send with.
#[test]
fn sets_wait_for_room_to_send() {
    for seed in 1..6 {
        let mut memory = Box::new(crate::stateful::Memory::new());
        let mut space = Box::new(Workspace::<1, 3, 64>::new());
        let mut cluster = Cluster::in_space(memory.parts(), space.parts(), seed, NO_RATE);
        cluster.inspect = Some(inspect);
        for (name, policy) in [("a", "Parallel"), ("b", "OrderedReady"), ("c", "Parallel")] {
            let set = with_claim(stateful_set(name, 4));
            cluster.create("statefulsets", with(set, "podManagementPolicy", json!(policy)));
        }
        cluster.patient_rollout();
        for name in ["a", "b", "c"] {
            cluster.set_image_of_set(name, "app:v2");
        }
        cluster.patient_rollout();
        assert_done(&mut cluster, "updated");
        assert_eq!(cluster.pods(|_| true).len(), 12);
    }
}

/// Where something does not fit, a set waits until there is room, and asks for nothing meanwhile.
#[test]
fn a_set_whose_objects_do_not_fit_waits() {
    type FewPods = picokube_core::resources! {
        pods: 3, stateful_sets: 4, controller_revisions: 8, persistent_volume_claims: 30,
    };
    type FewClaims = picokube_core::resources! {
        pods: 30, stateful_sets: 4, controller_revisions: 8, persistent_volume_claims: 3,
    };
    type FewRevisions = picokube_core::resources! {
        pods: 30, stateful_sets: 4, controller_revisions: 1, persistent_volume_claims: 30,
    };
    let mut few_pods = Box::new(FewPods::new());
    let mut few_claims = Box::new(FewClaims::new());
    let mut few_revisions = Box::new(FewRevisions::new());
    let kinds = ["pods", "persistent volume claims", "revisions"];
    for (parts, kind) in
        [few_pods.parts(), few_claims.parts(), few_revisions.parts()].into_iter().zip(kinds)
    {
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::of(parts, &mut space, 1, NO_RATE);
        for name in ["web", "api"] {
            let set = with_claim(stateful_set(name, 2));
            let set = with(set, "podManagementPolicy", json!("Parallel"));
            cluster.create("statefulsets", set);
            cluster.patient_rollout();
        }
        cluster.run(Duration::from_secs(600));
        let told = cluster.events("ControllerMemoryFull");
        assert!(!told.is_empty(), "{kind}");
        assert!(cluster.sent.len() < 60, "{kind}: {}", cluster.sent.len());
        let sent = cluster.sent.len();
        cluster.run(Duration::from_secs(600));
        assert_eq!(&cluster.sent[sent..], [], "{kind}");
        // Room appears.
        cluster.delete("statefulsets", "web");
        let claims = ["data-web-0", "data-web-1"];
        claims.iter().for_each(|it| cluster.delete("persistentvolumeclaims", it));
        cluster.patient_rollout();
        cluster.run(Duration::from_secs(600));
        cluster.patient_rollout();
        assert_done(&mut cluster, kind);
    }
}

//! One tenant's objects, whatever is in them, do not touch another's.

use picokube_core::manager::Settings;
use picokube_core::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Space};
use crate::hostile_objects::{NAMESPACE, VICTIMS, odd};
use crate::stateful::{stateful_set, with_claim};
use crate::user::{deployment, replica_set, replication_controller};

type Memory = picokube_core::resources! {
    pods: 200, replica_sets: 40, deployments: 10, replication_controllers: 10, stateful_sets: 10,
    controller_revisions: 40, persistent_volume_claims: 40,
};

/// What is to stay as it is: kind, name, and how many pods it has in addition to what all have. It is in
/// `default`.
const VICTIMS_OF: [(&str, &str, i64); 4] = [
    ("deployments", "web", 1),
    ("replicasets", "lone", 0),
    ("replicationcontrollers", "old", 0),
    ("statefulsets", "db", 0),
];

proptest! {
    #![proptest_config(the_same_each_time())]
    #[test]
    fn a_tenants_objects_touch_nobody_else(objects in vec(odd(), 1..8), seed in any::<u64>()) {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let settings = Settings { rate: None, ..Settings::DEFAULT };
        let mut cluster = Cluster::of(memory.parts(), &mut space, seed, settings);
        create_victims(&mut cluster);
        cluster.rollout();
        assert_victims(&cluster, 1);
        let victims = named_victims(&cluster);
        let keys = others_in_default(&cluster);
        let mut names = vec![];
        let before = cluster.sent.len();
        for (number, odd) in objects.iter().enumerate() {
            let object = odd.assemble(number, &victims);
            names.push((odd.plural, object["metadata"]["name"].as_str().unwrap().to_string()));
            cluster.server.import(odd.plural, NAMESPACE, object);
            cluster.settle();
        }
        cluster.run(Duration::from_secs(10));
        // Nobody has even looked at the others.
        let sent = &cluster.sent[before..];
        let elsewhere = sent.iter().find(|(_, target)| !target.contains("/namespaces/evil/"));
        prop_assert_eq!(elsewhere, None);
        scale_all(&mut cluster, 2);
        assert_victims(&cluster, 2);
        cluster.set_image("web", "app:v2");
        cluster.set_image_of_set("db", "app:v2");
        cluster.rollout();
        assert_victims(&cluster, 2);
        prop_assert_eq!(cluster.revisions_of_db(), 2);
        for (plural, name) in &names {
            cluster.server.expel(plural, NAMESPACE, name);
            cluster.settle();
        }
        cluster.run(Duration::from_secs(60));
        scale_all(&mut cluster, 1);
        assert_victims(&cluster, 1);
        // Claims stay, as the policy says; what was there at first is there.
        prop_assert!(keys.iter().all(|key| cluster.server.objects.contains_key(key)));
    }
}

/// Others are for who looks for them, with more cases and another seed.
fn the_same_each_time() -> ProptestConfig {
    ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

fn create_victims(cluster: &mut Cluster<'_>) {
    cluster.create("deployments", deployment("web", 2));
    cluster.create("replicasets", replica_set("lone", 1));
    cluster.create("replicationcontrollers", replication_controller("old", 1));
    cluster.create("statefulsets", with_claim(stateful_set("db", 1)));
}

/// Metadata of objects that odd ones name.
fn named_victims(cluster: &Cluster<'_>) -> [Value; VICTIMS] {
    let any = |plural: &str, name: &str| {
        let mut objects = cluster.server.of(plural).map(|object| &object["metadata"]);
        objects.find(|meta| meta["name"].as_str().unwrap().starts_with(name)).unwrap().clone()
    };
    [
        any("replicasets", "web"),
        any("replicasets", "lone"),
        any("replicationcontrollers", "old"),
        any("statefulsets", "db"),
        any("pods", "db"),
        any("controllerrevisions", "db"),
    ]
}

/// What nobody has a reason to replace.
fn others_in_default(cluster: &Cluster<'_>) -> Vec<crate::server::Key> {
    let is_kept = |plural: &str| !["pods", "events"].contains(&plural);
    cluster.server.objects.keys().filter(|(plural, ..)| is_kept(plural)).cloned().collect()
}

/// All victims have so many pods, the Deployment one more.
fn scale_all(cluster: &mut Cluster<'_>, replicas: i64) {
    for (plural, name, more) in VICTIMS_OF {
        cluster.patch(plural, name, &json!({"spec": {"replicas": replicas + more}}));
    }
    cluster.rollout();
}

/// All is as it would be without anybody else.
fn assert_victims(cluster: &Cluster<'_>, replicas: i64) {
    for (plural, name, more) in VICTIMS_OF {
        let victim = cluster.server.get(plural, name).unwrap();
        assert_eq!(victim["status"]["availableReplicas"], json!(replicas + more), "{name}");
        assert_eq!(victim["status"]["observedGeneration"], victim["metadata"]["generation"]);
        let is_its = |pod: &Value| pod["metadata"]["labels"]["app"] == json!(name);
        let stays = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        let pods = cluster.pods(|pod| is_its(pod) && stays(pod));
        assert_eq!(pods.len() as i64, replicas + more, "{name}: {pods:?}");
    }
    let claims = cluster.server.of("persistentvolumeclaims");
    let is_ours = |it: &&Value| it["metadata"]["namespace"] == json!("default");
    assert!(claims.filter(is_ours).count() as i64 >= replicas);
    let told = cluster
        .server
        .of("events")
        .find(|event| event["involvedObject"]["namespace"] == json!("default") && is_blind(event));
    assert!(told.is_none(), "{told:?}");
}

impl Cluster<'_> {
    fn revisions_of_db(&self) -> usize {
        let revisions = self.server.of("controllerrevisions");
        revisions.filter(|it| it["metadata"]["namespace"] == json!("default")).count()
    }
}

/// Whoever owns an object that cannot be read is told which one it is, and what is wrong with it; nobody
/// else is told anything.
#[test]
fn an_own_object_that_cannot_be_read_is_named_with_its_field() {
    let node = json!({"spec": {"nodeName": "n".repeat(300)}});
    let time = json!({"metadata": {"deletionTimestamp": "never"}});
    let uid = "00000000-0000-4000-8000-0000000000ff";
    let of_pod = json!({"metadata": {"deletionTimestamp": "never", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "db-0", "uid": uid, "controller": true}]}});
    let (replicas, revision) = (json!({"spec": {"replicas": "2"}}), json!({"revision": "last"}));
    for (owner, kind, plural, patch, fault) in [
        ("lone", "Pod", "pods", &node, "spec.nodeName: is too long"),
        ("old", "Pod", "pods", &node, "spec.nodeName: is too long"),
        ("db", "Pod", "pods", &node, "spec.nodeName: is too long"),
        ("web", "ReplicaSet", "replicasets", &replicas, "spec.replicas: has the wrong type"),
        (
            "db",
            "ControllerRevision",
            "controllerrevisions",
            &revision,
            "revision: has the wrong type",
        ),
        // Nobody's, and its pod's.
        ("db", CLAIM, "persistentvolumeclaims", &time, "metadata.deletionTimestamp: is malformed"),
        (
            "db",
            CLAIM,
            "persistentvolumeclaims",
            &of_pod,
            "metadata.deletionTimestamp: is malformed",
        ),
    ] {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let settings = Settings { rate: None, ..Settings::DEFAULT };
        let mut cluster = Cluster::of(memory.parts(), &mut space, 1, settings);
        create_victims(&mut cluster);
        cluster.rollout();
        let names = cluster.server.of(plural).map(|object| object["metadata"]["name"].as_str());
        let name = names.flatten().find(|name| name.contains(owner)).unwrap().to_string();
        let pods = cluster.pods(|_| true);
        cluster.patch(plural, &name, patch);
        cluster.run(Duration::from_secs(60));
        let told: Vec<_> = cluster.server.of("events").filter(|event| is_blind(event)).collect();
        let about: Vec<_> = told.iter().map(|event| &event["involvedObject"]["name"]).collect();
        assert_eq!(about, [owner], "{plural} {name}");
        let expected = format!(
            "{kind} \"{name}\" cannot be kept: {fault}; nothing is created or deleted for \"{owner}\" \
             until it can"
        );
        assert_eq!(told[0]["message"], json!(expected));
        assert_eq!(cluster.pods(|_| true), pods);
    }
}

const CLAIM: &str = "PersistentVolumeClaim";

/// Whether an event tells that somebody is blind.
fn is_blind(event: &Value) -> bool {
    ["ControllerMemoryFull", "FaultyObject"].iter().any(|reason| event["reason"] == *reason)
}

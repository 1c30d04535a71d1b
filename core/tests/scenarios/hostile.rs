//! One tenant's objects, whatever is in them, do not touch another's.

use picokube_core::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, Memory, Space};
use crate::user::deployment;

/// Where they are; what is to stay as it is, is in `default`.
const NAMESPACE: &str = "evil";

/// A part of an object, under a path such as `/spec/replicas`.
type Part = (&'static str, Value);

proptest! {
    #![proptest_config(the_same_each_time())]
    #[test]
    fn a_tenants_objects_touch_nobody_else(objects in vec(object(), 1..7), seed in any::<u64>()) {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::new(&mut memory, &mut space, seed);
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        let victim = cluster.server.of("replicasets").next().unwrap()["metadata"].clone();
        for (number, (plural, parts)) in objects.iter().enumerate() {
            let object = assemble(number, parts, &victim);
            cluster.server.import(plural, NAMESPACE, object);
            cluster.settle();
        }
        cluster.scale("web", 5);
        cluster.rollout();
        assert_web(&cluster, 5);
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        assert_web(&cluster, 5);
        for (number, (plural, _)) in objects.iter().enumerate() {
            cluster.server.expel(plural, NAMESPACE, &format!("odd-{number}"));
            cluster.settle();
        }
        cluster.run(Duration::from_secs(60));
        cluster.scale("web", 2);
        cluster.rollout();
        assert_web(&cluster, 2);
    }
}

/// Others are for who looks for them, with more cases and another seed.
fn the_same_each_time() -> ProptestConfig {
    ProptestConfig { cases: 48, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

/// All is as it would be without anybody else.
fn assert_web(cluster: &Cluster<'_>, replicas: i64) {
    let web = cluster.deployment("web");
    assert_eq!(web["status"]["availableReplicas"], json!(replicas));
    assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
    let pods = cluster.pods(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(pods.len() as i64, replicas);
    let sizes: i64 = cluster.sets().iter().map(|(_, size)| size).sum();
    assert_eq!(sizes, replicas);
    let told = cluster.server.of("events").find(|event| {
        let about = &event["involvedObject"];
        let is_blind =
            ["ControllerMemoryFull", "FaultyObject"].iter().any(|it| event["reason"] == *it);
        about["namespace"] == json!("default") && is_blind
    });
    assert!(told.is_none(), "{told:?}");
}

/// An object of its parts. Whoever names `VICTIM` names a ReplicaSet of the other namespace.
fn assemble(number: usize, parts: &[Part], victim: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": format!("odd-{number}"), "namespace": NAMESPACE, "generation": 1,
            "uid": format!("00000000-0000-4000-9000-{number:012x}"),
            "creationTimestamp": "2026-03-01T00:00:00Z",
        },
        // Its own workloads are not the point.
        "spec": {"replicas": 0, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
        "status": {},
    });
    for (path, value) in parts {
        let text = value.to_string();
        let text = text.replace("VICTIM-NAME", victim["name"].as_str().unwrap());
        let text = text.replace("VICTIM-UID", victim["uid"].as_str().unwrap());
        let (parent, member) = path.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(member.to_owned(), serde_json::from_str(&text).unwrap());
    }
    object
}

fn object() -> impl Strategy<Value = (&'static str, Vec<Part>)> {
    let pod = vec(prop_oneof![metadata(), pod()], 1..8).prop_map(|parts| ("pods", parts));
    let set =
        vec(prop_oneof![metadata(), workload()], 1..8).prop_map(|parts| ("replicasets", parts));
    let deployment =
        vec(prop_oneof![metadata(), workload()], 1..8).prop_map(|parts| ("deployments", parts));
    prop_oneof![pod, set, deployment]
}

fn metadata() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => owners().prop_map(|owners| ("/metadata/ownerReferences", owners)),
        2 => labels().prop_map(|labels| ("/metadata/labels", labels)),
        2 => annotations().prop_map(|annotations| ("/metadata/annotations", annotations)),
        1 => (1..200_usize).prop_map(|count| ("/metadata/finalizers", json!(vec!["x.io/y"; count]))),
        1 => Just(("/metadata/deletionTimestamp", json!("2026-03-01T00:00:30Z"))),
        1 => deep().prop_map(|deep| ("/metadata/managedFields", json!([{"fieldsV1": deep}]))),
        1 => deep().prop_map(|deep| ("/metadata/ofTheFuture", deep)),
        1 => deep().prop_map(|deep| ("/ofTheFuture", deep)),
    ]
}

/// References that the API server accepts: at most one of them is a controller's.
fn owners() -> impl Strategy<Value = Value> {
    let uid = prop_oneof![
        Just("abc".to_owned()),
        Just("VICTIM-UID".to_owned()),
        Just("x".repeat(300)),
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
    ];
    let kind = select(vec!["Foo", "ReplicaSet", "Deployment", "StatefulSet", "replicaset", "Ä"]);
    let name = prop_oneof![Just("VICTIM-NAME".to_owned()), "[a-z]{1,253}"];
    let controller = select(vec![None, Some(false), Some(true)]);
    let owner = (uid, kind, name, controller).prop_map(|(uid, kind, name, controller)| {
        json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": controller})
    });
    vec(owner, 0..5).prop_map(|mut owners| {
        let controllers = owners.iter_mut().filter(|owner| owner["controller"] == json!(true));
        controllers.skip(1).for_each(|owner| owner["controller"] = json!(false));
        json!(owners)
    })
}

fn labels() -> impl Strategy<Value = Value> {
    (select(vec![0, 1, 63, 64, 65, 1000]), select(vec!["web", "other"])).prop_map(|(count, app)| {
        let labels = (0..count).map(|number| (format!("label-{number}"), json!("x".repeat(63))));
        let mut labels: Map<String, Value> = labels.collect();
        labels.insert("app".to_owned(), json!(app));
        json!(labels)
    })
}

fn annotations() -> impl Strategy<Value = Value> {
    let key = select(vec![
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/revision-history",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deprecated.deployment.rollback.to",
        "controller.kubernetes.io/pod-deletion-cost",
        "k8s.io/initial-events-end",
        "kubectl.kubernetes.io/last-applied-configuration",
        "anything/else",
    ]);
    let value = prop_oneof![
        Just("x".repeat(100_000)),
        Just("-99999999999999999999".to_owned()),
        Just("true".to_owned()),
        Just("{\"a\":[\"\\u0000".to_owned()),
        ".{0,40}",
    ];
    vec((key, value), 1..6).prop_map(|pairs| {
        let pairs = pairs.into_iter().map(|(key, value)| (key.to_owned(), json!(value)));
        json!(pairs.collect::<Map<String, Value>>())
    })
}

/// Something that is nested deeply.
fn deep() -> impl Strategy<Value = Value> {
    (0..100_usize, any::<bool>()).prop_map(|(depth, array)| {
        (0..depth).fold(json!(1.5e300), |inner, _| match array {
            true => json!([inner, null]),
            false => json!({"a": inner}),
        })
    })
}

fn pod() -> impl Strategy<Value = Part> {
    let restarts = select(vec![0, 255, 65_536, i32::MAX]);
    prop_oneof![
        ".{0,20}".prop_map(|phase| ("/status/phase", json!(phase))),
        "[a-z]{0,253}".prop_map(|node| ("/spec/nodeName", json!(node))),
        restarts.prop_map(|count| {
            (
                "/status/containerStatuses",
                json!(vec![json!({"name": "a", "restartCount": count}); 60]),
            )
        }),
        conditions().prop_map(|conditions| ("/status/conditions", conditions)),
        deep().prop_map(|deep| ("/spec/ofTheFuture", deep)),
        Just(("/spec/containers", json!(vec![json!({"ports": [{"containerPort": "http"}]}); 200]))),
    ]
}

/// What ReplicaSets and Deployments have in common, or what one of them has and the other ignores.
fn workload() -> impl Strategy<Value = Part> {
    let share = prop_oneof![
        Just(json!("25%")),
        Just(json!("0%")),
        Just(json!("2147483647%")),
        Just(json!(i32::MAX)),
        Just(json!(0)),
    ];
    let number = select(vec![i64::from(i32::MIN), -1, 0, i64::from(i32::MAX)]);
    prop_oneof![
        2 => selector().prop_map(|selector| ("/spec/selector", selector)),
        1 => conditions().prop_map(|conditions| ("/status/conditions", conditions)),
        1 => share.prop_map(|share| {
            ("/spec/strategy", json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": share}}))
        }),
        1 => ".{0,20}".prop_map(|kind| ("/spec/strategy", json!({"type": kind}))),
        1 => number.clone().prop_map(|number| ("/spec/minReadySeconds", json!(number.max(0)))),
        1 => number.clone().prop_map(|number| ("/status/availableReplicas", json!(number))),
        1 => number.prop_map(|number| ("/status/observedGeneration", json!(number))),
        1 => any::<bool>().prop_map(|paused| ("/spec/paused", json!(paused))),
        1 => deep().prop_map(|deep| {
            let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"ofTheFuture": deep}});
            ("/spec/template", template)
        }),
        1 => deep().prop_map(|deep| ("/status/ofTheFuture", deep)),
    ]
}

/// A selector that selects what the template makes: the API server accepts no other.
fn selector() -> impl Strategy<Value = Value> {
    let values = |count: usize| (0..count).map(|number| json!(format!("value-{number}")));
    let expression = (select(vec!["In", "NotIn", "Exists"]), 1..60_usize);
    let expression = expression.prop_map(move |(operator, count)| match operator {
        "In" => json!({"key": "app", "operator": "In",
            "values": values(count).chain([json!("web")]).collect::<Vec<_>>()}),
        "NotIn" => {
            json!({"key": "app", "operator": "NotIn", "values": values(count).collect::<Vec<_>>()})
        }
        operator => json!({"key": "app", "operator": operator}),
    });
    (any::<bool>(), vec(expression, 1..30)).prop_map(|(labels, expressions)| {
        let labels = if labels { json!({"app": "web"}) } else { json!({}) };
        json!({"matchLabels": labels, "matchExpressions": expressions})
    })
}

fn conditions() -> impl Strategy<Value = Value> {
    let kind = select(vec!["Ready", "Available", "Progressing", "ReplicaFailure", "Ä"]);
    let status = select(vec!["True", "False", "Unknown", "Maybe"]);
    let condition = (kind, status, 0..40_000_usize).prop_map(|(kind, status, length)| {
        json!({"type": kind, "status": status, "reason": "R".repeat(length / 40), "lastUpdateTime": null,
            "message": "m".repeat(length), "lastTransitionTime": "2026-03-01T00:00:00.123456Z"})
    });
    vec(condition, 0..6).prop_map(|conditions| json!(conditions))
}

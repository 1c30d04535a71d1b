//! Objects as a server sends them, read into records: every field, every split, every limit.

use picokube_core::limits;
use picokube_core::text::{Fingerprint, Operator};
use picokube_core::time::Timestamp;
use picokube_core::wire::{
    Answer, ConditionStatus, Decoder, Deployment, IntAnnotation, IntOrPercent, OwnerKind, Pod,
    PodPhase, ReplicaSet, Status, StatusReason, Strategy,
};
use serde_json::{Value, json};

#[path = "support/reading.rs"]
mod reading;
use reading::{check_order, check_splits, labels, prints, read, read_with, uid};

const POD: &str = include_str!("data/pod.json");
const REPLICA_SET: &str = include_str!("data/replicaset.json");
const DEPLOYMENT: &str = include_str!("data/deployment.json");
const STATUS: &str = include_str!("data/status.json");

fn read_status(text: &str, chunk: usize) -> Status {
    let mut decoder = Decoder::<Pod>::new();
    text.as_bytes().chunks(chunk).for_each(|chunk| decoder.feed_answer(chunk, None).unwrap());
    match decoder.answer().unwrap() {
        Answer::Status(status) => status.clone(),
        other => panic!("{other:?}"),
    }
}

fn time(text: &str) -> Option<Timestamp> {
    Some(Timestamp::parse_rfc3339(text.as_bytes()).unwrap())
}

const LABELS: [(&str, &str); 4] = [
    ("app.kubernetes.io/name", "web"),
    ("app.kubernetes.io/instance", "shop"),
    ("tier", "frontend"),
    ("pod-template-hash", "7d4b9c6f85"),
];

#[test]
fn a_pod_has_what_controllers_count_and_rank() {
    let pod: Pod = read(POD, 1000).unwrap();
    assert_eq!(pod.meta.name, "web-7d4b9c6f85-x2k9q");
    assert_eq!(pod.meta.namespace, "shop");
    assert_eq!(pod.meta.uid, uid("9d3c2b1a-0f1e-4d2c-8b3a-4c5d6e7f8091"));
    assert_eq!(pod.meta.resource_version.number(), 184_467);
    assert_eq!(pod.meta.creation, time("2026-03-02T08:15:30Z"));
    assert_eq!(pod.meta.deletion, None);
    assert_eq!(labels(&pod.meta.labels), prints(&LABELS));
    let owner = pod.meta.controller.as_ref().unwrap();
    assert_eq!(owner.kind, OwnerKind::ReplicaSet);
    assert_eq!(owner.name, "web-7d4b9c6f85");
    assert_eq!(owner.uid, uid("5e8f1a20-3b4c-4d5e-8f70-a1b2c3d4e5f6"));
    assert_eq!(pod.deletion_cost, -20);
    assert_eq!(pod.node, "gateway-node-7");
    assert_eq!(pod.phase, PodPhase::Running);
    assert!(pod.is_ready());
    assert_eq!(pod.ready_transition, time("2026-03-02T08:15:41Z"));
    assert_eq!((pod.restarts, pod.sidecar_restarts), (2, 4));
}

#[test]
fn a_replica_set_has_what_decisions_need() {
    let rs: ReplicaSet = read(REPLICA_SET, 1000).unwrap();
    assert_eq!(rs.meta.name, "web-7d4b9c6f85");
    assert_eq!(rs.meta.generation, 3);
    assert_eq!(rs.meta.controller.as_ref().unwrap().kind, OwnerKind::Deployment);
    assert_eq!(rs.revision, IntAnnotation::Value(5));
    assert_eq!(rs.desired_replicas.as_i32(), Some(3));
    assert_eq!(rs.max_replicas.as_i32(), Some(4));
    let history = rs.revision_history.as_ref().unwrap();
    assert_eq!((history.text.as_str(), history.len, history.is_complete()), ("1,3", 3, true));
    assert_eq!(rs.annotations.prints.len(), 1);
    assert_eq!((rs.replicas, rs.min_ready_seconds), (3, 5));
    assert_eq!(labels(rs.selector.match_labels()), prints(&LABELS));
    let expressions: Vec<_> = rs.selector.expressions().collect();
    assert_eq!(expressions.len(), 1);
    assert_eq!(expressions[0].key, Fingerprint::of("tier"));
    assert_eq!(expressions[0].operator, Operator::In);
    assert_eq!(expressions[0].values, ["frontend", "edge"].map(Fingerprint::of));
    assert_eq!(labels(&rs.template_labels), prints(&LABELS));
    let status = &rs.status;
    assert_eq!((status.replicas, status.fully_labeled_replicas, status.ready_replicas), (3, 3, 2));
    assert_eq!((status.available_replicas, status.terminating_replicas), (1, Some(0)));
    assert_eq!(status.observed_generation, 3);
    let failure = status.replica_failure.as_ref().unwrap();
    assert_eq!(failure.status, ConditionStatus::True);
    assert_eq!(failure.reason, "FailedCreate");
    assert!(failure.message.starts_with("pods \"web-7d4b9c6f85-\" is forbidden: exceeded quota"));
    assert_eq!(failure.last_transition, time("2026-03-02T09:00:00Z"));
    assert_eq!(failure.last_update, None);
}

#[test]
fn a_deployment_has_what_decisions_need() {
    let deployment: Deployment = read(DEPLOYMENT, 1000).unwrap();
    assert_eq!(deployment.meta.name, "web");
    assert_eq!(deployment.meta.generation, 7);
    assert_eq!(deployment.revision, IntAnnotation::Value(5));
    assert_eq!(deployment.rollback_to, IntAnnotation::Absent);
    assert_eq!(deployment.annotations.prints.len(), 2);
    assert_eq!((deployment.replicas, deployment.min_ready_seconds), (3, 5));
    assert!(!deployment.paused);
    assert_eq!(deployment.progress_deadline_seconds, Some(600));
    assert_eq!(deployment.revision_history_limit, Some(10));
    assert_eq!(deployment.strategy, Strategy::RollingUpdate);
    assert_eq!(deployment.max_surge, Some(IntOrPercent::Percent(25)));
    assert_eq!(deployment.max_unavailable, Some(IntOrPercent::Int(1)));
    assert_eq!(labels(deployment.selector.match_labels()), prints(&LABELS[..3]));
    let status = &deployment.status;
    assert_eq!((status.observed_generation, status.replicas, status.updated_replicas), (7, 4, 3));
    assert_eq!((status.ready_replicas, status.available_replicas), (3, 2));
    assert_eq!((status.unavailable_replicas, status.terminating_replicas), (2, Some(1)));
    assert_eq!(status.collision_count, Some(1));
    let available = status.available.as_ref().unwrap();
    assert_eq!(available.reason, "MinimumReplicasAvailable");
    let progressing = status.progressing.as_ref().unwrap();
    assert_eq!(progressing.reason, "ReplicaSetUpdated");
    assert_eq!(progressing.message, "", "no decision needs it, so that it is not kept");
    assert_eq!(progressing.last_update, time("2026-03-02T08:16:00Z"));
    assert_eq!(progressing.last_transition, time("2026-02-27T10:00:00Z"));
    assert_eq!(status.replica_failure.as_ref(), None);
}

#[test]
fn the_template_of_a_deployment_is_that_of_its_replica_set() {
    let deployment: Deployment = read(DEPLOYMENT, 100).unwrap();
    let rs: ReplicaSet = read(REPLICA_SET, 99).unwrap();
    assert_eq!(deployment.template, rs.template);
    assert_ne!(deployment.template, Default::default());
    // "1.27.3" is in the last-applied annotation of the Deployment as well, which does not count.
    let other: Deployment = read(&DEPLOYMENT.replace("web:1.27.3", "web:1.27.4"), 100).unwrap();
    assert_ne!(other.template, deployment.template);
    let same: Deployment =
        read(&DEPLOYMENT.replace(r#""memory":"256Mi""#, r#""memory":"262144Ki""#), 100).unwrap();
    assert_eq!(same.template, deployment.template);
}

#[test]
fn annotations_are_compared_one_by_one_and_as_a_whole() {
    let deployment: Deployment = read(DEPLOYMENT, 100).unwrap();
    let rs: ReplicaSet = read(REPLICA_SET, 100).unwrap();
    let shared = |print| deployment.annotations.prints.contains(print);
    assert!(rs.annotations.prints.iter().all(shared), "team=storefront is on both");
    assert_ne!(rs.annotations.digest, deployment.annotations.digest);
    let with_note =
        REPLICA_SET.replace(r#""team":"storefront""#, r#""note":"émigré ☕","team":"storefront""#);
    let rs: ReplicaSet = read(&with_note, 100).unwrap();
    assert_eq!(rs.annotations.digest, deployment.annotations.digest);
}

#[test]
fn a_status_tells_code_reason_and_causes() {
    for chunk in 1..STATUS.len() {
        let status = read_status(STATUS, chunk);
        assert_eq!((status.code, status.reason), (403, StatusReason::Forbidden));
        assert!(status.message.ends_with("because it is being terminated"));
        assert!(status.namespace_terminating && !status.resource_version_too_large);
        assert_eq!(status.retry_after_seconds, None);
    }
    let too_large = json!({
        "kind": "Status",
        "code": 504,
        "reason": "Timeout",
        "message": "Too large resource version: 9, current: 8",
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}],
            "retryAfterSeconds": 1,
        },
    });
    let status = read_status(&too_large.to_string(), 7);
    assert_eq!((status.code, status.reason), (504, StatusReason::Timeout));
    assert!(status.resource_version_too_large && !status.namespace_terminating);
    assert_eq!(status.retry_after_seconds, Some(1));
    let long = "é".repeat(5_000);
    let status =
        read_status(&json!({"kind": "Status", "message": long, "code": 500}).to_string(), 7);
    assert_eq!(status.message.len(), limits::MESSAGE);
    assert!(long.starts_with(status.message.as_str()));
}

#[test]
fn every_split_gives_the_same_record() {
    check_splits::<Pod>(POD);
    check_splits::<ReplicaSet>(REPLICA_SET);
    check_splits::<Deployment>(DEPLOYMENT);
}

#[test]
fn the_order_of_members_does_not_matter() {
    check_order::<Pod>(POD);
    check_order::<ReplicaSet>(REPLICA_SET);
}

#[test]
fn a_decoder_forgets_the_object_before() {
    let mut decoder = Box::new(Decoder::<ReplicaSet>::new());
    let bare = json!({"metadata": {"name": "b", "uid": "9d3c2b1a-0f1e-4d2c-8b3a-4c5d6e7f8091",
        "resourceVersion": "1"}})
    .to_string();
    let fresh = format!("{:?}", read_with(&mut decoder, [bare.as_bytes()]).unwrap());
    read_with(&mut decoder, [REPLICA_SET.as_bytes()]).unwrap();
    assert_eq!(format!("{:?}", read_with(&mut decoder, [bare.as_bytes()]).unwrap()), fresh);
    let rs = read_with(&mut decoder, [bare.as_bytes()]).unwrap();
    assert_eq!(rs.replicas, 1, "the default of Kubernetes");
    assert!(!rs.selector.is_present());
    assert_eq!(rs.template, Default::default());
}

fn pod_with(change: impl FnOnce(&mut Value)) -> Result<Pod, String> {
    let mut pod = serde_json::from_str(POD).unwrap();
    change(&mut pod);
    read(&pod.to_string(), 1460)
}

#[test]
fn deletion_cost_is_read_as_kubernetes_reads_it() {
    for (text, cost) in [
        ("0", 0),
        ("1", 1),
        ("-1", -1),
        ("-05", -5),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
        ("2147483648", 0),
        ("+5", 0),
        ("05", 0),
        ("00", 0),
        ("", 0),
        ("x", 0),
        ("1.5", 0),
        (" 1", 0),
        ("--1", 0),
        (
            "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
            0,
        ),
    ] {
        let pod = pod_with(|pod| {
            pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] =
                json!(text);
        });
        assert_eq!(pod.unwrap().deletion_cost, cost, "{text:?}");
    }
    assert_eq!(
        pod_with(|pod| pod["metadata"]["annotations"] = Value::Null).unwrap().deletion_cost,
        0
    );
}

#[test]
fn the_controller_is_the_first_owner_that_says_so() {
    let reference = |name: &str, controller: Value| {
        json!({"apiVersion": "v1", "kind": "DaemonSet", "name": name, "controller": controller,
            "uid": "5e8f1a20-3b4c-4d5e-8f70-a1b2c3d4e5f6"})
    };
    for (references, name) in [
        (json!([]), None),
        (Value::Null, None),
        (json!([reference("a", json!(false)), reference("b", Value::Null)]), None),
        (json!([reference("a", json!(false)), reference("b", json!(true))]), Some("b")),
        (json!([reference("a", json!(true)), reference("b", json!(true))]), Some("a")),
        (json!([reference("a", json!(true)), reference("b", json!(false))]), Some("a")),
    ] {
        let pod = pod_with(|pod| pod["metadata"]["ownerReferences"] = references.clone()).unwrap();
        let owner = pod.meta.controller.as_ref();
        assert_eq!(owner.map(|owner| owner.name.as_str()), name, "{references}");
        assert!(owner.is_none_or(|owner| owner.kind == OwnerKind::Other));
    }
}

/// No API server has let such a name in, and none of them may become a part of a path or a document.
#[test]
fn a_name_that_is_none_is_a_fault() {
    for field in ["name", "namespace"] {
        for text in ["a/b", "a?b", "a b", "a\"b", "a\\b", "a%2fb", "a#b", "ä", "a\n"] {
            let fault = pod_with(|pod| pod["metadata"][field] = json!(text)).unwrap_err();
            assert!(fault.contains(&format!("metadata.{field}")), "{text}: {fault}");
        }
        for text in ["web", "web-1.example_x", "WEB"] {
            assert!(pod_with(|pod| pod["metadata"][field] = json!(text)).is_ok(), "{text}");
        }
    }
}

/// The API server takes any uid that is not empty, and names of any length.
#[test]
fn a_reference_to_what_cannot_be_here_is_no_fault() {
    let long = "n".repeat(limits::NAME + 1);
    for (field, value) in [
        ("uid", json!("abc")),
        ("uid", json!("u".repeat(100_000))),
        ("name", json!(long)),
        ("kind", json!("K".repeat(1_000))),
    ] {
        for controller in [json!(true), json!(false), Value::Null] {
            let pod = pod_with(|pod| {
                let reference = &mut pod["metadata"]["ownerReferences"][0];
                reference[field] = value.clone();
                reference["controller"] = controller.clone();
            });
            let owner = pod.unwrap().meta.controller;
            let expected = (controller == json!(true)).then_some(OwnerKind::Other);
            assert_eq!(owner.map(|owner| owner.kind), expected, "{field} {controller}");
        }
    }
    // It is in nobody's way.
    let pod = pod_with(|pod| {
        let references = pod["metadata"]["ownerReferences"].as_array_mut().unwrap();
        let odd = json!({"apiVersion": "v1", "kind": "Foo", "name": "x", "uid": "abc"});
        references.insert(0, odd.clone());
        references.push(odd);
    });
    assert_eq!(pod.unwrap().meta.controller.unwrap().kind, OwnerKind::ReplicaSet);
}

#[test]
fn readiness_phase_finalizers_and_deletion_are_seen() {
    let pod = pod_with(|pod| {
        pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
        pod["metadata"]["deletionTimestamp"] = json!("2026-03-02T09:00:00+01:00");
        pod["status"]["phase"] = json!("Succeeded");
        pod["status"]["conditions"][2]["status"] = json!("False");
    })
    .unwrap();
    assert!(!pod.is_ready() && pod.phase.is_terminal());
    assert_eq!(pod.ready.get(), Some(ConditionStatus::False));
    assert_eq!(pod.meta.deletion, time("2026-03-02T08:00:00Z"));
    let pod = pod_with(|pod| {
        pod["metadata"]["finalizers"] = json!([]);
        pod["status"] = json!({});
        pod["spec"]["nodeName"] = Value::Null;
    })
    .unwrap();
    assert!(pod.node.is_empty());
    assert_eq!((pod.ready.get(), pod.phase), (None, PodPhase::Empty));
}

#[test]
fn faults_name_the_object_and_the_field() {
    let name = "Pod shop/web-7d4b9c6f85-x2k9q";
    for (pointer, value, fault) in [
        ("/metadata/uid", json!("not-a-uuid"), "metadata.uid: is malformed"),
        ("/metadata/uid", Value::Null, "metadata.uid: is missing"),
        ("/metadata/resourceVersion", json!("x"), "metadata.resourceVersion: is malformed"),
        ("/metadata/resourceVersion", json!(7), "metadata.resourceVersion: has the wrong type"),
        (
            "/metadata/creationTimestamp",
            json!("yesterday"),
            "metadata.creationTimestamp: is malformed",
        ),
        ("/metadata/labels", json!(["a"]), "metadata.labels: has the wrong type"),
        ("/metadata/labels/tier", json!(5), "metadata.labels: has the wrong type"),
        ("/metadata/annotations", json!(5), "metadata.annotations: has the wrong type"),
        ("/metadata/ownerReferences", json!({}), "metadata.ownerReferences[]: has the wrong type"),
        (
            "/metadata/ownerReferences/0/controller",
            json!("yes"),
            "metadata.ownerReferences[].controller: has the wrong type",
        ),
        ("/spec", json!("x"), "spec: has the wrong type"),
        ("/spec/nodeName", json!("n".repeat(254)), "spec.nodeName: is too long"),
        ("/spec/nodeName", json!("n".repeat(100_000)), "spec.nodeName: is too long"),
        ("/spec/nodeName", json!({"a": [1]}), "spec.nodeName: has the wrong type"),
        ("/status/phase", json!(true), "status.phase: has the wrong type"),
        (
            "/status/containerStatuses/0/restartCount",
            json!(1.5),
            "status.containerStatuses[].restartCount: is malformed",
        ),
        (
            "/status/containerStatuses/0/restartCount",
            json!(-1),
            "status.containerStatuses[].restartCount: is malformed",
        ),
        ("/status/containerStatuses/0", json!(7), "status.containerStatuses[]: has the wrong type"),
    ] {
        let error = pod_with(|pod| *pod.pointer_mut(pointer).unwrap() = value).unwrap_err();
        assert_eq!(error, format!("{name}: {fault}"));
    }
    let error = pod_with(|pod| pod["metadata"]["name"] = json!("n".repeat(254))).unwrap_err();
    assert_eq!(error, "Pod shop/: metadata.name: is too long");
    let error = pod_with(|pod| *pod = json!({})).unwrap_err();
    assert_eq!(error, "Pod /: metadata.name: is missing");
    assert_eq!(
        read::<Pod>("{\"metadata\":", 5).unwrap_err(),
        "invalid JSON at byte 12: unexpected end"
    );
    assert_eq!(read::<Pod>("[]", 5).unwrap_err(), "Pod /: : has the wrong type");
}

#[test]
fn names_and_labels_at_the_limits_of_kubernetes_work() {
    let name = "n".repeat(limits::NAME);
    let key = format!("{}/{}", "p".repeat(253), "k".repeat(63));
    assert_eq!(key.len(), limits::LABEL_KEY);
    let value = "v".repeat(limits::LABEL_VALUE);
    let pod = pod_with(|pod| {
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!("s".repeat(limits::NAMESPACE));
        pod["metadata"]["ownerReferences"][0]["name"] = json!(name);
        pod["spec"]["nodeName"] = json!(name);
        let labels: serde_json::Map<_, _> =
            (0..limits::LABELS).map(|i| (format!("{i:02}{}", &key[2..]), json!(value))).collect();
        pod["metadata"]["labels"] = Value::Object(labels);
    })
    .unwrap();
    assert_eq!((pod.meta.name.as_str(), pod.node.as_str()), (name.as_str(), name.as_str()));
    assert_eq!(pod.meta.controller.unwrap().name, name.as_str());
    let expected = (0..limits::LABELS).map(|i| (format!("{i:02}{}", &key[2..]), value.clone()));
    let expected: Vec<_> = expected.collect();
    let expected: Vec<_> = expected.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(labels(&pod.meta.labels), prints(&expected));
    let error = pod_with(|pod| {
        for i in 0..=limits::LABELS {
            pod["metadata"]["labels"][format!("label-{i}")] = json!("x");
        }
    });
    assert!(error.unwrap_err().ends_with("metadata.labels: has too many entries"));
}

/// The decoder has a fixed size; what it reads does not.
#[test]
fn objects_of_any_size_are_read_in_the_same_memory() {
    let pod = pod_with(|pod| {
        pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
            json!("{\"key\": \"välue\"}\n".repeat(12_000));
        pod["metadata"]["annotations"]["huge"] = json!("x".repeat(250_000));
        let managed = |i| {
            let path = format!("k:{{\"name\":\"c{i}\"}}");
            let fields = json!({"f:spec": {"f:containers": {path: {".": {}, "f:image": {}}}}});
            json!({"manager": format!("m{i}"), "operation": "Update", "fieldsV1": fields})
        };
        pod["metadata"]["managedFields"] = (0..2_000).map(managed).collect();
        let container = |i| json!({"name": format!("c{i}"), "image": "x".repeat(15_000)});
        pod["spec"]["containers"] = (0..30).map(container).collect();
        let status = |i| json!({"name": format!("c{i}"), "restartCount": i * 7 % 30});
        pod["status"]["containerStatuses"] = (0..30).map(status).collect();
        assert!(pod.to_string().len() > 1 << 20);
    })
    .unwrap();
    assert_eq!(pod.meta.name, "web-7d4b9c6f85-x2k9q");
    assert_eq!((pod.restarts, pod.sidecar_restarts), (29, 4));
    assert_eq!(labels(&pod.meta.labels), prints(&LABELS));
    assert!(size_of::<Decoder<Pod>>() < 5 << 10);
    assert!(size_of::<Decoder<ReplicaSet>>() < 9 << 10);
}

//! Objects of every kind that is watched, with whatever the API server lets into them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Where they are.
pub(crate) const NAMESPACE: &str = "evil";

/// A part of an object, under a path such as `/spec/replicas`.
type Part = (&'static str, Value);

/// An object in parts, its kind in the plural and its name.
#[derive(Clone, Debug)]
pub(crate) struct Odd {
    pub(crate) plural: &'static str,
    /// Instead of one that says nothing.
    name: Option<String>,
    parts: Vec<Part>,
}

impl Odd {
    /// The whole of it. Whoever names `VICTIM-NAME-1` names an object of the other namespace.
    pub(crate) fn assemble(&self, number: usize, victims: &[Value]) -> Value {
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
        if self.plural == "replicationcontrollers" {
            object["spec"]["selector"] = json!({"app": "web"});
        }
        for (path, value) in &self.parts {
            let (parent, member) = path.rsplit_once('/').unwrap();
            let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            parent.insert(member.to_owned(), named(&value.to_string(), victims));
        }
        if let Some(name) = &self.name {
            object["metadata"]["name"] = named(&json!(name).to_string(), victims);
        }
        object
    }
}

/// A text with the names and uids of victims in it.
fn named(text: &str, victims: &[Value]) -> Value {
    let with = |text: String, (at, victim): (usize, &Value)| {
        let text = text.replace(&format!("VICTIM-NAME-{at}"), victim["name"].as_str().unwrap());
        text.replace(&format!("VICTIM-UID-{at}"), victim["uid"].as_str().unwrap())
    };
    serde_json::from_str(&victims.iter().enumerate().fold(text.to_owned(), with)).unwrap()
}

/// So many victims are named.
pub(crate) const VICTIMS: usize = 6;

/// Any of them.
pub(crate) fn odd() -> impl Strategy<Value = Odd> {
    let odd = |plural, name: BoxedStrategy<Option<String>>, part: BoxedStrategy<Part>| {
        let parts = vec(prop_oneof![metadata(), part], 1..8);
        (name, parts).prop_map(move |(name, parts)| Odd { plural, name, parts }).boxed()
    };
    let any_name = || prop_oneof![3 => Just(None), 1 => name().prop_map(Some)].boxed();
    prop_oneof![
        2 => odd("pods", any_name(), pod().boxed()),
        2 => odd("replicasets", any_name(), workload().boxed()),
        2 => odd("deployments", any_name(), workload().boxed()),
        1 => odd("replicationcontrollers", any_name(), replication_controller().boxed()),
        2 => odd("statefulsets", any_name(), prop_oneof![workload(), stateful()].boxed()),
        2 => odd("controllerrevisions", any_name(), revision().boxed()),
        2 => odd("persistentvolumeclaims", any_name(), claim().boxed()),
    ]
}

/// A name that the victim's objects have or could have.
fn name() -> impl Strategy<Value = String> {
    let victim = (0..VICTIMS).prop_map(|at| format!("VICTIM-NAME-{at}"));
    let ordinal = select(vec![
        "0",
        "00",
        "1",
        "-1",
        "007",
        "2147483647",
        "2147483648",
        "99999999999999999999",
    ]);
    let stem = select(vec!["db", "data-db", "data-db-0", "old", "lone", "web"]);
    prop_oneof![victim, (stem, ordinal).prop_map(|(stem, ordinal)| format!("{stem}-{ordinal}"))]
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
        (0..VICTIMS).prop_map(|at| format!("VICTIM-UID-{at}")),
        Just("x".repeat(300)),
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
    ];
    let kind = select(vec![
        "Foo",
        "Pod",
        "ReplicaSet",
        "Deployment",
        "ReplicationController",
        "StatefulSet",
        "replicaset",
        "Ä",
    ]);
    let name = prop_oneof![(0..VICTIMS).prop_map(|at| format!("VICTIM-NAME-{at}")), "[a-z]{1,253}"];
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
    (select(vec![0, 1, 63, 64, 65, 1000]), select(vec!["web", "lone", "old", "db", "other"]))
        .prop_map(|(count, app)| {
            let labels =
                (0..count).map(|number| (format!("label-{number}"), json!("x".repeat(63))));
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
    prop_oneof![
        4 => number_of_workload(),
        2 => selector().prop_map(|selector| ("/spec/selector", selector)),
        1 => conditions().prop_map(|conditions| ("/status/conditions", conditions)),
        1 => share.prop_map(|share| {
            ("/spec/strategy", json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": share}}))
        }),
        1 => ".{0,20}".prop_map(|kind| ("/spec/strategy", json!({"type": kind}))),
        1 => any::<bool>().prop_map(|paused| ("/spec/paused", json!(paused))),
        1 => deep().prop_map(|deep| {
            let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"ofTheFuture": deep}});
            ("/spec/template", template)
        }),
        1 => deep().prop_map(|deep| ("/status/ofTheFuture", deep)),
    ]
}

/// Numbers that all workloads have, or something in their place.
fn number_of_workload() -> impl Strategy<Value = Part> {
    let number = select(vec![i64::from(i32::MIN), -1, 0, i64::from(i32::MAX)]);
    prop_oneof![
        number.clone().prop_map(|number| ("/spec/minReadySeconds", json!(number.max(0)))),
        number.clone().prop_map(|number| ("/status/availableReplicas", json!(number))),
        number.prop_map(|number| ("/status/observedGeneration", json!(number))),
        select(vec![json!("0"), json!(0.0), json!([])])
            .prop_map(|replicas| ("/spec/replicas", replicas)),
    ]
}

/// Selectors as ReplicationControllers have them, and numbers.
fn replication_controller() -> impl Strategy<Value = Part> {
    let more = (0..100_usize).prop_map(|count| {
        let labels = (0..count).map(|number| (format!("l-{number}"), json!("x".repeat(63))));
        ("/spec/selector", json!(labels.collect::<Map<String, Value>>()))
    });
    prop_oneof![number_of_workload(), more, Just(("/spec/selector", json!(null)))]
}

/// What only StatefulSets have.
fn stateful() -> impl Strategy<Value = Part> {
    let count =
        select(vec![json!(0), json!(i32::MAX), json!("0%"), json!("100%"), json!("2147483647%")]);
    let policy = select(vec!["Retain", "Delete", "Ä"]);
    let templates = (select(vec![1_usize, 8, 9, 200]), "[a-z]{1,60}").prop_map(|(count, name)| {
        let template = |at| json!({"metadata": {"name": format!("{name}{at}")}, "spec": {"x": at}});
        json!((0..count).map(template).collect::<Vec<_>>())
    });
    prop_oneof![
        count.prop_map(|count| {
            let rolling = json!({"partition": i32::MAX, "maxUnavailable": count});
            ("/spec/updateStrategy", json!({"type": "RollingUpdate", "rollingUpdate": rolling}))
        }),
        ".{0,20}".prop_map(|kind| ("/spec/updateStrategy", json!({"type": kind}))),
        ".{0,20}".prop_map(|policy| ("/spec/podManagementPolicy", json!(policy))),
        (policy.clone(), policy).prop_map(|(deleted, scaled)| {
            let policy = json!({"whenDeleted": deleted, "whenScaled": scaled});
            ("/spec/persistentVolumeClaimRetentionPolicy", policy)
        }),
        templates.prop_map(|templates| ("/spec/volumeClaimTemplates", templates)),
        Just(("/spec/volumeClaimTemplates", json!([{"metadata": {"name": "data"}}]))),
        "[a-z]{0,253}".prop_map(|name| ("/spec/serviceName", json!(name))),
        select(vec![0, 1, i32::MAX]).prop_map(|start| ("/spec/ordinals", json!({"start": start}))),
        select(vec![-1, 0, i32::MAX]).prop_map(|count| ("/status/collisionCount", json!(count))),
        name().prop_map(|name| ("/status/currentRevision", json!(name))),
        name().prop_map(|name| ("/status/updateRevision", json!(name))),
        select(vec![0, i32::MAX]).prop_map(|limit| ("/spec/revisionHistoryLimit", json!(limit))),
    ]
}

/// What only ControllerRevisions have: `data` may be anything.
fn revision() -> impl Strategy<Value = Part> {
    let template = || json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}});
    prop_oneof![
        select(vec![i64::MIN, -1, 0, 1, i64::MAX]).prop_map(|number| ("/revision", json!(number))),
        deep().prop_map(|deep| ("/data", deep)),
        deep().prop_map(move |deep| {
            ("/data", json!({"spec": {"template": template(), "ofTheFuture": deep}}))
        }),
        Just(("/data", json!({"spec": {"template": "x".repeat(100_000)}}))),
        Just(("/data", json!(null))),
        // With the labels that the victim's have.
        Just(("/metadata/labels", json!({"app": "db", "controller.kubernetes.io/hash": "1"}))),
    ]
}

/// What only claims have.
fn claim() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(("/spec/accessModes", json!(vec!["ReadWriteOnce"; 300]))),
        deep().prop_map(|deep| ("/spec/ofTheFuture", deep)),
        ".{0,20}".prop_map(|phase| ("/status/phase", json!(phase))),
        Just(("/status/capacity", json!({"storage": "999999999999999999999E"}))),
        Just(("/metadata/labels", json!({"app": "db"}))),
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

//! Refusals in upstream's words.

use serde_json::{Value, json};

use crate::api::body::Parsed;
use crate::api::decode::{FieldValidation, decode_object};
use crate::api::kind::{self, Kind};
use crate::api::lifecycle::{prepare_create, prepare_update, validate_create, validate_update};
use crate::time::Timestamp;

pub(super) fn prepared(kind: &Kind, value: Value) -> Value {
    let parsed = Parsed { value, duplicates: Vec::new() };
    let mut object = decode_object(kind, parsed, FieldValidation::Strict).unwrap().object;
    prepare_create(kind, &mut object, Timestamp::default(), "u");
    object
}

pub(super) fn refusal(group: &str, plural: &str, value: Value) -> String {
    let kind = kind::find(group, "v1", plural).unwrap();
    validate_create(kind, &prepared(kind, value)).err().map(|s| s.message).unwrap_or_default()
}

/// What is said about `base` with one place changed, without the `X "name" is invalid: ` in front.
pub(super) fn refusal_of(
    group: &str,
    plural: &str,
    base: &Value,
    pointer: &str,
    value: Value,
) -> String {
    let mut object = base.clone();
    put(&mut object, pointer, value);
    let message = refusal(group, plural, object);
    message.split_once(" is invalid: ").map_or(message.clone(), |(_, m)| m.to_owned())
}

/// What is said about a change of one place, without the `X "name" is invalid: ` in front.
pub(super) fn changed(plural: &str, old: &Value, pointer: &str, value: Value) -> String {
    let kind = kind::ALL.iter().find(|kind| kind.plural == plural).unwrap();
    let mut new = old.clone();
    put(&mut new, pointer, value);
    prepare_update(kind, "", &mut new, old);
    let message = validate_update(kind, "", &new, old).err().map(|s| s.message).unwrap_or_default();
    message.split_once(" is invalid: ").map_or(message.clone(), |(_, m)| m.to_owned())
}

pub(super) fn put(object: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    if object.pointer(parent).is_none() {
        put(object, parent, json!({}));
    }
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items.push(value),
        parent => parent[name] = value,
    }
}

fn deployment() -> Value {
    json!({"metadata": {"name": "web", "namespace": "n"},
           "spec": {"selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                                 "spec": {"containers": [{"name": "app", "image": "img:v1"}]}}}})
}

pub(super) fn stateful_set() -> Value {
    let mut set = deployment();
    set["spec"]["serviceName"] = json!("db");
    set
}

fn replication_controller() -> Value {
    json!({"metadata": {"name": "web", "namespace": "n"},
           "spec": {"template": deployment()["spec"]["template"]}})
}

fn pod() -> Value {
    json!({"metadata": {"name": "a", "namespace": "n"},
           "spec": {"containers": [{"name": "app", "image": "img:v1"}]}})
}

#[test]
fn deployments_are_refused_as_upstream_refuses_them() {
    let rolling = "/spec/strategy/rollingUpdate";
    let cases = [
        (
            "/spec/replicas",
            json!(-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "/spec/selector",
            json!({}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        ("/spec/selector", json!(null), "spec.selector: Required value"),
        (
            "/spec/selector/matchLabels/app",
            json!("db"),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does \
             not match template `labels`",
        ),
        (
            rolling,
            json!({"maxSurge": 0, "maxUnavailable": 0}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when \
             `maxSurge` is 0",
        ),
        (
            rolling,
            json!({"maxSurge": "0%", "maxUnavailable": "0%"}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 \
             when `maxSurge` is 0",
        ),
        (
            rolling,
            json!({"maxUnavailable": "101%"}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be \
             greater than 100%",
        ),
        (
            rolling,
            json!({"maxSurge": -1}),
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or \
             equal to 0",
        ),
        (
            "/spec/strategy",
            json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` \
             is 'Recreate'",
        ),
        (
            "/spec/progressDeadlineSeconds",
            json!(0),
            "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
        ),
        (
            "/spec/template/spec/restartPolicy",
            json!("Never"),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
             \"Always\"",
        ),
        (
            "/spec/template/spec/containers",
            json!([]),
            "spec.template.spec.containers: Required value",
        ),
        (
            "/metadata/name",
            json!(""),
            "metadata.name: Required value: name or generateName is required",
        ),
    ];
    for (pointer, value, message) in cases {
        let said = refusal_of("apps", "deployments", &deployment(), pointer, value);
        assert_eq!(said, message, "{pointer}");
    }
    assert_eq!(refusal("apps", "deployments", deployment()), "");
}

#[test]
fn replication_controllers_are_refused_as_upstream_refuses_them() {
    let cases = [
        (
            "/spec/replicas",
            json!(-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "/spec/minReadySeconds",
            json!(-1),
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("/spec/template/metadata/labels", json!({}), "spec.selector: Required value"),
        (
            "/spec/selector",
            json!({"app": "db"}),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does \
             not match template `labels`",
        ),
        (
            "/spec/selector",
            json!({"app": "web", "matchLabels": "x"}),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does \
             not match template `labels`",
        ),
        (
            "/spec/template",
            json!(null),
            "[spec.selector: Required value, spec.template: Required value]",
        ),
        (
            "/spec",
            json!({"replicas": -1, "minReadySeconds": -1}),
            "[spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0, \
             spec.selector: Required value, spec.replicas: Invalid value: -1: must be greater than \
             or equal to 0, spec.template: Required value]",
        ),
        (
            "/spec/template/spec/restartPolicy",
            json!("OnFailure"),
            "spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\": supported values: \
             \"Always\"",
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            json!(5),
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in \
             ReplicationController is not Supported",
        ),
        (
            "/spec/template/spec/containers",
            json!([]),
            "spec.template.spec.containers: Required value",
        ),
        (
            "/metadata/name",
            json!("A"),
            "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of \
             lower case alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ];
    for (pointer, value, message) in cases {
        let base = replication_controller();
        let said = refusal_of("", "replicationcontrollers", &base, pointer, value);
        assert_eq!(said, message, "{pointer}");
    }
    assert_eq!(refusal("", "replicationcontrollers", replication_controller()), "");
}

#[test]
fn deadlines_are_refused_in_the_name_of_who_runs_the_pods() {
    for (group, plural, base, owner) in [
        ("apps", "deployments", deployment(), "ReplicaSet"),
        ("apps", "replicasets", deployment(), "ReplicaSet"),
        ("apps", "statefulsets", stateful_set(), "StatefulSet"),
        ("apps", "daemonsets", deployment(), "DaemonSet"),
        ("", "replicationcontrollers", replication_controller(), "ReplicationController"),
    ] {
        let pointer = "/spec/template/spec/activeDeadlineSeconds";
        assert_eq!(
            refusal_of(group, plural, &base, pointer, json!(5)),
            format!(
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in \
                 {owner} is not Supported"
            )
        );
    }
}

#[test]
fn the_selector_of_a_replication_controller_can_be_changed() {
    let kind = kind::find("", "v1", "replicationcontrollers").unwrap();
    let old = prepared(kind, replication_controller());
    let judge = |selector: Value, labels: Value| {
        let mut new = old.clone();
        new["spec"]["selector"] = selector;
        new["spec"]["template"]["metadata"]["labels"] = labels;
        prepare_update(kind, "", &mut new, &old);
        validate_update(kind, "", &new, &old).map_err(|s| s.message)
    };
    assert_eq!(judge(json!({"tier": "front"}), json!({"tier": "front", "app": "web"})), Ok(()));
    assert_eq!(
        judge(json!({"tier": "front"}), json!({"app": "web"})).unwrap_err(),
        "ReplicationController \"web\" is invalid: spec.template.metadata.labels: Invalid value: \
         {\"app\":\"web\"}: `selector` does not match template `labels`"
    );
}

#[test]
fn pods_are_refused_as_upstream_refuses_them() {
    let container = "/spec/containers/0";
    let at = |field: &str| format!("{container}/{field}");
    let cases = [
        (
            at("name"),
            json!("A"),
            "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label",
        ),
        (at("image"), json!(""), "spec.containers[0].image: Required value"),
        (
            at("image"),
            json!(" a "),
            "spec.containers[0].image: Invalid value: \" a \": must not have leading or trailing \
             whitespace",
        ),
        (
            at("imagePullPolicy"),
            json!("x"),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"x\": supported values: \
             \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            at("ports"),
            json!([{"containerPort": 0}]),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            at("ports"),
            json!([{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 \
             and 65535, inclusive",
        ),
        (
            at("env"),
            json!([{"name": "a=b"}]),
            "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name",
        ),
        (
            at("volumeMounts"),
            json!([{"name": "v", "mountPath": "/v"}]),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            at("resources"),
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1",
        ),
        (
            at("livenessProbe"),
            json!({"periodSeconds": 5}),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            at("livenessProbe"),
            json!({"exec": {"command": ["a"]}, "successThreshold": 2}),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            "/spec/containers/-".to_owned(),
            json!({"name": "app", "image": "b:1"}),
            "spec.containers[1].name: Duplicate value: \"app\"",
        ),
        (
            "/spec/restartPolicy".to_owned(),
            json!("x"),
            "spec.restartPolicy: Unsupported value: \"x\": supported values: \"Always\", \
             \"OnFailure\", \"Never\"",
        ),
        (
            "/spec/dnsPolicy".to_owned(),
            json!("x"),
            "spec.dnsPolicy: Unsupported value: \"x\": supported values: \
             \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
        ),
        (
            "/spec/volumes".to_owned(),
            json!([{"name": "a"}, {"name": "a"}]),
            "spec.volumes[1].name: Duplicate value: \"a\"",
        ),
        (
            "/metadata/labels".to_owned(),
            json!({"a b": "c"}),
            "metadata.labels: Invalid value: \"a b\": name part must consist of",
        ),
        (
            "/metadata/labels".to_owned(),
            json!({"a": "-"}),
            "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or",
        ),
        (
            "/metadata/ownerReferences".to_owned(),
            json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
                   {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": true}]),
            "metadata.ownerReferences: Invalid value: [{",
        ),
        (
            "/metadata/finalizers".to_owned(),
            json!(["orphan", "foregroundDeletion"]),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
             orphan and foregroundDeletion cannot be both set",
        ),
        (
            "/metadata/annotations".to_owned(),
            json!({"a": "x".repeat(262_144)}),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
    ];
    for (pointer, value, message) in cases {
        let said = refusal_of("", "pods", &pod(), &pointer, value);
        assert!(said.starts_with(message), "{pointer}: {said}");
    }
    assert_eq!(refusal("", "pods", pod()), "");
}

#[test]
fn only_certain_fields_of_a_pod_may_change() {
    let kind = kind::find("", "v1", "pods").unwrap();
    let old = prepared(kind, pod());
    let judge = |pointer: &str, value: Value| {
        let mut new = old.clone();
        put(&mut new, pointer, value);
        prepare_update(kind, "", &mut new, &old);
        validate_update(kind, "", &new, &old).err().map(|s| s.message)
    };
    assert_eq!(judge("/spec/containers/0/image", json!("img:v2")), None);
    assert_eq!(judge("/metadata/labels", json!({"a": "b"})), None);
    assert_eq!(judge("/spec/activeDeadlineSeconds", json!(5)), None);
    let toleration = json!([{"key": "a", "operator": "Exists"}]);
    assert_eq!(judge("/spec/tolerations", toleration), None);
    let said = judge("/spec/nodeName", json!("b")).unwrap();
    assert!(
        said.contains("spec: Forbidden: pod updates may not change fields other than"),
        "{said}"
    );
    let said = judge("/spec/containers/-", json!({"name": "b", "image": "c:1"})).unwrap();
    assert!(said.contains("pod updates may not add or remove containers"), "{said}");
}

#[test]
fn immutable_fields_are_named() {
    let kind = kind::find("apps", "v1", "deployments").unwrap();
    let old = prepared(kind, deployment());
    let mut new = old.clone();
    new["spec"]["selector"] = json!({"matchLabels": {"app": "x"}});
    prepare_update(kind, "", &mut new, &old);
    assert_eq!(
        validate_update(kind, "", &new, &old).unwrap_err().message,
        "Deployment.apps \"web\" is invalid: [spec.template.metadata.labels: Invalid value: \
         {\"app\":\"web\"}: `selector` does not match template `labels`, spec.selector: Invalid \
         value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable]"
    );
}

#[test]
fn statuses_must_add_up() {
    let kind = kind::find("apps", "v1", "deployments").unwrap();
    let old = prepared(kind, deployment());
    let judge = |status: Value| {
        let mut new = old.clone();
        new["status"] = status;
        validate_update(kind, "status", &new, &old).err().map(|s| s.message).unwrap_or_default()
    };
    assert_eq!(judge(json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 2})), "");
    assert!(judge(json!({"replicas": -1})).contains("status.replicas: Invalid value: -1"));
    let said = judge(json!({"replicas": 1, "readyReplicas": 2}));
    assert!(said.contains(
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
    ));
    let said = judge(json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}));
    assert!(said.contains("cannot be greater than readyReplicas"), "{said}");
}

#[test]
fn statuses_of_stateful_sets_must_add_up() {
    let kind = kind::find("apps", "v1", "statefulsets").unwrap();
    let mut old = prepared(kind, stateful_set());
    let full = json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1,
                      "currentReplicas": 1, "updatedReplicas": 2, "collisionCount": 1});
    old["status"] = full.clone();
    let judge = |field: &str, value: Value| {
        let mut new = old.clone();
        new["status"][field] = value;
        let said = validate_update(kind, "status", &new, &old).err().map(|s| s.message);
        said.unwrap_or_default().replace("StatefulSet.apps \"web\" is invalid: ", "")
    };
    assert_eq!(judge("readyReplicas", json!(3)), "");
    let more = "cannot be greater than status.replicas";
    for field in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
        assert_eq!(judge(field, json!(4)), format!("status.{field}: Invalid value: 4: {more}"));
    }
    assert_eq!(
        judge("availableReplicas", json!(3)),
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas"
    );
    assert_eq!(
        judge("collisionCount", Value::Null),
        "status.collisionCount: Invalid value: 0: cannot be decremented"
    );
}

#[test]
fn statuses_of_replica_sets_and_replication_controllers_must_add_up() {
    let full = json!({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2,
                      "availableReplicas": 1, "observedGeneration": 1});
    let more = "cannot be greater than status.replicas";
    let negative = "must be greater than or equal to 0";
    let cases = [
        ("fullyLabeledReplicas", 4, more),
        ("readyReplicas", 4, more),
        ("availableReplicas", 4, more),
        ("availableReplicas", 3, "cannot be greater than readyReplicas"),
        ("replicas", -1, negative),
        ("fullyLabeledReplicas", -1, negative),
        ("readyReplicas", -1, negative),
        ("availableReplicas", -1, negative),
        ("observedGeneration", -1, negative),
    ];
    for (group, plural, base) in [
        ("apps", "replicasets", deployment()),
        ("", "replicationcontrollers", replication_controller()),
    ] {
        let kind = kind::find(group, "v1", plural).unwrap();
        let old = prepared(kind, base);
        let judge = |status: &Value| {
            let mut new = old.clone();
            new["status"] = status.clone();
            validate_update(kind, "status", &new, &old).err().map(|s| s.message)
        };
        assert_eq!(judge(&full), None, "{plural}");
        for (field, count, words) in cases {
            let mut status = full.clone();
            status[field] = json!(count);
            let said = judge(&status).unwrap_or_default();
            let wanted = format!("status.{field}: Invalid value: {count}: {words}");
            assert!(said.contains(&wanted), "{plural}: {said}");
        }
    }
}

#[test]
fn other_kinds_are_refused_as_upstream_refuses_them() {
    let meta = json!({"name": "a", "namespace": "n"});
    let cases = [
        (
            "",
            "configmaps",
            json!({"data": {"a b": ""}}),
            "data[a b]: Invalid value: \"a b\": a valid config key",
        ),
        (
            "",
            "secrets",
            json!({"type": "kubernetes.io/tls"}),
            "[data[tls.crt]: Required value, data[tls.key]: Required value]",
        ),
        ("", "services", json!({"spec": {}}), "spec.ports: Required value"),
        (
            "",
            "services",
            json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}),
            "[spec.ports[0].name: Required value, spec.ports[1].name: Required value]",
        ),
        (
            "coordination.k8s.io",
            "leases",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "apps",
            "controllerrevisions",
            json!({"revision": -1, "data": {}}),
            "revision: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("apps", "controllerrevisions", json!({}), "data: Required value: data is mandatory"),
        (
            "batch",
            "jobs",
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b:1"}]}}}}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
    ];
    for (group, plural, mut object, message) in cases {
        object["metadata"] = meta.clone();
        let said = refusal(group, plural, object);
        let said = said.split_once(" is invalid: ").map_or(said.as_str(), |(_, m)| m);
        assert!(said.starts_with(message), "{plural}: {said}");
    }
}

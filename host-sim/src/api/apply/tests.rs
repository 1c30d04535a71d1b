//! Server-side apply against upstream's documented behaviour, and against a model: what is applied last
//! by the only manager is what is there.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::kind;
use crate::api::lifecycle::{prepare_create, prepare_update};
use crate::api::patch::{PatchType, patch_object};
use crate::api::testing::any_json;

const EARLY: Timestamp = Timestamp::from_unix_millis(1_700_000_000_000);
const LATE: Timestamp = Timestamp::from_unix_millis(1_700_000_060_000);

fn deployments() -> &'static Kind {
    kind::find("apps", "v1", "deployments").unwrap()
}

fn writer(manager: &str, now: Timestamp) -> Writer<'_> {
    Writer { manager, subresource: "", now }
}

fn try_apply(
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, Status> {
    try_apply_to(deployments(), live, config, manager, force)
}

fn try_apply_to(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, Status> {
    let body = config.to_string();
    let now = if live.is_some() { LATE } else { EARLY };
    let validation = FieldValidation::Strict;
    let decoded = apply(kind, live, body.as_bytes(), writer(manager, now), force, validation)?;
    let mut object = decoded.object;
    match live {
        None => prepare_create(kind, &mut object, now, "u"),
        Some(live) => prepare_update(kind, "", &mut object, live),
    }
    Ok(object)
}

fn applied(live: Option<&Value>, config: &Value, manager: &str) -> Value {
    try_apply(live, config, manager, false).unwrap()
}

fn web() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
           "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}},
           "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                                 "spec": {"containers": [{"name": "app", "image": "img:v1"}]}}}})
}

fn entry<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries.iter().find(|e| e["manager"] == manager).unwrap_or(&Value::Null)
}

#[test]
fn an_applier_owns_what_it_states_and_nothing_else() {
    let object = applied(None, &web(), "kubectl");
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1",
                "time": "2023-11-14T22:13:20Z", "fieldsType": "FieldsV1", "fieldsV1": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {
                    ".": {}, "f:image": {}, "f:name": {}}}}}},
        }}])
    );
    assert_eq!(object["spec"]["strategy"]["type"], "RollingUpdate");
}

#[test]
fn the_selector_of_a_replication_controller_is_owned_as_a_whole() {
    let mut config = web();
    config["apiVersion"] = json!("v1");
    config["kind"] = json!("ReplicationController");
    config["spec"]["selector"] = json!({"app": "web"});
    let kind = kind::find("", "v1", "replicationcontrollers").unwrap();
    let object = try_apply_to(kind, None, &config, "kubectl", false).unwrap();
    let owned = &entry(&object, "kubectl")["fieldsV1"]["f:spec"];
    assert_eq!((&owned["f:selector"], &owned["f:replicas"]), (&json!({}), &json!({})));
    let mut other = config.clone();
    other["spec"]["selector"] = json!({"app": "web", "tier": "front"});
    let refused = try_apply_to(kind, Some(&object), &other, "other", false).unwrap_err();
    assert!(refused.message.contains(".spec.selector"), "{}", refused.message);
    let forced = try_apply_to(kind, Some(&object), &other, "other", true).unwrap();
    assert_eq!(forced["spec"]["selector"], other["spec"]["selector"]);
    assert!(entry(&forced, "kubectl")["fieldsV1"]["f:spec"].get("f:selector").is_none());
}

#[test]
fn a_creator_owns_defaults_too() {
    let kind = deployments();
    let mut object = web();
    conform(kind.object_type().unwrap(), &mut object).unwrap();
    (kind.rules.defaults)(&mut object);
    prepare_create(kind, &mut object, EARLY, "u");
    manage_create(kind, &mut object, writer("kubectl-create", EARLY));
    let fields = &entry(&object, "kubectl-create")["fieldsV1"];
    assert_eq!(fields["f:metadata"], json!({"f:labels": {".": {}, "f:app": {}}}));
    assert_eq!(
        fields["f:spec"]["f:strategy"],
        json!({"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}})
    );
    let pod = &fields["f:spec"]["f:template"]["f:spec"];
    assert_eq!(
        pod["f:containers"],
        json!({"k:{\"name\":\"app\"}": {".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
            "f:resources": {}, "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}}})
    );
    assert_eq!(pod["f:securityContext"], json!({}));
    assert!(fields.get("f:status").is_none());
}

#[test]
fn applying_again_leaves_no_trace() {
    let first = applied(None, &web(), "kubectl");
    assert_eq!(applied(Some(&first), &web(), "kubectl"), first);
}

#[test]
fn what_is_no_longer_applied_goes() {
    let mut config = web();
    config["metadata"]["annotations"] = json!({"a": "b"});
    let containers = &mut config["spec"]["template"]["spec"]["containers"];
    containers[0]["env"] = json!([{"name": "X", "value": "1"}]);
    containers[0]["livenessProbe"] = json!({"httpGet": {"port": 80}});
    containers.as_array_mut().unwrap().push(json!({"name": "extra", "image": "e:1"}));
    let rich = applied(None, &config, "kubectl");
    let plain = applied(Some(&rich), &web(), "kubectl");
    let spec = &plain["spec"]["template"]["spec"]["containers"];
    assert_eq!(spec.as_array().unwrap().len(), 1);
    assert!(spec[0].get("env").is_none() && plain["metadata"].get("annotations").is_none());
    assert!(spec[0].get("livenessProbe").is_none(), "{}", spec[0]);
    assert_eq!(plain["metadata"]["generation"], 2);
}

#[test]
fn what_others_own_is_refused_unless_forced() {
    let live = applied(None, &web(), "kubectl");
    let patch = br#"{"spec":{"replicas":5}}"#;
    let mut scaled =
        patch_object(deployments(), PatchType::Merge, &live, patch, FieldValidation::Warn)
            .unwrap()
            .object;
    manage_update(deployments(), &mut scaled, &live, writer("autoscaler", LATE));
    assert!(entry(&scaled, "kubectl")["fieldsV1"]["f:spec"].get("f:replicas").is_none());
    let error = try_apply(Some(&scaled), &web(), "kubectl", false).unwrap_err();
    assert_eq!(error.code(), 409);
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"autoscaler\" using apps/v1: .spec.replicas"
    );
    assert_eq!(
        error.to_value()["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "field": ".spec.replicas",
                "message": "conflict with \"autoscaler\" using apps/v1"}])
    );
    let forced = try_apply(Some(&scaled), &web(), "kubectl", true).unwrap();
    assert_eq!(forced["spec"]["replicas"], 2);
    assert!(entry(&forced, "autoscaler").is_null());
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let live = applied(None, &web(), "kubectl");
    let mut config = web();
    config["spec"]["replicas"] = json!(9);
    config["spec"]["template"]["spec"]["containers"][0]["image"] = json!("img:v9");
    let error = try_apply(Some(&live), &config, "other", false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .spec.replicas\n- \
         .spec.template.spec.containers[name=\"app\"].image"
    );
}

#[test]
fn shared_fields_stay_until_nobody_applies_them() {
    let live = applied(None, &web(), "one");
    let live = applied(Some(&live), &web(), "two");
    let mut config = web();
    config["metadata"]["labels"] = json!({});
    let live = applied(Some(&live), &config, "one");
    assert_eq!(live["metadata"]["labels"], json!({"app": "web"}));
    let live = applied(Some(&live), &config, "two");
    assert!(live["metadata"].get("labels").is_none());
}

#[test]
fn a_ports_key_has_its_default_protocol() {
    let mut config = web();
    config["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    let live = applied(None, &config, "kubectl");
    let fields = &entry(&live, "kubectl")["fieldsV1"]["f:spec"]["f:template"]["f:spec"];
    let ports = &fields["f:containers"]["k:{\"name\":\"app\"}"]["f:ports"];
    assert!(ports.get("k:{\"containerPort\":80,\"protocol\":\"TCP\"}").is_some(), "{ports}");
    assert_eq!(applied(Some(&live), &config, "kubectl"), live);
}

#[test]
fn kubectls_migration_from_client_side_apply_works() {
    let kind = deployments();
    let mut live = web();
    conform(kind.object_type().unwrap(), &mut live).unwrap();
    (kind.rules.defaults)(&mut live);
    prepare_create(kind, &mut live, EARLY, "u");
    manage_create(kind, &mut live, writer("kubectl-client-side-apply", EARLY));
    // kubectl hands all that its client-side apply owned to its server-side apply, by JSON patch.
    let fields = entry(&live, "kubectl-client-side-apply")["fieldsV1"].clone();
    let handed = json!([{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1",
                         "time": "2023-11-14T22:13:20Z", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": handed}]);
    let mut migrated = patch_object(
        kind,
        PatchType::Json,
        &live,
        patch.to_string().as_bytes(),
        FieldValidation::Strict,
    )
    .unwrap()
    .object;
    manage_update(kind, &mut migrated, &live, writer("kubectl", LATE));
    assert_eq!(migrated["metadata"]["managedFields"], handed);
    let mut config = web();
    config["spec"]["replicas"] = json!(4);
    let live = applied(Some(&migrated), &config, "kubectl");
    assert_eq!(live["spec"]["replicas"], 4);
    assert!(entry(&live, "kubectl-client-side-apply").is_null());
}

#[test]
fn kubectl_may_change_what_it_applied_from_the_clients_side() {
    let kind = deployments();
    let mut live = web();
    live["metadata"]["annotations"] = json!({LAST_APPLIED: web().to_string()});
    conform(kind.object_type().unwrap(), &mut live).unwrap();
    (kind.rules.defaults)(&mut live);
    prepare_create(kind, &mut live, EARLY, "u");
    manage_create(kind, &mut live, writer("kubectl-client-side-apply", EARLY));
    let mut config = web();
    config["spec"]["replicas"] = json!(4);
    assert_eq!(try_apply(Some(&live), &config, "somebody", false).unwrap_err().code(), 409);
    let applied = applied(Some(&live), &config, "kubectl");
    assert_eq!(applied["spec"]["replicas"], 4);
    let noted = applied["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(noted).unwrap(), config);
    // A field that was never applied is not kubectl's to take without a word.
    config["spec"]["revisionHistoryLimit"] = json!(3);
    let error = try_apply(Some(&live), &config, "kubectl", false).unwrap_err();
    assert!(
        error.message.ends_with("using apps/v1: .spec.revisionHistoryLimit"),
        "{}",
        error.message
    );
}

#[test]
fn ownership_can_be_forgotten() {
    let live = applied(None, &web(), "kubectl");
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([{}]);
    manage_update(deployments(), &mut new, &live, writer("x", LATE));
    assert!(new["metadata"].get("managedFields").is_none());
}

#[test]
fn broken_configurations_are_refused() {
    let cases = [
        (json!({"apiVersion": "v1", "kind": "Pod"}), "the configuration is of /v1, Kind=Pod"),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web",
                "namespace": "n"},
                "spec": {"replicaz": 1}}),
            "failed to create typed patch object (n/web; apps/v1, Kind=Deployment): \
             .spec.replicaz: field not declared in schema",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
            "failed to create typed patch object (/; apps/v1, Kind=Deployment): element 0: \
             associative list with keys",
        ),
        (json!([]), "error decoding YAML"),
    ];
    for (config, message) in cases {
        let error = try_apply(None, &config, "m", false).unwrap_err();
        assert_eq!(error.code(), 400);
        assert!(error.message.starts_with(message), "{}", error.message);
    }
}

/// Configurations as a user might write them.
fn any_config() -> impl Strategy<Value = Value> {
    let labels = || prop::collection::btree_map("[a-c]", "[a-c]", 0..3);
    let env = prop::collection::btree_map("[A-C]", "[a-c]", 0..3).prop_map(|vars| {
        vars.iter().map(|(n, v)| json!({"name": n, "value": v})).collect::<Vec<_>>()
    });
    let container = ("[a-b]", env, prop::option::of("[a-c]"), any::<bool>());
    let containers = prop::collection::btree_map("[a-d]", container, 1..4);
    (labels(), containers, prop::option::of(0..3i32), labels()).prop_map(
        |(labels, containers, replicas, selector)| {
            let containers: Vec<Value> = containers
                .into_iter()
                .map(|(name, (image, env, dir, probe))| {
                    let mut c = json!({"name": name, "image": image});
                    if !env.is_empty() {
                        c["env"] = json!(env);
                    }
                    if let Some(dir) = dir {
                        c["workingDir"] = json!(dir);
                    }
                    if probe {
                        c["readinessProbe"] = json!({"tcpSocket": {"port": 1}});
                    }
                    c
                })
                .collect();
            let mut config = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "n"},
                "spec": {"selector": {"matchLabels": selector},
                    "template": {"spec": {"containers": containers}}}});
            if !labels.is_empty() {
                config["metadata"]["labels"] = json!(labels);
            }
            if let Some(replicas) = replicas {
                config["spec"]["replicas"] = json!(replicas);
            }
            config
        },
    )
}

/// The object without what time and history put there, with keyed lists in order of their keys.
fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("generation");
    for entry in metadata["managedFields"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("time");
    }
    let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    containers.sort_by_key(|c| c["name"].as_str().unwrap().to_owned());
    for container in containers {
        if let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) {
            env.sort_by_key(|e| e["name"].as_str().unwrap().to_owned());
        }
    }
    object
}

proptest! {
    #[test]
    fn what_is_applied_last_is_what_is_there(first in any_config(), second in any_config()) {
        let live = applied(None, &first, "m");
        let live = applied(Some(&live), &second, "m");
        prop_assert_eq!(essence(&live), essence(&applied(None, &second, "m")));
        prop_assert_eq!(applied(Some(&live), &second, "m"), live);
    }

    #[test]
    fn a_second_manager_that_lets_go_changes_nothing(base in any_config(), visit in any_config()) {
        let live = applied(None, &base, "m");
        let Ok(visited) = try_apply(Some(&live), &visit, "visitor", false) else { return Ok(()) };
        let mut nothing = visit.clone();
        nothing["metadata"].as_object_mut().unwrap().remove("labels");
        nothing.as_object_mut().unwrap().remove("spec");
        let left = applied(Some(&visited), &nothing, "visitor");
        prop_assert_eq!(essence(&left), essence(&live));
    }

    #[test]
    fn any_values_are_taken_without_panic(live in any_json(), config in any_json(), fields in any_json()) {
        let mut live = live;
        if live.is_object() && live.get("metadata").is_some_and(Value::is_object) {
            live["metadata"]["managedFields"] =
                json!([{"manager": "m", "operation": "Apply", "apiVersion": "apps/v1",
                    "fieldsV1": fields}]);
        }
        let mut config = config;
        if config.is_object() {
            config["apiVersion"] = json!("apps/v1");
            config["kind"] = json!("Deployment");
        }
        let body = config.to_string();
        let _ = apply(deployments(), Some(&live), body.as_bytes(), writer("m", EARLY), true,
            FieldValidation::Warn);
        let mut new = config.clone();
        manage_update(deployments(), &mut new, &live, writer("m", EARLY));
        manage_create(deployments(), &mut live, writer("m", EARLY));
    }
}

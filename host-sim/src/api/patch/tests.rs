//! Patches against examples and against a model: a patch made of two objects makes one of the other.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::kind;
use crate::api::testing::any_json;

fn deployments() -> &'static Kind {
    kind::find("apps", "v1", "deployments").unwrap()
}

fn pods() -> &'static Kind {
    kind::find("", "v1", "pods").unwrap()
}

fn strategic(kind: &Kind, object: &Value, patch: Value) -> Value {
    strategic::apply(kind.object_type().unwrap(), object, &patch).unwrap()
}

fn two_containers() -> Value {
    json!({"spec": {"containers": [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
                                   {"name": "b", "image": "b:1"}]}})
}

#[test]
fn lists_merge_by_their_keys() {
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c",
        "image": "c:1"}]}});
    let patched = strategic(pods(), &two_containers(), patch);
    let names: Vec<_> = patched["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["image"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("a", "a:1"), ("b", "b:2"), ("c", "c:1")]);
}

#[test]
fn a_replication_controllers_conditions_merge_and_its_selector_too() {
    let kind = kind::find("", "v1", "replicationcontrollers").unwrap();
    let object = json!({"spec": {"selector": {"app": "web"}},
                        "status": {"conditions": [{"type": "A", "status": "True"}]}});
    let patch = json!({"spec": {"selector": {"tier": "front"}},
                       "status": {"conditions": [{"type": "ReplicaFailure", "status": "True"},
                                                 {"type": "A", "status": "False"}]}});
    let patched = strategic(kind, &object, patch);
    assert_eq!(patched["spec"]["selector"], json!({"app": "web", "tier": "front"}));
    let mut conditions = patched["status"]["conditions"].as_array().unwrap().clone();
    conditions.sort_by_key(|c| c["type"].as_str().unwrap().to_owned());
    assert_eq!(
        Value::Array(conditions),
        json!([{"type": "A", "status": "False"}, {"type": "ReplicaFailure", "status": "True"}])
    );
}

#[test]
fn kubectls_set_image_and_env_patches_work() {
    let patch = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "app"}],
        "containers": [{"name": "app", "env": [{"name": "A", "value": "b"}]}]}}}});
    let object =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "i"}]}}}});
    let patched = strategic(deployments(), &object, patch);
    assert_eq!(
        patched["spec"]["template"]["spec"]["containers"],
        json!([{"name": "app", "image": "i", "env": [{"name": "A", "value": "b"}]}])
    );
}

#[test]
fn directives_delete_replace_and_merge() {
    let delete = json!({"spec": {"containers": [{"$patch": "delete", "name": "a"}]}});
    let patched = strategic(pods(), &two_containers(), delete);
    assert_eq!(patched["spec"]["containers"], json!([{"name": "b", "image": "b:1"}]));
    let replace =
        json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}});
    let patched = strategic(pods(), &two_containers(), replace);
    assert_eq!(patched["spec"]["containers"], json!([{"name": "z", "image": "z"}]));
    let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
    let replace = json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}});
    assert_eq!(strategic(pods(), &object, replace)["metadata"]["labels"], json!({"c": "3"}));
    let delete = json!({"metadata": {"labels": {"$patch": "delete"}}});
    assert_eq!(strategic(pods(), &object, delete)["metadata"]["labels"], json!({}));
    let merge = json!({"metadata": {"labels": {"$patch": "merge", "c": "3", "a": null}}});
    let merged = strategic(pods(), &object, merge);
    assert_eq!(merged["metadata"]["labels"], json!({"b": "2", "c": "3"}));
}

#[test]
fn owner_references_are_adopted_and_released_by_uid() {
    let adopt =
        json!({"metadata": {"uid": "p", "ownerReferences": [{"uid": "c", "kind": "ReplicaSet"}]}});
    let owned = strategic(pods(), &json!({"metadata": {"uid": "p"}}), adopt);
    assert_eq!(owned["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
    let release =
        json!({"metadata": {"uid": "p", "ownerReferences": [{"$patch": "delete", "uid": "c"}]}});
    let released = strategic(pods(), &owned, release.clone());
    assert_eq!(released["metadata"]["ownerReferences"], json!([]));
    // Releasing what is not owned is silently fine.
    strategic(pods(), &released, release);
}

#[test]
fn finalizers_are_a_set() {
    let object = json!({"metadata": {"finalizers": ["a/a", "b/b"]}});
    let add = json!({"metadata": {"finalizers": ["c/c", "a/a"]}});
    let added = strategic(pods(), &object, add);
    assert_eq!(added["metadata"]["finalizers"], json!(["c/c", "a/a", "b/b"]));
    let remove = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/a"]}});
    let removed = strategic(pods(), &object, remove);
    assert_eq!(removed["metadata"]["finalizers"], json!(["b/b"]));
}

#[test]
fn retained_keys_choose_one_of_several() {
    let object =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let patched = strategic(deployments(), &object, patch);
    assert_eq!(patched["spec"]["strategy"], json!({"type": "Recreate"}));
    let object = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"],
        "hostPath": {"path": "/x"}}]}});
    let patched = strategic(pods(), &object, patch);
    assert_eq!(patched["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/x"}}]));
}

#[test]
fn element_order_is_set_around_what_the_patch_does_not_know() {
    let items = |names: &[&str]| -> Value { names.iter().map(|n| json!({"name": n})).collect() };
    let object = json!({"spec": {"containers": items(&["a", "b", "c"])}});
    let patch = json!({"spec": {"$setElementOrder/containers": items(&["d", "c", "a"]),
        "containers": items(&["d"])}});
    let patched = strategic(pods(), &object, patch);
    assert_eq!(patched["spec"]["containers"], items(&["d", "b", "c", "a"]));
    let patch = json!({"spec": {"$setElementOrder/containers": items(&["c", "b", "a"])}});
    let patched = strategic(pods(), &object, patch);
    assert_eq!(patched["spec"]["containers"], items(&["c", "b", "a"]));
}

/// What is in the server's list, in the patch, and, where it says so, in its `$setElementOrder`.
type OrderCase = (&'static str, &'static str, Option<&'static str>, &'static str);

/// Each letter is an element; `-x` takes x away. The last column is what Kubernetes makes of it.
const ORDERS: &[OrderCase] = &[
    // New elements go before those that only the server has.
    ("a", "b", None, "ba"),
    ("ab", "cd", None, "cdab"),
    ("", "ba", None, "ba"),
    ("ab", "", None, "ab"),
    // Known ones stay around them, as far as the order of the patch allows.
    ("abc", "b", None, "abc"),
    ("abc", "c", None, "abc"),
    ("abc", "bd", None, "abdc"),
    ("abc", "db", None, "dabc"),
    ("abc", "ca", None, "bca"),
    ("abc", "cba", None, "cba"),
    ("abcd", "dxb", None, "acdxb"),
    // What was taken away counts for nothing.
    ("abc", "-ad", None, "dbc"),
    ("abc", "d-b", None, "dac"),
    // Who names an order gets it, with the server's own elements in between.
    ("abc", "d", Some("dca"), "dbca"),
    ("abc", "", Some("cba"), "cba"),
    ("abc", "", Some("ca"), "bca"),
    ("abc", "d", Some("abcd"), "abcd"),
    ("abc", "d", Some("adbc"), "adbc"),
    ("abc", "d-b", Some("cda"), "cda"),
    ("xaby", "c", Some("abc"), "xabcy"),
    ("", "ab", Some("ba"), "refused"),
    ("abc", "dc", Some("cd"), "refused"),
    ("abc", "dc", Some("d"), "refused"),
];

#[test]
fn merged_lists_have_the_order_that_kubernetes_gives_them() {
    let keyed = |letter: char| json!({"name": letter.to_string()});
    let plain = |letter: char| json!(letter.to_string());
    for (server, patch, order, expected) in ORDERS {
        let (changes, gone) = changes_and_gone(patch);
        let names = |list: &Value| -> String {
            let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
            list.as_array().into_iter().flatten().map(name).collect()
        };
        let object = json!({"spec": {"containers": server.chars().map(keyed).collect::<Value>()}});
        let deletion = |letter: char| json!({"$patch": "delete", "name": letter.to_string()});
        let mut body = json!({"spec": {"containers": changes.chars().map(keyed)
            .chain(gone.chars().map(deletion)).collect::<Value>()}});
        if let Some(order) = order {
            let order: Value = order.chars().map(keyed).collect();
            body["spec"]["$setElementOrder/containers"] = order;
        }
        let found = strategic::apply(pods().object_type().unwrap(), &object, &body)
            .map_or("refused".to_owned(), |found| names(&found["spec"]["containers"]));
        assert_eq!(found, *expected, "containers {server:?} with {patch:?} in order {order:?}");

        let finalizers: Value = server.chars().map(plain).collect();
        let object = json!({"metadata": {"finalizers": finalizers}});
        let mut body = json!({"metadata": {"finalizers": changes.chars().map(plain)
            .collect::<Value>()}});
        if !gone.is_empty() {
            let gone: Value = gone.chars().map(plain).collect();
            body["metadata"]["$deleteFromPrimitiveList/finalizers"] = gone;
        }
        if let Some(order) = order {
            let order: Value = order.chars().map(plain).collect();
            body["metadata"]["$setElementOrder/finalizers"] = order;
        }
        let found = strategic::apply(pods().object_type().unwrap(), &object, &body).map_or(
            "refused".to_owned(),
            |found| {
                let list = found["metadata"]["finalizers"].as_array().cloned();
                list.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
            },
        );
        assert_eq!(found, *expected, "finalizers {server:?} with {patch:?} in order {order:?}");
    }
}

/// The letters of a patch, and those that it takes away.
fn changes_and_gone(patch: &str) -> (String, String) {
    let (mut changes, mut gone) = (String::new(), String::new());
    let mut letters = patch.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '-' => gone.extend(letters.next()),
            letter => changes.push(letter),
        }
    }
    (changes, gone)
}

#[test]
fn broken_patches_are_refused() {
    let refuse = |patch: Value| {
        let body = patch.to_string();
        patch_object(
            pods(),
            PatchType::Strategic,
            &two_containers(),
            body.as_bytes(),
            FieldValidation::Strict,
        )
        .unwrap_err()
    };
    for patch in [
        json!({"spec": {"containers": [{"image": "x"}]}}),
        json!({"spec": {"containers": [{"$patch": "explode", "name": "a"}]}}),
        json!({"metadata": {"labels": {"$patch": 5}}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
        json!([]),
    ] {
        assert_eq!(refuse(patch.clone()).code(), 400, "{patch}");
    }
    let status = refuse(json!({"spec": {"replicaz": 1}}));
    assert_eq!(status.code(), 422);
    assert_eq!(
        status.message,
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicaz:1]]\": strict decoding \
         error: unknown field \"spec.replicaz\""
    );
    let status = PatchType::of("text/plain").unwrap_err();
    assert_eq!(status.code(), 415);
}

#[test]
fn a_rollback_annotation_must_be_a_number() {
    let patch = br#"{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"x"}}}"#;
    let object = json!({"metadata": {"name": "web"}});
    let status =
        patch_object(deployments(), PatchType::Merge, &object, patch, FieldValidation::Warn)
            .unwrap_err();
    assert_eq!(status.code(), 422);
    assert!(status.message.ends_with(
        "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: \
         strconv.ParseInt: parsing \"x\": invalid syntax"
    ));
}

/// Pod specs whose keyed lists have unique keys, as every stored object has.
fn any_pod() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[A-C]", "[a-c]", 0..3).prop_map(|vars| {
        vars.iter().map(|(n, v)| json!({"name": n, "value": v})).collect::<Value>()
    });
    let volume = prop_oneof![
        Just(json!({"emptyDir": {}})),
        "[a-c]".prop_map(|p| json!({"hostPath": {"path": p}})),
        "[a-c]".prop_map(|n| json!({"configMap": {"name": n}})),
    ];
    let container = ("[a-b]", env, prop::collection::vec("[a-c]", 0..3));
    let containers = prop::collection::btree_map("[a-e]", container, 0..5);
    let volumes = prop::collection::btree_map("[a-d]", volume, 0..4);
    let labels = prop::collection::btree_map("[a-d]", "[a-c]", 0..4);
    let finalizers = prop::collection::btree_set("[a-d]", 0..4);
    (containers, volumes, labels, finalizers, any::<u64>()).prop_map(
        |(containers, volumes, labels, finalizers, shuffle)| {
            let mut containers: Vec<Value> = containers
                .iter()
                .map(|(name, (image, env, args))| {
                    json!({"name": name, "image": image, "env": env,
                    "args": args})
                })
                .collect();
            let turn = shuffle as usize % containers.len().max(1);
            containers.rotate_left(turn);
            let volumes: Vec<Value> = volumes
                .into_iter()
                .map(|(name, mut v)| {
                    v["name"] = json!(name);
                    v
                })
                .collect();
            json!({"metadata": {"labels": labels, "finalizers": finalizers},
                   "spec": {"containers": containers, "volumes": volumes}})
        },
    )
}

proptest! {
    #[test]
    fn a_patch_made_of_two_objects_makes_one_of_the_other(from in any_pod(), to in any_pod()) {
        let ty = pods().object_type().unwrap();
        let patch = strategic_diff(ty, &from, &to);
        prop_assert_eq!(strategic::apply(ty, &from, &patch).unwrap(), to, "{}", patch);
    }

    #[test]
    fn others_changes_survive_a_patch(base in any_pod(), to in any_pod(), foreign in "[a-c]") {
        let ty = pods().object_type().unwrap();
        let patch = strategic_diff(ty, &base, &to);
        let mut live = base.clone();
        live["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "sidecar",
            "image": foreign}));
        live["metadata"]["labels"]["foreign"] = json!(foreign);
        let patched = strategic::apply(ty, &live, &patch).unwrap();
        prop_assert_eq!(&patched["metadata"]["labels"]["foreign"], &json!(foreign));
        let containers = patched["spec"]["containers"].as_array().unwrap();
        let sidecar = json!({"name": "sidecar", "image": foreign});
        prop_assert!(containers.contains(&sidecar));
        prop_assert_eq!(containers.len(), to["spec"]["containers"].as_array().unwrap().len() + 1);
    }

    #[test]
    fn any_patch_of_any_object_is_taken_without_panic(object in any_json(), patch in any_json()) {
        let body = patch.to_string();
        for kind in [pods(), deployments()] {
            for patch_type in [PatchType::Json, PatchType::Merge, PatchType::Strategic] {
                let _ = patch_object(kind, patch_type, &object, body.as_bytes(), FieldValidation::Strict);
            }
        }
    }
}

//! Revisions, pods and claims of a StatefulSet, against the same bodies made with `serde_json`.

use super::stateful_set_model::{
    self as model, HASH, POD_OWNER_UID, Spelling, claim, digest, pod, revision, revision_of,
};
use super::{changed, name, reversed, splice};
use picokube_core::manager::{Make, Splice};
use picokube_core::splice::SpliceError;
use serde_json::{Value, json};

/// The members stand as Kubernetes writes them: in the order of its structs.
const STATEFUL_SET: &str = r#"{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"db",
    "namespace":"prod","uid":"5f0c7a4b-52a1-4d2c-8b3a-4c5d6e7f8091","resourceVersion":"77",
    "generation":2,"annotations":{"team":"storage","deployment.kubernetes.io/revision":"4",
    "kubectl.kubernetes.io/last-applied-configuration":"{\"a\":\"☕\\n\"}\n"}},"spec":{"replicas":3,
    "selector":{"matchLabels":{"app":"db","tier":"back"},"matchExpressions":[{"key":"app",
    "operator":"Exists"}]},"template":{"metadata":{"name":"ignored","creationTimestamp":null,
    "labels":{"app":"db","tier":"back","controller-revision-hash":"stale","x":"1"},
    "annotations":{"note":"\"quoted\""},"finalizers":["example.com/a"]},"spec":{"volumes":[
    {"name":"config","configMap":{"name":"data","defaultMode":420}},
    {"name":"data","emptyDir":{}},{"name":"scratch","emptyDir":{"sizeLimit":"1Gi"}}],
    "containers":[{"name":"db","image":"db:16.1","ports":[{"containerPort":5432,"protocol":"TCP"}],
    "resources":{"limits":{"cpu":"1"}},"volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "restartPolicy":"Always","hostname":"other","subdomain":"other","securityContext":{}}},
    "volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{
    "name":"data","creationTimestamp":null,"labels":{"tier":"disk","app":"db","kind":"data"},
    "annotations":{"backup":"daily"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{
    "requests":{"storage":"10Gi"}},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}},
    {"metadata":{"name":"wal"},"spec":{"accessModes":["ReadWriteOnce"]}}],"serviceName":"db",
    "podManagementPolicy":"OrderedReady","updateStrategy":{"type":"RollingUpdate"},
    "revisionHistoryLimit":10},"status":{"replicas":3}}"#;

/// The source as a struct, with its members sorted, and reversed.
fn orders(text: &str) -> [String; 3] {
    let value: Value = serde_json::from_str(text).unwrap();
    [text.to_owned(), value.to_string(), reversed(&value)]
}

fn made(request: &Splice, source: &str) -> Result<(Value, usize), SpliceError> {
    let (body, readings) = splice(request, &[("/s", source)], 1460, 512)?;
    Ok((serde_json::from_slice(&body).expect("a complete body is JSON"), readings))
}

/// The bodies that are made of the StatefulSet, its revision beside it.
fn all(set: &str) -> Vec<(Splice, String)> {
    let cr = revision_of(set);
    vec![
        (revision(set), set.to_owned()),
        (pod(&cr, "db", 2, "db", "data,wal"), cr.clone()),
        (pod(&cr, "db", 0, "", ""), cr),
        (claim(set, 0), set.to_owned()),
        (claim(set, 1), set.to_owned()),
    ]
}

#[test]
fn bodies_are_as_kubernetes_makes_them_whatever_the_order() {
    for (order, text) in orders(STATEFUL_SET).iter().enumerate() {
        for (request, source) in all(text) {
            let (body, readings) = made(&request, &source).unwrap();
            let source: Value = serde_json::from_str(&source).unwrap();
            assert_eq!(body, model::body(&request.make, &source), "order {order}");
            assert!(order == 2 || readings == 2, "{readings} readings in an order of servers");
        }
    }
}

/// The model against what it should say, for once in full.
#[test]
fn a_pod_has_its_identity_and_its_claims() {
    let cr = revision_of(STATEFUL_SET);
    let (body, _) = made(&pod(&cr, "db", 2, "db-headless", "data,wal"), &cr).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "db-2",
            "generateName": "db-",
            "labels": {"app": "db", "tier": "back", "x": "1", "controller-revision-hash": "db-1",
                "statefulset.kubernetes.io/pod-name": "db-2", "apps.kubernetes.io/pod-index": "2"},
            "annotations": {"note": "\"quoted\""},
            "finalizers": ["example.com/a"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db",
                "uid": POD_OWNER_UID, "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "hostname": "db-2", "subdomain": "db-headless",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}},
                {"name": "wal", "persistentVolumeClaim": {"claimName": "wal-db-2"}},
                {"name": "config", "configMap": {"name": "data", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
            "containers": [{"name": "db", "image": "db:16.1",
                "ports": [{"containerPort": 5432, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "restartPolicy": "Always", "securityContext": {},
        },
    });
    assert_eq!(body, expected);
}

#[test]
fn a_claim_has_the_labels_of_the_selector_once() {
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "labels": {"app": "db", "tier": "back", "kind": "data"},
            "annotations": {"backup": "daily"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}},
            "volumeMode": "Filesystem"},
    });
    for (order, text) in orders(STATEFUL_SET).iter().enumerate() {
        let (body, _) = splice(&claim(text, 0), &[("/s", text)], 1460, 512).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
        let tiers = String::from_utf8(body).unwrap().matches("\"tier\"").count();
        assert!(order == 2 || tiers == 1, "in the order of servers none is repeated");
    }
}

#[test]
fn a_revision_holds_the_template_as_a_patch() {
    let (body, _) = made(&revision(STATEFUL_SET), STATEFUL_SET).unwrap();
    let set: Value = serde_json::from_str(STATEFUL_SET).unwrap();
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    assert_eq!(body["data"], json!({"spec": {"template": template}}));
    assert_eq!(body["metadata"]["labels"]["controller.kubernetes.io/hash"], json!(HASH));
    assert_eq!(body["metadata"]["annotations"], set["metadata"]["annotations"]);
    assert_eq!(body["revision"], json!(7));
    // What is made of it is the same pod template.
    assert_eq!(digest(&body["data"]["spec"]["template"]), digest(&set["spec"]["template"]));
}

#[test]
fn bytes_are_the_same_however_source_and_output_are_cut() {
    for text in orders(STATEFUL_SET) {
        for (request, source) in all(&text) {
            let objects = [("/s", source.as_str())];
            let (whole, _) = splice(&request, &objects, 100_000, 100_000).unwrap();
            for size in 1..200 {
                let (body, _) = splice(&request, &objects, size, 64).unwrap();
                assert_eq!(body, whole, "source by {size}");
                let (body, _) = splice(&request, &objects, 100, size).unwrap();
                assert_eq!(body, whole, "output by {size}");
            }
            let (body, _) = splice(&request, &objects, 1, 1).unwrap();
            assert_eq!(body, whole);
        }
    }
}

#[test]
fn parts_may_be_missing_or_null() {
    for path in [
        "/metadata/annotations",
        "/spec/selector",
        "/spec/selector/matchLabels",
        "/spec/template/metadata",
        "/spec/template/metadata/labels",
        "/spec/template/metadata/annotations",
        "/spec/template/metadata/finalizers",
        "/spec/template/spec/volumes",
        "/spec/template/spec/hostname",
        "/spec/volumeClaimTemplates/0/metadata",
        "/spec/volumeClaimTemplates/0/metadata/labels",
        "/spec/volumeClaimTemplates/0/metadata/annotations",
        "/spec/volumeClaimTemplates/1",
    ] {
        let (parent, member) = path.rsplit_once('/').unwrap();
        let null = changed(STATEFUL_SET, |set| *set.pointer_mut(path).unwrap() = Value::Null);
        let missing = changed(STATEFUL_SET, |set| match set.pointer_mut(parent).unwrap() {
            Value::Object(members) => drop(members.remove(member)),
            other => other.as_array_mut().unwrap().truncate(1),
        });
        for text in orders(&null).into_iter().chain(orders(&missing)) {
            for (request, source) in all(&text) {
                let value: Value = serde_json::from_str(&source).unwrap();
                let is_unmade = matches!(request.make, Make::Claim { index: 1, .. });
                if is_unmade && path.ends_with('1') {
                    assert_eq!(made(&request, &source), Err(SpliceError::Malformed), "{path}");
                } else {
                    let (body, _) = made(&request, &source).unwrap();
                    assert_eq!(body, model::body(&request.make, &value), "{path}: {source}");
                }
            }
        }
    }
}

#[test]
fn without_a_template_or_its_spec_nothing_is_made() {
    for path in ["/spec/template", "/spec/template/spec"] {
        let text = changed(STATEFUL_SET, |set| *set.pointer_mut(path).unwrap() = Value::Null);
        let cr = revision_of(&text);
        let no_template = path == "/spec/template";
        if no_template {
            assert_eq!(made(&revision(&text), &text), Err(SpliceError::Malformed));
        }
        let result = made(&pod(&cr, "db", 0, "", "data"), &cr);
        assert_eq!(result, Err(SpliceError::Malformed), "{path}");
    }
    for path in ["/spec/volumeClaimTemplates", "/spec/volumeClaimTemplates/0/spec"] {
        let text = changed(STATEFUL_SET, |set| *set.pointer_mut(path).unwrap() = Value::Null);
        assert_eq!(made(&claim(&text, 0), &text), Err(SpliceError::Malformed), "{path}");
    }
    assert_eq!(made(&claim(STATEFUL_SET, 2), STATEFUL_SET), Err(SpliceError::Malformed));
    assert_eq!(made(&claim(STATEFUL_SET, u16::MAX), STATEFUL_SET), Err(SpliceError::Malformed));
    let cr = revision_of(STATEFUL_SET);
    for volumes in [json!({}), json!("data"), json!(1)] {
        let odd = changed(&cr, |cr| cr["data"]["spec"]["template"]["spec"]["volumes"] = volumes);
        let request = pod(&odd, "db", 0, "", "data");
        assert_eq!(made(&request, &odd), Err(SpliceError::Malformed));
    }
    let request = pod(&cr, "db", 0, "", "data");
    assert_eq!(made(&request, STATEFUL_SET), Err(SpliceError::Changed), "not a revision");
}

/// Members that come twice are no server's; the body must not be complete and wrong.
#[test]
fn what_comes_twice_is_refused() {
    let cr = revision_of(STATEFUL_SET);
    let twice = cr.replacen(r#""volumes":["#, r#""volumes":[],"volumes":["#, 1);
    assert_ne!(twice, cr);
    let request = pod(&cr, "db", 0, "", "data");
    assert_eq!(made(&request, &twice), Err(SpliceError::Malformed));
    let twice = cr.replacen(r#""spec":{"volumes""#, r#""spec":{},"spec":{"volumes""#, 1);
    assert_ne!(twice, cr);
    assert_eq!(made(&request, &twice), Err(SpliceError::Malformed));
    let selector = r#""matchLabels":{"#;
    let twice = STATEFUL_SET.replacen(selector, &format!(r#""matchLabels":{{}},{selector}"#), 1);
    assert_eq!(made(&claim(STATEFUL_SET, 0), &twice), Err(SpliceError::Malformed));
}

#[test]
fn a_source_that_has_changed_completes_nothing() {
    for text in orders(STATEFUL_SET) {
        for (request, source) in all(&text) {
            let other_uid = source.replace("5f0c7a4b", "5f0c7a4c").replace("7d3f1c20", "7d3f1c21");
            let other_image = source.replace("db:16.1", "db:16.2");
            for out in [1, 64, 100_000] {
                let objects = [("/s", other_uid.as_str())];
                assert_eq!(splice(&request, &objects, 100, out), Err(SpliceError::Changed));
                let objects = [("/s", other_image.as_str())];
                let result = splice(&request, &objects, 100, out);
                match request.make {
                    // Whatever has become of the pod template, the claim is that of the pod.
                    Make::Claim { .. } => assert_eq!(
                        result.unwrap().0,
                        splice(&request, &[("/s", &source)], 100, out).unwrap().0
                    ),
                    _ => assert_eq!(result, Err(SpliceError::Changed)),
                }
            }
        }
    }
}

#[test]
fn only_the_first_64_volumes_can_be_replaced() {
    for (at, names, expected) in
        [(63, 65, Ok(())), (64, 65, Err(SpliceError::TooLarge)), (200, 100, Ok(()))]
    {
        let text = changed(STATEFUL_SET, |set| {
            let volumes = (0..names).map(|i| {
                let name = if i == at { "data".to_owned() } else { format!("v{i}") };
                json!({"emptyDir": {}, "name": name})
            });
            set["spec"]["template"]["spec"]["volumes"] = volumes.collect();
        });
        let cr = revision_of(&text);
        let request = pod(&cr, "db", 0, "", "data");
        let result = made(&request, &cr);
        if let Ok((body, _)) = &result {
            let cr: Value = serde_json::from_str(&cr).unwrap();
            assert_eq!(*body, model::body(&request.make, &cr));
        }
        assert_eq!(result.map(drop), expected);
    }
}

/// As much of ours as there can be, wherever the source is cut.
#[test]
fn the_longest_names_and_the_most_claims_fit() {
    let letters: Vec<_> = ('a'..='z').chain('A'..='Z').chain('0'..='9').map(String::from).collect();
    let claims = format!("{},-,_", letters.join(","));
    assert_eq!(claims.len(), 127);
    let owner = "n".repeat(253);
    for text in orders(STATEFUL_SET) {
        let cr = revision_of(&text);
        let request = pod(&cr, &owner, i32::MAX, &"s".repeat(63), &claims);
        let objects = [("/s", cr.as_str())];
        let (whole, _) = splice(&request, &objects, 100_000, 100_000).unwrap();
        let source: Value = serde_json::from_str(&cr).unwrap();
        let body: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(body, model::body(&request.make, &source));
        for size in [1, 7, 31, 32, 33, 1460] {
            assert_eq!(splice(&request, &objects, size, 512).unwrap().0, whole);
            assert_eq!(splice(&request, &objects, 1460, 100 + size).unwrap().0, whole);
        }
    }
    let request = claim(STATEFUL_SET, 0);
    let Make::Claim { index, .. } = request.make else { unreachable!() };
    let request = Splice { make: Make::Claim { name: name(&owner), index }, ..request };
    assert!(made(&request, STATEFUL_SET).is_ok());
}

/// More labels than are kept in mind, and longer ones: the selector's still win.
#[test]
fn every_label_of_the_selector_wins() {
    let keys = (0..40).map(|i| format!("{}/{i}", "p".repeat(i * 6 + 1)));
    let selector: Value = keys.clone().map(|key| (key, json!("selector"))).collect();
    let labels: Value = keys.map(|key| (key, json!("template"))).collect();
    let text = changed(STATEFUL_SET, |set| {
        set["spec"]["selector"]["matchLabels"] = selector.clone();
        set["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"] = labels;
    });
    for text in orders(&text) {
        let (body, _) = made(&claim(&text, 0), &text).unwrap();
        assert_eq!(body["metadata"]["labels"], selector);
    }
}

#[test]
fn labels_that_are_no_texts_are_refused_however_they_are_cut() {
    let map: Value = (0..8).map(|i| (format!("label-{i}"), json!("a value"))).collect();
    for wrong in
        [json!({"a": {"labels": map}, "b": "c"}), json!({"a": null}), json!(["a"]), json!(1)]
    {
        for path in [
            "/spec/selector/matchLabels",
            "/spec/template/metadata/labels",
            "/spec/volumeClaimTemplates/0/metadata/labels",
        ] {
            let text = changed(STATEFUL_SET, |set| *set.pointer_mut(path).unwrap() = wrong.clone());
            let cr = revision_of(&text);
            let (request, source) = match path {
                "/spec/template/metadata/labels" => (pod(&cr, "db", 0, "", "data"), &cr),
                _ => (claim(&text, 0), &text),
            };
            for chunk in 1..100 {
                let result = splice(&request, &[("/s", source)], chunk, 64);
                assert_eq!(result, Err(SpliceError::Malformed), "{path} in chunks of {chunk}");
            }
        }
    }
}

/// Random sources in random spellings, cut at random.
#[test]
fn bodies_are_those_of_the_model() {
    for seed in 1..=2_000 {
        let mut random = Spelling::new(seed);
        let set = random.stateful_set();
        let text = random.spell(&set);
        let cr = random.controller_revision(&set);
        let cr_text = random.spell(&cr);
        let (subdomain, claims) = (random.one_of(&["", "svc"]), random.claims());
        let index = u16::try_from(random.below(3)).unwrap();
        for (request, value, source) in [
            (revision(&text), &set, &text),
            (pod(&cr_text, "db", 11, subdomain, &claims), &cr, &cr_text),
            (claim(&text, index), &set, &text),
        ] {
            let (chunk, out) = (1 + random.below(80), 1 + random.below(80));
            let result = splice(&request, &[("/s", source)], chunk, out);
            if set["spec"]["volumeClaimTemplates"].get(usize::from(index)).is_none()
                && matches!(request.make, Make::Claim { .. })
            {
                assert_eq!(result, Err(SpliceError::Malformed), "seed {seed}: {source}");
                continue;
            }
            let (body, _) = result.unwrap_or_else(|error| panic!("seed {seed}: {error}: {source}"));
            let body: Value = serde_json::from_slice(&body).unwrap();
            let expected = model::body(&request.make, value);
            assert_eq!(body, expected, "seed {seed}: {source}, {:?}", request.make);
        }
    }
}

//! Bodies made of streaming sources, against the same bodies made with `serde_json`.

#[cfg(feature = "statefulset")]
mod stateful_set;
#[cfg(feature = "statefulset")]
mod stateful_set_model;

use picokube_core::json::{Digest, ShortHash};
use picokube_core::kind::Kind;
use picokube_core::manager::{Make, ObjectName, Splice, Target};
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::wire::{
    Answer, Decoder, Deployment, Object, Pod, ReplicaSet, ResourceVersion, Uid,
};
use serde_json::{Value, json};

const DEPLOYMENT: &str = include_str!("../data/deployment.json");
const REPLICA_SET: &str = include_str!("../data/replicaset.json");

const SKIPPED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

/// What the driver does: reads whatever the splicer asks for, in chunks, and collects the body.
fn splice(
    splice: &Splice,
    objects: &[(&str, &str)],
    chunk: usize,
    out: usize,
) -> Result<(Vec<u8>, usize), SpliceError> {
    let mut splicer = Box::new(Splicer::new(splice));
    let mut body = Vec::new();
    let mut out = vec![0; out];
    let mut readings = 0;
    while let Some(target) = splicer.source() {
        let (_, text) = objects.iter().find(|(path, _)| *path == target.as_str()).unwrap();
        readings += 1;
        assert!(readings < 5, "the splicer never has enough");
        for mut chunk in text.as_bytes().chunks(chunk) {
            while !chunk.is_empty() {
                let written = splicer.push(&mut chunk, &mut out)?;
                body.extend_from_slice(&out[..written]);
            }
        }
        splicer.end_of_source()?;
    }
    while let Some(written) = splicer.finish(&mut out)? {
        body.extend_from_slice(&out[..written]);
    }
    Ok((body, readings))
}

fn made(request: &Splice, objects: &[(&str, &str)]) -> Result<Value, SpliceError> {
    let (body, _) = splice(request, objects, 1460, 512)?;
    Ok(serde_json::from_slice(&body).expect("a complete body is JSON"))
}

fn digest<K: Object>(text: &str, template: fn(&K) -> Digest) -> Digest {
    let mut decoder = Box::new(Decoder::<K>::new());
    decoder.feed_answer(text.as_bytes(), None).unwrap();
    match decoder.answer().unwrap() {
        Answer::Object(object) => template(object),
        _ => panic!("not an object: {text}"),
    }
}

fn name(text: &str) -> ObjectName {
    ObjectName::try_from(text).unwrap()
}

fn path(text: &str) -> Target {
    Target::try_from(text).unwrap()
}

fn uid_of(text: &str) -> Uid {
    let object: Value = serde_json::from_str(text).unwrap();
    Uid::parse(object["metadata"]["uid"].as_str().unwrap()).unwrap()
}

fn replica_set(deployment: &str) -> Splice {
    Splice {
        source: path("/d"),
        kind: Kind::Deployment,
        uid: uid_of(deployment),
        template: digest::<Deployment>(deployment, |deployment| deployment.template),
        make: Make::ReplicaSet {
            name: name("web-7d4b9c6f85"),
            owner: name("web"),
            hash: ShortHash::try_from("7d4b9c6f85").unwrap(),
            replicas: 3,
            min_ready_seconds: 5,
            revision: 6,
            desired_replicas: 3,
            max_replicas: 4,
        },
    }
}

fn pod(replica_set: &str) -> Splice {
    Splice {
        source: path("/rs"),
        kind: Kind::ReplicaSet,
        uid: uid_of(replica_set),
        template: digest::<ReplicaSet>(replica_set, |rs| rs.template),
        make: Make::Pod { owner: name("web-7d4b9c6f85"), more: 0 },
    }
}

fn shared(annotations: &Value) -> Value {
    let Value::Object(all) = annotations else { return json!({}) };
    all.iter().filter(|(key, _)| !SKIPPED.contains(&key.as_str())).map(pair).collect()
}

fn pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// The ReplicaSet as `serde_json` would make it.
fn expected_replica_set(deployment: &str) -> Value {
    let source: Value = serde_json::from_str(deployment).unwrap();
    let hash = json!("7d4b9c6f85");
    let mut template = source["spec"]["template"].clone();
    if template["metadata"].is_null() {
        template["metadata"] = json!({});
    }
    if template["metadata"]["labels"].is_null() {
        template["metadata"]["labels"] = json!({});
    }
    template["metadata"]["labels"]["pod-template-hash"] = hash.clone();
    let mut selector = source["spec"]["selector"].clone();
    if selector["matchLabels"].is_null() {
        selector["matchLabels"] = json!({});
    }
    selector["matchLabels"]["pod-template-hash"] = hash;
    let mut annotations = shared(&source["metadata"]["annotations"]);
    annotations["deployment.kubernetes.io/revision"] = json!("6");
    annotations["deployment.kubernetes.io/desired-replicas"] = json!("3");
    annotations["deployment.kubernetes.io/max-replicas"] = json!("4");
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": "web-7d4b9c6f85",
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": source["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {"replicas": 3, "minReadySeconds": 5, "selector": selector, "template": template},
    })
}

fn changed(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut object = serde_json::from_str(text).unwrap();
    change(&mut object);
    object.to_string()
}

/// The text with the members of every object in reverse order: status, spec, metadata, kind.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            let members = members.map(|(key, value)| format!("{}:{}", json!(key), reversed(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(all) => {
            format!("[{}]", all.iter().map(reversed).collect::<Vec<_>>().join(","))
        }
        leaf => leaf.to_string(),
    }
}

#[test]
fn a_replica_set_is_made_of_a_deployment() {
    let body = made(&replica_set(DEPLOYMENT), &[("/d", DEPLOYMENT)]).unwrap();
    assert_eq!(body, expected_replica_set(DEPLOYMENT));
}

#[test]
fn the_bytes_are_the_same_however_source_and_output_are_cut() {
    let request = replica_set(DEPLOYMENT);
    let (whole, readings) = splice(&request, &[("/d", DEPLOYMENT)], 100_000, 100_000).unwrap();
    assert_eq!(readings, 2);
    for chunk in [1, 2, 3, 31, 32, 33, 64, 1460] {
        for out in [1, 2, 7, 64, 512] {
            let (body, _) = splice(&request, &[("/d", DEPLOYMENT)], chunk, out).unwrap();
            assert_eq!(body, whole, "source by {chunk}, output by {out}");
        }
    }
    let request = pod(REPLICA_SET);
    let (whole, readings) = splice(&request, &[("/rs", REPLICA_SET)], 100_000, 100_000).unwrap();
    assert_eq!(readings, 1);
    for position in 1..REPLICA_SET.len() {
        let (body, _) = splice(&request, &[("/rs", REPLICA_SET)], position, 64).unwrap();
        assert_eq!(body, whole, "source by {position}");
    }
}

#[test]
fn labels_of_every_sort_get_the_hash() {
    for labels in [
        json!(null),
        json!({}),
        json!({"app": "web", "pod-template-hash": "stale"}),
        json!({"pod-template-hash": "stale", "zzz": "last"}),
        json!({"pod-template-has": "1", "pod-template-hash2": "2", "pod-template-hash": "3"}),
    ] {
        let source = changed(DEPLOYMENT, |deployment| {
            deployment["spec"]["template"]["metadata"]["labels"] = labels.clone();
            deployment["spec"]["selector"]["matchLabels"] = labels;
        });
        let body = made(&replica_set(&source), &[("/d", &source)]).unwrap();
        assert_eq!(body, expected_replica_set(&source));
    }
    for source in [
        changed(DEPLOYMENT, |d| d["spec"]["template"]["metadata"] = Value::Null),
        changed(DEPLOYMENT, |d| {
            d["spec"]["template"].as_object_mut().unwrap().remove("metadata");
        }),
        changed(DEPLOYMENT, |d| {
            d["spec"]["template"]["metadata"].as_object_mut().unwrap().remove("labels");
            d["spec"]["selector"].as_object_mut().unwrap().remove("matchLabels");
        }),
        changed(DEPLOYMENT, |d| d["metadata"]["annotations"] = Value::Null),
        changed(DEPLOYMENT, |d| {
            d["metadata"].as_object_mut().unwrap().remove("annotations");
        }),
    ] {
        let body = made(&replica_set(&source), &[("/d", &source)]).unwrap();
        assert_eq!(body, expected_replica_set(&source), "{source}");
    }
}

#[test]
fn the_order_of_members_does_not_matter() {
    let source: Value = serde_json::from_str(DEPLOYMENT).unwrap();
    let turned = reversed(&source);
    let body = made(&replica_set(&turned), &[("/d", &turned)]).unwrap();
    assert_eq!(body, expected_replica_set(DEPLOYMENT));
    let source: Value = serde_json::from_str(REPLICA_SET).unwrap();
    let turned = reversed(&source);
    let (body, readings) = splice(&pod(&turned), &[("/rs", &turned)], 1460, 64).unwrap();
    assert_eq!(readings, 2, "the spec came before the metadata");
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, made(&pod(REPLICA_SET), &[("/rs", REPLICA_SET)]).unwrap());
}

#[test]
fn a_pod_has_labels_annotations_finalizers_and_spec_of_the_template() {
    for finalizers in [json!(null), json!([]), json!(["example.com/a", "example.com/b"])] {
        let source = changed(REPLICA_SET, |rs| {
            rs["spec"]["template"]["metadata"]["finalizers"] = finalizers.clone();
            rs["spec"]["template"]["metadata"]["name"] = json!("ignored");
            rs["spec"]["template"]["metadata"]["namespace"] = json!("ignored");
        });
        let body = made(&pod(&source), &[("/rs", &source)]).unwrap();
        let rs: Value = serde_json::from_str(&source).unwrap();
        let template = &rs["spec"]["template"];
        let mut metadata = json!({
            "generateName": "web-7d4b9c6f85-",
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "name": "web-7d4b9c6f85", "uid": rs["metadata"]["uid"], "controller": true,
                "blockOwnerDeletion": true}],
        });
        if !finalizers.is_null() {
            metadata["finalizers"] = finalizers;
        }
        let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": template["spec"]});
        assert_eq!(body, expected);
    }
}

#[test]
fn the_longest_owner_leaves_no_room_for_a_dash() {
    for (length, ends) in [(252, "n-"), (253, "nn")] {
        let mut request = pod(REPLICA_SET);
        request.make = Make::Pod { owner: name(&"n".repeat(length)), more: 0 };
        let body = made(&request, &[("/rs", REPLICA_SET)]).unwrap();
        let prefix = body["metadata"]["generateName"].as_str().unwrap();
        assert!(prefix.len() == 253 && prefix.ends_with(ends), "{prefix}");
    }
}

#[test]
fn a_patch_takes_over_annotations() {
    let target_uid = uid_of(REPLICA_SET);
    for (revision, history) in [(None, None), (Some(7), None), (Some(7), Some("1,3,5"))] {
        for source in [
            DEPLOYMENT.to_owned(),
            changed(DEPLOYMENT, |d| d["metadata"]["annotations"] = Value::Null),
        ] {
            let request = Splice {
                make: Make::Annotations {
                    target_uid,
                    target_version: ResourceVersion::new(184_500),
                    revision,
                    revision_history: history.map(|history| history.try_into().unwrap()),
                    min_ready_seconds: 5,
                },
                ..replica_set(&source)
            };
            let deployment: Value = serde_json::from_str(&source).unwrap();
            let mut annotations = shared(&deployment["metadata"]["annotations"]);
            if let Some(revision) = revision {
                annotations["deployment.kubernetes.io/revision"] = json!(revision.to_string());
            }
            if let Some(history) = history {
                annotations["deployment.kubernetes.io/revision-history"] = json!(history);
            }
            let expected = json!({
                "metadata": {"uid": target_uid.to_string(), "resourceVersion": "184500",
                    "annotations": annotations},
                "spec": {"minReadySeconds": 5},
            });
            assert_eq!(made(&request, &[("/d", &source)]).unwrap(), expected);
        }
    }
}

fn rollback(deployment: &str, replica_set: &str) -> Splice {
    Splice {
        make: Make::Rollback {
            target: path("/d"),
            target_uid: uid_of(deployment),
            target_version: ResourceVersion::new(184_510),
        },
        ..pod(replica_set)
    }
}

/// Applies what the patch may hold: `test`, `add`, `remove` and `replace` of members.
fn apply(patch: &Value, object: &mut Value) {
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match operation["op"].as_str().unwrap() {
            "test" => assert_eq!(parent[&key], operation["value"]),
            "add" => drop(parent.insert(key, operation["value"].clone())),
            "remove" => drop(parent.remove(&key).expect("what is removed is there")),
            "replace" => *parent.get_mut(&key).unwrap() = operation["value"].clone(),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_rollback_takes_template_and_annotations_of_the_replica_set() {
    let long = format!("{}/~odd~1key", "p".repeat(100));
    let deployment = changed(DEPLOYMENT, |d| {
        d["metadata"]["annotations"]["deprecated.deployment.rollback.to"] = json!("3");
        d["metadata"]["annotations"][&long] = json!("x");
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:broken");
    });
    let rs = changed(REPLICA_SET, |rs| {
        rs["metadata"]["annotations"]["example.com/a~b"] = json!("\"quoted\"\n");
    });
    for (d, r) in [
        (deployment.clone(), rs.clone()),
        (
            reversed(&serde_json::from_str(&deployment).unwrap()),
            reversed(&serde_json::from_str(&rs).unwrap()),
        ),
    ] {
        let patch = made(&rollback(&d, &r), &[("/d", &d), ("/rs", &r)]).unwrap();
        let mut object: Value = serde_json::from_str(&d).unwrap();
        apply(&patch, &mut object);
        let before: Value = serde_json::from_str(&d).unwrap();
        let source: Value = serde_json::from_str(&r).unwrap();
        let mut template = source["spec"]["template"].clone();
        template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");
        assert_eq!(object["spec"]["template"], template);
        let mut annotations = shared(&source["metadata"]["annotations"]);
        for key in &SKIPPED[..5] {
            let own = &before["metadata"]["annotations"][key];
            if !own.is_null() {
                annotations[key] = own.clone();
            }
        }
        assert_eq!(object["metadata"]["annotations"], annotations);
    }
}

#[test]
fn a_rollback_of_a_deployment_without_annotations_works() {
    let deployment = changed(DEPLOYMENT, |d| {
        d["metadata"].as_object_mut().unwrap().remove("annotations");
    });
    let objects = [("/d", deployment.as_str()), ("/rs", REPLICA_SET)];
    let patch = made(&rollback(&deployment, REPLICA_SET), &objects).unwrap();
    let mut object: Value = serde_json::from_str(&deployment).unwrap();
    apply(&patch, &mut object);
    assert_eq!(object["metadata"]["annotations"], json!({"team": "storefront"}));
}

/// Whatever differs, the body must not be complete: it must not even be JSON.
#[test]
fn a_source_that_has_changed_completes_nothing() {
    let request = replica_set(DEPLOYMENT);
    let other_uid = DEPLOYMENT.replace("0c7a4b52", "0c7a4b53");
    let other_image = DEPLOYMENT.replace("web:1.27.3", "web:1.27.4");
    let no_uid = changed(DEPLOYMENT, |d| d["metadata"]["uid"] = Value::Null);
    for source in [&other_uid, &other_image, &no_uid] {
        for out in [1, 64, 100_000] {
            assert_eq!(splice(&request, &[("/d", source)], 100, out), Err(SpliceError::Changed));
        }
    }
    let request = pod(REPLICA_SET);
    let other = REPLICA_SET.replace("web:1.27.3", "web:1.27.4");
    assert_eq!(splice(&request, &[("/rs", &other)], 100, 64), Err(SpliceError::Changed));
    let request = rollback(DEPLOYMENT, REPLICA_SET);
    let newer = DEPLOYMENT.replace("\"184510\"", "\"184511\"");
    let objects = [("/d", newer.as_str()), ("/rs", REPLICA_SET)];
    assert_eq!(splice(&request, &objects, 100, 64), Err(SpliceError::Changed));
    let objects = [("/d", other_uid.as_str()), ("/rs", REPLICA_SET)];
    assert_eq!(splice(&request, &objects, 100, 64), Err(SpliceError::Changed));
    let objects = [("/d", DEPLOYMENT), ("/rs", other.as_str())];
    assert_eq!(splice(&request, &objects, 100, 64), Err(SpliceError::Changed));
}

#[test]
fn a_source_that_changes_between_two_readings_completes_nothing() {
    let other = DEPLOYMENT.replace("web:1.27.3", "web:1.27.4");
    let mut splicer = Box::new(Splicer::new(&replica_set(DEPLOYMENT)));
    let mut out = vec![0; 100_000];
    splicer.push(&mut DEPLOYMENT.as_bytes(), &mut out).unwrap();
    splicer.end_of_source().unwrap();
    assert!(splicer.source().is_some());
    splicer.push(&mut other.as_bytes(), &mut out).unwrap();
    assert_eq!(splicer.end_of_source(), Err(SpliceError::Changed));
    // It stays that way.
    assert_eq!(splicer.finish(&mut out), Err(SpliceError::Changed));
    assert_eq!(splicer.push(&mut &b"x"[..], &mut out), Err(SpliceError::Changed));
}

#[test]
fn a_source_that_is_cut_off_or_broken_completes_nothing() {
    let request = pod(REPLICA_SET);
    let text = REPLICA_SET.trim_end();
    for length in (0..text.len()).step_by(37) {
        let mut splicer = Box::new(Splicer::new(&request));
        let mut out = vec![0; 100_000];
        splicer.push(&mut &text.as_bytes()[..length], &mut out).unwrap();
        assert_eq!(splicer.end_of_source(), Err(SpliceError::Malformed), "at {length}");
        assert_eq!(splicer.finish(&mut out), Err(SpliceError::Malformed));
    }
    let deep = changed(text, |rs| rs["spec"]["template"]["spec"]["x"] = nested(20));
    for (broken, error) in [
        ("<html>", SpliceError::Malformed),
        ("[[]]", SpliceError::Malformed),
        ("{}", SpliceError::Changed),
        (&format!("{text}\n{text}"), SpliceError::Malformed),
        (&deep, SpliceError::TooLarge),
        (&format!("{{\"a\":{}", "[".repeat(200)), SpliceError::TooLarge),
    ] {
        assert_eq!(splice(&request, &[("/rs", broken)], 100, 64), Err(error), "{broken}");
    }
    let broken = changed(text, |rs| rs["metadata"]["annotations"]["a"] = json!(5));
    let objects = [("/d", DEPLOYMENT), ("/rs", broken.as_str())];
    let request = rollback(DEPLOYMENT, REPLICA_SET);
    assert_eq!(splice(&request, &objects, 100, 64), Err(SpliceError::Malformed));
    for source in [
        changed(DEPLOYMENT, |d| d["spec"]["selector"] = Value::Null),
        changed(DEPLOYMENT, |d| d["spec"]["template"] = Value::Null),
    ] {
        let result = splice(&replica_set(&source), &[("/d", &source)], 100, 64);
        assert_eq!(result, Err(SpliceError::Malformed));
    }
    // No pod without labels, and none without a spec.
    for source in [
        changed(text, |rs| rs["spec"]["template"]["metadata"]["labels"] = json!({})),
        changed(text, |rs| rs["spec"]["template"]["metadata"] = json!(null)),
        changed(text, |rs| rs["spec"]["template"]["spec"] = json!(null)),
    ] {
        let result = splice(&pod(&source), &[("/rs", &source)], 100, 64);
        assert_eq!(result, Err(SpliceError::Malformed), "{source}");
    }
}

/// The metadata ends where the spec begins: a second one would end what is around it.
#[test]
fn a_spec_that_comes_twice_completes_nothing() {
    let turned: Value = serde_json::from_str(REPLICA_SET).unwrap();
    let twice =
        turned.to_string().replace(r#""spec":{"containers""#, r#""spec":{},"spec":{"containers""#);
    assert_eq!(twice.matches(r#""spec":{},"#).count(), 1);
    let result = splice(&pod(&twice), &[("/rs", &twice)], 100, 64);
    assert_eq!(result, Err(SpliceError::Malformed));
}

/// Found by fuzzing: the verdict depended on how the source was cut, and a map within a map could
/// become a body that was no JSON.
#[test]
fn labels_and_annotations_that_are_no_texts_are_refused_however_they_are_cut() {
    let labels: Value = (0..8).map(|i| (format!("label-{i}"), json!("a value"))).collect();
    let map = json!({"a": {"labels": labels, "x": {"labels": labels}}, "b": "text"});
    let entries = [json!({"a": null, "b": "text"}), json!({"a": ["b"]}), json!({"a": {}})];
    let others = [json!("a"), json!(1), json!(["a"]), json!(true)];
    for wrong in [map].into_iter().chain(entries).chain(others) {
        let of_deployment = changed(DEPLOYMENT, |d| d["metadata"]["annotations"] = wrong.clone());
        let of_template = changed(DEPLOYMENT, |d| {
            d["spec"]["template"]["metadata"]["labels"] = wrong.clone();
        });
        let of_selector = changed(DEPLOYMENT, |d| {
            d["spec"]["selector"]["matchLabels"] = wrong.clone();
        });
        for source in [of_deployment, of_template, of_selector] {
            for chunk in 1..100 {
                let result = splice(&replica_set(DEPLOYMENT), &[("/d", &source)], chunk, 64);
                let verdict = result.map(|(body, _)| String::from_utf8(body));
                assert_eq!(verdict, Err(SpliceError::Malformed), "{wrong} in chunks of {chunk}");
            }
        }
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn objects_of_any_size_are_copied_in_the_same_memory() {
    let source = changed(DEPLOYMENT, |d| {
        d["metadata"]["annotations"]["huge\n"] = json!("☕\"\\\n\u{1}".repeat(40_000));
        let labels = &mut d["spec"]["template"]["metadata"]["labels"];
        for i in 0..64 {
            labels[format!("{}/{i}", "p".repeat(250))] = json!("v".repeat(63));
        }
        let args: Vec<_> =
            (0..2_000).map(|i| json!(format!("--flag-{i}={}", "x".repeat(100)))).collect();
        d["spec"]["template"]["spec"]["containers"][0]["args"] = json!(args);
    });
    let body = made(&replica_set(&source), &[("/d", &source)]).unwrap();
    assert_eq!(body, expected_replica_set(&source));
    assert!(size_of::<Splicer>() < 5 << 10, "{}", size_of::<Splicer>());
}

/// Pods that come out are pods: the record of one has what the template says.
#[test]
fn what_is_made_can_be_read_back() {
    let mut body = made(&pod(REPLICA_SET), &[("/rs", REPLICA_SET)]).unwrap();
    body["metadata"]["name"] = json!("web-7d4b9c6f85-abcde");
    body["metadata"]["uid"] = json!("9d3c2b1a-0f1e-4d2c-8b3a-4c5d6e7f8091");
    body["metadata"]["resourceVersion"] = json!("1");
    let mut decoder = Box::new(Decoder::<Pod>::new());
    decoder.feed_answer(body.to_string().as_bytes(), None).unwrap();
    let Answer::Object(pod) = decoder.answer().unwrap() else { panic!("no pod") };
    assert_eq!(pod.meta.controller.as_ref().unwrap().uid, uid_of(REPLICA_SET));
    assert_eq!(pod.meta.labels.as_slice().unwrap().len(), 4);
}

//! StatefulSets, ControllerRevisions and PersistentVolumeClaims as a server sends them: what is read of
//! them, and what is kept.
#![cfg(feature = "statefulset")]

use picokube_core::limits;
use picokube_core::statefulset::retention::{Owners, Policy, Reference};
use picokube_core::statefulset::{Counts, PodManagementPolicy, UpdateStrategy};
use picokube_core::store::{self, Applied, Condense, Kind, Record, RefusalReason};
use picokube_core::text::{Cell, Fingerprint, Interner, LabelSet, Labels, Text};
use picokube_core::wire::{
    Answer, ControllerRevision, Decoder, Deployment, IntOrPercent, Object, OwnerKind,
    PersistentVolumeClaim, StatefulSet, Uid, WatchEvent,
};
use serde_json::{Value, json};

#[path = "support/reading.rs"]
mod reading;
use reading::{check_order, check_splits, labels, prints, read, read_with, uid};

const STATEFUL_SET: &str = include_str!("data/statefulset.json");
const CONTROLLER_REVISION: &str = include_str!("data/controllerrevision.json");
const CLAIM: &str = include_str!("data/persistentvolumeclaim.json");

const LABELS: [(&str, &str); 3] =
    [("app.kubernetes.io/name", "db"), ("app.kubernetes.io/instance", "shop"), ("tier", "backend")];
const SET: &str = "3b1f0c9e-7a52-4d86-9c41-e2f3a4b5c6d7";
const POD: &str = "77777777-1234-4321-8888-999999999999";

/// A kind's example with something changed.
fn with<K: Object + Clone>(text: &str, change: impl FnOnce(&mut Value)) -> Result<K, String> {
    let mut value = serde_json::from_str(text).unwrap();
    change(&mut value);
    read(&value.to_string(), 1460)
}

fn set_with(change: impl FnOnce(&mut Value)) -> Result<StatefulSet, String> {
    with(STATEFUL_SET, change)
}

/// What is kept of an object.
fn kept<K: Condense>(object: &K) -> (Box<Interner<[Cell; 200]>>, K::Record) {
    let mut texts = Box::new(Interner::new());
    let record = object.condense(&mut *texts).unwrap();
    (texts, record)
}

fn text_of(texts: &Interner, text: Text) -> String {
    String::from_utf8(texts.pieces(text).flatten().copied().collect()).unwrap()
}

#[test]
fn a_stateful_set_has_what_decisions_need() {
    let set: StatefulSet = read(STATEFUL_SET, 1000).unwrap();
    assert_eq!((set.meta.name.as_str(), set.meta.generation), ("db", 4));
    assert_eq!(labels(&set.meta.labels), prints(&LABELS));
    assert!(set.replaces_broken_pods);
    assert_eq!((set.replicas, set.start, set.min_ready_seconds), (3, 10, 7));
    assert_eq!(set.revision_history_limit, Some(5));
    assert_eq!(set.policy, PodManagementPolicy::Parallel);
    assert_eq!(set.retention, Policy { deletes_with_set: true, deletes_with_pod: false });
    assert_eq!(labels(set.selector.match_labels()), prints(&LABELS[..2]));
    assert_eq!(set.selector.expressions().count(), 1);
    assert_eq!(set.claim_templates, "data,wal");
    assert_eq!(set.service_name, "db-headless");
    assert_eq!(set.status.current_revision, "db-6b5f9c7d4c");
    assert_eq!(set.status.update_revision, "db-7865cc96f7");
    assert_eq!(set.status.collision_count, Some(1));
}

#[test]
fn what_is_kept_of_a_stateful_set_is_what_was_read() {
    let (texts, set) = kept(&read::<StatefulSet>(STATEFUL_SET, 1000).unwrap());
    let texts: &Interner = &*texts;
    assert_eq!((set.replicas, set.start, set.min_ready_seconds), (3, 10, 7));
    assert_eq!((set.generation(), set.revision_history_limit()), (4, Some(5)));
    assert_eq!((set.collision_count(), set.policy()), (Some(1), PodManagementPolicy::Parallel));
    assert_eq!(
        set.strategy(),
        UpdateStrategy::RollingUpdate {
            partition: Some(2),
            max_unavailable: Some(IntOrPercent::Percent(30)),
        }
    );
    assert_eq!(set.retention(), Policy { deletes_with_set: true, deletes_with_pod: false });
    let counts = Counts {
        observed_generation: 3,
        replicas: 6,
        ready: 5,
        available: 1,
        current: 4,
        updated: 2,
    };
    assert_eq!(set.counts(), counts);
    assert!(set.replaces_broken_pods() && !set.is_deleting());
    assert_eq!(text_of(texts, set.claim_templates), "data,wal");
    assert_eq!(text_of(texts, set.service_name), "db-headless");
    assert_eq!(text_of(texts, set.current_revision), "db-6b5f9c7d4c");
    assert_eq!(text_of(texts, set.update_revision), "db-7865cc96f7");
    assert!(set.selector.matches(texts, set.labels));
    assert_eq!(set.labels.value(texts, Fingerprint::of("tier")), Some(Fingerprint::of("backend")));
}

#[test]
fn what_a_stateful_set_does_not_say_is_kubernetes_default() {
    let set = set_with(|set| {
        set["metadata"].as_object_mut().unwrap().remove("annotations");
        set["spec"] = json!({"template": {}});
        set.as_object_mut().unwrap().remove("status");
    });
    let (_, set) = kept(&set.unwrap());
    assert_eq!((set.replicas, set.start, set.min_ready_seconds), (1, 0, 0));
    assert_eq!((set.revision_history_limit(), set.collision_count()), (None, None));
    assert_eq!((set.policy(), set.retention()), Default::default());
    assert_eq!(set.counts(), Counts::default());
    assert!(!set.replaces_broken_pods() && set.claim_templates.is_empty());
    assert!(set.service_name.is_empty());
    assert!(set.current_revision.is_empty() && set.update_revision.is_empty());
}

#[test]
fn the_update_strategy_is_as_kubernetes_has_it() {
    let rolling =
        |partition, max_unavailable| UpdateStrategy::RollingUpdate { partition, max_unavailable };
    for (strategy, expected) in [
        (Value::Null, rolling(None, None)),
        (json!({}), rolling(None, None)),
        (json!({"type": "RollingUpdate"}), rolling(None, None)),
        (json!({"type": "RollingUpdate", "rollingUpdate": null}), rolling(None, None)),
        // There, the partition has a default.
        (json!({"rollingUpdate": {}}), rolling(Some(0), None)),
        (json!({"rollingUpdate": {"partition": null}}), rolling(Some(0), None)),
        (json!({"rollingUpdate": {"partition": 0}}), rolling(Some(0), None)),
        (json!({"rollingUpdate": {"partition": 7}}), rolling(Some(7), None)),
        (
            json!({"rollingUpdate": {"maxUnavailable": 2}}),
            rolling(Some(0), Some(IntOrPercent::Int(2))),
        ),
        (
            json!({"rollingUpdate": {"maxUnavailable": "100%", "partition": 1}}),
            rolling(Some(1), Some(IntOrPercent::Percent(100))),
        ),
        (json!({"type": "OnDelete"}), UpdateStrategy::OnDelete),
        (json!({"type": "OnDelete", "rollingUpdate": {"partition": 1}}), UpdateStrategy::OnDelete),
        (json!({"type": "Recreate"}), UpdateStrategy::Other),
    ] {
        let set = set_with(|set| set["spec"]["updateStrategy"] = strategy.clone()).unwrap();
        assert_eq!(kept(&set).1.strategy(), expected, "{strategy}");
    }
}

#[test]
fn policies_are_the_known_ones_or_the_default() {
    for (text, expected) in [
        (json!("OrderedReady"), PodManagementPolicy::OrderedReady),
        (json!("Parallel"), PodManagementPolicy::Parallel),
        (json!("Later"), PodManagementPolicy::OrderedReady),
        (json!(""), PodManagementPolicy::OrderedReady),
        (Value::Null, PodManagementPolicy::OrderedReady),
    ] {
        let set = set_with(|set| set["spec"]["podManagementPolicy"] = text.clone()).unwrap();
        assert_eq!(kept(&set).1.policy(), expected, "{text}");
    }
    for (policy, deletes_with_set, deletes_with_pod) in [
        (Value::Null, false, false),
        (json!({}), false, false),
        (json!({"whenDeleted": "Retain", "whenScaled": "Retain"}), false, false),
        (json!({"whenScaled": "Delete"}), false, true),
        (json!({"whenDeleted": "Delete", "whenScaled": "Delete"}), true, true),
        (json!({"whenDeleted": "Archive"}), false, false),
    ] {
        let change = |set: &mut Value| {
            set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy.clone();
        };
        let retention = kept(&set_with(change).unwrap()).1.retention();
        assert_eq!(retention, Policy { deletes_with_set, deletes_with_pod }, "{policy}");
    }
}

#[test]
fn only_the_word_true_replaces_broken_pods() {
    for (text, expected) in [("true", true), ("True", false), ("1", false), ("", false)] {
        let set = set_with(|set| {
            set["metadata"]["annotations"]["picokube.dev/replace-broken-pods"] = json!(text);
        });
        assert_eq!(set.unwrap().replaces_broken_pods, expected, "{text}");
    }
}

/// To a Deployment it is an annotation like any other.
#[test]
fn a_deployment_hands_the_annotation_on() {
    const DEPLOYMENT: &str = include_str!("data/deployment.json");
    let before: Deployment = read(DEPLOYMENT, 1000).unwrap();
    let after: Deployment = with(DEPLOYMENT, |d| {
        d["metadata"]["annotations"]["picokube.dev/replace-broken-pods"] = json!("true");
    })
    .unwrap();
    assert_eq!(after.annotations.prints.len(), before.annotations.prints.len() + 1);
}

fn claim_templates(names: &[Value]) -> Result<String, String> {
    let templates = names.iter().map(|name| json!({"metadata": {"name": name}, "spec": {}}));
    let templates = Value::Array(templates.collect());
    let set = set_with(|set| set["spec"]["volumeClaimTemplates"] = templates)?;
    let (texts, record) = kept(&set);
    Ok(text_of(&*texts, record.claim_templates))
}

#[test]
fn claim_templates_are_kept_by_name_and_in_order() {
    assert_eq!(claim_templates(&[]).unwrap(), "");
    assert_eq!(claim_templates(&[json!("data")]).unwrap(), "data");
    assert_eq!(claim_templates(&["b", "a", "c"].map(Value::from)).unwrap(), "b,a,c");
    let long = "x".repeat(limits::CLAIM_TEMPLATES - 2);
    assert_eq!(claim_templates(&[json!("a"), json!(long)]).unwrap(), format!("a,{long}"));
    // As in any JSON, the last of equal members counts.
    let twice = STATEFUL_SET.replace(r#"{"name":"data","#, r#"{"name":"before","name":"data","#);
    assert_eq!(read::<StatefulSet>(&twice, 100).unwrap().claim_templates, "data,wal");
}

#[test]
fn claim_templates_that_cannot_be_kept_are_a_fault() {
    let too_many = "StatefulSet shop/db: spec.volumeClaimTemplates[]: has too many entries";
    let missing = "StatefulSet shop/db: spec.volumeClaimTemplates[].metadata.name: is missing";
    let malformed = "StatefulSet shop/db: spec.volumeClaimTemplates[].metadata.name: is malformed";
    let one_more = "x".repeat(limits::CLAIM_TEMPLATES + 1);
    let rest = "x".repeat(limits::CLAIM_TEMPLATES - 1);
    for (names, fault) in [
        (vec![json!(one_more)], too_many),
        (vec![json!("a"), json!(rest)], too_many),
        (vec![json!(rest), json!("a")], too_many),
        (vec!["abcdefgh".into(); 20], too_many),
        (vec![Value::Null], missing),
        (vec![json!("a"), json!("")], missing),
        (vec![json!(""), json!("a")], missing),
        (vec![json!("a,b")], malformed),
        (vec![json!("a\"b")], malformed),
    ] {
        assert_eq!(claim_templates(&names).unwrap_err(), fault, "{names:?}");
    }
    for (templates, fault) in [
        (json!([{"spec": {}}]), missing),
        (json!([{"metadata": null}]), missing),
        (json!([null]), "StatefulSet shop/db: spec.volumeClaimTemplates[]: is missing"),
        (json!({}), "StatefulSet shop/db: spec.volumeClaimTemplates[]: has the wrong type"),
    ] {
        let set = set_with(|set| set["spec"]["volumeClaimTemplates"] = templates.clone());
        assert_eq!(set.unwrap_err(), fault, "{templates}");
    }
    assert_eq!(
        set_with(|set| set["spec"]["volumeClaimTemplates"] = Value::Null).unwrap().replicas,
        3
    );
}

#[test]
fn fields_of_the_wrong_sort_are_faults() {
    fn fault<K: Object + Clone + std::fmt::Debug>(
        text: &str,
        path: &[&str],
        value: Value,
    ) -> String {
        let changed = with::<K>(text, |object| {
            let mut at = object;
            for name in path {
                at = &mut at[name];
            }
            *at = value;
        });
        changed.unwrap_err()
    }
    let set = |path: &[&str], value| fault::<StatefulSet>(STATEFUL_SET, path, value);
    let long = "x".repeat(limits::NAME + 1);
    for (path, value, expected) in [
        (&["spec", "replicas"][..], json!("3"), "spec.replicas: has the wrong type"),
        (&["spec", "replicas"], json!(3.5), "spec.replicas: is malformed"),
        (&["spec", "ordinals"], json!([]), "spec.ordinals: has the wrong type"),
        (&["spec", "ordinals", "start"], json!(1_u64 << 31), "spec.ordinals.start: is malformed"),
        (&["spec", "serviceName"], json!(long), "spec.serviceName: is too long"),
        (
            &["spec", "updateStrategy", "type"],
            json!(1),
            "spec.updateStrategy.type: has the wrong type",
        ),
        (
            &["spec", "updateStrategy", "rollingUpdate", "partition"],
            json!("x"),
            "spec.updateStrategy.rollingUpdate.partition: has the wrong type",
        ),
        (
            &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"],
            json!("many"),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: is malformed",
        ),
        (&["status", "currentRevision"], json!(long), "status.currentRevision: is too long"),
        (&["status", "currentReplicas"], json!(true), "status.currentReplicas: has the wrong type"),
    ] {
        assert_eq!(set(path, value), format!("StatefulSet shop/db: {expected}"));
    }
    let revision =
        |path: &[&str], value| fault::<ControllerRevision>(CONTROLLER_REVISION, path, value);
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    for (path, value, expected) in [
        (&["revision"][..], json!("8"), "revision: has the wrong type"),
        (&["data"], json!([]), "data: has the wrong type"),
        (&["data", "spec"], json!(1), "data.spec: has the wrong type"),
        (&["metadata", "uid"], Value::Null, "metadata.uid: is missing"),
        (&["data", "spec", "template", "spec"], deep, "data.spec.template: is nested too deeply"),
    ] {
        assert_eq!(
            revision(path, value),
            format!("ControllerRevision shop/db-7865cc96f7: {expected}")
        );
    }
}

#[test]
fn a_revision_has_the_digest_of_the_template_it_was_made_of() {
    let set: StatefulSet = read(STATEFUL_SET, 100).unwrap();
    let revision: ControllerRevision = read(CONTROLLER_REVISION, 99).unwrap();
    assert_eq!(revision.meta.controller.as_ref().unwrap().kind, OwnerKind::StatefulSet);
    assert_eq!(revision.data, set.template);
    assert_ne!(revision.data, Default::default());
    let (texts, record) = kept(&revision);
    assert_eq!((record.revision(), record.data()), (8, kept(&set).1.template()));
    assert_eq!(record.created.get(), revision.meta.creation);
    assert_eq!(
        record.labels.value(&*texts, Fingerprint::of("controller.kubernetes.io/hash")),
        Some(Fingerprint::of("7865cc96f7"))
    );
    let other: ControllerRevision =
        read(&CONTROLLER_REVISION.replace("db:16.2", "db:16.3"), 100).unwrap();
    assert_ne!(other.data, set.template);
    // Only at the top of the template is it an instruction.
    let plain: ControllerRevision =
        read(&CONTROLLER_REVISION.replace(r#""$patch":"replace","#, ""), 100).unwrap();
    assert_eq!(plain.data, set.template);
    let inner = CONTROLLER_REVISION
        .replace(r#""spec":{"containers""#, r#""spec":{"$patch":"x","containers""#);
    assert_ne!(inner, CONTROLLER_REVISION);
    assert_ne!(read::<ControllerRevision>(&inner, 100).unwrap().data, set.template);
}

#[test]
fn revisions_are_any_number_and_data_may_be_missing() {
    for number in [0, 1, i64::MAX, i64::MIN] {
        let revision: ControllerRevision =
            with(CONTROLLER_REVISION, |revision| revision["revision"] = json!(number)).unwrap();
        assert_eq!(kept(&revision).1.revision(), number);
    }
    for data in [Value::Null, json!({}), json!({"spec": null}), json!({"spec": {"template": null}})]
    {
        let revision: ControllerRevision =
            with(CONTROLLER_REVISION, |revision| revision["data"] = data.clone()).unwrap();
        let set = set_with(|set| set["spec"]["template"] = Value::Null).unwrap();
        assert_eq!(revision.data, set.template, "{data}");
    }
}

#[test]
fn a_claim_has_its_owners() {
    let claim: PersistentVolumeClaim = read(CLAIM, 1000).unwrap();
    assert_eq!(claim.meta.name, "data-db-10");
    assert_eq!(labels(&claim.meta.labels), prints(&LABELS[..2]));
    let controller = claim.meta.controller.as_ref().unwrap();
    assert_eq!((controller.kind, controller.name.as_str()), (OwnerKind::StatefulSet, "db"));
    assert_eq!(claim.references.len(), 2);
    assert!(!claim.has_other_controller);
    let (texts, record) = kept(&claim);
    assert!(record.is_deleting());
    assert_eq!(
        record.labels.value(&*texts, Fingerprint::of("app.kubernetes.io/name")),
        Some(Fingerprint::of("db"))
    );
}

/// What a claim with these references says of the set `db` and its pod `db-0`.
fn owners(references: &Value, pod: Option<Uid>) -> Owners {
    let claim: PersistentVolumeClaim =
        with(CLAIM, |claim| claim["metadata"]["ownerReferences"] = references.clone()).unwrap();
    let (_, record) = kept(&claim);
    record.owners(("db", uid(SET)), pod.map(|uid| ("db-0", uid)), "db-0")
}

#[test]
fn owner_references_are_ours_or_of_others() {
    use Reference::{Absent, NotController, Ours, Stale};
    const OTHER: &str = "00000000-1111-4222-8333-444444444444";
    let to = |kind: &str, name: &str, uid: &str, controller: bool| {
        json!({
            "apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid, "controller": controller,
        })
    };
    let set = |uid, controller| to("StatefulSet", "db", uid, controller);
    let pod = |uid, controller| to("Pod", "db-0", uid, controller);
    for (references, of_set, of_pod, of_no_pod, has_other_controller) in [
        (Value::Null, Absent, Absent, Absent, false),
        (json!([]), Absent, Absent, Absent, false),
        (json!([set(SET, true)]), Ours, Absent, Absent, false),
        (json!([set(SET, false)]), NotController, Absent, Absent, false),
        (json!([set(OTHER, true)]), Stale, Absent, Absent, false),
        (json!([set(OTHER, false)]), Stale, Absent, Absent, false),
        (json!([pod(POD, true)]), Absent, Ours, Stale, false),
        (json!([pod(POD, false)]), Absent, NotController, Stale, false),
        (json!([pod(OTHER, true)]), Absent, Stale, Stale, false),
        (json!([set(SET, true), pod(POD, false)]), Ours, NotController, Stale, false),
        (json!([pod(POD, true), set(SET, false)]), NotController, Ours, Stale, false),
        // Others of these kinds, and others.
        (json!([to("StatefulSet", "web", SET, true)]), Absent, Absent, Absent, true),
        (json!([to("StatefulSet", "web", SET, false)]), Absent, Absent, Absent, false),
        (json!([to("Pod", "db-1", POD, true)]), Absent, Absent, Absent, true),
        (json!([to("Pod", "db", SET, true)]), Absent, Absent, Absent, true),
        (json!([to("Deployment", "db", SET, true)]), Absent, Absent, Absent, true),
        (json!([to("Snapshot", "db", "x", true)]), Absent, Absent, Absent, true),
        (json!([to("Snapshot", "db", "x", false), set(SET, true)]), Ours, Absent, Absent, false),
        (
            json!([set(SET, false), to("Snapshot", "db", "x", true)]),
            NotController,
            Absent,
            Absent,
            true,
        ),
        // A uid that is none.
        (json!([set("", true), pod("x", false)]), Stale, Stale, Stale, false),
        (json!([{"kind": "Pod", "name": "db-0"}]), Absent, Stale, Stale, false),
        // Of two to the same, the worse.
        (json!([set(SET, true), set(OTHER, false)]), Stale, Absent, Absent, false),
        (json!([set(OTHER, false), set(SET, true)]), Stale, Absent, Absent, false),
        // Too many to tell.
        (
            json!([set(SET, true), pod(POD, false), pod(OTHER, false)]),
            Ours,
            NotController,
            Stale,
            true,
        ),
    ] {
        let expected = |pod| Owners { set: of_set, pod, has_other_controller };
        assert_eq!(owners(&references, Some(uid(POD))), expected(of_pod), "{references}");
        assert_eq!(owners(&references, None), expected(of_no_pod), "without the pod: {references}");
    }
    let faulty: Result<PersistentVolumeClaim, _> = with(CLAIM, |claim| {
        claim["metadata"]["ownerReferences"] =
            json!([set(SET, true), {"kind": "Pod", "name": "db-0", "controller": "yes"}]);
    });
    assert_eq!(
        faulty.unwrap_err(),
        "PersistentVolumeClaim shop/data-db-10: metadata.ownerReferences[].controller: has the wrong type"
    );
}

#[test]
fn every_split_gives_the_same_record() {
    check_splits::<StatefulSet>(STATEFUL_SET);
    check_splits::<ControllerRevision>(CONTROLLER_REVISION);
    check_splits::<PersistentVolumeClaim>(CLAIM);
}

#[test]
fn the_order_of_members_does_not_matter() {
    check_order::<StatefulSet>(STATEFUL_SET);
    check_order::<ControllerRevision>(CONTROLLER_REVISION);
    check_order::<PersistentVolumeClaim>(CLAIM);
}

#[test]
fn a_decoder_forgets_the_object_before() {
    fn check<K: Object + Clone + std::fmt::Debug>(text: &str) {
        let bare =
            json!({"metadata": {"name": "b", "resourceVersion": "1", "uid": SET}}).to_string();
        let mut decoder = Box::new(Decoder::<K>::new());
        let fresh = format!("{:?}", read_with(&mut decoder, [bare.as_bytes()]).unwrap());
        read_with(&mut decoder, [text.as_bytes()]).unwrap();
        let claims = r#"{"spec":{"volumeClaimTemplates":[{}]}}"#;
        read_with(&mut decoder, [claims.as_bytes()]).unwrap_err();
        assert_eq!(format!("{:?}", read_with(&mut decoder, [bare.as_bytes()]).unwrap()), fresh);
    }
    check::<StatefulSet>(STATEFUL_SET);
    check::<ControllerRevision>(CONTROLLER_REVISION);
    check::<PersistentVolumeClaim>(CLAIM);
}

/// A list that comes as a stream ends with a bookmark, whatever the kind.
#[test]
fn bookmarks_end_initial_events() {
    fn check<K: Object>() {
        for (annotation, expected) in [("true", true), ("false", false)] {
            let text = json!({"type": "BOOKMARK", "object": {"kind": K::KIND, "metadata": {
                "resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": annotation}}}})
            .to_string();
            let mut decoder = Box::new(Decoder::<K>::new());
            let (_, event) = decoder.feed_watch(text.as_bytes(), None).unwrap();
            match event {
                Some(WatchEvent::Bookmark { ends_initial_events, .. }) => {
                    assert_eq!(ends_initial_events, expected, "{}", K::KIND);
                }
                _ => panic!("no bookmark: {text}"),
            }
        }
    }
    check::<StatefulSet>();
    check::<ControllerRevision>();
    check::<PersistentVolumeClaim>();
}

/// Whatever room there is for texts: nothing of an object stays behind.
#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    fn check<K: Condense, const TEXTS: usize>(object: &K) -> bool {
        let mut texts = Interner::<[Cell; TEXTS]>::new();
        let texts: &mut Interner = &mut texts;
        let condensed = object.condense(texts);
        let fits = match condensed {
            Ok(record) => {
                record.release(texts);
                true
            }
            Err(reason) => {
                assert_eq!(reason, RefusalReason::TextFull);
                false
            }
        };
        assert_eq!(texts.used(), 0, "with room for {TEXTS}");
        fits
    }
    macro_rules! check_rooms {
        ($object:expr; $($texts:literal)*) => { [$(check::<_, $texts>(&$object)),*] };
    }
    let set: StatefulSet = read(STATEFUL_SET, 1000).unwrap();
    let fits = check_rooms!(set; 1 2 3 4 5 6 7 8 9 10);
    assert_eq!(fits, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|room| room >= 8));
    let revision: ControllerRevision = read(CONTROLLER_REVISION, 1000).unwrap();
    assert_eq!(check_rooms!(revision; 1 2 3 4 5), [false, false, false, true, true]);
    let claim: PersistentVolumeClaim = read(CLAIM, 1000).unwrap();
    assert_eq!(check_rooms!(claim; 1 2 3), [false, true, true]);
}

/// A status leaves the template as it was.
#[test]
fn the_template_of_a_generation_is_recalled() {
    type Memory = picokube_core::resources! {
        stateful_sets: 2, controller_revisions: 2, persistent_volume_claims: 2,
    };
    let mut memory = Box::new(Memory::new());
    let mut cache = memory.parts().cache;
    let set: StatefulSet = read(STATEFUL_SET, 1000).unwrap();
    let Applied::Changed(change) = cache.apply(&set) else { panic!() };
    let newer = |generation| {
        let text = STATEFUL_SET.replace("190321", "190322").replace("db:16.2", "db:17.0");
        text.replace(r#""generation":4"#, &format!(r#""generation":{generation}"#))
    };
    for (generation, is_recalled) in [(4, true), (5, false)] {
        let mut decoder = Box::new(Decoder::<StatefulSet>::new());
        decoder.feed_answer(newer(generation).as_bytes(), Some(&cache)).unwrap();
        let Ok(Answer::Object(read)) = decoder.answer() else { panic!() };
        assert_eq!(read.template == set.template, is_recalled, "generation {generation}");
    }
    let revision: ControllerRevision = read(CONTROLLER_REVISION, 1000).unwrap();
    let claim: PersistentVolumeClaim = read(CLAIM, 1000).unwrap();
    assert!(matches!(cache.apply(&revision), Applied::Changed(_)));
    assert!(matches!(cache.apply(&claim), Applied::Changed(_)));
    for kind in [Kind::ControllerRevision, Kind::PersistentVolumeClaim] {
        assert_eq!(cache.members_of(kind, Kind::StatefulSet, change.slot).count(), 1);
        assert!(!cache.is_blind(Kind::StatefulSet, change.slot));
    }
    let found = cache.persistent_volume_claims.find(cache.texts, "shop", "data-db-10");
    let owner = cache.owner_of(Kind::PersistentVolumeClaim, found.unwrap());
    assert_eq!(owner, store::Owner::Resolved(Kind::StatefulSet, change.slot));
    let mut orphan = Labels::new();
    LABELS.iter().for_each(|(key, value)| orphan.insert_text(key, value));
    let labels = LabelSet::intern(cache.texts, orphan.as_slice().unwrap()).unwrap();
    let namespace = cache.texts.find(b"shop").unwrap();
    assert_eq!(cache.selecting(Kind::StatefulSet, namespace, labels).count(), 1);
    labels.release(cache.texts);
    for (kind, meta) in [
        (Kind::PersistentVolumeClaim, &claim.meta),
        (Kind::ControllerRevision, &revision.meta),
        (Kind::StatefulSet, &set.meta),
    ] {
        let change = cache.delete(kind, meta).unwrap();
        cache.free(kind, change.slot);
    }
    assert_eq!((cache.texts.used(), cache.groups.used()), (0, 0));
}

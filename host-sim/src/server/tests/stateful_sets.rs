//! Tests of StatefulSets as the server keeps them: defaults, generations, subresources, patches.

use super::*;

/// A StatefulSet with a claim per pod, as users write it.
fn database() -> Value {
    let mut set = stateful_set("db");
    set["spec"]["serviceName"] = json!("db");
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }]);
    set
}

fn generation(set: &Value) -> i64 {
    set["metadata"]["generation"].as_i64().expect("a generation")
}

#[test]
fn a_new_stateful_set_is_completed() {
    let mut cluster = Cluster::new();
    let mut wanted = database();
    wanted["spec"]["replicas"] = Value::Null;
    wanted["status"] = json!({"replicas": 7});
    let mut set = cluster.make(STATEFUL_SETS, wanted);
    assert_eq!(set["status"], json!({"replicas": 0, "availableReplicas": 0}));
    assert_eq!(generation(&set), 1);
    let spec = set["spec"].as_object_mut().expect("a spec");
    spec.remove("template");
    assert_eq!(
        set["spec"],
        json!({
            "replicas": 1,
            "selector": {"matchLabels": {"app": "db"}},
            "serviceName": "db",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "volumeClaimTemplates": [{
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }],
        })
    );
}

#[test]
fn its_generation_counts_changes_of_the_spec_and_its_deletion() {
    let mut cluster = Cluster::new();
    cluster.make(STATEFUL_SETS, database());
    let path = format!("{STATEFUL_SETS}/db");
    let label = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}});
    assert_eq!(generation(&cluster.merge(&path, label).1), 1);
    let status = json!({"status": {"replicas": 1, "observedGeneration": 1}});
    assert_eq!(generation(&cluster.merge(&format!("{path}/status"), status).1), 1);
    assert_eq!(generation(&cluster.merge(&path, json!({"spec": {"replicas": 5}})).1), 2);
    cluster.merge(&format!("{path}/scale"), json!({"spec": {"replicas": 4}}));
    assert_eq!(generation(&cluster.get(&path).1), 3);
    cluster.delete(&path, json!({"propagationPolicy": "Foreground"}));
    assert_eq!(generation(&cluster.get(&path).1), 4);
}

#[test]
fn its_status_takes_metadata_along_but_no_spec() {
    let mut cluster = Cluster::new();
    let mut set = cluster.make(STATEFUL_SETS, database());
    set["metadata"]["labels"] = json!({"a": "b"});
    set["metadata"]["annotations"] = json!({"c": "d"});
    set["spec"]["replicas"] = json!(9);
    set["status"] = json!({"replicas": 2, "readyReplicas": 1, "collisionCount": 0,
        "currentRevision": "db-1", "updateRevision": "db-2", "availableReplicas": 1});
    let (status, after) = cluster.put(&format!("{STATEFUL_SETS}/db/status"), set.clone());
    assert_eq!(status, 200, "{after}");
    assert_eq!(after["status"], set["status"]);
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(after["metadata"]["annotations"], json!({"c": "d"}));
    assert_eq!(after["spec"]["replicas"], 3);
    set["status"]["readyReplicas"] = json!(3);
    set["metadata"]["resourceVersion"] = Value::Null;
    let (status, refused) = cluster.put(&format!("{STATEFUL_SETS}/db/status"), set);
    assert_eq!(status, 422);
    assert_eq!(
        refused["message"],
        "StatefulSet.apps \"db\" is invalid: status.readyReplicas: Invalid value: 3: cannot be \
         greater than status.replicas"
    );
}

#[test]
fn its_scale_tells_the_selector_as_clients_send_it() {
    let mut cluster = Cluster::new();
    let mut set = database();
    set["spec"]["selector"]["matchExpressions"] =
        json!([{"key": "tier", "operator": "NotIn", "values": ["b", "a"]}]);
    cluster.make(STATEFUL_SETS, set);
    let (_, scale) = cluster.get(&format!("{STATEFUL_SETS}/db/scale"));
    assert_eq!(scale["status"]["selector"], "app=db,tier notin (a,b)");
}

#[test]
fn claim_templates_are_patched_and_applied_as_a_whole() {
    let mut cluster = Cluster::new();
    cluster.make(STATEFUL_SETS, database());
    let path = format!("{STATEFUL_SETS}/db");
    // What the user wrote stands for what the server has made of it.
    let same =
        json!({"spec": {"volumeClaimTemplates": database()["spec"]["volumeClaimTemplates"]}});
    let (status, set) = cluster.strategic(&path, same);
    assert_eq!((status, generation(&set)), (200, 1), "{set}");
    let renamed = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "other"}}]}});
    let (status, refused) = cluster.strategic(&path, renamed);
    assert_eq!(status, 422);
    let said = refused["message"].as_str().expect("a message");
    assert!(said.contains("spec: Forbidden: updates to statefulset spec for fields"), "{said}");
}

#[test]
fn a_stateful_set_can_be_applied_by_several() {
    let mut cluster = Cluster::new();
    let path = format!("{STATEFUL_SETS}/db");
    let (status, made) = cluster.apply(&path, "fieldManager=a", database());
    assert_eq!(status, 201, "{made}");
    let (status, again) = cluster.apply(&path, "fieldManager=a", database());
    assert_eq!(status, 200);
    assert_eq!(again["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let part = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    let (status, set) = cluster.apply(&path, "fieldManager=b", part);
    assert_eq!(
        (status, &set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]),
        (200, &json!(2)),
        "{set}"
    );
    let mut larger = database();
    larger["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] =
        json!("2Gi");
    let (status, conflict) = cluster.apply(&path, "fieldManager=c", larger.clone());
    assert_eq!(status, 409);
    let said = conflict["message"].as_str().expect("a message");
    assert!(
        said.contains("conflict with \"a\"") && said.ends_with(".spec.volumeClaimTemplates"),
        "{said}"
    );
    assert_eq!(cluster.apply(&path, "fieldManager=c&force=true", larger).0, 422);
}

#[test]
fn a_rollback_puts_the_template_of_a_revision_in_the_place_of_the_present_one() {
    let mut cluster = Cluster::new();
    let mut set = database();
    set["spec"]["template"]["metadata"]["annotations"] = json!({"new": "yes"});
    set["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    cluster.make(STATEFUL_SETS, set);
    let mut template = database()["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    let path = format!("{STATEFUL_SETS}/db");
    let (status, set) = cluster.strategic(&path, json!({"spec": {"template": template}}));
    assert_eq!(status, 200, "{set}");
    assert_eq!(set["spec"]["template"]["metadata"], json!({"labels": {"app": "db"}}));
    assert!(set["spec"]["template"]["spec"]["hostNetwork"].is_null());
    assert_eq!(generation(&set), 2);
}

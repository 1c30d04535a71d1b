//! Rows as `kubectl get` shows them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::kind;
use crate::api::testing::any_json;

const NOW: Timestamp = Timestamp::from_unix_millis(1_700_000_000_000);
const CREATED: &str = "2023-11-14T22:10:00Z";

fn cells(group: &str, plural: &str, mut object: Value) -> Vec<Value> {
    let kind = kind::find(group, "v1", plural).unwrap();
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!(CREATED);
    let row = row(kind, &object, IncludeObject::Metadata, NOW);
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    let cells = row["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), kind.columns.len(), "{plural}");
    cells
}

fn status_text(pod: Value) -> String {
    cells("", "pods", pod)[2].as_str().unwrap().to_owned()
}

#[test]
fn a_pods_status_is_told_as_upstream_tells_it() {
    let container = |state: Value| json!({"name": "a", "state": state, "ready": false});
    let waiting = |reason: &str| container(json!({"waiting": {"reason": reason}}));
    let with = |status: Value| json!({"spec": {"containers": [{"name": "a"}]}, "status": status});
    let cases = [
        (with(json!({"phase": "Pending"})), "Pending"),
        (with(json!({"phase": "Failed", "reason": "Evicted"})), "Evicted"),
        (
            with(json!({"phase": "Pending",
                        "containerStatuses": [waiting("ContainerCreating")]})),
            "ContainerCreating",
        ),
        (
            with(json!({"phase": "Running",
                        "containerStatuses": [waiting("CrashLoopBackOff")]})),
            "CrashLoopBackOff",
        ),
        (
            with(json!({"phase": "Failed",
                        "containerStatuses": [container(json!({"terminated": {"exitCode": 3}}))]})),
            "ExitCode:3",
        ),
        (
            with(json!({"phase": "Failed",
                        "containerStatuses": [container(json!({"terminated": {"exitCode": 137,
                            "signal": 9}}))]})),
            "Signal:9",
        ),
        (
            with(json!({"phase": "Succeeded",
                        "containerStatuses": [container(json!({"terminated": {"reason": "Completed"}}))]})),
            "Completed",
        ),
    ];
    for (pod, text) in cases {
        assert_eq!(status_text(pod), text);
    }
}

#[test]
fn init_containers_and_deletion_come_first() {
    let pod = json!({
        "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}},
            {"name": "j", "state": {"running": {}}},
        ]},
    });
    assert_eq!(status_text(pod), "Init:1/2");
    let mut pod =
        json!({"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Running"}});
    assert_eq!(status_text(pod.clone()), "Terminating");
    pod["status"]["phase"] = json!("Succeeded");
    assert_eq!(status_text(pod), "Succeeded");
}

#[test]
fn completed_beside_running_is_running_or_not_ready() {
    let statuses = json!([
        {"name": "a", "state": {"terminated": {"reason": "Completed"}}},
        {"name": "b", "state": {"running": {}}, "ready": true},
    ]);
    let pod = |ready: &str| {
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]},
               "status": {"phase": "Running", "containerStatuses": statuses,
                          "conditions": [{"type": "Ready", "status": ready}]}})
    };
    assert_eq!(status_text(pod("True")), "Running");
    assert_eq!(status_text(pod("False")), "NotReady");
}

#[test]
fn rows_have_the_columns_kubectl_prints() {
    let pod = json!({
        "spec": {"containers": [{"name": "a"}], "nodeName": "n1"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "2023-11-14T22:13:10Z"}}}]},
    });
    let expected = json!([
        "x",
        "1/1",
        "Running",
        "2 (10s ago)",
        "3m20s",
        "10.0.0.1",
        "n1",
        "<none>",
        "<none>"
    ]);
    assert_eq!(Value::Array(cells("", "pods", pod)), expected);
    let deployment = json!({
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b",
                     "image": "j"}]}}},
        "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    });
    let expected = json!(["x", "2/3", 1, 2, "3m20s", "a,b", "i:1,j", "app=web"]);
    assert_eq!(Value::Array(cells("apps", "deployments", deployment.clone())), expected);
    let mut set = deployment.clone();
    set["status"]["replicas"] = json!(3);
    let expected = json!(["x", 3, 3, 2, "3m20s", "a,b", "i:1,j", "app=web"]);
    assert_eq!(Value::Array(cells("apps", "replicasets", set.clone())), expected);
    set["spec"]["selector"] = json!({"app": "web"});
    assert_eq!(Value::Array(cells("", "replicationcontrollers", set)), expected);
    let empty = cells("", "replicationcontrollers", json!({"spec": {"replicas": 2}}));
    assert_eq!(Value::Array(empty), json!(["x", 2, 0, 0, "3m20s", "", "", "<none>"]));
    let service = json!({"spec": {"type": "NodePort", "clusterIP": "10.96.0.1", "selector": {"a": "b"},
                                  "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}});
    let expected = json!(["x", "NodePort", "10.96.0.1", "<none>", "80:30080/TCP", "3m20s", "a=b"]);
    assert_eq!(Value::Array(cells("", "services", service)), expected);
    let node = json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                      "spec": {"unschedulable": true},
                      "status": {"conditions": [{"type": "Ready", "status": "True"}],
                                 "nodeInfo": {"kubeletVersion": "v1"}}});
    let row = cells("", "nodes", node);
    assert_eq!(
        row[1..5],
        [json!("Ready,SchedulingDisabled"), json!("worker"), json!("3m20s"), json!("v1")]
    );
    let event = json!({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Started",
        "type": "Normal",
                       "message": "Started container\n", "lastTimestamp": "2023-11-14T22:13:00Z",
                       "source": {"component": "kubelet"}});
    let row = cells("", "events", event);
    assert_eq!(row[..4], [json!("20s"), json!("Normal"), json!("Started"), json!("pod/p")]);
    assert_eq!(row[6], "Started container");
}

/// Names and priorities: what `kubectl get` shows has 0, what `-o wide` adds has 1.
fn columns(group: &str, plural: &str) -> Vec<(String, i64)> {
    let columns = column_definitions(kind::find(group, "v1", plural).unwrap());
    let column =
        |c: &Value| (c["name"].as_str().unwrap().to_owned(), c["priority"].as_i64().unwrap());
    columns.as_array().unwrap().iter().map(column).collect()
}

fn named(columns: &[(&str, i64)]) -> Vec<(String, i64)> {
    columns.iter().map(|(name, priority)| ((*name).to_owned(), *priority)).collect()
}

#[test]
fn replication_controllers_have_the_columns_of_replica_sets() {
    let expected = [
        ("Name", 0),
        ("Desired", 0),
        ("Current", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Containers", 1),
        ("Images", 1),
        ("Selector", 1),
    ];
    assert_eq!(columns("", "replicationcontrollers"), named(&expected));
}

#[test]
fn stateful_sets_and_their_revisions_are_shown_as_upstream_shows_them() {
    let expected = [("Name", 0), ("Ready", 0), ("Age", 0), ("Containers", 1), ("Images", 1)];
    assert_eq!(columns("apps", "statefulsets"), named(&expected));
    let set = json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}}},
        "status": {"replicas": 3, "readyReplicas": 2}});
    assert_eq!(cells("apps", "statefulsets", set), ["x", "2/3", "3m20s", "a,b", "i:1,j:2"]);

    let expected = [("Name", 0), ("Controller", 0), ("Revision", 0), ("Age", 0)];
    assert_eq!(columns("apps", "controllerrevisions"), named(&expected));
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db",
                       "controller": true});
    let revision = json!({"metadata": {"ownerReferences": [owner]}, "revision": 2});
    assert_eq!(
        cells("apps", "controllerrevisions", revision),
        [json!("x"), json!("statefulset.apps/db"), json!(2), json!("3m20s")]
    );
    assert_eq!(cells("apps", "controllerrevisions", json!({}))[1], "<none>");
}

#[test]
fn claims_are_shown_as_upstream_shows_them() {
    let mut claim = json!({
        "spec": {"storageClassName": "fast", "volumeMode": "Filesystem"},
        "status": {"phase": "Pending"},
    });
    assert_eq!(
        cells("", "persistentvolumeclaims", claim.clone()),
        ["x", "Pending", "", "", "", "fast", "<unset>", "3m20s", "Filesystem"]
    );
    claim["spec"]["volumeName"] = json!("pv");
    claim["spec"]["volumeAttributesClassName"] = json!("gold");
    claim["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"},
                             "accessModes": ["ReadWriteMany", "ReadWriteOnce"]});
    assert_eq!(
        cells("", "persistentvolumeclaims", claim),
        ["x", "Bound", "pv", "1Gi", "RWO,RWX", "fast", "gold", "3m20s", "Filesystem"]
    );
}

#[test]
fn a_table_of_one_needs_its_columns_only_once() {
    let kind = kind::find("", "v1", "pods").unwrap();
    let pod = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
    let first =
        table(kind, [&pod], json!({"resourceVersion": "5"}), IncludeObject::Object, true, NOW);
    assert_eq!(first["columnDefinitions"][0]["format"], "name");
    assert_eq!(first["columnDefinitions"][5]["priority"], 1);
    assert_eq!(first["rows"][0]["object"], pod);
    let next = table(kind, [&pod], json!({}), IncludeObject::None, false, NOW);
    assert!(next["columnDefinitions"].is_null() && next["rows"][0]["object"].is_null());
}

proptest! {
    #[test]
    fn any_value_makes_a_row_of_the_right_length(value in any_json()) {
        for kind in kind::ALL {
            prop_assert_eq!((kind.row)(&value, NOW).len(), kind.columns.len(), "{}", kind.kind);
            row(kind, &value, IncludeObject::Metadata, NOW);
        }
    }
}

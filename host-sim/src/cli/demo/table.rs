//! Deployments with their ReplicaSets and pods, and StatefulSets with theirs, as the demo shows them.

use std::fmt;

use serde_json::Value;

use crate::http::SharedServer;

use super::super::inside::{is_rolled_out, objects};
use super::has_failed;

/// All Deployments and StatefulSets at a moment.
pub(super) struct Table {
    deployments: Vec<Deployment>,
    stateful_sets: Vec<StatefulSet>,
}

struct StatefulSet {
    name: String,
    wanted: u64,
    ready: u64,
    /// Name, sign and image of each.
    pods: Vec<String>,
}

struct Deployment {
    name: String,
    wanted: u64,
    ready: u64,
    updated: u64,
    available: u64,
    state: &'static str,
    sets: Vec<ReplicaSet>,
}

struct ReplicaSet {
    name: String,
    image: String,
    wanted: u64,
    /// One sign a pod.
    pods: String,
}

impl Table {
    /// How the cluster is now.
    pub(super) fn of(shared: &SharedServer) -> Self {
        let (sets, pods) = (objects(shared, "replicasets"), objects(shared, "pods"));
        let mut deployments: Vec<Deployment> = objects(shared, "deployments")
            .iter()
            .map(|d| Deployment::of(d, &sets, &pods))
            .collect();
        deployments.sort_by_key(|deployment| std::cmp::Reverse(deployment.wanted));
        let sets = objects(shared, "statefulsets");
        let stateful_sets = sets.iter().map(|set| StatefulSet::of(set, &pods)).collect();
        Self { deployments, stateful_sets }
    }

    /// The same as lines, to be told when they change.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.deployments.iter().flat_map(|deployment| {
            deployment.sets.iter().filter(|set| set.wanted > 0 || !set.pods.is_empty()).map(|set| {
                let ReplicaSet { image, wanted, pods, .. } = set;
                let Deployment { name, state, .. } = deployment;
                format!("{name:<7} {image:<8} {wanted} wanted  {pods:<5}  {state}")
            })
        });
        let of_sets = self.stateful_sets.iter().map(|set| {
            let StatefulSet { name, wanted, ready, pods } = set;
            format!("{name:<7} {ready}/{wanted} ready  {}", pods.join("  "))
        });
        lines.chain(of_sets).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DEPLOYMENT          READY  UP-TO-DATE  AVAILABLE  ROLLOUT")?;
        for Deployment { name, wanted, ready, updated, available, state, .. } in &self.deployments {
            let ready = format!("{ready}/{wanted}");
            writeln!(f, "{name:<19} {ready:<6} {updated:<11} {available:<10} {state}")?;
        }
        writeln!(f, "\nREPLICASET          WANTED  IMAGE     PODS")?;
        for set in self.deployments.iter().flat_map(|deployment| &deployment.sets) {
            let ReplicaSet { name, image, wanted, pods } = set;
            writeln!(f, "{name:<19} {wanted:<7} {image:<9} {pods}")?;
        }
        if !self.stateful_sets.is_empty() {
            writeln!(f, "\nSTATEFULSET         READY  PODS")?;
        }
        for StatefulSet { name, wanted, ready, pods } in &self.stateful_sets {
            let ready = format!("{ready}/{wanted}");
            writeln!(f, "{name:<19} {ready:<6} {}", pods.join("   "))?;
        }
        Ok(())
    }
}

impl Deployment {
    fn of(deployment: &Value, sets: &[Value], pods: &[Value]) -> Self {
        let status = |field: &str| deployment["status"][field].as_u64().unwrap_or(0);
        let state = match (is_rolled_out(deployment), has_failed(deployment)) {
            (true, _) => "complete",
            (false, true) => "failed: deadline exceeded",
            (false, false) => "in progress",
        };
        let mut sets: Vec<&Value> = sets.iter().filter(|set| owns(deployment, set)).collect();
        sets.sort_by_key(|set| {
            let revision = &set["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
            revision.as_str().and_then(|text| text.parse::<u64>().ok())
        });
        Self {
            name: text(&deployment["metadata"]["name"]),
            wanted: deployment["spec"]["replicas"].as_u64().unwrap_or(0),
            ready: status("readyReplicas"),
            updated: status("updatedReplicas"),
            available: status("availableReplicas"),
            state,
            sets: sets.into_iter().map(|set| ReplicaSet::of(set, pods)).collect(),
        }
    }
}

impl ReplicaSet {
    fn of(set: &Value, pods: &[Value]) -> Self {
        let mut signs: Vec<char> = pods.iter().filter(|pod| owns(set, pod)).map(sign).collect();
        signs.sort_by_key(|sign| "●○×".find(*sign));
        Self {
            name: text(&set["metadata"]["name"]),
            image: text(&set["spec"]["template"]["spec"]["containers"][0]["image"]),
            wanted: set["spec"]["replicas"].as_u64().unwrap_or(0),
            pods: signs.into_iter().collect(),
        }
    }
}

impl StatefulSet {
    fn of(set: &Value, pods: &[Value]) -> Self {
        let pod = |pod: &Value| {
            let image = text(&pod["spec"]["containers"][0]["image"]);
            format!("{} {} {image}", text(&pod["metadata"]["name"]), sign(pod))
        };
        Self {
            name: text(&set["metadata"]["name"]),
            wanted: set["spec"]["replicas"].as_u64().unwrap_or(0),
            ready: set["status"]["readyReplicas"].as_u64().unwrap_or(0),
            pods: pods.iter().filter(|pod| owns(set, pod)).map(pod).collect(),
        }
    }
}

/// What a pod looks like.
fn sign(pod: &Value) -> char {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return '×';
    }
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|conditions| {
        let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
        conditions.iter().any(is_ready)
    });
    if ready { '●' } else { '○' }
}

fn owns(owner: &Value, object: &Value) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.is_some_and(|references| {
        references.iter().any(|reference| reference["uid"] == owner["metadata"]["uid"])
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(owner: &str, ready: &str, deleted: Option<&str>) -> Value {
        json!({
            "metadata": {"ownerReferences": [{"uid": owner}], "deletionTimestamp": deleted},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    #[test]
    fn pods_are_drawn_with_their_owners() {
        let deployment = json!({
            "metadata": {"name": "web", "uid": "d", "generation": 2},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1},
        });
        let set = |name: &str, revision: &str, image: &str, replicas: u64| {
            json!({
                "metadata": {
                    "name": name,
                    "uid": name,
                    "annotations": {"deployment.kubernetes.io/revision": revision},
                    "ownerReferences": [{"uid": "d"}],
                },
                "spec": {
                    "replicas": replicas,
                    "template": {"spec": {"containers": [{"image": image}]}},
                },
            })
        };
        let sets = [set("new", "10", "app:2", 1), set("old", "9", "app:1", 2)];
        let pods = [
            pod("old", "True", None),
            pod("old", "True", Some("2026-01-01T00:00:00Z")),
            pod("old", "True", None),
            pod("new", "False", None),
        ];
        let deployments = vec![Deployment::of(&deployment, &sets, &pods)];
        let db = json!({
            "metadata": {"name": "db", "uid": "s"},
            "spec": {"replicas": 2},
            "status": {"readyReplicas": 1},
        });
        let mut member = pod("s", "True", None);
        member["metadata"]["name"] = json!("db-0");
        member["spec"] = json!({"containers": [{"image": "app:1"}]});
        let table = Table { deployments, stateful_sets: vec![StatefulSet::of(&db, &[member])] };
        assert_eq!(
            table.lines(),
            [
                "web     app:1    2 wanted  ●●×    in progress",
                "web     app:2    1 wanted  ○      in progress",
                "db      1/2 ready  db-0 ● app:1",
            ]
        );
        let drawn = table.to_string();
        assert!(drawn.contains("web                 2/3    1           0          in progress"));
        assert!(drawn.contains("db                  1/2    db-0 ● app:1"), "{drawn}");
    }
}

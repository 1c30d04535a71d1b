//! How many pods there were at a time and how many were wanted, of all that watches have told.
//!
//! Each watch is read by a thread of its own; what they have told is put into the order of the server by
//! resource versions, which all objects of the cluster share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::http::Client;
use crate::lab::{Lab, number, text};

/// What is watched: all of one namespace.
const WATCHED: [(&str, &str); 4] = [
    ("api/v1", "pods"),
    ("apis/apps/v1", "replicasets"),
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "statefulsets"),
];

/// Counts the pods of workloads, by their label `app`, as long as the cluster lives.
pub struct Census {
    told: Arc<Mutex<Vec<Told>>>,
}

/// One event of a watch.
struct Told {
    version: u64,
    resource: &'static str,
    uid: String,
    /// The last one of an object that goes is none.
    object: Option<Value>,
}

/// The most by which there was too much of something, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// How many too many.
    pub count: i64,
    /// Whose.
    pub of: String,
}

/// By how much there was too much at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surplus {
    /// Pods that the ReplicaSets of a Deployment were to have, beyond its size and surge.
    pub wanted: Most,
    /// Pods that a ReplicaSet or StatefulSet had, when one of them was created, beyond its size.
    pub created: Most,
    /// Pods of a workload beyond its size and surge; also those of ReplicaSets that have become smaller and
    /// have not got to deleting them, which Deployments do not wait for.
    pub there: Most,
}

impl Census {
    /// Of a namespace, from now on.
    pub fn of(lab: &Lab<'_>) -> Result<Self> {
        let told = Arc::<Mutex<Vec<Told>>>::default();
        for (group, resource) in WATCHED {
            let mut client = lab.cluster().client()?;
            client
                .watch(&format!("/{group}/namespaces/{}/{resource}?watch=true", lab.namespace()))?;
            let told = Arc::clone(&told);
            thread::spawn(move || listen(&mut client, resource, &told));
        }
        Ok(Self { told })
    }

    /// What there was too much of so far, when all that there is has been told.
    pub fn surplus(&self, lab: &Lab<'_>) -> Result<Surplus> {
        lab.wait("all that there is has been told", || {
            WATCHED.into_iter().try_fold(true, |all, (_, resource)| {
                let listed = lab.list(resource)?;
                Ok(all && listed.iter().all(|object| self.knows(version(object))))
            })
        })?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.sort_by_key(|told| told.version);
        ensure!(told.iter().any(|told| told.resource == "pods"), "no pod was seen");
        Ok(surplus(&told))
    }

    fn knows(&self, version: u64) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().any(|told| told.version == version)
    }
}

/// Until the watch ends, with the cluster.
fn listen(client: &mut Client, resource: &'static str, told: &Mutex<Vec<Told>>) {
    while let Ok(mut event) = client.event() {
        let (is_gone, object) = (event["type"] == "DELETED", event["object"].take());
        let (version, uid) = (version(&object), text(&object["metadata"]["uid"]).to_owned());
        let object = (!is_gone).then_some(object);
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(Told { version, resource, uid, object });
    }
}

fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap_or(0)
}

/// Looks at the cluster after each of these events, which are in order.
fn surplus(told: &[Told]) -> Surplus {
    let mut surplus = Surplus::default();
    let mut now = BTreeMap::<(&str, &str), &Value>::new();
    for Told { resource, uid, object, .. } in told {
        let before = match object {
            Some(object) => now.insert((resource, uid), object),
            None => now.remove(&(*resource, uid.as_str())),
        };
        let Some(object) = object else { continue };
        let is_new = before.is_none();
        match *resource {
            "pods" if counts(object) => {
                let workload = text(&object["metadata"]["labels"]["app"]);
                if let Some(allowed) = allowed(&now, workload) {
                    let is_of_it =
                        |pod: &&Value| text(&pod["metadata"]["labels"]["app"]) == workload;
                    let there = pods(&now).filter(is_of_it).count() as i64;
                    surplus.there.raise(there - allowed, workload);
                }
                let owner = owner(object);
                if let Some(set) = set(&now, owner).filter(|_| is_new) {
                    let of_it = pods(&now).filter(|pod| self::owner(pod) == owner).count() as i64;
                    let wanted = number(&set["spec"]["replicas"]);
                    surplus.created.raise(of_it - wanted, text(&set["metadata"]["name"]));
                }
            }
            "replicasets" => {
                let owner = owner(object);
                let Some(deployment) = now.get(&("deployments", owner)) else { continue };
                let name = text(&deployment["metadata"]["name"]);
                let sets = now.iter().filter(|((resource, _), _)| *resource == "replicasets");
                let sets = sets.filter(|(_, set)| self::owner(set) == owner);
                let wanted: i64 = sets.map(|(_, set)| number(&set["spec"]["replicas"])).sum();
                surplus.wanted.raise(wanted - allowed(&now, name).unwrap_or(0), name);
            }
            _ => {}
        }
    }
    surplus
}

impl Most {
    fn raise(&mut self, count: i64, of: &str) {
        if self.of.is_empty() || count > self.count {
            *self = Self { count, of: of.to_owned() };
        }
    }
}

type Objects<'a> = BTreeMap<(&'a str, &'a str), &'a Value>;

fn pods<'a>(now: &Objects<'a>) -> impl Iterator<Item = &'a Value> {
    let pods = now.iter().filter(|((resource, _), _)| *resource == "pods");
    pods.map(|(_, pod)| *pod).filter(|pod| counts(pod))
}

/// Whether a pod is neither over nor going.
fn counts(pod: &Value) -> bool {
    let is_over = matches!(text(&pod["status"]["phase"]), "Failed" | "Succeeded");
    !is_over && pod["metadata"]["deletionTimestamp"].is_null()
}

fn owner(object: &Value) -> &str {
    text(&object["metadata"]["ownerReferences"][0]["uid"])
}

fn set<'a>(now: &Objects<'a>, uid: &str) -> Option<&'a Value> {
    ["replicasets", "statefulsets"].iter().find_map(|resource| now.get(&(*resource, uid)).copied())
}

/// How many pods a workload may have.
fn allowed(now: &Objects<'_>, workload: &str) -> Option<i64> {
    now.iter().find_map(|((resource, _), object)| {
        let replicas = number(&object["spec"]["replicas"]);
        match *resource {
            _ if object["metadata"]["name"] != workload => None,
            // Kubernetes' default: a quarter more, rounded up.
            "deployments" => Some(replicas + replicas.unsigned_abs().div_ceil(4).cast_signed()),
            "statefulsets" => Some(replicas),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(resource: &'static str, uid: &str, object: Option<Value>) -> Told {
        Told { version: 0, resource, uid: uid.to_owned(), object }
    }

    fn sized(resource: &'static str, uid: &str, replicas: i64, owner: &str) -> Told {
        let metadata = json!({"name": uid, "ownerReferences": [{"uid": owner}]});
        told(resource, uid, Some(json!({"metadata": metadata, "spec": {"replicas": replicas}})))
    }

    fn pod(uid: &str, owner: &str) -> Told {
        let references = json!([{"uid": owner}]);
        let metadata = json!({"labels": {"app": "web"}, "ownerReferences": references});
        told("pods", uid, Some(json!({"metadata": metadata})))
    }

    fn counts(told: &[Told]) -> (i64, i64, i64) {
        let surplus = surplus(told);
        (surplus.wanted.count, surplus.created.count, surplus.there.count)
    }

    #[test]
    fn sizes_creations_and_pods_are_each_held_against_what_may_be() {
        let mut all = vec![
            sized("deployments", "web", 2, ""),
            sized("replicasets", "old", 2, "web"),
            pod("a", "old"),
            pod("b", "old"),
        ];
        assert_eq!(counts(&all), (-1, 0, -1));
        // Within the surge; the old one is then smaller, and has not got to deleting a pod.
        all.extend([sized("replicasets", "new", 1, "web"), pod("c", "new")]);
        assert_eq!(counts(&all), (0, 0, 0));
        all.extend([
            sized("replicasets", "old", 1, "web"),
            sized("replicasets", "new", 2, "web"),
            pod("d", "new"),
        ]);
        assert_eq!(counts(&all), (0, 0, 1));
        // A pod that goes makes room for another one of its ReplicaSet, and for one only.
        all.extend([told("pods", "d", None), pod("e", "new")]);
        assert_eq!(counts(&all), (0, 0, 1));
        all.push(pod("f", "new"));
        assert_eq!(counts(&all), (0, 1, 2));
        all.push(sized("replicasets", "new", 3, "web"));
        assert_eq!(counts(&all), (1, 1, 2));
    }
}

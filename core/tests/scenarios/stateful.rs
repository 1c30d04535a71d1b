//! What users do with StatefulSets, and what they see of them.

use picokube_core::manager::{Body, Make, Request, Settings};
use picokube_core::time::Duration;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Space};
use crate::server::Server;

pub(crate) type Memory = picokube_core::resources! {
    pods: 60, stateful_sets: 4, controller_revisions: 16, persistent_volume_claims: 30,
};

/// A StatefulSet as a server that has defaulted it would hand it out.
pub(crate) fn stateful_set(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "serviceName": name, "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "revisionHistoryLimit": 10,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:v1"}]},
            },
        },
        "status": {"replicas": 0},
    })
}

/// With a claim template.
pub(crate) fn with_claim(mut set: Value) -> Value {
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }]);
    set
}

/// With this in its `spec`.
pub(crate) fn with(mut set: Value, field: &str, value: Value) -> Value {
    set["spec"][field] = value;
    set
}

/// Plays a scenario with several seeds.
pub(crate) fn with_stateful(scenario: impl Fn(&mut Cluster<'_>)) {
    for seed in 1..6 {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let settings = Settings { rate: None, ..Settings::DEFAULT };
        let mut cluster = Cluster::of(memory.parts(), &mut space, seed, settings);
        cluster.inspect = Some(inspect);
        scenario(&mut cluster);
    }
}

impl Cluster<'_> {
    pub(crate) fn set_image_of_set(&mut self, name: &str, image: &str) {
        let template = json!({"spec": {"containers": [{"name": "app", "image": image}]}});
        self.patch("statefulsets", name, &json!({"spec": {"template": template}}));
    }

    pub(crate) fn scale_set(&mut self, name: &str, replicas: i32) {
        self.patch("statefulsets", name, &json!({"spec": {"replicas": replicas}}));
    }

    /// Lets the kubelet work until nothing is left to do, with patience for retries and slow watches.
    pub(crate) fn patient_rollout(&mut self) {
        self.run(Duration::from_secs(30));
        for _ in 0..1_000 {
            if self.has_crashed || !self.kubelet() {
                return;
            }
            self.run(Duration::from_secs(30));
        }
        panic!("the kubelet never comes to rest");
    }

    /// Names of the pods with their images.
    pub(crate) fn images(&self) -> Vec<String> {
        let image = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap();
            format!("{name} {}", pod["spec"]["containers"][0]["image"].as_str().unwrap())
        };
        self.server.of("pods").map(image).collect()
    }

    /// Data and numbers of all revisions, the oldest first.
    pub(crate) fn revisions(&self) -> Vec<(i64, String)> {
        let image = |revision: &Value| {
            let template = &revision["data"]["spec"]["template"];
            template["spec"]["containers"][0]["image"].as_str().unwrap().to_string()
        };
        let revisions = self.server.of("controllerrevisions");
        let mut found: Vec<_> =
            revisions.map(|it| (it["revision"].as_i64().unwrap(), image(it))).collect();
        found.sort();
        found
    }

    /// Kinds and names of a claim's owners.
    pub(crate) fn claim_owners(&self, name: &str) -> Vec<String> {
        let claim = self.server.get("persistentvolumeclaims", name).unwrap();
        let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let text = |owner: &Value| {
            format!("{} {}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap())
        };
        owners.iter().map(text).collect()
    }

    /// The controllers' writes of this kind, such as `POST pods`, in order, events left out; names where
    /// there are any.
    pub(crate) fn writes(&self, method: &str, plural: &str) -> Vec<String> {
        let part = format!("/{plural}");
        let sent = self.sent.iter().filter(|(verb, to)| verb == method && to.contains(&part));
        sent.map(|(_, to)| to.rsplit('/').next().unwrap().to_string()).collect()
    }

    /// The names of pods in the order in which they came or went.
    pub(crate) fn pod_history(&self, change: &str) -> Vec<String> {
        let history = self.server.history.iter();
        history
            .filter(|(_, plural, it, _)| plural == "pods" && *it == change)
            .map(|(.., pod)| pod["metadata"]["name"].as_str().unwrap().to_string())
            .collect()
    }

    /// Nobody works, and nothing is going to happen.
    pub(crate) fn assert_rests(&mut self, context: &str) {
        self.run(Duration::from_secs(1_200));
        let sent = self.sent.len();
        self.run(Duration::from_secs(1_800));
        assert_eq!(&self.sent[sent..], [], "{context}: silent for half an hour");
        assert!(!self.manager.has_work(), "{context}: nobody works");
    }

    /// What is there in the end, without what differs from run to run.
    pub(crate) fn summary(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for plural in ["statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions"] {
            for object in self.server.of(plural) {
                let meta = &object["metadata"];
                let names = |owner: &Value| owner["name"].as_str().unwrap().to_string();
                let owners = meta["ownerReferences"].as_array();
                let owners: Vec<_> = owners.into_iter().flatten().map(names).collect();
                let mut status = object["status"].clone();
                status["conditions"] = Value::Null;
                lines.push(format!(
                    "{} {} {owners:?} {} {} {status}",
                    meta["name"], meta["labels"], object["revision"], object["spec"]["containers"],
                ));
            }
        }
        lines
    }
}

/// The ordinal of a pod by its name.
fn ordinal(pod: &str) -> i64 {
    pod.rsplit('-').next().unwrap().parse().unwrap()
}

/// What the controller may ask for at this moment, of a set whose pods come in order: a pod when all before
/// it are Ready, and no deletion of a pod that runs while another one is not.
pub(crate) fn inspect(server: &Server, request: &Request) {
    let target = request.target.as_str();
    let (method, name) = (request.method.name(), target.rsplit('/').next().unwrap());
    if !target.contains("/pods") || !["DELETE", "POST"].contains(&method) {
        return;
    }
    let name = match &request.body {
        Body::Splice(splice) => match &splice.make {
            Make::StatefulSetPod { owner, ordinal, .. } => {
                format!("{owner}-{ordinal}")
            }
            _ => return,
        },
        _ => name.to_string(),
    };
    let set_name = name.rsplit_once('-').unwrap().0;
    let Some(set) = server.get("statefulsets", set_name) else { return };
    if set["spec"]["podManagementPolicy"] != json!("OrderedReady") {
        return;
    }
    let is_ready = |pod: &Value| {
        let is_true = |it: &Value| it["type"] == json!("Ready") && it["status"] == json!("True");
        let conditions = pod["status"]["conditions"].as_array();
        pod["status"]["phase"] == json!("Running")
            && conditions.is_some_and(|all| all.iter().any(is_true))
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    if method == "POST" {
        let (start, end) = (set["spec"]["ordinals"]["start"].as_i64().unwrap_or(0), ordinal(&name));
        for before in start..end {
            let before = format!("{set_name}-{before}");
            let pod = server.get("pods", &before);
            assert!(pod.is_some_and(is_ready), "{name} is created before {before} is Ready");
        }
        return;
    }
    let Some(pod) = server.get("pods", &name).filter(|pod| is_ready(pod)) else { return };
    for other in server.of("pods") {
        let owner = &other["metadata"]["ownerReferences"][0]["uid"];
        let is_member = *owner == set["metadata"]["uid"] && other != pod;
        assert!(
            !is_member || is_ready(other),
            "{name} is deleted while {} is not Ready",
            other["metadata"]["name"]
        );
    }
}

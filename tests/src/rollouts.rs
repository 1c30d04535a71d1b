//! Workloads that are rolled out again and again while something is broken: the end has to be as if nothing
//! had happened.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, is_observed, number, text};
use crate::stateful_set::claim_spec;

/// How many there are. The last is a StatefulSet, the others are Deployments.
pub const WORKLOADS: u32 = 5;

/// Size and image of each workload.
type Wanted = BTreeMap<String, (i64, String)>;

/// Workloads in a namespace.
pub struct Rollouts<'l, 'c> {
    lab: &'l Lab<'c>,
    wanted: Wanted,
}

impl<'l, 'c> Rollouts<'l, 'c> {
    /// Creates them.
    pub fn start(lab: &'l Lab<'c>) -> Result<Self> {
        let mut wanted = BTreeMap::new();
        for number in 0..WORKLOADS {
            let is_stateful = number == WORKLOADS - 1;
            let name = format!("{}-{number}", if is_stateful { "stateful" } else { "deployment" });
            let replicas = 2 + i64::from(number % 4);
            lab.create(resource(&name), &workload(&name, replicas))?;
            wanted.insert(name, (replicas, "app:0".to_owned()));
        }
        Ok(Self { lab, wanted })
    }

    /// Gives every workload an image of this version, and one of them another size, if so wanted.
    pub fn update(&mut self, version: u32, resized: Option<(usize, i64)>) -> Result<()> {
        for (place, (name, (replicas, image))) in self.wanted.iter_mut().enumerate() {
            *image = format!("app:{version}");
            if let Some((_, size)) = resized.filter(|(resized, _)| *resized == place) {
                *replicas = size;
            }
            let containers = json!([{"name": "app", "image": image}]);
            let template = json!({"spec": {"containers": containers}});
            let spec = json!({"replicas": *replicas, "template": template});
            self.lab.patch(&format!("{}/{name}", resource(name)), &json!({"spec": spec}))?;
        }
        Ok(())
    }

    /// Waits until all are rolled out, and there is not one pod more. Patience is for the next step: how many
    /// it takes is known, and how fast they go is up to the machine.
    pub fn wait(&self) -> Result<()> {
        let Self { lab, wanted } = self;
        let mut left = usize::MAX;
        while left > 0 {
            let before = left;
            lab.wait(&format!("less is left to be done than {before}"), || {
                left = left_to_do(lab, wanted)?;
                Ok(left < before)
            })
            .with_context(|| format!("wanted are {wanted:?}"))?;
        }
        self.check_sizes()
    }

    /// No ReplicaSet wants pods that are not there.
    fn check_sizes(&self) -> Result<()> {
        let sets = self.lab.list("replicasets")?;
        for (name, (replicas, _)) in self.wanted.iter().filter(|it| resource(it.0) == "deployments")
        {
            let of_this =
                sets.iter().filter(|set| set["spec"]["selector"]["matchLabels"]["app"] == **name);
            let sizes: i64 = of_this.map(|set| number(&set["spec"]["replicas"])).sum();
            ensure!(sizes == *replicas, "{name}: its ReplicaSets want {sizes} pods");
        }
        Ok(())
    }
}

/// Where the API has a workload of this name.
fn resource(name: &str) -> &'static str {
    if name.starts_with("stateful") { "statefulsets" } else { "deployments" }
}

/// How far the cluster is from what it would be without any cut: pods that are missing, pods that there are
/// instead, and whether statuses say that all is done.
fn left_to_do(lab: &Lab<'_>, wanted: &Wanted) -> Result<usize> {
    let mut missing = BTreeMap::<(&str, &str), i64>::new();
    for (name, (replicas, image)) in wanted {
        missing.insert((name, image), *replicas);
    }
    let pods = lab.list("pods")?;
    for pod in &pods {
        let image = text(&pod["spec"]["containers"][0]["image"]);
        let workload = text(&pod["metadata"]["labels"]["app"]);
        *missing.entry((workload, image)).or_default() -= 1;
    }
    let pods: u64 = missing.values().map(|count| count.unsigned_abs()).sum();
    Ok(pods as usize + usize::from(!are_complete(lab, wanted)?))
}

/// Whether the status of every workload says that it is rolled out.
fn are_complete(lab: &Lab<'_>, wanted: &Wanted) -> Result<bool> {
    let mut workloads = lab.list("deployments")?;
    workloads.extend(lab.list("statefulsets")?);
    Ok(workloads.iter().all(|workload| {
        let (replicas, _) = &wanted[text(&workload["metadata"]["name"])];
        let status = &workload["status"];
        let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
        let is_there = counts.iter().all(|count| number(&status[count]) == *replicas);
        // Both are absent in a Deployment.
        let is_complete = status["currentRevision"] == status["updateRevision"];
        is_observed(workload) && is_there && is_complete
    }))
}

fn workload(name: &str, replicas: i64) -> Value {
    let mut workload = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "app", "image": "app:0"}],
                },
            },
        },
    });
    if resource(name) == "statefulsets" {
        let claims = json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]);
        workload["spec"]["volumeClaimTemplates"] = claims;
        workload["spec"]["serviceName"] = json!(name);
    }
    workload
}

/// Random numbers: Marsaglia's xorshift64.
pub struct Random(pub u64);

impl Random {
    /// Any number below this.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Another one each time.
pub fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64 | 1)
}

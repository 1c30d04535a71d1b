//! Power cuts and link cuts at random moments of rollouts: the end is as if nothing had happened.
//!
//! `PICOKUBE_CUTS` says how many of each there are (30 is the full course, see CONTRIBUTING.md);
//! `PICOKUBE_SEED` repeats a run whose seed was printed.

use std::collections::BTreeMap;
use std::env;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_tests::firmware::Device;
use picokube_tests::lab::{Lab, is_observed, number, text};
use picokube_tests::picokube::Picokube;
use picokube_tests::stateful_set::claim_spec;
use serde_json::{Value, json};

/// Without `PICOKUBE_CUTS`.
const CUTS: u32 = 6;
/// The last of them is a StatefulSet, the others are Deployments.
const WORKLOADS: u32 = 5;
/// The longest from the beginning of a rollout to a cut.
const LONGEST: u64 = 3_000;

#[test]
fn power_cuts_during_rollouts() -> Result<()> {
    cut("power-cuts", |device, _| device.cut_power())
}

#[test]
fn link_cuts_during_rollouts() -> Result<()> {
    cut("link-cuts", |device, random| {
        device.set_link(false)?;
        thread::sleep(Duration::from_millis(random.below(LONGEST)));
        device.set_link(true)
    })
}

fn cut(namespace: &str, cut: impl Fn(&Device, &mut Random) -> Result<()>) -> Result<()> {
    let cuts = env::var("PICOKUBE_CUTS").map_or(Ok(CUTS), |cuts| cuts.parse())?;
    let seed = env::var("PICOKUBE_SEED").map_or(Ok(fresh_seed()), |seed| seed.parse())?;
    println!("{cuts} cuts; PICOKUBE_SEED={seed} repeats them");
    let mut random = Random(seed);
    let cluster = Picokube::with_nodes(3)?;
    let device = Device::boot(cluster.address())?;
    let lab = Lab::new(&cluster, namespace)?;
    let mut wanted = BTreeMap::new();
    for number in 0..WORKLOADS {
        let is_stateful = number == WORKLOADS - 1;
        let name = format!("{}-{number}", if is_stateful { "stateful" } else { "deployment" });
        let replicas = 2 + i64::from(number % 4);
        lab.create(resource(&name), &workload(&name, replicas))?;
        wanted.insert(name, (replicas, "app:0".to_owned()));
    }
    for round in 1..=cuts {
        // Every workload gets a new image, and one of them another size.
        let resized = random.below(u64::from(WORKLOADS)) as usize;
        for (number, (name, (replicas, image))) in wanted.iter_mut().enumerate() {
            *image = format!("app:{round}");
            if number == resized {
                *replicas = 1 + random.below(6) as i64;
            }
            let containers = json!([{"name": "app", "image": image}]);
            let template = json!({"spec": {"containers": containers}});
            let spec = json!({"replicas": *replicas, "template": template});
            lab.patch(&format!("{}/{name}", resource(name)), &json!({"spec": spec}))?;
        }
        thread::sleep(Duration::from_millis(random.below(LONGEST)));
        cut(&device, &mut random)?;
    }
    let reached = lab.wait("all is as if nothing had happened", || is_undisturbed(&lab, &wanted));
    reached.with_context(|| {
        format!("PICOKUBE_SEED={seed}; wanted {wanted:?}; the device's log:\n{}", device.log())
    })
}

/// Where the API has a workload of this name.
fn resource(name: &str) -> &'static str {
    if name.starts_with("stateful") { "statefulsets" } else { "deployments" }
}

/// Whether the cluster is as it would be without any cut: every workload rolled out, and not one pod more.
fn is_undisturbed(lab: &Lab<'_>, wanted: &BTreeMap<String, (i64, String)>) -> Result<bool> {
    for workload in lab.list("deployments")?.into_iter().chain(lab.list("statefulsets")?) {
        let (replicas, _) = &wanted[text(&workload["metadata"]["name"])];
        let status = &workload["status"];
        let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
        let is_there = counts.iter().all(|count| number(&status[count]) == *replicas);
        // Both are absent in a Deployment.
        let is_complete = status["currentRevision"] == status["updateRevision"];
        if !is_observed(&workload) || !is_there || !is_complete {
            return Ok(false);
        }
    }
    let mut pods = BTreeMap::<String, Vec<String>>::new();
    for pod in lab.list("pods")? {
        let image = text(&pod["spec"]["containers"][0]["image"]).to_owned();
        pods.entry(text(&pod["metadata"]["labels"]["app"]).to_owned()).or_default().push(image);
    }
    let expected: BTreeMap<String, Vec<String>> = wanted
        .iter()
        .map(|(name, (replicas, image))| (name.clone(), vec![image.clone(); *replicas as usize]))
        .collect();
    if pods != expected {
        return Ok(false);
    }
    let sets = lab.list("replicasets")?;
    for (name, (replicas, _)) in wanted.iter().filter(|it| resource(it.0) == "deployments") {
        let of_this =
            sets.iter().filter(|set| set["spec"]["selector"]["matchLabels"]["app"] == **name);
        let sizes: i64 = of_this.map(|set| number(&set["spec"]["replicas"])).sum();
        ensure!(sizes == *replicas, "{name}: its ReplicaSets want {sizes} pods");
    }
    Ok(true)
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

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64 | 1)
}

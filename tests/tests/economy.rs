//! What a rollout costs the API server, with what `picokube up` does unless told otherwise.

use std::time::{Duration, Instant};

use anyhow::Result;
use picokube_tests::lab::{Lab, deployment, number};
use picokube_tests::picokube::Picokube;
use serde_json::json;

/// Requests that kube-controller-manager needs for this: 95 to 120.
const MOST: u64 = 75;
/// Pods get ready when the machine has time for them; what comes too late for one status gets
/// another.
const TRIES: usize = 5;
/// How long the controllers must have been silent to be done.
const SILENCE: Duration = Duration::from_secs(1);

#[test]
fn a_rolling_update_of_ten_takes_at_most_75_requests() -> Result<()> {
    let cluster = Picokube::up(&["--nodes", "2"])?;
    let lab = Lab::new(&cluster, "economy")?;
    lab.create("deployments", &deployment("web", 10))?;
    wait_until_rolled_out(&lab)?;
    let mut costs = Vec::new();
    for version in 2..2 + TRIES {
        let before = requests_once_silent(&lab)?;
        let containers = json!([{"name": "app", "image": format!("app:{version}")}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        lab.patch("deployments/web", &patch)?;
        wait_until_rolled_out(&lab)?;
        costs.push(requests_once_silent(&lab)? - before);
        if costs.last().is_some_and(|cost| *cost <= MOST) {
            assert_eq!(sum(&lab, "rest_client_requests_total{code=\"409\"")?, 0, "conflicts");
            return Ok(());
        }
    }
    panic!("requests of {TRIES} rolling updates: {costs:?}");
}

fn wait_until_rolled_out(lab: &Lab<'_>) -> Result<()> {
    lab.wait_for("deployments/web", "it is rolled out", |web| {
        let status = &web["status"];
        let is_ten = |count: &str| number(&status[count]) == 10;
        status["observedGeneration"] == web["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"].into_iter().all(is_ten)
    })?;
    Ok(())
}

/// Requests of the controllers until now, once they send no more.
fn requests_once_silent(lab: &Lab<'_>) -> Result<u64> {
    let mut seen = (0, Instant::now());
    lab.wait("the controllers are silent", || {
        let now = sum(lab, "rest_client_requests_total{")?;
        if now != seen.0 {
            seen = (now, Instant::now());
        }
        Ok(seen.1.elapsed() >= SILENCE)
    })?;
    Ok(seen.0)
}

/// The sum of all metrics whose lines begin so.
fn sum(lab: &Lab<'_>, metric: &str) -> Result<u64> {
    let page = lab.cluster().get("/metrics")?.text();
    let values = page.lines().filter(|line| line.starts_with(metric));
    let values = values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(values.sum())
}

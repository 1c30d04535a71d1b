//! What a rollout costs the API server, with what `picokube up` does unless told otherwise.

use std::time::{Duration, Instant};

use anyhow::Result;
use picokube_tests::lab::{Lab, deployment, number};
use picokube_tests::picokube::Picokube;
use serde_json::json;

/// Requests that kube-controller-manager needs for this: 95 to 120.
const MOST: u64 = 75;
/// Pods get ready when the machine has time for them; what comes too late for one status gets
/// another. So the median counts.
const UPDATES: usize = 5;
/// How long the controllers must have been silent to be done.
const SILENCE: Duration = Duration::from_secs(1);

/// What they may send and receive for it over TLS, in bytes, with what TLS and HTTP/2 add.
const MOST_SENT: u64 = 48 << 10;
const MOST_RECEIVED: u64 = 512 << 10;

#[test]
fn a_rolling_update_of_ten_takes_at_most_75_requests() -> Result<()> {
    rolls_out(&Picokube::up(&["--nodes", "2"])?).map(drop)
}

#[test]
fn nor_does_it_over_tls_and_it_takes_no_more_bytes() -> Result<()> {
    let Cost { sent, received, .. } = rolls_out(&Picokube::secure(&["up", "--nodes", "2"])?)?;
    assert!(sent <= MOST_SENT, "{sent} bytes sent");
    assert!(received <= MOST_RECEIVED, "{received} bytes received");
    Ok(())
}

/// What the controllers have taken until a moment, or for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    requests: u64,
    sent: u64,
    received: u64,
}

/// Rolls a Deployment again and again: the cost in the middle.
fn rolls_out(cluster: &Picokube) -> Result<Cost> {
    let lab = Lab::new(cluster, "economy")?;
    lab.create("deployments", &deployment("web", 10))?;
    wait_until_rolled_out(&lab)?;
    let mut costs = Vec::new();
    for version in 2..2 + UPDATES {
        let before = cost_once_silent(&lab)?;
        let containers = json!([{"name": "app", "image": format!("app:{version}")}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        lab.patch("deployments/web", &patch)?;
        wait_until_rolled_out(&lab)?;
        let after = cost_once_silent(&lab)?;
        costs.push(Cost {
            requests: after.requests - before.requests,
            sent: after.sent - before.sent,
            received: after.received - before.received,
        });
    }
    costs.sort_unstable();
    eprintln!("{UPDATES} rolling updates: {costs:?}");
    let middle = costs[UPDATES / 2];
    assert!(middle.requests <= MOST, "{UPDATES} rolling updates: {costs:?}");
    assert_eq!(sum(&lab, "rest_client_requests_total{code=\"409\"")?, 0, "conflicts");
    Ok(middle)
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

/// What the controllers have taken until now, once they send no more.
fn cost_once_silent(lab: &Lab<'_>) -> Result<Cost> {
    let mut seen = (0, Instant::now());
    lab.wait("the controllers are silent", || {
        let now = sum(lab, "rest_client_requests_total{")?;
        if now != seen.0 {
            seen = (now, Instant::now());
        }
        Ok(seen.1.elapsed() >= SILENCE)
    })?;
    Ok(Cost {
        requests: seen.0,
        sent: sum(lab, "picokube_network_sent_bytes_total ")?,
        received: sum(lab, "picokube_network_received_bytes_total ")?,
    })
}

/// The sum of all metrics whose lines begin so.
fn sum(lab: &Lab<'_>, metric: &str) -> Result<u64> {
    let page = lab.cluster().get("/metrics")?.text();
    let values = page.lines().filter(|line| line.starts_with(metric));
    let values = values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(values.sum())
}

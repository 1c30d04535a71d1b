//! Two `picokube run` against one cluster: one leads, the other takes over.

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::http::Client;
use picokube_tests::lab::{Lab, number};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use super::{controllers, deployment, wait_until_available};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/picokube";
/// An election in which nobody waits for long, and nobody loses the lease because the machine is busy.
const FAST: [&str; 3] = [
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=9s",
    "--leader-elect-retry-period=500ms",
];

fn lease(cluster: &Picokube) -> Result<Value> {
    Ok(cluster.get(LEASE)?.json()?["spec"].clone())
}

/// What events tell of leaders.
fn told(cluster: &Picokube) -> Result<Vec<String>> {
    let events = cluster.get("/api/v1/namespaces/kube-system/events")?.json()?;
    let events = events["items"].as_array().context("no list")?;
    let of_elections = events.iter().filter(|event| event["reason"] == "LeaderElection");
    Ok(of_elections.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect())
}

/// The identity that a line of a leader tells.
fn leader(line: &str) -> Result<String> {
    let (_, rest) = line.split_once("leads as ").context("no leader")?;
    Ok(rest.split(',').next().unwrap_or_default().to_owned())
}

fn roll_out(lab: &Lab<'_>, image: &str) -> Result<()> {
    let containers = json!([{"name": "app", "image": image}]);
    let spec = json!({"template": {"spec": {"containers": containers}}});
    let generation =
        lab.patch("deployments/web", &json!({"spec": spec}))?["metadata"]["generation"].clone();
    lab.wait_for("deployments/web", "it is rolled out", |deployment| {
        let status = &deployment["status"];
        status["observedGeneration"] == generation
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|count| number(&status[count]) == 2)
    })?;
    Ok(())
}

#[test]
fn the_second_takes_over_when_the_first_is_killed() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let first = controllers(&cluster, &FAST)?;
    let first_name = leader(&first.line_with(&["leads as"])?)?;
    let with_pages = [&FAST[..], &["--metrics-bind-address", "127.0.0.1:0"]].concat();
    let second = controllers(&cluster, &with_pages)?;
    let pages = second.line_with(&["metrics and health on http://"])?;
    let pages = pages.rsplit('/').next().context("no address")?.parse()?;
    second.line_with(&["stands by", &first_name, "kube-system/picokube"])?;
    let lab = Lab::new(&cluster, "election")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")?;
    let page = |path: &str| Client::connect(pages)?.send("GET", path, &[], b"");
    let metrics = page("/metrics")?.text();
    ensure!(metrics.contains("leader_election_master_status{name=\"picokube\"} 0\n"), "{metrics}");
    ensure!(metrics.contains(&format!("picokube_leader_info{{holder=\"{first_name}\"}} 1\n")));
    ensure!(metrics.contains("picokube_requests_total{verb=\"POST\"} 0\n"), "{metrics}");
    assert_eq!(page("/healthz/leaderElection")?.status, 200);

    // SIGKILL: nothing is given back.
    drop(first);
    let second_name = leader(&second.line_with(&["leads as"])?)?;
    ensure!(first_name != second_name);
    roll_out(&lab, "app:2")?;
    let spec = lease(&cluster)?;
    assert_eq!(
        (&spec["holderIdentity"], number(&spec["leaseTransitions"])),
        (&json!(second_name), 1)
    );
    let metrics = page("/metrics")?.text();
    ensure!(metrics.contains("leader_election_master_status{name=\"picokube\"} 1\n"), "{metrics}");
    let told = told(&cluster)?;
    let wanted = [&first_name, &second_name].map(|name| format!("{name} became leader"));
    ensure!(wanted.iter().all(|line| told.contains(line)), "{told:?}");
    Ok(())
}

#[test]
fn an_orderly_end_gives_the_lease_back() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let first = controllers(&cluster, &[])?;
    let first_name = leader(&first.line_with(&["leads as"])?)?;
    let spec = lease(&cluster)?;
    assert_eq!(
        (&spec["holderIdentity"], number(&spec["leaseDurationSeconds"])),
        (&json!(first_name), 15)
    );
    first.interrupt()?;
    ensure!(first.ends_well()?);
    let spec = lease(&cluster)?;
    assert_eq!((&spec["holderIdentity"], number(&spec["leaseDurationSeconds"])), (&Value::Null, 1));
    ensure!(told(&cluster)?.contains(&format!("{first_name} stopped leading")));
    let second: Following = controllers(&cluster, &[])?;
    second.line_with(&["leads as"])?;
    assert_eq!(number(&lease(&cluster)?["leaseTransitions"]), 1);
    Ok(())
}

#[test]
fn without_an_election_there_is_no_lease() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let _controllers = controllers(&cluster, &["--leader-elect=false"])?;
    let lab = Lab::new(&cluster, "alone")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")?;
    assert_eq!(cluster.get(LEASE)?.status, 404);
    Ok(())
}

//! What happens when the controllers' memory is full: `--capacity tiny` has room for 50 pods, 16
//! ReplicaSets and 8 Deployments.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use picokube_tests::lab::{Lab, deployment, number, text};
use picokube_tests::picokube::Picokube;
use serde_json::json;

fn uids(lab: &Lab<'_>, app: &str) -> Result<BTreeSet<String>> {
    let pods = lab.list(&format!("pods?labelSelector=app%3D{app}"))?;
    let staying = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    Ok(staying.map(|pod| text(&pod["metadata"]["uid"]).to_owned()).collect())
}

fn wait_until_available(lab: &Lab<'_>, name: &str, replicas: i64) -> Result<()> {
    let object = format!("deployments/{name}");
    lab.wait_for(&object, &format!("{replicas} are available"), |deployment| {
        number(&deployment["status"]["availableReplicas"]) == replicas
    })?;
    Ok(())
}

fn metric(cluster: &Picokube, name: &str) -> Result<u64> {
    let page = cluster.get("/metrics")?.text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name} in\n{page}"))?.parse()?)
}

#[test]
fn eighty_pods_in_the_room_of_fifty() -> Result<()> {
    let cluster = Picokube::up(&["--nodes", "3", "--capacity", "tiny"])?;
    let lab = Lab::new(&cluster, "full")?;
    lab.create("deployments", &deployment("small", 10))?;
    lab.create("deployments", &deployment("first", 35))?;
    wait_until_available(&lab, "small", 10)?;
    wait_until_available(&lab, "first", 35)?;
    let (small, first) = (uids(&lab, "small")?, uids(&lab, "first")?);
    assert_eq!(metric(&cluster, "picokube_blind_owners{kind=\"ReplicaSet\"}")?, 0);
    assert_eq!(metric(&cluster, "picokube_cache_capacity{kind=\"Pod\"}")?, 50);

    lab.create("deployments", &deployment("second", 35))?;
    let sets = || lab.list("replicasets?labelSelector=app%3Dsecond");
    lab.wait("the ReplicaSet says that there is no room", || {
        let Some(set) = sets()?.into_iter().next() else { return Ok(false) };
        let name = text(&set["metadata"]["name"]);
        Ok(!lab.events(name, "ControllerMemoryFull")?.is_empty())
    })?;
    lab.wait("the metrics say so, too", || {
        Ok(metric(&cluster, "picokube_blind_owners{kind=\"ReplicaSet\"}")? == 1)
    })?;
    ensure!(metric(&cluster, "picokube_objects_refused_total")? > 0, "nothing was refused");
    let second = uids(&lab, "second")?;
    ensure!((6..=35).contains(&second.len()), "{} pods, of 35 with room for 5", second.len());
    // Nobody acts for the blind owner, whatever is asked, and nobody else suffers.
    lab.patch("deployments/second", &json!({"spec": {"replicas": 34}}))?;
    lab.patch("deployments/small", &json!({"metadata": {"annotations": {"look": "again"}}}))?;
    lab.wait_for("deployments/small", "it is observed", |deployment| {
        deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    })?;
    assert_eq!(uids(&lab, "small")?, small);
    assert_eq!(uids(&lab, "first")?, first);
    assert_eq!(uids(&lab, "second")?, second);

    // Room appears, and everything is well, without a restart.
    lab.delete("deployments/first", "Background")?;
    wait_until_available(&lab, "second", 34)?;
    lab.wait("the metrics say so, too", || {
        Ok(metric(&cluster, "picokube_blind_owners{kind=\"ReplicaSet\"}")? == 0)
    })?;
    let healed = uids(&lab, "second")?;
    assert_eq!(healed.len(), 34);
    let lost = second.difference(&healed).count();
    ensure!(lost <= second.len().saturating_sub(34), "{lost} pods were deleted for nothing");
    assert_eq!(uids(&lab, "small")?, small, "others were not touched");
    Ok(())
}

#[test]
fn ten_deployments_in_the_room_of_eight() -> Result<()> {
    let cluster = Picokube::up(&["--nodes", "3", "--capacity", "tiny"])?;
    let lab = Lab::new(&cluster, "full")?;
    let names: Vec<String> = (0..10).map(|number| format!("web-{number}")).collect();
    for name in &names {
        lab.create("deployments", &deployment(name, 1))?;
    }
    for name in &names[..8] {
        wait_until_available(&lab, name, 1)?;
    }
    lab.wait("those that do not fit are counted", || {
        Ok(metric(&cluster, "picokube_objects_refused_total")? >= 2)
    })?;
    for name in &names[8..] {
        assert!(lab.get(&format!("deployments/{name}"))?["status"]["replicas"].is_null());
    }
    for name in &names[..2] {
        lab.delete(&format!("deployments/{name}"), "Background")?;
    }
    for name in &names[8..] {
        wait_until_available(&lab, name, 1)?;
    }
    Ok(())
}

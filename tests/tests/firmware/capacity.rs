//! As much as the reference firmware is made for, and one more; over TLS.

use anyhow::{Result, ensure};
use picokube_tests::firmware::{Device, Shows};
use picokube_tests::lab::{Lab, deployment, number};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

const DEPLOYMENTS: usize = 64;
const PODS: usize = 512;

#[test]
fn full_to_the_last_pod_and_blind_at_one_more() -> Result<()> {
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "8"])?;
    let device = Device::boot_secure(&cluster, Shows::Certificate)?;
    let lab = Lab::new(&cluster, "full")?;
    for number in 0..DEPLOYMENTS {
        let name = format!("deployment-{number:02}");
        lab.create("deployments", &deployment(&name, PODS / DEPLOYMENTS))?;
    }
    lab.wait("all pods are available", || {
        let available: i64 = lab
            .list("deployments")?
            .iter()
            .map(|deployment| number(&deployment["status"]["availableReplicas"]))
            .sum();
        Ok(available as usize == PODS)
    })?;
    ensure!(lab.list("pods")?.len() == PODS, "as many pods as are wanted");
    let at_once = device.metric("picokube_requests_in_flight_high_water")?;
    ensure!(at_once == 2, "{at_once} requests at once, of two lanes");
    let health = device.get("/healthz")?.text();
    ensure!(health == "ok\n", "{health}");

    // One more than fits: its owner cannot be decided on, all others go on as before.
    lab.patch("deployments/deployment-00", &json!({"spec": {"replicas": 9}}))?;
    device.wait_for_line("objects do not fit")?;
    let health = device.get("/healthz")?.text();
    ensure!(health.contains("blind: pods do not fit the cache"), "{health}");

    lab.patch("deployments/deployment-01", &json!({"spec": {"replicas": 6}}))?;
    lab.wait_for("deployments/deployment-01", "scaled down", |deployment| {
        number(&deployment["status"]["replicas"]) == 6
    })?;
    // Room again: a list finds what did not fit, and its owner sees again.
    device.wait_for_line("everything fits again")?;
    lab.patch("deployments/deployment-00", &json!({"spec": {"replicas": 8}}))?;
    lab.wait_for("deployments/deployment-00", "scaled down", |deployment| {
        number(&deployment["status"]["replicas"]) == 8
    })?;
    Ok(())
}

#[test]
fn a_template_of_200_kb_rolls_out() -> Result<()> {
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "2"])?;
    let _device = Device::boot_secure(&cluster, Shows::Token)?;
    let lab = Lab::new(&cluster, "large")?;
    let mut large = deployment("large", 3);
    let text = "configuration ".repeat(1_000);
    let env: Vec<Value> =
        (0..10).map(|n| json!({"name": format!("PART_{n}"), "value": text})).collect();
    let template = &mut large["spec"]["template"];
    template["spec"]["containers"][0]["env"] = json!(env);
    template["metadata"]["annotations"] = json!({"example.org/config": "x".repeat(60_000)});
    ensure!(large.to_string().len() > 200_000, "as large as promised");
    lab.create("deployments", &large)?;
    let is_rolled_out = |deployment: &Value| {
        number(&deployment["status"]["updatedReplicas"]) == 3
            && number(&deployment["status"]["availableReplicas"]) == 3
            && number(&deployment["status"]["observedGeneration"])
                == number(&deployment["metadata"]["generation"])
    };
    lab.wait_for("deployments/large", "rolled out", is_rolled_out)?;
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"again": "yes"}}}}});
    lab.patch("deployments/large", &change)?;
    lab.wait_for("deployments/large", "rolled out again", |deployment| {
        is_rolled_out(deployment) && number(&deployment["status"]["replicas"]) == 3
    })?;
    for pod in lab.list("pods")?.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    {
        let env = &pod["spec"]["containers"][0]["env"];
        ensure!(env[0]["value"] == text && env[9]["value"] == text, "the template is whole");
        ensure!(pod["metadata"]["annotations"]["again"] == "yes", "of the second revision");
    }
    Ok(())
}

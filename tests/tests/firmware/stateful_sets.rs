//! StatefulSets: as many as the reference firmware is made for beside Deployments, and large ones.

use anyhow::{Result, ensure};
use picokube_tests::firmware::Device;
use picokube_tests::lab::{Lab, deployment, number};
use picokube_tests::picokube::Picokube;
use picokube_tests::stateful_set::{claim_spec, template};
use serde_json::{Value, json};

const SETS: usize = 32;
const CLAIMS: usize = 64;
/// What is left of the pods for Deployments.
const OTHER_PODS: usize = 512 - CLAIMS;
const DEPLOYMENTS: usize = 64;

/// A name of 40 characters, which is what memory is planned for.
fn long_name(what: &str, number: usize) -> String {
    format!("{what}-{number:02}-{}", "x".repeat(36 - what.len()))
}

/// A set of two pods with a claim each, and four labels.
fn stateful_set(name: &str) -> Value {
    let labels = json!({"app": name, "tier": "storage", "stage": "production", "team": "blue"});
    let mut template = template("app:1");
    template["metadata"]["labels"] = labels.clone();
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "serviceName": name,
            "replicas": CLAIMS / SETS,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec()}],
        },
    })
}

fn is_rolled_out(set: &Value) -> bool {
    let (spec, status) = (&set["spec"], &set["status"]);
    status["currentRevision"] == status["updateRevision"]
        && number(&status["availableReplicas"]) == number(&spec["replicas"])
        && number(&status["updatedReplicas"]) == number(&spec["replicas"])
        && number(&status["observedGeneration"]) == number(&set["metadata"]["generation"])
}

fn sum(objects: &[Value], field: &str) -> usize {
    objects.iter().map(|object| number(&object["status"][field]) as usize).sum()
}

/// Waits for a pod that may not be there now.
fn wait_for_pod(lab: &Lab<'_>, name: &str, is_it: impl Fn(&Value) -> bool) -> Result<()> {
    lab.wait(&format!("{name} is as it should be"), || {
        let answer = lab.send("GET", &format!("pods/{name}"), &Value::Null)?;
        Ok(answer.status == 200 && is_it(&answer.json()?))
    })
}

#[test]
fn as_many_as_fit_beside_all_deployments_and_all_of_them_are_updated() -> Result<()> {
    let cluster = Picokube::with_nodes(8)?;
    let device = Device::boot(cluster.address())?;
    let lab = Lab::new(&cluster, "full")?;
    for number in 0..DEPLOYMENTS {
        let name = long_name("deployment", number);
        lab.create("deployments", &deployment(&name, OTHER_PODS / DEPLOYMENTS))?;
    }
    for number in 0..SETS {
        lab.create("statefulsets", &stateful_set(&long_name("set", number)))?;
    }
    lab.wait("all pods are available", || {
        let deployments = sum(&lab.list("deployments")?, "availableReplicas");
        let sets = lab.list("statefulsets")?;
        Ok(deployments == OTHER_PODS && sets.iter().all(is_rolled_out))
    })?;
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"again": "yes"}}}}});
    for number in 0..SETS {
        lab.patch(&format!("statefulsets/{}", long_name("set", number)), &change)?;
    }
    lab.wait("all sets are updated", || Ok(lab.list("statefulsets")?.iter().all(is_rolled_out)))?;
    for (resource, count) in [
        ("statefulsets", SETS),
        ("controllerrevisions", 2 * SETS),
        ("persistentvolumeclaims", CLAIMS),
    ] {
        assert_eq!(lab.list(resource)?.len(), count, "{resource}");
    }
    let health = device.get("/healthz")?.text();
    ensure!(health == "ok\n", "{health}");
    assert_eq!(device.metric("picokube_objects_refused_total")?, 0);
    assert_eq!(
        device.metric("picokube_cached_objects{kind=\"ControllerRevision\"}")?,
        2 * SETS as u64
    );
    Ok(())
}

#[test]
fn a_template_of_200_kb_with_three_claim_templates_rolls_out() -> Result<()> {
    let cluster = Picokube::with_nodes(2)?;
    let _device = Device::boot(cluster.address())?;
    let lab = Lab::new(&cluster, "large")?;
    let mut large = stateful_set("large");
    let text = "configuration ".repeat(1_000);
    let env: Vec<Value> =
        (0..10).map(|n| json!({"name": format!("PART_{n}"), "value": text})).collect();
    let names = ["data", "logs", "cache"];
    let claims = names.map(|name| json!({"metadata": {"name": name}, "spec": claim_spec()}));
    large["spec"]["volumeClaimTemplates"] = json!(claims);
    let template = &mut large["spec"]["template"];
    template["spec"]["containers"][0]["env"] = json!(env);
    template["metadata"]["annotations"] = json!({"example.org/config": "x".repeat(60_000)});
    ensure!(large.to_string().len() > 200_000, "as large as promised");
    lab.create("statefulsets", &large)?;
    lab.wait_for("statefulsets/large", "rolled out", is_rolled_out)?;
    assert_eq!(lab.list("persistentvolumeclaims")?.len(), 6);

    // While the update is held back, pods are made of the first revision's own data.
    let held = json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": 1}},
        "template": {"metadata": {"annotations": {"again": "yes"}}},
    }});
    lab.patch("statefulsets/large", &held)?;
    let is_of_second = |pod: &Value| pod["metadata"]["annotations"]["again"] == "yes";
    wait_for_pod(&lab, "large-1", is_of_second)?;
    let old = lab.get("pods/large-0")?;
    lab.ask("DELETE", "pods/large-0", &json!({}))?;
    wait_for_pod(&lab, "large-0", |pod| pod["metadata"]["uid"] != old["metadata"]["uid"])?;
    let new = lab.get("pods/large-0")?;
    ensure!(!is_of_second(&new), "of the first revision");
    for pod in [&new, &lab.get("pods/large-1")?] {
        let env = &pod["spec"]["containers"][0]["env"];
        ensure!(env[0]["value"] == text && env[9]["value"] == text, "the template is whole");
        let volumes = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
        ensure!(volumes >= names.len(), "{volumes} volumes");
    }
    let all = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    lab.patch("statefulsets/large", &all)?;
    lab.wait_for("statefulsets/large", "rolled out again", is_rolled_out)?;
    ensure!(is_of_second(&lab.get("pods/large-0")?), "of the second revision");
    Ok(())
}

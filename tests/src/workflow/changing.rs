//! Pods that are taken away, and what is told about it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::lab::{name, number, text};
use crate::picokube::Picokube;

use super::Web;

/// A pod is taken out of service by a label, to look at it, and put back.
pub fn a_pod_labelled_away_is_replaced(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "label-away", 3)?;
    let pods = web.lab.list("pods")?;
    let pod = name(pods.first().context("no pod")?).to_owned();
    let hash = text(&pods[0]["metadata"]["labels"]["pod-template-hash"]).to_owned();
    web.kubectl.ok(&["label", "pod", &pod, "--overwrite", "app=debug"])?;
    let path = format!("pods/{pod}");
    let is_orphan =
        |pod: &Value| pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty);
    let released = web.lab.wait_for(&path, "it has no owner", is_orphan)?;
    ensure!(released["metadata"]["deletionTimestamp"].is_null(), "it was deleted");
    web.lab.wait("three others run", || Ok(web.images()?.len() == 3))?;
    web.rolled_out()?;

    // Back again: one too many.
    web.kubectl.ok(&["label", "pod", &pod, "--overwrite", "app=web"])?;
    let set = format!("replicasets/web-{hash}");
    web.lab.wait("one pod went", || Ok(web.lab.list("pods")?.len() == 3))?;
    web.lab.wait_for(&set, "three are counted", |set| {
        number(&set["status"]["replicas"]) == 3 && number(&set["status"]["readyReplicas"]) == 3
    })?;
    for pod in web.lab.list("pods")? {
        ensure!(pod["metadata"]["ownerReferences"][0]["controller"] == true, "{pod:#}");
    }
    Ok(())
}

/// A pod and a ReplicaSet are deleted under the Deployment.
pub fn a_deleted_pod_is_replaced(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "delete-pod", 3)?;
    let pod = name(&web.lab.list("pods")?[0]).to_owned();
    web.kubectl.ok(&["delete", "pod", &pod])?;
    web.rolled_out()?;
    web.lab.wait("three others run", || Ok(web.images()?.len() == 3))?;
    ensure!(!web.lab.has(&format!("pods/{pod}"))?, "it is still there");

    let set = name(&web.lab.list("replicasets")?[0]).to_owned();
    let uid = web.kubectl.field(&format!("replicaset/{set}"), ".metadata.uid")?;
    web.kubectl.ok(&["delete", "replicaset", &set])?;
    let path = format!("replicasets/{set}");
    web.lab.wait("there is another ReplicaSet of that name", || {
        Ok(web.lab.has(&path)? && text(&web.lab.get(&path)?["metadata"]["uid"]) != uid)
    })?;
    web.rolled_out()?;
    web.lab.wait("its pods are the only ones", || {
        let pods = web.lab.list("pods")?;
        Ok(pods.len() == 3
            && pods.iter().all(|pod| text(&pod["metadata"]["ownerReferences"][0]["uid"]) != uid))
    })
}

/// `kubectl describe` and `kubectl get` show what happened.
pub fn describe_tells_the_story(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "describe", 2)?;
    web.set_image("app:2")?;
    web.rolled_out()?;
    let old = web.lab.list("replicasets")?;
    let old = old.iter().find(|set| number(&set["spec"]["replicas"]) == 0).context("no old one")?;
    let down = format!("Scaled down replica set {} from 1 to 0", name(old));
    let mut told = String::new();
    web.lab.wait("the last step is told", || {
        told = web.kubectl.ok(&["describe", "deployment", "web"])?;
        Ok(told.contains(&down))
    })?;
    let up = format!("Scaled up replica set {} from 0 to 2", name(old));
    for words in [
        up.as_str(),
        "deployment-controller",
        "2 desired | 2 updated | 2 total | 2 available | 0 unavailable",
        "MinimumReplicasAvailable",
        "NewReplicaSetAvailable",
        "OldReplicaSets:",
    ] {
        ensure!(told.contains(words), "no {words:?} in\n{told}");
    }
    let table = web.kubectl.ok(&["get", "deployments,replicasets"])?;
    ensure!(table.contains("2/2"), "{table}");
    let writers = &old["metadata"]["managedFields"];
    ensure!(writers[0]["manager"] == "picokube", "who wrote it is told: {writers}");
    Ok(())
}

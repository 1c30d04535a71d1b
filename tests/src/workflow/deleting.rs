//! `kubectl delete deployment` in its three cascade modes.

use anyhow::Result;

use crate::lab::{name, number, text};
use crate::picokube::Picokube;

use super::Web;

impl Web<'_> {
    fn is_empty(&self) -> Result<bool> {
        let mut objects = 0;
        for resource in ["deployments", "replicasets", "pods"] {
            objects += self.lab.list(resource)?.len();
        }
        Ok(objects == 0)
    }
}

/// `--cascade=background`, kubectl's default: everything follows, nothing comes back.
pub fn a_deployment_deleted_in_the_background(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "delete-background", 3)?;
    web.kubectl.ok(&["delete", "deployment/web"])?;
    web.lab.wait("nothing is left", || web.is_empty())
}

/// `--cascade=foreground`: the Deployment is the last to go.
pub fn a_deployment_deleted_in_the_foreground(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "delete-foreground", 3)?;
    web.kubectl.ok(&["delete", "deployment/web", "--cascade=foreground"])?;
    assert!(web.is_empty()?, "kubectl waited for the last of them");
    Ok(())
}

/// `--cascade=orphan`: ReplicaSet and pods stay; a Deployment that fits takes them over.
pub fn a_deployment_deleted_without_its_pods(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "delete-orphan", 3)?;
    let pods = || -> Result<Vec<String>> {
        Ok(web.lab.list("pods")?.iter().map(|pod| name(pod).to_owned()).collect())
    };
    let before = pods()?;
    web.kubectl.ok(&["delete", "deployment/web", "--cascade=orphan"])?;
    let sets = web.lab.list("replicasets")?;
    assert_eq!(sets.len(), 1);
    let set = format!("replicasets/{}", name(&sets[0]));
    web.lab.wait_for(&set, "it has no owner", |set| {
        set["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
    })?;
    // The ReplicaSet does its work without a Deployment.
    let victim = before.first().expect("three pods").as_str();
    web.kubectl.ok(&["delete", "pod", victim])?;
    web.lab.wait("another pod is ready in its place", || {
        let pods = pods()?;
        // A status from before the deletion tells of three, too.
        let is_replaced = pods.len() == 3 && !pods.iter().any(|pod| pod == victim);
        let status = web.lab.get(&set)?["status"].clone();
        Ok(is_replaced && number(&status["replicas"]) == 3 && number(&status["readyReplicas"]) == 3)
    })?;
    let after = pods()?;

    web.kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=3"])?;
    web.rolled_out()?;
    let adopted = web.lab.get(&set)?;
    assert_eq!(text(&adopted["metadata"]["ownerReferences"][0]["kind"]), "Deployment");
    assert_eq!(web.lab.list("replicasets")?.len(), 1, "no ReplicaSet was made");
    assert_eq!(pods()?, after, "no pod was replaced");
    Ok(())
}

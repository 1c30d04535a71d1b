//! `kubectl rollout` in all its forms.

use anyhow::{Result, ensure};

use crate::lab::{condition, is_observed, number, text};
use crate::picokube::Picokube;

use super::Web;

/// The numbers in the first column of `kubectl rollout history`.
fn revisions(history: &str) -> Vec<&str> {
    let numbers = history.lines().filter_map(|line| line.split_whitespace().next());
    numbers.filter(|word| word.chars().all(|c| c.is_ascii_digit())).collect()
}

/// status, history, history --revision, undo, undo --to-revision.
pub fn rollouts_have_a_history_and_are_undone(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "rollout-history", 3)?;
    let kubectl = &web.kubectl;
    for image in ["app:2", "app:3"] {
        web.set_image(image)?;
        let cause = format!("kubernetes.io/change-cause=release {image}");
        kubectl.ok(&["annotate", "deployment/web", "--overwrite", &cause])?;
        web.rolled_out()?;
        assert_eq!(web.images()?, [image; 3]);
    }
    let history = || kubectl.ok(&["rollout", "history", "deployment/web"]);
    let said = history()?;
    assert_eq!(revisions(&said), ["1", "2", "3"], "{said}");
    // The annotation reaches the ReplicaSet with the sync that it causes.
    web.lab.wait("the cause of revision 3 is told", || {
        Ok(history()?.lines().any(|line| line.starts_with('3') && line.contains("release app:3")))
    })?;
    let second = kubectl.ok(&["rollout", "history", "deployment/web", "--revision=2"])?;
    ensure!(second.contains("app:2") && second.contains("pod-template-hash"), "{second}");

    let said = kubectl.ok(&["rollout", "undo", "deployment/web"])?;
    ensure!(said.contains("rolled back"), "{said}");
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:2"; 3]);
    assert_eq!(web.revision()?, "4");
    assert_eq!(revisions(&history()?), ["1", "3", "4"], "the revision moved with its ReplicaSet");

    kubectl.ok(&["rollout", "undo", "deployment/web", "--to-revision=1"])?;
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:1"; 3]);
    assert_eq!(web.revision()?, "5");
    assert_eq!(revisions(&history()?), ["3", "4", "5"]);
    let sets = web.lab.list("replicasets")?;
    assert_eq!(sets.len(), 3, "an undo takes the ReplicaSet that is there");

    let complaint =
        kubectl.refused(&["rollout", "undo", "deployment/web", "--to-revision=9"], "")?;
    ensure!(complaint.contains("unable to find specified revision 9"), "{complaint}");
    let said = kubectl.ok(&["rollout", "undo", "deployment/web", "--to-revision=5"])?;
    ensure!(said.contains("skipped rollback"), "{said}");
    Ok(())
}

/// pause, changes that wait, resume.
pub fn a_paused_deployment_collects_changes(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "rollout-pause", 3)?;
    let kubectl = &web.kubectl;
    kubectl.ok(&["rollout", "pause", "deployment/web"])?;
    web.set_image("app:2")?;
    kubectl.ok(&["set", "env", "deployment/web", "COLOUR=blue"])?;
    let paused = web.lab.wait_for("deployments/web", "the changes were seen", is_observed)?;
    assert_eq!(condition(&paused, "Progressing")["reason"], "DeploymentPaused");
    assert_eq!(web.lab.list("replicasets")?.len(), 1, "nothing is rolled out");
    assert_eq!(web.images()?, ["app:1"; 3]);
    // Scaling goes on while a Deployment is paused.
    kubectl.ok(&["scale", "deployment/web", "--replicas=4"])?;
    let scaled = |object: &serde_json::Value| number(&object["status"]["availableReplicas"]) == 4;
    web.lab.wait_for("deployments/web", "4 are available", scaled)?;
    assert_eq!(web.images()?, ["app:1"; 4]);

    kubectl.ok(&["rollout", "resume", "deployment/web"])?;
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:2"; 4]);
    let sets = web.lab.list("replicasets")?;
    assert_eq!(sets.len(), 2, "both changes are one revision");
    assert_eq!(web.revision()?, "2");
    kubectl.ok(&["rollout", "pause", "deployment/web"])?;
    for refused in ["undo", "restart"] {
        let complaint = kubectl.refused(&["rollout", refused, "deployment/web"], "")?;
        ensure!(complaint.contains("paused"), "{complaint}");
    }
    Ok(())
}

/// restart, in the way of a rolling update.
pub fn restart_replaces_every_pod(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "rollout-restart", 3)?;
    let uids = || -> Result<Vec<String>> {
        let pods = web.lab.list("pods?labelSelector=app%3Dweb")?;
        Ok(pods.iter().map(|pod| text(&pod["metadata"]["uid"]).to_owned()).collect())
    };
    let before = uids()?;
    web.kubectl.ok(&["rollout", "restart", "deployment/web"])?;
    web.rolled_out()?;
    web.lab.wait("only new pods are left", || {
        let now = uids()?;
        Ok(now.len() == 3 && now.iter().all(|uid| !before.contains(uid)))
    })?;
    assert_eq!(web.images()?, ["app:1"; 3]);
    assert_eq!(web.revision()?, "2");
    Ok(())
}

/// set image to a tag that does not exist, see it fail, undo.
pub fn a_bad_tag_is_undone(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "rollout-bad", 4)?;
    let deadline = |seconds: u32| {
        let spec = serde_json::json!({"progressDeadlineSeconds": seconds, "minReadySeconds": 0});
        let patch = serde_json::json!({"spec": spec});
        web.lab.patch("deployments/web", &patch)
    };
    deadline(2)?;
    web.set_image("app:bad")?;
    let complaint =
        web.kubectl.refused(&["rollout", "status", "deployment/web", "--timeout=10m"], "")?;
    ensure!(complaint.contains("exceeded its progress deadline"), "{complaint}");
    // On a busy machine the deadline may pass more than once until then.
    let stuck = web.lab.wait_for("deployments/web", "stuck, 25% unavailable", |stuck| {
        condition(stuck, "Progressing")["reason"] == "ProgressDeadlineExceeded"
            && number(&stuck["status"]["availableReplicas"]) == 3
            && number(&stuck["status"]["updatedReplicas"]) == 2
    })?;
    assert_eq!(condition(&stuck, "Available")["status"], "True");
    assert_eq!(web.replicas_of("app:1")?, Some(3));
    assert_eq!(web.replicas_of("app:bad")?, Some(2));

    // Or while all is well again.
    deadline(600)?;
    web.kubectl.ok(&["rollout", "undo", "deployment/web"])?;
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:1"; 4]);
    assert_eq!(web.replicas_of("app:bad")?, Some(0));
    let mended = web.lab.get("deployments/web")?;
    assert_eq!(condition(&mended, "Progressing")["reason"], "NewReplicaSetAvailable");
    Ok(())
}

/// `rollout status` in its stages, while nothing goes below the promised availability.
pub fn a_rollout_is_followed_to_its_end(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "rollout-status", 4)?;
    // It begins when it is followed, however long that takes.
    web.kubectl.ok(&["rollout", "pause", "deployment/web"])?;
    web.set_image("app:2")?;
    let following =
        web.kubectl.follow(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    following.line_with(&["Waiting for deployment \"web\" rollout to finish"])?;
    web.kubectl.ok(&["rollout", "resume", "deployment/web"])?;
    let available = || -> Result<i64> {
        let sets = web.lab.list("replicasets")?;
        Ok(sets.iter().map(|set| number(&set["status"]["availableReplicas"])).sum())
    };
    web.lab.wait("the rollout is complete", || {
        ensure!(available()? >= 3, "25% of 4 may be unavailable, and no more");
        // Kubernetes counts what is wanted: pods that are no longer wanted take a while to go.
        let sets = web.lab.list("replicasets")?;
        let total: i64 = sets.iter().map(|set| number(&set["spec"]["replicas"])).sum();
        ensure!(total <= 5, "{total} pods are wanted, where 25% of 4 may be extra");
        let deployment = web.lab.get("deployments/web")?;
        let status = &deployment["status"];
        Ok(is_observed(&deployment)
            && number(&status["updatedReplicas"]) == 4
            && number(&status["replicas"]) == 4
            && number(&status["availableReplicas"]) == 4)
    })?;
    following.line_with(&["successfully rolled out"])?;
    Ok(())
}

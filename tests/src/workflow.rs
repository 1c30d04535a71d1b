//! What people do with kubectl and Deployments or StatefulSets, on a cluster whose controllers run.
//!
//! Each function takes a cluster with simulated nodes, works in a namespace of its own, and does
//! not mind who runs the controllers: a process, or a microcontroller.

mod changing;
mod deleting;
mod replication_controller;
mod rollout;
mod scaling;
mod stateful_sets;

use anyhow::Result;

use crate::kubectl::Kubectl;
use crate::lab::Lab;
use crate::picokube::Picokube;

pub use changing::*;
pub use deleting::*;
pub use replication_controller::*;
pub use rollout::*;
pub use scaling::*;
pub use stateful_sets::*;

/// A workflow, for those who run all of them.
pub type Workflow = fn(&Picokube) -> Result<()>;

/// Gives the names of all workflows to a macro.
#[macro_export]
macro_rules! workflows {
    ($callback:ident) => {
        $callback! {
            rollouts_have_a_history_and_are_undone
            a_paused_deployment_collects_changes
            restart_replaces_every_pod
            a_bad_tag_is_undone
            a_rollout_is_followed_to_its_end
            a_rollout_is_scaled_in_proportion
            an_autoscaler_scales
            a_stranger_is_in_nobodys_way
            a_deployment_deleted_in_the_background
            a_deployment_deleted_in_the_foreground
            a_deployment_deleted_without_its_pods
            a_pod_labelled_away_is_replaced
            a_deleted_pod_is_replaced
            describe_tells_the_story
            pods_of_a_stateful_set_come_and_go_in_order
            a_deleted_pod_comes_back_under_its_name
            rollouts_of_a_stateful_set_have_a_history_and_are_undone
            restart_replaces_every_pod_of_a_stateful_set
            a_partition_makes_a_canary
            pods_left_behind_by_a_stateful_set_are_adopted
        }
    };
}

macro_rules! list {
    ($($name:ident)*) => {
        &[$((stringify!($name), $name as Workflow)),*]
    };
}

/// Every workflow with its name.
pub const ALL: &[(&str, Workflow)] = workflows!(list);

/// A namespace with a Deployment `web` of `app:1`, rolled out.
struct Web<'a> {
    lab: Lab<'a>,
    kubectl: Kubectl<'a>,
}

impl<'a> Web<'a> {
    fn new(cluster: &'a Picokube, namespace: &str, replicas: usize) -> Result<Self> {
        let lab = Lab::new(cluster, namespace)?;
        let kubectl = Kubectl::in_namespace(cluster, namespace)?;
        let replicas = format!("--replicas={replicas}");
        kubectl.ok(&["create", "deployment", "web", "--image=app:1", &replicas])?;
        let web = Self { lab, kubectl };
        web.rolled_out()?;
        Ok(web)
    }

    /// Waits, as people do.
    fn rolled_out(&self) -> Result<()> {
        let said = self.kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
        anyhow::ensure!(said.contains("successfully rolled out"), "{said}");
        Ok(())
    }

    fn set_image(&self, image: &str) -> Result<()> {
        self.kubectl.ok(&["set", "image", "deployment/web", &format!("app={image}")]).map(|_| ())
    }

    /// The images of the pods that are there and not about to go.
    fn images(&self) -> Result<Vec<String>> {
        let pods = self.lab.list("pods?labelSelector=app%3Dweb")?;
        let staying = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let image = |pod: &serde_json::Value| {
            crate::lab::text(&pod["spec"]["containers"][0]["image"]).to_owned()
        };
        let mut images: Vec<String> = staying.map(image).collect();
        images.sort();
        Ok(images)
    }

    /// `spec.replicas` of the ReplicaSets by the image of their template.
    fn replicas_of(&self, image: &str) -> Result<Option<i64>> {
        let sets = self.lab.list("replicasets?labelSelector=app%3Dweb")?;
        let found = sets
            .iter()
            .find(|set| set["spec"]["template"]["spec"]["containers"][0]["image"] == image);
        Ok(found.map(|set| crate::lab::number(&set["spec"]["replicas"])))
    }

    fn revision(&self) -> Result<String> {
        self.kubectl
            .field("deployment/web", ".metadata.annotations.deployment\\.kubernetes\\.io/revision")
    }
}

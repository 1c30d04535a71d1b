//! What users do to ReplicationControllers, which are older than ReplicaSets and kept like them.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::random::Random;

use super::clock::Moment;
use super::plan::{Shape, Timed, When};
use super::workload::{Action, Asked, IMAGES, MERGE, delete, template};
use super::world::World;

const PATH: &str = "/api/v1/namespaces/default/replicationcontrollers";

/// One thing that a user does to a ReplicationController.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControllerAction {
    /// `kubectl create`
    Create {
        /// Which.
        c: u8,
        /// How many pods.
        replicas: u8,
        /// Draws the rest.
        variant: u8,
    },
    /// `kubectl scale replicationcontroller`
    Scale(u8, u8),
    /// Changes its template, of which only later pods are made.
    SetImage(u8, u8),
    /// `kubectl delete replicationcontroller`, in the background, the foreground, or leaving orphans.
    Delete(u8, u8),
    /// Creates a pod that it selects.
    LonelyPod(u8),
}

impl ControllerAction {
    /// The first things that users do: there is something to work with.
    pub(super) fn beginning(random: &mut Random, shape: &Shape) -> Vec<Timed<Action>> {
        let all = (0..shape.replication_controllers).map(|c| {
            let (replicas, variant) = (random.below(6) as u8, random.below(4) as u8);
            let at = When::At(Moment::from_millis(random.below(8_000)));
            Timed { when: at, what: Self::Create { c: c as u8, replicas, variant }.into() }
        });
        all.collect()
    }

    /// Something at that moment, and what puts an end to it where it must have one.
    pub(super) fn draw(random: &mut Random, shape: &Shape, at: Moment) -> Vec<Timed<Action>> {
        let mut below = |bound: u64| random.below(bound) as u8;
        let c = below(shape.replication_controllers as u64);
        let mut then = None;
        let what = match below(10) {
            0..=4 => Self::Scale(c, below(8)),
            5 | 6 => Self::SetImage(c, below(6)),
            7 | 8 => {
                let again = Self::Create { c, replicas: below(6), variant: below(4) };
                let later = When::At(at.plus_secs(1 + u64::from(below(20))));
                then = Some(Timed { when: later, what: again.into() });
                Self::Delete(c, below(3))
            }
            _ => Self::LonelyPod(c),
        };
        let first = Timed { when: When::At(at), what: what.into() };
        [first].into_iter().chain(then).collect()
    }
}

impl From<ControllerAction> for Action {
    fn from(action: ControllerAction) -> Self {
        Self::Controller(action)
    }
}

impl World<'_> {
    /// What a user asks for.
    pub(super) fn asked_of_controller(&self, action: ControllerAction) -> Asked {
        let path = |c: u8| format!("{PATH}/c{c}");
        let spec = |c: u8, spec: Value| (Method::PATCH, path(c), MERGE, json!({"spec": spec}));
        let labels = |c: u8| self.plan.shape.selectors.labels(&format!("c{c}"));
        match action {
            ControllerAction::Create { c, replicas, variant } => {
                let labels = labels(c);
                let object = json!({
                    "apiVersion": "v1", "kind": "ReplicationController",
                    "metadata": {"name": format!("c{c}"), "labels": labels},
                    "spec": {
                        "replicas": replicas,
                        "selector": labels,
                        "minReadySeconds": if variant == 0 { 3 } else { 0 },
                        "template": template(&labels, "v1"),
                    },
                });
                (Method::POST, PATH.to_owned(), "application/json", object)
            }
            ControllerAction::Scale(c, replicas) => spec(c, json!({"replicas": replicas})),
            ControllerAction::SetImage(c, image) => {
                let image = format!("img:{}", IMAGES[usize::from(image) % 6]);
                let containers = json!([{"name": "c", "image": image}]);
                spec(c, json!({"template": {"spec": {"containers": containers}}}))
            }
            ControllerAction::Delete(c, how) => delete(path(c), how),
            ControllerAction::LonelyPod(c) => {
                let mut pod = template(&labels(c), "v1");
                pod["metadata"]["generateName"] = json!("lonely-");
                let pods = "/api/v1/namespaces/default/pods".to_owned();
                (Method::POST, pods, "application/json", pod)
            }
        }
    }
}

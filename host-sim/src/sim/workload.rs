//! What users do.
//!
//! An action names its objects by small numbers, so that a plan with fewer actions still means
//! something: what is not there is not acted upon.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::nodes::behaviour::OFFLINE;
use crate::random::Random;
use crate::server::request::Request;

use super::checks::Facts;
use super::clock::Moment;
use super::controllers::ControllerAction;
use super::plan::{Shape, Timed, When};
use super::templates;
use super::trace::Actor;
use super::users_of_sets::SetAction;
use super::world::{Happening, World};

/// One thing that a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// `kubectl apply` of a new Deployment.
    CreateDeployment {
        /// Which.
        d: u8,
        /// How many pods.
        replicas: u8,
        /// Draws strategy, surge, deadline and the like.
        variant: u16,
    },
    /// `kubectl scale deployment`
    Scale(u8, u8),
    /// `kubectl set image`: one of nine images, some of them bad.
    SetImage(u8, u8),
    /// `kubectl patch deployment`: its template, in one field or another.
    SetTemplate {
        /// Which.
        d: u8,
        /// Which field.
        field: u8,
        /// Which of the values that it may have.
        value: u8,
    },
    /// `kubectl rollout pause`
    Pause(u8),
    /// `kubectl rollout resume`
    Resume(u8),
    /// `kubectl rollout undo`, by the annotation that the controller obeys.
    Undo(u8, u8),
    /// Changes `maxSurge`, `maxUnavailable` and `minReadySeconds`.
    Retune(u8, u16),
    /// `kubectl annotate deployment`
    Annotate(u8, u8),
    /// `kubectl delete deployment`, in the background, the foreground, or leaving orphans.
    DeleteDeployment(u8, u8),
    /// A ReplicaSet of its own.
    CreateReplicaSet(u8, u8),
    /// Scales a ReplicaSet by hand, whoever owns it.
    ScaleReplicaSet(u8, u8),
    /// `kubectl delete replicaset`, in the background, the foreground, or leaving orphans.
    DeleteReplicaSet(u8, u8),
    /// Takes the owner away from a ReplicaSet.
    OrphanReplicaSet(u8),
    /// `kubectl delete pod`, gracefully or not.
    DeletePod(u8, bool),
    /// Changes the label that a pod is selected by.
    Relabel(u8),
    /// Takes the owner away from a pod.
    OrphanPod(u8),
    /// Says that a pod belongs to somebody who does not exist.
    Misattribute(u8),
    /// Adds a finalizer to a pod, or takes it away.
    Finalize(u8, bool),
    /// Sets the deletion cost of a pod.
    DeletionCost(u8, i8),
    /// Creates a pod with the labels of a Deployment.
    LonelyPod(u8),
    /// Lets a namespace have so many pods.
    Quota(u8, u8),
    /// Lets it have as many as it wants again.
    LiftQuota(u8),
    /// Deletes a namespace.
    DeleteNamespace(u8),
    /// Creates it again.
    CreateNamespace(u8),
    /// A node goes away.
    NodeAway(u8),
    /// It is back.
    NodeBack(u8),
    /// Something is done to a StatefulSet, or to what belongs to one.
    Set(SetAction),
    /// Something is done to a ReplicationController.
    Controller(ControllerAction),
}

/// What containers are made of: most of it works.
pub(super) const IMAGES: [&str; 10] =
    ["v1", "v2", "v3", "v4", "v5", "v6", "never-ready", "bad", "crash", "evict"];
const CASCADES: [&str; 3] = ["Background", "Foreground", "Orphan"];
pub(super) const MERGE: &str = "application/merge-patch+json";
const ROLLBACK: &str = "deprecated.deployment.rollback.to";
/// What holds a pod until its user lets go.
const HOLD: &str = "sim.picokube.dev/hold";

impl Action {
    /// The first things that users do: there is something to work with.
    pub(super) fn beginning(random: &mut Random, shape: &Shape) -> Vec<Timed<Self>> {
        let deployments = (0..shape.deployments).map(|d| {
            let replicas = random.below(7) as u8;
            let variant = random.next_u64() as u16;
            let what = Self::CreateDeployment { d: d as u8, replicas, variant };
            Timed { when: When::At(Moment::from_millis(random.below(8_000))), what }
        });
        deployments.collect()
    }

    /// Something at that moment, and what puts an end to it where it must have one.
    pub(super) fn draw(random: &mut Random, shape: &Shape, at: Moment) -> Vec<Timed<Self>> {
        let mut below = |bound: u64| random.below(bound) as u8;
        let d = below(shape.deployments as u64);
        let n = below(shape.namespaces as u64);
        let pick = below(64);
        let later = |seconds: u8| When::At(at.plus_secs(u64::from(seconds)));
        let mut then = None;
        let what = match below(64) {
            0..=10 => Self::Scale(d, below(8)),
            11..=24 => Self::SetImage(d, if below(4) == 0 { 6 + below(3) } else { below(6) }),
            25 | 26 => {
                then = Some((later(5 + below(40)), Self::Resume(d)));
                Self::Pause(d)
            }
            27 => Self::Resume(d),
            28..=30 => Self::Undo(d, below(4)),
            31 | 32 => Self::Retune(d, u16::from(below(255))),
            33 => Self::Annotate(d, below(4)),
            34 | 35 => {
                let replicas = below(6);
                let variant = u16::from(below(255)) << 3;
                let again = Self::CreateDeployment { d, replicas, variant };
                then = Some((later(1 + below(20)), again));
                Self::DeleteDeployment(d, below(3))
            }
            36 | 37 => Self::CreateReplicaSet(below(3), below(5)),
            38 | 39 => Self::ScaleReplicaSet(pick, below(6)),
            40 => Self::DeleteReplicaSet(pick, below(3)),
            41 => Self::OrphanReplicaSet(pick),
            42..=45 => Self::DeletePod(pick, below(4) > 0),
            46..=48 => Self::Relabel(pick),
            49 | 50 => Self::OrphanPod(pick),
            51 => Self::Misattribute(pick),
            52 | 53 => {
                then = Some((later(1 + below(30)), Self::Finalize(pick, false)));
                Self::Finalize(pick, true)
            }
            54 => Self::DeletionCost(pick, below(200) as i8),
            55 | 56 => Self::LonelyPod(d),
            57 | 58 => {
                then = Some((later(5 + below(30)), Self::LiftQuota(n)));
                Self::Quota(n, below(6))
            }
            59 => {
                then = Some((later(10 + below(30)), Self::CreateNamespace(n)));
                Self::DeleteNamespace(n)
            }
            60 | 61 => {
                let node = below(shape.nodes as u64);
                then = Some((later(5 + below(120)), Self::NodeBack(node)));
                Self::NodeAway(node)
            }
            _ => Self::SetImage(d, below(6)),
        };
        let first = Timed { when: When::At(at), what };
        [first].into_iter().chain(then.map(|(when, what)| Timed { when, what })).collect()
    }
}

/// How a namespace is called.
pub(super) fn namespace(number: usize) -> String {
    if number == 0 { "default".to_owned() } else { format!("ns{number}") }
}

impl World<'_> {
    /// A user acts.
    pub(super) fn act(&mut self, index: usize) {
        if self.server_down_until > self.now {
            return self.agenda.plan(self.server_down_until, Happening::Act(index));
        }
        if self.healed_at.is_some() {
            return;
        }
        if !self.meddle_with_action(index) {
            return;
        }
        let action = self.plan.actions[index].what;
        let status = self.perform(action);
        self.note(Actor::User, format_args!("{action:?}: {status}"));
        self.observe(Actor::User);
    }

    fn perform(&mut self, action: Action) -> u16 {
        let deployment = |d: u8| self.deployment_path(d);
        let merge = |path: String, body: Value| (Method::PATCH, path, MERGE, body);
        let (method, path, content_type, body) = match action {
            Action::CreateDeployment { d, replicas, variant } => {
                let object = self.deployment_manifest(d, replicas, variant);
                let path = deployment(d);
                let (collection, _) = path.rsplit_once('/').unwrap_or_default();
                (Method::POST, collection.to_owned(), "application/json", object)
            }
            Action::Scale(d, replicas) => {
                merge(deployment(d), json!({"spec": {"replicas": replicas}}))
            }
            Action::SetImage(d, image) => {
                let image = format!("img:{}", IMAGES[usize::from(image) % 9]);
                let containers = json!([{"name": "c", "image": image}]);
                merge(
                    deployment(d),
                    json!({"spec": {"template": {"spec": {"containers": containers}}}}),
                )
            }
            Action::SetTemplate { d, field, value } => {
                let template = templates::changed(field, value);
                merge(deployment(d), json!({"spec": {"template": template}}))
            }
            Action::Pause(d) => merge(deployment(d), json!({"spec": {"paused": true}})),
            Action::Resume(d) => merge(deployment(d), json!({"spec": {"paused": null}})),
            Action::Undo(d, revision) => {
                let to = json!({ROLLBACK: revision.to_string()});
                merge(deployment(d), json!({"metadata": {"annotations": to}}))
            }
            Action::Retune(d, variant) => {
                let spec = &self.deployment_manifest(d, 0, variant)["spec"];
                let tuned = json!({
                    "strategy": spec["strategy"], "minReadySeconds": spec["minReadySeconds"],
                });
                merge(deployment(d), json!({"spec": tuned}))
            }
            Action::Annotate(d, value) => {
                let annotations = json!({"note": format!("n{value}")});
                merge(deployment(d), json!({"metadata": {"annotations": annotations}}))
            }
            Action::DeleteDeployment(d, how) => delete(deployment(d), how),
            Action::CreateReplicaSet(r, replicas) => {
                let (name, selectors) = (format!("r{r}"), self.plan.shape.selectors);
                let labels = selectors.labels(&name);
                let object = json!({
                    "apiVersion": "apps/v1", "kind": "ReplicaSet",
                    "metadata": {"name": name, "labels": labels},
                    "spec": {
                        "replicas": replicas, "selector": selectors.selector(&name),
                        "template": template(&labels, "v1"),
                    },
                });
                let path = "/apis/apps/v1/namespaces/default/replicasets".to_owned();
                (Method::POST, path, "application/json", object)
            }
            Action::ScaleReplicaSet(pick, replicas) => match self.pick("replicasets", pick) {
                Some(path) => merge(path, json!({"spec": {"replicas": replicas}})),
                None => return 0,
            },
            Action::DeleteReplicaSet(pick, how) => match self.pick("replicasets", pick) {
                Some(path) => delete(path, how),
                None => return 0,
            },
            Action::OrphanReplicaSet(pick) => match self.pick("replicasets", pick) {
                Some(path) => merge(path, json!({"metadata": {"ownerReferences": null}})),
                None => return 0,
            },
            Action::CreateNamespace(n) => {
                let object = json!({"metadata": {"name": namespace(usize::from(n))}});
                let path = "/api/v1/namespaces".to_owned();
                (Method::POST, path, "application/json", object)
            }
            Action::DeleteNamespace(n) if n > 0 => {
                let path = format!("/api/v1/namespaces/{}", namespace(usize::from(n)));
                (Method::DELETE, path, "application/json", json!({}))
            }
            Action::DeleteNamespace(_) => return 0,
            Action::LonelyPod(d) => {
                let (labels, path) =
                    (self.plan.shape.selectors.labels(&format!("d{d}")), deployment(d));
                let space = path.split('/').nth(5).unwrap_or_default();
                let mut object = template(&labels, "v1");
                object["metadata"]["generateName"] = json!("lonely-");
                let path = format!("/api/v1/namespaces/{space}/pods");
                (Method::POST, path, "application/json", object)
            }
            Action::Quota(n, pods) => {
                let hard = json!({"pods": pods.to_string()});
                let object = json!({"metadata": {"name": "limit"}, "spec": {"hard": hard}});
                (Method::POST, quotas(n), "application/json", object)
            }
            Action::LiftQuota(n) => {
                let path = format!("{}/limit", quotas(n));
                (Method::DELETE, path, "application/json", json!({}))
            }
            Action::NodeAway(n) => merge(node(n), offline(json!("true"))),
            Action::NodeBack(n) => merge(node(n), offline(Value::Null)),
            Action::Set(action) => match self.asked_of_set(action) {
                Some(asked) => asked,
                None => return 0,
            },
            Action::Controller(action) => self.asked_of_controller(action),
            Action::DeletePod(pick, _)
            | Action::Relabel(pick)
            | Action::OrphanPod(pick)
            | Action::Misattribute(pick)
            | Action::Finalize(pick, _)
            | Action::DeletionCost(pick, _) => match self.pick("pods", pick) {
                Some(path) => on_pod(action, path),
                None => return 0,
            },
        };
        self.ask(method, &path, content_type, &body)
    }

    /// A request of a user, over a network that never fails.
    pub(super) fn ask(&mut self, method: Method, path: &str, kind: &str, body: &Value) -> u16 {
        let mut request = Request::new(method, path).with_body(kind, body.to_string());
        request.user_agent = "kubectl".to_owned();
        self.server.handle(self.wall(), &request).status
    }

    fn deployment_path(&self, d: u8) -> String {
        let namespace = namespace(usize::from(d) % self.plan.shape.namespaces);
        format!("/apis/apps/v1/namespaces/{namespace}/deployments/d{d}")
    }

    fn deployment_manifest(&self, d: u8, replicas: u8, variant: u16) -> Value {
        let (name, selectors) = (format!("d{d}"), self.plan.shape.selectors);
        let labels = selectors.labels(&name);
        let bits = |shift: u16, mask: u16| usize::from((variant >> shift) & mask);
        let strategy = match bits(0, 7) {
            0 | 1 => json!({"type": "Recreate", "rollingUpdate": null}),
            2 => rolling(json!(1), json!(0)),
            3 => rolling(json!(0), json!(1)),
            4 => rolling(json!("50%"), json!("50%")),
            5 => rolling(json!(2), json!(1)),
            _ => rolling(json!("25%"), json!("25%")),
        };
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": selectors.selector(&name),
                "strategy": strategy,
                "minReadySeconds": ([0, 0, 0, 3][bits(3, 3)]),
                "progressDeadlineSeconds": ([600, 600, 20, 60][bits(5, 3)]),
                "revisionHistoryLimit": ([10, 2, 0, 1][bits(7, 3)]),
                "template": template(&labels, "v1"),
            },
        })
    }

    /// The path of one of the objects there are.
    pub(super) fn pick(&self, plural: &str, pick: u8) -> Option<String> {
        let resource = self.checks.resource(&self.server, plural);
        let objects: Vec<_> = resource.range("", None).collect();
        let at = usize::from(pick) % objects.len().max(1);
        let entry = objects.get(at)?;
        let is_core = matches!(plural, "pods" | "persistentvolumeclaims");
        let api = if is_core { "/api/v1" } else { "/apis/apps/v1" };
        Some(format!("{api}/namespaces/{}/{plural}/{}", entry.namespace(), entry.name()))
    }

    /// Users put right what they have broken, so that everything can become as desired.
    pub(super) fn put_right(&mut self) {
        for n in 0..self.plan.shape.namespaces {
            let path = format!("{}/limit", quotas(n as u8));
            self.ask(Method::DELETE, &path, "application/json", &json!({}));
        }
        for n in 0..self.plan.shape.nodes {
            self.ask(Method::PATCH, &node(n as u8), MERGE, &offline(Value::Null));
        }
        let resource = self.checks.resource(&self.server, "pods");
        let held: Vec<String> = resource
            .range("", None)
            .filter(|pod| pod.has_finalizer(HOLD))
            .map(|pod| format!("/api/v1/namespaces/{}/pods/{}", pod.namespace(), pod.name()))
            .collect();
        for path in held {
            let free = json!({"metadata": {"finalizers": null}});
            self.ask(Method::PATCH, &path, MERGE, &free);
        }
        for d in 0..self.plan.shape.deployments {
            let path = self.deployment_path(d as u8);
            // A Deployment that needs no help gets there by itself, whatever has happened to it;
            // every second run updates it nevertheless.
            if self.plan.seed.is_multiple_of(2) && self.needs_no_help(&path) {
                continue;
            }
            let containers = json!([{"name": "c", "image": "img:healed"}]);
            let spec = json!({"paused": null, "template": {"spec": {"containers": containers}}});
            let no_rollback = json!({"annotations": {ROLLBACK: null}});
            self.ask(Method::PATCH, &path, MERGE, &json!({"metadata": no_rollback, "spec": spec}));
        }
        self.put_sets_right();
        self.note(Actor::User, format_args!("puts everything right"));
        self.observe(Actor::User);
    }
}

impl World<'_> {
    /// Whether a Deployment becomes as desired without a user.
    fn needs_no_help(&self, path: &str) -> bool {
        self.deployment_at(path).is_none_or(|d| {
            let spec = &d.object["spec"];
            spec["paused"] != true && d.annotation(ROLLBACK).is_none() && d.runs()
        })
    }

    fn deployment_at(&self, path: &str) -> Option<&Facts> {
        let mut parts = path.split('/').skip(5).step_by(2);
        let key = format!("{}/{}", parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        self.checks.model().all("deployments").find(|d| d.key == key)
    }
}

pub(super) fn template(labels: &Value, tag: &str) -> Value {
    json!({
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "c", "image": format!("img:{tag}")}],
        },
    })
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    let parameters = json!({"maxSurge": surge, "maxUnavailable": unavailable});
    json!({"type": "RollingUpdate", "rollingUpdate": parameters})
}

/// A request of a user: method, path, content type and body.
pub(super) type Asked = (Method, String, &'static str, Value);

pub(super) fn delete(path: String, how: u8) -> Asked {
    let policy = CASCADES[usize::from(how) % CASCADES.len()];
    (Method::DELETE, path, "application/json", json!({"propagationPolicy": policy}))
}

fn on_pod(action: Action, path: String) -> Asked {
    let metadata = match action {
        Action::DeletePod(_, gracefully) => {
            let options = if gracefully { json!({}) } else { json!({"gracePeriodSeconds": 0}) };
            return (Method::DELETE, path, "application/json", options);
        }
        Action::Relabel(_) => json!({"labels": {"app": "elsewhere"}}),
        Action::OrphanPod(_) => json!({"ownerReferences": null}),
        Action::Misattribute(_) => json!({"ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "nobody", "controller": true,
            "uid": "00000000-0000-4000-8000-000000000000",
        }]}),
        Action::Finalize(_, true) => json!({"finalizers": [HOLD]}),
        Action::Finalize(_, false) => json!({"finalizers": null}),
        Action::DeletionCost(_, cost) => {
            json!({"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost.to_string()}})
        }
        _ => json!({}),
    };
    (Method::PATCH, path, MERGE, json!({"metadata": metadata}))
}

fn quotas(n: u8) -> String {
    format!("/api/v1/namespaces/{}/resourcequotas", namespace(usize::from(n)))
}

fn node(n: u8) -> String {
    format!("/api/v1/nodes/node-{}", n + 1)
}

fn offline(value: Value) -> Value {
    json!({"metadata": {"annotations": {OFFLINE: value}}})
}

//! What users do to StatefulSets, their pods and their claims.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::nodes::behaviour::BOUND_AFTER;
use crate::random::Random;

use super::checks::Facts;
use super::checks::names::member;
use super::clock::Moment;
use super::plan::{Selectors, Shape, Timed, When};
use super::templates;
use super::workload::{Action, Asked, IMAGES, MERGE, delete, namespace, template};
use super::world::World;

/// One thing that a user does to a StatefulSet, or to what belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetAction {
    /// `kubectl apply` of a new StatefulSet.
    Create {
        /// Which.
        s: u8,
        /// How many pods.
        replicas: u8,
        /// Draws policy, strategy, claims, retention and the like.
        variant: u32,
    },
    /// `kubectl scale statefulset`
    Scale(u8, u8),
    /// `kubectl set image`: one of ten images, some of them bad.
    SetImage(u8, u8),
    /// `kubectl patch statefulset`: its template, in one field or another.
    SetTemplate {
        /// Which.
        s: u8,
        /// Which field.
        field: u8,
        /// Which of the values that it may have.
        value: u8,
    },
    /// `kubectl rollout undo`, to one of the revisions there are.
    Undo(u8, u8),
    /// Updates no pods below this one.
    Partition(u8, u8),
    /// Updates no pods at all.
    OnDelete(u8),
    /// Sets `maxUnavailable`.
    MaxUnavailable(u8, u8),
    /// Changes what becomes of claims.
    Retention(u8, u8),
    /// Changes the first ordinal.
    Start(u8, u8),
    /// Changes `minReadySeconds`.
    MinReady(u8, u8),
    /// Asks for the replacement of broken pods, or no longer.
    ReplaceBroken(u8, bool),
    /// `kubectl delete statefulset`, in the background, the foreground, or leaving orphans.
    Delete(u8, u8),
    /// A pod fails, as if its node had evicted it.
    FailPod(u8),
    /// `kubectl delete pvc`
    DeleteClaim(u8),
    /// Creates a pod that is nobody's business under the name of a StatefulSet's.
    Squat(u8, u8),
    /// Deletes it.
    Unsquat(u8, u8),
    /// Creates a pod with the labels of a StatefulSet's, and mostly the name of one, which has no
    /// owner.
    Stray(u8, u8),
}

/// What makes pods of outdated revisions that are not ready go.
const REPLACE_BROKEN: &str = "picokube.dev/replace-broken-pods";
const RETENTION: [(&str, &str); 4] =
    [("Retain", "Retain"), ("Delete", "Retain"), ("Retain", "Delete"), ("Delete", "Delete")];
/// The label of pods that are in the way.
const SQUATTER: &str = "squatter";

impl SetAction {
    /// The first things that users do: there is something to work with.
    pub(super) fn beginning(random: &mut Random, shape: &Shape) -> Vec<Timed<Action>> {
        let sets = (0..shape.stateful_sets).map(|s| {
            let replicas = random.below(6) as u8;
            let variant = random.next_u64() as u32;
            let what = Action::Set(Self::Create { s: s as u8, replicas, variant });
            Timed { when: When::At(Moment::from_millis(random.below(8_000))), what }
        });
        sets.collect()
    }

    /// Something at that moment, and what puts an end to it where it must have one.
    pub(super) fn draw(random: &mut Random, shape: &Shape, at: Moment) -> Vec<Timed<Action>> {
        let again = random.next_u64() as u32;
        let mut below = |bound: u64| random.below(bound) as u8;
        let s = below(shape.stateful_sets as u64);
        let pick = below(64);
        let later = |seconds: u8| When::At(at.plus_secs(u64::from(seconds)));
        let mut then = None;
        let what = match below(64) {
            0..=10 => Self::Scale(s, below(7)).into(),
            11..=23 => Self::SetImage(s, image(&mut below)).into(),
            24..=26 => Self::Undo(s, below(4)).into(),
            27..=31 => Self::Partition(s, [0, 0, 1, 2, 3, 9][usize::from(below(6))]).into(),
            32 => Self::OnDelete(s).into(),
            33 => Self::MaxUnavailable(s, below(3)).into(),
            34..=36 => Self::Retention(s, below(4)).into(),
            37 | 38 => Self::Start(s, below(3)).into(),
            39 => Self::MinReady(s, [0, 3][usize::from(below(2))]).into(),
            40 => Self::ReplaceBroken(s, below(2) == 0).into(),
            41..=45 => {
                let create = Self::Create { s, replicas: below(6), variant: again };
                then = Some((later(1 + below(20)), create.into()));
                Self::Delete(s, below(3)).into()
            }
            46..=49 => Action::DeletePod(pick, below(4) > 0),
            50 | 51 => Self::FailPod(pick).into(),
            52 | 53 => Self::DeleteClaim(pick).into(),
            54 => Action::Relabel(pick),
            55 => Action::OrphanPod(pick),
            56 => Action::Misattribute(pick),
            57 => {
                then = Some((later(1 + below(30)), Action::Finalize(pick, false)));
                Action::Finalize(pick, true)
            }
            58 => {
                let ordinal = below(6);
                then = Some((later(1 + below(15)), Self::Unsquat(s, ordinal).into()));
                Self::Squat(s, ordinal).into()
            }
            59 => Self::Stray(s, below(6)).into(),
            60 => {
                let n = below(shape.namespaces as u64);
                then = Some((later(5 + below(30)), Action::LiftQuota(n)));
                Action::Quota(n, below(6))
            }
            61 => {
                let n = below(shape.namespaces as u64);
                then = Some((later(10 + below(30)), Action::CreateNamespace(n)));
                Action::DeleteNamespace(n)
            }
            62 => {
                let node = below(shape.nodes as u64);
                then = Some((later(5 + below(120)), Action::NodeBack(node)));
                Action::NodeAway(node)
            }
            _ => Self::SetImage(s, below(6)).into(),
        };
        let first = Timed { when: When::At(at), what };
        [first].into_iter().chain(then.map(|(when, what)| Timed { when, what })).collect()
    }
}

impl From<SetAction> for Action {
    fn from(action: SetAction) -> Self {
        Self::Set(action)
    }
}

/// Mostly one that works.
fn image(below: &mut impl FnMut(u64) -> u8) -> u8 {
    if below(4) == 0 { 6 + below(4) } else { below(6) }
}

/// How a StatefulSet is called. The third has the name of a pod of the first.
fn name(s: u8) -> String {
    if s == 2 { "s0-1".to_owned() } else { format!("s{s}") }
}

impl World<'_> {
    /// What a user asks for; nothing if there is nothing to ask it of.
    pub(super) fn asked_of_set(&self, action: SetAction) -> Option<Asked> {
        let spec = |s: u8, spec: Value| {
            Some((Method::PATCH, self.set_path(s), MERGE, json!({"spec": spec})))
        };
        match action {
            SetAction::Create { s, replicas, variant } => {
                let path = self.set_path(s);
                let (collection, _) = path.rsplit_once('/').unwrap_or_default();
                let object = set_manifest(&name(s), self.selectors_of_set(), replicas, variant);
                Some((Method::POST, collection.to_owned(), "application/json", object))
            }
            SetAction::Scale(s, replicas) => spec(s, json!({"replicas": replicas})),
            SetAction::SetImage(s, image) => spec(s, with_image(IMAGES[usize::from(image) % 10])),
            SetAction::SetTemplate { s, field, value } => {
                spec(s, json!({"template": templates::changed(field, value)}))
            }
            SetAction::Undo(s, pick) => {
                let set = self.set_at(s)?;
                let revisions: Vec<&Facts> = self
                    .checks
                    .model()
                    .controlled_by(&set.uid)
                    .filter(|it| it.is_revision())
                    .collect();
                let revision = revisions.get(usize::from(pick) % revisions.len().max(1))?;
                let (kind, data) =
                    ("application/strategic-merge-patch+json", &revision.object["data"]);
                Some((Method::PATCH, self.set_path(s), kind, data.clone()))
            }
            SetAction::Partition(s, partition) => {
                let rolling = json!({"partition": partition});
                spec(
                    s,
                    json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}),
                )
            }
            SetAction::OnDelete(s) => {
                spec(s, json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}))
            }
            SetAction::MaxUnavailable(s, pick) => {
                let many = [Value::Null, json!(2), json!("50%")][usize::from(pick) % 3].clone();
                let rolling = json!({"maxUnavailable": many});
                spec(
                    s,
                    json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}),
                )
            }
            SetAction::Retention(s, pick) => {
                spec(s, json!({"persistentVolumeClaimRetentionPolicy": retention(pick.into())}))
            }
            SetAction::Start(s, start) => spec(s, json!({"ordinals": {"start": start}})),
            SetAction::MinReady(s, seconds) => spec(s, json!({"minReadySeconds": seconds})),
            SetAction::ReplaceBroken(s, asked) => {
                let annotations =
                    json!({REPLACE_BROKEN: if asked { json!("true") } else { Value::Null }});
                let body = json!({"metadata": {"annotations": annotations}});
                Some((Method::PATCH, self.set_path(s), MERGE, body))
            }
            SetAction::Delete(s, how) => Some(delete(self.set_path(s), how)),
            SetAction::FailPod(pick) => {
                let mut members: Vec<&Facts> =
                    self.checks.model().all("pods").filter(|pod| pod.is_of_set()).collect();
                members.sort_by(|a, b| a.key.cmp(&b.key));
                let pod = members.get(usize::from(pick) % members.len().max(1))?;
                let path = format!("{}/status", pod.path());
                let not_ready = json!([{"type": "Ready", "status": "False"}]);
                let status =
                    json!({"phase": "Failed", "reason": "Evicted", "conditions": not_ready});
                Some((Method::PATCH, path, MERGE, json!({"status": status})))
            }
            SetAction::DeleteClaim(pick) => {
                let path = self.pick("persistentvolumeclaims", pick)?;
                Some((Method::DELETE, path, "application/json", json!({})))
            }
            SetAction::Squat(s, ordinal) => {
                let path = self.pods_path(s);
                let mut pod = template(&json!({"app": SQUATTER}), "v1");
                pod["metadata"]["name"] = format!("{}-{ordinal}", name(s)).into();
                Some((Method::POST, path, "application/json", pod))
            }
            SetAction::Unsquat(s, ordinal) => {
                let path = format!("{}/{}-{ordinal}", self.pods_path(s), name(s));
                let there = self.checks.model().all("pods").find(|pod| pod.path() == path)?;
                let is_squatter = there.object["metadata"]["labels"]["app"] == SQUATTER;
                is_squatter.then(|| (Method::DELETE, path, "application/json", json!({})))
            }
            SetAction::Stray(s, ordinal) => {
                let mut pod = template(&self.selectors_of_set().labels(&name(s)), "v1");
                // Every third is called as no member is.
                let end = if ordinal % 3 == 2 { "x" } else { "" };
                pod["metadata"]["name"] = format!("{}-{ordinal}{end}", name(s)).into();
                Some((Method::POST, self.pods_path(s), "application/json", pod))
            }
        }
    }

    /// What overlaps is for Deployments.
    fn selectors_of_set(&self) -> Selectors {
        match self.plan.shape.selectors {
            Selectors::Overlapping => Selectors::Labels,
            selectors => selectors,
        }
    }

    fn set_path(&self, s: u8) -> String {
        let namespace = self.namespace_of_set(s);
        format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{}", name(s))
    }

    fn pods_path(&self, s: u8) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace_of_set(s))
    }

    fn namespace_of_set(&self, s: u8) -> String {
        namespace(usize::from(s) % self.plan.shape.namespaces)
    }

    fn set_at(&self, s: u8) -> Option<&Facts> {
        let key = format!("{}/{}", self.namespace_of_set(s), name(s));
        self.checks.model().all("statefulsets").find(|set| set.key == key)
    }

    /// Users put right what they have broken of StatefulSets.
    pub(super) fn put_sets_right(&mut self) {
        for s in 0..self.plan.shape.stateful_sets as u8 {
            let squatters = self.squatters(s);
            // One that needs no help gets there by itself; every second run updates it nevertheless.
            // One whose pods' names were taken has no reason to look at them again.
            let needs_help =
                !squatters.is_empty() || self.set_at(s).is_some_and(|set| self.needs_help(set));
            for path in squatters {
                let at_once = json!({"gracePeriodSeconds": 0});
                self.ask(Method::DELETE, &path, "application/json", &at_once);
            }
            if self.plan.seed.is_multiple_of(2) && !needs_help {
                continue;
            }
            let mut spec = with_image("healed");
            let rolling = json!({"partition": 0, "maxUnavailable": null});
            spec["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
            self.ask(Method::PATCH, &self.set_path(s), MERGE, &json!({"spec": spec}));
        }
        self.replace_users_of_claims(false);
        self.lend_a_hand();
    }

    /// Pods that are not a StatefulSet's and cannot become it, under the names of its own.
    fn squatters(&self, s: u8) -> Vec<String> {
        let Some(set) = self.set_at(s) else { return Vec::new() };
        let is_one = |pod: &&Facts| {
            let is_member = member(pod.name()).is_some_and(|(name, _)| name == set.name());
            let is_others = pod.controller.as_ref().is_some_and(|owner| *owner != set.uid);
            let is_strange = pod.label("app") != Some(set.name()) && !is_others;
            pod.namespace() == set.namespace() && is_member && is_strange
        };
        self.checks.model().all("pods").filter(is_one).map(Facts::path).collect()
    }

    /// Users do what Kubernetes leaves to them.
    pub(super) fn lend_a_hand(&mut self) {
        self.replace_broken_pods();
        self.let_go_of_claims();
        self.replace_users_of_claims(true);
    }

    /// A claim that is to go does so when its pod has gone. As in Kubernetes, that may be one that was
    /// left behind, and given once more to a set that is no longer there by who did not know.
    fn replace_users_of_claims(&mut self, only_left_behind: bool) {
        let model = self.checks.model();
        let is_left = |claim: &Facts| {
            claim.controller.as_ref().is_some_and(|owner| !model.objects.contains_key(owner))
        };
        let going: Vec<&Facts> = model
            .all("persistentvolumeclaims")
            .filter(|claim| claim.deleting && (!only_left_behind || is_left(claim)))
            .collect();
        let users = model.all("pods").filter(|pod| going.iter().any(|claim| pod.uses(claim)));
        let users: Vec<String> = users.map(Facts::path).collect();
        for path in users {
            self.ask(Method::DELETE, &path, "application/json", &json!({}));
        }
    }

    /// A pod that is deleted in the foreground waits for the claims that belong to it, and they for it.
    fn let_go_of_claims(&mut self) {
        let model = self.checks.model();
        let waiting = model.all("pods").filter(|pod| {
            let mut owned = model.controlled_by(&pod.uid);
            pod.deleting && owned.any(|it| it.plural == "persistentvolumeclaims" && it.deleting)
        });
        let waiting: Vec<String> = waiting.map(Facts::path).collect();
        for path in waiting {
            let free = json!({"metadata": {"finalizers": null}});
            self.ask(Method::PATCH, &path, MERGE, &free);
        }
    }

    /// With OrderedReady, a pod that never becomes ready holds up its own replacement: somebody has
    /// to delete it by hand, unless the set asks the controller for that.
    fn replace_broken_pods(&mut self) {
        let model = self.checks.model();
        let broken = model.all("pods").filter(|pod| {
            let asks = |set: &Facts| set.annotation(REPLACE_BROKEN) == Some("true");
            let set = pod.controller.as_ref().and_then(|uid| model.objects.get(uid));
            let Some(set) = set.filter(|set| set.is_set() && !pod.deleting) else { return false };
            // Of those that are too many, the first that has ended holds up those above it.
            let place = set.ordinals().position(|ordinal| set.pod_key(ordinal) == pod.key);
            // Only where an update reaches does the controller do what it is asked for.
            let strategy = &set.object["spec"]["updateStrategy"];
            let first = strategy["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
            let is_reached =
                strategy["type"] != "OnDelete" && place.is_some_and(|place| place as u64 >= first);
            let is_seen_to = asks(set) && is_reached;
            (!pod.can_run() && !is_seen_to) || (pod.has_ended() && place.is_none())
        });
        let broken: Vec<String> = broken.map(Facts::path).collect();
        for path in broken {
            self.ask(Method::DELETE, &path, "application/json", &json!({}));
        }
    }

    /// Whether a StatefulSet has pods that never become ready, or makes such.
    fn needs_help(&self, set: &Facts) -> bool {
        let mut owned = self.checks.model().controlled_by(&set.uid);
        let current = set.object["status"]["currentRevision"].as_str().unwrap_or_default();
        !set.runs()
            || owned.any(|it| match it.plural {
                "pods" => !it.can_run(),
                "controllerrevisions" if it.key.ends_with(&format!("/{current}")) => {
                    !runs(&it.object["data"]["spec"]["template"])
                }
                _ => false,
            })
    }
}

fn runs(template: &Value) -> bool {
    let image = template["spec"]["containers"][0]["image"].as_str();
    image.is_some_and(|image| image.starts_with("img:v") || image == "img:healed")
}

impl Facts {
    fn is_revision(&self) -> bool {
        self.plural == "controllerrevisions"
    }

    fn is_set(&self) -> bool {
        self.plural == "statefulsets"
    }

    fn is_of_set(&self) -> bool {
        let owners = self.object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.into_iter().any(|owner| owner["kind"] == "StatefulSet")
    }

    /// Whether a pod's image is one that becomes ready and stays so.
    fn can_run(&self) -> bool {
        runs(&self.object)
    }

    /// Whether a pod uses a claim.
    fn uses(&self, claim: &Self) -> bool {
        let volumes = self.object["spec"]["volumes"].as_array().into_iter().flatten();
        let space = |key: &str| key.split('/').next().map(str::to_owned);
        space(&self.key) == space(&claim.key)
            && volumes.into_iter().any(|volume| {
                let name = volume["persistentVolumeClaim"]["claimName"].as_str();
                name.is_some_and(|name| claim.key.ends_with(&format!("/{name}")))
            })
    }

    /// The path of a pod.
    fn path(&self) -> String {
        let (namespace, name) = self.key.split_once('/').unwrap_or_default();
        format!("/api/v1/namespaces/{namespace}/pods/{name}")
    }
}

fn with_image(tag: &str) -> Value {
    let containers = json!([{"name": "c", "image": format!("img:{tag}")}]);
    json!({"template": {"spec": {"containers": containers}}})
}

fn retention(pick: usize) -> Value {
    let (when_deleted, when_scaled) = RETENTION[pick % RETENTION.len()];
    json!({"whenDeleted": when_deleted, "whenScaled": when_scaled})
}

fn set_manifest(name: &str, selectors: Selectors, replicas: u8, variant: u32) -> Value {
    let labels = selectors.labels(name);
    let bits = |shift: u32, mask: u32| ((variant >> shift) & mask) as usize;
    let policy = if bits(0, 7) < 5 { "OrderedReady" } else { "Parallel" };
    let many = [Value::Null, Value::Null, json!(2), json!("50%")][bits(20, 3)].clone();
    let strategy = match bits(3, 7) {
        0 => json!({"type": "OnDelete"}),
        1 | 2 => {
            let rolling = json!({"partition": bits(3, 7), "maxUnavailable": many});
            json!({"type": "RollingUpdate", "rollingUpdate": rolling})
        }
        _ => json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": many}}),
    };
    let claims = ["data", "log"].into_iter().take([0, 1, 1, 2][bits(6, 3)]).map(|claim| {
        let bound_after = json!({BOUND_AFTER: (["0", "0.1", "1", "4"][bits(16, 3)])});
        json!({
            "metadata": {"name": claim, "annotations": bound_after},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })
    });
    let asks = bits(18, 3) == 3;
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": name, "labels": labels,
            "annotations": if asks { json!({REPLACE_BROKEN: "true"}) } else { json!({}) },
        },
        "spec": {
            "replicas": replicas,
            "serviceName": "service",
            "selector": selectors.selector(name),
            "podManagementPolicy": policy,
            "updateStrategy": strategy,
            "minReadySeconds": ([0, 0, 0, 3][bits(10, 3)]),
            "ordinals": {"start": ([0, 0, 0, 2][bits(12, 3)])},
            "revisionHistoryLimit": ([10, 2, 0, 1][bits(14, 3)]),
            "persistentVolumeClaimRetentionPolicy": retention(bits(8, 3)),
            "volumeClaimTemplates": claims.collect::<Vec<Value>>(),
            "template": template(&labels, "v1"),
        },
    })
}

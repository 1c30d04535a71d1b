//! The steps that ask something of the server.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

use super::client::Answer;
use super::object::{controller, is_set, lookup, members, merge, text};
use super::player::Player;
use super::resource::Resource;
use super::step::{Operation, PatchKind, PodStatus, Step};

/// How often a read and write is tried again when somebody else was faster.
const CONFLICTS: usize = 5;
/// Longer messages are shortened in recordings: they may hold whole objects.
const LONGEST_MESSAGE: usize = 400;

/// Recorded messages name it.
const QUOTA: &str = "lab-quota";

/// Annotations of a Deployment that `kubectl rollout undo` leaves as they are.
const KEPT_BY_UNDO: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

impl Player<'_> {
    /// Does a step that asks something of the server.
    pub(super) async fn request(&mut self, step: &Step) -> Result<Value> {
        let ns = self.namespace;
        match &step.operation {
            Operation::Create { object, .. } => {
                let mut object = object.clone().context("create without an object")?;
                object["metadata"]["namespace"] = ns.into();
                let object = self.substitute(&object).await?;
                let kind = text(&object["kind"]);
                let resource =
                    Resource::of_kind(kind).with_context(|| format!("unknown kind {kind:?}"))?;
                let answer = self.client.post(&resource.collection(ns), &object).await?;
                self.judge(step, resource, &answer).await
            }
            Operation::Patch { resource, name, kind, body, subresource } => {
                let name = self.real_name(name).await?;
                let path = resource.subresource(ns, &name, subresource.as_deref());
                let body = self.substitute(body).await?;
                let answer = self.client.patch(&path, &body, kind.content_type()).await?;
                self.judge(step, *resource, &answer).await
            }
            Operation::Replace { resource, name, body, subresource } => {
                let body = self.substitute(body).await?;
                let name = self.real_name(name).await?;
                let path = resource.subresource(ns, &name, subresource.as_deref());
                let mut tries = 0;
                let answer = loop {
                    let mut object = self.fetch(*resource, &name).await?;
                    merge(&mut object, &body);
                    let answer = self.client.put(&path, &object).await?;
                    tries += 1;
                    if answer.status != 409 || tries == CONFLICTS {
                        break answer;
                    }
                };
                self.judge(step, *resource, &answer).await
            }
            Operation::Scale { resource, name, replicas } => {
                let name = self.real_name(name).await?;
                let path = resource.subresource(ns, &name, Some("scale"));
                let patch = json!({"spec": {"replicas": replicas}});
                let merge = PatchKind::Merge.content_type();
                let answer = self.client.patch(&path, &patch, merge).await?;
                self.judge(step, *resource, &answer).await
            }
            Operation::Delete { resource, name, propagation_policy, grace_period_seconds } => {
                let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
                if let Some(policy) = propagation_policy {
                    options["propagationPolicy"] = policy.as_str().into();
                }
                if let Some(seconds) = grace_period_seconds {
                    options["gracePeriodSeconds"] = (*seconds).into();
                }
                let path = resource.object(ns, &self.real_name(name).await?);
                let answer = self.client.delete(&path, &options).await?;
                self.judge(step, *resource, &answer).await
            }
            Operation::RolloutUndo { name, revision } => self.undo(step, name, *revision).await,
            Operation::PodStatus(report) => self.pod_status(step, report).await,
            Operation::Finalize { pod, pods } => {
                let mut code = Value::Null;
                for name in pod.iter().chain(pods.iter().flatten()) {
                    let pod = self.fetch(Resource::Pods, name).await?;
                    code = self.node.finalize(&pod).await?.status.into();
                }
                Ok(json!({"code": code}))
            }
            Operation::Quota { remove: true, .. } => {
                let path = Resource::ResourceQuotas.object(ns, QUOTA);
                let answer = self.client.delete(&path, &json!({})).await?;
                Ok(json!({"code": answer.status}))
            }
            Operation::Quota { pods, used, .. } => {
                self.quota(pods.context("a quota of how many pods?")?, *used).await
            }
            Operation::Save { resource, name, path, r#as } => {
                let object = self.fetch(*resource, name).await?;
                let value = lookup(&object, path).cloned().unwrap_or_default();
                self.saved.insert(r#as.clone(), value);
                Ok(json!({}))
            }
            other => bail!("not a request: {other:?}"),
        }
    }

    /// Notes an answer, after the watch has shown what came of it. It is an error if the step
    /// wanted another one.
    async fn judge(&self, step: &Step, resource: Resource, answer: &Answer) -> Result<Value> {
        if answer.is_success() {
            self.recorder.catch_up(resource, &answer.body).await;
        }
        let mut noted = json!({"code": answer.status});
        if !answer.is_success() {
            let causes = members(&answer.body["details"]["causes"]);
            noted["message"] = shortened(&answer.body["message"]);
            noted["reason"] = answer.body["reason"].clone();
            if !causes.is_empty() {
                let causes = causes.iter().cloned().map(|mut cause| {
                    cause["message"] = shortened(&cause["message"]);
                    cause
                });
                noted["causes"] = causes.collect();
            }
        }
        let is_wanted = step.expect.map_or(answer.is_success(), |code| code == answer.status);
        if !is_wanted {
            let wanted = step.expect.map_or("a success".to_owned(), |code| code.to_string());
            let message = text(&answer.body["message"]);
            noted["error"] = format!("got {}, wanted {wanted}: {message}", answer.status).into();
        }
        Ok(noted)
    }

    async fn pod_status(&self, step: &Step, report: &PodStatus) -> Result<Value> {
        let mut noted = json!({});
        for name in report.pod.iter().chain(report.pods.iter().flatten()) {
            let pod = self.fetch(Resource::Pods, name).await?;
            if let (Some(node), false) = (&report.node, is_set(&pod["spec"]["nodeName"])) {
                self.node.bind(&pod, node).await?;
            }
            if report.ready.is_some() || report.phase.is_some() {
                let answer = self.node.report(&pod, report).await?;
                noted = self.judge(step, Resource::Pods, &answer).await?;
                if noted.get("error").is_some() {
                    break;
                }
                // The steps are the kubelet here; like it, they let each report take effect.
                self.pause(self.kubelet.settings().quiet).await;
            }
        }
        Ok(noted)
    }

    /// Makes a quota, and its status too: no quota controller may be running.
    async fn quota(&self, pods: i64, used: i64) -> Result<Value> {
        let hard = json!({"pods": pods.to_string()});
        let quota = json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": QUOTA},
            "spec": {"hard": hard},
        });
        let collection = Resource::ResourceQuotas.collection(self.namespace);
        let code = self.client.post(&collection, &quota).await?.status;
        let path = Resource::ResourceQuotas.subresource(self.namespace, QUOTA, Some("status"));
        let status = json!({"status": {"hard": hard, "used": {"pods": used.to_string()}}});
        let merge = PatchKind::Merge.content_type();
        let answer = self.client.patch(&path, &status, merge).await?;
        if !answer.is_success() {
            bail!("{path}: {}: {}", answer.status, text(&answer.body["message"]));
        }
        Ok(json!({"code": code}))
    }

    /// What `kubectl rollout undo` does: takes template and annotations from the ReplicaSet of the
    /// wanted revision.
    async fn undo(&self, step: &Step, name: &str, revision: Option<i64>) -> Result<Value> {
        let deployment = self.fetch(Resource::Deployments, name).await?;
        let path = Resource::ReplicaSets.collection(self.namespace);
        let list = self.client.get(&path).await?;
        let revision_of = |set: &Value| -> i64 {
            let annotations = &set["metadata"]["annotations"];
            text(&annotations["deployment.kubernetes.io/revision"]).parse().unwrap_or_default()
        };
        let uid = &deployment["metadata"]["uid"];
        let mut sets: Vec<&Value> = members(&list.body["items"])
            .iter()
            .filter(|set| controller(set).is_some_and(|owner| owner["uid"] == *uid))
            .collect();
        sets.sort_by_key(|set| revision_of(set));
        let wanted = match revision {
            Some(revision) => sets.iter().find(|set| revision_of(set) == revision),
            None => sets.iter().rev().nth(1),
        };
        let Some(wanted) = wanted else {
            return Ok(json!({"code": 404, "message": "no rollout history found"}));
        };
        let mut template = wanted["spec"]["template"].clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("pod-template-hash");
        }
        let of = |object: &Value, kept: bool| -> Map<String, Value> {
            let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
            let some = all.filter(|(key, _)| KEPT_BY_UNDO.contains(&key.as_str()) == kept);
            some.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let mut annotations = of(&deployment, true);
        annotations.extend(of(wanted, false));
        let patch = json!([
            {"op": "replace", "path": "/spec/template", "value": template},
            {"op": "replace", "path": "/metadata/annotations", "value": annotations},
        ]);
        let path = Resource::Deployments.object(self.namespace, name);
        let answer = self.client.patch(&path, &patch, PatchKind::Json.content_type()).await?;
        self.judge(step, Resource::Deployments, &answer).await
    }

    /// An object as it is on the server now.
    pub(super) async fn fetch(&self, resource: Resource, name: &str) -> Result<Value> {
        let path = resource.object(self.namespace, &self.real_name(name).await?);
        let answer = self.client.get(&path).await?;
        if !answer.is_success() {
            bail!("GET {path}: {}: {}", answer.status, text(&answer.body["message"]));
        }
        Ok(answer.body)
    }

    /// The name behind an alias, waiting until there is such an object; other names as they are.
    pub(super) async fn real_name(&self, name: &str) -> Result<String> {
        let Some(alias) = name.strip_prefix('@') else { return Ok(name.to_owned()) };
        let deadline = Instant::now() + Duration::from_secs(600);
        let look = |seen: &super::recorder::Seen| seen.aliases.resolve(alias).map(str::to_owned);
        let found = self.recorder.until(deadline, look).await;
        found.with_context(|| format!("there is no {alias}"))
    }
}

fn shortened(message: &Value) -> Value {
    let characters: Vec<char> = text(message).chars().collect();
    if characters.len() < LONGEST_MESSAGE {
        return message.clone();
    }
    let head: String = characters[..120].iter().collect();
    let tail: String = characters[characters.len() - 200..].iter().collect();
    format!("{head} ... {tail}").into()
}

//! The step language: what a scenario does to the cluster, one step after the other.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::kubelet::SettingsChange;
use super::object::Comparison;
use super::resource::Resource;

/// One step of a scenario.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub operation: Operation,
    /// The HTTP status it must be answered with; any success if not given.
    pub expect: Option<u16>,
    /// Whether the scenario goes on although the step failed.
    pub goes_on: bool,
    /// The step as it is written.
    pub source: Value,
}

impl Step {
    /// Reads a step as it is written in `steps.json`.
    pub fn parse(source: &Value) -> Result<Self> {
        let mut fields = source.as_object().context("a step is an object")?.clone();
        let op = fields.get("op").and_then(Value::as_str).context("a step has an \"op\"")?;
        let op = op.to_owned();
        let expect = match fields.remove("expect") {
            Some(code) => Some(serde_json::from_value(code).context("expect")?),
            None => None,
        };
        let goes_on = fields.remove("continue").is_some_and(|flag| flag == true);
        let operation = if op == "comment" {
            Operation::Comment
        } else {
            serde_json::from_value(Value::Object(fields)).with_context(|| format!("step {op:?}"))?
        };
        Ok(Self { operation, expect, goes_on, source: source.clone() })
    }

    /// The name of the operation.
    pub fn op(&self) -> &str {
        super::object::text(&self.source["op"])
    }

    /// Whether the step writes to the cluster, so that the trace shows where it happened.
    pub fn is_marked(&self) -> bool {
        use Operation as O;
        !matches!(
            self.operation,
            O::Wait(_)
                | O::Assert(_)
                | O::WaitRollout { .. }
                | O::Settle { .. }
                | O::Sleep { .. }
                | O::Save { .. }
                | O::Kubelet(_)
                | O::Comment
        )
    }
}

/// What a step does. Names that begin with `@` are aliases.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Creates an object from a manifest beside the steps, or given in place.
    Create {
        /// The manifest's file name.
        manifest: Option<String>,
        /// The object in place.
        object: Option<Value>,
    },
    /// Patches an object.
    Patch {
        /// Of this resource.
        resource: Resource,
        /// The object's name.
        name: String,
        /// How the body is meant.
        #[serde(rename = "type", default)]
        kind: PatchKind,
        /// The patch.
        body: Value,
        /// The part that is patched instead of the object.
        subresource: Option<String>,
    },
    /// Reads an object, merges the body into it, and writes it back.
    Replace {
        /// Of this resource.
        resource: Resource,
        /// The object's name.
        name: String,
        /// Merged into what was read.
        body: Value,
        /// The part that is written instead of the object.
        subresource: Option<String>,
    },
    /// Patches the scale subresource, as `kubectl scale` does.
    Scale {
        /// Of this resource.
        resource: Resource,
        /// The object's name.
        name: String,
        /// The wanted number.
        replicas: i64,
    },
    /// Deletes an object.
    #[serde(rename_all = "camelCase")]
    Delete {
        /// Of this resource.
        resource: Resource,
        /// The object's name.
        name: String,
        /// Background, Foreground or Orphan.
        propagation_policy: Option<String>,
        /// For pods.
        grace_period_seconds: Option<i64>,
    },
    /// What `kubectl rollout undo` does to a Deployment.
    RolloutUndo {
        /// The Deployment's name.
        name: String,
        /// The revision to go back to; the previous one if not given.
        revision: Option<i64>,
    },
    /// Plays the kubelet for some pods.
    PodStatus(PodStatus),
    /// Removes terminating pods, as the kubelet does once their containers have ended.
    Finalize {
        /// One pod.
        pod: Option<String>,
        /// Or several.
        pods: Option<Vec<String>>,
    },
    /// Bounds how many pods may be created in the namespace, or takes the bound away.
    Quota {
        /// So many.
        pods: Option<i64>,
        /// So many are used already.
        #[serde(default)]
        used: i64,
        /// Take it away.
        #[serde(default)]
        remove: bool,
    },
    /// Changes how the fake kubelet behaves.
    Kubelet(SettingsChange),
    /// Waits for a condition.
    Wait(Wait),
    /// A condition that must hold already.
    Assert(Wait),
    /// Waits for the end of a rollout, as `kubectl rollout status` judges it.
    WaitRollout {
        /// The object's name.
        name: String,
        /// Deployments unless given.
        resource: Option<Resource>,
        /// Seconds.
        timeout: Option<f64>,
    },
    /// Waits until nothing has happened for a while and the fake kubelet has nothing left to do.
    Settle {
        /// How long nothing must happen.
        quiet_ms: Option<u64>,
        /// Seconds.
        timeout: Option<f64>,
    },
    /// Lets time pass.
    Sleep {
        /// Seconds.
        seconds: f64,
    },
    /// Remembers a value, for `${saved:NAME}`.
    Save {
        /// Of this resource.
        resource: Resource,
        /// The object's name.
        name: String,
        /// Where in the object.
        path: String,
        /// Under this name.
        r#as: String,
    },
    /// Nothing.
    Comment,
}

/// How the body of a patch is meant.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PatchKind {
    /// JSON merge patch.
    #[default]
    Merge,
    /// Kubernetes' strategic merge patch.
    Strategic,
    /// JSON patch.
    Json,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The content type that says so.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Some pods, and what a kubelet reports of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PodStatus {
    /// One pod.
    pub pod: Option<String>,
    /// Or several.
    pub pods: Option<Vec<String>>,
    /// The node the pods are bound to first.
    pub node: Option<String>,
    /// Whether all containers are ready.
    pub ready: Option<bool>,
    /// The pod's phase; Running unless given.
    pub phase: Option<String>,
    /// How many seconds ago this came about.
    #[serde(default)]
    pub ago: u64,
    /// Why the containers wait, if they do.
    pub waiting: Option<String>,
    /// The pod's reason.
    pub reason: Option<String>,
    /// The pod's message.
    pub message: Option<String>,
    /// Of each container.
    #[serde(default)]
    pub restarts: u64,
}

/// A condition on what the watches have shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Of this resource.
    pub resource: Resource,
    /// The object it is about; none where objects are counted.
    pub name: Option<String>,
    /// What must be true of the object: path, comparison, value.
    #[serde(default, rename = "for")]
    pub conditions: Vec<Test>,
    /// The object must not be there.
    #[serde(default)]
    pub gone: bool,
    /// How many objects there must be.
    pub count: Option<i64>,
    /// How the count is compared; equal unless given.
    pub cmp: Option<Comparison>,
    /// Which objects are counted: path, comparison, value.
    #[serde(default, rename = "where")]
    pub filter: Vec<Test>,
    /// Only objects with this owner are counted.
    pub owner: Option<String>,
    /// Only active pods are counted.
    #[serde(default)]
    pub active: bool,
    /// Seconds.
    pub timeout: Option<f64>,
}

/// Path, comparison, value.
pub type Test = (String, Comparison, Value);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failure(step: Value) -> String {
        format!("{:#}", Step::parse(&step).expect_err("a bad step"))
    }

    #[test]
    fn every_operation_is_understood() {
        let steps = [
            json!({"op": "create", "manifest": "web.json", "expect": 422}),
            json!({"op": "create", "object": {"kind": "Pod"}}),
            json!({"op": "patch", "resource": "pods", "name": "@web-rsA-p1", "body": {}}),
            json!({"op": "replace", "resource": "deployments", "name": "web", "body": {}}),
            json!({"op": "scale", "resource": "replicasets", "name": "@web-rsA", "replicas": 2}),
            json!({"op": "delete", "resource": "deployments", "name": "web",
                   "propagationPolicy": "Orphan", "gracePeriodSeconds": 0}),
            json!({"op": "rollout-undo", "name": "web", "revision": 1}),
            json!({"op": "pod-status", "pods": ["a", "b"], "ready": true, "ago": 5, "node": "n"}),
            json!({"op": "finalize", "pod": "a"}),
            json!({"op": "quota", "pods": 2, "used": 1}),
            json!({"op": "quota", "remove": true}),
            json!({"op": "kubelet", "mode": "manual", "finalize": false}),
            json!({"op": "wait", "resource": "pods", "count": 3, "cmp": ">=", "active": true,
                   "owner": "@web-rsA", "where": [["status.phase", "==", "Running"]]}),
            json!({"op": "assert", "resource": "pods", "name": "a", "gone": true}),
            json!({"op": "wait-rollout", "name": "db", "resource": "statefulsets"}),
            json!({"op": "settle", "quiet_ms": 600}),
            json!({"op": "sleep", "seconds": 1.5}),
            json!({"op": "save", "resource": "pods", "name": "a", "path": "spec", "as": "x"}),
            json!({"op": "comment", "text": "anything", "more": 1}),
        ];
        for step in steps {
            let parsed = Step::parse(&step).unwrap_or_else(|error| panic!("{step}: {error:#}"));
            assert_eq!(parsed.op(), step["op"]);
        }
    }

    #[test]
    fn patches_are_merge_patches_unless_told() {
        let step = json!({"op": "patch", "resource": "pods", "name": "a", "body": {}});
        let Operation::Patch { kind, .. } = Step::parse(&step).unwrap().operation else {
            panic!("a patch")
        };
        assert_eq!(kind.content_type(), "application/merge-patch+json");
        let kinds = ["merge", "strategic", "json", "apply"];
        for name in kinds {
            let kind: PatchKind = serde_json::from_value(name.into()).unwrap();
            assert!(kind.content_type().contains(name));
        }
    }

    #[test]
    fn only_writes_are_marked() {
        let marked = |step: Value| Step::parse(&step).unwrap().is_marked();
        assert!(marked(json!({"op": "finalize", "pod": "a"})));
        assert!(marked(json!({"op": "quota", "remove": true})));
        assert!(!marked(json!({"op": "settle"})));
        assert!(!marked(json!({"op": "kubelet", "mode": "auto"})));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(failure(json!({"op": "explode"})).contains("explode"));
        assert!(failure(json!({"op": "settle", "quite_ms": 5})).contains("quite_ms"));
        assert!(failure(json!({"op": "wait", "resource": "pod"})).contains("pod"));
        assert!(failure(json!({"op": "pod-status", "pod": "a", "rady": true})).contains("rady"));
        assert!(failure(json!({"op": "kubelet", "mode": "lazy"})).contains("lazy"));
        assert!(failure(json!({"name": "web"})).contains("op"));
    }
}

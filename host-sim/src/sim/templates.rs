//! What workloads select, and templates that differ in any field.

use serde_json::{Value, json};

use crate::random::Random;

use super::plan::{Selectors, Shape, Workload};
use super::users_of_sets::SetAction;
use super::workload::{Action, IMAGES};

/// What all select that overlap.
const SHARED: &str = "shared";
/// So many ways there are to change a template.
const FIELDS: u64 = 14;

impl Action {
    /// A change of a template, in any of its fields.
    pub(super) fn draw_template(random: &mut Random, shape: &Shape, workload: Workload) -> Self {
        let of_set = match workload {
            Workload::Deployments => false,
            Workload::StatefulSets => true,
            Workload::Both => random.below(2) == 0,
        };
        let mut below = |bound: u64| random.below(bound) as u8;
        let (field, value) = (below(FIELDS), below(3));
        if of_set {
            let s = below(shape.stateful_sets as u64);
            return SetAction::SetTemplate { s, field, value }.into();
        }
        Self::SetTemplate { d: below(shape.deployments as u64), field, value }
    }
}

impl Selectors {
    /// The labels of a workload that is called so, and of its pods.
    pub(super) fn labels(self, name: &str) -> Value {
        match self {
            Self::Labels => json!({"app": name}),
            Self::Expressions => json!({"app": name, "tier": "web"}),
            Self::Overlapping => json!({"app": SHARED}),
        }
    }

    /// What it selects by.
    pub(super) fn selector(self, name: &str) -> Value {
        if self != Self::Expressions {
            return json!({"matchLabels": self.labels(name)});
        }
        json!({"matchExpressions": [
            {"key": "app", "operator": "In", "values": [name, "another"]},
            {"key": "app", "operator": "NotIn", "values": ["another"]},
            {"key": "tier", "operator": "Exists"},
            {"key": "elsewhere", "operator": "DoesNotExist"},
        ]})
    }
}

/// A merge patch of a template, in one of its fields. What pods are made of works as before.
pub(super) fn changed(field: u8, value: u8) -> Value {
    let number = i64::from(value);
    let text = format!("v{value}");
    let container = |more: Value| {
        let mut container =
            json!({"name": "c", "image": format!("img:{}", IMAGES[usize::from(value) % 6])});
        if let (Some(container), Some(more)) = (container.as_object_mut(), more.as_object()) {
            container.extend(more.clone());
        }
        json!({"spec": {"containers": [container]}})
    };
    match u64::from(field) % FIELDS {
        0 => json!({"metadata": {"annotations": {"note": text}}}),
        1 => json!({"metadata": {"labels": {"colour": text}}}),
        2 => json!({"spec": {"terminationGracePeriodSeconds": 1 + number}}),
        3 => container(
            json!({"env": [{"name": "A", "value": text}, {"name": "B", "value": "\"\\\u{e9}"}]}),
        ),
        4 => container(json!({"resources": {"requests": {"cpu": format!("{}m", 1 + number)}}})),
        5 => container(json!({"command": ["run"], "args": [text, ""]})),
        6 => container(json!({"ports": [{"containerPort": 8080 + number, "name": "web"}]})),
        7 => container(json!({"livenessProbe": {
            "httpGet": {"path": "/", "port": 8080}, "periodSeconds": 5 + number,
        }})),
        8 => {
            let mut patch =
                container(json!({"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}));
            let limit = format!("{}Mi", 1 + number);
            patch["spec"]["volumes"] = json!([{"name": "tmp", "emptyDir": {"sizeLimit": limit}}]);
            patch
        }
        9 => json!({"spec": {"securityContext": {"runAsUser": 1000 + number, "fsGroup": 7}}}),
        10 => json!({"spec": {"tolerations": [
            {"key": "k", "operator": "Equal", "value": text, "effect": "NoSchedule"},
        ]}}),
        11 => json!({"spec": {"hostAliases": [{"ip": "192.0.2.1", "hostnames": [text]}]}}),
        12 => json!({"spec": {"initContainers": [{"name": "i", "image": format!("img:{text}")}]}}),
        _ => {
            let policy = if value == 1 { "ClusterFirst" } else { "Default" };
            json!({"spec": {"dnsPolicy": policy, "enableServiceLinks": value == 0}})
        }
    }
}

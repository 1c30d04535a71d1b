//! Bounds that hold throughout a rollout, whatever the order in which things happen.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::object::{members, text};

/// How many are worth telling.
const MOST: usize = 20;

/// What bounds the rollouts of a Deployment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// As in the Deployment; a number or a percentage, 25% unless given.
    #[serde(rename = "maxSurge")]
    max_surge: Option<Amount>,
    /// As in the Deployment; a number or a percentage, 25% unless given.
    #[serde(rename = "maxUnavailable")]
    max_unavailable: Option<Amount>,
    /// The step from which on the bounds hold.
    #[serde(default)]
    from_step: u64,
    /// Whether pods may become fewer than the strategy allows, as when they fail.
    #[serde(default)]
    no_min: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(i64),
    Percentage(String),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Broken bounds: more replicas asked of all ReplicaSets together than replicas + maxSurge,
    /// or, once all were ready, fewer ready pods than replicas - maxUnavailable.
    pub violations: Vec<String>,
    /// More live pods than replicas + maxSurge. Two ReplicaSets act each on its own, so that the
    /// real controllers, too, pass this for a moment.
    pub overshoots: Vec<String>,
}

/// Checks a trace against the bounds of every Deployment named.
pub fn check(trace: &[Value], bounds: &BTreeMap<String, Bounds>) -> Findings {
    let mut findings = Findings::default();
    for (deployment, bounds) in bounds {
        check_deployment(trace, deployment, bounds, &mut findings);
    }
    findings.violations.truncate(MOST);
    findings.overshoots.truncate(MOST);
    findings
}

fn check_deployment(trace: &[Value], deployment: &str, bounds: &Bounds, findings: &mut Findings) {
    let mut pods: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut asked: BTreeMap<&str, i64> = BTreeMap::new();
    let mut desired = None;
    let mut was_full = false;
    let mut step = None;
    for row in trace {
        if let Some(number) = row.get("step") {
            step = number.as_u64();
            continue;
        }
        let (kind, name, gone) = (text(&row["kind"]), text(&row["name"]), row["t"] == "-");
        match kind {
            "Deployment" if name == deployment => desired = row["replicas"].as_i64(),
            "ReplicaSet" if gone => _ = asked.remove(name),
            "ReplicaSet" if is_owned(row, |owner| owner["name"] == deployment) => {
                asked.insert(name, row["replicas"].as_i64().unwrap_or_default());
            }
            "Pod" if gone => _ = pods.remove(name),
            "Pod" => _ = pods.insert(name, row),
            _ => {}
        }
        let Some(desired) = desired else { continue };
        if step.is_none_or(|step| step < bounds.from_step) || kind == "Event" {
            continue;
        }
        let (surge, unavailable) = bounds.resolve(desired);
        let live: Vec<_> = pods.values().filter(|pod| is_live(pod)).collect();
        let ready = live.iter().filter(|pod| pod["ready"] == true).count() as i64;
        let live = live.len() as i64;
        let total: i64 = asked.values().sum();
        let at = &row["n"];
        if live > desired + surge {
            findings.overshoots.push(format!("row {at}: {live} live pods > {desired} + {surge}"));
        }
        if kind == "ReplicaSet" && total > desired + surge {
            let what = format!("row {at}: {total} replicas asked for > {desired} + {surge}");
            findings.violations.push(what);
        }
        was_full |= ready >= desired;
        if was_full && ready < desired - unavailable && !bounds.no_min {
            let what = format!("row {at}: {ready} pods ready < {desired} - {unavailable}");
            findings.violations.push(what);
        }
    }
}

impl Bounds {
    /// maxSurge and maxUnavailable in pods. Surge is rounded up and unavailability down; if both
    /// come to nothing, one pod may be unavailable, or nothing would ever move.
    fn resolve(&self, desired: i64) -> (i64, i64) {
        let surge = resolve(self.max_surge.as_ref(), desired, 99);
        let unavailable = resolve(self.max_unavailable.as_ref(), desired, 0);
        (surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable })
    }
}

fn resolve(amount: Option<&Amount>, desired: i64, round: i64) -> i64 {
    let percent = match amount {
        Some(Amount::Number(number)) => return *number,
        Some(Amount::Percentage(text)) => text.trim_end_matches('%').parse().unwrap_or_default(),
        None => 25,
    };
    (percent * desired + round) / 100
}

fn is_live(pod: &Value) -> bool {
    let finished = matches!(text(&pod["phase"]), "Failed" | "Succeeded");
    pod["deleting"] != true && !finished && is_owned(pod, |owner| owner["kind"] == "ReplicaSet")
}

fn is_owned(row: &Value, by: impl Fn(&Value) -> bool) -> bool {
    members(&row["owners"]).iter().any(|owner| owner["controller"] == true && by(owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bounds(surge: Value, unavailable: Value) -> BTreeMap<String, Bounds> {
        let bounds = json!({"web": {"maxSurge": surge, "maxUnavailable": unavailable}});
        serde_json::from_value(bounds).unwrap()
    }

    fn replica_set(name: &str, replicas: i64) -> Value {
        let owner = json!({"kind": "Deployment", "name": "web", "controller": true});
        json!({"n": 7, "t": "~", "kind": "ReplicaSet", "name": name, "replicas": replicas,
               "owners": [owner]})
    }

    fn pod(name: &str, ready: bool) -> Value {
        let owner = json!({"kind": "ReplicaSet", "name": "web-rsA", "controller": true});
        json!({"n": 8, "t": "~", "kind": "Pod", "name": name, "phase": "Running", "ready": ready,
               "owners": [owner]})
    }

    fn start() -> Vec<Value> {
        vec![
            json!({"n": 0, "step": 0, "do": {}}),
            json!({"n": 1, "t": "+", "kind": "Deployment", "name": "web", "replicas": 2}),
        ]
    }

    #[test]
    fn too_many_replicas_are_found() {
        let mut trace = start();
        trace.extend([replica_set("web-rsA", 2), replica_set("web-rsB", 1)]);
        assert_eq!(check(&trace, &bounds(json!(1), json!(0))), Findings::default());
        let findings = check(&trace, &bounds(json!(0), json!(1)));
        assert_eq!(findings.violations, ["row 7: 3 replicas asked for > 2 + 0"]);
    }

    #[test]
    fn too_few_ready_pods_are_found_once_all_were_ready() {
        let mut trace = start();
        trace.extend([pod("a", true), pod("b", true), pod("a", false)]);
        assert_eq!(check(&trace, &bounds(json!(1), json!("50%"))), Findings::default());
        let findings = check(&trace, &bounds(json!(1), json!("49%")));
        assert_eq!(findings.violations, ["row 8: 1 pods ready < 2 - 0"]);
    }

    #[test]
    fn live_pods_above_the_surge_are_only_told() {
        let mut trace = start();
        trace.extend([pod("a", true), pod("b", true), pod("c", false)]);
        let findings = check(&trace, &bounds(json!(0), json!(1)));
        assert!(findings.violations.is_empty());
        assert_eq!(findings.overshoots, ["row 8: 3 live pods > 2 + 0"]);
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        let resolved = |surge: &str, unavailable: &str, desired| {
            bounds(json!(surge), json!(unavailable))["web"].resolve(desired)
        };
        assert_eq!(resolved("25%", "25%", 10), (3, 2));
        assert_eq!(resolved("1%", "1%", 3), (1, 0));
        assert_eq!(resolved("0%", "1%", 3), (0, 1));
        assert_eq!(Bounds::default().resolve(4), (1, 1));
    }
}

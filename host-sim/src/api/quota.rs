//! ResourceQuota arithmetic: what a pod uses, and whether a quota allows it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::object::{at, entries, list, name, text};
use super::quantity::Quantity;

/// Amounts by the names quotas use: `pods`, `count/pods`, `requests.cpu`, `limits.memory`…
pub type Usage = BTreeMap<String, Quantity>;

/// What a pod counts for. One that has ended counts only as an object.
pub fn pod_usage(pod: &Value) -> Usage {
    let mut usage = Usage::new();
    usage.insert("count/pods".to_owned(), Quantity::whole(1));
    if matches!(text(at(pod, &["status"]), "phase"), "Failed" | "Succeeded") {
        return usage;
    }
    usage.insert("pods".to_owned(), Quantity::whole(1));
    let spec = at(pod, &["spec"]);
    for (resource, amount) in effective(spec, "requests") {
        if matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(resource.clone(), amount);
        }
        usage.insert(format!("requests.{resource}"), amount);
    }
    for (resource, amount) in effective(spec, "limits") {
        usage.insert(format!("limits.{resource}"), amount);
    }
    usage
}

/// The sum of two usages.
pub fn add(mut total: Usage, more: &Usage) -> Usage {
    for (resource, amount) in more {
        let sum = total.get(resource).copied().unwrap_or(Quantity::ZERO).plus(*amount);
        total.insert(resource.clone(), sum);
    }
    total
}

/// Why a quota does not allow a pod, in upstream's words; `None` if it does.
/// `used` is what the namespace uses without the pod.
pub fn refusal(quota: &Value, used: &Usage, pod: &Value) -> Option<String> {
    let requested = pod_usage(pod);
    let hard: BTreeMap<&str, Quantity> = entries(at(quota, &["spec"]), "hard")
        .filter_map(|(resource, limit)| Some((resource, Quantity::parse(limit.as_str()?)?)))
        .collect();
    let quota = name(quota);
    if let Some(missing) = unspecified(&hard, pod) {
        return Some(format!("failed quota: {quota}: must specify {missing}"));
    }
    let mut over = Vec::new();
    for (resource, limit) in &hard {
        let Some(amount) = requested.get(*resource) else { continue };
        let before = used.get(*resource).copied().unwrap_or(Quantity::ZERO);
        if before.plus(*amount) > *limit {
            over.push((*resource, *amount, before, *limit));
        }
    }
    if over.is_empty() {
        return None;
    }
    let join = |pick: fn(&(&str, Quantity, Quantity, Quantity)) -> Quantity| {
        let parts: Vec<String> = over.iter().map(|o| format!("{}={}", o.0, pick(o))).collect();
        parts.join(",")
    };
    Some(format!(
        "exceeded quota: {quota}, requested: {}, used: {}, limited: {}",
        join(|o| o.1),
        join(|o| o.2),
        join(|o| o.3)
    ))
}

/// Under a quota on compute resources every container has to say what it wants of them.
fn unspecified(hard: &BTreeMap<&str, Quantity>, pod: &Value) -> Option<String> {
    let mut missing = Vec::new();
    for resource in hard.keys() {
        let (field, wanted) = match resource.split_once('.') {
            Some(("requests", wanted)) => ("requests", wanted),
            Some(("limits", wanted)) => ("limits", wanted),
            _ => ("requests", *resource),
        };
        if !matches!(wanted, "cpu" | "memory") {
            continue;
        }
        let silent: Vec<&str> = list(at(pod, &["spec"]), "containers")
            .iter()
            .filter(|c| at(c, &["resources", field, wanted]).is_null())
            .map(|c| text(c, "name"))
            .collect();
        if !silent.is_empty() {
            missing.push(format!("{resource} for: {}", silent.join(",")));
        }
    }
    if missing.is_empty() { None } else { Some(missing.join("; ")) }
}

/// What a pod needs at most at one time: its containers together with its sidecars, or an init
/// container with the sidecars started before it, plus overhead.
fn effective(spec: &Value, field: &str) -> Usage {
    let amounts = |container: &Value| {
        let parse = |(resource, value): (&str, &Value)| {
            Some((resource.to_owned(), Quantity::parse(value.as_str()?)?))
        };
        entries(at(container, &["resources"]), field).filter_map(parse).collect::<Usage>()
    };
    let mut total = Usage::new();
    for container in list(spec, "containers") {
        total = add(total, &amounts(container));
    }
    let (mut sidecars, mut peak) = (Usage::new(), Usage::new());
    for container in list(spec, "initContainers") {
        if text(container, "restartPolicy") == "Always" {
            sidecars = add(sidecars, &amounts(container));
            peak = maximum(peak, &sidecars);
        } else {
            peak = maximum(peak, &add(sidecars.clone(), &amounts(container)));
        }
    }
    let mut needed = maximum(add(total, &sidecars), &peak);
    for (resource, value) in entries(spec, "overhead") {
        if let (Some(amount), Some(sum)) =
            (value.as_str().and_then(Quantity::parse), needed.get_mut(resource))
        {
            *sum = sum.plus(amount);
        }
    }
    needed
}

fn maximum(mut a: Usage, b: &Usage) -> Usage {
    for (resource, amount) in b {
        let entry = a.entry(resource.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::api::testing::any_json;

    fn quota(hard: Value) -> Value {
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
    }

    fn pod(resources: Value) -> Value {
        json!({"spec": {"containers": [{"name": "app", "resources": resources}]}})
    }

    #[test]
    fn counts_and_amounts_are_refused_in_upstreams_words() {
        let mut used = Usage::new();
        used.insert("pods".to_owned(), Quantity::whole(2));
        used.insert("requests.cpu".to_owned(), Quantity::parse("900m").unwrap());
        assert_eq!(
            refusal(&quota(json!({"pods": "2"})), &used, &pod(json!({}))).unwrap(),
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
        );
        assert_eq!(refusal(&quota(json!({"pods": "3"})), &used, &pod(json!({}))), None);
        let small = pod(json!({"requests": {"cpu": "200m"}}));
        assert_eq!(
            refusal(&quota(json!({"pods": "2", "requests.cpu": "1"})), &used, &small).unwrap(),
            "exceeded quota: q, requested: pods=1,requests.cpu=200m, used: pods=2,\
             requests.cpu=900m, limited: pods=2,requests.cpu=1"
        );
        assert_eq!(
            refusal(&quota(json!({"limits.memory": "1Gi"})), &used, &small).unwrap(),
            "failed quota: q: must specify limits.memory for: app"
        );
    }

    #[test]
    fn init_containers_count_by_their_peak() {
        let cpu = |n: &str| json!({"requests": {"cpu": n}});
        let pod = json!({"spec": {
            "initContainers": [{"resources": cpu("3")}, {"resources": cpu("1"), "restartPolicy": "Always"},
                               {"resources": cpu("4")}],
            "containers": [{"resources": cpu("1")}, {"resources": cpu("2")}]}});
        assert_eq!(pod_usage(&pod).get("requests.cpu"), Some(&Quantity::whole(5)));
        let ended = json!({"status": {"phase": "Failed"}, "spec": pod["spec"]});
        assert_eq!(pod_usage(&ended).len(), 1);
    }

    proptest! {
        #[test]
        fn any_values_are_taken_without_panic(quota in any_json(), pod in any_json()) {
            let _ = refusal(&quota, &pod_usage(&pod), &pod);
        }
    }
}

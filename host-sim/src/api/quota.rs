//! ResourceQuota arithmetic: what an object uses, and whether a quota allows it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::kind::Kind;
use super::object::{at, entries, list, name, text};
use super::qos;
use super::quantity::Quantity;

/// Amounts by the names quotas use: `pods`, `count/pods`, `requests.cpu`, `limits.memory`…
pub type Usage = BTreeMap<String, Quantity>;

/// Kinds of the core group whose number can be limited by their plain name.
const COUNTED: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Whether objects of `kind` can use some of `resource`.
pub fn concerns(resource: &str, kind: &Kind) -> bool {
    if let Some(counted) = resource.strip_prefix("count/") {
        return counted == kind.qualified_resource();
    }
    if !kind.group.is_empty() {
        return false;
    }
    match (kind.kind, resource) {
        (_, name) if name == kind.plural => COUNTED.contains(&name),
        ("PersistentVolumeClaim", "requests.storage") => true,
        ("Service", "services.nodeports" | "services.loadbalancers") => true,
        ("Pod", "cpu" | "memory" | "ephemeral-storage") => true,
        ("Pod", "requests.storage") => false,
        ("Pod", name) => name.starts_with("requests.") || name.starts_with("limits."),
        _ => false,
    }
}

/// What an object counts for.
pub fn usage(kind: &Kind, object: &Value) -> Usage {
    if kind.group.is_empty() && kind.kind == "Pod" {
        return pod_usage(object);
    }
    let mut usage = Usage::new();
    let mut count = |resource: &str| usage.insert(resource.to_owned(), Quantity::whole(1));
    count(&format!("count/{}", kind.qualified_resource()));
    if !kind.group.is_empty() {
        return usage;
    }
    if COUNTED.contains(&kind.plural) {
        count(kind.plural);
    }
    if kind.kind == "Service" {
        let spec = at(object, &["spec"]);
        let served_by_nodes = matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
        if text(spec, "type") == "LoadBalancer" {
            count("services.loadbalancers");
        }
        if served_by_nodes {
            let ports = i64::try_from(list(spec, "ports").len()).unwrap_or(i64::MAX);
            usage.insert("services.nodeports".to_owned(), Quantity::whole(ports));
        }
    }
    let storage = at(object, &["spec", "resources", "requests", "storage"]);
    if kind.kind == "PersistentVolumeClaim"
        && let Some(amount) = storage.as_str().and_then(Quantity::parse)
    {
        usage.insert("requests.storage".to_owned(), amount);
    }
    usage
}

/// What a pod counts for. One that has ended counts only as an object.
fn pod_usage(pod: &Value) -> Usage {
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

/// Whether a quota is about an object at all. One with scopes is about some pods only.
pub fn covers(quota: &Value, kind: &Kind, object: &Value) -> bool {
    let spec = at(object, &["spec"]);
    let terminating = || !at(spec, &["activeDeadlineSeconds"]).is_null();
    let best_effort = || qos::class(spec) == "BestEffort";
    list(at(quota, &["spec"]), "scopes").iter().all(|scope| {
        kind.kind == "Pod"
            && match scope.as_str() {
                Some("Terminating") => terminating(),
                Some("NotTerminating") => !terminating(),
                Some("BestEffort") => best_effort(),
                Some("NotBestEffort") => !best_effort(),
                // Priorities and affinity across namespaces are not told apart here.
                _ => false,
            }
    })
}

/// Why a quota does not allow an object, in upstream's words; `None` if it does.
/// `used` says how much of a resource the namespace uses without the object.
pub fn refusal(
    quota: &Value,
    kind: &Kind,
    object: &Value,
    used: impl Fn(&str) -> Quantity,
) -> Option<String> {
    let requested = usage(kind, object);
    let hard: BTreeMap<&str, Quantity> = entries(at(quota, &["spec"]), "hard")
        .filter_map(|(resource, limit)| Some((resource, Quantity::parse(limit.as_str()?)?)))
        .collect();
    let quota = name(quota);
    if kind.kind == "Pod"
        && let Some(missing) = unspecified(&hard, object)
    {
        return Some(format!("failed quota: {quota}: must specify {missing}"));
    }
    let mut over = Vec::new();
    for (resource, limit) in &hard {
        let Some(amount) = requested.get(*resource) else { continue };
        let before = used(resource);
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

/// The sum of two usages.
fn add(mut total: Usage, more: &Usage) -> Usage {
    for (resource, amount) in more {
        let sum = total.get(resource).copied().unwrap_or(Quantity::ZERO).plus(*amount);
        total.insert(resource.clone(), sum);
    }
    total
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
    use crate::api::kind;
    use crate::api::testing::any_json;

    fn quota(hard: Value) -> Value {
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
    }

    fn pod(resources: Value) -> Value {
        json!({"spec": {"containers": [{"name": "app", "resources": resources}]}})
    }

    fn kind_of(plural: &str) -> &'static Kind {
        kind::find("", "v1", plural).unwrap()
    }

    #[test]
    fn counts_and_amounts_are_refused_in_upstreams_words() {
        let used = |resource: &str| match resource {
            "pods" => Quantity::whole(2),
            "requests.cpu" => Quantity::parse("900m").unwrap(),
            _ => Quantity::ZERO,
        };
        let refusal = |hard: Value, pod: &Value| refusal(&quota(hard), kind_of("pods"), pod, used);
        assert_eq!(
            refusal(json!({"pods": "2"}), &pod(json!({}))).unwrap(),
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
        );
        assert_eq!(refusal(json!({"pods": "3"}), &pod(json!({}))), None);
        let small = pod(json!({"requests": {"cpu": "200m"}}));
        assert_eq!(
            refusal(json!({"pods": "2", "requests.cpu": "1"}), &small).unwrap(),
            "exceeded quota: q, requested: pods=1,requests.cpu=200m, used: pods=2,\
             requests.cpu=900m, limited: pods=2,requests.cpu=1"
        );
        assert_eq!(
            refusal(json!({"limits.memory": "1Gi"}), &small).unwrap(),
            "failed quota: q: must specify limits.memory for: app"
        );
    }

    #[test]
    fn what_an_object_uses_is_what_concerns_its_kind() {
        let cases = [
            ("services", json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}})),
            (
                "persistentvolumeclaims",
                json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            ),
            ("pods", pod(json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}))),
            ("configmaps", json!({})),
            ("replicationcontrollers", json!({})),
            ("serviceaccounts", json!({})),
        ];
        for (plural, object) in cases {
            let used = usage(kind_of(plural), &object);
            assert!(used.contains_key(&format!("count/{plural}")), "{used:?}");
            assert!(used.keys().all(|resource| concerns(resource, kind_of(plural))), "{used:?}");
        }
        assert_eq!(
            usage(kind_of("services"), &json!({"spec": {"type": "NodePort", "ports": [{}, {}]}}))
                .get("services.nodeports"),
            Some(&Quantity::whole(2))
        );
        let controllers = kind_of("replicationcontrollers");
        for resource in ["replicationcontrollers", "count/replicationcontrollers"] {
            let used = usage(controllers, &json!({})).get(resource).copied();
            assert_eq!(used, Some(Quantity::whole(1)), "{resource}");
        }
        let deployments = kind::find("apps", "v1", "deployments").unwrap();
        assert!(concerns("count/deployments.apps", deployments));
        assert!(!concerns("deployments", deployments));
    }

    #[test]
    fn scopes_pick_pods() {
        let scoped = |scope: &str| json!({"spec": {"scopes": [scope]}});
        let (pods, plain) = (kind_of("pods"), pod(json!({})));
        assert!(covers(&scoped("BestEffort"), pods, &plain));
        assert!(!covers(&scoped("NotBestEffort"), pods, &plain));
        assert!(covers(&scoped("NotTerminating"), pods, &plain));
        assert!(!covers(&scoped("Terminating"), pods, &plain));
        assert!(!covers(&scoped("BestEffort"), kind_of("configmaps"), &json!({})));
        assert!(covers(&json!({}), kind_of("configmaps"), &json!({})));
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
            for kind in kind::ALL {
                let _ = refusal(&quota, kind, &pod, |_| Quantity::ZERO);
                let _ = covers(&quota, kind, &pod);
            }
        }
    }
}

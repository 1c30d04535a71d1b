//! A pod's quality of service, as its requests and limits imply it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::object::{at, entries, list};
use super::quantity::Quantity;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub fn class(pod_spec: &Value) -> &'static str {
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut all_limited = true;
    for field in ["containers", "initContainers"] {
        for container in list(pod_spec, field) {
            let resources = at(container, &["resources"]);
            add(resources, "requests", &mut requests);
            let limited = add(resources, "limits", &mut limits);
            all_limited &= limited == 2;
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds what a container wants of cpu and memory; returns of how many of the two it wants something.
fn add<'a>(resources: &'a Value, field: &str, totals: &mut BTreeMap<&'a str, Quantity>) -> usize {
    let mut found = 0;
    for (name, value) in entries(resources, field) {
        let amount = value.as_str().and_then(Quantity::parse).unwrap_or(Quantity::ZERO);
        if matches!(name, "cpu" | "memory") && amount > Quantity::ZERO {
            let total = totals.entry(name).or_insert(Quantity::ZERO);
            *total = total.plus(amount);
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_limits_decide() {
        let pod = |resources: Value| json!({"containers": [{"name": "a", "resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let cases = [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": both, "requests": both}), "Guaranteed"),
            (
                json!({"limits": both, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
                "Guaranteed",
            ),
            (json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": both}), "Burstable"),
        ];
        for (resources, class) in cases {
            assert_eq!(super::class(&pod(resources.clone())), class, "{resources}");
        }
    }
}

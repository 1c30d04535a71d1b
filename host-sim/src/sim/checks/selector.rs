//! Label selectors, read as Kubernetes' API describes them, by code that the controllers do not have.

use serde_json::Value;

use super::Facts;

impl Facts {
    /// Whether a workload selects objects with these labels.
    pub(in crate::sim) fn selects(&self, labels: &Value) -> bool {
        let selector = &self.object["spec"]["selector"];
        match self.plural {
            "replicationcontrollers" => has_all(selector, labels),
            _ => selects(selector, labels),
        }
    }
}

/// Whether labels satisfy all of `matchLabels` and all of `matchExpressions`. No workload acts on a
/// selector that asks for nothing.
fn selects(selector: &Value, labels: &Value) -> bool {
    let expressions = selector["matchExpressions"].as_array();
    let mut expressions = expressions.into_iter().flatten().peekable();
    let wanted = &selector["matchLabels"];
    let asks = wanted.as_object().is_some_and(|it| !it.is_empty()) || expressions.peek().is_some();
    asks && (wanted.is_null() || says_all(wanted, labels))
        && expressions.all(|expression| holds(expression, labels))
}

/// As a ReplicationController selects.
fn has_all(wanted: &Value, labels: &Value) -> bool {
    wanted.as_object().is_some_and(|it| !it.is_empty()) && says_all(wanted, labels)
}

fn says_all(wanted: &Value, labels: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let value = expression["key"].as_str().and_then(|key| labels.get(key));
    let values = expression["values"].as_array();
    let is_listed = || value.is_some_and(|value| values.is_some_and(|it| it.contains(value)));
    match expression["operator"].as_str() {
        Some("In") => is_listed(),
        Some("NotIn") => !is_listed(),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_wants_all_that_it_says() {
        let labels = json!({"app": "web", "tier": "front"});
        let expression = |operator: &str, key: &str, values: &[&str]| {
            let wanted = json!({"key": key, "operator": operator, "values": values});
            json!({"matchExpressions": [wanted]})
        };
        for (selector, selected) in [
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "back"}}), false),
            (json!({"matchLabels": {"more": "x"}}), false),
            (expression("In", "tier", &["back", "front"]), true),
            (expression("In", "tier", &["back"]), false),
            (expression("In", "more", &["x"]), false),
            (expression("NotIn", "tier", &["back"]), true),
            (expression("NotIn", "tier", &["front"]), false),
            (expression("NotIn", "more", &["x"]), true),
            (expression("Exists", "tier", &[]), true),
            (expression("Exists", "more", &[]), false),
            (expression("DoesNotExist", "more", &[]), true),
            (expression("DoesNotExist", "tier", &[]), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            assert_eq!(selects(&selector, &labels), selected, "{selector}");
        }
        assert!(has_all(&json!({"app": "web"}), &labels));
        assert!(!has_all(&json!({}), &labels));
    }
}

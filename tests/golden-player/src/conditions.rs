//! What steps wait for.

use serde_json::Value;

use super::object::{Comparison, is_active, lookup, members};
use super::recorder::Seen;
use super::resource::Resource;
use super::step::{Test, Wait};

/// Whether what is waited for is there; if not, what there is instead.
pub fn look(wait: &Wait, seen: &Seen) -> Result<(), String> {
    match (wait.count, &wait.name) {
        (Some(wanted), _) => {
            let counted = count(wait, seen);
            let comparison = wait.cmp.unwrap_or(Comparison::Equal);
            let holds = comparison.holds(Some(&counted.into()), &wanted.into());
            holds.then_some(()).ok_or_else(|| format!("{counted} {}", wait.resource))
        }
        (None, Some(name)) => look_at_object(wait, name, seen),
        (None, None) => Err("neither a name nor a count to wait for".to_owned()),
    }
}

/// Whether a rollout has ended, as `kubectl rollout status` judges it (for StatefulSets: of a full
/// rolling update); if not, the status there is.
pub fn look_for_rollout(resource: Resource, name: &str, seen: &Seen) -> Result<(), String> {
    let object = seen.object(resource, name).ok_or_else(|| format!("{resource}/{name}: absent"))?;
    let status = &object["status"];
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_stateful = resource == Resource::StatefulSets;
    let mut counts = vec!["updatedReplicas", "replicas", "availableReplicas"];
    if is_stateful {
        counts.push("readyReplicas");
    }
    let observed =
        number(&status["observedGeneration"]) >= number(&object["metadata"]["generation"]);
    let counted = counts.iter().all(|count| number(&status[count]) == wanted);
    let revised = !is_stateful || status["currentRevision"] == status["updateRevision"];
    (observed && counted && revised).then_some(()).ok_or_else(|| format!("status {status}"))
}

fn look_at_object(wait: &Wait, name: &str, seen: &Seen) -> Result<(), String> {
    let real = real_name(name, seen);
    let object = real.and_then(|name| seen.object(wait.resource, name));
    match object {
        None if wait.gone => Ok(()),
        None => Err(format!("{}/{name}: absent", wait.resource)),
        Some(_) if wait.gone => Err(format!("{}/{name}: still there", wait.resource)),
        Some(object) if holds(&wait.conditions, object) => Ok(()),
        Some(object) => {
            let values = wait.conditions.iter().map(|(path, _, _)| {
                let value = lookup(object, path).map_or("absent".to_owned(), Value::to_string);
                format!("{path}: {value}")
            });
            Err(values.collect::<Vec<_>>().join(", "))
        }
    }
}

fn count(wait: &Wait, seen: &Seen) -> i64 {
    let owner = wait.owner.as_deref().map(|owner| real_name(owner, seen));
    let is_counted = |object: &Value| {
        let owners = members(&object["metadata"]["ownerReferences"]);
        let is_owned = match owner {
            None => true,
            Some(None) => false,
            Some(Some(name)) => owners.iter().any(|owner| owner["name"] == name),
        };
        is_owned && (!wait.active || is_active(object)) && holds(&wait.filter, object)
    };
    seen.objects(wait.resource).filter(|object| is_counted(object)).count() as i64
}

fn holds(tests: &[Test], object: &Value) -> bool {
    tests.iter().all(|(path, comparison, wanted)| comparison.holds(lookup(object, path), wanted))
}

/// The name behind an alias, once there is such an object.
fn real_name<'a>(name: &'a str, seen: &'a Seen) -> Option<&'a str> {
    match name.strip_prefix('@') {
        Some(alias) => seen.aliases.resolve(alias),
        None => Some(name),
    }
}

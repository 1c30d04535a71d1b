//! The order of lists after a strategic merge: `$setElementOrder`.

use serde_json::Value;

/// What tells a list element apart: its merge key, or itself.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> &'a Value {
    match merge_key {
        Some(key) => item.get(key).unwrap_or(&Value::Null),
        None => item,
    }
}

/// Orders `merged`: elements named in `wanted` as there; the others keep their place among the
/// elements that were before them in `original`.
pub(super) fn reorder(
    merged: Vec<Value>,
    wanted: &[Value],
    original: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let position = |list: &[Value], item: &Value| {
        let own = identity(item, merge_key);
        list.iter().position(|other| identity(other, merge_key) == own)
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| position(wanted, item).is_some());
    named.sort_by_key(|item| position(wanted, item));
    others.sort_by_key(|item| position(original, item).unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        match (others.peek(), named.peek()) {
            (Some(other), Some(next)) => {
                let before = match (position(original, other), position(original, next)) {
                    (Some(a), Some(b)) => a < b,
                    _ => false,
                };
                ordered.extend(if before { others.next() } else { named.next() });
            }
            (Some(_), None) => ordered.extend(others.next()),
            (None, Some(_)) => ordered.extend(named.next()),
            (None, None) => return ordered,
        }
    }
}

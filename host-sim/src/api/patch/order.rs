//! The order of lists after a strategic merge: `$setElementOrder`.

use std::collections::HashMap;

use serde_json::Value;

/// What tells a list element apart: its merge key, or itself.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> &'a Value {
    match merge_key {
        Some(key) => item.get(key).unwrap_or(&Value::Null),
        None => item,
    }
}

/// Where the elements of a list are, by what tells them apart; of equal ones, the first.
pub(super) struct Positions<'a>(HashMap<&'a Value, usize>);

impl<'a> Positions<'a> {
    pub(super) fn of(list: &'a [Value], merge_key: Option<&str>) -> Self {
        let mut positions = HashMap::with_capacity(list.len());
        for (position, item) in list.iter().enumerate() {
            positions.entry(identity(item, merge_key)).or_insert(position);
        }
        Self(positions)
    }

    pub(super) fn get(&self, identity: &Value) -> Option<usize> {
        self.0.get(identity).copied()
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
    let (wanted, original) = (Positions::of(wanted, merge_key), Positions::of(original, merge_key));
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let own = identity(&item, merge_key);
        let before = original.get(own);
        match wanted.get(own) {
            Some(position) => named.push((position, before, item)),
            None => others.push((before, item)),
        }
    }
    named.sort_by_key(|(position, ..)| *position);
    others.sort_by_key(|(before, _)| before.unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in named {
        let comes_first =
            |other: &Option<usize>| other.zip(place).is_some_and(|(other, place)| other < place);
        while let Some((_, other)) = others.next_if(|(other, _)| comes_first(other)) {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others.map(|(_, other)| other));
    ordered
}

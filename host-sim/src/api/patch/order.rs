//! The order of lists after a strategic merge: that of the patch, around what only the server has.

use std::collections::HashMap;

use serde_json::Value;

/// What tells a list element apart: its merge key, or itself.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> &'a Value {
    match merge_key {
        Some(key) => item.get(key).unwrap_or(&Value::Null),
        None => item,
    }
}

/// Where the elements of a list are. Both lists of a merge may be long, so nobody searches them.
pub(super) struct Places<'k> {
    merge_key: Option<&'k str>,
    by_identity: HashMap<String, usize>,
}

impl<'k> Places<'k> {
    pub(super) fn of(list: &[Value], merge_key: Option<&'k str>) -> Self {
        let mut places = Self { merge_key, by_identity: HashMap::with_capacity(list.len()) };
        for (place, item) in list.iter().enumerate() {
            places.add(item, place);
        }
        places
    }

    /// Takes an element in, unless there is one like it before.
    pub(super) fn add(&mut self, item: &Value, place: usize) {
        self.by_identity.entry(identity(item, self.merge_key).to_string()).or_insert(place);
    }

    pub(super) fn find(&self, item: &Value) -> Option<usize> {
        self.by_identity.get(&identity(item, self.merge_key).to_string()).copied()
    }
}

/// Orders `merged` as Kubernetes does: elements named in `wanted` as there. Each of the others
/// comes right before the first of those that was behind it in `original`, or at the end: what is
/// new to the server goes before what only the server has.
pub(super) fn reorder(
    merged: Vec<Value>,
    wanted: &[Value],
    original: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let (wanted, original) = (Places::of(wanted, merge_key), Places::of(original, merge_key));
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let before = original.find(&item);
        match wanted.find(&item) {
            Some(place) => named.push((place, before, item)),
            None => others.push((before, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(before, _)| before.unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, next, item) in named {
        while let Some((_, other)) = others.next_if(|(other, _)| is_before(*other, next)) {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others.map(|(_, other)| other));
    ordered
}

/// Whether the elements of `patch` are all in `wanted`, in the same order.
pub(super) fn follows<'a>(
    patch: impl Iterator<Item = &'a Value>,
    wanted: &[Value],
    merge_key: Option<&str>,
) -> bool {
    let mut wanted = wanted.iter();
    let mut patch = patch;
    patch.all(|item| {
        let own = identity(item, merge_key);
        wanted.any(|other| identity(other, merge_key) == own)
    })
}

/// Whether the server knows both, in this order.
fn is_before(other: Option<usize>, next: Option<usize>) -> bool {
    matches!((other, next), (Some(other), Some(next)) if other < next)
}

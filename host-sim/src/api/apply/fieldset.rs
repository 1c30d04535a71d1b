//! Sets of field paths, in the form `fieldsV1` writes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of paths as a tree. Keys are path elements as `fieldsV1` spells them: `f:name` for a field,
/// `k:{"name":"a"}` for an element of a keyed list, `v:"a"` for an element of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeMap<String, Node>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Whether the path up to here is in the set itself.
    member: bool,
    children: FieldSet,
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `fieldsV1`.
    pub(super) fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                continue;
            }
            let children = Self::read(below);
            let member = children.is_empty() || below.get(".").is_some();
            set.0.insert(element.clone(), Node { member, children });
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(super) fn write(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.0 {
            let mut below = node.children.write();
            if let (true, false, Value::Object(map)) =
                (node.member, node.children.is_empty(), &mut below)
            {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.clone(), below);
        }
        Value::Object(fields)
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        if let Some((first, rest)) = path.split_first() {
            let node = self.0.entry(first.clone()).or_default();
            if rest.is_empty() {
                node.member = true;
            } else {
                node.children.insert(rest);
            }
        }
    }

    /// Adds an element with what is below it.
    pub(super) fn attach(&mut self, element: String, member: bool, children: FieldSet) {
        self.0.insert(element, Node { member, children });
    }

    /// Takes the members of another set out of this one.
    pub(super) fn subtract(&mut self, other: &Self) {
        for (element, theirs) in &other.0 {
            let Some(mine) = self.0.get_mut(element) else { continue };
            mine.member &= !theirs.member;
            mine.children.subtract(&theirs.children);
            if !mine.member && mine.children.is_empty() {
                self.0.remove(element);
            }
        }
    }

    /// The set below a path element, if anything is there.
    pub(super) fn below(&self, element: &str) -> Option<&FieldSet> {
        self.0.get(element).map(|node| &node.children)
    }

    /// Whether a path of one element is in the set.
    pub(super) fn has(&self, element: &str) -> bool {
        self.0.get(element).is_some_and(|node| node.member)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        for (element, node) in &other.0 {
            let mine = result.0.entry(element.clone()).or_default();
            mine.member |= node.member;
            mine.children = mine.children.union(&node.children);
        }
        result
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.subtract(other);
        result
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self::default();
        for (element, node) in &self.0 {
            if let Some(theirs) = other.0.get(element) {
                let children = node.children.intersection(&theirs.children);
                result.keep(element, Node { member: node.member && theirs.member, children });
            }
        }
        result
    }

    /// What is in this set neither as a member of `other` nor below one.
    pub(super) fn difference_deep(&self, other: &Self) -> Self {
        let mut result = Self::default();
        for (element, node) in &self.0 {
            match other.0.get(element) {
                Some(theirs) if theirs.member => {}
                Some(theirs) => {
                    let children = node.children.difference_deep(&theirs.children);
                    result.keep(element, Node { member: node.member, children });
                }
                None => result.keep(element, node.clone()),
            }
        }
        result
    }

    /// What nobody in `keep` has anything of: each such path, with all that is below it.
    ///
    /// A struct of which nobody owns a field any more goes as a whole, so that defaults that were
    /// filled into it do not stay behind.
    pub(super) fn abandoned(&self, keep: &Self) -> Self {
        let mut result = Self::default();
        for (element, node) in &self.0 {
            let left = match keep.0.get(element) {
                None => Node { member: true, children: Self::default() },
                Some(kept) => {
                    Node { member: false, children: node.children.abandoned(&kept.children) }
                }
            };
            result.keep(element, left);
        }
        result
    }

    /// The members as text: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        for (element, node) in &self.0 {
            let path = format!("{prefix}{}", element_text(element));
            node.children.collect(&path, paths);
            if node.member {
                paths.push(path);
            }
        }
    }

    fn keep(&mut self, element: &str, node: Node) {
        if node.member || !node.children.is_empty() {
            self.0.insert(element.to_owned(), node);
        }
    }
}

/// A path element as conflict messages write it.
fn element_text(element: &str) -> String {
    let (kind, rest) = element.split_once(':').unwrap_or(("f", element));
    match kind {
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("[{}]", keys.join(","))
        }
        "v" => format!("[={rest}]"),
        "i" => format!("[{rest}]"),
        _ => format!(".{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            set.insert(&path);
        }
        set
    }

    #[test]
    fn sets_read_and_write_fields_v1() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}},
                       "f:replicas": {}}});
        assert_eq!(FieldSet::read(&fields).write(), fields);
        assert_eq!(
            FieldSet::read(&fields).paths(),
            [
                ".metadata.labels.app",
                ".metadata.labels",
                ".spec.containers[name=\"a\"].image",
                ".spec.containers[name=\"a\"]",
                ".spec.replicas",
            ]
        );
    }

    #[test]
    fn what_others_own_below_is_kept() {
        let mine = set(&["f:a", "f:a/f:b", "f:a/f:c", "f:d"]);
        let others = set(&["f:a/f:c"]);
        assert_eq!(mine.abandoned(&others), set(&["f:a/f:b", "f:d"]));
        assert_eq!(set(&["f:a/f:b/f:c"]).abandoned(&set(&["f:d"])), set(&["f:a"]));
        assert_eq!(mine.difference_deep(&set(&["f:a"])), set(&["f:d"]));
    }

    fn any_set() -> impl Strategy<Value = FieldSet> {
        let path = prop::collection::vec("f:[a-c]", 1..4);
        prop::collection::vec(path, 0..8).prop_map(|paths| {
            let mut set = FieldSet::default();
            paths.iter().for_each(|path| set.insert(path));
            set
        })
    }

    proptest! {
        #[test]
        fn sets_obey_the_laws_of_sets(a in any_set(), b in any_set()) {
            let members = |s: &FieldSet| s.paths().into_iter().collect::<std::collections::BTreeSet<_>>();
            let (x, y) = (members(&a), members(&b));
            prop_assert_eq!(members(&a.union(&b)), x.union(&y).cloned().collect());
            prop_assert_eq!(members(&a.difference(&b)), x.difference(&y).cloned().collect());
            prop_assert_eq!(members(&a.intersection(&b)), x.intersection(&y).cloned().collect());
            prop_assert_eq!(FieldSet::read(&a.write()), a);
        }
    }
}

//! Sets of field paths, in the form `fieldsV1` writes them.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// A set of paths as a tree. Keys are path elements as `fieldsV1` spells them: `f:name` for a field,
/// `k:{"name":"a"}` for an element of a keyed list, `v:"a"` for an element of a set.
///
/// Every write of an object makes some of these, so they are sorted vectors, which cost far less to
/// make and to drop than maps, and operations take their operands apart where they can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(Vec<(String, Node)>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Whether the path up to here is in the set itself.
    member: bool,
    children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `fieldsV1`.
    pub(super) fn read(fields: &Value) -> Self {
        let Value::Object(fields) = fields else { return Self::default() };
        let elements = fields.iter().filter(|(element, _)| *element != ".");
        // A JSON object has its members in order.
        let nodes = elements.map(|(element, below)| {
            let children = Self::read(below);
            let member = children.is_empty() || below.get(".").is_some();
            (element.clone(), Node { member, children })
        });
        Self(nodes.collect())
    }

    /// Writes `fieldsV1`.
    pub(super) fn write(self) -> Map<String, Value> {
        let members = self.0.into_iter().map(|(element, node)| {
            let dot = node.member && !node.children.is_empty();
            let mut below = node.children.write();
            if dot {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element, Value::Object(below))
        });
        members.collect()
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        if let Some((first, rest)) = path.split_first() {
            let node = self.entry(first);
            if rest.is_empty() {
                node.member = true;
            } else {
                node.children.insert(rest);
            }
        }
    }

    /// Adds an element with what is below it.
    pub(super) fn attach(&mut self, element: String, member: bool, children: FieldSet) {
        let node = Node { member, children };
        match self.0.last() {
            // Objects are mostly walked in order.
            Some((last, _)) if *last >= element => match self.position(&element) {
                Ok(at) => self.0[at].1 = node,
                Err(at) => self.0.insert(at, (element, node)),
            },
            _ => self.0.push((element, node)),
        }
    }

    /// Takes the members of another set out of this one.
    pub(super) fn subtract(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.0.retain_mut(|(element, mine)| {
            if let Some(theirs) = other.get(element) {
                mine.member &= !theirs.member;
                mine.children.subtract(&theirs.children);
            }
            !mine.is_empty()
        });
    }

    /// The set below a path element, if anything is there.
    pub(super) fn below(&self, element: &str) -> Option<&FieldSet> {
        self.get(element).map(|node| &node.children)
    }

    /// Whether a path of one element is in the set.
    pub(super) fn has(&self, element: &str) -> bool {
        self.get(element).is_some_and(|node| node.member)
    }

    pub(super) fn union(self, other: Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        let mut result = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut mine, mut theirs) = (self.0.into_iter(), other.0.into_iter());
        let (mut left, mut right) = (mine.next(), theirs.next());
        while let (Some((a, _)), Some((b, _))) = (&left, &right) {
            match a.cmp(b) {
                Ordering::Less => result.extend(std::mem::replace(&mut left, mine.next())),
                Ordering::Greater => result.extend(std::mem::replace(&mut right, theirs.next())),
                Ordering::Equal => {
                    let both = left.take().zip(right.take());
                    result.extend(both.map(|((element, a), (_, b))| {
                        let children = a.children.union(b.children);
                        (element, Node { member: a.member || b.member, children })
                    }));
                    (left, right) = (mine.next(), theirs.next());
                }
            }
        }
        result.extend(left.into_iter().chain(mine));
        result.extend(right.into_iter().chain(theirs));
        Self(result)
    }

    pub(super) fn difference(mut self, other: &Self) -> Self {
        self.subtract(other);
        self
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self::default();
        for (element, node) in &self.0 {
            if let Some(theirs) = other.get(element) {
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
            match other.get(element) {
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
            let left = match keep.get(element) {
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

    /// Appends an element that comes after all others, unless nothing is there.
    fn keep(&mut self, element: &str, node: Node) {
        if !node.is_empty() {
            self.0.push((element.to_owned(), node));
        }
    }

    fn get(&self, element: &str) -> Option<&Node> {
        self.position(element).ok().map(|at| &self.0[at].1)
    }

    /// The node of an element, made if it is absent.
    fn entry(&mut self, element: &str) -> &mut Node {
        let at = self.position(element).unwrap_or_else(|at| {
            self.0.insert(at, (element.to_owned(), Node::default()));
            at
        });
        &mut self.0[at].1
    }

    fn position(&self, element: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(element))
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
        assert_eq!(Value::Object(FieldSet::read(&fields).write()), fields);
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
            prop_assert_eq!(members(&a.clone().union(b.clone())), x.union(&y).cloned().collect());
            prop_assert_eq!(members(&a.clone().difference(&b)), x.difference(&y).cloned().collect());
            prop_assert_eq!(members(&a.intersection(&b)), x.intersection(&y).cloned().collect());
            prop_assert_eq!(FieldSet::read(&Value::Object(a.clone().write())), a);
        }
    }
}

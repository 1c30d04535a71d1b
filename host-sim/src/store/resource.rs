//! All objects of one resource, and its recent past.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::entry::Entry;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

/// One change, shared by every watcher that looks at it.
#[derive(Clone, Debug)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The new version; for a deletion the final state, under the deletion's revision.
    pub entry: Arc<Entry>,
    /// The version before; absent for a creation.
    pub previous: Option<Arc<Entry>>,
}

/// How much of the past is kept per resource; whichever bound is reached first drops the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Number of changes.
    pub changes: usize,
    /// Bytes of JSON that only the history keeps alive.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { changes: 20_000, bytes: 24 << 20 }
    }
}

/// The revision asked for has been dropped from the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest revision from which the past is still known.
    pub oldest: u64,
}

/// Objects by key and the bounded list of changes that led to them.
#[derive(Debug, Default)]
pub struct Resource {
    objects: BTreeMap<Arc<str>, Arc<Entry>>,
    history: VecDeque<Change>,
    history_bytes: usize,
    /// Every change after this revision is in `history`.
    compacted: u64,
}

impl Resource {
    /// The current version of an object.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.objects.get(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Current objects whose key starts with `prefix` and, if given, comes after `after`.
    pub fn range<'a>(
        &'a self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let after = after.filter(|after| *after >= prefix);
        let from = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let end = end_of(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let is_beyond = after.zip(end.as_deref()).is_some_and(|(after, end)| after >= end);
        let range = (!is_beyond).then(|| self.objects.range::<str, _>((from, to)));
        range.into_iter().flatten().map(|(_, entry)| entry)
    }

    /// The same range as it was at `revision`.
    pub fn range_at<'a>(
        &'a self,
        revision: u64,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<impl Iterator<Item = &'a Arc<Entry>>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        // Walking back from now, the last value written per key is the state at `revision`.
        let mut undone: BTreeMap<&str, Option<&Arc<Entry>>> = BTreeMap::new();
        for change in self.history.iter().rev() {
            if change.entry.revision <= revision {
                break;
            }
            let key = &*change.entry.key;
            if key.starts_with(prefix) && after.is_none_or(|after| key > after) {
                undone.insert(key, change.previous.as_ref());
            }
        }
        let mut undone = undone.into_iter().peekable();
        let mut current = self.range(prefix, after).peekable();
        Ok(std::iter::from_fn(move || {
            loop {
                let next = current.peek().map(|entry| &*entry.key);
                match undone.next_if(|(key, _)| next.is_none_or(|next| *key <= next)) {
                    Some((key, before)) => {
                        current.next_if(|entry| &*entry.key == key);
                        // It was not there yet if there is nothing before.
                        if before.is_some() {
                            return before;
                        }
                    }
                    None => return current.next(),
                }
            }
        }))
    }

    /// Changes after `revision`, oldest first.
    pub fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        let start = self.history.partition_point(|change| change.entry.revision <= revision);
        Ok(self.history.range(start..))
    }

    /// The revision of the latest change that is still known.
    pub fn last_revision(&self) -> u64 {
        self.history.back().map_or(self.compacted, |change| change.entry.revision)
    }

    /// Every change after this revision is known.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Takes a change in and drops what the limits no longer allow; says which revisions.
    pub(super) fn apply(&mut self, change: Change, limits: HistoryLimits) -> Vec<u64> {
        match change.kind {
            ChangeKind::Added | ChangeKind::Modified => {
                self.objects.insert(change.entry.key.clone(), change.entry.clone());
            }
            ChangeKind::Deleted => {
                self.objects.remove(&change.entry.key);
            }
        }
        self.remember(change, limits)
    }

    /// Puts an object back that was read from disk.
    pub(super) fn restore(&mut self, entry: Arc<Entry>) {
        self.objects.insert(entry.key.clone(), entry);
    }

    /// Appends to the history without touching the objects.
    pub(super) fn remember(&mut self, change: Change, limits: HistoryLimits) -> Vec<u64> {
        self.history_bytes += held_by_history(&change);
        self.history.push_back(change);
        let mut forgotten = Vec::new();
        while self.history.len() > limits.changes || self.history_bytes > limits.bytes {
            let Some(revision) = self.forget_oldest() else { break };
            forgotten.push(revision);
        }
        forgotten
    }

    /// Drops every change up to `revision`; says which they were.
    pub(super) fn compact(&mut self, revision: u64) -> Vec<u64> {
        let mut forgotten = Vec::new();
        while self.history.front().is_some_and(|change| change.entry.revision <= revision) {
            forgotten.extend(self.forget_oldest());
        }
        self.compacted = self.compacted.max(revision);
        forgotten
    }

    fn forget_oldest(&mut self) -> Option<u64> {
        let change = self.history.pop_front()?;
        self.history_bytes -= held_by_history(&change);
        self.compacted = change.entry.revision;
        Some(change.entry.revision)
    }
}

/// The first key after all those that start with `prefix`; `None` if all keys do.
///
/// With it a range ends by itself, and counting what is left of one looks at no object.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(beyond) = (last..=char::MAX).nth(1) {
            end.push(beyond);
            return Some(end);
        }
    }
    None
}

/// A superseded version lives only in the history; so does the final state of a deleted object.
fn held_by_history(change: &Change) -> usize {
    let previous = change.previous.as_ref().map_or(0, |entry| entry.json.len());
    let last = if change.kind == ChangeKind::Deleted { change.entry.json.len() } else { 0 };
    previous + last
}

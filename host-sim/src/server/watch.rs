//! Watches: cursors into the history of a resource.
//!
//! A watch holds no queue. It remembers up to which revision it has told its client and reads on
//! from the shared history when the client has taken what it was given, so a slow reader costs
//! nothing; if the history has moved past it, it ends with 410 and the client lists again.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::field::{FieldErrors, Path};
use crate::api::status::Status;
use crate::random::Random;
use crate::store::{Change, ChangeKind, Entry, Store};
use crate::time::Timestamp;

use super::list::Scope;
use super::options::{Options, VersionMatch};
use super::render::Renderer;

/// Bookmarks come about once a minute.
const BOOKMARK_MILLIS: i64 = 60_000;
/// The last bookmark comes this long before the end.
const LAST_BOOKMARK_MILLIS: i64 = 2_000;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Whether a watch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// More may come.
    Open,
    /// Nothing more comes; the stream is to be closed after what was written.
    Ended,
}

/// One client's place in the history of a resource.
#[derive(Debug)]
pub struct Watch {
    scope: Scope,
    renderer: Renderer,
    /// Objects that are still to be told as ADDED.
    initial: std::vec::IntoIter<Arc<Entry>>,
    /// Everything up to this revision has been told.
    cursor: u64,
    bookmarks: bool,
    announce_initial_end: bool,
    next_bookmark: Timestamp,
    deadline: Timestamp,
    ended: bool,
}

impl Watch {
    /// Checks the options and starts a watch.
    pub fn start(
        store: &Store,
        now: Timestamp,
        scope: Scope,
        options: &Options,
        renderer: Renderer,
        random: &mut Random,
    ) -> Result<Self, Status> {
        check_options(options)?;
        let newest = store.revision();
        let wanted = options.resource_version.unwrap_or(0);
        if wanted > newest {
            return Err(Status::version_too_large(wanted, newest));
        }
        let with_state = options.send_initial_events.unwrap_or(wanted == 0);
        let (initial, cursor) = if with_state {
            let entries = store.resource(scope.id).range(&scope.prefix, None);
            let matching = entries.filter(|entry| scope.filter.matches(entry)).cloned();
            (matching.collect(), newest)
        } else if wanted == 0 {
            (Vec::new(), newest)
        } else {
            let compacted = store.resource(scope.id).compacted();
            if wanted < compacted {
                return Err(Status::too_old(wanted, compacted));
            }
            (Vec::new(), wanted)
        };
        let seconds = match options.timeout_seconds {
            Some(seconds) if seconds > 0 => i64::try_from(seconds).unwrap_or(i64::MAX / 4000),
            _ => 1800 + random.below(1801) as i64,
        };
        Ok(Self {
            scope,
            renderer,
            initial: initial.into_iter(),
            cursor,
            bookmarks: options.allow_watch_bookmarks,
            announce_initial_end: options.send_initial_events == Some(true)
                && options.allow_watch_bookmarks,
            next_bookmark: now.plus_millis(BOOKMARK_MILLIS),
            deadline: now.plus_seconds(seconds),
            ended: false,
        })
    }

    /// Writes what the client has not been told yet, until `out` has about `limit` bytes.
    pub fn fill(
        &mut self,
        store: &Store,
        now: Timestamp,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> WatchState {
        if self.ended {
            return WatchState::Ended;
        }
        self.renderer.set_now(now);
        while out.len() < limit {
            let Some(entry) = self.initial.next() else { break };
            self.renderer.event(b"ADDED", &entry, out);
        }
        if out.len() >= limit {
            return WatchState::Open;
        }
        if self.announce_initial_end && self.cursor <= store.durable() {
            self.announce_initial_end = false;
            self.bookmark(json!({INITIAL_EVENTS_END: "true"}), out);
        }
        if let Err(status) = self.fill_changes(store, out, limit) {
            self.renderer.error(&status.to_value(), out);
            self.ended = true;
            return WatchState::Ended;
        }
        if out.len() >= limit {
            return WatchState::Open;
        }
        let last_bookmark = self.deadline.plus_millis(-LAST_BOOKMARK_MILLIS);
        if self.bookmarks && now >= self.next_bookmark.min(last_bookmark) {
            self.bookmark(Value::Null, out);
            // After the last one there is none before the end.
            self.next_bookmark = now.plus_millis(BOOKMARK_MILLIS);
            if now >= last_bookmark {
                self.bookmarks = false;
            }
        }
        if now >= self.deadline {
            self.ended = true;
            return WatchState::Ended;
        }
        WatchState::Open
    }

    /// When to look again although nothing has changed.
    pub fn wake_at(&self) -> Timestamp {
        if self.bookmarks {
            let last_bookmark = self.deadline.plus_millis(-LAST_BOOKMARK_MILLIS);
            self.next_bookmark.min(last_bookmark)
        } else {
            self.deadline
        }
    }

    fn fill_changes(
        &mut self,
        store: &Store,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Status> {
        let resource = store.resource(self.scope.id);
        let durable = store.durable();
        let changes = resource
            .changes_after(self.cursor)
            .map_err(|gone| Status::too_old(self.cursor, gone.oldest))?;
        let mut told = self.cursor;
        let mut complete = true;
        for change in changes.take_while(|change| change.entry.revision <= durable) {
            if out.len() >= limit {
                complete = false;
                break;
            }
            told = change.entry.revision;
            if let Some((kind, entry)) = self.scope.see(change) {
                match kind {
                    ChangeKind::Added => self.renderer.event(b"ADDED", entry, out),
                    ChangeKind::Modified => self.renderer.event(b"MODIFIED", entry, out),
                    ChangeKind::Deleted if entry.revision == told => {
                        self.renderer.event(b"DELETED", entry, out);
                    }
                    ChangeKind::Deleted => self.renderer.departed(entry, told, out),
                }
            }
        }
        // Nothing of this resource happened up to `durable`, so bookmarks may say so.
        self.cursor = if complete { told.max(durable) } else { told };
        Ok(())
    }

    fn bookmark(&mut self, annotations: Value, out: &mut Vec<u8>) {
        let kind = self.scope.kind;
        let mut metadata = json!({
            "resourceVersion": self.cursor.to_string(),
            "creationTimestamp": null,
        });
        if !annotations.is_null() {
            metadata["annotations"] = annotations;
        }
        self.renderer.bookmark(
            &json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata}),
            out,
        );
    }
}

impl Scope {
    /// What a change looks like through this scope: an object that starts to match is added, one
    /// that no longer matches is deleted in its previous state.
    fn see<'a>(&self, change: &'a Change) -> Option<(ChangeKind, &'a Arc<Entry>)> {
        if !change.entry.key.starts_with(&self.prefix) {
            return None;
        }
        let matches = |entry: &Arc<Entry>| self.filter.matches(entry);
        let matched = change.previous.as_ref().is_some_and(matches);
        match (matched, change.kind) {
            (true, ChangeKind::Deleted) => Some((ChangeKind::Deleted, &change.entry)),
            (false, ChangeKind::Deleted) => None,
            (matched, _) => match (matched, matches(&change.entry)) {
                (false, true) => Some((ChangeKind::Added, &change.entry)),
                (true, true) => Some((ChangeKind::Modified, &change.entry)),
                (true, false) => Some((ChangeKind::Deleted, change.previous.as_ref()?)),
                (false, false) => None,
            },
        }
    }
}

fn check_options(options: &Options) -> Result<(), Status> {
    let mut errors = FieldErrors::new();
    let at = Path::new("resourceVersionMatch");
    if options.send_initial_events.is_some() {
        if options.resource_version_match != Some(VersionMatch::NotOlderThan) {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.forbidden(&at, why);
        }
    } else if options.resource_version_match.is_some() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.forbidden(&at, why);
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid_kind("meta.k8s.io", "ListOptions", "", &errors))
    }
}

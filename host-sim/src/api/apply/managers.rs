//! Who manages which fields: reading, changing and writing `metadata.managedFields`.

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use crate::api::kind::Kind;
use crate::api::object::{at, text};
use crate::api::status::Cause;
use crate::time::Timestamp;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// What tells managers apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManagerId {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl ManagerId {
    /// An applier stays the same when it changes the version it applies.
    fn is(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

#[derive(Clone, Debug)]
struct Entry {
    id: ManagerId,
    time: String,
    fields: FieldSet,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(Vec<Entry>);

/// A field that a manager owns and somebody else wants to change.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    id: ManagerId,
    path: String,
}

impl Managers {
    /// Reads `managedFields`; entries that mean nothing are dropped.
    pub(super) fn read(entries: &[Value]) -> Self {
        let entry = |entry: &Value| {
            let operation = match text(entry, "operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            Some(Entry {
                id: ManagerId {
                    manager: text(entry, "manager").to_owned(),
                    operation,
                    api_version: text(entry, "apiVersion").to_owned(),
                    subresource: text(entry, "subresource").to_owned(),
                },
                time: text(entry, "time").to_owned(),
                fields: FieldSet::read(at(entry, &["fieldsV1"])),
            })
        };
        Self(entries.iter().filter_map(entry).collect())
    }

    /// Writes `managedFields`: applies first, then by time and name; null if there is nothing.
    pub(super) fn write(mut self) -> Value {
        self.0.retain(|entry| !entry.fields.is_empty());
        self.0.sort_by(|a, b| a.order().cmp(&b.order()));
        if self.0.is_empty() {
            return Value::Null;
        }
        self.0.into_iter().map(Entry::write).collect()
    }

    pub(super) fn fields_of(&self, id: &ManagerId) -> FieldSet {
        let found = self.0.iter().find(|entry| entry.id.is(id));
        found.map(|entry| entry.fields.clone()).unwrap_or_default()
    }

    /// What all others own.
    pub(super) fn others(&self, id: &ManagerId) -> FieldSet {
        let others = self.0.iter().filter(|entry| !entry.id.is(id));
        others.fold(FieldSet::default(), |all, entry| all.union(entry.fields.clone()))
    }

    /// Adds to what a manager owns and takes away from it; the time changes only with it.
    pub(super) fn update(
        &mut self,
        id: ManagerId,
        written: FieldSet,
        removed: &FieldSet,
        now: Timestamp,
    ) {
        let Some(entry) = self.0.iter_mut().find(|entry| entry.id.is(&id)) else {
            if !written.is_empty() {
                self.0.push(Entry { id, time: now.to_rfc3339(), fields: written });
            }
            return;
        };
        let fields = entry.fields.clone().difference(removed).union(written);
        if entry.fields != fields {
            entry.fields = fields;
            entry.time = now.to_rfc3339();
        }
    }

    /// Sets what an applier owns, with the version it applied.
    pub(super) fn put_applied(
        &mut self,
        id: ManagerId,
        fields: FieldSet,
        changed: Option<Timestamp>,
        kind: &Kind,
    ) {
        let api_version = kind.api_version();
        match self.0.iter_mut().find(|entry| entry.id.is(&id)) {
            Some(entry) => {
                entry.fields = fields;
                entry.id.api_version = api_version;
                if let Some(now) = changed {
                    entry.time = now.to_rfc3339();
                }
            }
            None => {
                let time = changed.map(Timestamp::to_rfc3339).unwrap_or_default();
                self.0.push(Entry { id: ManagerId { api_version, ..id }, time, fields });
            }
        }
    }

    /// Fields that somebody else writes or removes are no longer owned by those who had them.
    pub(super) fn take_from_others(
        &mut self,
        id: &ManagerId,
        api_version: &str,
        written: &FieldSet,
        removed: &FieldSet,
    ) {
        let others = self.0.iter_mut().filter(|e| !e.id.is(id) && e.id.api_version == api_version);
        for entry in others {
            entry.fields.subtract(written);
            entry.fields.subtract(removed);
        }
    }

    /// Which of the fields `asked` for others own.
    pub(super) fn conflicts(
        &self,
        id: &ManagerId,
        api_version: &str,
        asked: &FieldSet,
    ) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for entry in &self.0 {
            if entry.id.is(id) || entry.id.api_version != api_version {
                continue;
            }
            for path in entry.fields.intersection(asked).paths() {
                conflicts.push(Conflict { id: entry.id.clone(), path });
            }
        }
        conflicts
    }
}

impl Entry {
    fn order(&self) -> (Operation, &str, &str, &str, &str) {
        let id = &self.id;
        (id.operation, &self.time, &id.manager, &id.api_version, &id.subresource)
    }

    fn write(self) -> Value {
        let operation = match self.id.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = Map::new();
        let mut set = |name: &str, text: String| {
            if !text.is_empty() {
                entry.insert(name.to_owned(), Value::String(text));
            }
        };
        set("manager", self.id.manager);
        set("operation", operation.to_owned());
        set("apiVersion", self.id.api_version);
        set("time", self.time);
        set("subresource", self.id.subresource);
        set("fieldsType", "FieldsV1".to_owned());
        entry.insert("fieldsV1".to_owned(), Value::Object(self.fields.write()));
        Value::Object(entry)
    }
}

impl Conflict {
    fn manager(&self) -> String {
        let mut text = format!("\"{}\"", self.id.manager);
        if !self.id.subresource.is_empty() {
            text = format!("{text} with subresource \"{}\"", self.id.subresource);
        }
        match self.id.operation {
            Operation::Apply => text,
            Operation::Update => format!("{text} using {}", self.id.api_version),
        }
    }

    /// The conflict as a cause of a Status.
    pub(super) fn cause(&self) -> Cause {
        Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", self.manager()),
            field: self.path.clone(),
        }
    }
}

/// What upstream says about conflicts.
pub(super) fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.manager(),
            only.path
        );
    }
    let mut managers: Vec<String> = conflicts.iter().map(Conflict::manager).collect();
    managers.sort();
    managers.dedup();
    let mut parts = Vec::new();
    for manager in managers {
        let paths = conflicts.iter().filter(|c| c.manager() == manager);
        let paths: Vec<String> = paths.map(|c| format!("- {}", c.path)).collect();
        parts.push(format!("conflicts with {manager}:\n{}", paths.join("\n")));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), parts.join("\n"))
}

//! Replacing objects and their status: the rules that PUT and PATCH share.

use std::sync::Arc;

use serde_json::Value;

use crate::api::decode::Decoded;
use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId, object_key};
use crate::time::Timestamp;

use super::call::Call;
use super::create::{Stored, settle_namespace};
use super::response::Response;
use super::{Server, rules};

/// Which object is written, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'a> {
    /// The kind in whose form the object is stored.
    pub(super) kind: &'static Kind,
    /// Where it is stored.
    pub(super) id: ResourceId,
    /// Its key.
    pub(super) key: &'a str,
    /// The subresource through which it is written; empty for the object itself.
    pub(super) subresource: &'a str,
    /// Whether nothing is to be kept.
    pub(super) dry_run: bool,
}

impl Server {
    /// PUT of an object or its status.
    pub(super) fn update(&mut self, now: Timestamp, mut call: Call) -> Result<Response, Status> {
        let Decoded { object, warnings } = call.take_object()?;
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let stored_kind = self.resources.kind_of(id);
        let namespace = target.namespace.clone();
        let key = object_key(&namespace, &target.name);
        let mut object = rules::to_storage(kind, object);
        settle_namespace(&mut object, &namespace)?;
        settle_name(&mut object, &target.name)?;
        let Some(current) = self.store.get(id, &key).cloned() else {
            if kind.create_on_update && target.subresource.is_empty() {
                refuse_preconditions_on_create(kind, &target.name, &object)?;
                let object = rules::from_storage(kind, object);
                let stored = self.create_object(now, &call, &namespace, object)?;
                return Ok(self.answer_object(now, 201, &call, stored).with_warnings(&warnings));
            }
            return Err(Status::not_found(kind, &target.name));
        };
        let given = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if given.is_empty() && !kind.unconditional_update {
            return Err(rules::version_required(kind, &target.name));
        }
        let write = Write {
            kind: stored_kind,
            id,
            key: &key,
            subresource: &target.subresource,
            dry_run: call.options.dry_run,
        };
        let old = current.parse();
        let stored = self.replace(now, write, &current, old, object, |new, old| {
            rules::manage_update(stored_kind, new, old, call.writer(now)?);
            Ok(())
        })?;
        Ok(self.answer_object(now, 200, &call, stored).with_warnings(&warnings))
    }

    /// Puts `new` in the place of `current`, if the rules of its kind allow it.
    ///
    /// `manage` records who owns which field, after the kind's rules have decided what of the
    /// new object counts.
    pub(super) fn replace(
        &mut self,
        now: Timestamp,
        write: Write<'_>,
        current: &Arc<Entry>,
        old: Value,
        mut new: Value,
        manage: impl FnOnce(&mut Value, &Value) -> Result<(), Status>,
    ) -> Result<Stored, Status> {
        let Write { kind, id, key, subresource, dry_run } = write;
        check_preconditions(kind, current, &new)?;
        rules::prepare_update(kind, subresource, &mut new, &old);
        self.admit_update(kind, &mut new, &old);
        if self.managed_fields {
            manage(&mut new, &old)?;
        }
        rules::validate_update(kind, subresource, &new, &old)?;
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if ends_with_its_finalizers(kind, &new) {
            if dry_run {
                return Ok(Stored::DryRun(new));
            }
            // The deletion is told with the state before: who watches sees which finalizer was
            // the last.
            let mut last = old;
            let removed = self.commit_removal(now, id, key, &mut last);
            return Ok(removed.map_or(Stored::DryRun(last), Stored::Entry));
        }
        if new == old {
            return Ok(Stored::Entry(current.clone()));
        }
        if dry_run {
            return Ok(Stored::DryRun(new));
        }
        Ok(Stored::Entry(self.commit(now, id, key, &mut new)))
    }

    /// A change that the cluster itself makes to an object, past the rules for clients.
    /// Nothing is written if `change` changes nothing.
    pub(super) fn amend(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        current: &Arc<Entry>,
        change: impl FnOnce(&mut Value),
    ) -> Option<Arc<Entry>> {
        let old = current.parse();
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return None;
        }
        let kind = self.resources.kind_of(id);
        if ends_with_its_finalizers(kind, &new) {
            let mut last = old;
            return self.commit_removal(now, id, &current.key, &mut last);
        }
        Some(self.commit(now, id, &current.key, &mut new))
    }
}

/// An object that waited for its finalizers goes when the last one is taken away.
pub(super) fn ends_with_its_finalizers(kind: &Kind, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let none = |finalizers: &Value| finalizers.as_array().is_none_or(Vec::is_empty);
    metadata["deletionTimestamp"].is_string()
        && grace == 0
        && none(&metadata["finalizers"])
        && (kind.kind != "Namespace" || none(&object["spec"]["finalizers"]))
}

fn check_preconditions(kind: &Kind, current: &Entry, new: &Value) -> Result<(), Status> {
    let metadata = &new["metadata"];
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != &*current.uid {
        return Err(Status::uid_precondition(kind, current.name(), uid, &current.uid));
    }
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    if version.is_empty() || version == "0" {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        return Err(rules::version_malformed(kind, current.name(), version));
    }
    if version != current.revision.to_string() {
        return Err(Status::modified(kind, current.name()));
    }
    Ok(())
}

fn settle_name(object: &mut Value, name: &str) -> Result<(), Status> {
    let given = object["metadata"]["name"].as_str().unwrap_or_default();
    if given.is_empty() {
        object["metadata"]["name"] = Value::String(name.to_owned());
    } else if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// A PUT that may create must not carry the identity of an object that is gone.
fn refuse_preconditions_on_create(kind: &Kind, name: &str, object: &Value) -> Result<(), Status> {
    let metadata = &object["metadata"];
    if let Some(uid) = metadata["uid"].as_str().filter(|uid| !uid.is_empty()) {
        return Err(Status::uid_precondition(kind, name, uid, ""));
    }
    match metadata["resourceVersion"].as_str() {
        None | Some("" | "0") => Ok(()),
        Some(_) => Err(Status::not_found(kind, name)),
    }
}

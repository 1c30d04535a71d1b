//! Deleting objects: grace periods, finalizers, propagation and preconditions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId, object_key};
use crate::time::Timestamp;

use super::call::{Body, Call};
use super::create::Stored;
use super::filter::Filter;
use super::list::{self, Scope};
use super::response::Response;
use super::{Server, rules};

/// The finalizer of objects whose dependents are to be left alone.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of objects that wait for their dependents to go.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What is to become of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They lose their owner and stay.
    Orphan,
    /// They go first.
    Foreground,
    /// They go afterwards.
    Background,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    pub(super) grace_period_seconds: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) propagation: Option<Propagation>,
    /// `orphanDependents: false`, the old way to ask for a cascade; it changes the status code.
    pub(super) cascade_asked: bool,
    pub(super) dry_run: bool,
}

/// What became of an object.
#[derive(Debug)]
pub(super) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Entry>),
    /// It is on its way out.
    Pending(Arc<Entry>),
    /// It would have looked like this.
    DryRun(Value),
}

impl Server {
    /// DELETE of one object.
    pub(super) fn delete(&mut self, now: Timestamp, call: &Call) -> Result<Response, Status> {
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let options = DeleteOptions::of(call)?;
        let key = object_key(&target.namespace, &target.name);
        let uid = match self.store.get(id, &key) {
            Some(entry) => entry.uid.clone(),
            None => return Err(Status::not_found(kind, &target.name)),
        };
        let deleted = self.delete_object(now, id, &key, &options)?;
        Ok(match deleted {
            Deleted::Gone(_) if !returns_deleted_object(kind) => {
                Response::value(200, &Status::deleted(kind, &target.name, &uid))
            }
            Deleted::Gone(entry) => self.answer_object(now, 200, call, Stored::Entry(entry)),
            Deleted::Pending(entry) => {
                let status = if options.cascade_asked { 202 } else { 200 };
                self.answer_object(now, status, call, Stored::Entry(entry))
            }
            Deleted::DryRun(object) => self.answer_object(now, 200, call, Stored::DryRun(object)),
        })
    }

    /// DELETE of a collection: every matching object, one after the other.
    pub(super) fn delete_collection(
        &mut self,
        now: Timestamp,
        call: &Call,
    ) -> Result<Response, Status> {
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let options = DeleteOptions::of(call)?;
        let prefix = if target.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", target.namespace)
        };
        let filter = Filter::parse(kind, &call.options)?;
        let scope = Scope { kind, id, prefix, filter };
        for entry in list::matching(&self.store, &scope) {
            match self.delete_object(now, id, &entry.key, &options) {
                Ok(_) => {}
                // It went in between, or is already going: that is what was asked for.
                Err(status) if status.code() == 404 || kind.kind == "Namespace" => {}
                Err(status) => return Err(status),
            }
        }
        Ok(Response::value(200, &Status::deleted(kind, "", "")))
    }

    /// Deletes one object as far as its grace period and finalizers allow.
    pub(super) fn delete_object(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        key: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let kind = self.resources.kind_of(id);
        let Some(current) = self.store.get(id, key).cloned() else {
            let name = key.rsplit('/').next().unwrap_or(key);
            return Err(Status::not_found(kind, name));
        };
        options.check_preconditions(kind, &current)?;
        let mut object = current.parse();
        if kind.kind == "Namespace" {
            return self.delete_namespace(now, id, &current, object, options);
        }
        let grace = match before_delete(kind, &mut object, options, now) {
            Grace::AlreadyPending => return Ok(Deleted::Pending(current)),
            Grace::Immediate => None,
            Grace::Marked(seconds) => Some(seconds),
        };
        let propagation = options.propagation.or_else(|| default_propagation(kind, &object));
        settle_finalizers(&mut object, propagation);
        let waits_for_finalizers =
            object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if grace.is_none() && waits_for_finalizers {
            mark_as_deleting(&mut object, now, 0);
        }
        if options.dry_run {
            return Ok(Deleted::DryRun(object));
        }
        if grace.is_none() && !waits_for_finalizers {
            return self.remove_now(now, id, key, object);
        }
        let entry = if object == current.parse() {
            current
        } else {
            self.commit(now, id, key, &mut object)
        };
        if waits_for_finalizers || grace.is_some_and(|seconds| seconds > 0) {
            return Ok(Deleted::Pending(entry));
        }
        self.remove_now(now, id, key, object)
    }

    fn remove_now(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        key: &str,
        mut object: Value,
    ) -> Result<Deleted, Status> {
        match self.commit_removal(now, id, key, &mut object) {
            Some(entry) => Ok(Deleted::Gone(entry)),
            None => Err(Status::not_found(self.resources.kind_of(id), key)),
        }
    }
}

impl DeleteOptions {
    /// From the body if there is one, else from the query.
    fn of(call: &Call) -> Result<Self, Status> {
        let Body::Raw { media_type, bytes } = &call.body else {
            return Err(Status::bad_request("a deletion takes DeleteOptions"));
        };
        let query = &call.options;
        let body = if bytes.is_empty() {
            let mut body = json!({});
            if let Some(seconds) = query.grace_period_seconds {
                body["gracePeriodSeconds"] = json!(seconds);
            }
            if !query.propagation_policy.is_empty() {
                body["propagationPolicy"] = json!(query.propagation_policy);
            }
            if let Some(orphan) = query.orphan_dependents {
                body["orphanDependents"] = json!(orphan);
            }
            body
        } else {
            rules::decode_delete_options(media_type, bytes)?
        };
        let mut options = Self::parse(&body)?;
        options.dry_run |= query.dry_run;
        Ok(options)
    }

    /// From DeleteOptions as JSON.
    pub(super) fn parse(body: &Value) -> Result<Self, Status> {
        let policy = body["propagationPolicy"].as_str().filter(|policy| !policy.is_empty());
        let orphan = body["orphanDependents"].as_bool();
        if policy.is_some() && orphan.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return Err(rules::invalid_delete_options("propagationPolicy", policy, why));
        }
        let propagation = match (policy, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
            (Some(_), _) => {
                let why = "supported values: \"Background\", \"Foreground\", \"Orphan\"";
                return Err(rules::invalid_delete_options("propagationPolicy", policy, why));
            }
        };
        let dry_run = body["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(unknown) = dry_run.iter().find(|stage| *stage != "All") {
            let why = "supported values: \"All\"";
            return Err(rules::invalid_delete_options("dryRun", unknown.as_str(), why));
        }
        let dry_run = !dry_run.is_empty();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            propagation,
            cascade_asked: orphan == Some(false),
            dry_run,
        })
    }

    fn check_preconditions(&self, kind: &Kind, current: &Entry) -> Result<(), Status> {
        let (name, revision) = (current.name(), current.revision.to_string());
        match &self.uid {
            Some(uid) if **uid != *current.uid => {
                return Err(Status::uid_precondition(kind, name, uid, &current.uid));
            }
            _ => {}
        }
        match &self.resource_version {
            Some(version) if *version != revision => {
                Err(Status::version_precondition(kind, name, version, &revision))
            }
            _ => Ok(()),
        }
    }
}

/// What the grace period makes of a deletion.
enum Grace {
    /// The kind has none: finalizers alone decide.
    Immediate,
    /// The object now says when it will go; 0 is at once.
    Marked(i64),
    /// It is going already, and this request does not make it any faster.
    AlreadyPending,
}

fn before_delete(
    kind: &Kind,
    object: &mut Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Grace {
    let pending = object["metadata"]["deletionTimestamp"].as_str().and_then(Timestamp::parse);
    if !kind.graceful_deletion {
        return Grace::Immediate;
    }
    let Some(deletion) = pending else {
        let seconds = pod_grace(object, options);
        mark_as_deleting(object, now, seconds);
        return Grace::Marked(seconds);
    };
    let Some(granted) = object["metadata"]["deletionGracePeriodSeconds"].as_i64() else {
        return Grace::Immediate;
    };
    // Once granted, a grace period can only become shorter.
    let Some(asked) = options.grace_period_seconds else { return Grace::AlreadyPending };
    let asked = if asked < 0 { 1 } else { asked };
    if asked >= granted {
        return if asked == 0 { Grace::Marked(0) } else { Grace::AlreadyPending };
    }
    let earlier = deletion.plus_seconds(asked - granted);
    let (at, asked) = if earlier < now {
        (now.whole_seconds(), if asked == 0 { 0 } else { 1 })
    } else {
        (earlier, asked)
    };
    object["metadata"]["deletionTimestamp"] = Value::String(at.to_rfc3339());
    object["metadata"]["deletionGracePeriodSeconds"] = Value::from(asked);
    Grace::Marked(asked)
}

/// The grace period of a pod: none if no node runs it or it has already ended.
fn pod_grace(object: &Value, options: &DeleteOptions) -> i64 {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let assigned = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if !assigned || matches!(phase, "Failed" | "Succeeded") {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    match options.grace_period_seconds.unwrap_or(own) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

/// Sets the marks of a deletion, unless an earlier one has.
pub(super) fn mark_as_deleting(object: &mut Value, now: Timestamp, grace: i64) {
    let metadata = &mut object["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        return;
    }
    if let Some(generation) = metadata["generation"].as_i64().filter(|g| *g > 0) {
        metadata["generation"] = Value::from(generation + 1);
    }
    let at = now.whole_seconds().plus_seconds(grace);
    metadata["deletionTimestamp"] = Value::String(at.to_rfc3339());
    metadata["deletionGracePeriodSeconds"] = Value::from(grace);
}

/// What becomes of the dependents when nobody says so: what a finalizer of the object asks for, else
/// what the kind has always done.
fn default_propagation(kind: &Kind, object: &Value) -> Option<Propagation> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.into_iter().flatten();
    let decided = finalizers.any(|finalizer| finalizer == ORPHAN || finalizer == FOREGROUND);
    (kind.orphans_by_default && !decided).then_some(Propagation::Orphan)
}

/// Turns the propagation policy into finalizers; without one they stay as they are.
fn settle_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Orphan => Some(ORPHAN),
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Background => None,
    };
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let mut finalizers: Vec<Value> =
        metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    finalizers.extend(wanted.map(Value::from));
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), Value::Array(finalizers));
    }
}

/// Kinds whose deletion is answered with the object instead of a Status.
fn returns_deleted_object(kind: &Kind) -> bool {
    matches!(
        kind.kind,
        "Pod" | "PersistentVolumeClaim" | "Service" | "ServiceAccount" | "ResourceQuota"
    )
}

//! Server-side apply and the ownership of fields.
//!
//! `metadata.managedFields` says which manager set which field. Creates, updates and patches record what
//! they changed ([`manage_create`], [`manage_update`]); an apply states all that a manager wants, removes
//! what it no longer wants, and refuses to change what others own unless forced ([`apply`]).

mod compare;
mod fieldset;
mod managers;
mod merge;
mod reset;
mod walk;

use serde_json::{Value, json};

use self::compare::{Comparison, compare};
use self::managers::{Conflict, ManagerId, Managers, Operation};
use super::body;
use super::conform::conform;
use super::decode::{Decoded, FieldValidation};
use super::kind::{Kind, split_api_version};
use super::object::{at, child, list, name, remove, set, text};
use super::schema::ObjectType;
use super::status::Status;
use crate::time::Timestamp;

/// The manager for which client-side apply and server-side apply are one.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Who writes, and through what.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the manager.
    pub manager: &'a str,
    /// The subresource written through; "" for the object itself.
    pub subresource: &'a str,
    /// When.
    pub now: Timestamp,
}

/// Records that a manager made an object. Does nothing if that is already recorded (by an apply).
pub fn manage_create(kind: &Kind, object: &mut Value, writer: Writer<'_>) {
    if !list(at(object, &["metadata"]), "managedFields").is_empty() {
        return;
    }
    let mut nothing = json!({});
    if let Some(ty) = kind.object_type() {
        // What upstream's empty object has: structs, but neither maps nor pointers.
        let _ = conform(ty, &mut nothing);
    }
    if kind.has_status() {
        // Who makes an object does not write its status.
        set(&mut nothing, "status", at(object, &["status"]).clone());
    }
    record(kind, object, &nothing, Managers::default(), writer);
}

/// Records what a manager changed. Managed fields that the writer sets explicitly are taken, so
/// that ownership itself can be edited; `[{}]` forgets all.
pub fn manage_update(kind: &Kind, new: &mut Value, old: &Value, writer: Writer<'_>) {
    let given = list(at(new, &["metadata"]), "managedFields");
    let kept = list(at(old, &["metadata"]), "managedFields");
    if writer.subresource.is_empty() && given.len() == 1 && given.first() == Some(&json!({})) {
        remove(child(new, "metadata"), "managedFields");
        return;
    }
    let source = if given.is_empty() || !writer.subresource.is_empty() { kept } else { given };
    let managers = Managers::read(source);
    record(kind, new, old, managers, writer);
}

fn record(kind: &Kind, new: &mut Value, old: &Value, mut managers: Managers, writer: Writer<'_>) {
    let Some(ty) = kind.object_type() else { return };
    let Comparison { written, removed } = compare(ty, old, new).without(reset::untracked());
    let own = ManagerId {
        manager: writer.manager.to_owned(),
        operation: Operation::Update,
        api_version: kind.api_version(),
        subresource: writer.subresource.to_owned(),
    };
    managers.take_from_others(&own, &own.api_version, &written, &removed);
    managers.update(own, written, &removed, writer.now);
    set(child(new, "metadata"), "managedFields", managers.write());
}

/// Applies a configuration. `live` is the object as it is, in the kind's form; `None` creates it.
/// The result conforms to its type, has its defaults, and says who owns what.
pub fn apply(
    kind: &Kind,
    live: Option<&Value>,
    body: &[u8],
    writer: Writer<'_>,
    force: bool,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let ty = kind.object_type().ok_or_else(|| Status::internal("no type is known"))?;
    let config = read_config(kind, ty, body, validation)?;
    let untyped = |why: &str| Status::bad_request(untypable(kind, &config, why));
    let reset = reset::fields(kind, writer.subresource);
    let wanted = walk::field_set(ty, &config)
        .map_err(|why| untyped(&why))?
        .difference_deep(&reset)
        .difference(reset::untracked());
    let own = ManagerId {
        manager: writer.manager.to_owned(),
        operation: Operation::Apply,
        api_version: kind.api_version(),
        subresource: writer.subresource.to_owned(),
    };
    let mut managers =
        Managers::read(live.map_or(&[], |l| list(at(l, &["metadata"]), "managedFields")));
    let before = managers.fields_of(&own);

    let mut stated = config.clone();
    merge::remove(ty, &mut stated, &reset);
    let mut object = match live {
        Some(live) => merge::merge(ty, live, &stated),
        None => stated,
    };
    let kept = managers.others(&own).union(wanted.clone()).union(reset::untracked().clone());
    let unwanted = before.abandoned(&kept);
    merge::remove(ty, &mut object, &unwanted);
    set(child(&mut object, "metadata"), "managedFields", Value::Null);
    conform(ty, &mut object).map_err(|why| untyped(&why))?;
    (kind.rules.defaults)(&mut object);

    let mut touched = before != wanted;
    if let Some(live) = live {
        let changes = compare(ty, live, &object).without(reset::untracked());
        touched |= changes != Comparison::default();
        let asked = changes.written.intersection(&wanted);
        let disputed = match last_applied(live).filter(|_| writer.manager == KUBECTL) {
            // What kubectl applied from the client's side before is its own to change.
            Some(applied) => {
                asked.clone().difference(&walk::field_set(ty, &applied).unwrap_or_default())
            }
            None => asked.clone(),
        };
        let conflicts = managers.conflicts(&own, &kind.api_version(), &disputed);
        if !conflicts.is_empty() && !force {
            return Err(conflict(&conflicts));
        }
        managers.take_from_others(&own, &kind.api_version(), &asked, &changes.removed);
    }
    // An apply that changes neither the object nor its ownership leaves no trace.
    managers.put_applied(own, wanted, touched.then_some(writer.now), kind);
    set(child(&mut object, "metadata"), "managedFields", managers.write());
    if writer.manager == KUBECTL && live.and_then(last_applied).is_some() {
        // Client-side apply, should it come back, has to start from here.
        let annotations = child(child(&mut object, "metadata"), "annotations");
        set(annotations, LAST_APPLIED, json!(format!("{config}\n")));
    }
    Ok(Decoded { object, warnings: Vec::new() })
}

/// What kubectl last applied from the client's side, as it noted in the object.
fn last_applied(live: &Value) -> Option<Value> {
    let text = at(live, &["metadata", "annotations", LAST_APPLIED]).as_str()?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

fn read_config(
    kind: &Kind,
    ty: &ObjectType,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Value, Status> {
    let parsed = body::parse_yaml(body)
        .map_err(|why| Status::bad_request(format!("error decoding YAML: {why}")))?;
    if let (Some(path), FieldValidation::Strict) = (parsed.duplicates.first(), validation) {
        let why = format!("error strict decoding YAML: key \"{path}\" already set in map");
        return Err(Status::bad_request(why));
    }
    let config = parsed.value;
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the configuration is no object"));
    }
    let (given, wanted) = (text(&config, "apiVersion"), kind.api_version());
    if given != wanted || text(&config, "kind") != kind.kind {
        let (group, version) = split_api_version(given);
        return Err(Status::bad_request(format!(
            "the configuration is of {group}/{version}, Kind={}, but {wanted}, Kind={} is wanted",
            text(&config, "kind"),
            kind.kind
        )));
    }
    if !at(&config, &["metadata", "managedFields"]).is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    // Types and names of fields are checked on a copy: what is applied stays as it was written.
    let mut copy = config.clone();
    let typed = conform(ty, &mut copy);
    let unknown = typed.map_err(|why| Status::bad_request(untypable(kind, &config, &why)))?;
    if let Some(path) = unknown.first() {
        let why = format!(".{path}: field not declared in schema");
        return Err(Status::bad_request(untypable(kind, &config, &why)));
    }
    Ok(config)
}

fn untypable(kind: &Kind, config: &Value, why: &str) -> String {
    let namespace = text(at(config, &["metadata"]), "namespace");
    format!(
        "failed to create typed patch object ({namespace}/{}; {}, Kind={}): {why}",
        name(config),
        kind.api_version(),
        kind.kind
    )
}

fn conflict(conflicts: &[Conflict]) -> Status {
    let causes = conflicts.iter().map(Conflict::cause).collect();
    Status::apply_conflict(managers::conflict_message(conflicts), causes)
}

#[cfg(test)]
mod tests;

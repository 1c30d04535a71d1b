//! Creating objects.

use serde_json::{Map, Value};

use crate::api::decode::Decoded;
use crate::api::status::Status;
use crate::store::object_key;
use crate::time::Timestamp;

use super::call::Call;
use super::render::Renderer;
use super::response::Response;
use super::{Server, rules};

/// How many generated names are tried before the client has to.
const GENERATE_NAME_TRIES: usize = 8;

impl Server {
    /// POST to a collection.
    pub(super) fn create(&mut self, now: Timestamp, mut call: Call) -> Result<Response, Status> {
        let Decoded { object, warnings } = call.take_object()?;
        let target = call.target()?;
        let kind = target.kind;
        if kind.namespaced && target.namespace.is_empty() {
            return Err(Status::method_not_allowed());
        }
        let namespace = target.namespace.clone();
        let created = self.create_object(now, &call, &namespace, object)?;
        Ok(self.answer_object(now, 201, &call, created).with_warnings(&warnings))
    }

    /// Everything between a decoded object and its stored form.
    pub(super) fn create_object(
        &mut self,
        now: Timestamp,
        call: &Call,
        namespace: &str,
        object: Value,
    ) -> Result<Stored, Status> {
        let kind = call.kind()?;
        let stored_kind = kind.stored_as().ok_or_else(Status::method_not_allowed)?;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let mut object = rules::to_storage(kind, object);
        settle_namespace(&mut object, namespace)?;
        self.refuse_missing_namespace(stored_kind, namespace, &object)?;
        refuse_version(&object)?;
        let name = self.settle_name(kind, id, namespace, &mut object)?;
        let key = object_key(namespace, &name);
        let uid = self.random.uuid();
        // What the server adds from here on is not the writer's.
        if self.managed_fields {
            rules::manage_create(stored_kind, &mut object, call.writer(now)?);
        }
        rules::prepare_create(stored_kind, &mut object, now, &uid);
        self.admit_create(stored_kind, namespace, &mut object)?;
        rules::validate_create(stored_kind, &object)?;
        self.admit_quota(stored_kind, namespace, &name, &object)?;
        if let Some(existing) = self.store.get(id, &key) {
            return Err(Status::already_exists(kind, &name, existing.deletion.is_some()));
        }
        if call.options.dry_run {
            return Ok(Stored::DryRun(object));
        }
        Ok(Stored::Entry(self.commit(now, id, &key, &mut object)))
    }

    /// The object's name, generated if only a prefix is given.
    fn settle_name(
        &mut self,
        kind: &'static crate::api::Kind,
        id: crate::store::ResourceId,
        namespace: &str,
        object: &mut Value,
    ) -> Result<String, Status> {
        let metadata = &mut object["metadata"];
        if let Some(name) = metadata["name"].as_str().filter(|name| !name.is_empty()) {
            return Ok(name.to_owned());
        }
        let base = metadata["generateName"].as_str().unwrap_or_default().to_owned();
        if base.is_empty() {
            return Err(rules::name_required(kind));
        }
        let mut name = String::new();
        for _ in 0..GENERATE_NAME_TRIES {
            name = rules::generate_name(&base, &mut self.random);
            if self.store.get(id, &object_key(namespace, &name)).is_none() {
                metadata["name"] = Value::String(name.clone());
                return Ok(name);
            }
        }
        Err(Status::generate_name_conflict(kind, &name))
    }

    /// The answer to a write: the object in the form that was asked for.
    pub(super) fn answer_object(
        &self,
        now: Timestamp,
        status: u16,
        call: &Call,
        stored: Stored,
    ) -> Response {
        let kind = call.kind().ok();
        let renderer =
            kind.map(|kind| Renderer::new(kind, call.form, now, call.options.include_object));
        match (stored, renderer) {
            (Stored::Entry(entry), Some(renderer)) => {
                if renderer.is_plain() {
                    return Response::json(status, entry.json.clone());
                }
                let object = entry.parse();
                Response::value(status, &renderer.single(object))
            }
            (Stored::DryRun(object), Some(renderer)) => {
                Response::value(status, &renderer.single(object))
            }
            (Stored::Entry(entry), None) => Response::json(status, entry.json.clone()),
            (Stored::DryRun(object), None) => Response::value(status, &object),
        }
    }
}

/// Who sends the version of an object wants to change that object, not to make another one.
fn refuse_version(object: &Value) -> Result<(), Status> {
    match object["metadata"]["resourceVersion"].as_str() {
        None | Some("" | "0") => Ok(()),
        Some(_) => {
            let why = "resourceVersion should not be set on objects to be created";
            Err(Status::bad_request(why))
        }
    }
}

/// What became of a write.
#[derive(Debug)]
pub(super) enum Stored {
    /// It is in the store.
    Entry(std::sync::Arc<crate::store::Entry>),
    /// It would look like this.
    DryRun(Value),
}

/// The namespace of the path goes into the object; another one in the object is a mistake.
pub(super) fn settle_namespace(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Status::bad_request("the body of the request is not an object"));
    };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Status::bad_request("metadata is not an object"));
    };
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if given != namespace && !given.is_empty() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".into(), Value::String(namespace.to_owned()));
    }
    Ok(())
}

//! The scale subresource: replicas of a workload as an autoscaling/v1 Scale.

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::object_key;
use crate::time::Timestamp;

use super::Server;
use super::call::{Body, Call};
use super::create::Stored;
use super::response::Response;
use super::rules::{self, PatchType};
use super::update::Write;

impl Server {
    /// GET of a Scale.
    pub(super) fn read_scale(&self, call: &Call) -> Result<Response, Status> {
        let target = call.target()?;
        let id = self.resources.id_of(target.kind).ok_or_else(Status::method_not_allowed)?;
        let key = object_key(&target.namespace, &target.name);
        let entry = self.store.get(id, &key);
        let entry = entry.ok_or_else(|| Status::not_found(target.kind, &target.name))?;
        Ok(Response::value(200, &scale_of(target.kind, &entry.parse())))
    }

    /// PUT or PATCH of a Scale.
    pub(super) fn write_scale(
        &mut self,
        now: Timestamp,
        mut call: Call,
    ) -> Result<Response, Status> {
        let target = call.target()?.clone();
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let key = object_key(&target.namespace, &target.name);
        let current = self.store.get(id, &key).cloned();
        let current = current.ok_or_else(|| Status::not_found(kind, &target.name))?;
        let old = current.parse();
        let scale = match &call.body {
            Body::Raw { media_type, bytes } => {
                let patch = PatchType::of(media_type)?;
                rules::patch_scale(patch, &scale_of(kind, &old), bytes, &call.options)?
            }
            Body::Object(_) => call.take_object()?.object,
        };
        let replicas = rules::scale_replicas(&target.name, &scale)?;
        if scale["metadata"]["name"].as_str().is_some_and(|name| name != target.name) {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                scale["metadata"]["name"].as_str().unwrap_or_default(),
                target.name
            )));
        }
        let mut new = old.clone();
        new["spec"]["replicas"] = Value::from(replicas);
        for field in ["resourceVersion", "uid"] {
            if let Some(given) = scale["metadata"][field].as_str().filter(|v| !v.is_empty()) {
                new["metadata"][field] = Value::String(given.to_owned());
            }
        }
        let write =
            Write { kind, id, key: &key, subresource: "scale", dry_run: call.options.dry_run };
        let stored = self.replace(now, write, &current, old, new, |new, old| {
            rules::manage_update(kind, new, old, call.writer(now)?);
            Ok(())
        })?;
        let object = match stored {
            Stored::Entry(entry) => entry.parse(),
            Stored::DryRun(object) => object,
        };
        Ok(Response::value(200, &scale_of(kind, &object)))
    }
}

/// A workload seen as a Scale.
fn scale_of(kind: &Kind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {},
        "status": {
            "replicas": object["status"]["replicas"].as_i64().unwrap_or(0),
        },
    });
    // Zero is left out, as a Go client would see it.
    if let Some(replicas) = object["spec"]["replicas"].as_i64().filter(|r| *r != 0) {
        scale["spec"]["replicas"] = Value::from(replicas);
    }
    let selector = rules::selector_text(kind, object);
    if !selector.is_empty() {
        scale["status"]["selector"] = Value::String(selector);
    }
    scale
}

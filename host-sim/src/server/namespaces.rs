//! Namespaces: nothing is created without one, and one that ends takes its contents along.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::decode::Decoded;
use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId, object_key};
use crate::time::Timestamp;

use super::Server;
use super::call::Call;
use super::delete::{DeleteOptions, Deleted, mark_as_deleting};
use super::response::Response;
use super::update::Write;

const STILL_EMPTYING: &str = "The system is ensuring all content is removed from this namespace.  \
    Upon completion, this namespace will automatically be purged by the system.";

impl Server {
    /// Refuses to create into a namespace that is not there or is going away.
    pub(super) fn refuse_missing_namespace(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: &Value,
    ) -> Result<(), Status> {
        if namespace.is_empty() {
            return Ok(());
        }
        let namespaces = self.resources.namespaces;
        let Some(entry) = self.store.get(namespaces, namespace) else {
            return Err(Status::not_found(self.resources.kind_of(namespaces), namespace));
        };
        // A client that may review access must be able to do so until the end.
        if entry.deletion.is_some() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Status::namespace_terminating(kind, name, namespace));
        }
        Ok(())
    }

    /// Marks a namespace as terminating; [`Server::step`] empties it.
    pub(super) fn delete_namespace(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        current: &Arc<Entry>,
        mut object: Value,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let kind = self.resources.kind_of(id);
        if matches!(current.name(), "default" | "kube-system" | "kube-public") {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(kind, current.name(), why));
        }
        let held = object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if current.deletion.is_some() && held {
            return Err(Status::conflict(kind, current.name(), STILL_EMPTYING));
        }
        mark_as_deleting(&mut object, now, 0);
        // Upstream gives namespaces no grace period of their own.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("deletionGracePeriodSeconds");
        }
        object["status"]["phase"] = json!("Terminating");
        if options.dry_run {
            return Ok(Deleted::DryRun(object));
        }
        Ok(Deleted::Pending(self.commit(now, id, &current.key, &mut object)))
    }

    /// PUT of namespaces/NAME/finalize: only spec.finalizers is taken from the body.
    pub(super) fn finalize_namespace(
        &mut self,
        now: Timestamp,
        mut call: Call,
    ) -> Result<Response, Status> {
        let Decoded { object, warnings } = call.take_object()?;
        let target = call.target()?;
        let id = self.resources.namespaces;
        let key = object_key("", &target.name);
        let Some(current) = self.store.get(id, &key).cloned() else {
            return Err(Status::not_found(target.kind, &target.name));
        };
        let old = current.parse();
        let mut new = old.clone();
        new["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        new["spec"]["finalizers"] = object["spec"]["finalizers"].clone();
        let write = Write {
            kind: target.kind,
            id,
            key: &key,
            subresource: "finalize",
            dry_run: call.options.dry_run,
        };
        let stored = self.replace(now, write, &current, old, new, |_, _| Ok(()))?;
        Ok(self.answer_object(now, 200, &call, stored).with_warnings(&warnings))
    }
}

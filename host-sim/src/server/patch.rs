//! PATCH in its four forms.

use serde_json::Value;

use crate::api::status::Status;
use crate::store::object_key;
use crate::time::Timestamp;

use super::Server;
use super::call::{Body, Call};
use super::create::{Stored, settle_namespace};
use super::response::Response;
use super::rules::{self, PatchType};
use super::update::Write;

impl Server {
    /// PATCH of an object or its status.
    pub(super) fn patch(&mut self, now: Timestamp, call: Call) -> Result<Response, Status> {
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let key = object_key(&target.namespace, &target.name);
        let Body::Raw { media_type, bytes } = &call.body else {
            return Err(Status::bad_request("a patch cannot be an object"));
        };
        let patch = PatchType::of(media_type)?;
        if patch == PatchType::Apply && call.options.field_manager.is_empty() {
            return Err(rules::field_manager_required());
        }
        if patch != PatchType::Apply && call.options.force {
            return Err(rules::force_forbidden());
        }
        let Some(current) = self.store.get(id, &key).cloned() else {
            if patch == PatchType::Apply && target.subresource.is_empty() {
                return self.create_by_apply(now, &call, bytes);
            }
            return Err(Status::not_found(kind, &target.name));
        };
        let old = current.parse();
        let seen = rules::as_seen(kind, &old);
        let patched = match patch {
            PatchType::Apply => {
                rules::apply(kind, Some(&seen), bytes, call.writer(now)?, &call.options)?
            }
            _ => rules::patch(kind, patch, &seen, bytes, &call.options)?,
        };
        let mut new = rules::to_storage(kind, patched.object);
        settle_namespace(&mut new, &target.namespace)?;
        if new["metadata"]["name"] != old["metadata"]["name"] {
            return Err(rules::name_immutable(kind, &target.name, &new));
        }
        let stored_kind = self.resources.kind_of(id);
        let write = Write {
            kind: stored_kind,
            id,
            key: &key,
            subresource: &target.subresource,
            dry_run: call.options.dry_run,
        };
        let stored = self.replace(now, write, &current, old, new, |new, old| {
            // An apply has already said who owns what.
            if patch != PatchType::Apply {
                rules::manage_update(stored_kind, new, old, call.writer(now)?);
            }
            Ok(())
        })?;
        Ok(self.answer_object(now, 200, &call, stored).with_warnings(&patched.warnings))
    }

    /// Server-side apply to an object that is not there creates it.
    fn create_by_apply(
        &mut self,
        now: Timestamp,
        call: &Call,
        bytes: &[u8],
    ) -> Result<Response, Status> {
        let target = call.target()?;
        let kind = target.kind;
        let applied = rules::apply(kind, None, bytes, call.writer(now)?, &call.options)?;
        let mut object = applied.object;
        settle_namespace(&mut object, &target.namespace)?;
        match object["metadata"]["name"].as_str() {
            None | Some("") => object["metadata"]["name"] = Value::String(target.name.clone()),
            Some(name) if name == target.name => {}
            Some(name) => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.name
                )));
            }
        }
        let namespace = target.namespace.clone();
        let stored: Stored = self.create_object(now, call, &namespace, object)?;
        Ok(self.answer_object(now, 201, call, stored).with_warnings(&applied.warnings))
    }
}

//! GET: single objects, lists, watches, and everything that only looks.

use crate::api::status::Status;
use crate::random::Random;
use crate::store::object_key;
use crate::time::Timestamp;

use super::Server;
use super::call::Call;
use super::create::Stored;
use super::filter::Filter;
use super::list::{self, Scope};
use super::render::Renderer;
use super::request::Target;
use super::response::{Body, Response};
use super::watch::Watch;

impl Server {
    pub(super) fn answer_read(&self, now: Timestamp, call: Call) -> Result<Response, Status> {
        let target = match &call.target {
            Target::NonResource(path) => return self.answer_endpoint(path, &call),
            Target::Resource(target) => target,
        };
        if target.kind.stored_as().is_none() {
            return self.answer_review(now, call);
        }
        match (target.subresource.as_str(), call.verb) {
            ("" | "status", "get") => self.get(now, &call),
            ("", "list") => {
                let scope = self.scope(&call)?;
                list::list(&self.store, now, scope, &call.options, call.form)
            }
            ("", "watch") => self.watch(now, &call),
            ("scale", "get") => self.read_scale(&call),
            ("log", "get") => self.read_log(&call),
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn get(&self, now: Timestamp, call: &Call) -> Result<Response, Status> {
        let target = call.target()?;
        let id = self.resources.id_of(target.kind).ok_or_else(Status::method_not_allowed)?;
        let newest = self.store.revision();
        match call.options.resource_version {
            Some(wanted) if wanted > newest => {
                return Err(Status::version_too_large(wanted, newest));
            }
            _ => {}
        }
        let key = object_key(&target.namespace, &target.name);
        let entry = self.store.get(id, &key).cloned();
        let entry = entry.ok_or_else(|| Status::not_found(target.kind, &target.name))?;
        Ok(self.answer_object(now, 200, call, Stored::Entry(entry)))
    }

    fn watch(&self, now: Timestamp, call: &Call) -> Result<Response, Status> {
        let scope = self.scope(call)?;
        let renderer = Renderer::new(scope.kind, call.form, now, call.options.include_object);
        // Spreads the ends of watches; only that much randomness is needed here.
        let mut jitter = Random::from_seed(now.unix_millis() as u64 ^ self.store.revision());
        let watch = Watch::start(&self.store, now, scope, &call.options, renderer, &mut jitter)?;
        let mut response = Response::json(200, bytes::Bytes::new());
        response.body = Body::Watch(Box::new(watch));
        Ok(response)
    }

    /// What a list or watch is about.
    fn scope(&self, call: &Call) -> Result<Scope, Status> {
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.id_of(kind).ok_or_else(Status::method_not_allowed)?;
        let mut filter = Filter::parse(kind, &call.options)?;
        if !target.name.is_empty() {
            filter = filter.only(&target.name);
        }
        let prefix = if target.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", target.namespace)
        };
        Ok(Scope { kind, id, prefix, filter })
    }
}

//! Reading collections: snapshots, pages and versions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::field::{FieldErrors, Path};
use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId, Store};
use crate::time::Timestamp;

use super::continue_token::ContinueToken;
use super::filter::Filter;
use super::media::Form;
use super::options::{Options, VersionMatch};
use super::render::Renderer;
use super::response::{Body, ListBody, Response};

/// What a list or watch is about.
#[derive(Debug)]
pub struct Scope {
    /// The kind in the path.
    pub kind: &'static Kind,
    /// Where its objects are stored.
    pub id: ResourceId,
    /// What the keys of all matching objects start with.
    pub prefix: String,
    /// What else has to match.
    pub filter: Filter,
}

/// One page of a collection.
struct Page {
    items: Vec<Arc<Entry>>,
    revision: u64,
    next: Option<ContinueToken>,
    remaining: Option<usize>,
}

/// Answers a list request.
pub(super) fn list(
    store: &Store,
    now: Timestamp,
    scope: Scope,
    options: &Options,
    form: Form,
) -> Result<Response, Status> {
    check_options(options)?;
    let page = read_page(store, &scope, options)?;
    let renderer = Renderer::new(scope.kind, form, now, options.include_object);
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.next {
        metadata["continue"] = Value::String(token.encode());
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = Value::from(remaining);
    }
    let head = renderer.list_head(&metadata);
    let body = ListBody::new(head, page.items, renderer);
    let mut response = Response::json(200, bytes::Bytes::new());
    response.body = Body::List(Box::new(body));
    response.revision = page.revision;
    Ok(response)
}

/// All current objects that match, for deletecollection.
pub(super) fn matching(store: &Store, scope: &Scope) -> Vec<Arc<Entry>> {
    let entries = store.resource(scope.id).range(&scope.prefix, None);
    entries.filter(|entry| scope.filter.matches(entry)).cloned().collect()
}

fn read_page(store: &Store, scope: &Scope, options: &Options) -> Result<Page, Status> {
    let resource = store.resource(scope.id);
    let token = match options.continue_token.as_str() {
        "" => None,
        text => Some(ContinueToken::decode(text, &scope.prefix)?),
    };
    let asked = match &token {
        Some(token) => token.revision(),
        None if options.resource_version_match == Some(VersionMatch::Exact) => {
            options.resource_version
        }
        None => None,
    };
    let newest = store.revision();
    let wanted = asked.or(options.resource_version).unwrap_or(0);
    if wanted > newest {
        return Err(Status::version_too_large(wanted, newest));
    }
    let after = token.as_ref().map(ContinueToken::last_key);
    let revision = asked.unwrap_or(newest);
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let page = match asked {
        Some(snapshot) if snapshot < newest => {
            let entries = resource.range_at(snapshot, &scope.prefix, after).map_err(|_| {
                token.as_ref().map_or_else(Status::expired_list, |token| {
                    Status::expired_continue(token.inconsistent().encode())
                })
            })?;
            take_page(entries, scope, limit)
        }
        _ => take_page(resource.range(&scope.prefix, after), scope, limit),
    };
    let (items, left) = page;
    let next = (left > 0)
        .then(|| items.last().map(|entry| ContinueToken::after(&entry.key, revision)))
        .flatten();
    let remaining = (left > 0 && scope.filter.is_everything()).then_some(left);
    Ok(Page { items, revision, next, remaining })
}

/// The first `limit` matching entries and how many follow; with a filter only whether any does.
fn take_page<'a>(
    mut entries: impl Iterator<Item = &'a Arc<Entry>>,
    scope: &Scope,
    limit: usize,
) -> (Vec<Arc<Entry>>, usize) {
    let mut items = Vec::new();
    while limit == 0 || items.len() < limit {
        let Some(entry) = entries.next() else { return (items, 0) };
        if scope.filter.matches(entry) {
            items.push(entry.clone());
        }
    }
    let left = if scope.filter.is_everything() {
        entries.count()
    } else {
        usize::from(entries.any(|entry| scope.filter.matches(entry)))
    };
    (items, left)
}

/// The rules between resourceVersion, resourceVersionMatch and continue.
fn check_options(options: &Options) -> Result<(), Status> {
    let mut errors = FieldErrors::new();
    let at = Path::new("resourceVersionMatch");
    if options.send_initial_events.is_some() {
        let why = "sendInitialEvents is forbidden for list";
        errors.forbidden(&Path::new("sendInitialEvents"), why);
    }
    match (options.resource_version_match, options.resource_version) {
        (None, _) => {}
        (Some(_), None) => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.forbidden(&at, why);
        }
        (Some(_), Some(_)) if !options.continue_token.is_empty() => {
            errors.forbidden(&at, "resourceVersionMatch is forbidden when continue is provided");
        }
        (Some(VersionMatch::Exact), Some(0)) => {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.forbidden(&at, why);
        }
        _ => {}
    }
    if !errors.is_empty() {
        return Err(Status::invalid_kind("meta.k8s.io", "ListOptions", "", &errors));
    }
    if !options.continue_token.is_empty() && options.resource_version.is_some_and(|v| v != 0) {
        let why = "specifying resource version is not allowed when using continue";
        return Err(Status::bad_request(why));
    }
    Ok(())
}

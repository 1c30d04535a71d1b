//! No write without a cause: what a controller writes changes something.
//!
//! One that changes nothing is excused if its object has a version that the controller did not know when
//! it decided: the watch had not told of it by then, nor the answer to an earlier write. A pod is written
//! when its claims are given to somebody else, whatever there is to change about itself: for these the
//! same holds. And a ReplicaSet gets what its Deployment says, which is read anew when it is written: for
//! that the same holds, too, unless only its status is told.

use std::collections::BTreeMap;

use crate::server::request::Request as HttpRequest;

use super::super::operation::Operation;
use super::past::Basis;
use super::{Facts, Model, Verdict};

pub(super) const PROPERTY: &str = "no write without a cause";

/// Versions that answers to writes have told of, by controller and path.
#[derive(Debug, Default)]
pub(super) struct Causes(BTreeMap<(usize, String), u64>);

impl Causes {
    /// A controller is told what has become of an object.
    pub(super) fn answered(&mut self, device: usize, path: &str, version: u64) {
        self.0.insert((device, object_of(path)), version);
    }

    /// What it was told last of an object.
    pub(super) fn of(&self, device: usize, path: &str) -> u64 {
        self.0.get(&(device, object_of(path))).copied().unwrap_or(0)
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.0.retain(|(of, _), _| *of != device);
    }
}

/// Judges a write that has changed nothing.
pub(super) fn check(model: &Model, basis: &Basis, http: &HttpRequest) -> Verdict {
    // An event whose answer was lost is told again, whenever there is time. Somebody else may have
    // deleted the same while the request was under way.
    if http.path.contains("/events") || http.method == http::Method::DELETE {
        return Ok(());
    }
    let Operation { namespace, resource, name, status, .. } = Operation::of_path(&http.path);
    let key = format!("{namespace}/{name}");
    let is_news =
        |it: &Facts, answered: u64| it.version() > basis.lately_of(it.plural).max(answered);
    let object = model.all(&resource).find(|it| it.key == key);
    let owner = object.filter(|it| it.plural == "replicasets" && !status).and_then(|it| {
        let owner = model.objects.get(it.controller.as_deref()?);
        owner.map(|owner| &**owner)
    });
    let end = format!("-{name}");
    let mut claims = model.all("persistentvolumeclaims").filter(|claim| {
        resource == "pods" && claim.namespace() == namespace && claim.key.ends_with(&end)
    });
    let has_changed = object.is_none_or(|it| is_news(it, basis.answered));
    if has_changed || owner.into_iter().chain(&mut claims).any(|it| is_news(it, 0)) {
        return Ok(());
    }
    Err((PROPERTY, format!("{} {} changed nothing", http.method, http.path)))
}

/// The path of an object, whatever part of it is written.
fn object_of(path: &str) -> String {
    path.strip_suffix("/status").unwrap_or(path).to_owned()
}

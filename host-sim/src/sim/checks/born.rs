//! What controllers have created and know that they have: the answer has come.
//!
//! A cache that has not seen it yet is no excuse for creating more.

use std::collections::{BTreeMap, BTreeSet};

use picokube_core::manager::{Body, Request};
use serde_json::Value;

use super::super::operation::{Operation, Verb};
use super::{Issued, Model};

/// Pods that were created and not yet seen in the cache, by controller and owner.
#[derive(Debug, Default)]
pub(super) struct Born(BTreeMap<(usize, String), BTreeSet<String>>);

impl Born {
    /// A controller is told that its request is done.
    pub(super) fn done(&mut self, device: usize, request: &Request, body: &[u8]) {
        if !Operation::of(request).is(Verb::Create, "pods") {
            return;
        }
        let Body::Splice(splice) = &request.body else { return };
        let pod: Value = serde_json::from_slice(body).unwrap_or_default();
        if let Some(uid) = pod["metadata"]["uid"].as_str() {
            let of_owner = self.0.entry((device, splice.uid.to_string())).or_default();
            of_owner.insert(uid.to_owned());
        }
    }

    /// Forgets what the controller's cache knows by now, and what is no longer there.
    pub(super) fn note(&mut self, issued: &Issued<'_, '_>, model: &Model) {
        let cache = issued.cache;
        let is_unseen = |owner: &str, uid: &String| {
            model.objects.get(uid).is_some_and(|pod| {
                let (namespace, name) = pod.key.split_once('/').unwrap_or_default();
                pod.is_active()
                    && pod.controller.as_deref() == Some(owner)
                    && cache.pods.find(cache.texts, namespace, name).is_none()
            })
        };
        for ((device, owner), pods) in &mut self.0 {
            if *device == issued.device {
                pods.retain(|uid| is_unseen(owner, uid));
            }
        }
        self.0.retain(|_, pods| !pods.is_empty());
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.0.retain(|(of, _), _| *of != device);
    }

    pub(super) fn unseen(&self, device: usize, owner: &str) -> usize {
        self.0.get(&(device, owner.to_owned())).map_or(0, BTreeSet::len)
    }
}

//! What each controller has done to pods and knows that it has: it was answered, or still waits for
//! that. A delay of the watch is no excuse for not counting that.
//!
//! A watch that goes back is one. Let a controller have deleted a pod at version `d`, and let `K` be the
//! version up to which it has been told of pods. Once `K >= d`, it does not await that any more; if an
//! event or a list then tells of that very pod as it was at a version before `d`, the pod is there again
//! for whoever believes what he is told, as Kubernetes' controllers do, until `K >= d` once more.

use std::collections::{BTreeMap, BTreeSet};

use picokube_core::manager::{Body, Request};
use serde_json::Value;

use super::super::operation::{Operation, Verb};
use super::super::trace::Actor;
use super::model::Change;
use super::past::Past;

/// Pods by the controller that has created or deleted them.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// By controller and owner; whether the answer has come.
    created: BTreeMap<(usize, String), BTreeMap<String, bool>>,
    /// By controller and pod.
    deleted: BTreeMap<(usize, String), Deletion>,
}

/// A pod that a controller has deleted.
#[derive(Debug)]
struct Deletion {
    key: String,
    /// The version that the deletion has.
    version: u64,
    knowledge: Knowledge,
}

/// What a controller has been told of a pod that it has deleted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knowledge {
    /// Nothing since: it awaits that.
    Awaited,
    Gone,
    /// It was told that the pod is gone, and then what the pod was before.
    ThereAgain,
}

impl Own {
    /// A controller that awaits the answer has changed something, which has that version now.
    pub(super) fn note(&mut self, actor: Actor, change: &Change, version: u64) {
        let Actor::Controller(device) = actor else { return };
        let pod = change.after.as_ref().or(change.before.as_ref());
        let Some(pod) = pod.filter(|pod| pod.plural == "pods") else { return };
        let is_going = change.after.as_ref().is_none_or(|after| after.deleting);
        match (&change.before, &pod.controller) {
            (None, Some(owner)) => {
                let of_owner = self.created.entry((device, owner.clone())).or_default();
                of_owner.insert(pod.uid.clone(), false);
            }
            (Some(before), _) if is_going && !before.deleting => {
                let knowledge = Knowledge::Awaited;
                let deletion = Deletion { key: pod.key.clone(), version, knowledge };
                self.deleted.insert((device, pod.uid.clone()), deletion);
            }
            _ => {}
        }
    }

    /// A controller is told that its request is done.
    pub(super) fn done(&mut self, device: usize, request: &Request, body: &[u8]) {
        let Body::Splice(splice) = &request.body else { return };
        if !Operation::of(request).is(Verb::Create, "pods") {
            return;
        }
        let pod: Value = serde_json::from_slice(body).unwrap_or_default();
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let of_owner = self.created.get_mut(&(device, splice.uid.to_string()));
        if let Some(is_known) = of_owner.and_then(|pods| pods.get_mut(uid)) {
            *is_known = true;
        }
    }

    /// A controller does not know what has become of its request.
    pub(super) fn lost(&mut self, device: usize, request: &Request) {
        let operation = Operation::of(request);
        if let Body::Splice(splice) = &request.body {
            let of_owner = self.created.get_mut(&(device, splice.uid.to_string()));
            of_owner.into_iter().for_each(|pods| pods.retain(|_, is_known| *is_known));
        }
        if operation.is(Verb::Delete, "pods") {
            // By its key: the pod may have gone from the server meanwhile.
            let key = format!("{}/{}", operation.namespace, operation.name);
            self.deleted.retain(|(of, _), deletion| *of != device || deletion.key != key);
        }
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.created.retain(|(of, _), _| *of != device);
        self.deleted.retain(|(of, _), _| *of != device);
    }

    /// The pods that a controller has created for an owner.
    pub(super) fn created(&self, device: usize, owner: &str) -> impl Iterator<Item = &str> {
        let of_owner = self.created.get(&(device, owner.to_owned()));
        of_owner.into_iter().flat_map(|pods| pods.keys().map(String::as_str))
    }

    /// Whether a controller has deleted a pod.
    pub(super) fn has_deleted(&self, device: usize, uid: &str) -> bool {
        self.deleted.contains_key(&(device, uid.to_owned()))
    }

    /// A controller has been told of pods up to a version: of the one that has it, or of all there were then.
    pub(super) fn told(&mut self, device: usize, version: u64, of_all: bool, past: &Past) {
        let of_device = self.deleted.iter_mut().filter(|((of, _), _)| *of == device);
        for ((_, uid), deletion) in of_device {
            let mut was = past.versions("pods", &deletion.key, (version, version)).flatten();
            if version >= deletion.version {
                deletion.knowledge = Knowledge::Gone;
            } else if deletion.knowledge == Knowledge::Gone
                && was.any(|pod| pod.uid == *uid && (of_all || pod.version() == version))
            {
                deletion.knowledge = Knowledge::ThereAgain;
            }
        }
    }

    /// The pods that a controller has deleted, and that are there again by what it has been told since.
    pub(super) fn there_again(&self, device: usize) -> BTreeSet<String> {
        let of_device = self.deleted.iter().filter(|((of, _), _)| *of == device);
        let again = of_device.filter(|(_, it)| it.knowledge == Knowledge::ThereAgain);
        again.map(|((_, uid), _)| uid.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::super::Facts;
    use super::*;

    const DEVICE: usize = 0;

    /// What the server has stored of a pod under that key.
    fn pod(key: &str, version: u64, deleting: bool) -> Rc<Facts> {
        let object = json!({ "metadata": { "resourceVersion": version.to_string() } });
        let (key, uid) = (key.to_owned(), format!("uid of {key}"));
        Rc::new(Facts { plural: "pods", key, uid, deleting, object, ..Facts::default() })
    }

    /// Two pods, at versions 3 and 4, which a controller has deleted at 5 and 6.
    fn deleted() -> (Own, Past) {
        let (mut own, mut past) = (Own::default(), Past::default());
        for (key, version) in [("default/a", 3), ("default/b", 4)] {
            let (before, after) = (pod(key, version, false), pod(key, version + 2, true));
            past.add("pods", key, version, Some(before.clone()));
            past.add("pods", key, version + 2, Some(after.clone()));
            let change = Change { before: Some(before), after: Some(after) };
            own.note(Actor::Controller(DEVICE), &change, version + 2);
        }
        (own, past)
    }

    #[test]
    fn a_deleted_pod_is_there_again_from_an_old_event_until_its_deletion_is_told_again() {
        let (mut own, past) = deleted();
        let mut after = |version| {
            own.told(DEVICE, version, false, &past);
            own.there_again(DEVICE).into_iter().collect::<Vec<_>>()
        };
        // The deletions are still awaited: whatever is older tells nothing of them.
        assert!(after(3).is_empty());
        assert!(after(5).is_empty());
        assert!(after(4).is_empty(), "of b, whose deletion is awaited");
        assert!(after(6).is_empty());
        assert_eq!(after(3), ["uid of default/a"], "and not b, which was not told of");
        assert_eq!(after(4), ["uid of default/a", "uid of default/b"]);
        assert_eq!(after(5), ["uid of default/b"]);
        assert!(after(6).is_empty());
    }

    #[test]
    fn an_old_list_tells_of_all_there_were() {
        let (mut own, past) = deleted();
        own.told(DEVICE, 6, false, &past);
        own.told(DEVICE, 3, true, &past);
        assert_eq!(own.there_again(DEVICE).len(), 1, "b was not there yet");
        own.told(DEVICE, 4, true, &past);
        assert_eq!(own.there_again(DEVICE).len(), 2);
        assert!(own.there_again(DEVICE + 1).is_empty());
        own.told(DEVICE, 9, true, &past);
        assert!(own.there_again(DEVICE).is_empty());
    }
}

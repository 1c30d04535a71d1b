//! Nobody acts blindly: not before the lists are there, and nothing is adopted for an owner that
//! was not looked at.

use std::collections::BTreeSet;

use picokube_core::kind::Kind;

use super::super::device::Device;
use super::super::operation::Verb;
use super::{Issued, Verdict};

pub(super) const SYNCED: &str = "nobody acts before the lists are complete";
pub(super) const GAPLESS: &str = "a watch begins where a list or watch has ended";
pub(super) const LOOK: &str = "nothing is adopted without a look at the live owner";

/// What the controllers of Deployments and ReplicaSets have to know.
const OF_DEPLOYMENTS: [Kind; 3] = [Kind::Pod, Kind::ReplicaSet, Kind::Deployment];
/// What that of ReplicationControllers has to know.
const OF_CONTROLLERS: [Kind; 2] = [Kind::Pod, Kind::ReplicationController];
/// What the controller of StatefulSets has to know.
const OF_SETS: [Kind; 4] =
    [Kind::Pod, Kind::StatefulSet, Kind::ControllerRevision, Kind::PersistentVolumeClaim];

/// The owners that each controller has looked at, by resource and name.
#[derive(Debug, Default)]
pub(super) struct Looks(BTreeSet<(usize, &'static str, String)>);

impl Looks {
    pub(super) fn check(&mut self, device: &Device<'_>, issued: &Issued<'_, '_>) -> Verdict {
        let operation = issued.operation;
        let has_all = |kinds: &[Kind]| kinds.iter().all(|kind| device.manager.has_synced(*kind));
        let is_complete = match operation.resource.as_str() {
            "deployments" | "replicasets" => has_all(&OF_DEPLOYMENTS),
            "statefulsets" | "controllerrevisions" | "persistentvolumeclaims" => has_all(&OF_SETS),
            "replicationcontrollers" => has_all(&OF_CONTROLLERS),
            _ => has_all(&OF_DEPLOYMENTS) || has_all(&OF_SETS) || has_all(&OF_CONTROLLERS),
        };
        if !is_complete {
            return Err((SYNCED, "a list is missing".to_owned()));
        }
        let key = |name: &str| format!("{}/{name}", operation.namespace);
        if operation.verb == Verb::Get {
            let owners = ["replicasets", "deployments", "statefulsets", "replicationcontrollers"];
            let owners = owners.into_iter();
            let owners = owners.filter(|plural| *plural == operation.resource);
            self.0.extend(owners.map(|plural| (issued.device, plural, key(&operation.name))));
        }
        let Some((kind, name)) = adopter(issued).filter(|_| operation.verb == Verb::Patch) else {
            return Ok(());
        };
        let owner = match operation.resource.as_str() {
            "pods" if kind == "StatefulSet" => "statefulsets",
            "pods" if kind == "ReplicationController" => "replicationcontrollers",
            "pods" => "replicasets",
            "replicasets" => "deployments",
            "controllerrevisions" => "statefulsets",
            _ => return Ok(()),
        };
        if self.0.contains(&(issued.device, owner, key(&name))) {
            return Ok(());
        }
        Err((LOOK, format!("{owner}/{}", key(&name))))
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.0.retain(|(of, ..)| *of != device);
    }
}

/// A watch from an unknown version on tells of what is there, and nothing of what has gone.
pub(super) fn check_opening(target: &str) -> Verdict {
    let mut parameters = target.split(['?', '&']).skip(1);
    let from = target.split(['?', '&']).find_map(|it| it.strip_prefix("resourceVersion="));
    if parameters.any(|it| it == "watch=true") && matches!(from, None | Some("" | "0")) {
        return Err((GAPLESS, target.to_owned()));
    }
    Ok(())
}

/// Who adopts by this request.
fn adopter(issued: &Issued<'_, '_>) -> Option<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(issued.document).ok()?;
    let owner = &document["metadata"]["ownerReferences"][0];
    let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    (owner["controller"] == true).then(|| (text("kind"), text("name")))
}

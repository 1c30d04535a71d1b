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

/// The owners that each controller has looked at, by resource and name.
#[derive(Debug, Default)]
pub(super) struct Looks(BTreeSet<(usize, &'static str, String)>);

impl Looks {
    pub(super) fn check(&mut self, device: &Device<'_>, issued: &Issued<'_, '_>) -> Verdict {
        let kinds = [Kind::Pod, Kind::ReplicaSet, Kind::Deployment];
        if kinds.iter().any(|kind| !device.manager.has_synced(*kind)) {
            return Err((SYNCED, "a list is missing".to_owned()));
        }
        let operation = issued.operation;
        let key = |name: &str| format!("{}/{name}", operation.namespace);
        if operation.verb == Verb::Get {
            let owners = ["replicasets", "deployments"].into_iter();
            let owners = owners.filter(|plural| *plural == operation.resource);
            self.0.extend(owners.map(|plural| (issued.device, plural, key(&operation.name))));
        }
        let owner = match operation.resource.as_str() {
            "pods" => "replicasets",
            "replicasets" => "deployments",
            _ => return Ok(()),
        };
        let Some(name) = adopter(issued).filter(|_| operation.verb == Verb::Patch) else {
            return Ok(());
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
fn adopter(issued: &Issued<'_, '_>) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(issued.document).ok()?;
    let owner = &document["metadata"]["ownerReferences"][0];
    owner["name"].as_str().filter(|_| owner["controller"] == true).map(str::to_owned)
}

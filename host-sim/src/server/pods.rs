//! What only pods have: binding, eviction and logs.

use serde_json::{Value, json};

use crate::api::decode::Decoded;
use crate::api::status::Status;
use crate::store::object_key;
use crate::time::Timestamp;

use super::Server;
use super::call::Call;
use super::delete::DeleteOptions;
use super::response::Response;

impl Server {
    /// POST of pods/NAME/binding: puts the pod on a node.
    pub(super) fn bind(&mut self, now: Timestamp, mut call: Call) -> Result<Response, Status> {
        let Decoded { object: binding, .. } = call.take_object()?;
        let target = call.target()?;
        let kind = target.kind;
        let id = self.resources.pods;
        let key = object_key(&target.namespace, &target.name);
        let current = self.store.get(id, &key).cloned();
        let current = current.ok_or_else(|| Status::not_found(kind, &target.name))?;
        let node = binding["target"]["name"].as_str().unwrap_or_default();
        if node.is_empty() {
            return Err(super::rules::binding_target_required(&target.name));
        }
        let refuse = |why: String| Err(Status::conflict(kind, &target.name, &why));
        let pod = current.parse();
        let uid = binding["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && uid != &*current.uid {
            return Err(Status::uid_precondition(kind, &target.name, uid, &current.uid));
        }
        if current.deletion.is_some() {
            return refuse(format!(
                "pod {} is being deleted, cannot be assigned to a host",
                target.name
            ));
        }
        if let Some(taken) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            return refuse(format!("pod {} is already assigned to node \"{taken}\"", target.name));
        }
        if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return refuse(format!("pod {} has non-empty .spec.schedulingGates", target.name));
        }
        if !call.options.dry_run {
            let annotations = binding["metadata"]["annotations"].as_object().cloned();
            self.amend(now, id, &current, |pod| {
                pod["spec"]["nodeName"] = json!(node);
                for (name, value) in annotations.into_iter().flatten() {
                    pod["metadata"]["annotations"][name] = value;
                }
                set_scheduled(pod, now);
            });
        }
        let success = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "code": 201,
        });
        Ok(Response::value(201, &success))
    }

    /// POST of pods/NAME/eviction: a deletion that disruption budgets could refuse. None are
    /// served, so every eviction is granted.
    pub(super) fn evict(&mut self, now: Timestamp, mut call: Call) -> Result<Response, Status> {
        let Decoded { object: eviction, .. } = call.take_object()?;
        let target = call.target()?;
        let given = eviction["metadata"]["name"].as_str().unwrap_or_default();
        if !given.is_empty() && given != target.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = DeleteOptions::parse(&eviction["deleteOptions"])?;
        options.dry_run |= call.options.dry_run;
        let key = object_key(&target.namespace, &target.name);
        if self.store.get(self.resources.pods, &key).is_none() {
            return Err(Status::not_found(target.kind, &target.name));
        }
        self.delete_object(now, self.resources.pods, &key, &options)?;
        let success = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "code": 201,
        });
        Ok(Response::value(201, &success))
    }

    /// GET of pods/NAME/log: simulated containers print nothing.
    pub(super) fn read_log(&self, call: &Call) -> Result<Response, Status> {
        let target = call.target()?;
        let key = object_key(&target.namespace, &target.name);
        match self.store.get(self.resources.pods, &key) {
            Some(_) => Ok(Response::text(200, "")),
            None => Err(Status::not_found(target.kind, &target.name)),
        }
    }
}

/// The condition that tells that a pod has its node.
fn set_scheduled(pod: &mut Value, now: Timestamp) {
    let condition = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now.to_rfc3339(),
    });
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => {
            list.retain(|existing| existing["type"] != "PodScheduled");
            list.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}

//! Using the cluster from inside its own process, without a connection.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::Value;

use crate::http::SharedServer;
use crate::server::request::Request;
use crate::store::{Entry, ResourceId};

/// Where the API has the Deployments of the default namespace.
pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Asks for something that has to work. A patch is a merge patch.
pub(super) async fn ask(
    shared: &SharedServer,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<()> {
    let media_type = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::new(method.clone(), path).with_body(media_type, body.to_string());
    let answer = shared.answer(request).await;
    ensure!(answer.status < 300, "{method} {path}: {}", answer.into_value());
    Ok(())
}

/// All objects of a resource, in the order of their names.
pub(super) fn objects(shared: &SharedServer, plural: &str) -> Vec<Value> {
    entries(shared, plural, Entry::parse)
}

/// The numbers and texts of all objects of a resource, without lists: cheaper to look at.
pub(super) fn outlines(shared: &SharedServer, plural: &str) -> Vec<Value> {
    entries(shared, plural, |entry| entry.fields().clone())
}

fn entries(shared: &SharedServer, plural: &str, look: impl Fn(&Entry) -> Value) -> Vec<Value> {
    let server = shared.read();
    let id = server.stored_kinds().iter().position(|kind| kind.plural == plural);
    let Some(id) = id else { return Vec::new() };
    let entries = server.store().resource(ResourceId(id as u16)).range("", None);
    entries.map(|entry| look(entry)).collect()
}

/// What `kubectl rollout status` waits for.
pub(super) fn is_rolled_out(deployment: &Value) -> bool {
    let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|count| status[count] == *wanted)
}

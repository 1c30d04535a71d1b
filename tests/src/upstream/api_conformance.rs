//! Conformance tests of the API server and of what keeps namespaces (`[sig-api-machinery]`,
//! `[sig-auth]`, `[sig-network]`), with simulated nodes.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::lab::text;
use crate::picokube::Picokube;

/// Servers with support for Table transformation should return a 406 for a backend which does not
/// implement metadata
pub fn should_return_a_406_for_a_backend_which_does_not_implement_metadata(
    cluster: &Picokube,
) -> Result<()> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "version": "v1"}},
    });
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let ask = |accept: &str| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        cluster.client()?.send("POST", path, &headers, review.to_string().as_bytes())
    };
    let refused = ask(table)?;
    assert_eq!(refused.status, 406, "{}", refused.text());
    let status = refused.json()?;
    assert_eq!(status["reason"], "NotAcceptable");
    ensure!(text(&status["message"]).contains("application/json"), "{status:#}");
    // As kubectl asks: it takes the object where there is no table.
    let answer = ask(&format!("{table},application/json"))?;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = answer.json()?;
    assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    assert_eq!(answer["status"]["allowed"], true);
    Ok(())
}

//! Questions that are answered at once and stored nowhere: who am I, and may I.
//!
//! Whoever gets in may do everything: there is no RBAC to consult.

use serde_json::{Value, json};

use crate::api::status::Status;
use crate::api::table::partial_metadata;
use crate::time::Timestamp;

use super::Server;
use super::call::Call;
use super::media::Form;
use super::response::Response;

impl Server {
    /// POST of a review.
    pub(super) fn answer_review(
        &self,
        _now: Timestamp,
        mut call: Call,
    ) -> Result<Response, Status> {
        if call.verb != "create" {
            return Err(Status::method_not_allowed());
        }
        let mut review = call.take_object()?.object;
        let kind = call.kind()?;
        review["kind"] = json!(kind.kind);
        review["apiVersion"] = json!(kind.api_version());
        review["status"] = match kind.kind {
            "SelfSubjectAccessReview" => {
                json!({"allowed": true, "reason": "every user of this server may do everything"})
            }
            "SelfSubjectRulesReview" => json!({
                "incomplete": false,
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }),
            "SelfSubjectReview" => json!({"userInfo": user_info(&call)}),
            _ => return Err(Status::method_not_allowed()),
        };
        if call.form == Form::Metadata {
            review = partial_metadata(&review);
        }
        Ok(Response::value(201, &review))
    }
}

fn user_info(call: &Call) -> Value {
    let mut info = json!({"username": call.user.name, "groups": call.user.groups});
    if let Some(extra) = call.user.extra() {
        info["extra"] = extra;
    }
    info
}

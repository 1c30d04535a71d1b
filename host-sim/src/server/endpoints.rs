//! Paths that are no resources: health, version, discovery and OpenAPI.

use serde_json::json;

use crate::api::status::Status;

use super::Server;
use super::call::Call;
use super::media::Form;
use super::response::Response;
use super::rules;

/// The Kubernetes version whose behaviour this server reproduces.
const MINOR: &str = "34";
const GIT_VERSION: &str = concat!("v1.34.0+picokube-", env!("CARGO_PKG_VERSION"));

impl Server {
    /// GET of a path that is no resource.
    pub(super) fn answer_endpoint(&self, path: &str, call: &Call) -> Result<Response, Status> {
        let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        match path {
            "/healthz" | "/livez" | "/readyz" => Ok(Response::text(200, "ok")),
            "/version" => Ok(Response::value(
                200,
                &json!({
                    "major": "1",
                    "minor": MINOR,
                    "gitVersion": GIT_VERSION,
                    "gitCommit": "",
                    "gitTreeState": "clean",
                    "buildDate": "1970-01-01T00:00:00Z",
                    "goVersion": "none (rust)",
                    "compiler": "rustc",
                    "platform": format!("{}/{}", std::env::consts::OS, architecture()),
                }),
            )),
            _ => rules::document(path, call.form == Form::AggregatedDiscovery, &call.if_none_match)
                .ok_or_else(Status::unknown_resource),
        }
    }
}

/// The architecture as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

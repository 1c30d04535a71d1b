//! Paths that are no resources: health, version, discovery and OpenAPI.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::discovery::{self, AggregatedVersion};
use crate::api::openapi;
use crate::api::status::Status;

use super::Server;
use super::call::Call;
use super::response::{Body, Response};

/// The Kubernetes version whose behaviour this server reproduces.
const MINOR: &str = "34";
const GIT_VERSION: &str = concat!("v1.34.0+picokube-", env!("CARGO_PKG_VERSION"));
/// The environment variable with which a build names its commit and its time.
const GIT_COMMIT: Option<&str> = option_env!("PICOKUBE_GIT_COMMIT");

impl Server {
    /// GET of a path that is no resource.
    pub(super) fn answer_endpoint(&self, path: &str, call: &Call) -> Result<Response, Status> {
        let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let aggregated = aggregated_version(&call.accept);
        let document = match segments.as_slice() {
            [""] => json!({"paths": paths()}),
            ["healthz" | "livez" | "readyz", ..] => return Ok(Response::text(200, "ok")),
            ["version"] => return Ok(Response::value(200, &version())),
            ["api"] => match aggregated {
                Some(version) => {
                    let body = discovery::aggregated_core(version);
                    return Ok(document(&body, version.content_type().into(), call));
                }
                None => discovery::core_versions(""),
            },
            ["apis"] => match aggregated {
                Some(version) => {
                    let body = discovery::aggregated_groups(version);
                    return Ok(document(&body, version.content_type().into(), call));
                }
                None => discovery::groups(),
            },
            ["api", version] => {
                discovery::resources("", version).ok_or_else(Status::unknown_resource)?
            }
            ["apis", group] => discovery::group(group).ok_or_else(Status::unknown_resource)?,
            ["apis", group, version] => {
                discovery::resources(group, version).ok_or_else(Status::unknown_resource)?
            }
            ["openapi", "v2"] if call.accept.contains(openapi::V2_PROTOBUF) => {
                let bytes = Bytes::from_static(openapi::v2_protobuf());
                return Ok(tagged(bytes, openapi::V2_PROTOBUF.into(), call));
            }
            ["openapi", "v2"] => return Ok(published(openapi::v2(), call)),
            ["openapi", "v3"] => return Ok(published(openapi::v3_index(), call)),
            ["openapi", "v3", rest @ ..] => {
                let found = openapi::v3(&rest.join("/")).ok_or_else(Status::unknown_resource)?;
                return Ok(published(found, call));
            }
            _ => return Err(Status::unknown_resource()),
        };
        Ok(tagged(to_bytes(&document), "application/json".into(), call))
    }
}

/// The form of aggregated discovery that comes first in an Accept header, before plain JSON.
fn aggregated_version(accept: &str) -> Option<AggregatedVersion> {
    let first = accept.split(',').map(str::trim).find(|range| {
        range.contains("as=APIGroupDiscoveryList")
            || *range == "application/json"
            || *range == "*/*"
    })?;
    let versions = [AggregatedVersion::V2, AggregatedVersion::V2Beta1];
    versions.into_iter().find(|version| {
        first.split(';').any(|part| part.strip_prefix("v=") == Some(version.as_str()))
    })
}

fn document(body: &Value, content_type: Cow<'static, str>, call: &Call) -> Response {
    tagged(to_bytes(body), content_type, call)
}

fn published(document: &'static openapi::Document, call: &Call) -> Response {
    let bytes = Bytes::from_static(document.json.as_bytes());
    tagged(bytes, "application/json".into(), call)
}

/// An answer that clients may keep: they ask with its tag whether it has changed.
fn tagged(bytes: Bytes, content_type: Cow<'static, str>, call: &Call) -> Response {
    let tag = format!("\"{:016X}\"", fingerprint(&bytes));
    let unchanged = call.if_none_match.split(',').any(|known| known.trim() == tag);
    let mut response = Response::json(if unchanged { 304 } else { 200 }, bytes);
    if unchanged {
        response.body = Body::Whole(Bytes::new());
    }
    response.content_type = content_type;
    response.with_header("etag", tag).with_header("vary", "Accept")
}

/// FNV-1a: tells documents of different builds apart, nothing more.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": GIT_VERSION,
        "gitCommit": GIT_COMMIT.unwrap_or("unknown"),
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

fn paths() -> Vec<String> {
    static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut paths: Vec<String> =
            ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2"]
                .map(str::to_owned)
                .to_vec();
        for group in discovery::group_names() {
            paths.push(format!("/apis/{group}"));
            for version in discovery::versions(group) {
                paths.push(format!("/apis/{group}/{version}"));
            }
        }
        paths.extend(["/openapi/v3", "/readyz", "/version"].map(str::to_owned));
        paths.sort();
        paths
    });
    PATHS.clone()
}

/// The architecture as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregated_discovery_is_for_those_who_ask_first_for_it() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
            application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
            application/json";
        assert_eq!(aggregated_version(kubectl), Some(AggregatedVersion::V2));
        assert_eq!(aggregated_version("application/json"), None);
        assert_eq!(aggregated_version("*/*"), None);
        assert_eq!(aggregated_version(""), None);
    }
}

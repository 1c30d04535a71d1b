//! Paths that lead nowhere, and methods that do not fit.

use super::case::Case;
use super::{DEPLOYMENTS, PODS};

fn nowhere(name: &'static str, path: impl Into<String>) -> Case {
    Case::get(name, path, 404, "NotFound")
}

fn denied(name: &'static str, method: &'static str, path: impl Into<String>) -> Case {
    Case::new(name, method, path, 405, "MethodNotAllowed")
}

pub(crate) fn cases() -> Vec<Case> {
    let pod = |tail: &str| format!("{PODS}/{tail}");
    let web = |tail: &str| format!("{DEPLOYMENTS}/web{tail}");
    vec![
        nowhere("unknown path", "/nowhere"),
        nowhere("unknown group", "/apis/nowhere.io/v1/things"),
        nowhere("unknown version of a group", "/apis/apps/v9/deployments"),
        nowhere("unknown version of the core", "/api/v2/pods"),
        nowhere("unknown resource", "/api/v1/widgets"),
        nowhere("resource of another group", "/apis/apps/v1/pods"),
        nowhere("singular", "/api/v1/namespaces/default/pod"),
        nowhere("kind for a resource", "/api/v1/namespaces/default/Pod"),
        nowhere("unknown subresource", pod("bound/soul")),
        nowhere("too many segments", pod("bound/status/more")),
        nowhere("namespaced without a namespace", "/api/v1/pods/bound"),
        nowhere("node in a namespace", "/api/v1/namespaces/default/nodes"),
        nowhere("parent directories", pod("../../../nodes")),
        nowhere("parent directories, encoded", pod("%2e%2e/%2e%2e/%2e%2e/nodes")),
        nowhere("parent directories, half encoded", pod(".%2e/bound")),
        nowhere("parent directories, encoded twice", pod("%252e%252e/bound")),
        nowhere("this directory", pod("./bound")),
        nowhere("slash, encoded", pod("%2fbound")),
        nowhere("slash within a name, encoded", pod("bound%2fstatus")),
        nowhere("backslashes", pod("..%5c..%5cnodes")),
        nowhere("zero byte", pod("bound%00")),
        nowhere("line feed", pod("bound%0a")),
        nowhere("broken escape in a path", pod("bound%zz")),
        nowhere("half an escape", pod("bound%2")),
        nowhere("bytes that are no text", pod("%ff%fe")),
        nowhere("slashes first", "//api/v1/nodes"),
        nowhere("slashes after api", "/api//v1/nodes"),
        nowhere("slashes before the resource", "/api/v1//nodes"),
        nowhere("slashes before the name", "/api/v1/namespaces/default/pods//bound"),
        nowhere("empty namespace", "/api/v1/namespaces//pods"),
        nowhere("name in capitals in a path", pod("BOUND")),
        nowhere("long name", pod(&"n".repeat(8000))),
        nowhere("many segments", "/a".repeat(4000)),
        nowhere("openapi of an unknown group", "/openapi/v3/apis/nowhere.io/v1"),
        nowhere("openapi with a way out", "/openapi/v3/../../etc/passwd"),
        denied("PUT of a collection", "PUT", PODS),
        denied("PATCH of a collection", "PATCH", PODS),
        denied("POST of an object", "POST", pod("bound")),
        denied("POST without a namespace", "POST", "/api/v1/pods"),
        denied("DELETE without a namespace", "DELETE", "/api/v1/pods"),
        denied("OPTIONS", "OPTIONS", PODS),
        denied("TRACE", "TRACE", PODS),
        denied("unknown method", "BREW", PODS),
        denied("method in small letters", "get", PODS),
        denied("GET of a binding", "GET", pod("bound/binding")),
        denied("GET of an eviction", "GET", pod("bound/eviction")),
        denied("DELETE of a binding", "DELETE", pod("bound/binding")),
        denied("POST of a scale", "POST", web("/scale")),
        denied("DELETE of a scale", "DELETE", web("/scale")),
        denied("POST of a status", "POST", web("/status")),
        denied("DELETE of a status", "DELETE", web("/status")),
        denied("GET of a review", "GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        denied("POST of the version", "POST", "/version"),
        denied("DELETE of the API", "DELETE", "/api"),
        denied("PUT of health", "PUT", "/healthz"),
    ]
}

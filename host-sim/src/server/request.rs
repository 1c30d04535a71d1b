//! What a request asks for: its path, its verb and its query options, parsed and checked.

use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderName};
use http::request::Parts;
use serde_json::{Value, json};

use crate::api::kind::{self, Kind};
use crate::api::status::Status;

use super::url;

/// A request as the shell (or a simulation) hands it in.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path, still percent-encoded, without the query.
    pub path: String,
    /// Query, still percent-encoded; empty if there is none.
    pub query: String,
    /// The Accept header; empty if there is none.
    pub accept: String,
    /// The Content-Type header; empty if there is none.
    pub content_type: String,
    /// The User-Agent header; it names the field manager where the query does not.
    pub user_agent: String,
    /// The If-None-Match header; empty if there is none.
    pub if_none_match: String,
    /// Who is asking.
    pub user: User,
    /// The whole body.
    pub body: Bytes,
}

/// Who is asking, as SelfSubjectReview reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Which of the user's credentials was shown, if it has an id.
    pub credential_id: Option<String>,
}

impl User {
    /// Somebody who has not said who it is.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            credential_id: None,
        }
    }

    /// Somebody whose name and groups a credential tells.
    pub fn authenticated(name: String, mut groups: Vec<String>, credential_id: String) -> Self {
        let everybody = ["system:authenticated", "system:unauthenticated"];
        if !groups.iter().any(|group| everybody.contains(&group.as_str())) {
            groups.push("system:authenticated".to_owned());
        }
        Self { name, groups, credential_id: Some(credential_id) }
    }

    /// What else is known, by upstream's names.
    pub fn extra(&self) -> Option<Value> {
        let id = self.credential_id.as_ref()?;
        Some(json!({"authentication.kubernetes.io/credential-id": [id]}))
    }

    /// Whether it has not said who it is.
    pub fn is_anonymous(&self) -> bool {
        self.groups.iter().any(|group| group == "system:unauthenticated")
    }
}

impl Default for User {
    fn default() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            credential_id: None,
        }
    }
}

impl Request {
    /// A request with this head, without its body.
    pub fn of_head(head: &Parts, user: User) -> Self {
        let header = |name: HeaderName| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Self {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            accept: all_values(head, header::ACCEPT),
            content_type: header(header::CONTENT_TYPE),
            user_agent: header(header::USER_AGENT),
            if_none_match: header(header::IF_NONE_MATCH),
            user,
            body: Bytes::new(),
        }
    }

    /// A request without a body, as a client that takes JSON sends it.
    pub fn new(method: Method, path_and_query: &str) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            accept: "application/json".to_owned(),
            content_type: String::new(),
            user_agent: String::new(),
            if_none_match: String::new(),
            user: User::default(),
            body: Bytes::new(),
        }
    }

    /// The same request with a body of that media type.
    pub fn with_body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.content_type = content_type.to_owned();
        self.body = body.into();
        self
    }
}

/// What a path points at.
#[derive(Clone, Debug)]
pub enum Target {
    /// An object, a collection or a subresource of a served kind.
    Resource(ResourceTarget),
    /// Anything else, by its path.
    NonResource(String),
}

/// An object, a collection or a subresource of a served kind.
#[derive(Clone, Debug)]
pub struct ResourceTarget {
    /// The kind in the path.
    pub kind: &'static Kind,
    /// The namespace in the path; empty for cluster-scoped kinds and for all namespaces.
    pub namespace: String,
    /// The name in the path; empty for a collection.
    pub name: String,
    /// The subresource in the path; empty if there is none.
    pub subresource: String,
    /// Whether the path is one of the deprecated `/watch/` paths.
    pub watch_path: bool,
}

impl Target {
    /// Takes a path apart.
    pub fn parse(path: &str) -> Result<Self, Status> {
        let mut segments = Vec::new();
        for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
            segments.push(url::decode(segment, false).ok_or_else(Status::unknown_resource)?);
        }
        if segments.last().is_some_and(String::is_empty) {
            segments.pop();
        }
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(Self::NonResource(path.to_owned())),
        };
        // `.`, `..` and nested slashes name no object; a proxy may already have resolved them.
        if rest.iter().any(|s| s.is_empty() || *s == "." || *s == ".." || s.contains(['/', '%'])) {
            return Err(Status::unknown_resource());
        }
        let (watch_path, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, plural, name, subresource) = match rest {
            ["namespaces", namespace, plural, tail @ ..]
                if !(group.is_empty() && is_namespace_subresource(plural)) =>
            {
                let (name, subresource) = name_and_subresource(tail)?;
                (*namespace, *plural, name, subresource)
            }
            [plural, tail @ ..] => {
                let (name, subresource) = name_and_subresource(tail)?;
                ("", *plural, name, subresource)
            }
            [] => return Err(Status::unknown_resource()),
        };
        let kind = kind::find(group, version, plural).ok_or_else(Status::unknown_resource)?;
        let misplaced = !kind.namespaced && !namespace.is_empty()
            || kind.namespaced && namespace.is_empty() && !name.is_empty();
        let known = subresource.is_empty() || kind.subresource(subresource).is_some();
        if misplaced || !known {
            return Err(Status::unknown_resource());
        }
        Ok(Self::Resource(ResourceTarget {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            watch_path,
        }))
    }
}

/// Several Accept headers count as one.
fn all_values(head: &Parts, name: HeaderName) -> String {
    let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

impl ResourceTarget {
    /// Whether objects like the answer are kept, so that somebody may want them in a table.
    pub fn has_table(&self) -> bool {
        let is_action = matches!(self.subresource.as_str(), "binding" | "eviction");
        self.kind.stored_as().is_some() && !is_action
    }

    /// The verb of a request to this target.
    pub fn verb(&self, method: &Method, watch: bool) -> Result<&'static str, Status> {
        let named = !self.name.is_empty();
        let all_namespaces = self.kind.namespaced && self.namespace.is_empty();
        let verb = match *method {
            Method::POST | Method::DELETE if all_namespaces => {
                return Err(Status::method_not_allowed());
            }
            Method::GET | Method::HEAD if watch || self.watch_path => "watch",
            Method::GET | Method::HEAD if named => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST if !named || !self.subresource.is_empty() => "create",
            Method::PUT if named => "update",
            Method::PATCH if named => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => return Err(Status::method_not_allowed()),
        };
        // A watch of one object by its path is the old spelling of a field selector.
        let allowed = if self.subresource.is_empty() {
            self.kind.allows(verb)
        } else {
            self.kind.subresource(&self.subresource).is_some_and(|s| s.verbs.contains(&verb))
        };
        if allowed { Ok(verb) } else { Err(Status::method_not_allowed()) }
    }
}

fn is_namespace_subresource(segment: &str) -> bool {
    matches!(segment, "status" | "finalize")
}

fn name_and_subresource<'a>(tail: &[&'a str]) -> Result<(&'a str, &'a str), Status> {
    match tail {
        [] => Ok(("", "")),
        [name] => Ok((*name, "")),
        [name, subresource] => Ok((*name, *subresource)),
        _ => Err(Status::unknown_resource()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> (String, String, String, String) {
        match Target::parse(path) {
            Ok(Target::Resource(t)) => (t.kind.kind.into(), t.namespace, t.name, t.subresource),
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn takes_paths_apart() {
        let cases = [
            ("/api/v1/pods", ("Pod", "", "", "")),
            ("/api/v1/namespaces/a/pods", ("Pod", "a", "", "")),
            ("/api/v1/namespaces/a/pods/p", ("Pod", "a", "p", "")),
            ("/api/v1/namespaces/a/pods/p/binding", ("Pod", "a", "p", "binding")),
            ("/api/v1/namespaces", ("Namespace", "", "", "")),
            ("/api/v1/namespaces/a", ("Namespace", "", "a", "")),
            ("/api/v1/namespaces/a/", ("Namespace", "", "a", "")),
            ("/api/v1/namespaces/a/finalize", ("Namespace", "", "a", "finalize")),
            ("/apis/apps/v1/namespaces/a/deployments/d/scale", ("Deployment", "a", "d", "scale")),
            ("/api/v1/watch/namespaces/a/pods", ("Pod", "a", "", "")),
        ];
        for (path, (kind, namespace, name, subresource)) in cases {
            let expected = (kind.into(), namespace.into(), name.into(), subresource.into());
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn refuses_paths_that_name_nothing() {
        for path in [
            "/api/v1/nonsense",
            "/api/v1/namespaces/a/pods/p/nonsense",
            "/api/v1/namespaces/a/pods/p/status/deeper",
            "/api/v1/namespaces/a/nodes/n",
            "/api/v1/pods/p",
            "/api/v1/namespaces/a/pods/..",
            "/api/v1/namespaces/a/pods/%2e%2e",
            "/api/v1/namespaces//pods",
            "/api/v1/namespaces/a/pods/b%2Fc",
            "/api/v1/namespaces/a/pods/%zz",
            "/api/v1/namespaces/a/pods/%ff",
        ] {
            let error = Target::parse(path).err().unwrap_or_else(|| panic!("{path} was taken"));
            assert_eq!(error.code(), 404, "{path}");
        }
    }

    #[test]
    fn everything_else_is_left_to_other_endpoints() {
        for path in
            ["/", "/api", "/api/v1", "/apis/apps/v1", "/healthz", "/openapi/v3/apis/apps/v1"]
        {
            assert!(matches!(Target::parse(path), Ok(Target::NonResource(_))), "{path}");
        }
    }

    #[test]
    fn verbs_follow_method_and_target() {
        let verb = |method: Method, path: &str, watch| match Target::parse(path) {
            Ok(Target::Resource(target)) => target.verb(&method, watch).map_err(|e| e.code()),
            other => panic!("{other:?}"),
        };
        let pods = "/api/v1/namespaces/a/pods";
        let pod = "/api/v1/namespaces/a/pods/p";
        assert_eq!(verb(Method::GET, pods, false), Ok("list"));
        assert_eq!(verb(Method::GET, pods, true), Ok("watch"));
        assert_eq!(verb(Method::DELETE, pods, false), Ok("deletecollection"));
        assert_eq!(verb(Method::PUT, pods, false), Err(405));
        assert_eq!(verb(Method::POST, pod, false), Err(405));
        assert_eq!(verb(Method::OPTIONS, pod, false), Err(405));
        assert_eq!(verb(Method::POST, "/api/v1/namespaces/a/pods/p/binding", false), Ok("create"));
        assert_eq!(verb(Method::GET, "/api/v1/namespaces/a/pods/p/binding", false), Err(405));
        assert_eq!(verb(Method::DELETE, "/api/v1/namespaces", false), Err(405));
    }
}

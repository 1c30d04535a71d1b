//! What a request of a controller is about, read from its verb and path.

use picokube_core::manager::{Method, Request};

/// A request, as far as checks and traces care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// What is done.
    pub(super) verb: Verb,
    /// To objects of this resource, in the plural.
    pub(super) resource: String,
    /// The namespace.
    pub(super) namespace: String,
    /// The object; empty if it is created.
    pub(super) name: String,
    /// Whether its status is written rather than itself.
    pub(super) status: bool,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// It is read.
    Get,
    /// It is created.
    Create,
    /// It is changed.
    Patch,
    /// It is deleted.
    Delete,
}

impl Operation {
    pub(super) fn of(request: &Request) -> Self {
        let path = request.target.split('?').next().unwrap_or_default();
        let verb = match request.method {
            Method::Get => Verb::Get,
            Method::Post => Verb::Create,
            Method::Patch => Verb::Patch,
            Method::Delete => Verb::Delete,
        };
        Self { verb, ..Self::of_path(path) }
    }

    /// What a path is about; it is read.
    pub(super) fn of_path(path: &str) -> Self {
        // /api/v1/namespaces/NS/pods/NAME or /apis/apps/v1/namespaces/NS/deployments/NAME/status
        let mut parts = path.split('/').skip_while(|part| *part != "namespaces").skip(1);
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (namespace, resource, name) = (next(), next(), next());
        Self { verb: Verb::Get, resource, namespace, name, status: next() == "status" }
    }

    /// Whether it is this, to objects of that resource.
    pub(super) fn is(&self, verb: Verb, resource: &str) -> bool {
        self.verb == verb && self.resource == resource && !self.status
    }
}

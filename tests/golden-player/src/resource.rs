//! The resources that scenarios touch, and where an API server keeps them.

use std::fmt;

use serde::Deserialize;

/// A resource by its plural name, as in URLs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// apps/v1 Deployment.
    Deployments,
    /// apps/v1 ReplicaSet.
    ReplicaSets,
    /// apps/v1 StatefulSet.
    StatefulSets,
    /// apps/v1 ControllerRevision.
    ControllerRevisions,
    /// v1 Pod.
    Pods,
    /// v1 Event.
    Events,
    /// v1 PersistentVolumeClaim.
    PersistentVolumeClaims,
    /// v1 ResourceQuota.
    ResourceQuotas,
    /// v1 Service.
    Services,
}

impl Resource {
    /// Every one, owners before what they own: the order in which a namespace is emptied.
    pub const ALL: [Self; 9] = [
        Self::Deployments,
        Self::StatefulSets,
        Self::ReplicaSets,
        Self::Pods,
        Self::PersistentVolumeClaims,
        Self::ControllerRevisions,
        Self::ResourceQuotas,
        Self::Services,
        Self::Events,
    ];

    /// The resource that holds objects of this kind.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.kind() == kind)
    }

    /// The resource of this plural name.
    pub fn of_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.plural() == plural)
    }

    /// The kind of its objects.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Deployments => "Deployment",
            Self::ReplicaSets => "ReplicaSet",
            Self::StatefulSets => "StatefulSet",
            Self::ControllerRevisions => "ControllerRevision",
            Self::Pods => "Pod",
            Self::Events => "Event",
            Self::PersistentVolumeClaims => "PersistentVolumeClaim",
            Self::ResourceQuotas => "ResourceQuota",
            Self::Services => "Service",
        }
    }

    /// Its name in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Deployments => "deployments",
            Self::ReplicaSets => "replicasets",
            Self::StatefulSets => "statefulsets",
            Self::ControllerRevisions => "controllerrevisions",
            Self::Pods => "pods",
            Self::Events => "events",
            Self::PersistentVolumeClaims => "persistentvolumeclaims",
            Self::ResourceQuotas => "resourcequotas",
            Self::Services => "services",
        }
    }

    /// The path of the collection in a namespace.
    pub fn collection(self, namespace: &str) -> String {
        let group = match self {
            Self::Deployments
            | Self::ReplicaSets
            | Self::StatefulSets
            | Self::ControllerRevisions => "/apis/apps/v1",
            _ => "/api/v1",
        };
        format!("{group}/namespaces/{namespace}/{}", self.plural())
    }

    /// The path of one object.
    pub fn object(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }

    /// The path of a part of one object, such as its `status`; of the object without one.
    pub fn subresource(self, namespace: &str, name: &str, part: Option<&str>) -> String {
        let object = self.object(namespace, name);
        match part {
            Some(part) => format!("{object}/{part}"),
            None => object,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_resource() {
        for resource in Resource::ALL {
            assert_eq!(Resource::of_kind(resource.kind()), Some(resource));
            assert_eq!(Resource::of_plural(resource.plural()), Some(resource));
            let read: Resource = serde_json::from_value(resource.plural().into()).unwrap();
            assert_eq!(read, resource);
        }
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let path = Resource::Deployments.subresource("ns", "web", Some("scale"));
        assert_eq!(path, "/apis/apps/v1/namespaces/ns/deployments/web/scale");
        assert_eq!(Resource::Pods.object("ns", "p"), "/api/v1/namespaces/ns/pods/p");
    }
}

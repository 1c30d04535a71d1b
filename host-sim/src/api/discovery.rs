//! Discovery: what is served, for clients that start with nothing.
//!
//! The plain form is one document per group and version; the aggregated form has all in two.

use serde_json::{Value, json};

use super::kind::{ALL, Kind, Subresource};

/// The version of the aggregated form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregatedVersion {
    /// Since Kubernetes 1.30.
    V2,
    /// Since Kubernetes 1.26.
    V2Beta1,
}

impl AggregatedVersion {
    /// The version as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }

    /// The content type of the answer, by which clients know the form.
    pub fn content_type(self) -> String {
        let version = self.as_str();
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    }
}

/// `/api`: the versions of the core group. `address` is where the server can be reached.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`: all named groups.
pub fn groups() -> Value {
    let groups: Vec<Value> = group_names().into_iter().filter_map(group_body).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: one group.
pub fn group(name: &str) -> Option<Value> {
    let mut body = group_body(name)?;
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Some(body)
}

/// `/api/v1` and `/apis/<group>/<version>`: the resources of one group and version.
pub fn resources(group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in kinds_of(group, version) {
        resources.push(resource(kind));
        resources.extend(kind.subresources.iter().map(|sub| subresource(kind, sub)));
    }
    if resources.is_empty() {
        return None;
    }
    resources.sort_by_key(|r| r["name"].as_str().unwrap_or("").to_owned());
    let group_version = join(group, version);
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

/// `/api` in the aggregated form.
pub fn aggregated_core(version: AggregatedVersion) -> Value {
    aggregated(version, &[""])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups(version: AggregatedVersion) -> Value {
    aggregated(version, &group_names())
}

/// The named groups, in the order of the table.
pub fn group_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in ALL.iter().filter(|k| !k.group.is_empty()) {
        if !names.contains(&kind.group) {
            names.push(kind.group);
        }
    }
    names
}

/// The versions of a group, the preferred one first.
pub fn versions(group: &str) -> Vec<&'static str> {
    let mut versions: Vec<&str> = Vec::new();
    for kind in ALL.iter().filter(|k| k.group == group) {
        if !versions.contains(&kind.version) {
            versions.push(kind.version);
        }
    }
    versions
}

fn kinds_of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    ALL.iter().filter(move |k| k.group == group && k.version == version)
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_body(name: &str) -> Option<Value> {
    let entry = |version: &&str| json!({"groupVersion": join(name, version), "version": version});
    let versions: Vec<Value> = versions(name).iter().map(entry).collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

fn resource(kind: &Kind) -> Value {
    let mut body = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        body["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        body["categories"] = json!(kind.categories);
    }
    body
}

fn subresource(kind: &Kind, sub: &Subresource) -> Value {
    let mut body = json!({
        "name": format!("{}/{}", kind.plural, sub.name),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sub.kind,
        "verbs": sub.verbs,
    });
    if (sub.group, sub.version) != (kind.group, kind.version) {
        body["group"] = json!(sub.group);
        body["version"] = json!(sub.version);
    }
    body
}

fn aggregated(version: AggregatedVersion, groups: &[&str]) -> Value {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group(group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", version.as_str()),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(group: &str) -> Value {
    let version = |version: &&'static str| {
        let resources: Vec<Value> = kinds_of(group, version).map(aggregated_resource).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = versions(group).iter().map(version).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(kind: &Kind) -> Value {
    let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
    let gvk = |group: &str, version: &str, kind: &str| {
        json!({"group": group, "version": version,
        "kind": kind})
    };
    let subresource = |sub: &Subresource| {
        json!({"subresource": sub.name, "verbs": sub.verbs,
               "responseKind": gvk(sub.group, sub.version, sub.kind)})
    };
    let mut body = json!({
        "resource": kind.plural,
        "responseKind": gvk(kind.group, kind.version, kind.kind),
        "scope": scope,
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        body["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        body["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        let subresources: Vec<Value> = kind.subresources.iter().map(subresource).collect();
        body["subresources"] = json!(subresources);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_discovery_lists_groups_versions_and_resources() {
        let groups = groups();
        let names: Vec<&str> = groups["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|g| g["name"].as_str())
            .collect();
        assert!(names.contains(&"apps") && names.contains(&"events.k8s.io"));
        assert_eq!(group("autoscaling").unwrap()["preferredVersion"]["version"], "v2");
        assert!(group("nope").is_none() && resources("apps", "v9").is_none());
        let apps = resources("apps", "v1").unwrap();
        let list = apps["resources"].as_array().unwrap();
        let find = |name: &str| list.iter().find(|r| r["name"] == name).unwrap();
        assert_eq!(
            find("deployments"),
            &json!({"name": "deployments", "singularName": "deployment", "namespaced": true,
                    "kind": "Deployment", "shortNames": ["deploy"], "categories": ["all"],
                    "verbs": ["create", "delete", "deletecollection", "get", "list", "patch",
                              "update", "watch"]})
        );
        assert_eq!(
            find("deployments/scale"),
            &json!({"name": "deployments/scale", "singularName": "", "namespaced": true,
                    "group": "autoscaling", "version": "v1", "kind": "Scale",
                    "verbs": ["get", "patch", "update"]})
        );
    }

    #[test]
    fn a_replication_controller_is_told_with_its_scale_in_both_forms() {
        let core = resources("", "v1").unwrap();
        let list = core["resources"].as_array().unwrap();
        let find = |name: &str| list.iter().find(|r| r["name"] == name).unwrap();
        assert_eq!(
            find("replicationcontrollers"),
            &json!({"name": "replicationcontrollers", "singularName": "replicationcontroller",
                    "namespaced": true, "kind": "ReplicationController", "shortNames": ["rc"],
                    "categories": ["all"],
                    "verbs": ["create", "delete", "deletecollection", "get", "list", "patch",
                              "update", "watch"]})
        );
        assert_eq!(
            find("replicationcontrollers/scale"),
            &json!({"name": "replicationcontrollers/scale", "singularName": "", "namespaced": true,
                    "group": "autoscaling", "version": "v1", "kind": "Scale",
                    "verbs": ["get", "patch", "update"]})
        );
        assert_eq!(
            find("replicationcontrollers/status"),
            &json!({"name": "replicationcontrollers/status", "singularName": "",
                    "namespaced": true, "kind": "ReplicationController",
                    "verbs": ["get", "patch", "update"]})
        );
        let core = aggregated_core(AggregatedVersion::V2);
        let list = core["items"][0]["versions"][0]["resources"].as_array().unwrap();
        let found = list.iter().find(|r| r["resource"] == "replicationcontrollers").unwrap();
        assert_eq!(
            found["subresources"],
            json!([
                {"subresource": "scale", "verbs": ["get", "patch", "update"],
                 "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}},
                {"subresource": "status", "verbs": ["get", "patch", "update"],
                 "responseKind": {"group": "", "version": "v1", "kind": "ReplicationController"}},
            ])
        );
    }

    #[test]
    fn aggregated_discovery_has_everything_in_two_documents() {
        let core = aggregated_core(AggregatedVersion::V2);
        assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
        let resources = core["items"][0]["versions"][0]["resources"].as_array().unwrap();
        let pods = resources.iter().find(|r| r["resource"] == "pods").unwrap();
        assert_eq!(pods["scope"], "Namespaced");
        assert_eq!(pods["responseKind"], json!({"group": "", "version": "v1", "kind": "Pod"}));
        let groups = aggregated_groups(AggregatedVersion::V2Beta1);
        let served: usize = groups["items"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|g| g["versions"].as_array().unwrap())
            .map(|v| v["resources"].as_array().unwrap().len())
            .sum();
        assert_eq!(served + resources.len(), ALL.len());
    }
}

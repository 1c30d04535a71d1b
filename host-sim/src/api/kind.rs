//! What a served kind is: one small descriptor each. The table itself is in `kinds.rs`.

pub use super::kinds::ALL;
use super::rules::Rules;
use super::selector::FieldLabel;
use super::table::{Column, Row};

/// Everything the generic machinery needs to know about a kind.
#[derive(Debug)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, such as `v1`.
    pub version: &'static str,
    /// The kind's name, such as `Deployment`.
    pub kind: &'static str,
    /// The kind of a list of it; empty if it cannot be listed.
    pub list_kind: &'static str,
    /// The resource's name in paths, such as `deployments`.
    pub plural: &'static str,
    /// The resource's singular name.
    pub singular: &'static str,
    /// Abbreviations kubectl takes.
    pub short_names: &'static [&'static str],
    /// Groups of resources kubectl takes; `all` is the one in use.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// The verbs of the resource itself.
    pub verbs: &'static [&'static str],
    /// What can be addressed below an object.
    pub subresources: &'static [Subresource],
    /// Where its objects are kept.
    pub storage: Storage,
    /// When `metadata.generation` goes up.
    pub generation: Generation,
    /// What names are allowed.
    pub name_rule: NameRule,
    /// Whether deletion gives the object time to end (pods).
    pub graceful_deletion: bool,
    /// Whether a deletion that does not say what becomes of dependents leaves them behind.
    pub orphans_by_default: bool,
    /// Whether a PUT to a missing object creates it (leases).
    pub create_on_update: bool,
    /// Whether an update without a resourceVersion is taken as unconditional.
    pub unconditional_update: bool,
    /// What it can be selected by, besides name and namespace.
    pub field_labels: &'static [FieldLabel],
    /// What is special when its objects are written.
    pub rules: Rules,
    /// The columns of its table.
    pub columns: &'static [Column],
    /// How an object fills them.
    pub row: Row,
}

/// Where the objects of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Under its own resource.
    Own,
    /// Under the resource of another version or group of the same thing; objects are converted
    /// (see `convert`) on the way in and out.
    SharedWith {
        /// Group of the kind whose form is stored.
        group: &'static str,
        /// Version of the kind whose form is stored.
        version: &'static str,
    },
    /// Nowhere: a question that is answered at once.
    Virtual,
}

/// When a change counts as a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    None,
    /// The spec changed.
    Spec,
    /// The spec or an annotation changed (Deployment).
    SpecOrAnnotations,
}

/// Which names an object may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 characters.
    Subdomain,
    /// RFC 1123 label, at most 63 characters.
    Label,
    /// RFC 1035 label, at most 63 characters (services).
    Rfc1035Label,
    /// Anything that is one path segment.
    PathSegment,
}

/// Something addressed below an object, such as `status`.
#[derive(Debug)]
pub struct Subresource {
    /// Its name in the path.
    pub name: &'static str,
    /// Group of the kind it takes and gives; empty for core.
    pub group: &'static str,
    /// Version of that kind.
    pub version: &'static str,
    /// That kind.
    pub kind: &'static str,
    /// Its verbs.
    pub verbs: &'static [&'static str],
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `deployments.apps`, or `pods` for the core group.
    pub fn qualified_resource(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// `Deployment.apps`, or `Pod` for the core group.
    pub fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    /// Whether the resource has a verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Whether its status is written through a subresource of its own.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The kind in whose form objects are stored: itself, or the one it shares storage with.
    /// `None` if nothing is stored.
    pub fn stored_as(&'static self) -> Option<&'static Kind> {
        match self.storage {
            Storage::Own => Some(self),
            Storage::SharedWith { group, version } => find(group, version, self.plural),
            Storage::Virtual => None,
        }
    }
}

/// The kind served under a path's group, version and resource.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    ALL.iter().find(|k| k.group == group && k.version == version && k.plural == plural)
}

/// The kind with that apiVersion and kind name.
pub fn find_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = split_api_version(api_version);
    ALL.iter().find(|k| k.group == group && k.version == version && k.kind == kind)
}

/// Group and version of an apiVersion.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The kinds whose objects are stored, each storage once.
pub fn stored() -> impl Iterator<Item = &'static Kind> {
    ALL.iter().filter(|k| k.storage == Storage::Own)
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_documented() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api-server.md");
        let page = std::fs::read_to_string(file).expect("the page about the server");
        let (_, kinds) = page.split_once("## Kinds").expect("a section about kinds");
        let (kinds, _) = kinds.split_once("\n## ").expect("another section");
        for kind in ALL {
            let group = if kind.group.is_empty() { "core" } else { kind.group };
            assert!(kinds.contains(&format!("| {group}/v")), "{group}");
            let cells = kinds.split(['|', ',', '\n']).map(str::trim);
            assert!(cells.into_iter().any(|cell| cell == kind.kind), "{}", kind.kind);
        }
    }

    #[test]
    fn every_kind_is_found_by_resource_and_by_kind() {
        for kind in ALL {
            assert!(std::ptr::eq(find(kind.group, kind.version, kind.plural).unwrap(), kind));
            assert!(std::ptr::eq(find_kind(&kind.api_version(), kind.kind).unwrap(), kind));
            assert!(kind.storage == Storage::Virtual || kind.stored_as().is_some());
        }
    }

    #[test]
    fn abbreviations_are_unique_between_stored_kinds() {
        let mut seen = BTreeSet::new();
        for kind in stored() {
            for name in kind.short_names.iter().chain([&kind.plural, &kind.singular]) {
                assert!(seen.insert(*name), "{name} is taken twice");
            }
        }
    }

    #[test]
    fn qualified_names_leave_the_core_group_out() {
        assert_eq!(find("", "v1", "pods").unwrap().qualified_resource(), "pods");
        assert_eq!(find("apps", "v1", "deployments").unwrap().qualified_kind(), "Deployment.apps");
        assert_eq!(find("apps", "v1", "deployments").unwrap().api_version(), "apps/v1");
    }
}

//! Fields that nobody owns, and fields an endpoint does not write.

use std::sync::LazyLock;

use super::fieldset::FieldSet;
use crate::api::kind::Kind;
use crate::api::rules::StatusMetadata;

/// Identity and bookkeeping: set by the server, owned by nobody.
pub(super) fn untracked() -> &'static FieldSet {
    static SET: LazyLock<FieldSet> = LazyLock::new(make_untracked);
    &SET
}

fn make_untracked() -> FieldSet {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "generateName",
    ];
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&path(&[name]));
    }
    for name in METADATA {
        set.insert(&path(&["metadata", name]));
    }
    set
}

/// What an apply through an endpoint states in vain.
pub(super) fn fields(kind: &Kind, subresource: &str) -> FieldSet {
    let mut set = FieldSet::default();
    if subresource == "status" {
        set.insert(&path(&["spec"]));
        match kind.rules.status_metadata {
            StatusMetadata::Everything => {}
            StatusMetadata::NotLabels => set.insert(&path(&["metadata", "labels"])),
            StatusMetadata::NotOwners => set.insert(&path(&["metadata", "ownerReferences"])),
        }
    } else if kind.has_status() {
        set.insert(&path(&["status"]));
    }
    set
}

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("f:{name}")).collect()
}

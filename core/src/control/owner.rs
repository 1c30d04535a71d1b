//! Writing and removing controller references.

use core::fmt::{self, Display, Write};

use crate::kind::{Info, Kind};
use crate::wire::Uid;

/// A strategic merge patch that makes an object the controller of a child. The child's
/// uid is a precondition; a child that has got another controller meanwhile is refused by the
/// server, because it can have only one.
pub fn write_adoption(
    out: &mut dyn Write,
    child: Uid,
    kind: Kind,
    owner_name: impl Display,
    owner: Uid,
) -> fmt::Result {
    let Info { name: kind, api_version, .. } = kind.info();
    write!(
        out,
        "{{\"metadata\":{{\"uid\":\"{child}\",\"ownerReferences\":[{{\"apiVersion\":\"{api_version}\",\
         \"kind\":\"{kind}\",\"name\":\"{owner_name}\",\"uid\":\"{owner}\",\"controller\":true,\
         \"blockOwnerDeletion\":true}}]}}}}"
    )
}

/// A strategic merge patch that removes a controller reference.
pub fn write_release(out: &mut dyn Write, child: Uid, owner: Uid) -> fmt::Result {
    write!(
        out,
        "{{\"metadata\":{{\"uid\":\"{child}\",\"ownerReferences\":[{{\"$patch\":\"delete\",\
         \"uid\":\"{owner}\"}}]}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[test]
    fn patches_are_the_ones_kubernetes_sends() {
        let child = Uid::from_bytes([1; 16]);
        let owner = Uid::from_bytes([2; 16]);
        let (mut adopt, mut release) = (String::new(), String::new());
        write_adoption(&mut adopt, child, Kind::ReplicaSet, "web", owner).unwrap();
        write_release(&mut release, child, owner).unwrap();
        let adopt: serde_json::Value = serde_json::from_str(&adopt).unwrap();
        let release: serde_json::Value = serde_json::from_str(&release).unwrap();
        let child = std::format!("{child}");
        let owner = std::format!("{owner}");
        assert_eq!(
            adopt,
            serde_json::json!({"metadata": {"uid": child, "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner,
                "controller": true, "blockOwnerDeletion": true}]}})
        );
        assert_eq!(
            release,
            serde_json::json!({"metadata": {"uid": child, "ownerReferences": [
                {"$patch": "delete", "uid": owner}]}})
        );
    }
}

//! Revisions that others have made.

use anyhow::Result;
use serde_json::{Value, json};

use super::cluster;
use picokube_tests::stateful_set::{DB, create, identities, set_of};

#[test]
fn revisions_of_kubernetes_own_controller_are_taken_over() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    let set = set_of("app:1", 1);
    // What its encoding looks like, with a name that ours would not give.
    let would_be = ["create", "--dry-run=server", "--output=json", "--filename=-"];
    let stored: Value = serde_json::from_str(&kubectl.ok_with(&would_be, &set.to_string())?)?;
    let mut template = stored["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    template["metadata"]["creationTimestamp"] = json!(null);
    let revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "db-6b5d4b7c4d", "labels": {"app": "db"}},
        "data": {"spec": {"template": template}},
        "revision": 7,
    });
    cluster.create(super::REVISIONS, &revision)?;
    create(&kubectl, &set)?;
    assert_eq!(kubectl.field(DB, ".status.updateRevision")?, "db-6b5d4b7c4d");
    assert_eq!(identities(&kubectl, "controllerrevisions")?.len(), 1);
    let owner = ".metadata.ownerReferences[0].name";
    assert_eq!(kubectl.field("controllerrevision/db-6b5d4b7c4d", owner)?, "db");
    Ok(())
}

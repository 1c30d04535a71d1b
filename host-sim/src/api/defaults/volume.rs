//! Defaults of volumes.

use serde_json::{Value, json};

use super::container::field_reference;
use crate::api::object::{child, default, list_mut, set};

/// 0644, the mode of files made from config maps, secrets and the like.
const FILE_MODE: i64 = 0o644;

pub(super) fn defaults(volume: &mut Value) {
    let sources = volume.as_object().map_or(0, |v| v.keys().filter(|k| *k != "name").count());
    if sources == 0 {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|s| s.is_object()) {
            default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(downward) = volume.get_mut("downwardAPI") {
        downward_items(downward);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in list_mut(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken").filter(|t| t.is_object()) {
                default(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                downward_items(downward);
            }
        }
    }
    if let Some(host_path) = volume.get_mut("hostPath").filter(|h| h.is_object()) {
        default(host_path, "type", "");
    }
    if let Some(iscsi) = volume.get_mut("iscsi").filter(|i| i.is_object()) {
        default(iscsi, "iscsiInterface", "default");
    }
    if let Some(claim) = volume.get_mut("ephemeral").and_then(|e| e.get_mut("volumeClaimTemplate"))
    {
        default(child(claim, "spec"), "volumeMode", "Filesystem");
    }
}

fn downward_items(source: &mut Value) {
    for item in list_mut(source, "items") {
        field_reference(item);
        if let Some(reference) = item.get_mut("resourceFieldRef").filter(|r| r.is_object()) {
            default(reference, "divisor", "0");
        }
    }
}

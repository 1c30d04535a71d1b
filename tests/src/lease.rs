//! What a Lease has told, version by version.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::http::Client;
use crate::lab::{name, text};
use crate::picokube::Picokube;

/// Where the Lease of picokube is.
const WATCH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?watch=true";

/// Follows the Lease of a cluster.
pub struct Journal {
    client: Client,
    /// What it said last.
    last: Value,
}

impl Journal {
    /// From now on.
    pub fn of(cluster: &Picokube) -> Result<Self> {
        let mut client = cluster.client()?;
        client.watch(WATCH)?;
        Ok(Self { client, last: Value::Null })
    }

    /// Reads on until `condition` holds of what the Lease says; gives what it said before, and what it says.
    pub fn until(&mut self, condition: impl Fn(&Value) -> bool) -> Result<(Value, Value)> {
        loop {
            let event = self.client.event().context("waiting for a Lease")?;
            let lease = &event["object"];
            if name(lease) != "picokube" {
                continue;
            }
            let spec = lease["spec"].clone();
            let before = std::mem::replace(&mut self.last, spec.clone());
            if condition(&spec) {
                return Ok((before, spec));
            }
        }
    }

    /// Reads on until somebody leads of whom `is_wanted` holds.
    pub fn until_led(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<(Value, Value)> {
        self.until(|spec| {
            let holder = text(&spec["holderIdentity"]);
            !holder.is_empty() && is_wanted(holder)
        })
    }
}

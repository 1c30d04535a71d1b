//! The page's JSON, field by field as it is written.

use serde::{Deserialize, Serialize};

/// The page's JSON. Texts are borrowed from the page and hold no escapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document<'a> {
    /// Address and port of the API server: `192.168.1.10:6443`.
    pub server: &'a str,
    /// The `Host` header, if the server wants another than its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// The whole `Authorization` header: `Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<&'a str>,
    /// The device's own address and prefix, `192.168.1.7/24`; without it, DHCP gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<&'a str>,
    /// The way to other networks. Only with `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<&'a str>,
    /// Who this device is, in events and later in leases: a Kubernetes name.
    pub identity: &'a str,
    /// The only namespace to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<&'a str>,
    /// Requests a second of each controller, 0 for no limit; Kubernetes' default without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<u32>,
    /// Requests at once of each controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Milliseconds that statuses may wait for each other while a rollout goes on; 100 without it.
    #[serde(default, rename = "statusLag", skip_serializing_if = "Option::is_none")]
    pub status_lag: Option<u32>,
    /// Kubernetes' feature gates, as `--feature-gates` has them: `NAME=true,…`.
    #[serde(default, rename = "featureGates", skip_serializing_if = "Option::is_none")]
    pub feature_gates: Option<&'a str>,
}

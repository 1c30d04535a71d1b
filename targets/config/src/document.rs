//! What is on a page, field by field as it is written: JSON, and certificates beside it.

use serde::{Deserialize, Serialize};

use crate::{Certificates, ClientKey};

/// What is on a page. Texts are borrowed from its JSON and hold no escapes; what is not JSON stands in
/// parts of its own behind it.
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
    /// Whom the server's certificate has to name, if not the address in `server`. Only with authorities.
    #[serde(default, rename = "tlsServerName", skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<&'a str>,
    /// The device's own address and prefix, `192.168.1.7/24`; without it, DHCP gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<&'a str>,
    /// The way to other networks. Only with `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<&'a str>,
    /// Who this device is, in events and in its Lease: a Kubernetes name.
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
    /// The election that the device takes part in: it writes only while it leads. Without it, it always does.
    #[serde(default, borrow, rename = "leaderElection", skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<Election<'a>>,
    /// The authorities that may have issued the server's certificate. With them, the device speaks TLS,
    /// without them plain HTTP.
    #[serde(skip)]
    pub authorities: Certificates<'a>,
    /// What the device shows to a server that asks who it is: its own certificate, then those between it and
    /// an authority.
    #[serde(skip)]
    pub client_certificates: Certificates<'a>,
    /// The key of the first of them.
    #[serde(skip)]
    pub client_key: Option<ClientKey<'a>>,
}

/// An election, by the names of Kubernetes' `LeaderElectionConfiguration`; what is not said is as there.
/// Durations are in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Election<'a> {
    /// How long who stands by waits after the last sign of life of the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration: Option<u32>,
    /// How long a leader tries to renew its lease, and writes, before it gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_deadline: Option<u32>,
    /// How long to wait between two tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_period: Option<u32>,
    /// The name of the Lease.
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    pub resource_name: Option<&'a str>,
    /// Its namespace; without it, the only one that is looked at, or else `kube-system`.
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    pub resource_namespace: Option<&'a str>,
}

//! What can be wrong with a page.

use core::fmt;

use picokube_core::leader_election::InvalidLeaderElection;

/// Why there is no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// The page is erased flash.
    Missing,
    /// The page holds something else.
    NotAPage,
    /// The page was written for a later version of the firmware.
    Version(u16),
    /// The page says it is longer than it can be.
    Length(u16),
    /// The page was not written completely, or has decayed.
    Checksum,
    /// The parts of the page do not add up.
    Parts,
    /// What is on the page is no JSON with the fields of a [`Document`](crate::Document).
    Json(serde_json_core::de::Error),
    /// A field has a value that makes no sense.
    Value(Field),
    /// The election cannot work.
    LeaderElection(InvalidLeaderElection),
    /// The document does not fit the page.
    TooLarge,
}

/// A field of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the fields' own")]
pub enum Field {
    Server,
    Host,
    Authorization,
    TlsServerName,
    CertificateAuthority,
    ClientCertificate,
    Address,
    Gateway,
    Identity,
    Namespace,
    FeatureGates,
}

impl Field {
    /// Its name, and what it should be.
    const fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("server", "an IPv4 address and a port, such as 192.168.1.10:6443"),
            Self::Host => ("host", "a host name with or without a port"),
            Self::Authorization => ("authorization", "a header value, such as Bearer and a token"),
            Self::TlsServerName => ("tlsServerName", "a DNS name or an IP address"),
            Self::CertificateAuthority => (
                "certificateAuthority",
                "1 to 4 certificates, and nothing of TLS works without one",
            ),
            Self::ClientCertificate => {
                ("clientCertificate", "1 to 4 certificates, and a key of 32 bytes with them")
            }
            Self::Address => ("address", "an IPv4 address and a prefix, such as 192.168.1.7/24"),
            Self::Gateway => ("gateway", "an IPv4 address, and only beside `address`"),
            Self::Identity => ("identity", "a Kubernetes name: a-z, 0-9, - and ., at most 63"),
            Self::Namespace => ("namespace", "a Kubernetes name: a-z, 0-9 and -, at most 63"),
            Self::FeatureGates => (
                "featureGates",
                "DeploymentReplicaSetTerminatingReplicas or MaxUnavailableStatefulSet with =true or =false",
            ),
        }
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the configuration page is empty"),
            Self::NotAPage => f.write_str("the configuration page holds something else"),
            Self::Version(version) => {
                let known = crate::page::VERSION;
                write!(f, "the configuration page has version {version}, later than {known}")
            }
            Self::Length(len) => write!(f, "the configuration page cannot hold its {len} bytes"),
            Self::Checksum => f.write_str("the configuration page has a wrong checksum"),
            Self::Parts => f.write_str("the configuration page's parts do not add up"),
            Self::Json(error) => write!(f, "the configuration page's JSON: {error}"),
            Self::Value(field) => {
                let (name, rule) = field.rule();
                write!(f, "the configuration's `{name}` is not {rule}")
            }
            Self::LeaderElection(error) => {
                write!(f, "the configuration's `leaderElection`: {error}")
            }
            Self::TooLarge => f.write_str("the configuration does not fit its page"),
        }
    }
}

impl core::error::Error for PageError {}

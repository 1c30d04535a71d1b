//! What a page means.

use core::net::{Ipv4Addr, SocketAddrV4};

use picokube_core::leader_election::LeaderElection;
use picokube_core::time::Duration;

use crate::{Certificates, ClientKey, Document, Field, PageError};

/// A checked configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration<'a> {
    /// Where the API server listens.
    pub server: SocketAddrV4,
    /// How the server proves who it is; without it, plain HTTP is spoken.
    pub tls: Option<Tls<'a>>,
    /// The `Host` header.
    pub host: &'a str,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The device's own address.
    pub address: Address,
    /// Who this device is.
    pub identity: &'a str,
    /// The only namespace to look at.
    pub namespace: Option<&'a str>,
    /// How fast each controller may send; `None` is as fast as it can.
    pub rate: Option<Rate>,
    /// Milliseconds that statuses may wait for each other while a rollout goes on.
    pub status_lag: u32,
    /// Kubernetes' feature gates.
    pub feature_gates: FeatureGates,
    /// The election that the device takes part in. Its identity is the device's name, to which the device
    /// adds what tells one boot from another.
    pub leader_election: Option<LeaderElection<'a>>,
}

/// How the server proves who it is, and as whom the device comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls<'a> {
    /// Whom the server's certificate has to name: a DNS name or an IP address.
    pub name: &'a str,
    /// The authorities that may have issued it, one at least.
    pub authorities: Certificates<'a>,
    /// What the device shows to a server that asks who it is.
    pub identity: Option<Identity<'a>>,
}

/// A certificate of the device's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The certificate, and those between it and an authority.
    pub chain: Certificates<'a>,
    /// The key of the first of them.
    pub key: ClientKey<'a>,
}

/// The feature gates that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// `DeploymentReplicaSetTerminatingReplicas`
    pub terminating_replicas: bool,
    /// `MaxUnavailableStatefulSet`
    pub max_unavailable_stateful_set: bool,
}

/// How the device gets its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A server on the network gives it one.
    Dhcp,
    /// It always has the same.
    Static {
        /// The address.
        ip: Ipv4Addr,
        /// How many bits of it name the network.
        prefix: u8,
        /// The way to other networks.
        gateway: Option<Ipv4Addr>,
    },
}

/// So many requests a second, so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second.
    pub qps: u32,
    /// Requests at once.
    pub burst: u32,
}

/// Saves a third of the requests of a rollout.
const STATUS_LAG: u32 = 100;

const TERMINATING_REPLICAS: &str = "DeploymentReplicaSetTerminatingReplicas";
const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet";

impl Rate {
    /// The defaults of Kubernetes' clients.
    const KUBERNETES: Self = Self { qps: 20, burst: 30 };
}

impl<'a> Configuration<'a> {
    /// Checks every field.
    pub fn check(document: &Document<'a>) -> Result<Self, PageError> {
        let Document { server, host, authorization, identity, namespace, .. } = *document;
        Ok(Self {
            server: server.parse().map_err(|_| PageError::Value(Field::Server))?,
            tls: tls(document)?,
            host: check(host, Field::Host, is_printable)?.unwrap_or(server),
            authorization: check(authorization, Field::Authorization, is_printable)?,
            address: address(document)?,
            identity: check(Some(identity), Field::Identity, |text| is_name(text, true))?
                .unwrap_or_default(),
            namespace: check(namespace, Field::Namespace, |text| is_name(text, false))?,
            rate: rate(document),
            status_lag: document.status_lag.unwrap_or(STATUS_LAG),
            feature_gates: feature_gates(document.feature_gates)?,
            leader_election: leader_election(document)?,
        })
    }
}

fn check(
    text: Option<&str>,
    field: Field,
    is_good: impl Fn(&str) -> bool,
) -> Result<Option<&str>, PageError> {
    match text {
        Some(text) if !is_good(text) => Err(PageError::Value(field)),
        text => Ok(text),
    }
}

fn tls<'a>(document: &Document<'a>) -> Result<Option<Tls<'a>>, PageError> {
    let Document { server, authorities, client_certificates: chain, client_key, .. } = *document;
    let name = check(document.tls_server_name, Field::TlsServerName, is_server_name)?;
    let identity = match client_key {
        Some(key) if !chain.is_empty() => Some(Identity { chain, key }),
        None if chain.is_empty() => None,
        _ => return Err(PageError::Value(Field::ClientCertificate)),
    };
    if authorities.is_empty() {
        // A name to look for and nobody to believe it: the device would come without looking.
        let is_plain = name.is_none() && identity.is_none();
        return is_plain.then_some(None).ok_or(PageError::Value(Field::CertificateAuthority));
    }
    let address = server.rsplit_once(':').map_or(server, |(address, _)| address);
    Ok(Some(Tls { name: name.unwrap_or(address), authorities, identity }))
}

fn address(document: &Document<'_>) -> Result<Address, PageError> {
    let wrong = |field| move || PageError::Value(field);
    let Some(address) = document.address else {
        return match document.gateway {
            Some(_) => Err(PageError::Value(Field::Gateway)),
            None => Ok(Address::Dhcp),
        };
    };
    let (ip, prefix) = address.split_once('/').ok_or_else(wrong(Field::Address))?;
    let ip = ip.parse().map_err(|_| PageError::Value(Field::Address))?;
    let prefix = prefix.parse().ok().filter(|bits| (1..=31).contains(bits));
    let gateway = document.gateway.map(|gateway| gateway.parse().map_err(|_| Field::Gateway));
    Ok(Address::Static {
        ip,
        prefix: prefix.ok_or_else(wrong(Field::Address))?,
        gateway: gateway.transpose().map_err(PageError::Value)?,
    })
}

fn rate(document: &Document<'_>) -> Option<Rate> {
    let default = Rate::KUBERNETES;
    let qps = document.qps.unwrap_or(default.qps);
    // Kubernetes' rule when only the rate is given: half as many again at once.
    let burst = document.burst.unwrap_or(qps.saturating_add(qps / 2)).max(1);
    (qps > 0).then_some(Rate { qps, burst })
}

fn leader_election<'a>(document: &Document<'a>) -> Result<Option<LeaderElection<'a>>, PageError> {
    let Some(election) = &document.leader_election else { return Ok(None) };
    const DEFAULT: LeaderElection<'_> = LeaderElection::DEFAULT;
    let duration = |chosen: Option<u32>, default| {
        chosen.map_or(default, |millis| Duration::from_millis(u64::from(millis)))
    };
    let election = LeaderElection {
        identity: document.identity,
        // Whoever may look at one namespace only has no Lease elsewhere.
        resource_namespace: election
            .resource_namespace
            .or(document.namespace)
            .unwrap_or(DEFAULT.resource_namespace),
        resource_name: election.resource_name.unwrap_or(DEFAULT.resource_name),
        lease_duration: duration(election.lease_duration, DEFAULT.lease_duration),
        renew_deadline: duration(election.renew_deadline, DEFAULT.renew_deadline),
        retry_period: duration(election.retry_period, DEFAULT.retry_period),
    };
    election.check().map_err(PageError::LeaderElection)?;
    Ok(Some(election))
}

/// The last word on a gate counts, as in Kubernetes.
fn feature_gates(text: Option<&str>) -> Result<FeatureGates, PageError> {
    let mut gates = FeatureGates::default();
    for gate in text.into_iter().flat_map(|text| text.split(',')) {
        let wrong = PageError::Value(Field::FeatureGates);
        let (name, value) = gate.split_once('=').ok_or(wrong)?;
        let setting = match name {
            TERMINATING_REPLICAS => &mut gates.terminating_replicas,
            MAX_UNAVAILABLE => &mut gates.max_unavailable_stateful_set,
            _ => return Err(wrong),
        };
        *setting = match value {
            "true" => true,
            "false" => false,
            _ => return Err(wrong),
        };
    }
    Ok(gates)
}

/// Whether a text can stand in a header. An escape would mean something else than it says.
fn is_printable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\')
}

/// Whether a text may be a DNS name or an IP address.
fn is_server_name(text: &str) -> bool {
    let is_good =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'_');
    (1..=253).contains(&text.len()) && text.bytes().all(is_good)
}

/// Whether a text is a Kubernetes name.
fn is_name(text: &str, with_dots: bool) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_edge(&byte) || byte == b'-' || (with_dots && byte == b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && text.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Election;

    const GOOD: Document<'_> = Document {
        server: "10.0.2.2:8001",
        host: None,
        authorization: None,
        address: None,
        gateway: None,
        identity: "gateway",
        namespace: None,
        qps: None,
        burst: None,
        status_lag: None,
        feature_gates: None,
        leader_election: None,
        tls_server_name: None,
        authorities: Certificates::NONE,
        client_certificates: Certificates::NONE,
        client_key: None,
    };
    const SECURE: Document<'_> = Document { authorities: ONE, ..GOOD };
    const ONE: Certificates<'_> = Certificates::one(b"a certificate");
    const KEY: ClientKey<'_> = ClientKey(&[7; 32]);

    #[test]
    fn with_an_authority_the_server_has_to_prove_who_it_is() {
        assert_eq!(Configuration::check(&GOOD).unwrap().tls, None);
        let tls = |document| Configuration::check(&document).unwrap().tls.unwrap();
        assert_eq!(tls(SECURE), Tls { name: "10.0.2.2", authorities: ONE, identity: None });
        let named = Document { tls_server_name: Some("kubernetes.default"), ..SECURE };
        assert_eq!(tls(named).name, "kubernetes.default");
        let known = Document { client_certificates: ONE, client_key: Some(KEY), ..SECURE };
        assert_eq!(tls(known).identity, Some(Identity { chain: ONE, key: KEY }));
    }

    #[test]
    fn nobody_is_trusted_without_an_authority() {
        for document in [
            Document { tls_server_name: Some("kubernetes"), ..GOOD },
            Document { client_certificates: ONE, client_key: Some(KEY), ..GOOD },
        ] {
            let error = Err(PageError::Value(Field::CertificateAuthority));
            assert_eq!(Configuration::check(&document), error);
        }
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        let secret = Document { client_certificates: ONE, client_key: Some(KEY), ..SECURE };
        let shown = std::format!("{:?}", Configuration::check(&secret).unwrap());
        assert!(shown.contains("ClientKey") && !shown.contains("7, 7"), "{shown}");
    }

    #[test]
    fn little_has_to_be_said() {
        let configuration = Configuration::check(&GOOD).unwrap();
        assert_eq!(configuration.host, "10.0.2.2:8001");
        assert_eq!(configuration.address, Address::Dhcp);
        assert_eq!(configuration.rate, Some(Rate { qps: 20, burst: 30 }));
    }

    #[test]
    fn a_rate_brings_its_burst_and_zero_is_no_limit() {
        let rate =
            |qps, burst| Configuration::check(&Document { qps, burst, ..GOOD }).unwrap().rate;
        assert_eq!(rate(Some(4), None), Some(Rate { qps: 4, burst: 6 }));
        assert_eq!(rate(Some(4), Some(0)), Some(Rate { qps: 4, burst: 1 }));
        assert_eq!(rate(Some(0), None), None);
    }

    #[test]
    fn a_static_address_has_a_prefix() {
        let document = Document { address: Some("192.168.1.7/24"), ..GOOD };
        let ip = Ipv4Addr::new(192, 168, 1, 7);
        let expected = Address::Static { ip, prefix: 24, gateway: None };
        assert_eq!(Configuration::check(&document).unwrap().address, expected);
    }

    #[test]
    fn the_last_word_on_a_feature_gate_counts() {
        const OFF_AND_ON: &str = "DeploymentReplicaSetTerminatingReplicas=false,\
                                  DeploymentReplicaSetTerminatingReplicas=true";
        let gates = |feature_gates| {
            let checked = Configuration::check(&Document { feature_gates, ..GOOD });
            let gates = checked.unwrap().feature_gates;
            (gates.terminating_replicas, gates.max_unavailable_stateful_set)
        };
        assert_eq!(gates(None), (false, false));
        assert_eq!(gates(Some(OFF_AND_ON)), (true, false));
        assert_eq!(gates(Some("DeploymentReplicaSetTerminatingReplicas=false")), (false, false));
        assert_eq!(gates(Some("MaxUnavailableStatefulSet=true")), (false, true));
    }

    #[test]
    fn an_election_is_as_in_kubernetes_where_nothing_else_is_said() {
        let check = |document: Document<'static>| Configuration::check(&document);
        let election = |election, document: Document<'static>| {
            let checked = check(Document { leader_election: Some(election), ..document });
            checked.map(|it| it.leader_election.unwrap())
        };
        assert_eq!(check(GOOD).unwrap().leader_election, None, "only where it is wanted");
        let named = LeaderElection { identity: "gateway", ..LeaderElection::DEFAULT };
        assert_eq!(election(Election::default(), GOOD), Ok(named));
        let shop = Document { namespace: Some("shop"), ..GOOD };
        assert_eq!(election(Election::default(), shop).unwrap().resource_namespace, "shop");
        let edge = Election {
            lease_duration: Some(60_000),
            renew_deadline: Some(40_000),
            retry_period: Some(10_000),
            resource_name: Some("gateways"),
            resource_namespace: Some("leases"),
        };
        let expected = LeaderElection {
            identity: "gateway",
            resource_namespace: "leases",
            resource_name: "gateways",
            ..LeaderElection::EDGE
        };
        assert_eq!(election(edge, shop), Ok(expected));
    }

    #[test]
    fn wrong_relations_of_an_election_are_refused() {
        use picokube_core::leader_election::InvalidLeaderElection as Invalid;
        for (election, invalid) in [
            (
                Election { lease_duration: Some(10_000), ..Election::default() },
                Invalid::LeaseEndsBeforeDeadline,
            ),
            (
                Election { retry_period: Some(9_000), ..Election::default() },
                Invalid::DeadlineBeforeRetry,
            ),
            (Election { retry_period: Some(0), ..Election::default() }, Invalid::RetryPeriod),
            (Election { resource_name: Some("A/B"), ..Election::default() }, Invalid::ResourceName),
            (
                Election { resource_namespace: Some(""), ..Election::default() },
                Invalid::ResourceNamespace,
            ),
        ] {
            let document = Document { leader_election: Some(election), ..GOOD };
            let error = Configuration::check(&document).unwrap_err();
            assert_eq!(error, PageError::LeaderElection(invalid));
            assert!(std::format!("{error}").contains("`leaderElection`"), "{error}");
        }
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (document, field) in [
            (Document { server: "10.0.2.2", ..GOOD }, Field::Server),
            (Document { server: "localhost:80", ..GOOD }, Field::Server),
            (Document { host: Some(""), ..GOOD }, Field::Host),
            (Document { authorization: Some("Bearer a\\u0041"), ..GOOD }, Field::Authorization),
            (Document { authorization: Some("Bearer a\r\nX: y"), ..GOOD }, Field::Authorization),
            (Document { tls_server_name: Some(""), ..SECURE }, Field::TlsServerName),
            (Document { tls_server_name: Some("a b"), ..SECURE }, Field::TlsServerName),
            (Document { client_certificates: ONE, ..SECURE }, Field::ClientCertificate),
            (Document { client_key: Some(KEY), ..SECURE }, Field::ClientCertificate),
            (Document { address: Some("192.168.1.7"), ..GOOD }, Field::Address),
            (Document { address: Some("192.168.1.7/32"), ..GOOD }, Field::Address),
            (Document { address: Some("192.168.1/24"), ..GOOD }, Field::Address),
            (Document { gateway: Some("192.168.1.1"), ..GOOD }, Field::Gateway),
            (Document { identity: "", ..GOOD }, Field::Identity),
            (Document { identity: "Gateway", ..GOOD }, Field::Identity),
            (Document { identity: "gateway-", ..GOOD }, Field::Identity),
            (Document { namespace: Some("a.b"), ..GOOD }, Field::Namespace),
            (Document { feature_gates: Some("AllAlpha=true"), ..GOOD }, Field::FeatureGates),
            (Document { feature_gates: Some(""), ..GOOD }, Field::FeatureGates),
            (
                Document { feature_gates: Some("MaxUnavailableStatefulSet=1"), ..GOOD },
                Field::FeatureGates,
            ),
        ] {
            assert_eq!(Configuration::check(&document), Err(PageError::Value(field)));
        }
    }
}

//! Whom to talk to, whom to trust, and as whom to come.

use core::fmt;

use pki_types::{CertificateDer, ServerName};
use sha2::{Digest, Sha256};
use webpki::anchor_from_trusted_cert;

use crate::client_auth::Identity;
use crate::hkdf::Hash;
use crate::limits::MAX_ANCHORS;

/// What is the same for all connections to a server.
#[derive(Clone, Debug)]
pub struct Config<'a> {
    name: &'a str,
    server: ServerName<'a>,
    anchors: &'a [&'a [u8]],
    protocol: &'a [u8],
    identity: Option<Identity<'a>>,
}

/// What is known of the time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Time {
    /// It is this.
    Exactly(u64),
    /// It is this or later: what a device without a clock knows from when its firmware was built, or from
    /// the last `Date` that a server told it. A certificate that begins later tells that it is later still;
    /// one that is over at this time is refused.
    AtLeast(u64),
}

/// Why a configuration is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConfigError {
    /// The server's name is neither a name nor an address.
    ServerName,
    /// There is no authority to trust.
    NoAnchor,
    /// There are more authorities than there is room for.
    TooManyAnchors,
    /// The authority at this place of the list is no certificate in DER.
    Anchor(usize),
    /// The protocol's name is empty or longer than 255 bytes.
    Protocol,
}

impl<'a> Config<'a> {
    /// `name` is what the server's certificate has to be for: a DNS name, or an IP address. `anchors` are the
    /// certificates, in DER, of the authorities that may have issued it.
    pub fn new(name: &'a str, anchors: &'a [&'a [u8]]) -> Result<Self, ConfigError> {
        // RFC 6066, 3: without the dot that a fully qualified name may end with.
        let name = name.strip_suffix('.').unwrap_or(name);
        let server = ServerName::try_from(name).map_err(|_| ConfigError::ServerName)?;
        if anchors.is_empty() {
            return Err(ConfigError::NoAnchor);
        }
        if anchors.len() > MAX_ANCHORS {
            return Err(ConfigError::TooManyAnchors);
        }
        for (index, der) in anchors.iter().enumerate() {
            let certificate = CertificateDer::from(*der);
            anchor_from_trusted_cert(&certificate).map_err(|_| ConfigError::Anchor(index))?;
        }
        Ok(Self { name, server, anchors, protocol: &[], identity: None })
    }

    /// The one application protocol (ALPN) that we speak, such as `h2`. A server that does not answer with
    /// it is refused.
    pub fn with_protocol(self, protocol: &'a [u8]) -> Result<Self, ConfigError> {
        if protocol.is_empty() || protocol.len() > 255 {
            return Err(ConfigError::Protocol);
        }
        Ok(Self { protocol, ..self })
    }

    /// The certificate to show to a server that asks for one.
    pub fn with_identity(self, identity: Identity<'a>) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// The name or the address of the server.
    pub fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn server(&self) -> &ServerName<'a> {
        &self.server
    }

    /// The server's name, if it is not an address.
    pub(crate) fn dns_name(&self) -> Option<&'a str> {
        matches!(self.server, ServerName::DnsName(_)).then_some(self.name)
    }

    pub(crate) fn protocol(&self) -> &'a [u8] {
        self.protocol
    }

    pub(crate) fn identity(&self) -> Option<&Identity<'a>> {
        self.identity.as_ref()
    }

    /// The certificates of the authorities.
    pub(crate) fn anchors(&self) -> &'a [&'a [u8]] {
        self.anchors
    }

    /// Names all that a server has proved itself to, and as whom we came: a ticket is good for the same
    /// only.
    pub(crate) fn fingerprint(&self) -> Hash {
        let mut hash = Sha256::new();
        let identity =
            self.identity.as_ref().and_then(|identity| identity.chain().first().copied());
        let parts = [self.name.as_bytes(), self.protocol, identity.unwrap_or_default()];
        for part in parts.iter().chain(self.anchors) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerName => "the server's name is neither a DNS name nor an IP address",
            Self::NoAnchor => "there is no certificate authority: give that of the cluster",
            Self::TooManyAnchors => {
                return write!(f, "there are more than {MAX_ANCHORS} certificate authorities");
            }
            Self::Anchor(index) => {
                return write!(f, "certificate authority {index} is no certificate in DER");
            }
            Self::Protocol => "the name of an application protocol has 1 to 255 bytes",
        })
    }
}

impl core::error::Error for ConfigError {}

//! Why a server cannot be reached, in words that say what to do.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// The server has not agreed to speak HTTP/2.
#[derive(Debug)]
pub(super) struct NoHttp2;

impl fmt::Display for NoHttp2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no HTTP/2")
    }
}

impl std::error::Error for NoHttp2 {}

/// A reason why no connection comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody listens there.
    Refused,
    /// The server's certificate is none that the authority vouches for.
    UnknownAuthority,
    /// The server's certificate is for other names.
    OtherName,
    /// The server's certificate is too old or too young.
    Expired,
    /// The server does not speak HTTP/2.
    NoHttp2,
    /// TLS failed otherwise.
    Tls(String),
    /// Anything else.
    Other(String),
}

impl Trouble {
    pub(super) fn of(error: &io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<NoHttp2>()) {
            return Self::NoHttp2;
        }
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                Self::NoHttp2
            }
            Some(rustls::Error::InvalidCertificate(certificate)) => match certificate {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    Self::UnknownAuthority
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => Self::OtherName,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::Expired,
                other => Self::Tls(other.to_string()),
            },
            Some(other) => Self::Tls(other.to_string()),
            None if error.kind() == io::ErrorKind::ConnectionRefused => Self::Refused,
            None => Self::Other(error.to_string()),
        }
    }

    /// Whether it stays as it is until somebody changes the configuration.
    pub(super) fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::UnknownAuthority | Self::OtherName | Self::Expired | Self::NoHttp2 | Self::Tls(_)
        )
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused: does the API server run there?"),
            Self::UnknownAuthority => f.write_str(
                "the server's certificate is not signed by the authority that was given: give the \
                 cluster's own, by --certificate-authority or in the kubeconfig",
            ),
            Self::OtherName => f.write_str(
                "the server's certificate is for other names: use one of them in the URL, or say \
                 which by tls-server-name in the kubeconfig",
            ),
            Self::Expired => f.write_str(
                "the server's certificate has expired or is not valid yet: renew it, or set this \
                 machine's clock",
            ),
            Self::NoHttp2 => f.write_str(
                "the server does not speak HTTP/2, which picokube needs over https: enable it there \
                 (ALPN h2), or look for a proxy in front that does not",
            ),
            Self::Tls(text) => write!(f, "no TLS connection: {text}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

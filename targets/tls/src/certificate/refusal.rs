//! Why a server's certificate is not acceptable.

use core::fmt;

use pki_types::UnixTime;
use webpki::Error as Webpki;

use super::fields::{Fields, Name};
use crate::alert::Alert;

/// Why a server's certificate is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refusal {
    /// It is for other names.
    Name {
        /// What the server was to be.
        wanted: Shown,
        /// What its certificate is for.
        has: Shown,
    },
    /// It is over. Times are in seconds since 1970.
    Expired {
        /// What is taken for the time.
        now: u64,
        /// When it ended.
        not_after: u64,
    },
    /// It has not begun.
    NotYetValid {
        /// What is taken for the time.
        now: u64,
        /// When it begins.
        not_before: u64,
    },
    /// No authority that is trusted has issued it, nor any by way of others that the server sent.
    UnknownIssuer,
    /// Its signature, or that of another one on the way, is not that of the authority that it names.
    Signature,
    /// One on the way to the authority is itself none.
    IssuerIsNoAuthority,
    /// It is that of an authority.
    IsAnAuthority,
    /// It is not for servers (extended key usage).
    NotForServers,
    /// Its key is not for signatures (key usage).
    KeyNotForSignatures,
    /// An authority on the way forbids it: by names, or by the length of the way.
    Constraint,
    /// It, or one on the way, is signed or made in a way that is not supported.
    Unsupported,
    /// The server sends more than there is room for.
    TooMany,
    /// It cannot be read.
    Malformed,
}

impl Refusal {
    pub(crate) fn of_webpki(error: &Webpki) -> Self {
        let seconds = |time: &UnixTime| time.as_secs();
        match error {
            Webpki::CertExpired { time, not_after } => {
                Self::Expired { now: seconds(time), not_after: seconds(not_after) }
            }
            Webpki::CertNotValidYet { time, not_before } => {
                Self::NotYetValid { now: seconds(time), not_before: seconds(not_before) }
            }
            Webpki::UnknownIssuer => Self::UnknownIssuer,
            Webpki::InvalidSignatureForPublicKey => Self::Signature,
            Webpki::EndEntityUsedAsCa => Self::IssuerIsNoAuthority,
            Webpki::CaUsedAsEndEntity => Self::IsAnAuthority,
            Webpki::RequiredEkuNotFoundContext(_) | Webpki::EmptyEkuExtension => {
                Self::NotForServers
            }
            Webpki::NameConstraintViolation | Webpki::PathLenConstraintViolated => Self::Constraint,
            Webpki::MaximumPathDepthExceeded
            | Webpki::MaximumPathBuildCallsExceeded
            | Webpki::MaximumSignatureChecksExceeded
            | Webpki::MaximumNameConstraintComparisonsExceeded => Self::TooMany,
            Webpki::UnsupportedSignatureAlgorithmContext(_)
            | Webpki::UnsupportedSignatureAlgorithmForPublicKeyContext(_)
            | Webpki::UnsupportedCertVersion
            | Webpki::UnsupportedCriticalExtension
            | Webpki::UnsupportedNameType => Self::Unsupported,
            _ => Self::Malformed,
        }
    }

    pub(super) fn wrong_name(wanted: &str, has: &Fields<'_>) -> Self {
        Self::Name { wanted: Shown::of(&wanted), has: Shown::of(&Names(has)) }
    }

    pub(crate) fn alert(self) -> Alert {
        match self {
            Self::Expired { .. } | Self::NotYetValid { .. } => Alert::CERTIFICATE_EXPIRED,
            Self::UnknownIssuer => Alert::UNKNOWN_CA,
            Self::NotForServers | Self::KeyNotForSignatures | Self::Unsupported => {
                Alert::UNSUPPORTED_CERTIFICATE
            }
            Self::Name { .. } | Self::Constraint => Alert::CERTIFICATE_UNKNOWN,
            Self::Signature
            | Self::IssuerIsNoAuthority
            | Self::IsAnAuthority
            | Self::TooMany
            | Self::Malformed => Alert::BAD_CERTIFICATE,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name { wanted, has } => {
                return write!(
                    f,
                    "the server's certificate is for {has}, not for {wanted}: configure one of its \
                     names, or have the server's certificate name {wanted}"
                );
            }
            Self::Expired { now, not_after } => {
                return write!(
                    f,
                    "the server's certificate ended {} s ago: renew it there, or set the clock here",
                    now.saturating_sub(*not_after)
                );
            }
            Self::NotYetValid { now, not_before } => {
                return write!(
                    f,
                    "the server's certificate begins in {} s: set the clock, here or there",
                    not_before.saturating_sub(*now)
                );
            }
            Self::UnknownIssuer => {
                "the server's certificate is not from an authority that is configured: check that \
                 the authority is that of this cluster"
            }
            Self::Signature => {
                "the server's certificate names the configured authority, but is not signed by it: \
                 has the authority been made anew?"
            }
            Self::IssuerIsNoAuthority => {
                "the server's certificate is signed by one that may not sign others"
            }
            Self::IsAnAuthority => {
                "the server shows the certificate of an authority instead of one of its own"
            }
            Self::NotForServers => {
                "the server's certificate is not for servers: its extended key usage lacks serverAuth"
            }
            Self::KeyNotForSignatures => {
                "the server's certificate may not sign: its key usage lacks digitalSignature"
            }
            Self::Constraint => {
                "the server's certificate is outside of what its authority may issue"
            }
            Self::Unsupported => {
                "the server's certificate uses what is not supported: P-256 with SHA-256, and RSA of \
                 2048 to 4096 bits are"
            }
            Self::TooMany => {
                "the server sends too many certificates: its own and those between it and the \
                 authority are enough"
            }
            Self::Malformed => "the server's certificate cannot be read",
        })
    }
}

/// A short text, cut where there is no more room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    bytes: [u8; Self::ROOM],
    length: u8,
}

impl Shown {
    const ROOM: usize = 54;

    fn of(what: &dyn fmt::Display) -> Self {
        let mut shown = Self { bytes: [0; Self::ROOM], length: 0 };
        // It only fails where there is no more room.
        let _ = fmt::Write::write_fmt(&mut shown, format_args!("{what}"));
        shown
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length.into()).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Write for Shown {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let start = usize::from(self.length);
            let end = start + character.len_utf8();
            let place = self.bytes.get_mut(start..end).ok_or(fmt::Error)?;
            character.encode_utf8(place);
            self.length = end as u8;
        }
        Ok(())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Shown {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str}", self.as_str());
    }
}

/// All that a certificate is for.
struct Names<'a, 'c>(&'a Fields<'c>);

impl fmt::Display for Names<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for name in self.0.names() {
            if !core::mem::take(&mut is_first) {
                f.write_str(", ")?;
            }
            match name {
                // Others than printable ASCII are in no name, but may be in a log that a terminal shows.
                Name::Dns(name) => name.iter().try_for_each(|byte| {
                    let shown = if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
                    fmt::Write::write_char(f, shown)
                })?,
                Name::Address(address) => fmt::Display::fmt(&address, f)?,
            }
        }
        if is_first { f.write_str("no name at all") } else { Ok(()) }
    }
}

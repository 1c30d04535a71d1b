//! Why there is no connection, or no more, and what to do about it.

use core::fmt;

use crate::alert::Alert;
use crate::certificate::Refusal;

/// Why a handshake or a connection has failed. Nothing more comes of it afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The transport has ended without a close_notify: what came may not be all (§6.1).
    Truncated,
    /// The server has closed the connection in the midst of the handshake.
    ClosedInHandshake,
    /// The server says that it cannot go on.
    Alert(Alert),
    /// The server speaks TLS 1.2 or older.
    OldVersion,
    /// The server speaks TLS 1.3 and says that we do not: somebody is between.
    Downgrade,
    /// The server does not speak the protocol that is configured.
    NoApplicationProtocol,
    /// The server's certificate is not acceptable.
    Certificate(Refusal),
    /// The server does not have the key of its certificate.
    NotTheKey,
    /// The server's Finished does not fit what was said.
    NotTheHandshake,
    /// A record has been tampered with, or the keys differ.
    BadRecord,
    /// The server has broken a rule of TLS 1.3.
    Violation(Violation),
    /// A record is longer than TLS allows.
    RecordOverflow,
    /// A record or a message of the handshake does not fit the buffer, which would have to have this size.
    BufferTooSmall {
        /// What the buffer would have to have, in bytes.
        needed: usize,
    },
    /// What is to be sent does not fit the buffer given for it, which would have to have this size.
    OutputTooSmall {
        /// What the buffer would have to have, in bytes.
        needed: usize,
    },
    /// Too many records in a row without data.
    Flood,
    /// The key for what we send has been used too often: [`poll`](crate::Connection::poll) gives it a
    /// successor.
    KeyUsedUp,
    /// Our side of the connection has been closed.
    Closed,
    /// The handshake is not over.
    NotConnected,
}

/// Which rule of TLS 1.3 a server has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Violation {
    /// The first byte of a record is of no kind.
    NotTls,
    /// A record of a kind that does not belong here (§5).
    UnexpectedRecord,
    /// A record that is not protected, after protection has begun (§5).
    Unprotected,
    /// A protected record without a kind, or a piece of a message without content (§5.1, §5.4).
    EmptyRecord,
    /// A message that does not belong here (§4).
    UnexpectedMessage,
    /// A message that cannot be read.
    Malformed,
    /// Something behind a message after which the key changes (§5.1).
    SpansKeyChange,
    /// An extension twice (§4.2).
    DuplicateExtension,
    /// An extension that was not asked for (§4.2).
    UnsolicitedExtension,
    /// An extension that does not belong into this message (§4.2).
    MisplacedExtension,
    /// An extension that has to be there (§9.2).
    MissingExtension,
    /// Another version in a field that has to have that of TLS 1.2 (§4.1.3).
    LegacyVersion,
    /// Not the session that was offered (§4.1.3).
    Session,
    /// Compression (§4.1.3).
    Compression,
    /// A cipher suite that was not offered, or another one than before (§4.1.3, §4.1.4).
    CipherSuite,
    /// A group that was not offered (§4.2.8).
    Group,
    /// A key share that is no point of its curve (§4.2.8.2).
    KeyShare,
    /// A ticket that was not offered (§4.2.11).
    Ticket,
    /// A HelloRetryRequest that asks for nothing new (§4.1.4).
    Retry,
    /// A certificate or a request for one with a context (§4.4.2).
    CertificateContext,
    /// No certificate at all (§4.4.2.4).
    NoCertificate,
    /// A kind of signature that was not offered or is not for handshakes (§4.4.3).
    SignatureScheme,
    /// An answer to a question of ours that is none: of a protocol, or of a name.
    Answer,
    /// An update of keys of no kind (§4.6.3).
    KeyUpdate,
}

impl Violation {
    fn alert(self) -> Alert {
        match self {
            Self::NotTls
            | Self::UnexpectedRecord
            | Self::Unprotected
            | Self::EmptyRecord
            | Self::UnexpectedMessage
            | Self::SpansKeyChange => Alert::UNEXPECTED_MESSAGE,
            Self::Malformed | Self::NoCertificate => Alert::DECODE_ERROR,
            Self::UnsolicitedExtension => Alert::UNSUPPORTED_EXTENSION,
            Self::MissingExtension => Alert::MISSING_EXTENSION,
            _ => Alert::ILLEGAL_PARAMETER,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotTls => "what came is no TLS at all; is this the server's HTTPS port?",
            Self::UnexpectedRecord => "a record of a kind that does not belong there",
            Self::Unprotected => "a record that is not protected",
            Self::EmptyRecord => "a record with nothing in it",
            Self::UnexpectedMessage => "a message that does not belong there",
            Self::Malformed => "a message that cannot be read",
            Self::SpansKeyChange => "a record that goes on after a change of keys",
            Self::DuplicateExtension => "an extension twice",
            Self::UnsolicitedExtension => "an extension that was not asked for",
            Self::MisplacedExtension => "an extension that does not belong there",
            Self::MissingExtension => "an extension is missing",
            Self::LegacyVersion => "a version where that of TLS 1.2 has to be",
            Self::Session => "a session that was not offered",
            Self::Compression => "compression",
            Self::CipherSuite => "a cipher suite that was not offered",
            Self::Group => "a group that was not offered",
            Self::KeyShare => "a key share that is none",
            Self::Ticket => "a ticket that was not offered",
            Self::Retry => "a request for the same hello again",
            Self::CertificateContext => "a certificate out of context",
            Self::NoCertificate => "no certificate",
            Self::SignatureScheme => "a kind of signature that was not offered",
            Self::Answer => "an answer that is none",
            Self::KeyUpdate => "an update of keys of no kind",
        }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Certificate(refusal)
    }
}

impl Error {
    /// What the server is to be told, if there is anything to tell it.
    pub fn alert(&self) -> Option<Alert> {
        Some(match self {
            Self::Truncated | Self::Alert(_) | Self::Closed => return None,
            Self::ClosedInHandshake => Alert::CLOSE_NOTIFY,
            Self::OldVersion => Alert::PROTOCOL_VERSION,
            // §4.1.3
            Self::Downgrade => Alert::ILLEGAL_PARAMETER,
            Self::NoApplicationProtocol => Alert::NO_APPLICATION_PROTOCOL,
            Self::Certificate(refusal) => refusal.alert(),
            Self::NotTheKey | Self::NotTheHandshake => Alert::DECRYPT_ERROR,
            Self::BadRecord => Alert::BAD_RECORD_MAC,
            Self::Violation(violation) => violation.alert(),
            Self::RecordOverflow => Alert::RECORD_OVERFLOW,
            Self::Flood => Alert::UNEXPECTED_MESSAGE,
            Self::BufferTooSmall { .. }
            | Self::OutputTooSmall { .. }
            | Self::KeyUsedUp
            | Self::NotConnected => Alert::INTERNAL_ERROR,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alert(alert) => return write_alert(f, *alert),
            Self::Certificate(refusal) => return refusal.fmt(f),
            Self::Violation(violation) => {
                return write!(f, "the server does not obey TLS 1.3: {}", violation.text());
            }
            Self::BufferTooSmall { needed } => {
                return write!(
                    f,
                    "the server sends more at once than fits the buffer: give it {needed} bytes \
                     (any record fits {}), or have the server send less",
                    crate::ANY_RECORD
                );
            }
            Self::OutputTooSmall { needed } => {
                return write!(f, "what is to be sent takes {needed} bytes: give a larger buffer");
            }
            Self::Truncated => {
                "the connection was cut: the server has not said that it was the end; connect again"
            }
            Self::ClosedInHandshake => {
                "the server closed the connection in the midst of the handshake: see its log"
            }
            Self::OldVersion => "the server does not speak TLS 1.3: enable it there",
            Self::Downgrade => {
                "somebody between this client and the server makes them speak an older TLS: \
                 look for a proxy that opens TLS"
            }
            Self::NoApplicationProtocol => {
                "the server does not speak the protocol that is configured (ALPN): \
                 HTTP/2 has to be enabled there"
            }
            Self::NotTheKey => {
                "the server does not have the key of its certificate: it is not the one that it \
                 says it is, or its certificate and key do not belong together"
            }
            Self::NotTheHandshake => {
                "the handshake was changed on its way, or the server knows another ticket: \
                 connect again, without the ticket"
            }
            Self::BadRecord => "a record was changed on its way: connect again",
            Self::RecordOverflow => "the server sends records that are longer than TLS allows",
            Self::Flood => "the server keeps sending records with nothing in them",
            Self::KeyUsedUp => "too much was sent with one key: call poll between writes",
            Self::Closed => "this side of the connection has been closed",
            Self::NotConnected => "the handshake is not over: call step until it says so",
        })
    }
}

impl core::error::Error for Error {}

/// Alerts that point to something that can be put right here.
fn write_alert(f: &mut fmt::Formatter<'_>, alert: Alert) -> fmt::Result {
    write!(f, "the server refuses to go on: {alert}")?;
    f.write_str(match alert {
        Alert::CERTIFICATE_REQUIRED => "; it wants a client certificate: configure one",
        Alert::NO_APPLICATION_PROTOCOL => "; it does not speak the protocol that is configured",
        Alert::HANDSHAKE_FAILURE => {
            "; it may lack P-256, or ChaCha20-Poly1305 and AES-128-GCM, or a certificate for them"
        }
        Alert::PROTOCOL_VERSION => "; it does not speak TLS 1.3: enable it there",
        Alert::UNKNOWN_CA => "; it does not know the authority of the client certificate",
        Alert::CERTIFICATE_EXPIRED => "; the client certificate has expired: renew it",
        Alert::BAD_CERTIFICATE | Alert::UNSUPPORTED_CERTIFICATE | Alert::CERTIFICATE_UNKNOWN => {
            "; it does not accept the client certificate"
        }
        _ => "; see its log",
    })
}

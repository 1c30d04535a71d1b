//! The ServerHello (§4.1.3), and the HelloRetryRequest that looks like one (§4.1.4).

use core::ops::Range;

use p256::PublicKey;

use crate::bytes::Reader;
use crate::error::{Error, Violation};
use crate::extension::{self, Extensions};
use crate::hello::{SECP256R1, TLS_1_2, TLS_1_3};
use crate::hkdf::hash;
use crate::message;
use crate::protection::Suite;

/// What stands at the end of `random` if a server would have spoken TLS 1.3 (§4.1.3).
const DOWNGRADES: [&[u8; 8]; 2] = [b"DOWNGRD\x01", b"DOWNGRD\x00"];

/// What a server answers to a hello.
pub(crate) enum Answer {
    /// It has made its choice.
    Hello {
        suite: Suite,
        key_share: PublicKey,
        /// Whether it takes the ticket.
        takes_ticket: bool,
    },
    /// It wants another hello, with this in it: where that is in the message.
    Retry { suite: Suite, cookie: Range<usize> },
}

/// Reads a ServerHello, header included. `session` is what we have sent; `has_ticket` says whether we have
/// offered one.
pub(crate) fn read(whole: &[u8], session: &[u8; 32], has_ticket: bool) -> Result<Answer, Error> {
    let body = whole.get(message::HEADER..).unwrap_or_default();
    let mut reader = Reader::new(body);
    let legacy_version = reader.u16()?;
    let random: [u8; 32] = reader.array()?;
    let echoed = reader.list8()?.rest();
    let suite = reader.u16()?;
    let compression = reader.u8()?;
    // TLS 1.2 may leave them out.
    let extensions = if reader.is_empty() {
        return Err(old_version(&random));
    } else {
        Extensions::last(reader)?
    };
    // Before anything else: what was said in another version has another meaning.
    if legacy_version != TLS_1_2 {
        return Err(if legacy_version < TLS_1_2 {
            old_version(&random)
        } else {
            Violation::LegacyVersion.into()
        });
    }
    check_version(&extensions, &random)?;
    if echoed != session {
        return Err(Violation::Session.into());
    }
    if compression != 0 {
        return Err(Violation::Compression.into());
    }
    let suite = Suite::of_code(suite).ok_or(Violation::CipherSuite)?;
    if random == retry() {
        read_retry(extensions, whole.len(), suite)
    } else {
        read_hello(extensions, suite, has_ticket)
    }
}

/// `random` of a ServerHello that is a HelloRetryRequest: SHA-256 of its name (§4.1.3).
fn retry() -> [u8; 32] {
    hash(b"HelloRetryRequest")
}

fn old_version(random: &[u8; 32]) -> Error {
    let ending = random.last_chunk::<8>();
    if DOWNGRADES.iter().any(|mark| ending == Some(*mark)) {
        Error::Downgrade
    } else {
        Error::OldVersion
    }
}

/// Looks for the version alone (§4.2.1).
fn check_version(extensions: &Extensions<'_>, random: &[u8; 32]) -> Result<(), Error> {
    let mut extensions = extensions.again();
    while let Some((kind, mut content)) = extensions.next()? {
        if kind == extension::SUPPORTED_VERSIONS {
            let version = content.u16()?;
            content.finish()?;
            // §4.2.1: it was asked for TLS 1.3 only.
            return if version == TLS_1_3 { Ok(()) } else { Err(Violation::LegacyVersion.into()) };
        }
    }
    Err(old_version(random))
}

fn read_hello(
    mut extensions: Extensions<'_>,
    suite: Suite,
    has_ticket: bool,
) -> Result<Answer, Error> {
    let (mut key_share, mut takes_ticket) = (None, false);
    while let Some((kind, mut content)) = extensions.next()? {
        match kind {
            extension::SUPPORTED_VERSIONS => continue,
            extension::KEY_SHARE => {
                // §4.2.8: of a group that was offered.
                if content.u16()? != SECP256R1 {
                    return Err(Violation::Group.into());
                }
                key_share = Some(point(content.list16()?.rest())?);
            }
            extension::PRE_SHARED_KEY if has_ticket => {
                // §4.2.11: one was offered, the first.
                if content.u16()? != 0 {
                    return Err(Violation::Ticket.into());
                }
                takes_ticket = true;
            }
            extension::PRE_SHARED_KEY => return Err(Violation::UnsolicitedExtension.into()),
            kind => return Err(extension::out_of_place(kind)),
        }
        content.finish()?;
    }
    // §4.2.9: also with a ticket.
    let key_share = key_share.ok_or(Violation::MissingExtension)?;
    Ok(Answer::Hello { suite, key_share, takes_ticket })
}

/// §4.2.8.2: uncompressed, and a point of the curve.
fn point(bytes: &[u8]) -> Result<PublicKey, Error> {
    match bytes {
        [4, coordinates @ ..] if coordinates.len() == 64 => {
            PublicKey::from_sec1_bytes(bytes).map_err(|_| Violation::KeyShare.into())
        }
        _ => Err(Violation::KeyShare.into()),
    }
}

/// All groups that we have were in the first hello, with shares: only for a cookie there may be a second.
fn read_retry(
    mut extensions: Extensions<'_>,
    message: usize,
    suite: Suite,
) -> Result<Answer, Error> {
    let mut cookie = None;
    while let Some((kind, mut content)) = extensions.next()? {
        match kind {
            extension::SUPPORTED_VERSIONS => continue,
            extension::COOKIE => {
                let value = content.list16()?;
                content.finish()?;
                // §4.2.2: at least one byte.
                if value.is_empty() {
                    return Err(Violation::Malformed.into());
                }
                // Where it ends is where the extensions behind it begin.
                let end = message - extensions.unread();
                cookie = Some(end - value.rest().len()..end);
            }
            // §4.2.8: it has to be offered, and must not have been in a share of the hello. P-256 is in it.
            extension::KEY_SHARE => return Err(Violation::Retry.into()),
            extension::PRE_SHARED_KEY => return Err(Violation::MisplacedExtension.into()),
            kind => return Err(extension::out_of_place(kind)),
        }
    }
    // §4.1.4: it has to change something.
    let cookie = cookie.ok_or(Violation::Retry)?;
    Ok(Answer::Retry { suite, cookie })
}

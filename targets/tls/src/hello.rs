//! The ClientHello (§4.1.2): all that we have to offer.

use p256::SecretKey;
use p256::elliptic_curve::sec1::ToSec1Point;
use sha2::{Digest, Sha256};

use crate::bytes::Writer;
use crate::certificate::SCHEMES;
use crate::config::Config;
use crate::error::Error;
use crate::extension;
use crate::keys::EarlySecret;
use crate::message;
use crate::protection::Suite;
use crate::seed::Seed;
use crate::ticket::Offer;

pub(crate) const TLS_1_2: u16 = 0x0303;
pub(crate) const TLS_1_3: u16 = 0x0304;
/// The one group for key exchange (§4.2.7).
pub(crate) const SECP256R1: u16 = 0x0017;
/// With a key exchange of its own, so that a stolen ticket does not open what was said (§4.2.9).
const PSK_DHE_KE: u8 = 1;

/// What a hello is made of.
pub(crate) struct Hello<'a> {
    pub(crate) config: &'a Config<'a>,
    pub(crate) seed: &'a Seed,
    pub(crate) key: &'a SecretKey,
    pub(crate) offer: Option<&'a Offer<'a>>,
    /// What a HelloRetryRequest wants to see again (§4.2.2).
    pub(crate) cookie: Option<&'a [u8]>,
}

impl Hello<'_> {
    /// Writes the message; `transcript` is all that was said before.
    pub(crate) fn write(&self, writer: &mut Writer<'_>, transcript: &Sha256) -> Result<(), Error> {
        writer.u8(message::CLIENT_HELLO)?;
        writer.list24(|w| {
            w.u16(TLS_1_2)?;
            w.put(&*self.seed.random())?;
            w.list8(|w| w.put(&*self.seed.session()))?;
            w.list16(|w| Suite::OFFERED.iter().try_for_each(|suite| w.u16(suite.code())))?;
            // No compression.
            w.list8(|w| w.u8(0))?;
            w.list16(|w| self.extensions(w))
        })?;
        if let Some(offer) = self.offer {
            bind(writer, offer, transcript)?;
        }
        Ok(())
    }

    fn extensions(&self, w: &mut Writer<'_>) -> Result<(), Error> {
        extension(w, extension::SUPPORTED_VERSIONS, |w| w.list8(|w| w.u16(TLS_1_3)))?;
        extension(w, extension::SUPPORTED_GROUPS, |w| w.list16(|w| w.u16(SECP256R1)))?;
        extension(w, extension::SIGNATURE_ALGORITHMS, |w| {
            w.list16(|w| SCHEMES.iter().try_for_each(|scheme| w.u16(*scheme)))
        })?;
        let public = self.key.public_key().to_sec1_point(false);
        extension(w, extension::KEY_SHARE, |w| {
            w.list16(|w| {
                w.u16(SECP256R1)?;
                w.list16(|w| w.put(public.as_bytes()))
            })
        })?;
        // RFC 6066, 3: an address is no name.
        if let Some(name) = self.config.dns_name() {
            extension(w, extension::SERVER_NAME, |w| {
                w.list16(|w| {
                    w.u8(0)?;
                    w.list16(|w| w.put(name.as_bytes()))
                })
            })?;
        }
        // RFC 7301, 3.1
        let protocol = self.config.protocol();
        if !protocol.is_empty() {
            extension(w, extension::ALPN, |w| w.list16(|w| w.list8(|w| w.put(protocol))))?;
        }
        if let Some(cookie) = self.cookie {
            extension(w, extension::COOKIE, |w| w.list16(|w| w.put(cookie)))?;
        }
        // Without it, no server would send a ticket (§4.2.9).
        extension(w, extension::PSK_KEY_EXCHANGE_MODES, |w| w.list8(|w| w.u8(PSK_DHE_KE)))?;
        // §4.2.11: the last one.
        if let Some(offer) = self.offer {
            extension(w, extension::PRE_SHARED_KEY, |w| {
                w.list16(|w| {
                    w.list16(|w| w.put(offer.identity))?;
                    w.u32(offer.obfuscated_age)
                })?;
                w.list16(|w| w.list8(|w| w.put(&[0; 32])))
            })?;
        }
        Ok(())
    }
}

/// Fills in the proof that we have the key of the ticket: over all that stands before the binders
/// (§4.2.11.2).
fn bind(writer: &mut Writer<'_>, offer: &Offer<'_>, transcript: &Sha256) -> Result<(), Error> {
    /// Two bytes of the list's length, one of the binder's, the binder.
    const BINDERS: usize = 2 + 1 + 32;
    let written = writer.written();
    let covered = written.len().saturating_sub(BINDERS);
    let mut transcript = transcript.clone();
    transcript.update(written.get(..covered).unwrap_or_default());
    let binder = EarlySecret::new(Some(offer.psk)).binder(&transcript.finalize().into());
    let needed = writer.len();
    let place = writer.last_mut(32).ok_or(Error::OutputTooSmall { needed })?;
    place.copy_from_slice(&*binder);
    Ok(())
}

fn extension(
    writer: &mut Writer<'_>,
    kind: u16,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    writer.u16(kind)?;
    writer.list16(write)
}

//! Tickets (§4.6.1, §4.2.11): what a server knows us by again, so that it need not prove itself anew.

use core::fmt;

use zeroize::Zeroize;

use crate::bytes::Reader;
use crate::config::Time;
use crate::error::{Error, Violation};
use crate::extension::{self, Extensions};
use crate::hkdf::{Hash, is_equal};
use crate::keys::ResumptionSecret;
use crate::limits::{MAX_TICKET, MAX_TICKET_SECONDS};

/// A ticket, in the caller's memory; wiped when it is dropped. It is as secret as a key.
///
/// It is good for the same server, authorities, protocol and client certificate only, for seven days at
/// most, and no longer than the certificate by which the server has proved itself. In all other cases it is
/// not offered.
pub struct Ticket {
    identity: [u8; MAX_TICKET],
    length: u16,
    psk: [u8; 32],
    age_add: u32,
    lifetime: u32,
    /// When it came, in milliseconds of the caller's.
    received: u64,
    /// When the server's certificate is over.
    expires: u64,
    /// Whom it is good for.
    fingerprint: Hash,
}

/// A ticket as it stands in a hello.
pub(crate) struct Offer<'a> {
    pub(crate) identity: &'a [u8],
    pub(crate) obfuscated_age: u32,
    pub(crate) psk: &'a [u8; 32],
    /// When the certificate is over by which the server has proved itself.
    pub(crate) expires: u64,
}

/// A NewSessionTicket, as it came.
pub(crate) struct NewTicket<'a> {
    lifetime: u32,
    age_add: u32,
    nonce: &'a [u8],
    identity: &'a [u8],
}

impl Ticket {
    /// Room for a ticket.
    pub const fn new() -> Self {
        Self {
            identity: [0; MAX_TICKET],
            length: 0,
            psk: [0; 32],
            age_add: 0,
            lifetime: 0,
            received: 0,
            expires: 0,
            fingerprint: [0; 32],
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Forgets it: to be called when a server has refused it.
    pub fn clear(&mut self) {
        self.identity.zeroize();
        self.psk.zeroize();
        self.length = 0;
    }

    /// What can be offered of it: nothing, unless it is for this server, and at this time.
    pub(crate) fn offer(&self, fingerprint: &Hash, time: Time, now: u64) -> Option<Offer<'_>> {
        let (Time::Exactly(seconds) | Time::AtLeast(seconds)) = time;
        // §4.6.1: no longer than the server said. A clock that went back says nothing of the age.
        let age = now.checked_sub(self.received)?;
        let is_young = age < u64::from(self.lifetime) * 1000;
        let is_good = !self.is_empty() && is_young && seconds < self.expires;
        if !is_good || !is_equal(&self.fingerprint, fingerprint) {
            return None;
        }
        Some(Offer {
            identity: self.identity.get(..self.length.into())?,
            // §4.2.11.1; seven days are fewer milliseconds than fit.
            obfuscated_age: (age as u32).wrapping_add(self.age_add),
            psk: &self.psk,
            expires: self.expires,
        })
    }
}

impl NewTicket<'_> {
    /// Whether a [`Ticket`] has room for it, and the server means it to be used.
    pub(crate) fn is_useful(&self) -> bool {
        // §4.6.1: zero says that it is to be forgotten at once.
        self.lifetime > 0 && self.identity.len() <= MAX_TICKET
    }

    pub(crate) fn keep(
        &self,
        ticket: &mut Ticket,
        secret: &ResumptionSecret,
        fingerprint: &Hash,
        expires: u64,
        now: u64,
    ) {
        ticket.clear();
        let Some(place) = ticket.identity.get_mut(..self.identity.len()) else { return };
        place.copy_from_slice(self.identity);
        ticket.length = self.identity.len() as u16;
        ticket.psk = *secret.psk(self.nonce);
        ticket.age_add = self.age_add;
        // §4.6.1: no server may say more, and no client keep it longer.
        ticket.lifetime = self.lifetime.min(MAX_TICKET_SECONDS);
        ticket.received = now;
        ticket.expires = expires;
        ticket.fingerprint = *fingerprint;
    }
}

/// Reads the body of a NewSessionTicket.
pub(crate) fn read(body: &[u8]) -> Result<NewTicket<'_>, Error> {
    let mut reader = Reader::new(body);
    let lifetime = reader.u32()?;
    let age_add = reader.u32()?;
    let nonce = reader.list8()?.rest();
    let identity = reader.list16()?.rest();
    if identity.is_empty() {
        return Err(Violation::Malformed.into());
    }
    // We make use of none of them, and ignore what we do not know (§4.6.1). What we know has to be well made.
    let mut extensions = Extensions::last(reader)?;
    while let Some((kind, mut content)) = extensions.next()? {
        match kind {
            extension::EARLY_DATA => {
                content.u32()?;
                content.finish()?;
            }
            extension::TLS_FLAGS => {
                let flags = content.list8()?.rest();
                content.finish()?;
                // As short as can be, and at least one.
                match flags.last() {
                    None => return Err(Violation::Malformed.into()),
                    Some(0) => return Err(Violation::Answer.into()),
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
    Ok(NewTicket { lifetime, age_add, nonce, identity })
}

impl Default for Ticket {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Ticket(none)" } else { "Ticket" })
    }
}

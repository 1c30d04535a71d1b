//! A connection to a server that has proved who it is (§5, §6.1).

use core::ops::Range;

use crate::alert::Alert;
use crate::error::{Error, Violation};
use crate::hkdf::Hash;
use crate::inbox::{Inbox, Opened};
use crate::keys::ResumptionSecret;
use crate::limits::{MAX_IDLE_RECORDS, WARNING};
use crate::message;
use crate::outbox::Outbox;
use crate::protection::{Suite, TrafficKey};
use crate::ticket::{self, Ticket};

/// A connection to a server that has proved who it is.
pub struct Connection<'b> {
    inbox: Inbox<'b>,
    read: TrafficKey,
    write: TrafficKey,
    resumption: ResumptionSecret,
    /// Whom tickets are good for.
    fingerprint: Hash,
    expires: u64,
    is_resumed: bool,
    /// Data that has been deciphered and not been consumed.
    data: Range<usize>,
    /// A NewSessionTicket that the caller may keep.
    ticket: Option<Range<usize>>,
    /// Whether the server wants us to change our key, too (§4.6.3).
    owes_key_update: bool,
    idle_records: u8,
    /// Whether the server has said that nothing more comes.
    is_over: bool,
    /// Whether we have.
    is_closed: bool,
    failure: Option<Error>,
}

/// What has come, or is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Send so many bytes of the buffer that was given, before anything else.
    Send(usize),
    /// Read into [`Connection::space`], say how much that was by [`Connection::received`], and call
    /// [`Connection::poll`] again.
    Receive,
    /// Data has come: see [`Connection::data`], and [`Connection::consume`] it.
    Data,
    /// A ticket has come: [`Connection::keep_ticket`] keeps it; to do nothing forgets it.
    Ticket,
    /// The server has said that nothing more comes. We may still send.
    Closed,
}

impl<'b> Connection<'b> {
    pub(crate) fn new(
        inbox: Inbox<'b>,
        (read, write): (TrafficKey, TrafficKey),
        resumption: ResumptionSecret,
        fingerprint: Hash,
        expires: u64,
        is_resumed: bool,
    ) -> Self {
        Self {
            inbox,
            read,
            write,
            resumption,
            fingerprint,
            expires,
            is_resumed,
            data: 0..0,
            ticket: None,
            owes_key_update: false,
            idle_records: 0,
            is_over: false,
            is_closed: false,
            failure: None,
        }
    }

    /// Says what is next. `out` has to have room for 32 bytes, for answers that TLS itself owes.
    ///
    /// After an error, [`close`](Self::close) has what the server is to be told.
    pub fn poll(&mut self, out: &mut [u8]) -> Result<Event, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let result = self.try_poll(out);
        match result {
            // The caller may try again with more room: nothing has happened yet.
            Err(Error::OutputTooSmall { .. }) | Ok(_) => {}
            Err(error) => self.failure = Some(error),
        }
        result
    }

    /// Data that has come and has not been consumed.
    pub fn data(&self) -> &[u8] {
        self.inbox.bytes(self.data.clone())
    }

    /// So much of it has been dealt with. What is left stays, and nothing more comes before it is.
    pub fn consume(&mut self, count: usize) {
        self.data.start = self.data.end.min(self.data.start.saturating_add(count));
    }

    /// Where to put what the transport has, after [`Event::Receive`].
    pub fn space(&mut self) -> &mut [u8] {
        // What is there and has not been consumed must not be written over.
        if self.data.is_empty() { self.inbox.space() } else { &mut [] }
    }

    /// So many bytes have been put there.
    pub fn received(&mut self, count: usize) {
        if self.data.is_empty() {
            self.inbox.received(count);
        }
    }

    /// The transport has ended.
    pub fn ended(&mut self) {
        self.inbox.end();
    }

    /// Makes one record of as much of `data` as fits `out` and a record: how much that is, and how much of
    /// `out` is to be sent. A record takes [`OVERHEAD`](crate::OVERHEAD) bytes beside its data.
    pub fn seal(&mut self, data: &[u8], out: &mut [u8]) -> Result<(usize, usize), Error> {
        self.check_writable()?;
        let mut outbox = Outbox::new(out);
        let taken = outbox.data(&mut self.write, data)?;
        Ok((taken, outbox.written()))
    }

    /// Makes one record of `length` bytes that stand [`RECORD_HEADER`](crate::RECORD_HEADER) bytes into
    /// `out` already: how much of `out` is to be sent.
    pub fn seal_in_place(&mut self, length: usize, out: &mut [u8]) -> Result<usize, Error> {
        self.check_writable()?;
        let mut outbox = Outbox::new(out);
        outbox.data_in_place(&mut self.write, length)?;
        Ok(outbox.written())
    }

    /// Closes our side: how much of `out` to send, once. That is the reason if something was wrong, and
    /// else that nothing more comes (§6.1); the server may then still send.
    pub fn close(&mut self, out: &mut [u8]) -> Option<usize> {
        let alert = match self.failure {
            Some(error) => error.alert()?,
            None => Alert::CLOSE_NOTIFY,
        };
        if self.is_closed {
            return None;
        }
        let mut outbox = Outbox::new(out);
        outbox.alert(Some(&mut self.write), alert).ok()?;
        self.is_closed = true;
        Some(outbox.written())
    }

    /// Keeps the ticket that has just come ([`Event::Ticket`]) for the next connection. `now` is a number
    /// of milliseconds from any clock that goes on until then.
    pub fn keep_ticket(&self, ticket: &mut Ticket, now: u64) {
        let Some(range) = self.ticket.clone() else { return };
        let body = self.inbox.bytes(range.start + message::HEADER..range.end);
        if let Ok(new) = ticket::read(body) {
            new.keep(ticket, &self.resumption, &self.fingerprint, self.expires, now);
        }
    }

    /// Whether a ticket has spared the server to prove itself anew.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The cipher suite.
    pub fn suite(&self) -> Suite {
        self.read.suite()
    }

    /// When the certificate is over by which the server has proved itself, in seconds since 1970.
    pub fn server_certificate_expires(&self) -> u64 {
        self.expires
    }

    fn check_writable(&self) -> Result<(), Error> {
        match self.failure {
            Some(failure) => Err(failure),
            None if self.is_closed => Err(Error::Closed),
            // §5.5
            None if self.write.is_used_up() => Err(Error::KeyUsedUp),
            None => Ok(()),
        }
    }

    fn try_poll(&mut self, out: &mut [u8]) -> Result<Event, Error> {
        loop {
            if let Some(range) = self.ticket.take() {
                self.inbox.remove(range);
            }
            if (self.owes_key_update || self.write.is_worn()) && !self.is_closed {
                return self.update_key(out).map(Event::Send);
            }
            if !self.data.is_empty() {
                return Ok(Event::Data);
            }
            // §6.1: what comes afterwards is to be ignored.
            if self.is_over {
                return Ok(Event::Closed);
            }
            if let Some(range) = self.inbox.message()? {
                if let Some(event) = self.receive(range)? {
                    return Ok(event);
                }
                continue;
            }
            let Some(opened) = self.inbox.next_record(Some(&mut self.read))? else {
                return Ok(Event::Receive);
            };
            match opened {
                Opened::Handshake => {}
                Opened::Data(range) if range.is_empty() => self.count_idle(1)?,
                Opened::Data(range) => {
                    self.data = range;
                    self.idle_records = 0;
                }
                Opened::Alert(0) => self.is_over = true,
                // §6.1: says only that the end will come.
                Opened::Alert(90) => self.count_idle(WARNING)?,
                Opened::Alert(description) => return Err(Error::Alert(Alert(description))),
                // §5: not after the server's Finished.
                Opened::Nothing => return Err(Violation::UnexpectedRecord.into()),
            }
        }
    }

    /// A message after the handshake (§4.6).
    fn receive(&mut self, range: Range<usize>) -> Result<Option<Event>, Error> {
        self.count_idle(1)?;
        match self.inbox.bytes(range.clone()) {
            [message::NEW_SESSION_TICKET, _, _, _, body @ ..] => {
                let is_useful = ticket::read(body)?.is_useful();
                // It stays where it is until the next call.
                self.ticket = Some(range);
                Ok(is_useful.then_some(Event::Ticket))
            }
            [message::KEY_UPDATE, _, _, _, body @ ..] => {
                match body {
                    [0] => {}
                    // Answered before anything else is done (§4.6.3).
                    [1] => self.owes_key_update = true,
                    [_] => return Err(Violation::KeyUpdate.into()),
                    _ => return Err(Violation::Malformed.into()),
                }
                // §5.1: the key changes with this message.
                if !self.inbox.ends_with(&range) {
                    return Err(Violation::SpansKeyChange.into());
                }
                self.read = self.read.successor();
                self.inbox.remove(range);
                Ok(None)
            }
            _ => Err(Violation::UnexpectedMessage.into()),
        }
    }

    fn count_idle(&mut self, weight: u8) -> Result<(), Error> {
        self.idle_records += weight;
        if self.idle_records > MAX_IDLE_RECORDS { Err(Error::Flood) } else { Ok(()) }
    }

    /// Tells the server that our next record has a new key, and takes that (§4.6.3). We ask nothing of it.
    fn update_key(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let mut outbox = Outbox::new(out);
        outbox.message(&mut self.write, None, |w| w.put(&[message::KEY_UPDATE, 0, 0, 1, 0]))?;
        self.write = self.write.successor();
        self.owes_key_update = false;
        Ok(outbox.written())
    }
}

impl core::fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct("Connection");
        shown.field("suite", &self.suite()).field("is_resumed", &self.is_resumed);
        shown.field("failure", &self.failure).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::keys::EarlySecret;
    use crate::limits::AES_GCM_RECORDS;

    /// §5.5: whoever sends a lot gets a new key in time, and no more is sent with the old one than may be.
    #[test]
    fn a_key_that_is_worn_gets_a_successor() {
        let key = || TrafficKey::new(Suite::Aes128Gcm, Zeroizing::new([7; 32]));
        let resumption = EarlySecret::new(None).exchange(&[0; 32]).master().resumption(&[0; 32]);
        let mut buffer = [0; 64];
        let inbox = Inbox::new(&mut buffer);
        let mut ours = Connection::new(inbox, (key(), key()), resumption, [0; 32], u64::MAX, false);
        let mut out = [0; 64];
        assert_eq!(ours.poll(&mut out), Ok(Event::Receive));
        ours.write.skip_to(AES_GCM_RECORDS + AES_GCM_RECORDS / 8);
        assert_eq!(ours.seal(b"data", &mut out), Err(Error::KeyUsedUp));
        // It is not lost: the next call of `poll` says so to the server.
        let Ok(Event::Send(count)) = ours.poll(&mut out) else { panic!("no new key") };
        let mut theirs = key();
        theirs.skip_to(AES_GCM_RECORDS + AES_GCM_RECORDS / 8);
        let (header, body) = out[..count].split_first_chunk_mut().unwrap();
        assert_eq!(theirs.open(header, body).unwrap(), [24, 0, 0, 1, 0, 22]);
        let (4, count) = ours.seal(b"data", &mut out).unwrap() else { panic!("all of it fits") };
        let (header, body) = out[..count].split_first_chunk_mut().unwrap();
        assert_eq!(theirs.successor().open(header, body).unwrap(), *b"data\x17");
        assert_eq!(ours.poll(&mut out), Ok(Event::Receive));
    }
}

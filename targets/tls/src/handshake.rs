//! The handshake (§2, §4): one message after the other, in the one order there is.

use core::ops::Range;

use sha2::{Digest, Sha256};

use crate::alert::Alert;
use crate::bytes::Reader;
use crate::client_auth;
use crate::config::{Config, Time};
use crate::connection::Connection;
use crate::error::{Error, Violation};
use crate::extension::{self, Extensions};
use crate::hello::{Hello, TLS_1_2};
use crate::hkdf::{Hash, is_equal};
use crate::inbox::{Inbox, Opened};
use crate::keys::{EarlySecret, MasterSecret, finished};
use crate::limits::{MAX_IDLE_RECORDS, MIN_BUFFER, WARNING};
use crate::message;
use crate::outbox::Outbox;
use crate::proof;
use crate::protection::{Suite, TrafficKey};
use crate::seed::Seed;
use crate::server_hello::{self, Answer};
use crate::ticket::{Offer, Ticket};

/// A handshake that is under way. It becomes a [`Connection`] when the server has proved who it is.
pub struct Handshake<'c, 'b> {
    config: &'c Config<'c>,
    time: Time,
    seed: Seed,
    offer: Option<Offer<'c>>,
    inbox: Inbox<'b>,
    transcript: Sha256,
    stage: Stage,
    /// Whether the record that middleboxes want to see has been sent (§D.4).
    has_changed_cipher: bool,
    /// What a HelloRetryRequest has chosen; the ServerHello must do so, too (§4.1.4).
    retried: Option<Suite>,
    /// Those of the handshake: the server's, and ours.
    keys: Option<(TrafficKey, TrafficKey)>,
    master: Option<MasterSecret>,
    /// When the server's certificate is over.
    expires: u64,
    is_resumed: bool,
    asked: Asked,
    /// The transcript up to the server's Finished.
    server_finished: Hash,
    idle_records: u8,
    failure: Option<Error>,
    has_said_farewell: bool,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send so many bytes of the buffer that was given, then call [`Handshake::step`] again.
    Send(usize),
    /// Read into [`Handshake::space`], say how much that was by [`Handshake::received`], and call
    /// [`Handshake::step`] again.
    Receive,
    /// Call [`Handshake::step`] again. A step may have taken long, for a signature: let others work
    /// between.
    Working,
    /// The server has proved who it is: call [`Handshake::finish`].
    Done,
}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    OurHello,
    /// With the cookie that is pinned.
    OurSecondHello,
    ServerHello,
    EncryptedExtensions,
    CertificateOrRequest,
    Certificate,
    CertificateVerify,
    Finished,
    OurCertificate,
    OurCertificateVerify,
    OurFinished,
    Done,
}

/// Whether the server wants to see a certificate of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    No,
    Yes,
    /// But it could not check a signature with it.
    InVain,
}

impl<'c, 'b> Handshake<'c, 'b> {
    /// Begins a handshake. `buffer` takes what the server sends, also afterwards:
    /// [`ANY_RECORD`](crate::ANY_RECORD) bytes are enough for every server.
    pub fn new(
        config: &'c Config<'c>,
        seed: Seed,
        time: Time,
        buffer: &'b mut [u8],
    ) -> Result<Self, Error> {
        if buffer.len() < MIN_BUFFER {
            return Err(Error::BufferTooSmall { needed: MIN_BUFFER });
        }
        Ok(Self {
            config,
            time,
            seed,
            offer: None,
            inbox: Inbox::new(buffer),
            transcript: Sha256::new(),
            stage: Stage::OurHello,
            has_changed_cipher: false,
            retried: None,
            keys: None,
            master: None,
            expires: 0,
            is_resumed: false,
            asked: Asked::No,
            server_finished: [0; 32],
            idle_records: 0,
            failure: None,
            has_said_farewell: false,
        })
    }

    /// Offers a ticket of an earlier connection, if it is good for this one: whether it is. `now` is a
    /// number of milliseconds from the same clock as that given to [`Connection::keep_ticket`]. To be
    /// called before the first [`step`](Self::step).
    pub fn resume(&mut self, ticket: &'c Ticket, now: u64) -> bool {
        if self.stage == Stage::OurHello {
            self.offer = ticket.offer(&self.config.fingerprint(), self.time, now);
        }
        self.offer.is_some()
    }

    /// Goes on. Messages of ours are written to `out`, which has to have room for the longest of them:
    /// about 400 bytes, more with a ticket or with certificates of ours.
    ///
    /// After an error, [`farewell`](Self::farewell) has what the server is to be told.
    pub fn step(&mut self, out: &mut [u8]) -> Result<Step, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let result = self.try_step(out);
        match result {
            // The caller may try again with more room: nothing has happened yet.
            Err(Error::OutputTooSmall { .. }) | Ok(_) => {}
            Err(error) => self.failure = Some(error),
        }
        result
    }

    /// Where to put what the transport has.
    pub fn space(&mut self) -> &mut [u8] {
        self.inbox.space()
    }

    /// So many bytes have been put there.
    pub fn received(&mut self, count: usize) {
        self.inbox.received(count);
    }

    /// The transport has ended.
    pub fn ended(&mut self) {
        self.inbox.end();
    }

    /// What the server is to be told after an error, or when the caller gives up: how much of `out` to send
    /// before closing the transport. Once.
    pub fn farewell(&mut self, out: &mut [u8]) -> Option<usize> {
        let alerts = match self.failure {
            Some(error) => [Some(error.alert()?), None],
            // The caller does not want to go on (§6.1).
            None => [Some(Alert::USER_CANCELED), Some(Alert::CLOSE_NOTIFY)],
        };
        if core::mem::replace(&mut self.has_said_farewell, true) || self.stage == Stage::OurHello {
            return None;
        }
        self.failure.get_or_insert(Error::Closed);
        let mut outbox = Outbox::new(out);
        // §D.4: before what is protected, also if that is an alert.
        if self.keys.is_some() && !self.has_changed_cipher {
            outbox.change_cipher_spec().ok()?;
            self.has_changed_cipher = true;
        }
        for alert in alerts.into_iter().flatten() {
            outbox.alert(self.keys.as_mut().map(|(_, ours)| ours), alert).ok()?;
        }
        Some(outbox.written())
    }

    /// The connection, after [`Step::Done`].
    pub fn finish(self) -> Result<Connection<'b>, Error> {
        match (self.failure, self.stage, self.keys, self.master) {
            (Some(failure), ..) => Err(failure),
            (None, Stage::Done, Some((server, _)), Some(master)) => {
                let suite = server.suite();
                let secrets = master.traffic(&self.server_finished);
                let resumption = master.resumption(&self.transcript.finalize().into());
                let read = TrafficKey::new(suite, secrets.server);
                let write = TrafficKey::new(suite, secrets.client);
                let keys = (read, write);
                let fingerprint = self.config.fingerprint();
                Ok(Connection::new(
                    self.inbox,
                    keys,
                    resumption,
                    fingerprint,
                    self.expires,
                    self.is_resumed,
                ))
            }
            _ => Err(Error::NotConnected),
        }
    }

    fn try_step(&mut self, out: &mut [u8]) -> Result<Step, Error> {
        match self.stage {
            Stage::Done => Ok(Step::Done),
            Stage::OurHello | Stage::OurSecondHello => self.send_hello(out),
            Stage::OurCertificate | Stage::OurCertificateVerify | Stage::OurFinished => {
                self.send_flight(out)
            }
            _ => self.listen(),
        }
    }

    /// Sends the first hello, or the second.
    fn send_hello(&mut self, out: &mut [u8]) -> Result<Step, Error> {
        let mut outbox = Outbox::new(out);
        let is_second = self.stage == Stage::OurSecondHello;
        if is_second {
            outbox.change_cipher_spec()?;
        }
        let cookie = is_second.then(|| self.inbox.pinned());
        let key = self.seed.key().ok_or(Error::NotConnected)?;
        let offer = self.offer.as_ref();
        let hello = Hello { config: self.config, seed: &self.seed, key: &key, offer, cookie };
        // §5.1: only the first may have another version in its record, for the sake of old servers.
        let version = if is_second { TLS_1_2 } else { 0x0301 };
        let written = outbox.plain(version, |writer| hello.write(writer, &self.transcript))?;
        self.transcript.update(written);
        if is_second {
            self.has_changed_cipher = true;
            self.inbox.unpin();
        }
        self.stage = Stage::ServerHello;
        Ok(Step::Send(outbox.written()))
    }

    /// Sends what we owe at the end, as much as fits.
    fn send_flight(&mut self, out: &mut [u8]) -> Result<Step, Error> {
        let mut outbox = Outbox::new(out);
        while self.stage != Stage::Done {
            match self.send_one(&mut outbox) {
                Ok(()) => {}
                Err(Error::OutputTooSmall { .. }) if outbox.written() > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Step::Send(outbox.written()))
    }

    fn send_one(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Error> {
        // §D.4: before what is protected.
        if !self.has_changed_cipher {
            outbox.change_cipher_spec()?;
            self.has_changed_cipher = true;
            return Ok(());
        }
        let (_, key) = self.keys.as_mut().ok_or(Error::NotConnected)?;
        let said: Hash = self.transcript.clone().finalize().into();
        // What the server could not check is not shown (§4.4.2).
        let identity = self.config.identity().filter(|_| self.asked == Asked::Yes);
        let transcript = Some(&mut self.transcript);
        self.stage = match self.stage {
            Stage::OurCertificate => {
                let chain = identity.map_or(&[][..], |identity| identity.chain());
                outbox.message(key, transcript, |w| client_auth::write_certificate(w, chain))?;
                if identity.is_some() { Stage::OurCertificateVerify } else { Stage::OurFinished }
            }
            Stage::OurCertificateVerify => {
                let identity = identity.ok_or(Error::NotConnected)?;
                outbox
                    .message(key, transcript, |w| client_auth::write_verify(w, identity, &said))?;
                Stage::OurFinished
            }
            _ => {
                let proof = finished(key.secret(), &said);
                outbox.message(key, transcript, |w| {
                    w.u8(message::FINISHED)?;
                    w.list24(|w| w.put(&*proof))
                })?;
                Stage::Done
            }
        };
        Ok(())
    }

    /// Takes the next message in, or the next record.
    fn listen(&mut self) -> Result<Step, Error> {
        if let Some(range) = self.inbox.message()? {
            self.receive(range)?;
            return Ok(Step::Working);
        }
        let key = self.keys.as_mut().map(|(server, _)| server);
        match self.inbox.next_record(key)? {
            None => return Ok(Step::Receive),
            Some(Opened::Handshake) => {}
            // §5: to be dropped until the server's Finished. That there may be many is nowhere said.
            Some(Opened::Nothing) => self.count_idle(1)?,
            // Nothing of an application's comes before the handshake is over.
            Some(Opened::Data(_)) => return Err(Violation::UnexpectedRecord.into()),
            Some(Opened::Alert(0)) => return Err(Error::ClosedInHandshake),
            // §6.1: says only that the end will come.
            Some(Opened::Alert(90)) => self.count_idle(WARNING)?,
            Some(Opened::Alert(description)) => return Err(Error::Alert(Alert(description))),
        }
        Ok(Step::Working)
    }

    fn count_idle(&mut self, weight: u8) -> Result<(), Error> {
        self.idle_records += weight;
        if self.idle_records > MAX_IDLE_RECORDS { Err(Error::Flood) } else { Ok(()) }
    }

    fn receive(&mut self, range: Range<usize>) -> Result<(), Error> {
        let kind = self.inbox.bytes(range.clone()).first().copied().unwrap_or_default();
        let said: Hash = self.transcript.clone().finalize().into();
        let next = match (self.stage, kind) {
            (Stage::ServerHello, message::SERVER_HELLO) => return self.server_hello(range),
            (Stage::EncryptedExtensions, message::ENCRYPTED_EXTENSIONS) => {
                self.encrypted_extensions(&range)?;
                // §4.4.2: a ticket stands for the certificate.
                if self.is_resumed { Stage::Finished } else { Stage::CertificateOrRequest }
            }
            (Stage::CertificateOrRequest, message::CERTIFICATE_REQUEST) => {
                let can_check = client_auth::read_request(self.body(&range))?;
                self.asked = if can_check { Asked::Yes } else { Asked::InVain };
                Stage::Certificate
            }
            (Stage::CertificateOrRequest | Stage::Certificate, message::CERTIFICATE) => {
                let (length, accepted) =
                    proof::certificates(self.body(&range), self.config, self.time)?;
                self.expires = accepted.expires;
                self.add(&range);
                // Its signature is checked with it.
                let start = range.start + proof::OWN_CERTIFICATE;
                self.inbox.pin(range, start..start + length);
                self.stage = Stage::CertificateVerify;
                return Ok(());
            }
            (Stage::CertificateVerify, message::CERTIFICATE_VERIFY) => {
                proof::verify(self.body(&range), self.inbox.pinned(), &said)?;
                Stage::Finished
            }
            (Stage::Finished, message::FINISHED) => {
                self.server_finished(&range, &said)?;
                if self.asked == Asked::No { Stage::OurFinished } else { Stage::OurCertificate }
            }
            _ => return Err(Violation::UnexpectedMessage.into()),
        };
        self.add(&range);
        self.inbox.remove(range);
        match next {
            Stage::Finished => self.inbox.unpin(),
            Stage::OurCertificate | Stage::OurFinished => {
                self.server_finished = self.transcript.clone().finalize().into();
            }
            _ => {}
        }
        self.stage = next;
        Ok(())
    }

    fn server_hello(&mut self, range: Range<usize>) -> Result<(), Error> {
        // §5.1: the key changes with this message.
        if !self.inbox.ends_with(&range) {
            return Err(Violation::SpansKeyChange.into());
        }
        let whole = self.inbox.bytes(range.clone());
        let answer = server_hello::read(whole, &self.seed.session(), self.offer.is_some())?;
        let (suite, key_share, takes_ticket) = match answer {
            Answer::Retry { suite, cookie } => return self.retry(range, suite, cookie),
            Answer::Hello { suite, key_share, takes_ticket } => (suite, key_share, takes_ticket),
        };
        if self.retried.is_some_and(|retried| retried != suite) {
            return Err(Violation::CipherSuite.into());
        }
        let ticket = self.offer.take().filter(|_| takes_ticket);
        self.is_resumed = ticket.is_some();
        if let Some(offer) = &ticket {
            self.expires = offer.expires;
        }
        self.add(&range);
        self.inbox.remove(range);
        let said: Hash = self.transcript.clone().finalize().into();
        let key = self.seed.key().ok_or(Error::NotConnected)?;
        let shared = key.diffie_hellman(&key_share);
        let early = EarlySecret::new(ticket.as_ref().map(|offer| offer.psk));
        let secret = early.exchange(shared.raw_secret_bytes());
        let traffic = secret.traffic(&said);
        let (server, ours) = (traffic.server, traffic.client);
        self.keys = Some((TrafficKey::new(suite, server), TrafficKey::new(suite, ours)));
        self.master = Some(secret.master());
        self.stage = Stage::EncryptedExtensions;
        Ok(())
    }

    /// A HelloRetryRequest (§4.1.4).
    fn retry(
        &mut self,
        range: Range<usize>,
        suite: Suite,
        cookie: Range<usize>,
    ) -> Result<(), Error> {
        if self.retried.replace(suite).is_some() {
            return Err(Violation::UnexpectedMessage.into());
        }
        // §4.4.1: the hash of the first hello takes its place.
        let first: Hash = core::mem::take(&mut self.transcript).finalize().into();
        self.transcript.update([message::MESSAGE_HASH, 0, 0, first.len() as u8]);
        self.transcript.update(first);
        self.add(&range);
        let start = range.start;
        self.inbox.pin(range, start + cookie.start..start + cookie.end);
        self.stage = Stage::OurSecondHello;
        Ok(())
    }

    /// §4.3.1
    fn encrypted_extensions(&self, range: &Range<usize>) -> Result<(), Error> {
        let mut extensions = Extensions::last(Reader::new(self.body(range)))?;
        let mut protocol = None;
        while let Some((kind, mut content)) = extensions.next()? {
            match kind {
                // RFC 7301, 3.1: one, and one that was offered.
                extension::ALPN if !self.config.protocol().is_empty() => {
                    let mut list = content.list16()?;
                    let chosen = list.list8()?.rest();
                    list.finish()?;
                    if chosen.is_empty() {
                        return Err(Violation::Answer.into());
                    }
                    protocol = Some(chosen);
                }
                // RFC 6066, 3: says only that the name was understood.
                extension::SERVER_NAME if self.config.dns_name().is_some() => {
                    if !content.is_empty() {
                        return Err(Violation::Answer.into());
                    }
                }
                // §4.2.7: which groups it would like better, another time.
                extension::SUPPORTED_GROUPS => {
                    let groups = content.list16()?.rest();
                    if groups.is_empty() || groups.len() % 2 != 0 {
                        return Err(Violation::Malformed.into());
                    }
                }
                extension::ALPN | extension::SERVER_NAME => {
                    return Err(Violation::UnsolicitedExtension.into());
                }
                kind => return Err(extension::out_of_place(kind)),
            }
            content.finish()?;
        }
        if protocol.unwrap_or_default() != self.config.protocol() {
            return Err(Error::NoApplicationProtocol);
        }
        Ok(())
    }

    /// §4.4.4
    fn server_finished(&self, range: &Range<usize>, said: &Hash) -> Result<(), Error> {
        // §5.1: the key changes with this message.
        if !self.inbox.ends_with(range) {
            return Err(Violation::SpansKeyChange.into());
        }
        let (server, _) = self.keys.as_ref().ok_or(Error::NotConnected)?;
        let right = finished(server.secret(), said);
        let body = self.body(range);
        if body.len() != right.len() {
            return Err(Violation::Malformed.into());
        }
        if is_equal(&*right, body) { Ok(()) } else { Err(Error::NotTheHandshake) }
    }

    fn body(&self, range: &Range<usize>) -> &[u8] {
        self.inbox.bytes(range.start + message::HEADER..range.end)
    }

    /// Adds a message to the transcript (§4.4.1).
    fn add(&mut self, range: &Range<usize>) {
        self.transcript.update(self.inbox.bytes(range.clone()));
    }
}

impl core::fmt::Debug for Handshake<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handshake").field("stage", &self.stage).finish_non_exhaustive()
    }
}

#[cfg(feature = "fuzzing")]
impl<'c, 'b> Handshake<'c, 'b> {
    /// In the state that a ServerHello has led to, with the server's key and ours.
    pub(crate) fn after_hello(
        config: &'c Config<'c>,
        seed: Seed,
        time: Time,
        buffer: &'b mut [u8],
        keys: (TrafficKey, TrafficKey),
    ) -> Result<Self, Error> {
        let mut handshake = Self::new(config, seed, time, buffer)?;
        handshake.stage = Stage::EncryptedExtensions;
        handshake.keys = Some(keys);
        handshake.master = Some(EarlySecret::new(None).exchange(&[0; 32]).master());
        Ok(handshake)
    }
}

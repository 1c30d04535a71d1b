//! What comes in: one buffer for a record, and in front of it the messages that are not done with.
//!
//! ```text
//!  buffer  |  what is still needed  |  messages, in pieces  |  a record, as far as it has come  |  …
//!          0                     pinned                   kept                           kept + filled
//! ```
//!
//! Nothing is read beyond the record that is under way, so nothing has to be moved to open it in place.

use core::ops::Range;

use crate::error::{Error, Violation};
use crate::limits::{ANY_RECORD, MAX_DATA, RECORD_HEADER};
use crate::protection::TrafficKey;
use crate::record::Kind;

pub(crate) struct Inbox<'b> {
    buffer: &'b mut [u8],
    /// The bytes at the front that outlive their message.
    pinned: usize,
    /// Those, and the bytes of messages behind them.
    kept: usize,
    /// The bytes that have come of the record behind them.
    filled: usize,
    has_ended: bool,
}

/// What a record was found to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// A piece of the handshake, which is now with the messages.
    Handshake,
    /// Data, which stays where it is until the next record is wanted.
    Data(Range<usize>),
    /// An alert.
    Alert(u8),
    /// A change_cipher_spec, which means nothing.
    Nothing,
}

impl<'b> Inbox<'b> {
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, pinned: 0, kept: 0, filled: 0, has_ended: false }
    }

    /// Where the transport is to put what it has: the rest of the record, or of its header.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        let start = self.kept.saturating_add(self.filled);
        let end = match self.header() {
            Some(header) => self.kept.saturating_add(length(&header)),
            None => self.kept.saturating_add(RECORD_HEADER),
        };
        // What does not fit has been reported before anybody asks for space.
        self.buffer.get_mut(start..end).unwrap_or_default()
    }

    pub(crate) fn received(&mut self, count: usize) {
        let room = self.space().len();
        self.filled += count.min(room);
    }

    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Opens the record that has come, if it is whole.
    pub(crate) fn next_record(
        &mut self,
        key: Option<&mut TrafficKey>,
    ) -> Result<Option<Opened>, Error> {
        let whole = match self.header() {
            Some(header) => {
                self.check_header(&header, key.is_some())?;
                Some(header).filter(|header| self.filled >= length(header))
            }
            // The end of the buffer may be nearer than the end of a header.
            None if self.kept + RECORD_HEADER > self.buffer.len() => {
                return self.too_small(RECORD_HEADER);
            }
            None => None,
        };
        match whole {
            Some(header) => {
                self.filled = 0;
                self.open(&header, key).map(Some)
            }
            None if self.has_ended => Err(Error::Truncated),
            None => Ok(None),
        }
    }

    /// The next message, header included, if it is whole.
    pub(crate) fn message(&self) -> Result<Option<Range<usize>>, Error> {
        let Some([_, high, middle, low, ..]) = self.buffer.get(self.pinned..self.kept) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let end = self.pinned + 4 + length;
        if end <= self.kept {
            return Ok(Some(self.pinned..end));
        }
        // It will never fit, so there is no need to wait for it.
        if end > self.buffer.len() {
            return Err(Error::BufferTooSmall { needed: end });
        }
        Ok(None)
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// Whether nothing has come behind a message.
    pub(crate) fn ends_with(&self, message: &Range<usize>) -> bool {
        self.kept == message.end
    }

    /// Forgets the message that was next.
    pub(crate) fn remove(&mut self, message: Range<usize>) {
        self.pin(message, 0..0);
    }

    /// Forgets the message that was next, but for a part of it.
    pub(crate) fn pin(&mut self, message: Range<usize>, part: Range<usize>) {
        let whole = self.pinned..self.kept;
        if message.start != whole.start || message.end > whole.end || part.end > message.end {
            return;
        }
        let length = part.len();
        self.buffer.copy_within(part, self.pinned);
        self.pinned += length;
        self.buffer.copy_within(message.end..self.kept, self.pinned);
        self.kept = self.pinned + (whole.end - message.end);
    }

    /// What was pinned.
    pub(crate) fn pinned(&self) -> &[u8] {
        self.bytes(0..self.pinned)
    }

    /// Forgets what was pinned.
    pub(crate) fn unpin(&mut self) {
        self.buffer.copy_within(self.pinned..self.kept, 0);
        self.kept -= self.pinned;
        self.pinned = 0;
    }

    fn header(&self) -> Option<[u8; RECORD_HEADER]> {
        let record = self.buffer.get(self.kept..)?;
        record.get(..self.filled)?.first_chunk().copied()
    }

    fn check_header(&self, header: &[u8; RECORD_HEADER], is_protected: bool) -> Result<(), Error> {
        let kind = Kind::of_code(header[0]).ok_or(Violation::NotTls)?;
        let length = length(header);
        // Version: to be ignored where nothing is protected (§5.1), and authenticated where it is (§5.2).
        let most =
            if is_protected && kind == Kind::Data { ANY_RECORD } else { MAX_DATA + RECORD_HEADER };
        if length > most {
            return Err(Error::RecordOverflow);
        }
        if self.kept + length > self.buffer.len() { self.too_small(length) } else { Ok(()) }
    }

    fn too_small<T>(&self, record: usize) -> Result<T, Error> {
        Err(Error::BufferTooSmall { needed: self.kept + record })
    }

    fn open(
        &mut self,
        header: &[u8; RECORD_HEADER],
        key: Option<&mut TrafficKey>,
    ) -> Result<Opened, Error> {
        let kind = Kind::of_code(header[0]).ok_or(Violation::NotTls)?;
        let start = self.kept + RECORD_HEADER;
        let end = self.kept + length(header);
        let body = self.buffer.get_mut(start..end).unwrap_or_default();
        let (kind, length) = match (kind, key) {
            // Without a meaning, and never protected; where it may stand is for the caller to say (§5,
            // §D.4).
            (Kind::ChangeCipherSpec, _) if *body == [1] => return Ok(Opened::Nothing),
            (Kind::ChangeCipherSpec, _) => return Err(Violation::UnexpectedRecord.into()),
            (Kind::Data, Some(key)) => unwrap(header, body, key)?,
            (_, Some(_)) => return Err(Violation::Unprotected.into()),
            (Kind::Data, None) => return Err(Violation::UnexpectedRecord.into()),
            (kind, None) => (kind, body.len()),
        };
        let range = start..start + length;
        match kind {
            // §5.1: no piece of a message is empty.
            Kind::Handshake if length == 0 => Err(Violation::EmptyRecord.into()),
            Kind::Handshake => {
                self.buffer.copy_within(range, self.kept);
                self.kept += length;
                Ok(Opened::Handshake)
            }
            // §5.1: nothing comes between the pieces of a message.
            _ if self.kept > self.pinned => Err(Violation::UnexpectedRecord.into()),
            Kind::Data => Ok(Opened::Data(range)),
            // §5.1: an alert is one record. Its level says nothing (§6).
            Kind::Alert => match self.bytes(range) {
                [_, description] => Ok(Opened::Alert(*description)),
                [] => Err(Violation::EmptyRecord.into()),
                _ => Err(Violation::Malformed.into()),
            },
            Kind::ChangeCipherSpec => Err(Violation::UnexpectedRecord.into()),
        }
    }
}

/// The length of a record, header included.
fn length(header: &[u8; RECORD_HEADER]) -> usize {
    let [_, _, _, high, low] = *header;
    RECORD_HEADER + usize::from(u16::from_be_bytes([high, low]))
}

/// Deciphers a record: what kind it is, and how long its content.
fn unwrap(
    header: &[u8; RECORD_HEADER],
    body: &mut [u8],
    key: &mut TrafficKey,
) -> Result<(Kind, usize), Error> {
    // §5.2: always that of TLS 1.2.
    if header.get(1..3) != Some(&[3, 3]) {
        return Err(Violation::LegacyVersion.into());
    }
    // §5.4: with kind and padding no longer than 2^14 + 1, which the header has said already.
    let plain = key.open(header, body)?;
    // §5.4: the kind is the last byte that is not zero.
    let last = plain.iter().rposition(|byte| *byte != 0).ok_or(Violation::EmptyRecord)?;
    let kind = plain.get(last).copied().and_then(Kind::of_code);
    match kind {
        Some(Kind::ChangeCipherSpec) | None => Err(Violation::UnexpectedRecord.into()),
        Some(kind) => Ok((kind, last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(inbox: &mut Inbox<'_>, mut bytes: &[u8]) -> Result<Option<Opened>, Error> {
        loop {
            if let Some(opened) = inbox.next_record(None)? {
                assert!(bytes.is_empty());
                return Ok(Some(opened));
            }
            let space = inbox.space();
            let count = space.len().min(bytes.len());
            assert!(!space.is_empty());
            if count == 0 {
                return Ok(None);
            }
            space[..count].copy_from_slice(&bytes[..count]);
            inbox.received(count);
            bytes = &bytes[count..];
        }
    }

    #[test]
    fn messages_are_put_together_and_taken_apart() {
        let mut buffer = [0; 64];
        let mut inbox = Inbox::new(&mut buffer);
        assert_eq!(feed(&mut inbox, &[22, 3, 3, 0, 3, 1, 0, 0]), Ok(Some(Opened::Handshake)));
        assert_eq!(inbox.message(), Ok(None));
        let rest = [22, 3, 1, 0, 7, 2, 8, 9, 2, 0, 0, 0];
        assert_eq!(feed(&mut inbox, &rest), Ok(Some(Opened::Handshake)));
        let first = inbox.message().unwrap().unwrap();
        assert_eq!(inbox.bytes(first.clone()), [1, 0, 0, 2, 8, 9]);
        assert!(!inbox.ends_with(&first));
        inbox.pin(first, 4..6);
        assert_eq!(inbox.pinned(), [8, 9]);
        let second = inbox.message().unwrap().unwrap();
        assert_eq!(inbox.bytes(second.clone()), [2, 0, 0, 0]);
        inbox.unpin();
        let second = inbox.message().unwrap().unwrap();
        assert!(inbox.ends_with(&second));
        inbox.remove(second);
        assert_eq!(inbox.message(), Ok(None));
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let refused = |bytes: &[u8]| {
            let mut buffer = [0; 64];
            feed(&mut Inbox::new(&mut buffer), bytes).err()
        };
        let violation = |violation| Some(Error::Violation(violation));
        assert_eq!(refused(b"HTTP/1.1 400"), violation(Violation::NotTls));
        assert_eq!(refused(&[22, 3, 3, 0, 0]), violation(Violation::EmptyRecord));
        assert_eq!(refused(&[21, 3, 3, 0, 0]), violation(Violation::EmptyRecord));
        assert_eq!(refused(&[21, 3, 3, 0, 3, 2, 40, 0]), violation(Violation::Malformed));
        assert_eq!(refused(&[20, 3, 3, 0, 1, 2]), violation(Violation::UnexpectedRecord));
        assert_eq!(refused(&[20, 3, 3, 0, 2, 1, 1]), violation(Violation::UnexpectedRecord));
        assert_eq!(refused(&[23, 3, 3, 0, 1, 1]), violation(Violation::UnexpectedRecord));
        assert_eq!(refused(&[22, 3, 3, 0x40, 1]), Some(Error::RecordOverflow));
        assert_eq!(refused(&[22, 3, 3, 0x40, 0]), Some(Error::BufferTooSmall { needed: 16_389 }));
    }

    #[test]
    fn nothing_comes_between_the_pieces_of_a_message() {
        let mut buffer = [0; 64];
        let mut inbox = Inbox::new(&mut buffer);
        feed(&mut inbox, &[22, 3, 3, 0, 3, 1, 0, 0]).unwrap();
        let between = feed(&mut inbox, &[21, 3, 3, 0, 2, 2, 40]);
        assert_eq!(between, Err(Violation::UnexpectedRecord.into()));
    }

    #[test]
    fn a_message_that_will_never_fit_is_not_waited_for() {
        let mut buffer = [0; 64];
        let mut inbox = Inbox::new(&mut buffer);
        feed(&mut inbox, &[22, 3, 3, 0, 4, 11, 1, 0, 0]).unwrap();
        assert_eq!(inbox.message(), Err(Error::BufferTooSmall { needed: 65_540 }));
    }
}

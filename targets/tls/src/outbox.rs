//! What goes out: records in the caller's buffer, one after the other.

use sha2::{Digest, Sha256};

use crate::alert::Alert;
use crate::bytes::Writer;
use crate::error::Error;
use crate::limits::{MAX_DATA, OVERHEAD, RECORD_HEADER, TAG};
use crate::protection::TrafficKey;
use crate::record::Kind;

/// The record that is sent for the sake of middleboxes, and has no meaning (§D.4).
const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];

/// Writes records behind each other.
pub(crate) struct Outbox<'o> {
    out: &'o mut [u8],
    written: usize,
}

impl<'o> Outbox<'o> {
    pub(crate) fn new(out: &'o mut [u8]) -> Self {
        Self { out, written: 0 }
    }

    pub(crate) fn written(&self) -> usize {
        self.written
    }

    pub(crate) fn change_cipher_spec(&mut self) -> Result<(), Error> {
        let mut writer = Writer::new(self.room());
        let put = writer.put(&CHANGE_CIPHER_SPEC);
        self.commit(put, CHANGE_CIPHER_SPEC.len())
    }

    /// A message that is not protected, which only a ClientHello is. `version` is that of the record.
    pub(crate) fn plain(
        &mut self,
        version: u16,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
    ) -> Result<&[u8], Error> {
        let start = self.written;
        let content = self.content(RECORD_HEADER, write)?;
        if content > MAX_DATA {
            return Err(Error::OutputTooSmall { needed: usize::MAX });
        }
        self.header(Kind::Handshake, version, content);
        self.written += RECORD_HEADER + content;
        Ok(self.out.get(start + RECORD_HEADER..self.written).unwrap_or_default())
    }

    /// A message that is protected, and what the transcript is to know of it.
    pub(crate) fn message(
        &mut self,
        key: &mut TrafficKey,
        transcript: Option<&mut Sha256>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let content = self.content(OVERHEAD, write)?;
        if content > MAX_DATA {
            return Err(Error::OutputTooSmall { needed: usize::MAX });
        }
        if let Some(transcript) = transcript {
            let start = self.written + RECORD_HEADER;
            transcript.update(self.out.get(start..start + content).unwrap_or_default());
        }
        self.seal(key, Kind::Handshake, content)
    }

    /// An alert, protected if there is a key.
    pub(crate) fn alert(
        &mut self,
        key: Option<&mut TrafficKey>,
        alert: Alert,
    ) -> Result<(), Error> {
        // §6: these two are warnings, all others are fatal.
        let level = if matches!(alert, Alert::CLOSE_NOTIFY | Alert::USER_CANCELED) { 1 } else { 2 };
        let write = |writer: &mut Writer<'_>| writer.put(&[level, alert.0]);
        match key {
            Some(key) => {
                let content = self.content(OVERHEAD, write)?;
                self.seal(key, Kind::Alert, content)
            }
            None => {
                let content = self.content(RECORD_HEADER, write)?;
                self.header(Kind::Alert, 0x0303, content);
                self.written += RECORD_HEADER + content;
                Ok(())
            }
        }
    }

    /// As much of `data` as fits one record; how much that is.
    pub(crate) fn data(&mut self, key: &mut TrafficKey, data: &[u8]) -> Result<usize, Error> {
        let room = self.room().len().saturating_sub(OVERHEAD).min(MAX_DATA);
        let (piece, _) = data.split_at(data.len().min(room));
        if piece.is_empty() && !data.is_empty() {
            return Err(Error::OutputTooSmall { needed: OVERHEAD + 1 });
        }
        let content = self.content(OVERHEAD, |writer| writer.put(piece))?;
        self.seal(key, Kind::Data, content)?;
        Ok(piece.len())
    }

    /// A record of data that the caller has put in its place already.
    pub(crate) fn data_in_place(
        &mut self,
        key: &mut TrafficKey,
        content: usize,
    ) -> Result<(), Error> {
        if content > MAX_DATA {
            return Err(Error::RecordOverflow);
        }
        self.seal(key, Kind::Data, content)
    }

    fn room(&mut self) -> &mut [u8] {
        self.out.get_mut(self.written..).unwrap_or_default()
    }

    /// Writes the content of a record where it belongs; `overhead` is what the record needs around it.
    fn content(
        &mut self,
        overhead: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let written = self.written;
        let room = self.room();
        let end = room.len().saturating_sub(overhead - RECORD_HEADER);
        let mut writer = Writer::new(room.get_mut(RECORD_HEADER..end).unwrap_or_default());
        match write(&mut writer) {
            Ok(()) => Ok(writer.len()),
            Err(Error::OutputTooSmall { needed }) => {
                Err(Error::OutputTooSmall { needed: needed.saturating_add(written + overhead) })
            }
            Err(error) => Err(error),
        }
    }

    fn header(&mut self, kind: Kind, version: u16, length: usize) -> [u8; RECORD_HEADER] {
        let [major, minor] = version.to_be_bytes();
        let [high, low] = (length as u16).to_be_bytes();
        let header = [kind.code(), major, minor, high, low];
        if let Some(place) = self.room().first_chunk_mut() {
            *place = header;
        }
        header
    }

    /// Protects what has been written (§5.2).
    fn seal(&mut self, key: &mut TrafficKey, kind: Kind, content: usize) -> Result<(), Error> {
        let needed = self.written + OVERHEAD + content;
        if self.room().len() < OVERHEAD + content {
            return Err(Error::OutputTooSmall { needed });
        }
        if content > MAX_DATA {
            return Err(Error::RecordOverflow);
        }
        let header = self.header(Kind::Data, 0x0303, content + 1 + TAG);
        let record = self.room().get_mut(RECORD_HEADER..OVERHEAD + content).unwrap_or_default();
        let (plain, tag) = record.split_last_chunk_mut().ok_or(Error::OutputTooSmall { needed })?;
        if let Some(last) = plain.last_mut() {
            *last = kind.code();
        }
        *tag = key.seal(&header, plain)?;
        self.written = needed;
        Ok(())
    }

    fn commit(&mut self, result: Result<(), Error>, count: usize) -> Result<(), Error> {
        match result {
            Ok(()) => {
                self.written += count;
                Ok(())
            }
            Err(_) => Err(Error::OutputTooSmall { needed: self.written + count }),
        }
    }
}

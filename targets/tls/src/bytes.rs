//! Reading and writing what messages are made of (§3).

use crate::error::{Error, Violation};

/// Reads from the front. Running out of bytes is an error, never a panic.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Violation::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Violation::Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// What has its length in one byte before it.
    pub(crate) fn list8(&mut self) -> Result<Self, Error> {
        let length = self.u8()?;
        self.take(length.into()).map(Self)
    }

    /// What has its length in two bytes before it.
    pub(crate) fn list16(&mut self) -> Result<Self, Error> {
        let length = self.u16()?;
        self.take(length.into()).map(Self)
    }

    /// What has its length in three bytes before it.
    pub(crate) fn list24(&mut self) -> Result<Self, Error> {
        let [high, middle, low] = self.array()?;
        self.take(u32::from_be_bytes([0, high, middle, low]) as usize).map(Self)
    }

    /// Fails if anything is left.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.is_empty() { Ok(()) } else { Err(Violation::Malformed.into()) }
    }
}

/// Writes to the end of a buffer.
pub(crate) struct Writer<'o> {
    buffer: &'o mut [u8],
    length: usize,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(buffer: &'o mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// The last bytes, to be filled in when all before them is known.
    pub(crate) fn last_mut(&mut self, count: usize) -> Option<&mut [u8]> {
        self.buffer.get_mut(self.length.checked_sub(count)?..self.length)
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.length.saturating_add(bytes.len());
        let room = self.buffer.get_mut(self.length..end);
        room.ok_or(Error::OutputTooSmall { needed: end })?.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    pub(crate) fn u8(&mut self, number: u8) -> Result<(), Error> {
        self.put(&[number])
    }

    pub(crate) fn u16(&mut self, number: u16) -> Result<(), Error> {
        self.put(&number.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, number: u32) -> Result<(), Error> {
        self.put(&number.to_be_bytes())
    }

    /// Puts what `write` writes behind its length in one byte.
    pub(crate) fn list8(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.list::<1>(write)
    }

    /// Puts what `write` writes behind its length in two bytes.
    pub(crate) fn list16(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.list::<2>(write)
    }

    /// Puts what `write` writes behind its length in three bytes.
    pub(crate) fn list24(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.list::<3>(write)
    }

    fn list<const WIDTH: usize>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = self.length;
        self.put(&[0; WIDTH])?;
        let content = self.length;
        write(self)?;
        let length = self.length.saturating_sub(content);
        // A list that is too long for its length cannot be sent, however large the buffer.
        if length >> (8 * WIDTH) != 0 {
            return Err(Error::OutputTooSmall { needed: usize::MAX });
        }
        let place = self.buffer.get_mut(start..content).unwrap_or_default();
        for (byte, shift) in place.iter_mut().rev().zip([0, 8, 16]) {
            *byte = (length >> shift) as u8;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_were_written() {
        let mut buffer = [0; 32];
        let mut writer = Writer::new(&mut buffer);
        writer.list24(|w| w.list16(|w| w.list8(|w| w.u32(7)))).unwrap();
        assert_eq!(writer.written(), [0, 0, 7, 0, 5, 4, 0, 0, 0, 7]);
        let mut reader = Reader::new(writer.written());
        let mut inner = reader.list24().unwrap().list16().unwrap().list8().unwrap();
        assert_eq!(inner.u32(), Ok(7));
        assert!(inner.finish().is_ok() && reader.finish().is_ok());
    }

    #[test]
    fn nothing_is_read_or_written_beyond_the_end() {
        let malformed = Some(Error::Violation(Violation::Malformed));
        assert_eq!(Reader::new(&[0, 2, 1]).list16().err(), malformed);
        assert_eq!(Reader::new(&[1]).u16().err(), malformed);
        assert_eq!(Reader::new(&[1]).finish().err(), malformed);
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        assert_eq!(writer.u32(1), Err(Error::OutputTooSmall { needed: 4 }));
        assert_eq!(writer.len(), 0);
        let mut buffer = [0; 400];
        assert!(Writer::new(&mut buffer).list8(|w| w.put(&[0; 256])).is_err());
    }
}

//! Where frames are written: a buffer of the caller's.

use crate::frame::{HEADER, Header};

/// A buffer that is filled with whole frames. What is in it has to be sent, all of it and in order: the
/// connection counts it as sent.
#[derive(Debug)]
pub struct Output<'b> {
    bytes: &'b mut [u8],
    len: usize,
}

/// There is no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<'b> Output<'b> {
    /// An empty one. 64 bytes are enough for everything but requests, which need room for their headers.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// One that has bytes in it already, which were written before and have not been sent yet.
    pub fn appending(bytes: &'b mut [u8], len: usize) -> Self {
        let len = len.min(bytes.len());
        Self { bytes, len }
    }

    /// What was written and is to be sent.
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more bytes fit.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Forgets what was written, which has been sent.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.bytes.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// A whole frame, or nothing of it.
    pub(crate) fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> Result<(), Full> {
        self.all_or_nothing(|out| {
            let length = u32::try_from(payload.len()).map_err(|_| Full)?;
            out.put(&Header { length, kind, flags, stream }.write())?;
            out.put(payload)
        })
    }

    /// A frame whose length is known when it is written. Returns that.
    pub(crate) fn frame_of(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<usize, Full> {
        self.all_or_nothing(|out| {
            let start = out.len;
            out.put(&[0; HEADER])?;
            payload(out)?;
            let length = out.len - start - HEADER;
            let header =
                Header { length: u32::try_from(length).map_err(|_| Full)?, kind, flags, stream };
            let place = out.bytes.get_mut(start..).and_then(|bytes| bytes.first_chunk_mut());
            *place.ok_or(Full)? = header.write();
            Ok(length)
        })
    }

    /// Takes back what was written if it could not be written to its end.
    pub(crate) fn all_or_nothing<T, E>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let start = self.len;
        let result = write(self);
        if result.is_err() {
            self.len = start;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_written_as_a_whole_or_not_at_all() {
        let mut buffer = [0; 24];
        let mut out = Output::new(&mut buffer);
        out.frame(6, 1, 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        assert_eq!(out.frame(8, 0, 3, &[0; 4]), Err(Full));
        assert_eq!(out.frame_of(1, 0, 3, |out| out.put(&[0; 1])), Err(Full));
        assert_eq!(out.written(), [0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(out.room(), 7);
        out.clear();
        assert_eq!(out.frame_of(1, 4, 3, |out| out.put(&[7; 2])), Ok(2));
        assert_eq!(out.written(), [0, 0, 2, 1, 4, 0, 0, 0, 3, 7, 7]);
        let mut out = Output::appending(&mut buffer, 11);
        out.frame(4, 1, 0, &[]).unwrap();
        assert_eq!(out.written(), [0, 0, 2, 1, 4, 0, 0, 0, 3, 7, 7, 0, 0, 0, 4, 1, 0, 0, 0, 0]);
        assert_eq!(Output::appending(&mut buffer, 25).room(), 0);
    }
}

//! A request on its way out.
//!
//! It is gathered in the memory that the response will come to, which nobody needs before: so a head and
//! a short body leave in one piece, and no memory is set aside for that.

use core::fmt;

use embedded_io_async::{ErrorType, Write};
use reqwless::request::RequestBody;

use crate::Error;

/// What stands before the bytes of a chunk: its length in four digits.
const CHUNK_SIZE: usize = "0000\r\n".len();
const LINE_END: &[u8] = b"\r\n";

/// Bytes that wait in `room` until it is full or [flushed](Write::flush).
pub(crate) struct Outgoing<'c, C> {
    connection: &'c mut C,
    room: &'c mut [u8],
    len: usize,
    mode: Mode,
}

/// How bytes of a body are written.
enum Mode {
    /// As they are; so many so far.
    Plain(usize),
    /// In chunks; where the one at hand begins, if there is one.
    Chunked(Option<usize>),
}

impl<'c, C: Write> Outgoing<'c, C> {
    pub(crate) fn new(connection: &'c mut C, room: &'c mut [u8]) -> Self {
        Self { connection, room, len: 0, mode: Mode::Plain(0) }
    }

    /// Adds text, if it fits what is left of the room.
    pub(crate) fn push(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        fmt::write(self, text).map_err(|_| Error::RequestTooLarge)
    }

    /// Writes a body as it was announced: of this length, or in chunks.
    pub(crate) async fn write_body(&mut self, body: &impl RequestBody) -> Result<(), Error> {
        let announced = body.len();
        self.mode = match announced {
            Some(_) => Mode::Plain(0),
            None => Mode::Chunked(None),
        };
        body.write(self).await.map_err(Error::sending)?;
        match (&self.mode, announced) {
            (Mode::Plain(written), Some(len)) if *written != len => Err(Error::BodyGone),
            (Mode::Chunked(_), _) => {
                self.end_chunk();
                self.mode = Mode::Plain(0);
                self.write_all(b"0\r\n\r\n").await.map_err(Error::sending)
            }
            _ => Ok(()),
        }
    }

    /// Copies as much as there is room for, but for some bytes; returns how much.
    fn take(&mut self, bytes: &[u8], but: usize) -> usize {
        let end = self.room.len().saturating_sub(but);
        let free = self.room.get_mut(self.len..end).unwrap_or_default();
        let len = free.len().min(bytes.len());
        for (place, byte) in free.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.len += len;
        len
    }

    async fn write_plain(&mut self, bytes: &[u8]) -> Result<usize, C::Error> {
        if self.len == self.room.len() {
            self.send().await?;
        }
        if self.len == 0 && bytes.len() >= self.room.len() {
            return self.connection.write(bytes).await;
        }
        Ok(self.take(bytes, 0))
    }

    async fn write_chunked(
        &mut self,
        chunk: Option<usize>,
        bytes: &[u8],
    ) -> Result<usize, C::Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if chunk.is_none() {
            if self.room.len() - self.len <= CHUNK_SIZE + LINE_END.len() {
                self.send().await?;
            }
            self.mode = Mode::Chunked(Some(self.len));
            self.len += CHUNK_SIZE;
        }
        let taken = self.take(bytes, LINE_END.len());
        if taken == 0 {
            self.end_chunk();
            self.send().await?;
        }
        Ok(taken)
    }

    /// Says how long the chunk at hand is, if there is one.
    fn end_chunk(&mut self) {
        let Mode::Chunked(Some(start)) = self.mode else { return };
        self.mode = Mode::Chunked(None);
        let end = self.len;
        let size = end.saturating_sub(start + CHUNK_SIZE);
        self.len = start;
        // Both were left room for.
        let _ = self.push(format_args!("{size:04x}\r\n"));
        self.len = end;
        self.take(LINE_END, 0);
    }

    async fn send(&mut self) -> Result<(), C::Error> {
        let bytes = self.room.get(..self.len).unwrap_or_default();
        self.len = 0;
        self.connection.write_all(bytes).await
    }
}

impl<C> fmt::Write for Outgoing<'_, C> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len.saturating_add(text.len());
        let place = self.room.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl<C: ErrorType> ErrorType for Outgoing<'_, C> {
    type Error = C::Error;
}

impl<C: Write> Write for Outgoing<'_, C> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, C::Error> {
        loop {
            let taken = match self.mode {
                Mode::Plain(written) => {
                    let taken = self.write_plain(bytes).await?;
                    self.mode = Mode::Plain(written + taken);
                    taken
                }
                Mode::Chunked(chunk) => self.write_chunked(chunk, bytes).await?,
            };
            if taken > 0 || bytes.is_empty() {
                return Ok(taken);
            }
        }
    }

    async fn flush(&mut self) -> Result<(), C::Error> {
        self.end_chunk();
        self.send().await?;
        self.connection.flush().await
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::convert::Infallible;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    /// Takes so many bytes at a time.
    struct Wire {
        most: usize,
        bytes: Vec<u8>,
        writes: usize,
    }

    impl ErrorType for Wire {
        type Error = Infallible;
    }

    impl Write for Wire {
        async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
            let len = bytes.len().min(self.most);
            self.bytes.extend(&bytes[..len]);
            self.writes += 1;
            Ok(len)
        }

        async fn flush(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// A body that comes in pieces.
    struct Pieces<'p> {
        pieces: &'p [&'p [u8]],
        len: Option<usize>,
    }

    impl RequestBody for Pieces<'_> {
        fn len(&self) -> Option<usize> {
            self.len
        }

        async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
            for piece in self.pieces {
                writer.write_all(piece).await?;
            }
            Ok(())
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    fn send(most: usize, room: usize, head: &str, body: &Pieces<'_>) -> Result<Wire, Error> {
        let mut wire = Wire { most, bytes: Vec::new(), writes: 0 };
        let mut room = std::vec![0; room];
        let mut outgoing = Outgoing::new(&mut wire, &mut room);
        outgoing.push(format_args!("{head}"))?;
        now(outgoing.write_body(body))?;
        now(outgoing.flush()).map_err(|never| match never {})?;
        Ok(wire)
    }

    /// Reads chunks as RFC 9112 §7.1 has them.
    fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = bytes.windows(2).position(|it| it == LINE_END).unwrap();
            let size = std::str::from_utf8(&bytes[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            bytes = &bytes[line + 2..];
            body.extend(&bytes[..size]);
            assert_eq!(&bytes[size..size + 2], LINE_END);
            bytes = &bytes[size + 2..];
            if size == 0 {
                assert!(bytes.is_empty());
                return body;
            }
        }
    }

    #[test]
    fn a_head_and_a_short_body_leave_in_one_piece() {
        let body = Pieces { pieces: &[b"ab", b"c"], len: Some(3) };
        let wire = send(1_000, 64, "head ", &body).unwrap();
        assert_eq!((wire.bytes.as_slice(), wire.writes), (&b"head abc"[..], 1));
        let body = Pieces { pieces: &[b"ab", b"c"], len: None };
        let wire = send(1_000, 64, "head ", &body).unwrap();
        let text = String::from_utf8(wire.bytes).unwrap();
        assert_eq!((text.as_str(), wire.writes), ("head 0003\r\nabc\r\n0\r\n\r\n", 1));
    }

    #[test]
    fn whatever_the_room_and_the_pieces_what_arrives_is_what_was_sent() {
        let text: Vec<u8> = (b'a'..=b'z').cycle().take(300).collect();
        for room in 9..40 {
            for piece in [1, 2, 7, 31, 100, 300] {
                for most in [1, 3, 1_000] {
                    let pieces: Vec<&[u8]> = text.chunks(piece).collect();
                    let whole = Pieces { pieces: &pieces, len: Some(text.len()) };
                    let wire = send(most, room, "head", &whole).unwrap();
                    assert_eq!(wire.bytes.strip_prefix(b"head"), Some(&*text));
                    let chunked = Pieces { pieces: &pieces, len: None };
                    let wire = send(most, room, "head", &chunked).unwrap();
                    let body = wire.bytes.strip_prefix(b"head").unwrap();
                    assert_eq!(unchunk(body), text, "{room} {piece} {most}");
                }
            }
        }
        let nothing = Pieces { pieces: &[], len: None };
        assert_eq!(send(9, 9, "head", &nothing).unwrap().bytes, b"head0\r\n\r\n");
    }

    #[test]
    fn a_head_that_does_not_fit_and_a_body_that_is_not_as_announced_are_errors() {
        let body = Pieces { pieces: &[b"ab"], len: Some(2) };
        assert_eq!(send(9, 9, "0123456789", &body).err(), Some(Error::RequestTooLarge));
        for len in [1, 3] {
            let body = Pieces { pieces: &[b"ab"], len: Some(len) };
            assert_eq!(send(9, 9, "head", &body).err(), Some(Error::BodyGone));
        }
    }
}

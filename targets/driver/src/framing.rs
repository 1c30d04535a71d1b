//! Where the body of a response ends, and which of the bytes on the connection belong to it.

use crate::Error;

/// How a body is framed, and how far it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes are still to come (`Content-Length`).
    Length(usize),
    /// In chunks, each with its length in front (`Transfer-Encoding: chunked`).
    Chunked(Chunk),
    /// The end of the connection is the end of the body.
    ToEnd,
}

/// Where in a chunked body the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// A digit of the length, of which there were so many, or what follows the last one.
    Length { digits: u8, length: u32 },
    /// What follows a length and means nothing here, to the end of the line.
    Extension { length: u32 },
    /// The line feed after a length.
    LengthEnd { length: u32 },
    /// Data, of which so much is still to come.
    Data(u32),
    /// The line feed after the data.
    DataEnd,
    /// A line after the last chunk. An empty one is the end.
    Trailer { is_empty: bool },
    /// The line feed after such a line.
    TrailerEnd { is_last: bool },
    /// Nothing.
    Done,
}

impl Framing {
    /// A chunked body before its first byte.
    pub(crate) const CHUNKED: Self = Self::Chunked(Chunk::NEXT);

    /// Whether all of the body has come.
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Done))
    }

    /// Whether a connection may end here.
    pub(crate) fn may_end(self) -> bool {
        self == Self::ToEnd
    }

    /// Takes the next piece of the body out of `bytes`; `None` if there is none in them, or none
    /// to come.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<&'b [u8]>, Error> {
        let piece = match self {
            Self::Length(rest) => {
                let piece = take(bytes, *rest);
                *rest -= piece.len();
                piece
            }
            Self::Chunked(chunk) => return chunk.next(bytes),
            Self::ToEnd => take(bytes, usize::MAX),
        };
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

impl Chunk {
    const NEXT: Self = Self::Length { digits: 0, length: 0 };

    fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Result<Option<&'b [u8]>, Error> {
        loop {
            if let Self::Data(rest @ 1..) = self {
                let piece = take(bytes, usize::try_from(*rest).unwrap_or(usize::MAX));
                // No piece is longer than what it is taken from.
                *rest = rest.saturating_sub(piece.len() as u32);
                return Ok(Some(piece).filter(|piece| !piece.is_empty()));
            }
            if *self == Self::Done {
                return Ok(None);
            }
            let Some((byte, rest)) = bytes.split_first() else { return Ok(None) };
            *bytes = rest;
            *self = self.accept(*byte).ok_or(Error::Malformed)?;
        }
    }

    /// Where the byte after this one belongs; `None` if this one should not be there.
    fn accept(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Length { digits: 1.., length }, b'\r') => Self::LengthEnd { length },
            (Self::Length { digits: 1.., length }, b';' | b' ' | b'\t') => {
                Self::Extension { length }
            }
            (Self::Length { digits: digits @ 0..8, length }, _) => {
                let digit = char::from(byte).to_digit(16)?;
                Self::Length { digits: digits + 1, length: length << 4 | digit }
            }
            (Self::Extension { length }, b'\r') => Self::LengthEnd { length },
            (Self::Extension { length }, _) if byte != b'\n' => Self::Extension { length },
            (Self::LengthEnd { length: 0 }, b'\n') => Self::Trailer { is_empty: true },
            (Self::LengthEnd { length }, b'\n') => Self::Data(length),
            (Self::Data(_), b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::NEXT,
            (Self::Trailer { is_empty }, b'\r') => Self::TrailerEnd { is_last: is_empty },
            (Self::Trailer { .. }, _) if byte != b'\n' => Self::Trailer { is_empty: false },
            (Self::TrailerEnd { is_last: true }, b'\n') => Self::Done,
            (Self::TrailerEnd { is_last: false }, b'\n') => Self::Trailer { is_empty: true },
            _ => return None,
        })
    }
}

/// Takes up to `most` bytes from the front.
fn take<'b>(bytes: &mut &'b [u8], most: usize) -> &'b [u8] {
    let (piece, rest) = bytes.split_at_checked(most).unwrap_or((bytes, &[]));
    *bytes = rest;
    piece
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// The body, how it ended, and what was left over, if it comes in pieces of `size` bytes.
    fn read(
        mut framing: Framing,
        text: &str,
        size: usize,
    ) -> Result<(Vec<u8>, bool, usize), Error> {
        let mut body = Vec::new();
        let mut left = 0;
        for mut bytes in text.as_bytes().chunks(size) {
            while let Some(piece) = framing.next(&mut bytes)? {
                body.extend_from_slice(piece);
            }
            left += bytes.len();
        }
        Ok((body, framing.is_done(), left))
    }

    fn read_anyhow(framing: Framing, text: &str) -> Result<(Vec<u8>, bool, usize), Error> {
        let whole = read(framing, text, text.len().max(1));
        for size in 1..text.len() {
            assert_eq!(read(framing, text, size), whole, "{text:?} by {size}");
        }
        whole
    }

    #[test]
    fn chunks_are_put_together() {
        let long = std::format!("{:x}\r\n{}\r\n0\r\n\r\n", 300, "a".repeat(300));
        assert_eq!(read(Framing::CHUNKED, &long, 7), Ok((std::vec![b'a'; 300], true, 0)));
        for (text, body) in [
            ("0\r\n\r\n", ""),
            ("3\r\nabc\r\n0\r\n\r\n", "abc"),
            ("3;name=value\r\nabc\r\n2 \r\nde\r\n0\r\n\r\n", "abcde"),
            ("00000003\r\nabc\r\nA\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\n", "abc0123456789"),
        ] {
            let expected = (body.as_bytes().to_vec(), true, 0);
            assert_eq!(read_anyhow(Framing::CHUNKED, text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_follows_the_body_is_left_over() {
        let text = "1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK";
        assert_eq!(read_anyhow(Framing::CHUNKED, text), Ok((b"a".to_vec(), true, 15)));
        assert_eq!(read_anyhow(Framing::Length(2), "abc"), Ok((b"ab".to_vec(), true, 1)));
        assert_eq!(read_anyhow(Framing::Length(0), "abc"), Ok((Vec::new(), true, 3)));
        assert_eq!(read_anyhow(Framing::ToEnd, "abc"), Ok((b"abc".to_vec(), false, 0)));
    }

    #[test]
    fn every_end_before_the_end_is_noticed() {
        let text = "3\r\nabc\r\n0\r\n\r\n";
        for length in 0..text.len() {
            let (_, is_done, _) = read_anyhow(Framing::CHUNKED, &text[..length]).unwrap();
            assert!(!is_done, "{length}");
        }
        assert!(!read_anyhow(Framing::Length(4), "abc").unwrap().1);
    }

    #[test]
    fn what_is_no_chunk_is_malformed() {
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "3\nabc",
            "3\rabc",
            "3\r\nabcd",
            "3\r\nabc\n",
            "3\r\nabc\rx",
            "123456789\r\n",
            "0\r\n\n",
            "0\r\n\rx",
            ";\r\n",
            "1;\n",
        ] {
            assert_eq!(read_anyhow(Framing::CHUNKED, text), Err(Error::Malformed), "{text:?}");
        }
    }
}

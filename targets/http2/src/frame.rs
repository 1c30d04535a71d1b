//! Frames as they stand on the wire (RFC 9113 §4.1), and the numbers of §6 and §7.

use core::fmt;

/// What a client says first (§3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long the head of a frame is.
pub(crate) const HEADER: usize = 9;
/// The largest payload until somebody allows more (§4.2). We never do.
pub(crate) const MAX_PAYLOAD: u32 = 16_384;
/// The largest payload that can be allowed at all.
pub(crate) const MAX_MAX_PAYLOAD: u32 = (1 << 24) - 1;
/// The last stream that a connection can have (§5.1.1).
pub(crate) const MAX_STREAM: u32 = (1 << 31) - 1;

/// Types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames. One bit means different things in different frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x01;
    pub(crate) const END_STREAM: u8 = 0x01;
    pub(crate) const END_HEADERS: u8 = 0x04;
    pub(crate) const PADDED: u8 = 0x08;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Names of settings (§6.5.2).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Header {
    pub(crate) const ZERO: Self = Self { length: 0, kind: 0, flags: 0, stream: 0 };

    /// The reserved bit of the stream is ignored (§4.1).
    pub(crate) const fn read(bytes: [u8; HEADER]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = bytes;
        Self {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        }
    }

    pub(crate) const fn write(self) -> [u8; HEADER] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub(crate) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Why a stream or a connection was ended, in the words of RFC 9113 §7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Nothing went wrong.
    pub const NO_ERROR: Self = Self(0);
    /// A rule was broken for which there is no better code.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The one who says so has a problem of its own.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Settings were not acknowledged.
    pub const SETTINGS_TIMEOUT: Self = Self(4);
    /// A frame came for a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has the wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not looked at.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be understood.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The connection that CONNECT made was reset.
    pub const CONNECT_ERROR: Self = Self(10);
    /// Too much that is of no use.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
    /// The transport is not safe enough.
    pub const INADEQUATE_SECURITY: Self = Self(12);
    /// Ask again by HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(13);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NO_ERROR => "NO_ERROR",
            Self::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
            Self::STREAM_CLOSED => "STREAM_CLOSED",
            Self::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
            Self::REFUSED_STREAM => "REFUSED_STREAM",
            Self::CANCEL => "CANCEL",
            Self::COMPRESSION_ERROR => "COMPRESSION_ERROR",
            Self::CONNECT_ERROR => "CONNECT_ERROR",
            Self::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
            Self::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
            Self::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
            Self(code) => return write!(f, "code {code}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header { length: 0x01_02_03, kind: 9, flags: 5, stream: 0x7fff_fffe };
        assert_eq!(header.write(), [1, 2, 3, 9, 5, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(Header::read(header.write()), header);
    }

    #[test]
    fn the_reserved_bit_is_ignored() {
        assert_eq!(Header::read([0, 0, 0, 0, 0, 0x80, 0, 0, 1]).stream, 1);
    }
}

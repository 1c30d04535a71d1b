//! What can go wrong, sorted by what the caller does about it.
//!
//! An [`Error`] is the end of the connection, a [`Reset`] that of one stream, and a [`Refusal`] means that
//! a request was not even begun.

use core::fmt;

use crate::frame::ErrorCode;

/// Why a connection is of no more use. Open a new one; requests that had been sent may or may not have
/// been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Error {
    /// What came first is not what an HTTP/2 server says.
    NotHttp2,
    /// A frame has a size that it must not have.
    FrameSize,
    /// A rule of the protocol was broken.
    Protocol(Breach),
    /// The server sent more than it was allowed to, or allowed us more than there can be.
    FlowControl,
    /// A header block cannot be decoded.
    Compression,
    /// The server keeps us busy with what is of no use.
    Flood(Flood),
    /// The bytes ended where they must not.
    Truncated,
}

/// Which rule of the protocol was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Breach {
    /// A frame about a stream that we have not opened, or about none where there has to be one, or about
    /// one where there must be none.
    Stream,
    /// A header block that was interrupted, or goes on without having begun.
    HeaderBlock,
    /// More padding than there is room.
    Padding,
    /// A setting that is out of bounds.
    Setting,
    /// A window that was to grow by nothing.
    Increment,
    /// A push, which we have forbidden.
    Push,
    /// A GOAWAY that takes back what an earlier one said.
    GoAway,
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Flood {
    /// SETTINGS frames, or settings in one of them.
    Settings,
    /// PING frames.
    Ping,
    /// Frames about streams that are over: resets, data, heads.
    ClosedStreams,
    /// DATA frames without data.
    EmptyData,
    /// Header blocks of too many bytes or in too many pieces, or too many heads that announce another.
    Headers,
    /// WINDOW_UPDATE frames.
    WindowUpdate,
    /// Frames that mean nothing to us.
    Unknown,
}

/// Why a stream is over before its response was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reset {
    /// The server has not looked at the request (RFC 9113 §8.7). It may be sent again, whatever it is.
    Unprocessed,
    /// The server gave up, and says why. It may have acted.
    ByServer(ErrorCode),
    /// The response breaks the rules of HTTP. The server may have acted.
    Malformed,
    /// The head of the response is larger than [`MAX_HEADER_LIST`](crate::MAX_HEADER_LIST).
    HeadTooLarge,
    /// The server broke a rule about this stream's window.
    FlowControl,
}

/// Why a request was not begun. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The connection is not open, or has failed.
    Closed,
    /// The server has not greeted us yet: wait for [`Event::Ready`](crate::Event::Ready).
    NotReady,
    /// All streams that we have room for, or that the server allows, are in use: wait for one to end.
    Busy,
    /// The connection takes no more requests: open a new one.
    Leaving,
    /// The output has no room left: send what is in it first.
    NoRoom,
    /// The request's head does not fit an empty output, or is more than the server takes.
    TooLarge,
    /// The request's head has characters or headers that must not be sent.
    Malformed,
}

/// A stream that is over, or was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gone;

impl Error {
    /// What the server is told about it.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::NotHttp2 | Self::Protocol(_) => ErrorCode::PROTOCOL_ERROR,
            Self::FrameSize => ErrorCode::FRAME_SIZE_ERROR,
            Self::FlowControl => ErrorCode::FLOW_CONTROL_ERROR,
            Self::Compression => ErrorCode::COMPRESSION_ERROR,
            Self::Flood(_) => ErrorCode::ENHANCE_YOUR_CALM,
            Self::Truncated => ErrorCode::NO_ERROR,
        }
    }
}

impl Reset {
    /// Whether the request has had no effect, so that even a POST may be sent again.
    pub fn is_unprocessed(self) -> bool {
        self == Self::Unprocessed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHttp2 => "the server does not speak HTTP/2: check address, port and ALPN",
            Self::FrameSize => "the server sent a frame of a wrong size: connect again",
            Self::Protocol(breach) => return write!(f, "the server {breach}: connect again"),
            Self::FlowControl => "the server broke the rules of flow control: connect again",
            Self::Compression => "the server sent headers that cannot be decoded: connect again",
            Self::Flood(flood) => {
                return write!(f, "the server floods us with {flood}: connect again, later");
            }
            Self::Truncated => "the server closed the connection too early: connect again",
        })
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "sent a frame on a stream where it must not be",
            Self::HeaderBlock => "interrupted a header block",
            Self::Padding => "sent more padding than there is room",
            Self::Setting => "sent a setting that is out of bounds",
            Self::Increment => "grew a window by nothing",
            Self::Push => "pushed, which is forbidden",
            Self::GoAway => "took back a GOAWAY",
        })
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settings => "settings",
            Self::Ping => "pings",
            Self::ClosedStreams => "frames about streams that are over",
            Self::EmptyData => "data frames without data",
            Self::Headers => "headers",
            Self::WindowUpdate => "window updates",
            Self::Unknown => "frames without meaning",
        })
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unprocessed => "the server did not look at the request: send it again",
            Self::ByServer(ErrorCode::HTTP_1_1_REQUIRED) => {
                "the server wants HTTP/1.1 for this request"
            }
            Self::ByServer(code) => {
                return write!(
                    f,
                    "the server gave the request up ({code}): see whether it has acted"
                );
            }
            Self::Malformed => "the response is not valid HTTP: see whether the server has acted",
            Self::HeadTooLarge => {
                "the response's headers are too large: see whether the server has acted"
            }
            Self::FlowControl => "the server broke the rules of the stream's window: try again",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the connection is closed: open a new one",
            Self::NotReady => "the server has not greeted us yet: wait for that",
            Self::Busy => "all streams are in use: wait until one ends",
            Self::Leaving => "the connection takes no more requests: open a new one",
            Self::NoRoom => "no room in the output: send what is in it first",
            Self::TooLarge => {
                "the request's head is too large: shorten it, or give a larger output"
            }
            Self::Malformed => "the request's head has something in it that must not be sent",
        })
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream is over: send no more of the request")
    }
}

impl core::error::Error for Error {}
impl core::error::Error for Reset {}
impl core::error::Error for Refusal {}
impl core::error::Error for Gone {}

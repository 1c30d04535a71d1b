//! What a connection tells.

use crate::error::Reset;
use crate::frame::ErrorCode;
use crate::hpack::Head;
use crate::stream::StreamKey;

/// What has happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// The server has greeted us: requests can be sent.
    Ready,
    /// The head of a response.
    Head {
        /// Of this stream.
        stream: StreamKey,
        /// What was kept of it.
        head: Head,
    },
    /// The next bytes of a response's body, at least one. When whoever reads has dealt with them, they are
    /// given back by [`Connection::release`](crate::Connection::release).
    Data {
        /// Of this stream.
        stream: StreamKey,
        /// A part of what was received.
        bytes: &'i [u8],
    },
    /// A response is complete, and its stream is over.
    End {
        /// This one.
        stream: StreamKey,
    },
    /// A stream is over, and its response will not be complete.
    Reset {
        /// This one.
        stream: StreamKey,
        /// Why.
        reason: Reset,
    },
    /// The server takes no more requests on this connection. Streams that go on do so; of those that do not,
    /// events follow.
    GoAway {
        /// Why.
        code: ErrorCode,
    },
    /// The answer to [`Connection::ping`](crate::Connection::ping).
    Pong,
}

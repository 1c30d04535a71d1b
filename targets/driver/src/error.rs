//! What can go wrong between sending a request and having read its whole response.

use core::fmt;

use embedded_io_async::ErrorKind;
use picokube_http2::{ErrorCode, Reset};

use crate::Insecure;

/// Why an exchange failed. Over HTTP/1.1, the connection is closed after any of these; over HTTP/2, it goes
/// on if the failure is that of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Error {
    /// Nobody accepts connections at the server's address.
    Refused,
    /// No connection came about within [`Patience::connect`](crate::Patience::connect).
    ConnectTimeout,
    /// No response began within [`Patience::response`](crate::Patience::response).
    ResponseTimeout,
    /// The response began, then nothing came for [`Patience::silence`](crate::Patience::silence).
    Silence,
    /// The response began, and had not ended after [`Patience::answer`](crate::Patience::answer).
    AnswerTimeout,
    /// The server closed the connection before the response was complete.
    Truncated,
    /// The connection was reset, by the server or on the way.
    Reset,
    /// The head of the response does not fit the connection's buffer.
    HeadTooLarge,
    /// The head of the request does not fit the connection's buffer.
    RequestTooLarge,
    /// The body changed while it was sent, and is not as long as was announced.
    BodyGone,
    /// What came is not HTTP, or uses a part of it that API servers do not use.
    Malformed,
    /// The network stack could not even try: no link, no address, no route, no free socket.
    Unreachable,
    /// No connection came about that is secure.
    Insecure(Insecure),
    /// What was received was changed on its way, or by somebody who does not have the connection's keys.
    Tampered,
    /// The request has something in it that must not be sent: a token with control characters, say.
    RequestMalformed,
    /// The server has not looked at the request, and says so.
    Unprocessed,
    /// The server takes no more requests on the connection, and this one would have had no end.
    Leaving,
    /// The server gave this request up, and says why. It may have acted.
    GivenUp(ErrorCode),
    /// The server broke a rule of HTTP/2.
    Http2(picokube_http2::Error),
}

impl Error {
    /// Whether the failure came before anything was sent: the request has had no effect.
    pub fn is_before_sending(self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::ConnectTimeout
                | Self::Unreachable
                | Self::Insecure(_)
                | Self::RequestTooLarge
                | Self::RequestMalformed
        )
    }

    /// Whether the request has had no effect: it was not sent, or the server says that it has not looked at
    /// it. Then it may be sent again, whatever it is.
    pub fn is_without_effect(self) -> bool {
        self.is_before_sending() || self == Self::Unprocessed
    }

    /// Sorts a failure to connect.
    pub(crate) fn connecting(kind: ErrorKind) -> Self {
        match kind {
            // A stack that cannot tell the two apart reports a refusal as a reset (embassy-net).
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::Refused,
            ErrorKind::TimedOut => Self::ConnectTimeout,
            _ => Self::Unreachable,
        }
    }

    /// Sorts a failure to write.
    pub(crate) fn sending(error: impl embedded_io_async::Error) -> Self {
        Self::talking(reqwless::Error::Network(error.kind()))
    }

    /// Sorts a failure of a transport that was open.
    #[cfg(feature = "tls")]
    pub(crate) fn transport(kind: ErrorKind) -> Self {
        Self::talking(reqwless::Error::Network(kind))
    }

    /// Sorts the end of a stream.
    pub(crate) fn reset(reset: Reset) -> Self {
        match reset {
            Reset::Unprocessed => Self::Unprocessed,
            Reset::ByServer(code) => Self::GivenUp(code),
            Reset::Malformed => Self::Malformed,
            Reset::HeadTooLarge => Self::HeadTooLarge,
            Reset::FlowControl => Self::Http2(picokube_http2::Error::FlowControl),
        }
    }

    /// Sorts a failure of an HTTP/2 connection.
    pub(crate) fn http2(error: picokube_http2::Error) -> Self {
        match error {
            picokube_http2::Error::Truncated => Self::Truncated,
            error => Self::Http2(error),
        }
    }

    /// Sorts a failure on an open connection.
    pub(crate) fn talking(error: reqwless::Error) -> Self {
        use reqwless::Error as Http;
        match error {
            Http::ConnectionAborted | Http::Network(ErrorKind::ConnectionAborted) => {
                Self::Truncated
            }
            // Whatever the stack calls it, an open connection is no more.
            Http::Network(_) => Self::Reset,
            Http::BufferTooSmall => Self::HeadTooLarge,
            _ => Self::Malformed,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused: is the API server running at this address?",
            Self::ConnectTimeout => "no answer while connecting: check address and network",
            Self::ResponseTimeout => "the server accepted the request and did not answer in time",
            Self::Silence => "the server fell silent in the middle of its response",
            Self::AnswerTimeout => "the server did not come to the end of its response in time",
            Self::Truncated => "the server closed the connection in the middle of its response",
            Self::Reset => "the connection was reset",
            Self::HeadTooLarge => "the response's headers do not fit the connection's buffer",
            Self::RequestTooLarge => "the request's head does not fit the connection's buffer",
            Self::BodyGone => "the request's body changed while it was sent",
            Self::Malformed => "the response is not valid HTTP",
            Self::Unreachable => "the network is not usable: no link, address, route or socket",
            Self::Insecure(why) => return why.fmt(f),
            Self::Tampered => "what the server sent was changed on its way",
            Self::RequestMalformed => {
                "the request has something in it that must not be sent: look at token and names"
            }
            Self::Unprocessed => "the server did not look at the request",
            Self::Leaving => "the server takes no more requests on this connection",
            Self::GivenUp(code) => return write!(f, "the server gave the request up: {code}"),
            Self::Http2(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for Error {}

//! What can go wrong between sending a request and having read its whole response.

use core::fmt;

use embedded_io_async::ErrorKind;

/// Why an exchange failed. The connection is closed after any of these.
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
    /// What came is not HTTP/1.1, or uses a part of it that API servers do not use.
    Malformed,
    /// The network stack could not even try: no link, no address, no route, no free socket.
    Unreachable,
}

impl Error {
    /// Whether the failure came before anything was sent: the request has had no effect.
    pub fn is_before_sending(self) -> bool {
        matches!(
            self,
            Self::Refused | Self::ConnectTimeout | Self::Unreachable | Self::RequestTooLarge
        )
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
            Self::Malformed => "the response is not valid HTTP/1.1",
            Self::Unreachable => "the network is not usable: no link, address, route or socket",
        })
    }
}

impl core::error::Error for Error {}

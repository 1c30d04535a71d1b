//! What an exchange is: whom it is with, what is sent, and who takes the response in.

use core::fmt;
use core::net::SocketAddr;
use core::ops::ControlFlow;

use embassy_time::Duration;
use picokube_core::backoff::Policy;
use picokube_core::manager::ResponseHead;
use picokube_core::time::Duration as Span;
use reqwless::request::Method;

use crate::Error;

/// Names the client in the server's audit log, and in `managedFields` as who wrote a field.
pub(crate) const USER_AGENT: &str = concat!("picokube/", env!("CARGO_PKG_VERSION"));

/// Whom to talk to, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// Where the server listens.
    pub address: SocketAddr,
    /// The `Host` header: name and port, as a client would write them in a URL.
    pub host: &'a str,
    /// The whole `Authorization` header (`Bearer …`), if the server wants one.
    pub authorization: Option<&'a str>,
}

/// Who looks after exchanges while they go on: on a board nobody, on a PC whoever reads tokens that
/// change, and counts.
pub trait Observer<'a> {
    /// The whole `Authorization` header of the next request; `None` is that of the [`Server`].
    fn authorization(&self) -> Option<&'a str>;

    /// A request was answered with this status code, or was not.
    fn answered(&self, method: Method, answer: Result<u16, Error>);
}

/// How long to wait for what, and how eagerly to try again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the wish to connect to an open connection.
    pub connect: Duration,
    /// From an open connection to the head of the response; sending the request counts.
    pub response: Duration,
    /// Between any two pieces of a response.
    pub silence: Duration,
    /// From the head of a response to its end, however steadily it comes; `None` for responses that have
    /// no end of their own.
    pub answer: Option<Duration>,
    /// How old a kept connection may be that still is used for a request that cannot be repeated. Of no
    /// meaning over HTTP/2, where the server says which requests it has not looked at.
    pub idle: Duration,
    /// Between a failure and the next attempt.
    pub backoff: Policy,
}

impl Patience {
    /// For a watch: the manager decides when it is tried again, and knows sooner than the connection
    /// when it has been silent for too long.
    pub const WATCHES: Self = Self {
        silence: Duration::from_secs(600),
        answer: None,
        backoff: Policy { base: Span::ZERO, cap: Span::ZERO, reset: Span::ZERO },
        ..Self::REQUESTS
    };

    /// For a manager's requests.
    pub const REQUESTS: Self = Self {
        connect: Duration::from_secs(10),
        response: Duration::from_secs(60),
        silence: Duration::from_secs(60),
        answer: Some(Duration::from_secs(60)),
        idle: Duration::from_secs(20),
        backoff: Policy {
            base: Span::from_millis(50),
            cap: Span::from_secs(5),
            reset: Span::from_secs(60),
        },
    };
}

/// A request. `B` is its body: bytes at hand, or anything that can write itself.
#[derive(Clone, Copy)]
pub struct Request<'a, B = &'a [u8]> {
    /// The verb.
    pub method: Method,
    /// Path and query: what stands after the verb. It is written out where it is sent from.
    pub target: &'a dyn fmt::Display,
    /// Headers beyond `host`, `user-agent`, `authorization`, `accept` and `content-length`. Their names are
    /// in lower case, as HTTP/2 wants them.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: B,
}

/// Takes a response in as it arrives.
#[expect(async_fn_in_trait, reason = "the futures stay on one executor, so none need be Send")]
pub trait Receiver {
    /// The head has been read. `Break` gives the rest up.
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()>;
    /// The next bytes of the body. `Break` gives the rest up.
    ///
    /// No further bytes are handed over before this returns, so that a slow receiver slows the server.
    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()>;
    /// Whether the response has no end of its own, as that of a watch: it gets no memory that others want,
    /// too.
    fn is_endless(&self) -> bool {
        false
    }
}

/// Notes whether the response had begun when an exchange failed.
pub(crate) struct Watched<'r, R> {
    pub(crate) receiver: &'r mut R,
    pub(crate) head_seen: bool,
}

impl<R: Receiver> Receiver for Watched<'_, R> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.head_seen = true;
        self.receiver.head(head)
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.receiver.body(bytes).await
    }

    fn is_endless(&self) -> bool {
        self.receiver.is_endless()
    }
}

//! One HTTP connection, kept alive from request to request.

use core::fmt;
use core::net::SocketAddr;
use core::ops::ControlFlow;

use embassy_time::{Duration, Instant, Timer, with_deadline, with_timeout};
use embedded_io_async::{BufRead, Error as _, Read, Write};
use embedded_nal_async::TcpConnect;
use picokube_core::backoff::{Backoff, Policy};
use picokube_core::manager::ResponseHead;
use picokube_core::random::Random;
use picokube_core::time::Duration as Span;
use reqwless::client::HttpConnection;
use reqwless::request::{Method, RequestBody};
use reqwless::response::{BodyReader, Response};

use crate::Error;
use crate::framing::Framing;
use crate::outgoing::Outgoing;

/// Names the client in the server's audit log, and in `managedFields` as who wrote a field.
const USER_AGENT: &str = concat!("picokube/", env!("CARGO_PKG_VERSION"));

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

/// Who looks after connections while they are in use: on a board nobody, on a PC whoever reads
/// tokens that change, and counts.
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
    /// How old a kept connection may be that still is used for a request that cannot be repeated.
    pub idle: Duration,
    /// Between a failure and the next attempt.
    pub backoff: Policy,
}

impl Patience {
    /// For the connection of a watch: the manager decides when it is tried again, and knows
    /// sooner than the connection when it has been silent for too long.
    pub const WATCHES: Self = Self {
        silence: Duration::from_secs(600),
        answer: None,
        backoff: Policy { base: Span::ZERO, cap: Span::ZERO, reset: Span::ZERO },
        ..Self::REQUESTS
    };

    /// For the connections of a manager's requests.
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
    /// Headers beyond `Host`, `User-Agent`, `Authorization`, `Accept` and `Content-Length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: B,
}

/// Takes a response in as it arrives.
#[expect(async_fn_in_trait, reason = "the futures stay on one executor, so none need be Send")]
pub trait Receiver {
    /// The head has been read. `Break` gives the rest up and closes the connection.
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()>;
    /// The next bytes of the body. `Break` gives the rest up and closes the connection.
    ///
    /// No further bytes are read before this returns, so that a slow receiver slows the server.
    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()>;
}

/// The memory of one connection. It bounds the head of a request, but for its `Authorization`, and that of
/// a response; not the bodies.
pub struct Buffer<const LEN: usize>([u8; LEN]);

impl<const LEN: usize> Buffer<LEN> {
    /// All zero, so that a `static` of this type costs no flash.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        Self([0; LEN])
    }
}

/// A connection without a request.
struct Kept<C> {
    connection: C,
    since: Instant,
}

/// One connection to one server: opened by the first request that needs it, kept alive, and closed
/// by any [`Error`]. The exchange after a failure first waits, longer with every failure in a row.
///
/// A read that was given up half-way would break the framing of the response, so a time-out always
/// costs the connection: there is nothing to clean up afterwards.
pub struct Connection<'a, N: TcpConnect + 'a> {
    network: &'a N,
    server: Server<'a>,
    patience: Patience,
    /// A request leaves from here, and then its response comes here.
    buffer: &'a mut [u8],
    open: Option<Kept<N::Connection<'a>>>,
    backoff: Backoff,
    not_before: Option<Instant>,
    random: Random,
    observer: Option<&'a dyn Observer<'a>>,
}

impl<'a, N: TcpConnect + 'a> Connection<'a, N> {
    /// A connection that is not open yet. `seed` sets the jitter of its delays.
    pub fn new<const LEN: usize>(
        network: &'a N,
        server: Server<'a>,
        patience: Patience,
        Buffer(buffer): &'a mut Buffer<LEN>,
        seed: u32,
    ) -> Self {
        Self {
            network,
            server,
            patience,
            buffer,
            open: None,
            backoff: Backoff::new(patience.backoff),
            not_before: None,
            random: Random::new(seed),
            observer: None,
        }
    }

    /// The same connection, looked after.
    pub fn observed_by(self, observer: &'a dyn Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Sends `request` and hands the response to `receiver`, piece by piece.
    ///
    /// A server may close an idle connection just when the next request is on its way. A GET is
    /// then sent once more on a new connection; for any other method the error is returned, since
    /// the server may have acted, and to make that rare, such requests get a new connection when
    /// the kept one has been idle for long.
    ///
    /// Not cancel-safe in the sense that dropping the future gives the connection up; the next
    /// exchange opens a new one.
    pub async fn exchange(
        &mut self,
        request: &Request<'_, impl RequestBody + Copy>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        if let Some(time) = self.not_before.take() {
            Timer::at(time).await;
        }
        let mut watched = Watched { receiver, head_seen: false };
        let is_get = request.method == Method::GET;
        let kept = self.open.take();
        let mut kept = kept.filter(|it| is_get || it.since.elapsed() < self.patience.idle);
        // A future has room for each place that waits: there is one for exchanges, on whatever connection.
        let result = loop {
            let is_kept = kept.is_some();
            let connection = match kept.take() {
                Some(Kept { connection, .. }) => connection,
                None => match self.connect().await {
                    Ok(fresh) => fresh,
                    Err(error) => break Err(error),
                },
            };
            match self.exchange_on(connection, request, &mut watched).await {
                Err(Error::Truncated | Error::Reset) if is_kept && is_get && !watched.head_seen => {
                }
                result => break result,
            }
        };
        self.settle(request.method, watched.head_seen, result)
    }

    /// Keeps the books of back-off, and tells of what was not answered.
    fn settle(
        &mut self,
        method: Method,
        answered: bool,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        match result {
            Ok(()) => self.backoff.reset(),
            Err(error) => {
                if let (Some(observer), false) = (self.observer, answered) {
                    observer.answered(method, Err(error));
                }
                let now = Instant::now();
                self.not_before = Some(now + next_delay(&mut self.backoff, now, &mut self.random));
            }
        }
        result
    }

    async fn connect(&mut self) -> Result<N::Connection<'a>, Error> {
        match with_timeout(self.patience.connect, self.network.connect(self.server.address)).await {
            Ok(Ok(open)) => Ok(open),
            Ok(Err(error)) => Err(Error::connecting(error.kind())),
            Err(_) => Err(Error::ConnectTimeout),
        }
    }

    /// One exchange on `conn`, which is kept only if the response ended where it should.
    async fn exchange_on(
        &mut self,
        mut conn: N::Connection<'a>,
        request: &Request<'_, impl RequestBody + Copy>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        let current = self.observer.and_then(|observer| observer.authorization());
        let authorization = current.or(self.server.authorization);
        let mut http = HttpConnection::Plain(&mut conn);
        let asking = ask(&mut http, self.buffer, self.server.host, authorization, request);
        let response = match with_timeout(self.patience.response, asking).await {
            Ok(response) => response?,
            Err(_) => return Err(Error::ResponseTimeout),
        };
        if let Some(observer) = self.observer {
            observer.answered(request.method, Ok(response.status.0));
        }
        let Headers { date, retry_after, close } = Headers::of(&response);
        let head = ResponseHead::new(response.status.0, date, retry_after);
        let mut reusable = !close;
        let end = self.patience.answer.map_or(Instant::MAX, |answer| Instant::now() + answer);
        if receiver.head(&head).is_break() {
            return Ok(());
        }
        // reqwless would read the lengths of chunks byte by byte, and move all that follows them.
        let (mut bytes, mut framing) = match response.body().reader() {
            // The answer to a HEAD, which nobody sends.
            BodyReader::Empty => return Ok(()),
            BodyReader::FixedLength(fixed) => (fixed.raw_body, Framing::Length(fixed.remaining)),
            BodyReader::Chunked(chunked) => (chunked.raw_body, Framing::CHUNKED),
            BodyReader::ToEnd(bytes) => (bytes, Framing::ToEnd),
        };
        while !framing.is_done() {
            let silence = Instant::now() + self.patience.silence;
            // What there is to read, a time-out would still let through.
            if Instant::now() >= end {
                return Err(Error::AnswerTimeout);
            }
            let read = match with_deadline(silence.min(end), bytes.fill_buf()).await {
                Ok(read) => read.map_err(|kind| Error::talking(kind.into()))?,
                Err(_) if end <= silence => return Err(Error::AnswerTimeout),
                Err(_) => return Err(Error::Silence),
            };
            if read.is_empty() {
                reusable = false;
                if framing.may_end() {
                    break;
                }
                return Err(Error::Truncated);
            }
            let len = read.len();
            let mut rest = read;
            while let Some(piece) = framing.next(&mut rest)? {
                if receiver.body(piece).await.is_break() {
                    return Ok(());
                }
            }
            // Nothing was asked for that could follow.
            reusable &= rest.is_empty();
            bytes.consume(len);
        }
        if reusable {
            self.open = Some(Kept { connection: conn, since: Instant::now() });
        }
        Ok(())
    }
}

fn next_delay(backoff: &mut Backoff, now: Instant, random: &mut Random) -> Duration {
    let now = picokube_core::time::Instant::from_micros(now.as_micros());
    Duration::from_micros(backoff.next(now, random.draw()).as_micros())
}

/// Notes whether the response had begun when an exchange failed.
struct Watched<'r, R> {
    receiver: &'r mut R,
    head_seen: bool,
}

impl<R: Receiver> Receiver for Watched<'_, R> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.head_seen = true;
        self.receiver.head(head)
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.receiver.body(bytes).await
    }
}

/// Sends a request, and reads the head of the response.
async fn ask<'c, C: Read + Write>(
    connection: &'c mut C,
    buffer: &'c mut [u8],
    host: &str,
    authorization: Option<&str>,
    request: &Request<'_, impl RequestBody>,
) -> Result<Response<'c, 'c, C>, Error> {
    send(&mut Outgoing::new(connection, buffer), host, authorization, request).await?;
    Response::read(connection, request.method, buffer).await.map_err(Error::talking)
}

/// reqwless would hold a password's encoding, which nobody has, for as long as it sends a head.
async fn send<C: Write>(
    out: &mut Outgoing<'_, C>,
    host: &str,
    authorization: Option<&str>,
    request: &Request<'_, impl RequestBody>,
) -> Result<(), Error> {
    let (method, target) = (request.method.as_str(), request.target);
    out.push(format_args!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n"))?;
    out.push(format_args!("User-Agent: {USER_AGENT}\r\nAccept: application/json\r\n"))?;
    for (name, value) in request.headers {
        out.push(format_args!("{name}: {value}\r\n"))?;
    }
    match request.body.len() {
        Some(0) if request.method == Method::GET => {}
        Some(len) => out.push(format_args!("Content-Length: {len}\r\n"))?,
        None => out.push(format_args!("Transfer-Encoding: chunked\r\n"))?,
    }
    // A token may be longer than the buffer.
    if let Some(authorization) = authorization {
        for text in ["Authorization: ", authorization, "\r\n"] {
            out.write_all(text.as_bytes()).await.map_err(Error::sending)?;
        }
    }
    out.write_all(b"\r\n").await.map_err(Error::sending)?;
    out.write_body(&request.body).await?;
    out.flush().await.map_err(Error::sending)
}

/// What the headers of a response say that matters here.
#[derive(Default)]
struct Headers<'h> {
    date: Option<&'h [u8]>,
    retry_after: Option<&'h [u8]>,
    close: bool,
}

impl<'h> Headers<'h> {
    fn of<C: Read>(response: &'h Response<'_, '_, C>) -> Self {
        let mut headers = Self::default();
        for (name, value) in response.headers() {
            if name.eq_ignore_ascii_case("date") {
                headers.date = Some(value);
            } else if name.eq_ignore_ascii_case("retry-after") {
                headers.retry_after = Some(value);
            } else if name.eq_ignore_ascii_case("connection") {
                headers.close = value.eq_ignore_ascii_case(b"close");
            }
        }
        headers
    }
}

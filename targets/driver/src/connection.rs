//! One HTTP/1.1 connection, kept alive from request to request.

use embassy_time::{Instant, with_deadline, with_timeout};
use embedded_io_async::{BufRead, Error as _, Read, Write};
use embedded_nal_async::TcpConnect;
use picokube_core::manager::ResponseHead;
use reqwless::client::HttpConnection;
use reqwless::request::{Method, RequestBody};
use reqwless::response::{BodyReader, Response};

use crate::Error;
use crate::exchange::{Observer, Patience, Receiver, Request, Server, USER_AGENT, Watched};
use crate::framing::Framing;
use crate::outgoing::Outgoing;
use crate::pause::Pause;
use crate::planted::{Bug, planted};

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
    pause: Pause,
    observer: Option<&'a dyn Observer<'a>>,
}

impl<'a, N: TcpConnect + 'a> Connection<'a, N> {
    /// A connection that is not open yet. `buffer` bounds the head of a request, but for its
    /// `Authorization`, and that of a response; not the bodies. `seed` sets the jitter of its delays.
    pub fn new(
        network: &'a N,
        server: Server<'a>,
        patience: Patience,
        buffer: &'a mut [u8],
        seed: u32,
    ) -> Self {
        Self {
            network,
            server,
            patience,
            buffer,
            open: None,
            pause: Pause::new(patience.backoff, seed),
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
        self.pause.over().await;
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
                Err(Error::Truncated | Error::Reset)
                    if is_kept && (is_get || planted(Bug::WriteRepeated)) && !watched.head_seen => {
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
            Ok(()) => self.pause.succeeded(),
            Err(error) => {
                if let (Some(observer), false) = (self.observer, answered) {
                    observer.answered(method, Err(error));
                }
                self.pause.failed();
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

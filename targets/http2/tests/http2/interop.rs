//! Against the server of the `h2` crate, which is hyper's, over a pipe in memory.

use std::collections::HashMap;
use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Response};
use picokube_http2::{
    Config, Connection, Error, ErrorCode, Event, Field, Head, Output, Refusal, Request, Reset,
    Scheme, StreamKey,
};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

use crate::client::TOKEN;

pub(crate) const STREAMS: usize = 9;
const AUTHORITY: &str = "kubernetes:6443";
const DATE: &str = "Mon, 16 Nov 2026 21:59:15 GMT";

/// What came on a stream.
#[derive(Default)]
pub(crate) struct Answer {
    head: Option<Head>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: Option<Result<(), Reset>>,
    /// What of the body its reader has not dealt with.
    pub(crate) held: usize,
}

pub(crate) struct Client {
    wire: DuplexStream,
    pub(crate) connection: Connection<STREAMS>,
    pub(crate) answers: HashMap<u32, Answer>,
    /// Whether readers take their time, and say themselves when they have dealt with something.
    pub(crate) holds: bool,
    /// How many bytes are read at a time.
    piece: usize,
    sent: usize,
    goaway: Option<ErrorCode>,
}

impl Client {
    async fn new(wire: DuplexStream, window: u32, piece: usize) -> Self {
        let mut connection = Connection::new();
        connection.open(Config { stream_window: window, ..Config::SMALL });
        let answers = HashMap::new();
        let holds = false;
        let mut client = Self { wire, connection, answers, holds, piece, sent: 0, goaway: None };
        client.until(|client| client.connection.check_ready() != Err(Refusal::NotReady)).await;
        client
    }

    /// Sends what is written.
    async fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Connection<STREAMS>, &mut Output<'_>) -> T,
    ) -> T {
        let mut buffer = [0; 2048];
        let mut out = Output::new(&mut buffer);
        let result = write(&mut self.connection, &mut out);
        self.sent += out.written().len();
        // A server that has gone is noticed when it is read from.
        let _ = self.wire.write_all(out.written()).await;
        result
    }

    /// Reads a piece; `false` if the server has gone.
    pub(crate) async fn turn(&mut self) -> Result<bool, Error> {
        self.pay().await;
        let mut bytes = vec![0; self.piece];
        // What is stuck would wait for ever.
        let read = timeout(Duration::from_secs(60), self.wire.read(&mut bytes)).await;
        let count = read.expect("a server that says something").unwrap();
        self.take(&bytes[..count])
    }

    /// Reads a piece, if the server has anything to say.
    pub(crate) async fn try_turn(&mut self) -> Result<(), Error> {
        self.pay().await;
        let mut bytes = vec![0; self.piece];
        let count = tokio::select! {
            biased;
            read = self.wire.read(&mut bytes) => read.unwrap(),
            () = others() => return Ok(()),
        };
        self.take(&bytes[..count]).map(drop)
    }

    async fn pay(&mut self) {
        while self.connection.owes() {
            self.write(|connection, out| connection.write(out)).await;
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let count = bytes.len();
        let mut input = bytes;
        while let Some(event) = self.connection.receive(&mut input)? {
            match event {
                Event::Head { stream, head } => self.answer(stream).head = Some(head),
                Event::Data { stream, bytes } => {
                    let holds = self.holds;
                    let answer = self.answers.entry(stream.id()).or_default();
                    answer.body.extend_from_slice(bytes);
                    if holds {
                        answer.held += bytes.len();
                    } else {
                        self.connection.release(stream, bytes.len());
                    }
                }
                Event::End { stream } => self.answer(stream).end = Some(Ok(())),
                Event::Reset { stream, reason } => self.answer(stream).end = Some(Err(reason)),
                Event::GoAway { code } => self.goaway = Some(code),
                Event::Ready | Event::Pong => {}
            }
        }
        Ok(count > 0)
    }

    fn answer(&mut self, stream: StreamKey) -> &mut Answer {
        self.answers.entry(stream.id()).or_default()
    }

    async fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        while !condition(self) {
            assert!(self.turn().await.unwrap(), "the server has gone");
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> StreamKey {
        let mut fields = vec![
            Field::kept("user-agent", "picokube/0.1.0"),
            Field::kept("accept", "application/json"),
            Field::secret("authorization", TOKEN),
        ];
        fields.extend(body.map(|_| Field::kept("content-type", "application/merge-patch+json")));
        let request = Request {
            method,
            scheme: Scheme::Https,
            authority: AUTHORITY,
            path,
            fields: &fields,
            has_body: body.is_some(),
        };
        let key = self.write(|connection, out| connection.request(&request, out)).await.unwrap();
        let mut rest = body.unwrap_or_default();
        while self.connection.sendable(key).is_some() {
            let sent =
                self.write(|connection, out| connection.send(key, rest, true, out)).await.unwrap();
            rest = &rest[sent.bytes..];
            if sent.bytes == 0 && !sent.is_ended {
                self.turn().await.unwrap();
            }
        }
        key
    }

    pub(crate) async fn end_of(&mut self, key: StreamKey) -> Answer {
        let is_over = |client: &Self| {
            client.answers.get(&key.id()).is_some_and(|answer| answer.end.is_some())
        };
        self.until(is_over).await;
        self.answers.remove(&key.id()).unwrap()
    }

    async fn fetch(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
        let key = self.ask(method, path, body).await;
        self.end_of(key).await
    }
}

/// Lets the server have its turn.
async fn others() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// What the server is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    table: u32,
    window: u32,
    streams: u32,
    frame: u32,
}

pub(crate) const SERVER: Server = Server { table: 4096, window: 1000, streams: 100, frame: 16_384 };

pub(crate) async fn connect(server: Server, window: u32, piece: usize) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(serve(theirs, server));
    Client::new(ours, window, piece).await
}

async fn serve(wire: DuplexStream, server: Server) {
    let mut builder = h2::server::Builder::new();
    builder
        .header_table_size(server.table)
        .initial_window_size(server.window)
        .max_concurrent_streams(server.streams)
        .max_frame_size(server.frame);
    let mut connection = builder.handshake::<_, Bytes>(wire).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let headers = request.headers();
        assert_eq!(headers["authorization"], TOKEN);
        assert_eq!(headers["user-agent"], "picokube/0.1.0");
        assert_eq!(headers["accept"], "application/json");
        assert_eq!(request.uri().authority().unwrap(), AUTHORITY);
        match request.uri().path() {
            "/bye" => connection.graceful_shutdown(),
            "/abrupt" => connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM),
            "/window" => {
                let size = request.uri().query().unwrap().parse().unwrap();
                connection.set_initial_window_size(size).unwrap();
            }
            _ => {}
        }
        tokio::spawn(answer(request, respond));
    }
}

async fn answer(request: http::Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let (parts, mut body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let number = || parts.uri.query().and_then(|query| query.parse().ok()).unwrap_or(0);
    let response = |status: u16| {
        Response::builder()
            .status(status)
            .header("date", DATE)
            .header("retry-after", "7")
            .header("content-type", "application/json")
            .header("audit-id", "0a7a4e9c-1f5e-4d5e-8f57-8d2f0c2ad7d1")
            .header("x-long", "ü".repeat(300))
            .body(())
            .unwrap()
    };
    match &*path {
        "/refuse" => return respond.send_reset(h2::Reason::REFUSED_STREAM),
        "/fail" => return respond.send_reset(h2::Reason::INTERNAL_ERROR),
        "/nothing" => return drop(respond.send_response(response(204), true).unwrap()),
        // An answer to a request whose body nobody reads.
        "/early" => {
            let mut send = respond.send_response(response(413), false).unwrap();
            send.send_data(Bytes::from_static(b"too large"), true).unwrap();
            return;
        }
        "/large-head" => {
            let mut response = response(200);
            response.headers_mut().insert("x-huge", "x".repeat(20_000).parse().unwrap());
            // h2 keeps to what we take, and does not send it.
            let _ = respond.send_response(response, true);
            return;
        }
        "/long" => {
            let send = respond.send_response(response(200), false).unwrap();
            return send_all(send, pattern(number()).into(), true).await;
        }
        "/hang" => {
            let mut send = respond.send_response(response(200), false).unwrap();
            send.send_data(Bytes::from_static(b"begin"), false).unwrap();
            // Until the client gives it up.
            let _ = poll_fn(|context| send.poll_reset(context)).await;
            return;
        }
        _ => {}
    }
    let mut all = Vec::new();
    while let Some(bytes) = body.data().await {
        let Ok(bytes) = bytes else { return };
        body.flow_control().release_capacity(bytes.len()).unwrap();
        all.extend_from_slice(&bytes);
    }
    if path == "/count" {
        all = all.len().to_string().into_bytes();
    }
    let send = respond.send_response(response(201), false).unwrap();
    send_all(send, all.into(), false).await;
}

async fn send_all(mut send: h2::SendStream<Bytes>, mut left: Bytes, has_trailers: bool) {
    while !left.is_empty() {
        send.reserve_capacity(left.len());
        let Some(Ok(room)) = poll_fn(|context| send.poll_capacity(context)).await else { return };
        send.send_data(left.split_to(room.min(left.len())), false).unwrap();
    }
    if has_trailers {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-end", "1".parse().unwrap());
        send.send_trailers(trailers).unwrap();
    } else {
        send.send_data(Bytes::new(), true).unwrap();
    }
}

pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[tokio::test]
async fn requests_are_answered_however_the_bytes_come() {
    for piece in [1, 2, 3, 7, 100, 20_000] {
        let mut client = connect(SERVER, 4096, piece).await;
        for round in 0..3 {
            let before = client.sent;
            let answer = client.fetch("GET", "/echo", None).await;
            let head = answer.head.unwrap();
            assert_eq!((head.status, answer.body.len(), answer.end), (201, 0, Some(Ok(()))));
            assert_eq!(head.date(), Some(DATE.as_bytes()));
            assert_eq!(head.retry_after(), Some(&b"7"[..]));
            assert_eq!(head.content_type(), Some(&b"application/json"[..]));
            assert!(round == 0 || client.sent - before < 60, "the token is sent once");
        }
        let body = pattern(10_000);
        let answer = client.fetch("POST", "/echo", Some(&body)).await;
        assert!(answer.body == body && answer.end == Some(Ok(())));
        let answer = client.fetch("PATCH", "/echo?x=y", Some(b"")).await;
        assert_eq!((answer.head.unwrap().status, answer.body.len()), (201, 0));
        let answer = client.fetch("DELETE", "/nothing", None).await;
        assert_eq!((answer.head.unwrap().status, answer.end), (204, Some(Ok(()))));
    }
}

#[tokio::test]
async fn a_server_may_have_any_table() {
    for table in [0, 33, 100, 200, 4096, 65_536] {
        let mut client = connect(Server { table, ..SERVER }, 4096, 1000).await;
        for method in ["GET", "PATCH", "DELETE", "GET", "PATCH", "DELETE"] {
            let body = (method == "PATCH").then_some(&b"{}"[..]);
            assert_eq!(
                client.fetch(method, "/echo", body).await.head.unwrap().status,
                201,
                "{table}"
            );
        }
    }
}

/// Every character that may be in a path goes through the Huffman code of both sides.
#[tokio::test]
async fn all_characters_come_through() {
    let mut client = connect(SERVER, 4096, 1000).await;
    for byte in (0x21..0x7f).filter(|byte| !b"#\"<>\\^`{|}".contains(byte)) {
        let path = format!("/echo?{}", char::from(byte).to_string().repeat(9));
        assert_eq!(client.fetch("GET", &path, None).await.head.unwrap().status, 201, "{path}");
    }
}

#[tokio::test]
async fn long_bodies_need_only_a_window() {
    for (window, piece) in [(500, 100), (1, 10), (4096, 4096), (65_535, 4096)] {
        let mut client = connect(SERVER, window, piece).await;
        let length = if window == 1 { 300 } else { 200_000 };
        let answer = client.fetch("GET", &format!("/long?{length}"), None).await;
        assert!(answer.body == pattern(length) && answer.end == Some(Ok(())), "{window}");
    }
    let mut client = connect(SERVER, 4096, 4096).await;
    let answer = client.fetch("POST", "/count", Some(&pattern(300_000))).await;
    assert_eq!(answer.body, b"300000");
}

#[tokio::test]
async fn streams_go_side_by_side() {
    let mut client = connect(SERVER, 2048, 1000).await;
    let mut keys = Vec::new();
    for at in 0..STREAMS {
        keys.push(client.ask("GET", &format!("/long?{}", 50_000 + at), None).await);
    }
    assert_eq!(client.connection.check_ready(), Err(Refusal::Busy));
    for (at, key) in keys.into_iter().enumerate() {
        let answer = client.end_of(key).await;
        assert!(answer.body == pattern(50_000 + at) && answer.end == Some(Ok(())));
    }
    assert_eq!(client.connection.open_streams(), 0);
}

#[tokio::test]
async fn the_servers_limit_of_streams_is_kept() {
    let mut client = connect(Server { streams: 2, ..SERVER }, 4096, 1000).await;
    let first = client.ask("GET", "/hang", None).await;
    client.ask("GET", "/hang", None).await;
    assert_eq!(client.connection.check_ready(), Err(Refusal::Busy));
    client.connection.cancel(first);
    assert_eq!(client.fetch("GET", "/echo", None).await.end, Some(Ok(())));
}

#[tokio::test]
async fn a_stream_that_is_given_up_leaves_the_others_alone() {
    let mut client = connect(SERVER, 4096, 1000).await;
    let watch = client.ask("GET", "/hang", None).await;
    for _ in 0..30 {
        let key = client.ask("GET", "/long?100000", None).await;
        let has_some =
            |client: &Client| client.answers.get(&key.id()).is_some_and(|a| a.body.len() > 5000);
        client.until(has_some).await;
        client.connection.cancel(key);
    }
    let answer = client.fetch("GET", "/long?100000", None).await;
    assert_eq!((answer.body.len(), answer.end), (100_000, Some(Ok(()))));
    assert_eq!(client.answers[&watch.id()].body, b"begin");
    assert_eq!(client.connection.open_streams(), 1);
}

#[tokio::test]
async fn resets_say_what_they_mean() {
    let mut client = connect(SERVER, 4096, 1000).await;
    let answer = client.fetch("POST", "/refuse", Some(b"")).await;
    assert_eq!(answer.end, Some(Err(Reset::Unprocessed)));
    let answer = client.fetch("POST", "/fail", Some(b"")).await;
    assert_eq!(answer.end, Some(Err(Reset::ByServer(ErrorCode::INTERNAL_ERROR))));
    // A head that is larger than we take is not sent by those who know what we take.
    let answer = client.fetch("GET", "/large-head", None).await;
    assert!(matches!(answer.end, Some(Err(_))), "{:?}", answer.end);
    // The answer counts, though the server did not read all of the request.
    let key = client.ask_without_end("/early").await;
    let answer = client.end_of(key).await;
    assert_eq!((answer.head.unwrap().status, &answer.body[..]), (413, &b"too large"[..]));
    assert_eq!(client.fetch("GET", "/echo", None).await.end, Some(Ok(())));
}

impl Client {
    /// A request whose body never ends.
    async fn ask_without_end(&mut self, path: &str) -> StreamKey {
        let fields = [
            Field::kept("user-agent", "picokube/0.1.0"),
            Field::kept("accept", "application/json"),
            Field::secret("authorization", TOKEN),
        ];
        let request = Request {
            method: "POST",
            scheme: Scheme::Https,
            authority: AUTHORITY,
            path,
            fields: &fields,
            has_body: true,
        };
        let key = self.write(|connection, out| connection.request(&request, out)).await.unwrap();
        self.write(|connection, out| connection.send(key, b"begin", false, out)).await.unwrap();
        key
    }
}

#[tokio::test]
async fn a_graceful_goaway_lets_streams_end() {
    let mut client = connect(SERVER, 4096, 1000).await;
    let long = client.ask("GET", "/long?100000", None).await;
    let bye = client.ask("GET", "/bye", None).await;
    client.until(|client| client.goaway.is_some()).await;
    assert_eq!(client.goaway, Some(ErrorCode::NO_ERROR));
    assert_eq!(client.connection.check_ready(), Err(Refusal::Leaving));
    assert_eq!(client.end_of(bye).await.end, Some(Ok(())));
    assert_eq!(client.end_of(long).await.body.len(), 100_000);
    while client.turn().await.unwrap() {}
    assert_eq!(client.connection.end_of_input(), Ok(()));
}

#[tokio::test]
async fn an_abrupt_goaway_is_noticed() {
    let mut client = connect(SERVER, 4096, 1000).await;
    client.ask("GET", "/abrupt", None).await;
    client.until(|client| client.goaway.is_some()).await;
    assert_eq!(client.goaway, Some(ErrorCode::ENHANCE_YOUR_CALM));
    while client.turn().await.unwrap() {}
    assert_eq!(client.connection.end_of_input(), Err(Error::Truncated));
}

/// The windows of streams that are open change along.
#[tokio::test]
async fn settings_change_in_the_midst_of_bodies() {
    let mut client = connect(SERVER, 4096, 1000).await;
    let key = client.ask_without_end("/count").await;
    for size in [10, 70_000, 0, 5, 3000] {
        client.fetch("GET", &format!("/window?{size}"), None).await;
    }
    let (mut left, mut rest) = (20_000, pattern(20_000));
    while left > 0 {
        let sent =
            client.write(|connection, out| connection.send(key, &rest, true, out)).await.unwrap();
        rest.drain(..sent.bytes);
        left -= sent.bytes;
        if sent.bytes == 0 {
            client.turn().await.unwrap();
        }
    }
    assert_eq!(client.end_of(key).await.body, b"20005");
}

#[derive(Clone, Debug)]
struct Exchange {
    up: usize,
    down: usize,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the windows of both sides, all bodies get through in both directions, side by side.
    #[test]
    fn nothing_is_ever_stuck(
        window in 1..3000u32,
        server_window in 1..3000u32,
        frame in 16_384..100_000u32,
        piece in 1..3000usize,
        exchanges in prop::collection::vec(
            (0..5000usize, 0..5000usize).prop_map(|(up, down)| Exchange { up, down }), 1..STREAMS),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = Server { window: server_window, frame, ..SERVER };
            let mut client = connect(server, window.max(20), piece).await;
            let mut keys = Vec::new();
            for Exchange { up, down } in &exchanges {
                let long = client.ask("GET", &format!("/long?{down}"), None).await;
                let answer = client.fetch("POST", "/echo", Some(&pattern(*up))).await;
                assert_eq!(answer.body, pattern(*up));
                keys.push((long, *down));
            }
            for (key, down) in keys {
                assert_eq!(client.end_of(key).await.body, pattern(down));
            }
        });
    }
}

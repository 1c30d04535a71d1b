//! The cases, from the ordinary to the hostile.

use core::fmt::{self, Write};
use core::pin::pin;

use embassy_futures::join::{join, join4};
use embassy_time::{Duration, with_timeout};
use embedded_nal_async::TcpConnect;
use heapless::String;
use picokube_driver::{Client, Error, Method, Request};

use crate::receivers::{Checked, Ends, Text};
use crate::{AUTHORIZATION, Clients, Failure, STREAMS, expect, failure, succeed};

macro_rules! cases {
    ($($name:ident)*) => {
        /// The names of all cases, in the order in which they make sense.
        pub const CASES: &[&str] = &[$(stringify!($name)),*];

        /// Runs the case called `name`.
        pub(crate) async fn run<N: TcpConnect>(
            name: &str,
            clients: &mut Clients<'_, N>,
        ) -> Result<(), Failure> {
            match name {
                $(stringify!($name) => $name(clients).await,)*
                _ => Err(failure(format_args!("no such case"))),
            }
        }
    };
}

cases! {
    every_method_on_one_connection
    chunked_and_fixed_answers
    four_streams_at_once_beside_requests
    a_large_request_body
    closed_port_is_refused
    unreachable_server_times_out
    mute_server_times_out
    silent_stream_is_given_up
    dripping_answer_is_given_up
    idle_close_is_hidden_from_a_get
    idle_close_is_reported_to_a_post
    connection_close_is_honoured
    streams_that_end_badly_are_opened_again
    truncated_fixed_length_answer
    server_killed_in_the_middle_of_streams
    huge_head
    not_http
    reset_during_the_request_body
}

/// Those cases that hold over HTTPS as well. The others are about what HTTP/1.1 alone has.
pub const CASES_OVER_HTTPS: &[&str] = &[
    "every_method_on_one_connection",
    "chunked_and_fixed_answers",
    "four_streams_at_once_beside_requests",
    "a_large_request_body",
    "closed_port_is_refused",
    "unreachable_server_times_out",
    "mute_server_times_out",
    "silent_stream_is_given_up",
    "dripping_answer_is_given_up",
    "idle_close_is_hidden_from_a_get",
    "idle_close_is_reported_to_a_post",
    "connection_close_is_honoured",
    "truncated_fixed_length_answer",
    "server_killed_in_the_middle_of_streams",
    "reset_during_the_request_body",
];

/// Several requests of all kinds on one connection, with bodies and headers, all of which arrive.
async fn every_method_on_one_connection<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let rounds = [
        (Method::GET, "", ""),
        (Method::POST, "application/json", r#"{"kind":"Pod"}"#),
        (Method::PUT, "application/json", r#"{"status":{"replicas":3}}"#),
        (Method::PATCH, "application/merge-patch+json", r#"{"spec":{"replicas":3}}"#),
        (Method::PATCH, "application/strategic-merge-patch+json", r#"{"spec":{}}"#),
        (Method::DELETE, "application/json", r#"{"kind":"DeleteOptions"}"#),
    ];
    for (turn, (method, content_type, body)) in rounds.into_iter().enumerate() {
        let headers = [("content-type", content_type), ("x-picokube", "first light")];
        let request =
            Request { method, target: &"/echo", headers: &headers, body: body.as_bytes() };
        let mut answer = Text::default();
        succeed(method.as_str(), requests.exchange(&request, &mut answer).await)?;
        expect("status", answer.status, 200)?;
        expect("has a Date", answer.dated, true)?;
        let mut wanted = String::<512>::new();
        let _ = write!(
            wanted,
            "{} /echo turn={} authorization={AUTHORIZATION} type={content_type} \
             x-picokube=first light body={body}",
            method.as_str(),
            turn + 1
        );
        expect("echo", answer.body, wanted)?;
    }
    Ok(())
}

/// Both framings of a response, in turn on one connection.
async fn chunked_and_fixed_answers<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    for (target, bytes) in [
        ("/stream?bytes=20000&chunk=1", 20_000),
        ("/stream?bytes=20000&fixed=1", 20_000),
        ("/stream?bytes=0", 0),
        ("/stream?bytes=0&fixed=1", 0),
        ("/stream?bytes=50000&chunk=4096", 50_000),
    ] {
        let mut seen = Checked::default();
        succeed(target, requests.exchange(&get(&target), &mut seen).await)?;
        expect(target, (seen.bytes, seen.first_wrong), (bytes, None))?;
    }
    let mut answer = Text::default();
    succeed("/turn", requests.exchange(&get(&"/turn"), &mut answer).await)?;
    expect("requests on this connection", answer.body.as_str(), "6")
}

/// Four long responses read piece by piece while requests go on over a connection of their own.
async fn four_streams_at_once_beside_requests<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    const BYTES: usize = 60_000;
    let Clients { requests, streams } = clients;
    let stream = async |stream: &mut Client<'_, N>| {
        let mut ends = Ends::new(BYTES, &["gap", "gap"]);
        follow(stream, &mut ends).await;
        (ends.whole, ends.seen.len())
    };
    let asking = async {
        for _ in 0..20 {
            succeed("GET beside streams", healthy(requests).await)?;
        }
        Ok(())
    };
    let (streamed, asked) = join(four_at_once(streams, stream), asking).await;
    asked?;
    expect("streams read whole", streamed, [(2, 2); STREAMS])
}

/// A body larger than any buffer of ours.
async fn a_large_request_body<N: TcpConnect>(clients: &mut Clients<'_, N>) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let mut answer = Text::default();
    let request = Request { method: Method::POST, target: &"/count", headers: &[], body: BODY };
    succeed("POST", requests.exchange(&request, &mut answer).await)?;
    expect("bytes that arrived", answer.body.as_str(), "16384")
}

/// Nobody listens: a typed error, and the next attempt waits for its back-off delay.
async fn closed_port_is_refused<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    for _ in 0..3 {
        expect("closed port", healthy(&mut clients.requests).await, Err(Error::Refused))?;
    }
    Ok(())
}

/// Somebody is there and takes no connection.
async fn unreachable_server_times_out<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    expect("black hole", healthy(&mut clients.requests).await, Err(Error::ConnectTimeout))
}

/// The server takes the request and never answers.
async fn mute_server_times_out<N: TcpConnect>(clients: &mut Clients<'_, N>) -> Result<(), Failure> {
    fails_then_recovers(clients, "/mute", Error::ResponseTimeout).await
}

/// The server answers in part, then stays silent with the connection open.
async fn silent_stream_is_given_up<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    fails_then_recovers(clients, "/stream?bytes=3000&chunk=700&then=stall", Error::Silence).await
}

/// The server is never silent for long and never comes to an end: a stream may be so, an answer may not.
async fn dripping_answer_is_given_up<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    for target in ["/stream?bytes=3000&chunk=700&then=drip", "/stream?bytes=3000&fixed=1&then=drip"]
    {
        let mut seen = Checked::default();
        // Only where there is no bound: twenty times as long.
        let most = Duration::from_secs(30);
        let request = get(&target);
        let exchange = requests.exchange(&request, &mut seen);
        let Ok(result) = with_timeout(most, exchange).await else {
            return Err(failure(format_args!("{target} is still being read")));
        };
        expect(target, result, Err(Error::AnswerTimeout))?;
        expect("something came", seen.bytes > 1000, true)?;
        succeed("GET afterwards", healthy(requests).await)?;
    }
    Ok(())
}

/// A kept connection that the server has closed meanwhile: a GET is sent again by itself.
async fn idle_close_is_hidden_from_a_get<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let mut answer = Text::default();
    for target in ["/turn-then-leave", "/turn"] {
        succeed(target, requests.exchange(&get(&target), &mut answer).await)?;
        expect("first request of its connection", answer.body.as_str(), "1")?;
    }
    Ok(())
}

/// The same with a POST, which the server may have acted on: the caller has to know.
async fn idle_close_is_reported_to_a_post<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let mut answer = Text::default();
    succeed("GET", requests.exchange(&get(&"/turn-then-leave"), &mut answer).await)?;
    let request = Request { method: Method::POST, ..get(&"/echo") };
    let error = requests.exchange(&request, &mut answer).await;
    if !matches!(error, Err(Error::Truncated | Error::Reset)) {
        return Err(failure(format_args!("POST on a closed connection: {error:?}")));
    }
    succeed("GET afterwards", healthy(requests).await)
}

/// `Connection: close` in a response: the next request does not try that connection.
async fn connection_close_is_honoured<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let mut answer = Text::default();
    succeed("GET", requests.exchange(&get(&"/turn-then-close"), &mut answer).await)?;
    let request = Request { method: Method::POST, ..get(&"/turn") };
    succeed("POST afterwards", requests.exchange(&request, &mut answer).await)?;
    expect("first request of its connection", answer.body.as_str(), "1")
}

/// Every way in which a server can end a stream; each time the follower comes back.
async fn streams_that_end_badly_are_opened_again<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let plan = ["end", "inside-chunk", "between-chunks", "reset", "bad-chunk", "end", "end"];
    let mut ends = Ends::new(3000, &plan);
    follow(&mut clients.requests, &mut ends).await;
    let truncated = Err(Error::Truncated);
    let reset = Err(Error::Reset);
    let malformed = Err(Error::Malformed);
    let wanted = [Ok(()), truncated, truncated, reset, malformed, Ok(()), Ok(())];
    expect("ends", ends.seen.as_slice(), &wanted[..])
}

/// Fewer bytes than `Content-Length` promised.
async fn truncated_fixed_length_answer<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let target = "/stream?bytes=3000&fixed=1&then=between-chunks";
    fails_then_recovers(clients, target, Error::Truncated).await
}

/// The server goes away with all its connections and comes back later: all streams recover.
async fn server_killed_in_the_middle_of_streams<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let Clients { requests, streams } = clients;
    let stream = async |stream: &mut Client<'_, N>| {
        let mut broken = 0;
        loop {
            // "hold" streams wait for the outage; after it they end by themselves.
            let mut ends = Ends::new(3000, &["hold"]);
            follow(stream, &mut ends).await;
            match ends.seen.as_slice() {
                [Ok(())] if broken > 0 => return (broken, ends.whole),
                [Err(_)] => broken += 1,
                other => return (other.len() + 1000, broken),
            }
        }
    };
    let killing = async {
        let mut answer = Text::default();
        // Long enough for a request to come in it, on however busy a machine.
        let target = "/outage-when-streams-are-held?streams=4&ms=3000";
        let _ = requests.exchange(&get(&target), &mut answer).await;
        let mut attempts = 0;
        while healthy(requests).await.is_err() && attempts < 100 {
            attempts += 1;
        }
        attempts
    };
    let (streamed, attempts) = join(four_at_once(streams, stream), killing).await;
    if attempts == 0 || attempts == 100 {
        return Err(failure(format_args!("requests failed {attempts} times during the outage")));
    }
    for (broken, whole) in streamed {
        if broken == 0 || broken >= 1000 || whole != 1 {
            return Err(failure(format_args!("stream broke {broken} times, then {whole} whole")));
        }
    }
    Ok(())
}

/// 100 KB of headers do not fit, and cost the connection, not the task.
async fn huge_head<N: TcpConnect>(clients: &mut Clients<'_, N>) -> Result<(), Failure> {
    fails_then_recovers(clients, "/huge-head?bytes=100000", Error::HeadTooLarge).await
}

/// Something else than HTTP listens at the address.
async fn not_http<N: TcpConnect>(clients: &mut Clients<'_, N>) -> Result<(), Failure> {
    fails_then_recovers(clients, "/not-http", Error::Malformed).await
}

/// The server resets the connection while the request is still being sent.
async fn reset_during_the_request_body<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    let target = "/reset-after?bytes=2000";
    let request = Request { method: Method::POST, target: &target, headers: &[], body: BODY };
    let result = requests.exchange(&request, &mut Text::default()).await;
    expect("POST", result, Err(Error::Reset))?;
    succeed("GET afterwards", healthy(requests).await)
}

static BODY: &[u8] = &[b'x'; 16 * 1024];

/// Runs `stream` on each of the clients at once.
///
/// Each future is pinned where it is made: an array of them, moved into a join, would go over the
/// firmware's stack twice.
async fn four_at_once<'m, 'c, N: TcpConnect, T>(
    clients: &'m mut [Client<'c, N>; STREAMS],
    stream: impl AsyncFn(&'m mut Client<'c, N>) -> T,
) -> [T; STREAMS] {
    let [a, b, c, d] = clients;
    let (a, b, c, d) = (pin!(stream(a)), pin!(stream(b)), pin!(stream(c)), pin!(stream(d)));
    let (a, b, c, d) = join4(a, b, c, d).await;
    [a, b, c, d]
}

/// Opens a stream again whenever it has ended, as often as is planned.
async fn follow<N: TcpConnect>(client: &mut Client<'_, N>, ends: &mut Ends<'_>) {
    while let Some(target) = ends.next_target() {
        let how = client.exchange(&get(&target), ends).await;
        ends.ended(how);
    }
}

fn get<'t>(target: &'t impl fmt::Display) -> Request<'t> {
    Request { method: Method::GET, target, headers: &[], body: &[] }
}

async fn healthy<N: TcpConnect>(client: &mut Client<'_, N>) -> Result<(), Error> {
    client.exchange(&get(&"/turn"), &mut Text::default()).await
}

async fn fails_then_recovers<N: TcpConnect>(
    clients: &mut Clients<'_, N>,
    target: &str,
    wanted: Error,
) -> Result<(), Failure> {
    let requests = &mut clients.requests;
    for _ in 0..2 {
        let result = requests.exchange(&get(&target), &mut Checked::default()).await;
        expect(target, result, Err(wanted))?;
        succeed("GET afterwards", healthy(requests).await)?;
    }
    Ok(())
}

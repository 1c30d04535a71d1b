//! What the driver promises over HTTPS alone: one connection whose streams cost each other nothing, and no
//! word to a server that has not proved who it is.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::Ordering;

use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer, with_timeout};
use futures_lite::future::block_on;
// The time that the driver goes by.
use picokube_clock as _;
use picokube_driver::tls::{Platform, Tls};
use picokube_driver::{
    Error, Insecure, Memory, Method, Patience, Receiver, Request, ResponseHead, Server, Session,
    Stream,
};
use picokube_first_light::pattern;
use picokube_tests::impostors::{Authority, Flaw, NAME, SECRET};
use picokube_tests::picokube::PATIENCE;
use picokube_tests::secure_peer::{Options, Peer};
use picokube_tests::sockets::Sockets;
use picokube_tls::{ANY_RECORD, Config, Identity, Ticket, Time};

/// What a test connects with.
struct Client<'a> {
    address: SocketAddr,
    config: Config<'a>,
    platform: Pc,
}

/// A PC has true random numbers, unless a test takes them away, and it is 2026.
struct Pc {
    has_entropy: bool,
}

impl Platform for Pc {
    fn entropy(&self) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
        self.has_entropy.then_some(bytes)
    }

    fn time(&self) -> Time {
        Time::AtLeast(1_767_225_600)
    }

    fn tell(&self, error: &picokube_tls::Error) {
        eprintln!("{error}");
    }
}

/// What the second stream has in hand at a time.
const IN_HAND: usize = 1024;

/// Runs a test with three streams, of which the second has more in hand, and the last has no end of its own.
fn with(client: &Client<'_>, test: impl AsyncFnOnce(&Session<'_>, [&mut Stream<'_>; 3])) {
    let Client { address, config, platform } = client;
    let (host, authorization) = (address.to_string(), format!("Bearer {SECRET}"));
    let server = Server { address: *address, host: &host, authorization: Some(&authorization) };
    let (mut memory, mut out) = (Memory::new(), [0; 2048]);
    let (mut rings, mut lent) = ([[0; 2048]; 3], [0; 3000]);
    let mut hand = [0; IN_HAND];
    let session = Session::new(server, &mut memory, &mut out, 1);
    session.lend(&mut lent);
    let patience = Patience {
        connect: Duration::from_secs(120),
        response: Duration::from_secs(120),
        ..Patience::REQUESTS
    };
    let watching = Patience { answer: None, ..patience };
    let [a, b, c] = &mut rings;
    let mut a = session.stream(a, patience, 1).unwrap();
    let mut b = session.stream(b, patience, 2).unwrap().with_hand(&mut hand);
    let mut c = session.stream(c, watching, 3).unwrap();
    let mut buffer = [0; ANY_RECORD];
    let mut tls = Tls {
        network: &Sockets,
        address: *address,
        config,
        platform,
        buffer: &mut buffer,
        ticket: &mut Ticket::new(),
    };
    let test =
        pin!(with_timeout(Duration::from_secs(600), test(&session, [&mut a, &mut b, &mut c])));
    match block_on(select(test, pin!(session.run(&mut tls)))) {
        Either::First(done) => done.expect("the test to end within ten minutes"),
        Either::Second(never) => never,
    }
}

/// Runs a test against a server that it trusts.
fn with_peer(test: impl AsyncFnOnce(&Peer, &Session<'_>, [&mut Stream<'_>; 3])) {
    let peer = Peer::start(&Options::default()).unwrap();
    let anchors = [&*peer.authority];
    let config = Config::new("peer.test", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let client = Client { address: peer.address(), config, platform: Pc { has_entropy: true } };
    with(&client, async |session, streams| test(&peer, session, streams).await);
}

/// Takes a response in, and may stop in the midst of it until it is told to go on.
#[derive(Default)]
struct Body {
    status: u16,
    bytes: Vec<u8>,
    /// The most that came at a time.
    most: usize,
    /// Waits for ever after so many bytes.
    stop_after: Option<usize>,
    is_endless: bool,
}

impl Receiver for Body {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.status = head.status;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.bytes.extend_from_slice(bytes);
        self.most = self.most.max(bytes.len());
        if self.stop_after.is_some_and(|most| self.bytes.len() >= most) {
            std::future::pending::<()>().await;
        }
        ControlFlow::Continue(())
    }

    fn is_endless(&self) -> bool {
        self.is_endless
    }
}

async fn get(stream: &mut Stream<'_>, target: &str) -> Result<String, Error> {
    let mut body = Body::default();
    let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
    stream.exchange(&request, &mut body).await?;
    Ok(String::from_utf8(body.bytes).unwrap())
}

async fn post(stream: &mut Stream<'_>, target: &str, bytes: &[u8]) -> Result<String, Error> {
    let mut body = Body::default();
    let request = Request { method: Method::POST, target: &target, headers: &[], body: bytes };
    stream.exchange(&request, &mut body).await?;
    Ok(String::from_utf8(body.bytes).unwrap())
}

/// Waits until `condition` holds.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        Timer::after_millis(2).await;
    }
}

#[test]
fn a_request_that_is_given_up_costs_the_others_nothing() {
    with_peer(async |peer, session, [a, b, c]| {
        assert_eq!(get(a, "/turn").await.unwrap(), "1");
        for n in 0..20 {
            // One before its head, one in the midst of its body.
            let (path, query) = match n % 2 {
                0 => ("/mute", ""),
                _ => ("/stream", "?bytes=9000&chunk=500&then=stall"),
            };
            let target = format!("{path}{query}");
            let before = peer.seen.requests_for(path);
            let arrived = until(|| peer.seen.requests_for(path) > before);
            let given_up = async {
                select(pin!(get(c, &target)), pin!(arrived)).await;
            };
            let (_, others) = join(given_up, post(b, "/count", &[b'x'; 5000])).await;
            assert_eq!(others.unwrap(), "5000");
        }
        until(|| peer.seen.given_up.load(Ordering::SeqCst) >= 20).await;
        assert_eq!(peer.seen.connections.load(Ordering::SeqCst), 1);
        assert_eq!((session.counts().cancelled, session.counts().connections), (20, 1));
    });
}

#[test]
fn a_time_out_costs_one_stream() {
    with_peer(async |peer, session, [a, _, c]| {
        get(a, "/turn").await.unwrap();
        assert_eq!(
            with_timeout(Duration::from_millis(300), get(c, "/mute")).await.ok(),
            None,
            "nobody answers"
        );
        get(a, "/turn").await.unwrap();
        until(|| peer.seen.given_up.load(Ordering::SeqCst) == 1).await;
        assert_eq!(session.counts().connections, 1);
    });
}

/// Who has lost the lease must not have anything go on to the server: a reset of the stream would wait
/// behind it.
#[test]
fn a_severed_connection_ends_at_once_and_another_one_follows() {
    with_peer(async |peer, session, [a, b, _]| {
        get(a, "/turn").await.unwrap();
        let sever = async {
            until(|| peer.seen.requests_for("/mute") == 1).await;
            b.sever();
        };
        let (ended, ()) = join(post(a, "/mute", b"{}"), sever).await;
        assert_eq!(ended, Err(Error::Reset));
        assert_eq!(get(b, "/turn").await.unwrap(), "1");
        assert_eq!(peer.seen.connections.load(Ordering::SeqCst), 2);
        assert_eq!(session.counts().connections, 2);
    });
}

#[test]
fn a_slow_reader_stops_nobody_else() {
    with_peer(async |_, session, [a, b, c]| {
        let target = "/stream?bytes=100000&chunk=4000";
        let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
        let mut slow = Body { stop_after: Some(1), ..Body::default() };
        let stuck = c.exchange(&request, &mut slow);
        let others = async {
            for _ in 0..2 {
                // Far more than the connection's window.
                assert_eq!(get(a, target).await.unwrap().len(), 100_000);
                assert_eq!(post(b, "/count", &[b'x'; 100_000]).await.unwrap(), "100000");
            }
        };
        assert!(matches!(select(pin!(stuck), pin!(others)).await, Either::Second(())));
        assert_eq!(session.counts().connections, 1);
        assert!(slow.bytes.len() < 4000, "no more than its window was read");
        // It can still be given up.
        get(c, "/turn").await.unwrap();
    });
}

/// What a session lends goes from one response to the next, whatever became of the last one; those that
/// get nothing of it come all the same.
#[test]
fn what_is_lent_comes_back() {
    with_peer(async |_, session, [a, b, c]| {
        let target = "/stream?bytes=30000&chunk=4000";
        let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
        let whole = |body: &Body| {
            let mut bytes = body.bytes.iter().enumerate();
            body.bytes.len() == 30_000 && bytes.all(|(at, byte)| *byte == pattern(at))
        };
        for turn in 0..12 {
            // The first one has it, and holds as much as fits, or comes to its end, or never wants it.
            let stop_after = (turn % 3 > 0).then_some(turn * 400);
            let mut first = Body { stop_after, is_endless: turn % 4 == 3, ..Body::default() };
            let (mut second, mut third) = (Body::default(), Body::default());
            let others = async {
                b.exchange(&request, &mut second).await.unwrap();
                c.exchange(&request, &mut third).await.unwrap();
            };
            match stop_after {
                None => assert_eq!(join(a.exchange(&request, &mut first), others).await.0, Ok(())),
                Some(_) => {
                    let both = select(pin!(a.exchange(&request, &mut first)), pin!(others)).await;
                    assert!(matches!(both, Either::Second(())), "the first one stops");
                }
            }
            assert!(whole(&second) && whole(&third) && (stop_after.is_some() || whole(&first)));
        }
        assert_eq!(session.counts().connections, 1);
    });
}

#[test]
fn who_has_more_in_hand_is_bothered_less_often() {
    with_peer(async |_, _, [a, b, _]| {
        let target = "/stream?bytes=100000&chunk=4000";
        let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
        let (mut little, mut more) = (Body::default(), Body::default());
        a.exchange(&request, &mut little).await.unwrap();
        b.exchange(&request, &mut more).await.unwrap();
        assert_eq!(little.bytes, more.bytes);
        assert_eq!(little.most, 256);
        assert!(more.most > little.most && more.most <= IN_HAND, "{}", more.most);
    });
}

#[test]
fn what_the_server_has_not_looked_at_is_sent_again() {
    with_peer(async |peer, session, [a, ..]| {
        assert_eq!(post(a, "/refuse?times=1", b"body").await.unwrap(), "4");
        assert_eq!(peer.seen.requests_for("/refuse"), 2);
        let error = post(a, "/refuse?times=100", b"body").await.unwrap_err();
        assert_eq!(error, Error::Unprocessed);
        assert!(error.is_without_effect());
        let error = post(a, "/give-up", b"body").await.unwrap_err();
        assert!(matches!(error, Error::GivenUp(_)) && !error.is_without_effect());
        assert_eq!(session.counts().connections, 1);
    });
}

#[test]
fn a_goaway_lets_what_is_under_way_end_and_then_there_is_a_new_connection() {
    with_peer(async |peer, session, [a, b, c]| {
        let watch = get(c, "/stream?bytes=100000&chunk=1000&then=stall");
        let requests = async {
            until(|| peer.seen.requests_for("/stream") > 0).await;
            let long = get(a, "/stream?bytes=60000&chunk=500&then=gap");
            let bye = async {
                until(|| peer.seen.requests_for("/stream") > 1).await;
                get(b, "/turn-then-close").await
            };
            let (long, bye) = join(long, bye).await;
            assert_eq!(long.unwrap().len(), 60_000);
            assert_eq!(bye.unwrap(), "3");
            // On the next connection.
            assert_eq!(get(b, "/turn").await.unwrap(), "1");
        };
        let (watch, ()) = join(watch, requests).await;
        assert_eq!(watch.unwrap_err(), Error::Leaving, "it would have had no end");
        let counts = session.counts();
        assert_eq!((counts.connections, counts.go_aways > 0), (2, true));
        assert_eq!(peer.seen.connections.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_ticket_makes_the_next_connection_cheap() {
    with_peer(async |peer, session, [a, ..]| {
        for connections in 1..4 {
            let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::SeqCst);
            assert_eq!(get(a, "/turn").await.unwrap(), "1");
            assert_eq!(count(&peer.seen.full_handshakes), 1, "the first one");
            assert_eq!(count(&peer.seen.resumed_handshakes), connections - 1);
            let counts = session.counts();
            assert_eq!(
                (counts.connections, counts.resumed),
                (connections as u32, connections as u32 - 1)
            );
            // It leaves without notice.
            let error = post(a, "/reset-after?bytes=3", b"body").await.unwrap_err();
            assert!(!error.is_without_effect(), "{error}");
        }
    });
}

#[test]
fn bytes_that_are_no_frames_end_the_connection_and_not_the_session() {
    with_peer(async |_, session, [a, b, _]| {
        get(a, "/turn").await.unwrap();
        let error = get(b, "/garbage").await.unwrap_err();
        assert!(matches!(error, Error::Http2(_)), "{error:?}");
        assert_eq!(get(a, "/turn").await.unwrap(), "1");
        assert_eq!(session.counts().connections, 2);
    });
}

#[test]
fn a_target_or_a_token_that_does_not_fit_is_an_error_and_no_hang() {
    with_peer(async |_, session, [a, ..]| {
        let long = format!("/{}", "x".repeat(3000));
        assert_eq!(get(a, &long).await, Err(Error::RequestTooLarge));
        assert_eq!(get(a, "no path").await, Err(Error::RequestMalformed));
        get(a, "/turn").await.unwrap();
        assert_eq!(session.counts().connections, 1);
    });
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_never_ended() {
    /// Announces five bytes.
    #[derive(Clone, Copy)]
    struct Wrong(&'static [u8]);

    impl reqwless::request::RequestBody for Wrong {
        fn len(&self) -> Option<usize> {
            Some(5)
        }

        async fn write<W: embedded_io_async::Write>(&self, writer: &mut W) -> Result<(), W::Error> {
            writer.write_all(self.0).await
        }
    }

    with_peer(async |peer, _, [a, ..]| {
        for bytes in [&b"four"[..], b"sixsix"] {
            let body = Wrong(bytes);
            let request = Request { method: Method::POST, target: &"/count", headers: &[], body };
            let mut answer = Body::default();
            assert_eq!(a.exchange(&request, &mut answer).await, Err(Error::BodyGone));
        }
        assert_eq!(post(a, "/count", b"five!").await.unwrap(), "5");
        assert_eq!(peer.seen.requests_for("/count"), 3, "two of them had no end");
    });
}

/// Asks a peer that is to be refused; it must not have seen a request.
fn refused(options: &Options, name: &str, trusts_it: bool, has_entropy: bool) -> Error {
    let peer = Peer::start(options).unwrap();
    let other = Peer::start(&Options::default()).unwrap();
    let anchors = [if trusts_it { &*peer.authority } else { &*other.authority }];
    let config = Config::new(name, &anchors).unwrap().with_protocol(b"h2").unwrap();
    let client = Client { address: peer.address(), config, platform: Pc { has_entropy } };
    let mut error = None;
    with(&client, async |session, [a, ..]| {
        error = get(a, "/echo").await.err();
        assert_eq!(session.trouble(), error);
        assert_eq!(session.counts().connections, 0);
    });
    assert_eq!(peer.seen.requests_for("/echo"), 0);
    let error = error.expect("an error");
    assert!(error.is_before_sending());
    error
}

#[test]
fn a_server_that_has_not_proved_itself_is_told_nothing() {
    let good = Options::default;
    for (options, name, trusts_it, why) in [
        (good(), "peer.test", false, Insecure::UnknownAuthority),
        (good(), "other.test", true, Insecure::OtherName),
        (good(), "127.0.0.1", true, Insecure::OtherName),
        (Options { until: 2021, ..good() }, "peer.test", true, Insecure::NotValidNow),
        (Options { protocols: vec![], ..good() }, "peer.test", true, Insecure::NoHttp2),
        (
            Options { protocols: vec![b"http/1.1".to_vec()], ..good() },
            "peer.test",
            true,
            Insecure::NoHttp2,
        ),
        (
            Options { asks_for_certificate: true, ..good() },
            "peer.test",
            true,
            Insecure::ClientCertificate,
        ),
    ] {
        assert_eq!(refused(&options, name, trusts_it, true), Error::Insecure(why));
    }
}

/// Of all that a server can be, one gets to see the token; what the others were told was kept.
#[test]
fn the_token_goes_to_nobody_else() {
    let authority = Authority::new().unwrap();
    let anchors = [&*authority.der];
    let config = Config::new(NAME, &anchors).unwrap().with_protocol(b"h2").unwrap();
    for flaw in Flaw::ALL.into_iter().chain([Flaw::None]) {
        let why = match flaw {
            Flaw::NoTls | Flaw::OldVersion => Some(Insecure::NoTls),
            Flaw::NoProtocol | Flaw::OldProtocol => Some(Insecure::NoHttp2),
            Flaw::OtherAuthority | Flaw::ForgedAuthority => Some(Insecure::UnknownAuthority),
            Flaw::OtherName => Some(Insecure::OtherName),
            Flaw::Expired => Some(Insecure::NotValidNow),
            Flaw::Authority
            | Flaw::SignedByLeaf
            | Flaw::ForClients
            | Flaw::MayNotSign
            | Flaw::OtherKey => Some(Insecure::BadCertificate),
            Flaw::None => None,
        };
        let (address, heard) = authority.serve(&[flaw]).unwrap();
        let client = Client { address, config: config.clone(), platform: Pc { has_entropy: true } };
        let mut error = None;
        with(&client, async |_, [a, ..]| error = get(a, "/").await.err());
        let heard = heard.recv_timeout(PATIENCE).expect("a server that was spoken to");
        match why {
            Some(why) => {
                assert_eq!(error, Some(Error::Insecure(why)), "{flaw:?}");
                heard
                    .check_that_nothing_was_told()
                    .unwrap_or_else(|error| panic!("{flaw:?}: {error}"));
            }
            // It hangs up as soon as it has heard it.
            None => assert!(heard.has_secret(), "the server did not get it: {error:?}"),
        }
    }
}

#[test]
fn without_true_randomness_nobody_is_called() {
    let error = refused(&Options::default(), "peer.test", true, false);
    assert_eq!(error, Error::Insecure(Insecure::NoEntropy));
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let peer = Peer::start(&Options { asks_for_certificate: true, ..Options::default() }).unwrap();
    let (certificate, key) = &peer.client;
    let (anchors, chain) = ([&*peer.authority], [&**certificate]);
    let identity = Identity::new(&chain, key).unwrap();
    let config = Config::new("peer.test", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let config = config.with_identity(identity);
    let client = Client { address: peer.address(), config, platform: Pc { has_entropy: true } };
    with(&client, async |session, [a, ..]| {
        assert_eq!(get(a, "/turn").await.unwrap(), "1");
        assert!(session.counts().server_certificate_expires.is_some());
    });
}

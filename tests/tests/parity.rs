//! One contract on two networks: what the driver makes of connections that are refused, split, closed,
//! reset or stalled is the same over the operating system's sockets and over the simulation's.
//!
//! Each case says what the peer does and what the driver has to make of it. It is played over the loopback
//! once, and over the simulated network with several seeds and sizes of segments, down to single bytes.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration as StdDuration;

use async_io::Async;
use embassy_futures::select::{Either, select};
use embassy_time::Duration;
use embedded_nal_async::TcpConnect;
use futures_lite::future::{block_on, poll_fn};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use picokube::sim::{Lab, LabListener, LabSocket};
use picokube_core::backoff::Policy;
use picokube_core::time::Duration as Span;
use picokube_driver::{
    Connection, Error, Method, Patience, Receiver, Request, ResponseHead, Server,
};
use picokube_tests::peer::{BlackHole, listen_again};
use picokube_tests::port::Port;
use picokube_tests::sockets::Sockets;
use socket2::SockRef;

/// What the peer does with a connection.
#[derive(Clone, Copy)]
enum Step {
    /// Waits for the head of a request.
    Head,
    /// Waits for the rest of a request of so many bytes.
    Body(usize),
    Send(&'static str),
    /// Sends something in two pieces, the first of which has so many bytes.
    Split(&'static str, usize),
    /// Sends something byte by byte.
    Bytes(&'static str),
    /// Resets the connection.
    Reset,
    /// Leaves it open, and says nothing any more.
    Stall,
}
use Step::{Body, Bytes, Head, Reset, Send, Split, Stall};

/// What the peer does.
#[derive(Clone, Copy)]
enum Act {
    /// Takes a connection, and closes it after the last step, unless that says something else.
    Accept(&'static [Step]),
    Refuse,
    Listen,
    /// Lets the client go on to the next request.
    GoOn,
    /// Waits until the client has got so many answers, or failures.
    Until(usize),
}
use Act::{Accept, GoOn, Listen, Refuse, Until};

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Answer(u16, String),
    Failed(Error),
    /// The connection ended, as far as the client can tell: whether it sees an end or a reset depends on
    /// what it does just then.
    Broken,
}

fn answer(body: &str) -> Outcome {
    Outcome::Answer(200, body.to_owned())
}

struct Case {
    acts: Vec<Act>,
    /// Requests, one after the other: the verb, and how many bytes the body has.
    asks: Vec<(Method, usize)>,
    wanted: Vec<Outcome>,
    /// Nobody answers at all.
    is_ignored: bool,
}

impl Case {
    fn new(acts: &[Act], asks: &[(Method, usize)], wanted: &[Outcome]) -> Self {
        Self {
            acts: acts.to_vec(),
            asks: asks.to_vec(),
            wanted: wanted.to_vec(),
            is_ignored: false,
        }
    }
}

const GET: (Method, usize) = (Method::GET, 0);
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

/// Generous: what waits in vain waits that long.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(3),
    response: Duration::from_secs(3),
    silence: Duration::from_secs(3),
    answer: Some(Duration::from_secs(60)),
    idle: Duration::from_secs(60),
    backoff: Policy {
        base: Span::from_millis(1),
        cap: Span::from_millis(9),
        reset: Span::from_secs(9),
    },
};

/// The peer's end of a connection. To drop it closes it in good order.
trait Peer {
    async fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn reset(self);
}

trait Listener {
    type Peer: Peer;
    async fn accept(&self) -> Self::Peer;
    fn listen(&self, listens: bool);
}

impl Peer for LabSocket {
    async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        LabSocket::read(self, room).await
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        LabSocket::write_all(self, bytes).await
    }

    fn reset(self) {
        LabSocket::reset(self);
    }
}

impl Listener for LabListener {
    type Peer = LabSocket;

    async fn accept(&self) -> LabSocket {
        LabListener::accept(self).await
    }

    fn listen(&self, listens: bool) {
        LabListener::listen(self, listens);
    }
}

impl Peer for Async<TcpStream> {
    async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        AsyncReadExt::read(self, room).await
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        AsyncWriteExt::write_all(self, bytes).await
    }

    fn reset(self) {
        let _ = SockRef::from(self.get_ref()).set_linger(Some(StdDuration::ZERO));
    }
}

/// A port of the loopback at which somebody listens, or not.
struct Door {
    port: Port,
    listener: RefCell<Option<Rc<Async<TcpListener>>>>,
}

impl Door {
    fn open() -> Self {
        let port = Port::free().expect("a port");
        let listener = Async::<TcpListener>::bind(port.address()).expect("nobody's port");
        Self { port, listener: RefCell::new(Some(Rc::new(listener))) }
    }
}

impl Listener for Door {
    type Peer = Async<TcpStream>;

    async fn accept(&self) -> Async<TcpStream> {
        let listener = self.listener.borrow().clone().expect("somebody listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.get_ref().set_nodelay(true).expect("an open connection");
        stream
    }

    fn listen(&self, listens: bool) {
        self.listener.take();
        if listens {
            let again = listen_again(self.port.address()).expect("the same port");
            *self.listener.borrow_mut() = Some(Rc::new(Async::new(again).expect("a listener")));
        }
    }
}

/// How far client and peer are.
#[derive(Default)]
struct Progress {
    may_ask: Cell<usize>,
    asked: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

impl Progress {
    fn tell(&self, counter: &Cell<usize>) {
        counter.set(counter.get() + 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until one of the two has come so far.
    async fn until(&self, counter: &Cell<usize>, least: usize) {
        poll_fn(|context| {
            if counter.get() >= least {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

async fn serve<L: Listener>(listener: &L, acts: &[Act], progress: &Progress) {
    let mut held = Vec::new();
    for act in acts {
        match act {
            Accept(steps) => {
                let peer = listener.accept().await;
                // A client that has gone ends the connection: the next act tells whether it should have.
                held.extend(talk(peer, steps).await.unwrap_or_default());
            }
            Refuse => listener.listen(false),
            Listen => listener.listen(true),
            GoOn => progress.tell(&progress.may_ask),
            Until(asked) => progress.until(&progress.asked, *asked).await,
        }
    }
    std::future::pending().await
}

/// What is left open.
async fn talk<P: Peer>(mut peer: P, steps: &[Step]) -> io::Result<Option<P>> {
    for step in steps {
        match *step {
            Head => {
                let (mut seen, mut byte) = (Vec::new(), [0]);
                while !seen.ends_with(b"\r\n\r\n") && peer.read(&mut byte).await? > 0 {
                    seen.push(byte[0]);
                }
            }
            Body(bytes) => {
                let (mut seen, mut room) = (0, [0; 4096]);
                while seen < bytes {
                    match peer.read(&mut room).await? {
                        0 => break,
                        count => seen += count,
                    }
                }
            }
            Send(text) => peer.write_all(text.as_bytes()).await?,
            Split(text, at) => {
                let (first, second) = text.as_bytes().split_at(at);
                peer.write_all(first).await?;
                peer.write_all(second).await?;
            }
            Bytes(text) => {
                for byte in text.as_bytes().chunks(1) {
                    peer.write_all(byte).await?;
                }
            }
            Reset => {
                peer.reset();
                return Ok(None);
            }
            Stall => return Ok(Some(peer)),
        }
    }
    Ok(None)
}

/// Keeps an answer.
#[derive(Default)]
struct Kept {
    status: u16,
    body: String,
}

impl Receiver for Kept {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.status = head.status;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.body.push_str(&String::from_utf8_lossy(bytes));
        ControlFlow::Continue(())
    }
}

async fn ask<N: TcpConnect>(
    network: &N,
    address: SocketAddr,
    asks: &[(Method, usize)],
    progress: &Progress,
) -> Vec<Outcome> {
    let mut buffer = [0; 512];
    let server = Server { address, host: "peer.test", authorization: Some("Bearer parity") };
    let mut connection = Connection::new(network, server, PATIENCE, &mut buffer, 1);
    let mut outcomes = Vec::new();
    for (number, (method, bytes)) in asks.iter().enumerate() {
        progress.until(&progress.may_ask, number).await;
        let body = vec![b'x'; *bytes];
        let request = Request { method: *method, target: &"/", headers: &[], body: &body[..] };
        let mut kept = Kept::default();
        outcomes.push(match connection.exchange(&request, &mut kept).await {
            Ok(()) => Outcome::Answer(kept.status, kept.body),
            Err(Error::Truncated | Error::Reset) => Outcome::Broken,
            Err(error) => Outcome::Failed(error),
        });
        progress.tell(&progress.asked);
    }
    outcomes
}

async fn play<N: TcpConnect, L: Listener>(
    network: N,
    address: SocketAddr,
    listener: L,
    case: Rc<Case>,
) -> Vec<Outcome> {
    let progress = Progress::default();
    let serving = serve(&listener, &case.acts, &progress);
    let asking = ask(&network, address, &case.asks, &progress);
    match select(asking, serving).await {
        Either::First(outcomes) => outcomes,
        Either::Second(()) => unreachable!("the peer waits for ever"),
    }
}

fn check(case: Case) {
    let case = Rc::new(case);
    let door = Door::open();
    let black_hole = BlackHole::open().expect("a port");
    let mut address = door.port.address();
    if case.is_ignored {
        address.set_port(black_hole.port);
    }
    let real = block_on(play(Sockets, address, door, case.clone()));
    assert_eq!(real, case.wanted, "over the operating system's sockets");
    for (seed, segment) in (0..12).zip([1, 2, 7, 60, 536, 1460].into_iter().cycle()) {
        let mut lab = Lab::new(seed, segment);
        let (stack, listener) = (lab.stack(), lab.listener());
        if case.is_ignored {
            listener.ignore();
        }
        let simulated = lab.run(play(stack, address, listener, case.clone()));
        assert_eq!(simulated.as_ref(), Some(&case.wanted), "seed {seed}, segments of {segment}");
    }
}

#[test]
fn nobody_listens() {
    let failed = Outcome::Failed(Error::Refused);
    check(Case::new(&[Refuse, GoOn], &[GET, GET], &[failed.clone(), failed]));
}

#[test]
fn nobody_answers() {
    let failed = Outcome::Failed(Error::ConnectTimeout);
    check(Case { is_ignored: true, ..Case::new(&[], &[GET], &[failed]) });
}

#[test]
fn requests_share_a_connection() {
    let steps: &[Step] =
        &[Head, Send(HELLO), Head, Body(9), Send(CHUNKED), Head, Bytes(HELLO), Stall];
    let asks = [GET, (Method::POST, 9), GET];
    check(Case::new(
        &[GoOn, GoOn, Accept(steps)],
        &asks,
        &[answer("hello"), answer("hello"), answer("hello")],
    ));
}

#[test]
fn answers_that_are_split_anywhere_are_whole() {
    for text in [HELLO, CHUNKED] {
        for at in 0..=text.len() {
            let steps = Box::leak(Box::new([Head, Split(text, at), Stall]));
            check(Case::new(&[Accept(steps)], &[GET], &[answer("hello")]));
        }
    }
}

#[test]
fn connections_that_end_within_an_answer_are_broken() {
    for text in [HELLO, CHUNKED] {
        for at in [1, 9, 17, text.len() - 8, text.len() - 1] {
            let part = &text[..at];
            let closed: &[Step] = Box::leak(Box::new([Head, Send(part)]));
            let reset: &[Step] = Box::leak(Box::new([Head, Send(part), Reset]));
            for steps in [closed, reset] {
                // The next request gets a connection of its own.
                let acts = [GoOn, Accept(steps), Accept(&[Head, Send(HELLO), Stall])];
                check(Case::new(&acts, &[GET, GET], &[Outcome::Broken, answer("hello")]));
            }
        }
    }
}

#[test]
fn the_end_of_a_connection_may_be_that_of_an_answer() {
    let steps: &[Step] = &[Head, Send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end")];
    check(Case::new(&[Accept(steps)], &[GET], &[answer("to the end")]));
}

#[test]
fn a_peer_that_stalls_is_given_up() {
    let acts = [GoOn, Accept(&[Head, Stall]), Accept(&[Head, Send(HELLO), Stall])];
    let failed = Outcome::Failed(Error::ResponseTimeout);
    check(Case::new(&acts, &[GET, GET], &[failed, answer("hello")]));
}

#[test]
fn a_peer_that_stalls_within_an_answer_is_given_up() {
    let part = &HELLO[..HELLO.len() - 2];
    let stalls: &[Step] = Box::leak(Box::new([Head, Send(part), Stall]));
    let acts = [GoOn, Accept(stalls), Accept(&[Head, Send(HELLO), Stall])];
    let failed = Outcome::Failed(Error::Silence);
    check(Case::new(&acts, &[GET, GET], &[failed, answer("hello")]));
}

#[test]
fn an_idle_connection_that_was_closed_is_hidden_from_a_get() {
    let answers: &[Step] = &[Head, Send(HELLO)];
    let acts = [Accept(answers), GoOn, Accept(answers)];
    check(Case::new(&acts, &[GET, GET], &[answer("hello"), answer("hello")]));
}

#[test]
fn an_idle_connection_that_was_closed_is_told_to_a_post() {
    let answers: &[Step] = &[Head, Send(HELLO)];
    let acts = [Accept(answers), GoOn, GoOn, Accept(answers)];
    let asks = [GET, (Method::POST, 3), GET];
    check(Case::new(&acts, &asks, &[answer("hello"), Outcome::Broken, answer("hello")]));
}

#[test]
fn a_reset_within_a_request_breaks_it() {
    let acts = [GoOn, Accept(&[Head, Body(1000), Reset]), Accept(&[Head, Send(HELLO), Stall])];
    let asks = [(Method::POST, 1 << 20), GET];
    check(Case::new(&acts, &asks, &[Outcome::Broken, answer("hello")]));
}

#[test]
fn a_server_that_restarts_is_there_again() {
    let answers: &[Step] = &[Head, Send(HELLO)];
    let acts = [Accept(answers), Refuse, GoOn, Until(2), Listen, GoOn, Accept(answers)];
    let failed = Outcome::Failed(Error::Refused);
    check(Case::new(&acts, &[GET; 3], &[answer("hello"), failed, answer("hello")]));
}

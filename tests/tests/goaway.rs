//! A server that greets and then asks at once to be left, again and again: it is not connected to without
//! end.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use embassy_futures::select::select;
use picokube_clock::VirtualClock;
use picokube_driver::{
    Channel, Error, Memory, Method, Patience, Receiver, Request, ResponseHead, Secure, Server,
    Session,
};

/// SETTINGS without any, and then GOAWAY: no stream was looked at, no error.
const GREETING: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const LEAVE: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const MINUTE: u64 = 60_000_000;
/// The pause doubles from a tenth of a second, or twice that, up to a quarter or half of a minute.
const MOST: u32 = 20;

/// Opens connections to such a server, and counts them.
struct Restless<'t>(&'t Cell<u32>);

/// What comes by one: a piece at a time.
struct Connection(&'static [&'static [u8]]);

impl Secure for Restless<'_> {
    type Channel<'c>
        = Connection
    where
        Self: 'c;

    async fn open(&mut self, _: &mut [u8]) -> Result<Connection, Error> {
        self.0.set(self.0.get() + 1);
        assert!(self.0.get() <= MOST, "connected {} times within a minute", self.0.get());
        Ok(Connection(&[GREETING, LEAVE]))
    }
}

impl Channel for Connection {
    const BEFORE: usize = 0;
    const BEHIND: usize = 0;

    fn poll_receive(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.0.is_empty() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn received(&self) -> &[u8] {
        self.0.first().copied().unwrap_or_default()
    }

    fn consume(&mut self, _: usize) {
        self.0 = self.0.get(1..).unwrap_or_default();
    }

    fn seal(&mut self, length: usize, _: &mut [u8]) -> Result<usize, Error> {
        Ok(length)
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn farewell(&mut self, _: &mut [u8]) -> usize {
        0
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn server_certificate_expires(&self) -> Option<u64> {
        None
    }
}

/// Whether there is something to do before time passes.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whoever asks is never answered.
struct Nobody;

impl Receiver for Nobody {
    fn head(&mut self, _: &ResponseHead) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    async fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn a_server_that_wants_to_be_left_at_once_is_given_time() {
    let opened = Cell::new(0);
    let address = "127.0.0.1:6443".parse().expect("an address");
    let server = Server { address, host: "localhost:6443", authorization: None };
    let (mut memory, mut out, mut ring) = (Memory::new(), [0; 2048], [0; 2048]);
    let session = Session::new(server, &mut memory, &mut out, 1);
    let mut stream = session.stream(&mut ring, Patience::REQUESTS, 1).expect("room for one");
    let mut secure = Restless(&opened);
    let asking = async {
        let request = Request { method: Method::GET, target: &"/", headers: &[], body: &[][..] };
        loop {
            let _ = stream.exchange(&request, &mut Nobody).await;
        }
    };
    let running = pin!(session.run(&mut secure));
    let asking = pin!(asking);
    let mut both = pin!(select(running, asking));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let (mut clock, mut now) = (VirtualClock::default(), 0);
    while now < MINUTE {
        let turn = || both.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(clock.within(now, turn).is_pending());
        if !woken.0.swap(false, Ordering::Relaxed) {
            now = clock.next_at().expect("something to wait for").max(now + 1);
            clock.wake_due(now);
        }
    }
    assert!(opened.get() > 1, "it is tried again");
}

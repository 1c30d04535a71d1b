//! The simulated network on its own, for tests that run over real sockets as well.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;

use embedded_nal_async::TcpConnect;

use super::super::clock::Moment;
use super::executor::{Executor, Spawner};
use super::net::{End, Listening, Manners, Net};
use super::streams::Stack;

/// So many turns end any test.
const MOST_TURNS: usize = 1_000_000;

/// A simulated network with one client and one server.
pub struct Lab {
    net: Net,
    executor: Executor,
}

impl Lab {
    /// A network that carries at most `segment` bytes at once.
    pub fn new(seed: u64, segment: usize) -> Self {
        let delay_micros = (200, 800);
        let net = Net::new(seed, Manners { delay_micros, segment, window: 65_536 });
        Self { net, executor: Executor::default() }
    }

    /// What the client connects by.
    pub fn stack(&self) -> impl TcpConnect + Clone + 'static {
        Stack { net: self.net.clone(), device: 0 }
    }

    /// What the server listens at.
    pub fn listener(&self) -> LabListener {
        LabListener(self.net.clone())
    }

    /// Begins a task that others wait for.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.spawner().spawn(task);
    }

    fn spawner(&self) -> Spawner {
        self.executor.spawner()
    }

    /// Lets virtual time pass until `work` is done; nothing if it waits for ever.
    pub fn run<T: 'static>(&mut self, work: impl Future<Output = T> + 'static) -> Option<T> {
        let result = Rc::new(RefCell::new(None));
        let place = result.clone();
        self.spawn(async move {
            let done = work.await;
            *place.borrow_mut() = Some(done);
        });
        let mut now = Moment::default();
        for _ in 0..MOST_TURNS {
            self.net.pass(now);
            self.executor.run(now.as_micros(), MOST_TURNS);
            if let Some(done) = result.borrow_mut().take() {
                return Some(done);
            }
            let timers = self.executor.next_at().map(Moment::from_micros);
            now = now.max(timers.into_iter().chain(self.net.next_at()).min()?);
        }
        None
    }
}

/// Accepts connections of a [`Lab`].
#[derive(Clone)]
pub struct LabListener(Net);

impl LabListener {
    /// The next connection.
    pub async fn accept(&self) -> LabSocket {
        let (number, _) = poll_fn(|context| self.0.poll_accept(context)).await;
        LabSocket { net: self.0.clone(), number }
    }

    /// Whether somebody listens from now on; else connections are refused.
    pub fn listen(&self, listens: bool) {
        self.0.listen(if listens { Listening::Yes } else { Listening::Refuses });
    }

    /// Nobody answers from now on.
    pub fn ignore(&self) {
        self.0.listen(Listening::Ignores);
    }
}

/// The server's end of a connection. Dropping it closes it in good order, if all was read.
pub struct LabSocket {
    net: Net,
    number: u64,
}

impl LabSocket {
    /// Reads what has come; nothing is the end.
    pub async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Self { net, number } = self;
        let read = poll_fn(|context| net.poll_read(*number, End::Server, context, room)).await;
        read.map_err(io::Error::from)
    }

    /// Sends all of `bytes`.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Self { net, number } = self;
        while !bytes.is_empty() {
            let sent =
                poll_fn(|context| net.poll_write(*number, End::Server, context, bytes)).await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Resets the connection.
    pub fn reset(self) {
        self.net.reset_by(self.number, End::Server);
    }
}

impl Drop for LabSocket {
    fn drop(&mut self) {
        self.net.leave(self.number, End::Server);
    }
}

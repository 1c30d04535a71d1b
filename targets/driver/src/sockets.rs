//! A fixed set of TCP sockets on embassy-net, for firmware.
//!
//! embassy-net has a [`TcpConnect`] of its own, but a connection of that kind vanishes without a
//! word to the server when it is dropped, which leaves watches open there. Here the sockets
//! outlive their connections: dropping a connection aborts it, and the stack sends the reset.

use core::cell::{RefCell, RefMut};
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll};

use embassy_net::Stack;
use embassy_net::tcp::{ConnectError, Error as TcpError, TcpSocket};
use embassy_time::Duration;
use embedded_io_async::{Error, ErrorKind, ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;

use crate::Transport;

/// How often an idle connection is probed, so that a router or a dead server is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long data or probes may stay unanswered before a connection counts as lost.
const UNANSWERED: Duration = Duration::from_secs(60);

/// `N` sockets, each serving one connection at a time.
pub struct Sockets<'d, const N: usize> {
    sockets: [RefCell<TcpSocket<'d>>; N],
}

impl<'d, const N: usize> Sockets<'d, N> {
    /// Makes the sockets, each with so much of `memory` for what comes and for what is sent. The stack's
    /// resources need room for `N` of them.
    pub fn new(stack: Stack<'d>, memory: &'d mut [u8], rx: usize, tx: usize) -> Self {
        let mut pieces = memory.chunks_exact_mut(rx + tx);
        let sockets = core::array::from_fn(|_| {
            // A socket without memory could never connect.
            let piece = pieces.next().unwrap_or_default();
            let (rx, tx) = piece.split_at_mut(rx.min(piece.len()));
            let mut socket = TcpSocket::new(stack, rx, tx);
            socket.set_keep_alive(Some(KEEP_ALIVE));
            socket.set_timeout(Some(UNANSWERED));
            // The HTTP layer writes whole requests; waiting for more would only delay them.
            socket.set_nagle_enabled(false);
            RefCell::new(socket)
        });
        Self { sockets }
    }
}

impl<const N: usize> Sockets<'_, N> {
    /// How many connections are open or being opened.
    pub fn in_use(&self) -> usize {
        self.sockets.iter().filter(|socket| socket.try_borrow().is_err()).count()
    }
}

impl<'d, const N: usize> TcpConnect for Sockets<'d, N> {
    type Error = SocketError;
    type Connection<'a>
        = SocketConnection<'a, 'd>
    where
        Self: 'a;

    async fn connect(&self, remote: SocketAddr) -> Result<Self::Connection<'_>, SocketError> {
        let SocketAddr::V4(remote) = remote else {
            return Err(SocketError::Connecting(ConnectError::NoRoute));
        };
        // A socket is free when nobody has it borrowed.
        let free = self.sockets.iter().find_map(|socket| socket.try_borrow_mut().ok());
        let mut connection = SocketConnection(free.ok_or(SocketError::AllBusy)?);
        // The reset of the previous connection may still be waiting for its turn.
        connection.0.flush().await.map_err(SocketError::Talking)?;
        connection.0.connect(remote).await.map_err(SocketError::Connecting)?;
        Ok(connection)
    }
}

/// An open connection. Dropping it resets it and frees its socket.
pub struct SocketConnection<'a, 'd>(RefMut<'a, TcpSocket<'d>>);

impl Drop for SocketConnection<'_, '_> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ErrorType for SocketConnection<'_, '_> {
    type Error = SocketError;
}

impl Read for SocketConnection<'_, '_> {
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, SocketError> {
        self.0.read(buf).await.map_err(SocketError::Talking)
    }
}

impl Write for SocketConnection<'_, '_> {
    async fn write(&mut self, buf: &[u8]) -> Result<usize, SocketError> {
        self.0.write(buf).await.map_err(SocketError::Talking)
    }

    /// Does not wait for acknowledgements: the stack sends what was written without being asked.
    async fn flush(&mut self) -> Result<(), SocketError> {
        Ok(())
    }
}

impl Transport for SocketConnection<'_, '_> {
    // Reads and writes of embassy-net's keep nothing between two polls.

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        pin!(self.read(room)).poll(context).map_err(|error| error.kind())
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        pin!(self.write(bytes)).poll(context).map_err(|error| error.kind())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()> {
        pin!(self.0.flush()).poll(context).map(|_| ())
    }
}

/// What embassy-net says, or that all sockets are in use.
#[derive(Clone, Copy, Debug)]
pub enum SocketError {
    /// Every socket of the set has a connection.
    AllBusy,
    /// The connection did not come about.
    Connecting(ConnectError),
    /// The connection broke.
    Talking(TcpError),
}

impl core::fmt::Display for SocketError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::AllBusy => f.write_str("all sockets are in use"),
            Self::Connecting(error) => write!(f, "cannot connect: {error:?}"),
            Self::Talking(error) => write!(f, "connection broke: {error:?}"),
        }
    }
}

impl core::error::Error for SocketError {}

impl Error for SocketError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::AllBusy => ErrorKind::OutOfMemory,
            Self::Connecting(ConnectError::ConnectionReset) => ErrorKind::ConnectionRefused,
            Self::Connecting(ConnectError::TimedOut) => ErrorKind::TimedOut,
            Self::Connecting(_) => ErrorKind::NotConnected,
            Self::Talking(TcpError::ConnectionReset) => ErrorKind::ConnectionReset,
        }
    }
}

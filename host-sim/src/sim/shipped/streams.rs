//! The ends of simulated connections, as the driver and as hyper want them.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use hyper::rt::ReadBufCursor;
use picokube_driver::{Channel, Error, Secure, Transport};

use super::net::{End, Net};

/// What a client connects by.
#[derive(Clone)]
pub(super) struct Stack {
    pub(super) net: Net,
    /// Who connects.
    pub(super) device: usize,
}

/// An end of a connection. It goes when it is dropped.
struct Socket {
    net: Net,
    number: u64,
    end: End,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.net.leave(self.number, self.end);
    }
}

impl Socket {
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, io::ErrorKind>> {
        self.net.poll_read(self.number, self.end, context, room)
    }

    fn poll_write(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, io::ErrorKind>> {
        self.net.poll_write(self.number, self.end, context, bytes)
    }
}

/// The client's end.
pub(super) struct ClientSocket(Socket);

impl TcpConnect for Stack {
    type Error = ErrorKind;
    type Connection<'a> = ClientSocket;

    async fn connect(&self, _: SocketAddr) -> Result<ClientSocket, ErrorKind> {
        let number = self.net.knock(self.device);
        // Whoever does not wait until it is open has it reset.
        let socket = Socket { net: self.net.clone(), number, end: End::Client };
        poll_fn(|context| self.net.poll_opened(number, context)).await?;
        Ok(ClientSocket(socket))
    }
}

impl ErrorType for ClientSocket {
    type Error = ErrorKind;
}

impl Read for ClientSocket {
    async fn read(&mut self, room: &mut [u8]) -> Result<usize, ErrorKind> {
        Ok(poll_fn(|context| self.0.poll_read(context, room)).await?)
    }
}

impl Write for ClientSocket {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        Ok(poll_fn(|context| self.0.poll_write(context, bytes)).await?)
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

impl Transport for ClientSocket {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        self.0.poll_read(context, room).map_err(ErrorKind::from)
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        self.0.poll_write(context, bytes).map_err(ErrorKind::from)
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<()> {
        self.0.net.end(self.0.number, self.0.end);
        Poll::Ready(())
    }
}

/// Opens connections for HTTP/2 without TLS: frames go as they are.
pub(super) struct Plain<'s> {
    pub(super) stack: &'s Stack,
    pub(super) address: SocketAddr,
}

impl Secure for Plain<'_> {
    type Channel<'c>
        = PlainChannel
    where
        Self: 'c;

    async fn open(&mut self, _: &mut [u8]) -> Result<PlainChannel, Error> {
        match self.stack.connect(self.address).await {
            Ok(socket) => Ok(PlainChannel { socket, received: [0; 1024], from: 0, to: 0 }),
            Err(ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) => Err(Error::Refused),
            Err(_) => Err(Error::Unreachable),
        }
    }
}

/// A connection without TLS.
pub(super) struct PlainChannel {
    socket: ClientSocket,
    received: [u8; 1024],
    from: usize,
    to: usize,
}

/// As the driver sorts failures of an open connection.
fn sort(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::ConnectionAborted => Error::Truncated,
        _ => Error::Reset,
    }
}

impl Channel for PlainChannel {
    const BEFORE: usize = 0;
    const BEHIND: usize = 0;

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.from < self.to {
            return Poll::Ready(Ok(()));
        }
        let read = ready!(Transport::poll_read(&mut self.socket, context, &mut self.received));
        (self.from, self.to) = (0, read.map_err(sort)?);
        Poll::Ready(Ok(()))
    }

    fn received(&self) -> &[u8] {
        &self.received[self.from..self.to]
    }

    fn consume(&mut self, count: usize) {
        self.from += count;
    }

    fn seal(&mut self, length: usize, _: &mut [u8]) -> Result<usize, Error> {
        Ok(length)
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        Transport::poll_write(&mut self.socket, context, bytes).map_err(sort)
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn farewell(&mut self, _: &mut [u8]) -> usize {
        0
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_finish(context)
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn server_certificate_expires(&self) -> Option<u64> {
        None
    }
}

/// The server's end.
pub(super) struct ServerSocket(Socket);

impl ServerSocket {
    pub(super) fn new(net: Net, number: u64) -> Self {
        Self(Socket { net, number, end: End::Server })
    }
}

impl hyper::rt::Read for ServerSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        let most = room.remaining().min(bytes.len());
        let count = ready!(self.0.poll_read(context, &mut bytes[..most]))?;
        room.put_slice(&bytes[..count]);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for ServerSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, bytes).map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.net.end(self.0.number, self.0.end);
        Poll::Ready(Ok(()))
    }
}

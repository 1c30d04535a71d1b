//! One HTTP/2 connection for all clients, over rustls.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use picokube_driver::{Channel, Error, Insecure, Secure};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::{Network, Stream};
use super::trouble::Trouble;

/// How much is read at a time: a record of TLS.
const READ: usize = 16 * 1024;

/// Connections of a network's, whose server proves itself and speaks HTTP/2.
pub(super) struct SecureNetwork<'n> {
    pub(super) network: &'n Network,
    pub(super) address: SocketAddr,
}

impl Secure for SecureNetwork<'_> {
    type Channel<'c>
        = SecureChannel<'c>
    where
        Self: 'c;

    async fn open(&mut self, _: &mut [u8]) -> Result<SecureChannel<'_>, Error> {
        let Self { network, address } = *self;
        let opened = network.open(address).await;
        network.tell(opened.as_ref().err().map(Trouble::of));
        match opened {
            Ok(stream) => Ok(SecureChannel::new(stream, network)),
            Err(error) => Err(network.sort(&error)),
        }
    }
}

/// An open connection.
pub(super) struct SecureChannel<'n> {
    stream: Stream,
    network: &'n Network,
    received: Box<[u8; READ]>,
    from: usize,
    to: usize,
}

impl<'n> SecureChannel<'n> {
    pub(super) fn new(stream: Stream, network: &'n Network) -> Self {
        Self { stream, network, received: Box::new([0; READ]), from: 0, to: 0 }
    }
}

impl Channel for SecureChannel<'_> {
    // rustls has memory of its own.
    const BEFORE: usize = 0;
    const BEHIND: usize = 0;

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.from < self.to {
            return Poll::Ready(Ok(()));
        }
        let mut room = ReadBuf::new(&mut self.received[..]);
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut room));
        (self.from, self.to) = (0, room.filled().len());
        Poll::Ready(read.map_err(|error| self.network.sort(&error)))
    }

    fn received(&self) -> &[u8] {
        self.received.get(self.from..self.to).unwrap_or_default()
    }

    fn consume(&mut self, count: usize) {
        self.from += count;
    }

    fn seal(&mut self, length: usize, _: &mut [u8]) -> Result<usize, Error> {
        Ok(length)
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            Ok(0) => Poll::Ready(Err(Error::Reset)),
            written => Poll::Ready(written.map_err(|error| self.network.sort(&error))),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        Poll::Ready(flushed.map_err(|error| self.network.sort(&error)))
    }

    fn farewell(&mut self, _: &mut [u8]) -> usize {
        0
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // rustls says that it was the end.
        Pin::new(&mut self.stream).poll_shutdown(context).map(|_| ())
    }

    fn is_resumed(&self) -> bool {
        self.stream.is_resumed()
    }

    fn server_certificate_expires(&self) -> Option<u64> {
        None
    }
}

/// What an error means for requests.
pub(super) fn sort(error: &io::Error) -> Error {
    match Trouble::of(error) {
        Trouble::Refused => Error::Refused,
        Trouble::UnknownAuthority => Error::Insecure(Insecure::UnknownAuthority),
        Trouble::OtherName => Error::Insecure(Insecure::OtherName),
        Trouble::Expired => Error::Insecure(Insecure::NotValidNow),
        Trouble::NoHttp2 => Error::Insecure(Insecure::NoHttp2),
        Trouble::Tls(_) => Error::Insecure(Insecure::HandshakeBroken),
        Trouble::Other(_) => match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Truncated,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Error::Reset,
            io::ErrorKind::TimedOut => Error::ConnectTimeout,
            _ => Error::Unreachable,
        },
    }
}

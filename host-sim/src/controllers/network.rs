//! TCP and TLS connections behind the driver's traits.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use embedded_io_async::{ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use picokube_driver::Error;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Endpoint;
use super::secure::sort;
use super::trouble::{NoHttp2, Trouble};

/// A watch may be silent for long: a server or router that has gone is noticed within a minute,
/// as on a board.
const KEEP_ALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(20))
    .with_interval(Duration::from_secs(20))
    .with_retries(2);

/// How much is read at a time below TLS, whose own reads are of 4 KiB: a system call each.
const READ: usize = 64 * 1024;

/// What is spoken over TLS.
pub(super) const HTTP2: &[u8] = b"h2";

/// Opens connections to one server. Says on standard error when that begins to fail, and when it
/// works again.
pub(super) struct Network {
    host: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    traffic: Arc<Traffic>,
    trouble: RefCell<Option<Trouble>>,
    /// What was wrong with the last connection, if TLS says so.
    last: RefCell<Option<Trouble>>,
}

/// What went over all connections, as it is on the wire: with what TLS adds, handshakes included.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) connections: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

impl Network {
    pub(super) fn new(endpoint: &Endpoint, traffic: Arc<Traffic>) -> Self {
        let connector = |(config, name): &(Arc<ClientConfig>, ServerName<'static>)| {
            (TlsConnector::from(Arc::clone(config)), name.clone())
        };
        Self {
            host: endpoint.host.clone(),
            tls: endpoint.tls.as_ref().map(connector),
            traffic,
            trouble: RefCell::new(None),
            last: RefCell::new(None),
        }
    }

    /// Opens a connection. An error is not told of.
    pub(super) async fn open(&self, remote: SocketAddr) -> io::Result<Stream> {
        let tcp = TcpStream::connect(remote).await?;
        // The driver writes whole requests; waiting for more would only delay them.
        tcp.set_nodelay(true)?;
        SockRef::from(&tcp).set_tcp_keepalive(&KEEP_ALIVE)?;
        // What was given up must not be sent any more: a lease may have ended.
        SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
        let tcp = Counted { tcp, traffic: Arc::clone(&self.traffic) };
        let inner = match &self.tls {
            None => Inner::Plain(tcp),
            Some((connector, name)) => {
                let tcp = BufReader::with_capacity(READ, tcp);
                let stream = connector.connect(name.clone(), tcp).await?;
                if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
                    return Err(io::Error::other(NoHttp2));
                }
                Inner::Encrypted(Box::new(stream))
            }
        };
        self.traffic.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Stream { inner })
    }

    /// What an error means for requests.
    pub(super) fn sort(&self, error: &io::Error) -> Error {
        let trouble = Trouble::of(error);
        if trouble.is_lasting() {
            *self.last.borrow_mut() = Some(trouble);
        }
        sort(error)
    }

    /// What was wrong with the last connection, if TLS said so.
    pub(super) fn last_trouble(&self) -> Option<Trouble> {
        self.last.borrow().clone()
    }

    pub(super) fn tell(&self, trouble: Option<Trouble>) {
        let mut known = self.trouble.borrow_mut();
        if *known == trouble {
            return;
        }
        match &trouble {
            Some(trouble) => eprintln!("picokube: {}: {trouble}; trying again", self.host),
            None => eprintln!("picokube: {}: reachable again", self.host),
        }
        *known = trouble;
    }
}

impl TcpConnect for Network {
    type Error = io::Error;
    type Connection<'a> = Stream;

    async fn connect(&self, remote: SocketAddr) -> io::Result<Stream> {
        let opened = self.open(remote).await;
        self.tell(opened.as_ref().err().map(Trouble::of));
        opened
    }
}

/// An open connection.
pub(super) struct Stream {
    inner: Inner,
}

enum Inner {
    Plain(Counted),
    Encrypted(Box<TlsStream<BufReader<Counted>>>),
}

/// A connection whose bytes are counted.
struct Counted {
    tcp: TcpStream,
    traffic: Arc<Traffic>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(context, room))?;
        let length = room.filled().len() - before;
        self.traffic.received.fetch_add(length as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.tcp).poll_write(context, bytes))?;
        self.traffic.sent.fetch_add(length as u64, Ordering::Relaxed);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

impl Stream {
    /// Whether a ticket has spared the server to prove itself anew.
    pub(super) fn is_resumed(&self) -> bool {
        match &self.inner {
            Inner::Plain(_) => false,
            Inner::Encrypted(stream) => {
                stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed)
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_read(context, room),
            Inner::Encrypted(stream) => Pin::new(stream).poll_read(context, room),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Inner::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_flush(context),
            Inner::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Inner::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl ErrorType for Stream {
    type Error = io::Error;
}

impl Read for Stream {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        AsyncReadExt::read(self, buffer).await
    }
}

impl Write for Stream {
    async fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        AsyncWriteExt::write(self, buffer).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        AsyncWriteExt::flush(self).await
    }
}

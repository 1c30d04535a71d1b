//! TCP and TLS connections behind the driver's traits.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use embedded_io_async::{ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Endpoint;
use super::trouble::Trouble;

/// A watch may be silent for long: a server or router that has gone is noticed within a minute,
/// as on a board.
const KEEP_ALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(20))
    .with_interval(Duration::from_secs(20))
    .with_retries(2);

/// Opens connections to one server. Says on standard error when that begins to fail, and when it
/// works again.
pub(super) struct Network {
    host: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    traffic: Arc<Traffic>,
    trouble: RefCell<Option<Trouble>>,
}

/// What went over all connections, before encryption.
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
        }
    }

    /// Opens a connection. An error is not told of.
    pub(super) async fn open(&self, remote: SocketAddr) -> io::Result<Stream> {
        let tcp = TcpStream::connect(remote).await?;
        // The driver writes whole requests; waiting for more would only delay them.
        tcp.set_nodelay(true)?;
        SockRef::from(&tcp).set_tcp_keepalive(&KEEP_ALIVE)?;
        let inner = match &self.tls {
            None => Inner::Plain(tcp),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), tcp).await?;
                Inner::Encrypted(Box::new(stream))
            }
        };
        self.traffic.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Stream { inner, traffic: Arc::clone(&self.traffic) })
    }

    fn tell(&self, trouble: Option<Trouble>) {
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
    traffic: Arc<Traffic>,
}

enum Inner {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl ErrorType for Stream {
    type Error = io::Error;
}

impl Read for Stream {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = match &mut self.inner {
            Inner::Plain(stream) => stream.read(buffer).await,
            Inner::Encrypted(stream) => stream.read(buffer).await,
        }?;
        self.traffic.received.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl Write for Stream {
    async fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let length = match &mut self.inner {
            Inner::Plain(stream) => stream.write(buffer).await,
            Inner::Encrypted(stream) => stream.write(buffer).await,
        }?;
        self.traffic.sent.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }

    async fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Inner::Plain(stream) => stream.flush().await,
            Inner::Encrypted(stream) => stream.flush().await,
        }
    }
}

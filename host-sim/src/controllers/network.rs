//! TCP and TLS connections behind the driver's traits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use embedded_io_async::{ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Endpoint;

/// Opens connections to one server.
pub(super) struct Network {
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Network {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let connector = |(config, name): &(Arc<ClientConfig>, ServerName<'static>)| {
            (TlsConnector::from(Arc::clone(config)), name.clone())
        };
        Self { tls: endpoint.tls.as_ref().map(connector) }
    }
}

impl TcpConnect for Network {
    type Error = io::Error;
    type Connection<'a> = Stream;

    async fn connect(&self, remote: SocketAddr) -> io::Result<Stream> {
        let tcp = TcpStream::connect(remote).await?;
        // The driver writes whole requests; waiting for more would only delay them.
        tcp.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Stream::Plain(tcp)),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), tcp).await?;
                Ok(Stream::Encrypted(Box::new(stream)))
            }
        }
    }
}

/// An open connection.
pub(super) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl ErrorType for Stream {
    type Error = io::Error;
}

impl Read for Stream {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer).await,
            Self::Encrypted(stream) => stream.read(buffer).await,
        }
    }
}

impl Write for Stream {
    async fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer).await,
            Self::Encrypted(stream) => stream.write(buffer).await,
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush().await,
            Self::Encrypted(stream) => stream.flush().await,
        }
    }
}

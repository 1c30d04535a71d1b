//! What an HTTP/2 session runs over: a connection that leads to the server, and to nobody else.

use core::fmt;
use core::task::{Context, Poll};

use embedded_io_async::ErrorKind;

use crate::Error;

/// A stream of bytes that one task reads and writes by turns, waiting for both at once.
pub trait Transport {
    /// Takes what has come, as much as fits; nothing is the end.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>>;

    /// Sends some of `bytes`: how many.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>>;

    /// Waits until all of that has left, so that the transport can be dropped.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

/// Opens connections to the server.
#[expect(async_fn_in_trait, reason = "the futures stay on one executor, so none need be Send")]
pub trait Secure {
    /// An open connection.
    type Channel<'c>: Channel
    where
        Self: 'c;

    /// Opens a connection, and lets the server prove who it is and that it speaks HTTP/2. `out` is memory
    /// to work with.
    ///
    /// No request is ever sent before this has succeeded: nobody else gets to see the token.
    async fn open(&mut self, out: &mut [u8]) -> Result<Self::Channel<'_>, Error>;
}

/// A connection to a server that has proved who it is.
pub trait Channel {
    /// What protection adds before what is sent at once.
    const BEFORE: usize;
    /// What it adds behind.
    const BEHIND: usize;

    /// Waits until something has been [received](Self::received), or the connection has ended.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// What has come and was not consumed; after [`poll_receive`](Self::poll_receive), nothing is the end.
    fn received(&self) -> &[u8];

    /// So much of it has been dealt with.
    fn consume(&mut self, count: usize);

    /// Protects `length` bytes, which stand [`BEFORE`](Self::BEFORE) bytes into `out`: how many bytes of
    /// `out` are to be sent.
    fn seal(&mut self, length: usize, out: &mut [u8]) -> Result<usize, Error>;

    /// Sends some of what was sealed: how many bytes.
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>>;

    /// Waits until all that was handed to it is under way, and what it owes to the server itself. To be
    /// called before the next [`seal`](Self::seal).
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// What the server is to be told before the connection is closed: how many bytes of `out`.
    fn farewell(&mut self, out: &mut [u8]) -> usize;

    /// Waits until all that was sent has left, so that the connection can be dropped.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Whether a ticket has spared the server to prove itself anew.
    fn is_resumed(&self) -> bool;

    /// When the certificate is over by which the server has proved itself, in seconds since 1970, if that is
    /// known.
    fn server_certificate_expires(&self) -> Option<u64>;
}

/// Why there is no secure connection, sorted by what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insecure {
    /// The server's certificate is not from an authority that is configured.
    UnknownAuthority,
    /// The server's certificate is for other names.
    OtherName,
    /// The server's certificate is over, or has not begun.
    NotValidNow,
    /// There is something else about the server's certificate.
    BadCertificate,
    /// The server does not accept our certificate, or wants one and there is none.
    ClientCertificate,
    /// The server does not speak HTTP/2.
    NoHttp2,
    /// The server does not speak TLS 1.3, or none of our ciphers, or is no TLS server at all.
    NoTls,
    /// What the server sends at once does not fit the buffer for it.
    BufferTooSmall,
    /// The handshake was cut or changed on its way.
    HandshakeBroken,
    /// The board has no true random numbers, without which there are no keys.
    NoEntropy,
    /// What is configured (authorities, name, certificate, key) cannot be used.
    Configuration,
}

/// Tells of each in a sentence that says what to do: as text, and in a device's log, where it takes no
/// flash.
macro_rules! sentences {
    ($($variant:ident => $sentence:literal,)*) => {
        impl fmt::Display for Insecure {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $sentence,)* })
            }
        }

        #[cfg(feature = "defmt")]
        impl defmt::Format for Insecure {
            fn format(&self, f: defmt::Formatter<'_>) {
                match self { $(Self::$variant => defmt::write!(f, $sentence),)* }
            }
        }
    };
}

sentences! {
    UnknownAuthority =>
        "the server's certificate is not from a configured authority: configure that of the cluster",
    OtherName =>
        "the server's certificate is for other names: configure one of them, or have the certificate \
         name this one",
    NotValidNow => "the server's certificate is over or has not begun: renew it",
    BadCertificate => "the server's certificate is not acceptable",
    ClientCertificate =>
        "the server does not accept the client certificate, or wants one: configure one that its \
         authority has issued and that is not over",
    NoHttp2 => "the server does not speak HTTP/2: enable it there (ALPN h2)",
    NoTls => "the server does not speak TLS 1.3 with a cipher of ours: is this its HTTPS port?",
    BufferTooSmall => "the server sends larger TLS records than this device takes",
    HandshakeBroken => "the connection broke before the server had proved who it is",
    NoEntropy => "this board has no true random numbers: TLS cannot be spoken",
    Configuration => "the configured name, authorities, certificate or key cannot be used",
}

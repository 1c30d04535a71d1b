//! HTTPS on a microcontroller: picokube-tls over any TCP stack.

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::{Context, Poll, ready};

use embassy_futures::yield_now;
use embassy_time::{Duration, Instant, with_timeout};
use embedded_io_async::Error as _;
use embedded_nal_async::TcpConnect;
use picokube_tls as tls;
use picokube_tls::{Config, Handshake, Refusal, Seed, Step, Ticket, Time};

use crate::Error;
use crate::secure::{Channel, Insecure, Secure, Transport};

/// What TLS itself owes to the server: 32 bytes at most, says [`tls::Connection::poll`].
const OWED: usize = 32;
/// How long a server that is refused may take to hear why.
const FAREWELL: Duration = Duration::from_secs(1);

/// What TLS has to know of the device.
pub trait Platform {
    /// 32 bytes of true randomness, others each time.
    fn entropy(&self) -> Option<[u8; 32]>;
    /// What is known of the time.
    fn time(&self) -> Time;
    /// The server was refused, or a connection broke: for the log, which has room for the whole story.
    fn tell(&self, error: &tls::Error);
}

/// Connections by TLS 1.3 to one server.
pub struct Tls<'a, N: TcpConnect + 'a> {
    /// The TCP stack.
    pub network: &'a N,
    /// Where the server listens.
    pub address: SocketAddr,
    /// Whom to trust, and as whom to come. Its protocol has to be `h2`.
    pub config: &'a Config<'a>,
    /// The device.
    pub platform: &'a dyn Platform,
    /// For what the server sends: [`tls::ANY_RECORD`] bytes are enough for every server.
    pub buffer: &'a mut [u8],
    /// What makes the next handshake cheap.
    pub ticket: &'a mut Ticket,
}

impl<'a, N: TcpConnect + 'a> Secure for Tls<'a, N>
where
    N::Connection<'a>: Transport,
{
    type Channel<'c>
        = TlsChannel<'c, N::Connection<'a>>
    where
        Self: 'c;

    async fn open(&mut self, out: &mut [u8]) -> Result<Self::Channel<'_>, Error> {
        let Self { network, address, config, platform, buffer, ticket } = self;
        // Without it, nobody is bothered.
        let seed = platform.entropy().and_then(|bytes| Seed::new(bytes).ok());
        let seed = seed.ok_or(Error::Insecure(Insecure::NoEntropy))?;
        let connected = network.connect(*address).await;
        let mut transport = connected.map_err(|error| Error::connecting(error.kind()))?;
        let mut place = None;
        let shaken = match begin(&mut place, config, seed, platform.time(), buffer, ticket) {
            Ok(handshake) => shake_hands(handshake, &mut transport, out).await,
            Err(error) => Err(Failure::Tls(error)),
        };
        match shaken.and_then(|()| finish(&mut place).map_err(Failure::Tls)) {
            Ok(connection) => Ok(TlsChannel {
                transport,
                connection,
                ticket,
                platform: *platform,
                owed: [0; OWED],
                owed_from: 0,
                owed_to: 0,
            }),
            Err(Failure::Transport) => Err(Error::Insecure(Insecure::HandshakeBroken)),
            Err(Failure::Tls(error)) => {
                // It may be the ticket's fault.
                ticket.clear();
                platform.tell(&error);
                Err(Error::Insecure(insecure(&error)))
            }
        }
    }
}

/// Why a handshake has failed.
enum Failure {
    Transport,
    Tls(tls::Error),
}

// A handshake is large, and what is moved goes over the stack, of which it needs a lot itself: so it is made
// and consumed where nothing else is, and lies still in between.

#[inline(never)]
fn begin<'p, 'c, 'b>(
    place: &'p mut Option<Handshake<'c, 'b>>,
    config: &'c Config<'c>,
    seed: Seed,
    time: Time,
    buffer: &'b mut [u8],
    ticket: &'c Ticket,
) -> Result<&'p mut Handshake<'c, 'b>, tls::Error> {
    let handshake = place.insert(Handshake::new(config, seed, time, buffer)?);
    handshake.resume(ticket, Instant::now().as_millis());
    Ok(handshake)
}

#[inline(never)]
fn finish<'b>(place: &mut Option<Handshake<'_, 'b>>) -> Result<tls::Connection<'b>, tls::Error> {
    place.take().ok_or(tls::Error::NotConnected)?.finish()
}

/// Lets the server prove who it is.
async fn shake_hands(
    handshake: &mut Handshake<'_, '_>,
    transport: &mut impl Transport,
    out: &mut [u8],
) -> Result<(), Failure> {
    loop {
        match handshake.step(out) {
            Ok(Step::Send(count)) => send(transport, out, count).await?,
            Ok(Step::Receive) => {
                let read = poll_fn(|context| transport.poll_read(context, handshake.space()));
                match read.await {
                    Ok(0) => handshake.ended(),
                    Ok(count) => handshake.received(count),
                    Err(_) => return Err(Failure::Transport),
                }
            }
            // A step may take some tenths of a second: others have their turn in between.
            Ok(Step::Working) => yield_now().await,
            Ok(Step::Done) => return Ok(()),
            Err(error) => {
                if let Some(count) = handshake.farewell(out) {
                    let told = async {
                        let _ = send(transport, out, count).await;
                        poll_fn(|context| transport.poll_finish(context)).await;
                    };
                    let _ = with_timeout(FAREWELL, told).await;
                }
                return Err(Failure::Tls(error));
            }
        }
    }
}

async fn send(transport: &mut impl Transport, out: &[u8], count: usize) -> Result<(), Failure> {
    let mut bytes = out.get(..count).unwrap_or_default();
    while !bytes.is_empty() {
        let sent = poll_fn(|context| transport.poll_write(context, bytes)).await;
        match sent {
            Ok(0) | Err(_) => return Err(Failure::Transport),
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// A connection to a server that has proved who it is.
pub struct TlsChannel<'c, T> {
    transport: T,
    connection: tls::Connection<'c>,
    ticket: &'c mut Ticket,
    platform: &'c dyn Platform,
    /// What TLS itself owes, from here to there.
    owed: [u8; OWED],
    owed_from: usize,
    owed_to: usize,
}

impl<T: Transport> TlsChannel<'_, T> {
    fn poll_received(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            // What is owed is sent before more is read that may ask for more.
            if self.owed_from < self.owed_to {
                return Poll::Pending;
            }
            match self.connection.poll(&mut self.owed) {
                Ok(tls::Event::Send(count)) => {
                    (self.owed_from, self.owed_to) = (0, count);
                    // The next turn begins with sending.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ok(tls::Event::Receive) => {
                    let space = self.connection.space();
                    match ready!(self.transport.poll_read(context, space)) {
                        Ok(0) => self.connection.ended(),
                        Ok(count) => self.connection.received(count),
                        Err(kind) => return Poll::Ready(Err(Error::transport(kind))),
                    }
                }
                Ok(tls::Event::Ticket) => {
                    self.connection.keep_ticket(self.ticket, Instant::now().as_millis());
                }
                Ok(tls::Event::Data | tls::Event::Closed) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(self.failed(&error))),
            }
        }
    }

    fn failed(&self, error: &tls::Error) -> Error {
        if let tls::Error::Truncated = error {
            return Error::Truncated;
        }
        self.platform.tell(error);
        match insecure(error) {
            why @ (Insecure::ClientCertificate | Insecure::BufferTooSmall) => Error::Insecure(why),
            _ => Error::Tampered,
        }
    }
}

impl<T: Transport> Channel for TlsChannel<'_, T> {
    const BEFORE: usize = tls::RECORD_HEADER;
    const BEHIND: usize = tls::OVERHEAD - tls::RECORD_HEADER;

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_received(context)
    }

    fn received(&self) -> &[u8] {
        self.connection.data()
    }

    fn consume(&mut self, count: usize) {
        self.connection.consume(count);
    }

    fn seal(&mut self, length: usize, out: &mut [u8]) -> Result<usize, Error> {
        self.connection.seal_in_place(length, out).map_err(|error| self.failed(&error))
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        match ready!(self.transport.poll_write(context, bytes)) {
            Ok(0) => Poll::Ready(Err(Error::Reset)),
            sent => Poll::Ready(sent.map_err(Error::transport)),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while let Some(bytes @ [_, ..]) = self.owed.get(self.owed_from..self.owed_to) {
            match ready!(self.transport.poll_write(context, bytes)) {
                Ok(0) => return Poll::Ready(Err(Error::Reset)),
                Ok(sent) => self.owed_from += sent,
                Err(kind) => return Poll::Ready(Err(Error::transport(kind))),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn farewell(&mut self, out: &mut [u8]) -> usize {
        self.connection.close(out).unwrap_or(0)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.transport.poll_finish(context)
    }

    fn is_resumed(&self) -> bool {
        self.connection.is_resumed()
    }

    fn server_certificate_expires(&self) -> Option<u64> {
        Some(self.connection.server_certificate_expires())
    }
}

/// Sorts what TLS says by what is to be done about it.
fn insecure(error: &tls::Error) -> Insecure {
    use tls::Alert;
    match error {
        tls::Error::Certificate(refusal) => match refusal {
            Refusal::Name { .. } => Insecure::OtherName,
            Refusal::Expired { .. } | Refusal::NotYetValid { .. } => Insecure::NotValidNow,
            Refusal::UnknownIssuer | Refusal::Signature => Insecure::UnknownAuthority,
            _ => Insecure::BadCertificate,
        },
        tls::Error::NotTheKey => Insecure::BadCertificate,
        tls::Error::NoApplicationProtocol | tls::Error::Alert(Alert::NO_APPLICATION_PROTOCOL) => {
            Insecure::NoHttp2
        }
        tls::Error::Alert(
            Alert::CERTIFICATE_REQUIRED
            | Alert::UNKNOWN_CA
            | Alert::CERTIFICATE_EXPIRED
            | Alert::BAD_CERTIFICATE
            | Alert::UNSUPPORTED_CERTIFICATE
            | Alert::CERTIFICATE_UNKNOWN,
        ) => Insecure::ClientCertificate,
        tls::Error::OldVersion
        | tls::Error::Downgrade
        | tls::Error::Violation(_)
        | tls::Error::Alert(_) => Insecure::NoTls,
        tls::Error::BufferTooSmall { .. } | tls::Error::OutputTooSmall { .. } => {
            Insecure::BufferTooSmall
        }
        _ => Insecure::HandshakeBroken,
    }
}

//! What the tests share: certificates, servers, and somebody who carries bytes between client and server.

pub(crate) mod authority;

use picokube_tls::{Config, Connection, Error, Event, Handshake, Seed, Step, Ticket, Time};

/// What nobody may get who has not proved who it is.
pub(crate) const TOKEN: &[u8] = b"Bearer of the application's secret";

/// 2026-01-01; certificates of tests are good then.
pub(crate) const NOW: u64 = 1_767_225_600;

/// A server, or what plays one.
pub(crate) trait Peer {
    /// Takes what the client has sent.
    fn take(&mut self, bytes: &[u8]);
    /// Puts what the client is to get into `space`: how much that is. Nothing means that the transport has
    /// ended.
    fn give(&mut self, space: &mut [u8]) -> usize;
}

/// How to connect.
pub(crate) struct Options<'a> {
    pub(crate) config: &'a Config<'a>,
    pub(crate) seed: u8,
    pub(crate) time: Time,
    pub(crate) ticket: Option<(&'a Ticket, u64)>,
    /// How many bytes to send at a time.
    pub(crate) out: usize,
}

impl<'a> Options<'a> {
    pub(crate) fn new(config: &'a Config<'a>) -> Self {
        Self { config, seed: 1, time: Time::Exactly(NOW), ticket: None, out: 4096 }
    }
}

pub(crate) fn seed(number: u8) -> Seed {
    Seed::new(core::array::from_fn(|index| (index as u8).wrapping_mul(7) ^ number)).unwrap()
}

/// Shakes hands.
pub(crate) fn connect<'b>(
    options: &Options<'_>,
    peer: &mut dyn Peer,
    buffer: &'b mut [u8],
) -> Result<Connection<'b>, Error> {
    let mut handshake = Handshake::new(options.config, seed(options.seed), options.time, buffer)?;
    if let Some((ticket, now)) = options.ticket {
        handshake.resume(ticket, now);
    }
    let mut out = vec![0; options.out];
    loop {
        match handshake.step(&mut out) {
            Ok(Step::Send(count)) => peer.take(&out[..count]),
            Ok(Step::Receive) => match peer.give(handshake.space()) {
                0 => handshake.ended(),
                count => handshake.received(count),
            },
            Ok(Step::Working) => {}
            Ok(Step::Done) => return handshake.finish(),
            Err(error) => {
                assert_eq!(handshake.step(&mut out), Err(error), "a failure stays");
                if let Some(count) = handshake.farewell(&mut out) {
                    peer.take(&out[..count]);
                }
                assert_eq!(handshake.farewell(&mut out), None, "it is said once");
                return Err(error);
            }
        }
    }
}

/// Sends all of `data`.
pub(crate) fn send(connection: &mut Connection<'_>, peer: &mut dyn Peer, mut data: &[u8]) {
    let mut out = vec![0; 20_000];
    while !data.is_empty() {
        let (taken, count) = connection.seal(data, &mut out).unwrap();
        peer.take(&out[..count]);
        data = &data[taken..];
    }
}

/// What came until nothing more is there to come, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) data: Vec<u8>,
    pub(crate) tickets: usize,
    pub(crate) end: Option<Result<(), Error>>,
}

/// Reads until there is nothing to read at the moment, or no more.
pub(crate) fn read(
    connection: &mut Connection<'_>,
    peer: &mut dyn Peer,
    kept: &mut Ticket,
    now: u64,
) -> Read {
    let mut out = [0; 64];
    let mut read = Read::default();
    loop {
        match connection.poll(&mut out) {
            Ok(Event::Send(count)) => peer.take(&out[..count]),
            Ok(Event::Receive) => match peer.give(connection.space()) {
                0 => return read,
                count => connection.received(count),
            },
            Ok(Event::Data) => {
                let data = connection.data();
                // Piece by piece, to see that what is left stays.
                let count = data.len().div_ceil(2);
                read.data.extend(&data[..count]);
                connection.consume(count);
            }
            Ok(Event::Ticket) => {
                connection.keep_ticket(kept, now);
                read.tickets += 1;
            }
            Ok(Event::Closed) => {
                read.end = Some(Ok(()));
                return read;
            }
            Err(error) => {
                read.end = Some(Err(error));
                if let Some(count) = connection.close(&mut out) {
                    peer.take(&out[..count]);
                }
                return read;
            }
        }
    }
}

/// Connects, and sends the token if that succeeds.
pub(crate) fn attempt(options: &Options<'_>, peer: &mut dyn Peer) -> Result<(), Error> {
    let mut buffer = vec![0; picokube_tls::ANY_RECORD];
    let mut connection = connect(options, peer, &mut buffer)?;
    send(&mut connection, peer, TOKEN);
    Ok(())
}

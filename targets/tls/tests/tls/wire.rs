//! What comes over the wire may come in any pieces, end anywhere and be changed anywhere.

use std::sync::LazyLock;

use picokube_tls::{ANY_RECORD, Config, Error, Handshake, Step, Ticket, Time};
use proptest::prelude::*;

use crate::puppet::{AES, CHACHA20, Puppet, Script, message};
use crate::support::authority::{Issued, authority};
use crate::support::{NOW, Options, Peer, Read, connect, read, seed, send};

/// Everything that a server has sent in a connection, to be sent again to the same client.
struct Recording {
    authority: Issued,
    bytes: Vec<u8>,
    /// How much of it is the handshake.
    handshake: usize,
}

/// Passes on to a puppet, and records what it sends.
struct Recorder<'a> {
    puppet: Puppet<'a>,
    bytes: Vec<u8>,
}

impl Peer for Recorder<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.puppet.take(bytes);
    }

    fn give(&mut self, space: &mut [u8]) -> usize {
        let count = self.puppet.give(space);
        self.bytes.extend(&space[..count]);
        count
    }
}

/// Sends a recording in pieces, and forgets what it gets.
struct Replay<'a> {
    bytes: &'a [u8],
    pieces: Box<dyn Iterator<Item = usize> + 'a>,
    sent: usize,
}

impl Peer for Replay<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.sent += bytes.len();
    }

    fn give(&mut self, space: &mut [u8]) -> usize {
        let piece = self.pieces.next().unwrap_or(1).max(1);
        let count = space.len().min(self.bytes.len()).min(piece);
        let (now, later) = self.bytes.split_at(count);
        space[..count].copy_from_slice(now);
        self.bytes = later;
        count
    }
}

fn record(suite: u16, is_coalesced: bool) -> Recording {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let script = Script { suite, is_coalesced, ..Script::honest(&issued) };
    let mut recorder = Recorder { puppet: Puppet::new(script), bytes: Vec::new() };
    let handshake = with_config(&authority, |config| {
        let mut buffer = vec![0; ANY_RECORD];
        let mut connection = connect(&Options::new(config), &mut recorder, &mut buffer).unwrap();
        let handshake = recorder.bytes.len();
        let ticket = [&[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8][..], &[5; 8], &[0, 0]].concat();
        recorder.puppet.send(22, &message(4, &ticket));
        recorder.puppet.send(23, b"hello");
        recorder.puppet.send(22, &[24, 0, 0, 1, 1]);
        recorder.puppet.change_key();
        recorder.puppet.send(23, b", world");
        recorder.puppet.send(21, &[1, 0]);
        assert_eq!(
            read(&mut connection, &mut recorder, &mut Ticket::new(), 0).data,
            b"hello, world"
        );
        handshake
    });
    Recording { authority, bytes: recorder.bytes, handshake }
}

static RECORDINGS: LazyLock<[Recording; 2]> =
    LazyLock::new(|| [record(CHACHA20, true), record(AES, false)]);

fn with_config<T>(authority: &Issued, then: impl FnOnce(&Config<'_>) -> T) -> T {
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    then(&config)
}

impl Recording {
    /// What comes of it, or of what is made of it.
    fn play(&self, bytes: &[u8], pieces: impl Iterator<Item = usize>) -> Result<Read, Error> {
        with_config(&self.authority, |config| {
            let mut replay = Replay { bytes, pieces: Box::new(pieces), sent: 0 };
            let mut buffer = vec![0; ANY_RECORD];
            let mut connection = connect(&Options::new(config), &mut replay, &mut buffer)?;
            let mut came = read(&mut connection, &mut replay, &mut Ticket::new(), 0);
            if came.end.is_none() {
                connection.ended();
                came.end = connection.poll(&mut [0; 64]).err().map(Err);
            }
            Ok(came)
        })
    }
}

#[test]
fn every_byte_may_be_the_last() {
    let recording = &RECORDINGS[0];
    for length in 0..recording.bytes.len() {
        match recording.play(&recording.bytes[..length], std::iter::repeat(usize::MAX)) {
            Err(error) => {
                assert_eq!(error, Error::Truncated);
                assert!(length < recording.handshake);
            }
            Ok(came) => {
                assert!(length >= recording.handshake);
                assert_eq!(came.end, Some(Err(Error::Truncated)), "{length}");
                assert!(b"hello, world".starts_with(&came.data));
            }
        }
    }
    let whole = recording.play(&recording.bytes, std::iter::repeat(usize::MAX)).unwrap();
    assert_eq!((whole.data, whole.end), (b"hello, world".to_vec(), Some(Ok(()))));
}

/// One bit of each byte is changed. There is no connection then, or it breaks off where the change is.
#[test]
fn every_change_is_noticed() {
    let recording = &RECORDINGS[1];
    for at in 0..recording.bytes.len() {
        let mut bytes = recording.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match recording.play(&bytes, std::iter::repeat(usize::MAX)) {
            Err(_) => assert!(at < recording.handshake),
            // The version of a record that is not protected is to be ignored (§5.1).
            Ok(came) if [1, 2].contains(&at) => assert_eq!(came.end, Some(Ok(()))),
            Ok(came) => {
                assert!(at >= recording.handshake, "{at}");
                assert!(matches!(came.end, Some(Err(_))), "{at}");
                assert!(b"hello, world".starts_with(&came.data));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any pieces, of records whole or cut, come to the same.
    #[test]
    fn pieces_do_not_matter(
        pieces in prop::collection::vec(1usize..600, 1..40),
        cut in 0usize..3000,
        which in 0usize..2,
    ) {
        let recording = &RECORDINGS[which];
        let bytes = &recording.bytes[..cut.min(recording.bytes.len())];
        let split = recording.play(bytes, pieces.iter().copied().cycle());
        let whole = recording.play(bytes, std::iter::repeat(usize::MAX));
        prop_assert_eq!(format!("{split:?}"), format!("{whole:?}"));
    }
}

/// Messages that are in many records, which come in many pieces, in a small buffer.
#[test]
fn messages_in_pieces_of_any_size() {
    use crate::rustls_server::{Server, Setup};
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    with_config(&authority, |config| {
        for largest in [33, 64, 100, 257, 1000] {
            let setup = Setup { largest_record: Some(largest), ..Setup::default() };
            let mut server = Server::new(&setup.config(&[&issued], &issued));
            server.piece = 7;
            let mut buffer = vec![0; 2048];
            let mut connection = connect(&Options::new(config), &mut server, &mut buffer).unwrap();
            send(&mut connection, &mut server, b"hello");
            assert_eq!(server.got, b"hello");
        }
    });
}

/// A caller that reads more often than it has to, or says that nothing came, changes nothing.
#[test]
fn steps_without_anything_new_do_nothing() {
    let recording = &RECORDINGS[0];
    with_config(&recording.authority, |config| {
        let mut buffer = vec![0; ANY_RECORD];
        let time = Time::Exactly(NOW);
        let mut handshake = Handshake::new(config, seed(1), time, &mut buffer).unwrap();
        let mut out = [0; 1024];
        assert!(matches!(handshake.step(&mut out[..100]), Err(Error::OutputTooSmall { .. })));
        assert!(matches!(handshake.step(&mut out), Ok(Step::Send(_))));
        for byte in &recording.bytes[..recording.handshake] {
            while handshake.step(&mut out) == Ok(Step::Working) {}
            assert_eq!(handshake.step(&mut out), Ok(Step::Receive));
            handshake.received(0);
            assert_eq!(handshake.step(&mut out), Ok(Step::Receive));
            handshake.space()[0] = *byte;
            handshake.received(1);
        }
        while handshake.step(&mut out) == Ok(Step::Working) {}
        assert!(handshake.finish().is_ok());
    });
}

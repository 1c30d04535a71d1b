//! Servers that misbehave after a good handshake: records that are wrong, too long, too many or without a
//! meaning.

use picokube_tls::{ANY_RECORD, Alert, Config, Connection, Error, Ticket, Violation};

use crate::puppet::{AES, CHACHA20, Puppet, Script, message, plain};
use crate::support::authority::{Issued, authority};
use crate::support::{Options, Read, connect, read, send};

/// Shakes hands with a puppet, has it do something, and reads what comes of it.
fn after(act: impl Fn(&mut Puppet<'_>)) -> (Read, Option<Alert>) {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    on(&authority, &issued, CHACHA20, |puppet, connection| {
        act(puppet);
        read(connection, puppet, &mut Ticket::new(), 0)
    })
}

fn on<T>(
    authority: &Issued,
    issued: &Issued,
    suite: u16,
    act: impl FnOnce(&mut Puppet<'_>, &mut Connection<'_>) -> T,
) -> (T, Option<Alert>) {
    let mut puppet = Puppet::new(Script { suite, ..Script::honest(issued) });
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut puppet, &mut buffer).unwrap();
    let result = act(&mut puppet, &mut connection);
    (result, puppet.alert().map(Alert))
}

fn refused(act: impl Fn(&mut Puppet<'_>)) -> Error {
    let (came, alert) = after(act);
    let error = came.end.unwrap().unwrap_err();
    assert_eq!(alert, error.alert(), "{error:?}");
    error
}

fn violation(violation: Violation) -> Error {
    Error::Violation(violation)
}

fn new_ticket(length: usize) -> Vec<u8> {
    let [high, low] = (length as u16).to_be_bytes();
    let body = [&[0, 0, 1, 0, 0, 0, 0, 0, 1, 7, high, low][..], &vec![5; length], &[0, 0]].concat();
    message(4, &body)
}

const ASK: [u8; 5] = [24, 0, 0, 1, 1];
const TELL: [u8; 5] = [24, 0, 0, 1, 0];

#[test]
fn largest_records_and_padding() {
    let (came, _) = after(|puppet| {
        puppet.send(23, &[1; 16_384]);
        // Data, its kind, and zeros up to the limit.
        let mut padded = vec![0; 16_385];
        padded[..4].copy_from_slice(&[2, 2, 2, 23]);
        puppet.send_inner(&padded);
        puppet.send_inner(&[3, 0, 23]);
    });
    assert_eq!(came.end, None);
    assert_eq!(came.data.len(), 16_384 + 3 + 2);
    assert_eq!(came.data[16_384..], [2, 2, 2, 3, 0]);
}

#[test]
fn records_that_are_too_long() {
    assert_eq!(refused(|puppet| puppet.send(23, &[1; 16_385])), Error::RecordOverflow);
    let mut padded = vec![0; 16_386];
    padded[0] = 23;
    assert_eq!(refused(|puppet| puppet.send_inner(&padded)), Error::RecordOverflow);
    assert_eq!(refused(|puppet| puppet.send_raw(&[23, 3, 3, 0x41, 0x01])), Error::RecordOverflow);
    assert_eq!(refused(|puppet| puppet.send_raw(&[23, 3, 3, 0xff, 0xff])), Error::RecordOverflow);
}

#[test]
fn records_in_clear_in_mid_connection() {
    for kind in [21, 22] {
        let error = refused(|puppet| puppet.send_raw(&plain(kind, &[1, 0])));
        assert_eq!(error, violation(Violation::Unprotected));
    }
    // Not even an end that anybody could have written.
    let (came, _) = after(|puppet| {
        puppet.send(23, b"data");
        puppet.send_raw(&plain(21, &[1, 0]));
    });
    assert_eq!(came.data, b"data");
    assert_eq!(came.end, Some(Err(violation(Violation::Unprotected))));
    let error = refused(|puppet| puppet.send_raw(&plain(20, &[1])));
    assert_eq!(error, violation(Violation::UnexpectedRecord));
    assert_eq!(refused(|puppet| puppet.send_raw(&plain(23, b"data"))), Error::BadRecord);
    assert_eq!(refused(|puppet| puppet.send_raw(&plain(23, &[0; 100]))), Error::BadRecord);
    assert_eq!(refused(|puppet| puppet.send_raw(&plain(23, &[]))), Error::BadRecord);
    assert_eq!(refused(|puppet| puppet.send_raw(b"GET /")), violation(Violation::NotTls));
    let error = refused(|puppet| puppet.send_raw(&[23, 3, 1, 0, 1, 0]));
    assert_eq!(error, violation(Violation::LegacyVersion));
}

#[test]
fn records_of_no_kind() {
    assert_eq!(refused(|puppet| puppet.send_inner(&[])), violation(Violation::EmptyRecord));
    assert_eq!(refused(|puppet| puppet.send_inner(&[0; 9])), violation(Violation::EmptyRecord));
    assert_eq!(refused(|puppet| puppet.send(22, &[])), violation(Violation::EmptyRecord));
    assert_eq!(refused(|puppet| puppet.send(21, &[])), violation(Violation::EmptyRecord));
    for kind in [1, 19, 20, 24, 255] {
        let error = refused(|puppet| puppet.send(kind, &[1]));
        assert_eq!(error, violation(Violation::UnexpectedRecord), "{kind}");
    }
    assert_eq!(refused(|puppet| puppet.send(21, &[1])), violation(Violation::Malformed));
    assert_eq!(refused(|puppet| puppet.send(21, &[1, 0, 1, 0])), violation(Violation::Malformed));
}

#[test]
fn messages_that_do_not_belong_into_a_connection() {
    // Nothing is negotiated anew, and no certificate is asked for afterwards.
    for kind in [0, 1, 2, 8, 11, 13, 15, 20, 254] {
        let error = refused(|puppet| puppet.send(22, &message(kind, &[0, 0, 0])));
        assert_eq!(error, violation(Violation::UnexpectedMessage), "{kind}");
    }
    // Pieces with data between them.
    let error = refused(|puppet| {
        puppet.send(22, &[4, 0]);
        puppet.send(23, b"data");
    });
    assert_eq!(error, violation(Violation::UnexpectedRecord));
    let error = refused(|puppet| puppet.send(22, &[4, 0xff, 0xff, 0xff]));
    assert!(matches!(error, Error::BufferTooSmall { .. }), "{error:?}");
    // Tickets that are none.
    for body in [&[][..], &[0; 12], &[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
        let error = refused(|puppet| puppet.send(22, &message(4, body)));
        assert_eq!(error, violation(Violation::Malformed));
    }
    let twice = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 8, 0x12, 0x34, 0, 0, 0x12, 0x34, 0, 0];
    let error = refused(|puppet| puppet.send(22, &message(4, &twice)));
    assert_eq!(error, violation(Violation::DuplicateExtension));
    let with = |extension: &[u8]| {
        let length = [0, extension.len() as u8];
        let body = [&[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5][..], &length, extension].concat();
        move |puppet: &mut Puppet<'_>| puppet.send(22, &message(4, &body))
    };
    for early in [&[0, 42, 0, 1, 0][..], &[0, 42, 0, 5, 0, 0, 0, 0, 0]] {
        assert_eq!(refused(with(early)), violation(Violation::Malformed));
    }
    // Flags, of which there are none, longer than they say, or longer than they need be.
    assert_eq!(refused(with(&[0, 62, 0, 1, 0])), violation(Violation::Malformed));
    assert_eq!(refused(with(&[0, 62, 0, 3, 1, 2, 1])), violation(Violation::Malformed));
    assert_eq!(refused(with(&[0, 62, 0, 3, 2, 2, 0])), violation(Violation::Answer));
    // Those that are well made are passed over, and so is what nobody knows.
    for fine in [&[0, 62, 0, 3, 2, 0, 1][..], &[0x12, 0x34, 0, 0], &[0, 42, 0, 4, 0, 0, 0, 9]] {
        let (came, _) = after(with(fine));
        assert_eq!((came.tickets, came.end), (1, None));
    }
}

#[test]
fn new_keys_that_are_none() {
    let update = |content: &'static [u8]| refused(move |puppet| puppet.send(22, content));
    assert_eq!(update(&[24, 0, 0, 1, 2]), violation(Violation::KeyUpdate));
    assert_eq!(update(&[24, 0, 0, 0]), violation(Violation::Malformed));
    assert_eq!(update(&[24, 0, 0, 2, 0, 0]), violation(Violation::Malformed));
    // The same record goes on, in which key?
    assert_eq!(update(&[24, 0, 0, 1, 0, 24, 0, 0, 1, 0]), violation(Violation::SpansKeyChange));
    assert_eq!(update(&[24, 0, 0, 1, 0, 4]), violation(Violation::SpansKeyChange));
    // The old key, after it was given up.
    let error = refused(|puppet| {
        puppet.send(22, &TELL);
        puppet.send(23, b"data");
    });
    assert_eq!(error, Error::BadRecord);
}

#[test]
fn floods_end() {
    let (came, alert) = after(|puppet| (0..10_000).for_each(|_| puppet.send(23, &[])));
    assert_eq!(came.end, Some(Err(Error::Flood)));
    assert_eq!(alert, Some(Alert::UNEXPECTED_MESSAGE));
    assert_eq!(refused(|puppet| (0..5).for_each(|_| puppet.send(21, &[1, 90]))), Error::Flood);
    // Four are none, also behind tickets.
    let (came, _) = after(|puppet| {
        (0..4).for_each(|_| puppet.send(22, &new_ticket(9)));
        (0..4).for_each(|_| puppet.send(21, &[1, 90]));
        puppet.send(23, b"x");
    });
    assert_eq!((came.data, came.end), (b"x".to_vec(), None));
    assert_eq!(
        refused(|puppet| (0..33).for_each(|_| puppet.send(22, &new_ticket(9)))),
        Error::Flood
    );
    let error = refused(|puppet| {
        for _ in 0..33 {
            puppet.send(22, &ASK);
            puppet.change_key();
        }
    });
    assert_eq!(error, Error::Flood);
    // All in one record, as well.
    assert_eq!(refused(|puppet| puppet.send(22, &new_ticket(9).repeat(33))), Error::Flood);
    // As many as servers do send are none; and data begins the count anew.
    let (came, _) = after(|puppet| {
        for _ in 0..50 {
            (0..10).for_each(|_| puppet.send(22, &new_ticket(9)));
            (0..10).for_each(|_| puppet.send(23, &[]));
            puppet.send(22, &TELL);
            puppet.change_key();
            puppet.send(23, b"x");
        }
    });
    assert_eq!((came.data.len(), came.tickets, came.end), (50, 500, None));
}

#[test]
fn every_request_for_a_new_key_is_answered_and_none_is_made() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    for suite in [CHACHA20, AES] {
        let (seen, _) = on(&authority, &issued, suite, |puppet, connection| {
            for _ in 0..20 {
                puppet.send(22, &ASK);
                puppet.change_key();
            }
            puppet.send(23, b"x");
            assert_eq!(read(connection, puppet, &mut Ticket::new(), 0).data, b"x");
            send(connection, puppet, b"answer");
            puppet.seen.clone()
        });
        let answers = seen.iter().filter(|(_, content)| **content == TELL).count();
        assert_eq!(answers, 20);
        assert_eq!(seen.last().unwrap(), &(23, b"answer".to_vec()));
        assert!(!seen.iter().any(|(_, content)| **content == ASK), "we never ask back");
    }
}

#[test]
fn tickets_that_are_too_long_or_for_nothing_are_passed_over() {
    let (came, _) = after(|puppet| {
        puppet.send(22, &new_ticket(1025));
        let mut nothing = new_ticket(5);
        nothing[4..8].fill(0);
        puppet.send(22, &nothing);
        puppet.send(23, b"x");
    });
    assert_eq!((came.tickets, came.data, came.end), (0, b"x".to_vec(), None));
    let (came, _) = after(|puppet| puppet.send(22, &new_ticket(1024)));
    assert_eq!((came.tickets, came.end), (1, None));
}

#[test]
fn alerts_end_a_connection() {
    for (level, description) in [(2, 20), (1, 20), (2, 80), (9, 200)] {
        let (came, answer) = after(|puppet| puppet.send(21, &[level, description]));
        assert_eq!(came.end, Some(Err(Error::Alert(Alert(description)))));
        assert_eq!(answer, None);
    }
    let (came, _) = after(|puppet| {
        puppet.send(21, &[2, 0]);
        puppet.send(23, b"what comes afterwards is ignored");
        puppet.send_raw(b"whatever it is");
    });
    assert_eq!((came.data.len(), came.end), (0, Some(Ok(()))));
}

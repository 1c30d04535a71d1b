//! The values of RFC 8448, where they apply: key schedule, protection of records, Finished, binders,
//! tickets, and the transcript after a HelloRetryRequest. Its handshakes as a whole do not, since their
//! client offers what ours does not.

extern crate std;

use std::string::String;
use std::vec::Vec;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{Error, Violation};
use crate::hkdf::{Hash, hash};
use crate::inbox::{Inbox, Opened};
use crate::keys::{EarlySecret, TrafficSecrets, finished};
use crate::protection::{Suite, TrafficKey};
use crate::server_hello::{self, Answer};
use crate::ticket::{self, Ticket};

fn value(name: &str) -> Vec<u8> {
    let text = include_str!("../tests/data/rfc8448.txt");
    let mut lines = text.lines().skip_while(|line| *line != name);
    assert_eq!(lines.next(), Some(name));
    let hex: String = lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn transcript(names: &[&str]) -> Hash {
    hash(&names.iter().flat_map(|name| value(name)).collect::<Vec<_>>())
}

fn assert_traffic(secrets: &TrafficSecrets, section: u8, what: &str) {
    assert_eq!(secrets.client[..], value(&std::format!("{section} client_{what}_traffic"))[..]);
    assert_eq!(secrets.server[..], value(&std::format!("{section} server_{what}_traffic"))[..]);
}

fn assert_key(secret: &Zeroizing<[u8; 32]>, name: &str) {
    let key = TrafficKey::new(Suite::Aes128Gcm, secret.clone());
    let (bytes, iv) = key.parts();
    assert_eq!(bytes, value(&std::format!("3 {name}_key")));
    assert_eq!(iv, value(&std::format!("3 {name}_iv")));
}

const SIMPLE: [&str; 7] = [
    "3 client_hello",
    "3 server_hello",
    "3 encrypted_extensions",
    "3 certificate",
    "3 certificate_verify",
    "3 server_finished",
    "3 client_finished",
];

#[test]
fn keys_of_a_simple_handshake() {
    let secret = EarlySecret::new(None).exchange(&value("3 shared_secret"));
    assert_eq!(secret.bytes()[..], value("3 handshake_secret")[..]);
    let traffic = secret.traffic(&transcript(&SIMPLE[..2]));
    assert_traffic(&traffic, 3, "handshake");
    assert_key(&traffic.server, "server_handshake");
    assert_key(&traffic.client, "client_handshake");
    let proof = finished(&traffic.server, &transcript(&SIMPLE[..5]));
    assert_eq!(proof[..], value("3 server_finished")[4..]);
    let proof = finished(&traffic.client, &transcript(&SIMPLE[..6]));
    assert_eq!(proof[..], value("3 client_finished")[4..]);
    let master = secret.master();
    assert_eq!(master.bytes()[..], value("3 master_secret")[..]);
    let traffic = master.traffic(&transcript(&SIMPLE[..6]));
    assert_traffic(&traffic, 3, "application");
    assert_key(&traffic.server, "server_application");
    assert_key(&traffic.client, "client_application");
    let psk = master.resumption(&transcript(&SIMPLE)).psk(&value("3 ticket_nonce"));
    assert_eq!(psk[..], value("3 ticket_psk")[..]);
}

#[test]
fn a_ticket_and_its_binder() {
    // The ticket as it came in the simple handshake, kept and offered 6 ms later.
    let secret = EarlySecret::new(None).exchange(&value("3 shared_secret"));
    let resumption = secret.master().resumption(&transcript(&SIMPLE));
    let message = value("3 new_session_ticket");
    let new = ticket::read(&message[4..]).unwrap();
    assert!(new.is_useful());
    let mut ticket = Ticket::new();
    new.keep(&mut ticket, &resumption, &[1; 32], 2, 1000);
    let time = crate::Time::Exactly(1);
    let offer = ticket.offer(&[1; 32], time, 1006).unwrap();
    let hello = value("4 client_hello_prefix");
    let (identity, age) = hello[hello.len() - 182..].split_at(178);
    assert_eq!(offer.identity, identity);
    assert_eq!(offer.obfuscated_age.to_be_bytes(), age);
    let early = EarlySecret::new(Some(offer.psk));
    assert_eq!(early.binder(&hash(&hello))[..], value("4 binder")[..]);
    // It is good for 30 seconds, for whom it was given for, and as long as the certificate.
    assert!(ticket.offer(&[1; 32], time, 30_999).is_some());
    assert!(ticket.offer(&[1; 32], time, 31_000).is_none());
    assert!(ticket.offer(&[1; 32], time, 999).is_none());
    assert!(ticket.offer(&[2; 32], time, 1006).is_none());
    assert!(ticket.offer(&[1; 32], crate::Time::AtLeast(2), 1006).is_none());

    let mut said = hello;
    said.extend([0, 0x21, 0x20]);
    for name in ["4 binder", "4 server_hello"] {
        said.extend(value(name));
    }
    let secret = early.exchange(&value("4 shared_secret"));
    let traffic = secret.traffic(&hash(&said));
    assert_traffic(&traffic, 4, "handshake");
    said.extend(value("4 encrypted_extensions"));
    let proof = finished(&traffic.server, &hash(&said));
    assert_eq!(proof[..], value("4 server_finished")[4..]);
    said.extend(value("4 server_finished"));
    assert_traffic(&secret.master().traffic(&hash(&said)), 4, "application");
}

#[test]
fn a_handshake_that_began_twice_on_p256() {
    let hello = value("5 server_hello");
    // The trace has no session to be echoed; put in the one that a client of ours would have sent.
    let mut with_session = hello.clone();
    with_session[38] = 32;
    with_session.splice(39..39, [9; 32]);
    with_session[3] += 32;
    let Ok(Answer::Hello { suite: Suite::Aes128Gcm, key_share, takes_ticket: false }) =
        server_hello::read(&with_session, &[9; 32], false)
    else {
        panic!("the trace's ServerHello is refused");
    };
    let key = p256::SecretKey::from_slice(&value("5 client_private_key")).unwrap();
    let shared = key.diffie_hellman(&key_share);
    assert_eq!(shared.raw_secret_bytes()[..], value("5 shared_secret")[..]);

    // §4.4.1
    let mut said = Sha256::new();
    said.update([254, 0, 0, 32]);
    said.update(transcript(&["5 client_hello_1"]));
    for name in ["5 hello_retry_request", "5 client_hello_2", "5 server_hello"] {
        said.update(value(name));
    }
    let secret = EarlySecret::new(None).exchange(shared.raw_secret_bytes());
    let traffic = secret.traffic(&said.clone().finalize().into());
    assert_traffic(&traffic, 5, "handshake");
    assert_eq!(secret.master().bytes()[..], value("5 master_secret")[..]);

    // The server's messages, out of its record.
    let record = value("5 server_flight_record");
    let mut buffer = [0; 1024];
    let mut inbox = Inbox::new(&mut buffer);
    let mut key = TrafficKey::new(suite(), traffic.server.clone());
    for piece in [&record[..5], &record[5..]] {
        assert_eq!(inbox.next_record(Some(&mut key)), Ok(None));
        inbox.space().copy_from_slice(piece);
        inbox.received(piece.len());
    }
    assert_eq!(inbox.next_record(Some(&mut key)), Ok(Some(Opened::Handshake)));
    let payload = value("5 server_flight_payload");
    assert_eq!(inbox.bytes(0..payload.len()), payload);
    let (before, last) = payload.split_at(payload.len() - 36);
    said.update(before);
    assert_eq!(finished(&traffic.server, &said.clone().finalize().into())[..], last[4..]);
    said.update(last);
    assert_traffic(&secret.master().traffic(&said.finalize().into()), 5, "application");
}

fn suite() -> Suite {
    Suite::Aes128Gcm
}

#[test]
fn a_request_for_a_share_that_was_there_is_illegal() {
    // The trace's client had sent a share of X25519 only; ours sends one of P-256, and needs no second
    // hello.
    let mut retry = value("5 hello_retry_request");
    retry[38] = 32;
    retry.splice(39..39, [9; 32]);
    retry[3] += 32;
    let refused = server_hello::read(&retry, &[9; 32], false).err();
    assert_eq!(refused, Some(Error::Violation(Violation::Retry)));
    // Without that extension it asks for its cookie only.
    let at = retry.windows(6).position(|bytes| bytes == [0, 0x33, 0, 2, 0, 0x17]).unwrap();
    retry.drain(at..at + 6);
    retry[3] -= 6;
    let length = at - 1;
    retry[length] -= 6;
    let Ok(Answer::Retry { cookie, .. }) = server_hello::read(&retry, &[9; 32], false) else {
        panic!("a cookie is refused");
    };
    assert_eq!(cookie.len(), 114);
    assert_eq!(retry[cookie][..4], [0x71, 0xdc, 0xd0, 0x4b]);
}

//! With rustls at the other end, everything works.

use picokube_tls::{ANY_RECORD, Config, Error, Event, Identity, Suite, Ticket, Time};
use rustls::CipherSuite;

use crate::rustls_server::{Server, Setup};
use crate::support::authority::{self, Issued, authority, authority_with, rsa, rsa_algorithms};
use crate::support::{NOW, Options, Peer, TOKEN, attempt, connect, read, send};

/// Connects, and sends data of many lengths to and fro.
fn converse(config: &Config<'_>, server: &mut Server) -> Suite {
    let mut buffer = vec![0; ANY_RECORD];
    let mut ticket = Ticket::new();
    let mut connection = connect(&Options::new(config), server, &mut buffer).unwrap();
    for length in [1, 2, 1000, 16_384, 16_385, 100_000] {
        let data: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        send(&mut connection, server, &data);
        assert!(std::mem::take(&mut server.got) == data);
        server.write(&data);
        let came = read(&mut connection, server, &mut ticket, 0);
        assert!(came.data == data && came.end.is_none());
    }
    assert_eq!(server.tls.alpn_protocol(), Some(&b"h2"[..]));
    assert!(!connection.is_resumed() && !ticket.is_empty());
    // 2026-07-01, as in the certificate
    assert_eq!(connection.server_certificate_expires(), 1_782_864_000);
    connection.suite()
}

#[test]
fn both_cipher_suites() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    for (offered, suite) in [
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, Suite::ChaCha20Poly1305),
        (CipherSuite::TLS13_AES_128_GCM_SHA256, Suite::Aes128Gcm),
    ] {
        let setup = Setup { suite: Some(offered), ..Setup::default() };
        let mut server = Server::new(&setup.config(&[&issued], &issued));
        assert_eq!(converse(&config, &mut server), suite);
    }
    let setup = Setup { suite: Some(CipherSuite::TLS13_AES_256_GCM_SHA384), ..Setup::default() };
    let mut server = Server::new(&setup.config(&[&issued], &issued));
    let refused = attempt(&Options::new(&config), &mut server).unwrap_err();
    assert!(refused.to_string().contains("handshake_failure"), "{refused}");
}

#[test]
fn names_and_addresses() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    for (name, sent) in [
        ("kubernetes", Some("kubernetes")),
        ("kubernetes.default.", Some("kubernetes.default")),
        ("10.0.2.2", None),
        ("::1", None),
    ] {
        let config = Config::new(name, &anchors).unwrap().with_protocol(b"h2").unwrap();
        let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
        converse(&config, &mut server);
        assert_eq!(server.tls.server_name(), sent);
    }
}

#[test]
fn any_of_several_authorities_and_those_between() {
    let (first, second) = (authority("first"), authority("second"));
    let between = second.issue(authority::authority_params("between"), authority::p256());
    let issued = between.server(|_| {});
    let anchors: [&[u8]; 2] = [&first.der, &second.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let chains: [&[&Issued]; 2] = [&[&issued, &between], &[&issued, &between, &second]];
    for chain in chains {
        let mut server = Server::new(&Setup::default().config(chain, &issued));
        converse(&config, &mut server);
    }
}

/// Of the server, of the authority, or of both.
#[test]
fn rsa_of_all_lengths_and_hashes() {
    for (bits, algorithm) in [2048, 3072, 4096].into_iter().zip(rsa_algorithms()) {
        let authority = authority_with("ca", rsa(bits, algorithm));
        let issued = authority.issue(authority::server(), rsa(bits, algorithm));
        let anchors: [&[u8]; 1] = [&authority.der];
        let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
        let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
        converse(&config, &mut server);
    }
}

#[test]
fn client_certificates() {
    let authority = authority("ca");
    let (issued, ours) = (authority.server(|_| {}), authority.client());
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let chain: [&[u8]; 1] = [&ours.der];
    let identity = Identity::new(&chain, &ours.scalar()).unwrap();
    assert_eq!(identity.expires(), 1_782_864_000);
    let setup = Setup { clients: Some(authority.der.clone()), ..Setup::default() };
    let server_config = setup.config(&[&issued], &issued);

    let with_identity = config.clone().with_identity(identity.clone());
    let mut server = Server::new(&server_config);
    converse(&with_identity, &mut server);
    assert_eq!(server.tls.peer_certificates(), Some(std::slice::from_ref(&ours.der)));

    // Without one, it says that it has none. It is the server that ends the connection then.
    let mut server = Server::new(&server_config);
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    let end = read(&mut connection, &mut server, &mut Ticket::new(), 0).end.unwrap().unwrap_err();
    assert!(end.to_string().contains("certificate_required"), "{end}");
    assert_eq!(server.got, b"");

    // A server that does not ask is not shown any.
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    converse(&with_identity, &mut server);
    assert_eq!(server.tls.peer_certificates(), None);

    // What would be sent may be more than fits at once.
    let long: Vec<&[u8]> = [&*ours.der; 4].to_vec();
    let long = config.clone().with_identity(Identity::new(&long, &ours.scalar()).unwrap());
    let mut buffer = vec![0; ANY_RECORD];
    let mut server = Server::new(&server_config);
    let options = Options { out: 1900, ..Options::new(&long) };
    connect(&options, &mut server, &mut buffer).unwrap();
    let options = Options { out: 600, ..Options::new(&long) };
    let mut server = Server::new(&server_config);
    let refused = connect(&options, &mut server, &mut buffer).err().unwrap();
    assert!(matches!(refused, Error::OutputTooSmall { needed: 601.. }), "{refused:?}");
}

#[test]
fn new_keys_whenever_the_server_wants() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    for suite in
        [CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, CipherSuite::TLS13_AES_128_GCM_SHA256]
    {
        let setup = Setup { suite: Some(suite), ..Setup::default() };
        let mut server = Server::new(&setup.config(&[&issued], &issued));
        let mut buffer = vec![0; ANY_RECORD];
        let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
        for round in 0..100u8 {
            server.tls.refresh_traffic_keys().unwrap();
            server.write(&[round; 3]);
            let came = read(&mut connection, &mut server, &mut Ticket::new(), 0);
            assert_eq!((came.data, came.end), (vec![round; 3], None));
            send(&mut connection, &mut server, &[round; 2]);
            assert_eq!(std::mem::take(&mut server.got), [round; 2]);
        }
        assert_eq!(server.error, None);
    }
}

#[test]
fn small_buffers_for_servers_that_send_small_records() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let setup = Setup { largest_record: Some(600), ..Setup::default() };
    let mut server = Server::new(&setup.config(&[&issued], &issued));
    let mut buffer = [0; 2048];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    server.write(&[7; 10_000]);
    let came = read(&mut connection, &mut server, &mut Ticket::new(), 0);
    assert_eq!((came.data.len(), came.end), (10_000, None));

    // One that sends larger ones is told apart from a broken one, with what it would take.
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    let mut buffer = [0; 2048];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    server.write(&[7; 10_000]);
    let came = read(&mut connection, &mut server, &mut Ticket::new(), 0);
    assert_eq!(came.end, Some(Err(Error::BufferTooSmall { needed: 10_022 })));
    assert!(server.error.is_some(), "the server is told");
}

#[test]
fn both_sides_say_when_nothing_more_comes() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    server.write(b"last words");
    server.tls.send_close_notify();
    let came = read(&mut connection, &mut server, &mut Ticket::new(), 0);
    assert_eq!((came.data.as_slice(), came.end), (&b"last words"[..], Some(Ok(()))));
    // It stays so, and we may still send.
    let mut out = [0; 100];
    assert_eq!(connection.poll(&mut out), Ok(Event::Closed));
    send(&mut connection, &mut server, TOKEN);
    assert_eq!(server.got, TOKEN);
    let count = connection.close(&mut out).unwrap();
    server.take(&out[..count]);
    assert_eq!(connection.close(&mut out), None);
    assert_eq!(connection.seal(b"more", &mut out), Err(Error::Closed));
    assert!(server.tls.process_new_packets().unwrap().peer_has_closed());
}

#[test]
fn an_end_without_a_word_is_not_the_end() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    server.write(b"cut");
    read(&mut connection, &mut server, &mut Ticket::new(), 0);
    connection.ended();
    assert_eq!(connection.poll(&mut [0; 64]), Err(Error::Truncated));
}

#[test]
fn records_are_made_in_place() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut server, &mut buffer).unwrap();
    let mut out = [0; 8 + picokube_tls::OVERHEAD];
    out[picokube_tls::RECORD_HEADER..][..8].copy_from_slice(b"in place");
    let count = connection.seal_in_place(8, &mut out).unwrap();
    server.take(&out[..count]);
    assert_eq!(server.got, b"in place");
    let refused = connection.seal_in_place(9, &mut out);
    assert_eq!(refused, Err(Error::OutputTooSmall { needed: 9 + picokube_tls::OVERHEAD }));
}

#[test]
fn a_device_without_a_clock() {
    const YEAR: u64 = 365 * 24 * 3600;
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let at = |time| {
        let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
        attempt(&Options { time, ..Options::new(&config) }, &mut server).is_ok()
    };
    // A certificate that begins later than is known to have passed tells that it is later.
    assert!(at(Time::AtLeast(NOW)) && at(Time::AtLeast(NOW - YEAR)) && at(Time::AtLeast(0)));
    assert!(!at(Time::Exactly(NOW - YEAR)));
    // One that is over is over, whatever else is known.
    assert!(!at(Time::AtLeast(NOW + YEAR)) && !at(Time::Exactly(NOW + YEAR)));
}

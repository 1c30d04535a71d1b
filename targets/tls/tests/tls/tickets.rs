//! Tickets: when they are used, when not, and that they are no way around.

use picokube_tls::{ANY_RECORD, Config, Error, Identity, Ticket, Time, Violation};

use crate::puppet::{CHACHA20, Puppet, Script, hello};
use crate::rustls_server::{Server, Setup};
use crate::support::authority::authority;
use crate::support::{NOW, Options, attempt, connect, read, send};

#[test]
fn a_ticket_makes_the_next_handshake_short() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let server_config = Setup::default().config(&[&issued], &issued);
    let mut ticket = Ticket::new();
    let mut given = Vec::new();
    for round in 0..4u64 {
        let now = round * 60_000;
        let mut server = Server::new(&server_config);
        let mut buffer = vec![0; ANY_RECORD];
        let mut connection = {
            let options = Options { ticket: Some((&ticket, now)), ..Options::new(&config) };
            connect(&options, &mut server, &mut buffer).unwrap()
        };
        assert_eq!(connection.is_resumed(), round > 0);
        given.push(server.given.len());
        send(&mut connection, &mut server, b"hello");
        assert_eq!(server.got, b"hello");
        ticket.clear();
        assert!(read(&mut connection, &mut server, &mut ticket, now).tickets > 0);
        // Known from the ticket as well.
        assert_eq!(connection.server_certificate_expires(), 1_782_864_000);
    }
    assert!(given[1] < given[0] / 2, "{given:?}");
}

/// Of a server that has lost its keys, nothing but a whole handshake comes.
#[test]
fn a_server_that_does_not_know_it_proves_itself_anew() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let ticket = obtain(&config, &mut Server::new(&Setup::default().config(&[&issued], &issued)));
    let mut server = Server::new(&Setup::default().config(&[&issued], &issued));
    let options = Options { ticket: Some((&ticket, 1)), ..Options::new(&config) };
    let mut buffer = vec![0; ANY_RECORD];
    assert!(!connect(&options, &mut server, &mut buffer).unwrap().is_resumed());

    // And if it cannot, a ticket does not help.
    let stranger = crate::support::authority::authority("ca").server(|_| {});
    let mut server = Server::new(&Setup::default().config(&[&stranger], &stranger));
    assert!(matches!(attempt(&options, &mut server), Err(Error::Certificate(_))));
    assert_eq!(server.got, b"");
}

#[test]
fn it_is_offered_to_the_same_server_only() {
    let (authority, other) = (authority("ca"), crate::support::authority::authority("other"));
    let issued = authority.server(|_| {});
    let ours = authority.client();
    let chain: [&[u8]; 1] = [&ours.der];
    let anchors: [&[u8]; 1] = [&authority.der];
    let both: [&[u8]; 2] = [&authority.der, &other.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let server_config =
        Setup { protocols: vec![b"h2".to_vec(), b"h3".to_vec()], ..Setup::default() }
            .config(&[&issued], &issued);
    let ticket = obtain(&config, &mut Server::new(&server_config));
    let is_resumed = |config: &Config<'_>, time, now| {
        let options = Options { ticket: Some((&ticket, now)), time, ..Options::new(config) };
        let mut buffer = vec![0; ANY_RECORD];
        connect(&options, &mut Server::new(&server_config), &mut buffer).unwrap().is_resumed()
    };
    let time = Time::Exactly(NOW);
    assert!(is_resumed(&config, time, 0));
    let name = Config::new("kubernetes.default", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let authorities = Config::new("kubernetes", &both).unwrap().with_protocol(b"h2").unwrap();
    let protocol = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h3").unwrap();
    let identity = config.clone().with_identity(Identity::new(&chain, &ours.scalar()).unwrap());
    for other in [name, authorities, protocol, identity] {
        assert!(!is_resumed(&other, time, 0));
    }
    // Neither for longer than the server wants, nor with a clock that went back.
    assert!(!is_resumed(&config, time, 8 * 24 * 3600 * 1000));
    let later = obtain_at(&config, &mut Server::new(&server_config), 1000);
    let options = Options { ticket: Some((&later, 999)), ..Options::new(&config) };
    let mut buffer = vec![0; ANY_RECORD];
    let mut server = Server::new(&server_config);
    assert!(!connect(&options, &mut server, &mut buffer).unwrap().is_resumed());
}

/// Nor longer than the certificate is good by which the server has proved itself.
#[test]
fn it_ends_with_the_certificate() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let server_config = Setup::default().config(&[&issued], &issued);
    let ticket = obtain(&config, &mut Server::new(&server_config));
    let time = Time::Exactly(1_782_864_000 + 1);
    let options = Options { ticket: Some((&ticket, 1)), time, ..Options::new(&config) };
    let mut server = Server::new(&server_config);
    assert!(matches!(attempt(&options, &mut server), Err(Error::Certificate(_))));
    assert_eq!(server.got, b"");
}

/// Whoever says that it takes a ticket has to have its key, or nothing that it sends can be read.
#[test]
fn who_takes_a_ticket_without_its_key_gets_nowhere() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let ticket = obtain(&config, &mut Server::new(&Setup::default().config(&[&issued], &issued)));
    // The second one was not offered.
    let not_offered = Error::Violation(Violation::Ticket);
    for (chosen, refusal) in [(0, Error::BadRecord), (1, not_offered)] {
        for with_certificate in [false, true] {
            let mut script = Script::honest(&issued);
            script.hello = Box::new(move |honest| {
                let extensions = [&honest[76..], &[0, 41, 0, 2, 0, chosen]].concat();
                hello([7; 32], &honest[39..71], CHACHA20, &extensions)
            });
            script.message = Box::new(move |kind, message| {
                let is_proof = kind == 11 || kind == 15;
                if is_proof && !with_certificate { vec![] } else { vec![message] }
            });
            let mut puppet = Puppet::new(script);
            let options = Options { ticket: Some((&ticket, 1)), ..Options::new(&config) };
            assert_eq!(attempt(&options, &mut puppet), Err(refusal));
            assert!(!puppet.has_data());
        }
    }
    // An honest one that does not know it proves itself with its certificate.
    let mut puppet = Puppet::new(Script::honest(&issued));
    let options = Options { ticket: Some((&ticket, 1)), ..Options::new(&config) };
    assert_eq!(attempt(&options, &mut puppet), Ok(()));
}

fn obtain(config: &Config<'_>, server: &mut Server) -> Ticket {
    obtain_at(config, server, 0)
}

fn obtain_at(config: &Config<'_>, server: &mut Server, now: u64) -> Ticket {
    let mut buffer = vec![0; ANY_RECORD];
    let mut ticket = Ticket::new();
    let mut connection = connect(&Options::new(config), server, &mut buffer).unwrap();
    read(&mut connection, server, &mut ticket, now);
    assert!(!ticket.is_empty());
    ticket
}

//! The driver's cases over the operating system's own sockets, over HTTP/1.1 and over HTTPS.

use core::net::SocketAddr;

use futures_lite::future::block_on;
// The time that the driver goes by.
use picokube_clock as _;
use picokube_driver::tls::{Platform, Tls};
use picokube_first_light::{Bench, CASES, CASES_OVER_HTTPS, Memory, Peer};
use picokube_tests::sockets::Sockets;
use picokube_tests::{peer, secure_peer};
use picokube_tls::{ANY_RECORD, Config, Ticket, Time};

fn run(name: &str) {
    let peer = peer::Peer::start().expect("a port on the loopback");
    let host = peer.address().to_string();
    let mut bench = Bench {
        network: &Sockets,
        peer: Peer {
            address: peer.address(),
            host: &host,
            black_hole_port: peer.black_hole_port(),
        },
        memory: &mut Memory::new(),
    };
    if let Err(failure) = block_on(bench.run(name)) {
        panic!("{failure}");
    }
}

/// A PC has true random numbers, and for the tests it is 2026.
struct Pc;

impl Platform for Pc {
    fn entropy(&self) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
        Some(bytes)
    }

    fn time(&self) -> Time {
        Time::AtLeast(1_767_225_600)
    }

    fn tell(&self, error: &picokube_tls::Error) {
        eprintln!("{error}");
    }
}

fn run_over_https(name: &str) {
    let peer = secure_peer::Peer::start(&secure_peer::Options::default()).expect("a peer");
    let host = peer.address().to_string();
    let mut bench = Bench {
        network: &Sockets,
        peer: Peer {
            address: peer.address(),
            host: &host,
            black_hole_port: peer.black_hole_port(),
        },
        memory: &mut Memory::new(),
    };
    let anchors = [&*peer.authority];
    let config = Config::new("peer.test", &anchors).expect("a configuration");
    let config = &config.with_protocol(b"h2").expect("a protocol");
    let (buffer, ticket) = (&mut [0; ANY_RECORD][..], &mut Ticket::new());
    let memory = (buffer, ticket);
    let secure = |address: SocketAddr| {
        let (buffer, ticket) = memory;
        Tls { network: &Sockets, address, config, platform: &Pc, buffer, ticket }
    };
    if let Err(failure) = block_on(bench.run_over_https(name, secure)) {
        panic!("{failure}");
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test] fn $name() { run(stringify!($name)); })*

        #[test]
        fn every_case_is_listed_here() {
            assert_eq!(CASES, [$(stringify!($name)),*]);
        }
    };
}

macro_rules! tests_over_https {
    ($($name:ident)*) => {
        mod https {
            $(#[test] fn $name() { super::run_over_https(stringify!($name)); })*
        }

        #[test]
        fn every_case_over_https_is_listed_here() {
            assert_eq!(CASES_OVER_HTTPS, [$(stringify!($name)),*]);
        }
    };
}

tests_over_https! {
    every_method_on_one_connection
    chunked_and_fixed_answers
    four_streams_at_once_beside_requests
    a_large_request_body
    closed_port_is_refused
    unreachable_server_times_out
    mute_server_times_out
    silent_stream_is_given_up
    dripping_answer_is_given_up
    idle_close_is_hidden_from_a_get
    idle_close_is_reported_to_a_post
    connection_close_is_honoured
    truncated_fixed_length_answer
    server_killed_in_the_middle_of_streams
    reset_during_the_request_body
}

tests! {
    every_method_on_one_connection
    chunked_and_fixed_answers
    four_streams_at_once_beside_requests
    a_large_request_body
    closed_port_is_refused
    unreachable_server_times_out
    mute_server_times_out
    silent_stream_is_given_up
    dripping_answer_is_given_up
    idle_close_is_hidden_from_a_get
    idle_close_is_reported_to_a_post
    connection_close_is_honoured
    streams_that_end_badly_are_opened_again
    truncated_fixed_length_answer
    server_killed_in_the_middle_of_streams
    huge_head
    not_http
    reset_during_the_request_body
}

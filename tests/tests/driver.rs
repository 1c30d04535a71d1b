//! The driver's cases over the operating system's own sockets.

use futures_lite::future::block_on;
use picokube_first_light::{Bench, CASES, Memory, Peer};
use picokube_tests::peer;

fn run(name: &str) {
    let peer = peer::Peer::start().expect("a port on the loopback");
    let host = peer.address().to_string();
    let mut bench = Bench {
        network: &std_embedded_nal_async::Stack::default(),
        peer: Peer {
            address: peer.address(),
            host: &host,
            black_hole_port: peer.black_hole_port(),
        },
        memory: &mut Memory::new(),
    };
    if let Err(failure) = block_on(picokube_first_light::run(name, &mut bench)) {
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

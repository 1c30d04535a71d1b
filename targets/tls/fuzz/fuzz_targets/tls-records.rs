//! Any records, protected or not, in a connection: no panic, an error stays, and how the bytes are split
//! does not matter.
#![no_main]

#[path = "../script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;
use picokube_tls::fuzzing::{Sealer, connection};
use picokube_tls::{Error, Event, Suite, Ticket};

const SECRET: [u8; 32] = [7; 32];

fn run(suite: Suite, wire: &[u8], piece: usize) -> (Vec<u8>, usize, Result<(), Error>) {
    let mut buffer = vec![0; 2048];
    let mut connection = connection(suite, SECRET, &mut buffer);
    let mut ticket = Ticket::new();
    let (mut rest, mut data, mut tickets) = (wire, Vec::new(), 0);
    let mut out = [0; 32];
    loop {
        match connection.poll(&mut out) {
            Ok(Event::Send(count)) => assert!(count <= out.len()),
            Ok(Event::Receive) => {
                let space = connection.space();
                assert!(!space.is_empty());
                let count = space.len().min(rest.len()).min(piece);
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                if count == 0 {
                    connection.ended();
                }
                connection.received(count);
            }
            Ok(Event::Data) => {
                assert!(!connection.data().is_empty());
                data.extend(connection.data());
                connection.consume(usize::MAX);
            }
            Ok(Event::Ticket) => {
                connection.keep_ticket(&mut ticket, 0);
                assert!(!ticket.is_empty());
                tickets += 1;
            }
            Ok(Event::Closed) => return (data, tickets, Ok(())),
            Err(error) => {
                assert_eq!(connection.poll(&mut out), Err(error));
                return (data, tickets, Err(error));
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&first, input)) = input.split_first() else { return };
    let suite = if first & 1 == 0 { Suite::ChaCha20Poly1305 } else { Suite::Aes128Gcm };
    let steps = script::steps(input);
    let wire = script::wire(&steps, Sealer::new(suite, SECRET));
    let whole = run(suite, &wire, usize::MAX);
    let split = run(suite, &wire, usize::from(first >> 1) + 1);
    assert_eq!(whole, split);
});

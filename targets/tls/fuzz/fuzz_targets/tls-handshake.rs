//! Any messages in a handshake, before and after protection begins: no panic, an error stays, how the bytes
//! are split does not matter, and nothing comes to a connection that has no proof.
#![no_main]

#[path = "../script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;
use picokube_tls::fuzzing::{Sealer, handshake};
use picokube_tls::{Config, Error, Handshake, Seed, Step, Suite, Time};

const SECRET: [u8; 32] = [7; 32];
const AUTHORITY: &[u8] = include_bytes!("../authority.der");

fn run(is_protected: bool, wire: &[u8], piece: usize) -> Error {
    let anchors = [AUTHORITY];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut bytes = [1; 32];
    bytes[0] = 2;
    let seed = Seed::new(bytes).unwrap();
    let time = Time::AtLeast(0);
    let mut buffer = vec![0; 4096];
    let mut tls = if is_protected {
        handshake(&config, seed, time, Suite::ChaCha20Poly1305, SECRET, &mut buffer).unwrap()
    } else {
        Handshake::new(&config, seed, time, &mut buffer).unwrap()
    };
    let mut rest = wire;
    let mut out = [0; 4096];
    loop {
        match tls.step(&mut out) {
            Ok(Step::Send(count)) => assert!(count <= out.len()),
            Ok(Step::Receive) => {
                let space = tls.space();
                assert!(!space.is_empty());
                let count = space.len().min(rest.len()).min(piece);
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                if count == 0 {
                    tls.ended();
                }
                tls.received(count);
            }
            Ok(Step::Working) => {}
            // The fuzzer has no key that the authority has signed.
            Ok(Step::Done) => panic!("a server without a proof was accepted"),
            Err(error @ Error::OutputTooSmall { .. }) => return error,
            Err(error) => {
                assert_eq!(tls.step(&mut out), Err(error));
                if let Some(count) = tls.farewell(&mut out) {
                    assert!(count <= out.len());
                }
                assert!(tls.finish().is_err());
                return error;
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&first, input)) = input.split_first() else { return };
    let steps = script::steps(input);
    let wire = script::wire(&steps, Sealer::new(Suite::ChaCha20Poly1305, SECRET));
    let is_protected = first & 1 == 1;
    let whole = run(is_protected, &wire, usize::MAX);
    if first & 2 == 0 {
        assert_eq!(whole, run(is_protected, &wire, usize::from(first >> 2) + 1));
    }
});

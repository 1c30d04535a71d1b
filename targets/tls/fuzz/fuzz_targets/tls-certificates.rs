//! Any certificate, key and signature: no panic, and what is refused is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_tls::fuzzing;
use picokube_tls::{Config, Identity, Time};

const AUTHORITY: &[u8] = include_bytes!("../authority.der");

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, at], bytes)) = input.split_first_chunk() else { return };
    let (one, other) = bytes.split_at(bytes.len() * usize::from(at) / 255);
    match kind % 4 {
        // As the server's, with another behind it.
        0 => {
            let anchors = [AUTHORITY];
            let config = Config::new("kubernetes", &anchors).unwrap();
            let _ = fuzzing::verify(&config, Time::AtLeast(0), &[one, other]);
        }
        // As an authority, for one that it may have signed.
        1 => {
            let anchors = [one];
            if let Ok(config) = Config::new("kubernetes", &anchors) {
                let _ = fuzzing::verify(&config, Time::Exactly(1_767_225_600), &[other]);
            }
        }
        2 => assert!(Identity::new(&[one], &[1; 32]).is_err()),
        // As an RSA key, and a signature.
        _ => assert!(!fuzzing::is_rsa_signature(one, b"message", other)),
    }
});

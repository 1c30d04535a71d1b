//! Any bytes as what a server sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../frames.rs"]
mod frames;

fuzz_target!(|input: &[u8]| frames::play(input));

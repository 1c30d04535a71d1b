//! Any bytes as a header block.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../blocks.rs"]
mod blocks;
#[path = "../../tests/http2/reference.rs"]
mod reference;

fuzz_target!(|input: &[u8]| blocks::play(input));

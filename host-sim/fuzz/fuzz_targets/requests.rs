//! Any requests, one after the other: see `script.rs` for what has to hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../script.rs"]
mod script;

fuzz_target!(|script: &[u8]| script::play(script));

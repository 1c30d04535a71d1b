//! Any bytes as a timestamp: no panic, and what is read prints as the same instant.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_core::time::Timestamp;

fuzz_target!(|text: &[u8]| {
    Timestamp::parse_http_date(text);
    let Some(time) = Timestamp::parse_rfc3339(text) else { return };
    // An offset may carry the first or last hours of the calendar out of it.
    let (first, last) = (-62_167_219_200, 253_402_300_799);
    if (first..=last).contains(&time.as_secs()) {
        let printed = time.rfc3339_micros().to_string();
        assert_eq!(Timestamp::parse_rfc3339(printed.as_bytes()), Some(time), "{printed}");
    }
    let printed = time.rfc3339().to_string();
    assert!(printed.len() >= "0000-00-00T00:00:00Z".len());
});

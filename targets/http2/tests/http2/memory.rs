//! What a connection takes.

use std::sync::Mutex;

use picokube_http2::{Connection, Event};

/// Five watches, two lanes of requests, a source of bodies and one to spare.
#[test]
fn a_connection_of_nine_streams_is_small() {
    let size = size_of::<Connection<9>>();
    assert!(size <= 1100, "{size} bytes");
    let stream = size_of::<Connection<10>>() - size;
    assert!(stream <= 56, "{stream} bytes");
    assert!(size_of::<Event<'_>>() <= 160);
}

type Many = [Connection<9>; 40_000];

static MANY: Mutex<Many> = Mutex::new([const { Connection::new() }; 40_000]);

/// A single byte that is not zero would put all of it into the image.
#[test]
fn a_connection_takes_no_room_in_the_image() {
    // Used, so that it is really there.
    assert!(MANY.lock().unwrap().first().is_some_and(|connection| !connection.owes()));
    let memory = size_of::<Many>() as u64;
    assert!(memory > 40_000_000);
    let image = std::env::current_exe().and_then(std::fs::metadata).unwrap().len();
    assert!(image < memory, "an image of {image} bytes holds {memory} bytes of memory");
}

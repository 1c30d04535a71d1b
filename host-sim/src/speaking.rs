//! How the server speaks HTTP/1.1 and HTTP/2: the limits of a connection, whatever it runs over.

use std::time::Duration;

use hyper::rt::Timer;
use hyper_util::server::conn::auto::Builder;

/// What is buffered of a connection's bodies before anybody reads them.
const WINDOW_BYTES: u32 = 64 << 10;

/// As many as Go's servers permit.
const CONCURRENT_STREAMS: u32 = 250;

/// What a client may take of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of request line and headers.
    pub(crate) header_bytes: usize,
    /// How long it may take to send its headers, or to say nothing.
    pub(crate) patience: Duration,
    /// How long it may take to show that it is still there.
    pub(crate) stall: Duration,
}

/// Connections within these bounds.
pub(crate) fn builder<E, T>(executor: E, timer: T, bounds: &Bounds) -> Builder<E>
where
    T: Timer + Clone + Send + Sync + 'static,
{
    let Bounds { header_bytes, patience, stall } = *bounds;
    let mut builder = Builder::new(executor);
    builder
        .http1()
        .timer(timer.clone())
        .header_read_timeout(patience)
        .max_buf_size(header_bytes.max(8 << 10))
        .keep_alive(true);
    builder
        .http2()
        .timer(timer)
        .max_header_list_size(header_bytes as u32)
        .initial_connection_window_size(WINDOW_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .max_send_buf_size(WINDOW_BYTES as usize)
        .max_concurrent_streams(CONCURRENT_STREAMS)
        // A client whose power has gone says nothing, and its watches would hold their places.
        .keep_alive_interval(patience)
        .keep_alive_timeout(stall);
    builder
}

//! The client's side of HTTP/2 (RFC 9113) for microcontrollers: no I/O, no allocator, no unsafe code.
//!
//! A [`Connection`] is a state machine of about a kilobyte. The caller moves bytes: what comes from the
//! server is fed to [`Connection::receive`], in pieces of any size, and comes out as [`Event`]s that borrow
//! from it; what is to be sent is written into an [`Output`], a buffer of the caller's. Read these two
//! first: [`Connection`] and [`Event`].
//!
//! Neither a frame nor a header block is ever held in memory, and no frame is ever queued. Two choices make
//! that possible. Our dynamic table for headers has size 0, so that a header block can be read once, from
//! front to back, keeping what a [`Head`] has and forgetting the rest. And what is owed to the server
//! (acknowledgements, windows, resets) is kept as numbers, which become frames when there is room for them.
//!
//! ```
//! use picokube_http2::{Config, Connection, Event, Field, Output, Request, Scheme};
//!
//! let mut connection = Connection::<8>::new();
//! connection.open(Config::default());
//! let mut buffer = [0; 1024];
//! let mut out = Output::new(&mut buffer);
//! connection.write(&mut out);
//! // … send out.written(), and read what the server says. Here it is:
//! out.clear();
//! let greeting = [0, 0, 0, 4, 0, 0, 0, 0, 0];
//! assert_eq!(connection.receive(&mut &greeting[..]), Ok(Some(Event::Ready)));
//!
//! let request = Request {
//!     method: "GET",
//!     scheme: Scheme::Https,
//!     authority: "kubernetes:6443",
//!     path: "/api/v1/pods?watch=true",
//!     fields: &[Field::kept("accept", "application/json"), Field::secret("authorization", "Bearer …")],
//!     has_body: false,
//! };
//! let stream = connection.request(&request, &mut out)?;
//! // … send, and read:
//! let mut input = &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88, 0, 0, 2, 0, 1, 0, 0, 0, 1, b'o', b'k'][..];
//! while let Some(event) = connection.receive(&mut input)? {
//!     match event {
//!         Event::Head { head, .. } => assert_eq!(head.status, 200),
//!         Event::Data { stream, bytes } => {
//!             assert_eq!(bytes, b"ok");
//!             connection.release(stream, bytes.len());
//!         }
//!         Event::End { stream: ended } => assert_eq!(ended, stream),
//!         other => panic!("{other:?}"),
//!     }
//! }
//! if connection.owes() {
//!     connection.write(&mut out);
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # What the caller does
//!
//! - Whatever is in an [`Output`] is sent, all of it and in order. Several calls may fill one output, so
//!   that what belongs together leaves together.
//! - After [`receive`](Connection::receive) and [`release`](Connection::release), ask
//!   [`owes`](Connection::owes) and [`write`](Connection::write).
//! - Time is the caller's: a stream that takes too long is [cancelled](Connection::cancel), which costs no
//!   other stream anything; a silent server is [pinged](Connection::ping); a connection that is idle for
//!   hours is [forgiven](Connection::forgive) once a minute.
//! - An [`Error`] ends the connection, a [`Reset`] one stream, a [`Refusal`] says what to wait for. What is
//!   [`Reset::Unprocessed`] may be sent again, even if it is a POST.
//!
//! # Flow control that cannot deadlock
//!
//! Streams that share a connection must not wait for each other. So:
//!
//! 1. Whoever reads a stream takes its bytes at once, or puts them into a buffer of its own that is as
//!    large as the stream's window ([`Config::stream_window`]); it gives them back with
//!    [`release`](Connection::release) as it deals with them. The server never sends more than fits.
//! 2. The connection is always read on. Nobody stops reading it because one stream's reader is slow: that
//!    one's window stops the server instead.
//! 3. The connection's window is given back as data comes, not as it is dealt with. All that can be held is
//!    bounded by the streams' windows already, and so the connection's window is never the reason why a
//!    stream waits.
//! 4. A window is widened again when half of it was given back. So a server that waits, waits for a reader,
//!    or for us to [`write`](Connection::write).
//!
//! # Secrets
//!
//! A bearer token is about a kilobyte, and every request carries it. With [`Field::secret`] it goes into
//! the server's dynamic table once and is called by number afterwards. RFC 7541 §7.1 warns of that where an
//! attacker can have guesses compressed together with the secret, and sees how long the result is. Here it
//! is safe, because
//!
//! - nobody else's text ever meets the table: what goes in are the fields that the caller marks as kept,
//!   and an entry is found only by a field that is equal as a whole, so there is nothing that a part of a
//!   guess could shorten;
//! - paths, the only part of a request that others may have a say in, are never put into the table nor
//!   looked up there;
//! - the value is sent without Huffman code, so that its length says nothing about its characters;
//! - tokens are far too long to be guessed.
//!
//! The secret is not stored here: a fingerprint of 64 bits tells whether the next request has the same.
//! When it changes, the new one is sent. Nothing else pushes it out of the table. A secret that does not
//! fit, or that is short enough to be guessed ([`Indexing::Never`]), is sent each time as *never indexed*,
//! which binds proxies, too. A proxy that ends our TLS and speaks HTTP/2 onwards for many clients may put
//! an indexed secret into a table that it shares between them (§7.1.3): behind such a one, use
//! [`Indexing::Never`]. Between us and an API server there is none that we trust less than the server, or
//! TLS would have failed.
//!
//! # Servers that mean no good
//!
//! Everything that a server can make us do is bounded: heads ([`MAX_HEADER_LIST`]), header blocks (64 KiB,
//! however they are cut), settings in a frame, unanswered pings. Frames that carry nothing are paid for
//! from a budget of 256, which useful traffic fills again; who empties it is left with [`Error::Flood`].
//! Pushes are an error. Heads and bodies that break the rules of HTTP (RFC 9113 §8) end their stream with
//! [`Reset::Malformed`], also if a body is shorter or longer than its `content-length`.
//!
//! # How an async driver uses it
//!
//! One `RefCell<Connection<N>>` and one transport; one task reads and one writes. Everybody who sends
//! requests (a watch, a lane of requests, a source of bodies) has an inbox: the [`StreamKey`] of its stream,
//! its head, a ring of [`stream_window`](Config::stream_window) bytes, and how it ended.
//!
//! ```text
//!  transport ─▶ reader: receive ─▶ Event ─▶ the inbox with that key
//!                                                │ wakes
//!  exchange: request, send … ◀───────────────────┘ receiver.head, receiver.body(bytes).await, release
//!      │ wakes
//!  writer: waits for owes() or a request's bytes ─▶ Output ─▶ transport
//! ```
//!
//! - The reader never waits for a receiver: `Event::Data` goes into the ring of its inbox, which has room by
//!   rule 1. Whoever owns the inbox drains it into its receiver, may wait there as long as it likes, and
//!   releases what was taken. An end is told after the ring is drained.
//! - An exchange is a guard that cancels its stream when it is dropped: a time-out, a watch that is not
//!   wanted any more, or a body that turns out to be wrong. A request without its end has never been made.
//! - `Refusal::Busy` and `NoRoom` wait for the next event or write; `Leaving` and `Closed` for the next
//!   connection. `Reset::Unprocessed` is "not sent", every other `Reset` and `Error` "ambiguous".
//! - After `Event::GoAway`, requests under way end by themselves, watches are dropped, and the next
//!   connection is opened when [`open_streams`](Connection::open_streams) is 0.
#![no_std]
#![forbid(unsafe_code)]
// Input reaches everything here, so nothing here may stop the firmware.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

#[cfg(test)]
extern crate std;

mod budget;
mod connection;
mod error;
mod event;
mod frame;
mod output;
mod request;
mod stream;
mod window;

// The room behind: open to this project's tests and fuzz targets, and without any promise to others.
#[doc(hidden)]
pub mod hpack;

pub use connection::{Config, Connection, Sent};
pub use error::{Breach, Error, Flood, Gone, Refusal, Reset};
pub use event::Event;
pub use frame::ErrorCode;
pub use hpack::{Field, Head, Indexing, MAX_HEADER_LIST};
pub use output::Output;
pub use request::{Request, Scheme};
pub use stream::StreamKey;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! A TLS 1.3 client (RFC 8446) for microcontrollers: without I/O, without an allocator, without unsafe
//! code.
//!
//! It offers one of each: key exchange on P-256, SHA-256, and ChaCha20-Poly1305 before AES-128-GCM. Nothing
//! older than TLS 1.3 is spoken, nothing is renegotiated, no data is sent early. Comments name the section
//! of RFC 8446 that they obey (`§4.1.3`), or another RFC by its number.
//!
//! Read these first:
//! - [`Handshake`] brings a server to prove who it is. It cannot carry data, so nothing of an application's
//!   can
//!   reach a server that has not.
//! - [`Connection`] is what comes of it, and carries data.
//!
//! Both are driven alike. `step` or `poll` says what is to be done next with the transport: send what has
//! been written into the caller's buffer, or read into [`Handshake::space`]. Neither ever waits.
//!
//! # Around these
//! - [`Config`]: whom to trust, by what name, and as whom to come ([`Identity`]).
//! - [`Seed`]: 32 bytes of true randomness for each connection; without them there is none.
//! - [`Time`]: what is known of the time, exactly or at least.
//! - [`Ticket`]: what makes the next handshake with the same server cheap.
//! - [`Facts`]: what a certificate says of itself, such as when it is over.
//! - [`Error`]: what went wrong and what to do about it. [`Handshake::farewell`] tells the server.
#![no_std]
#![forbid(unsafe_code)]
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

mod alert;
mod bytes;
mod certificate;
mod chacha20_poly1305;
mod client_auth;
mod config;
mod connection;
mod error;
mod extension;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod hello;
mod hkdf;
mod inbox;
mod keys;
mod limits;
mod message;
mod outbox;
mod proof;
mod protection;
mod record;
mod seed;
mod server_hello;
mod ticket;
#[cfg(test)]
mod traces;

pub use alert::Alert;
pub use certificate::{Facts, KeyKind, Refusal, Shown};
pub use client_auth::{Identity, IdentityError};
pub use config::{Config, ConfigError, Time};
pub use connection::{Connection, Event};
pub use error::{Error, Violation};
pub use handshake::{Handshake, Step};
pub use limits::{ANY_RECORD, MAX_DATA, MIN_BUFFER, OVERHEAD, RECORD_HEADER};
pub use protection::Suite;
pub use seed::{NoEntropy, Seed};
pub use ticket::Ticket;

/// The example of the README is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

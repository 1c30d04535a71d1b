//! The async shell around `picokube-core`: it does what the core decides.
//!
//! Nothing here knows a board, a chip or an executor. The network is anything that implements
//! [`embedded_nal_async::TcpConnect`]; time is [`embassy_time`], which runs on chips and on a PC.
//!
//! Read these first:
//! - [`Client`]: sends one request at a time and hands its response on. Over `http://` it has a
//!   [`Connection`] of its own; over `https://` it is a [`Stream`] of the one [`Session`] that all share.
//! - [`Connection`]: one HTTP/1.1 connection that is opened when needed, kept alive, bounded in
//!   memory and time, and opened again, with back-off, after it broke.
//! - [`Session`]: one HTTP/2 connection over whatever [`Secure`] opens, with the same promises for each of
//!   its streams. [`tls`](mod@tls) (feature `tls`) is the way to do that on a microcontroller.
//! - [`runtime`]: a manager of the core's, with its watches and requests carried out by such clients.
//! - [`status`]: the pages that tell how such a manager is doing.
//!
//! Firmware on `embassy-net` gets its [`TcpConnect`](embedded_nal_async::TcpConnect) from
//! `sockets` (feature `embassy-net`).
#![no_std]
#![forbid(unsafe_code)]

mod client;
mod connection;
mod error;
mod exchange;
mod framing;
mod notify;
mod outgoing;
mod pause;
pub mod planted;
pub mod runtime;
mod secure;
mod session;
#[cfg(feature = "embassy-net")]
pub mod sockets;
pub mod status;
#[cfg(feature = "tls")]
pub mod tls;
mod window;

pub use client::Client;
pub use connection::Connection;
pub use error::Error;
pub use exchange::{Observer, Patience, Receiver, Request, Server};
pub use notify::WAITING;
pub use picokube_core::manager::ResponseHead;
pub use reqwless::request::Method;
pub use secure::{Channel, Insecure, Secure, Transport};
pub use session::{Memory, STREAMS, Session, SessionCounts, Stream};

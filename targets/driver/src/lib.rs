//! The async shell around `picokube-core`: it does what the core decides.
//!
//! Nothing here knows a board, a chip or an executor. The network is anything that implements
//! [`embedded_nal_async::TcpConnect`]; time is [`embassy_time`], which runs on chips and on a PC.
//!
//! Read these first:
//! - [`Connection`]: one HTTP/1.1 connection that is opened when needed, kept alive, bounded in
//!   memory and time, and opened again, with back-off, after it broke.
//! - [`runtime`]: a manager of the core's, with its watches and requests carried out over such
//!   connections.
//! - [`status`]: the pages that tell how such a manager is doing.
//!
//! Firmware on `embassy-net` gets its [`TcpConnect`](embedded_nal_async::TcpConnect) from
//! `sockets` (feature `embassy-net`).
#![no_std]
#![forbid(unsafe_code)]

mod connection;
mod error;
mod framing;
mod notify;
mod outgoing;
pub mod runtime;
#[cfg(feature = "embassy-net")]
pub mod sockets;
pub mod status;
mod window;

pub use connection::{Buffer, Connection, Observer, Patience, Receiver, Request, Server};
pub use error::Error;
pub use notify::WAITING;
pub use picokube_core::manager::ResponseHead;
pub use reqwless::request::Method;

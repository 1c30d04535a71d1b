//! JSON in bounded memory: read, digested and written as it streams by.
//!
//! Read [`Tokenizer`] and [`Handler`] first: bytes go in at one end, events come out at the other.

mod digest;
mod error;
mod event;
mod number;
mod scan;
mod tokenizer;

pub use digest::Digest;
pub use error::{Error, Reason};
pub use event::{Event, Fragment, Handler, Step};
pub use tokenizer::{MAX_DEPTH, Tokenizer};

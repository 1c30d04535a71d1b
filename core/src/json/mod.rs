//! JSON in bounded memory: read, digested and written as it streams by.
//!
//! Read [`Tokenizer`] and [`Handler`] first: bytes go in at one end, events come out at the other.

mod collect;
mod decimal;
mod digest;
mod error;
mod escape;
mod event;
mod hash;
mod shape;
mod tokenizer;
mod writer;

pub(crate) use collect::{Collected, Collector};
pub use digest::{DIGEST_DEPTH, Digest, DigestTooDeep, Digester};
pub use error::{Error, Reason};
pub use escape::Escape;
pub use event::{Event, Fragment, Handler, Step};
pub use hash::{
    Fnv1, NAME_ALPHABET, SHORT_HASH_LEN, ShortHash, encode_short_hash, fnv1a, template_hash,
};
pub use shape::{Meaning, Shape};
pub use tokenizer::{MAX_DEPTH, Tokenizer};
pub use writer::{Place, Sink, Window, Writer};

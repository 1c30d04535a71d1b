//! JSON in bounded memory: read, digested and written as it streams by.
//!
//! Read [`Tokenizer`] and [`Handler`] first: bytes go in at one end, tokens come out at the other.

mod collect;
mod decimal;
mod digest;
mod error;
mod escape;
mod hash;
mod shape;
mod token;
mod tokenizer;
mod writer;

pub(crate) use collect::{Collected, Collector};
pub use digest::{DIGEST_DEPTH, Digest, DigestTooDeep, Digester};
pub use error::{Error, ErrorReason};
pub use escape::Escape;
pub use hash::{
    Fnv1, NAME_ALPHABET, SHORT_HASH_LEN, ShortHash, encode_short_hash, fnv1a, template_hash,
};
pub use shape::{Meaning, Shape};
pub use token::{Flow, Fragment, Handler, Token};
pub use tokenizer::{MAX_DEPTH, Tokenizer};
pub use writer::{Place, Sink, Window, Writer};

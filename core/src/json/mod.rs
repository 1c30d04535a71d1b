//! JSON in bounded memory: read, digested and written as it streams by.

mod digest;

pub use digest::Digest;

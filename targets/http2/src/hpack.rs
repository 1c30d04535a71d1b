//! Header compression (RFC 7541): a reader without a table, and a writer that uses the server's.
//!
//! The two directions have nothing in common but the Huffman code. What comes in is read by a [`Decoder`],
//! which keeps of each block what a [`Head`] has; what goes out is written by an [`Encoder`], which knows
//! what the server remembers.

mod decode;
mod encode;
pub mod huffman;

pub use decode::{Compression, Decoder, Fault, Head, MAX_HEADER_LIST};
pub use encode::{Encoder, Field, Indexing};

/// The number of entries of the static table (RFC 7541 appendix A). What comes after it is dynamic.
const STATIC_ENTRIES: u32 = 61;
/// What an entry of a table takes besides its name and value (§4.1).
const ENTRY_OVERHEAD: u32 = 32;

//! Who the server is: its certificates, and the signature by which it shows that they are its own.

mod algorithms;
mod der;
mod facts;
mod fields;
mod path;
mod refusal;
mod rsa;

pub(crate) use algorithms::{ECDSA_SECP256R1_SHA256, SCHEMES, is_signature};
pub use facts::Facts;
pub(crate) use fields::Fields;
pub use fields::KeyKind;
pub(crate) use path::verify;
pub use refusal::{Refusal, Shown};
#[cfg(feature = "fuzzing")]
pub(crate) use rsa::{ALL as RSA, Rsa};

/// What is left of a server's certificates after they have been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// When the server's own is over, in seconds since 1970.
    pub(crate) expires: u64,
}

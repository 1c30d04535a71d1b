//! The elector against one Lease: what upstream's tests of leader election say, and what follows from the
//! rules they stand for.

mod health;
mod lease;
mod reader;
mod release;
mod renewing;
mod trying;

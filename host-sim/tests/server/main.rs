//! The real binary over real sockets: concurrency, durability, limits and security.

mod concurrency;
mod durability;
mod limits;
mod security;
mod support;

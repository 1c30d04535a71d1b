//! The real binary over real sockets: concurrency, durability, limits and security.

mod certificates;
mod commands;
mod concurrency;
mod crowding;
mod durability;
mod files;
mod hosts;
mod http2;
mod limits;
mod logs;
mod patches;
mod security;
mod support;

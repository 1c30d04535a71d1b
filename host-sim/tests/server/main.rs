//! The real binary over real sockets: concurrency, durability, limits and security.

mod commands;
mod concurrency;
mod crowding;
mod durability;
mod files;
mod hosts;
mod limits;
mod logs;
mod patches;
mod security;
mod support;

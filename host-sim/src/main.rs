//! The `picokube` command.
fn main() {}

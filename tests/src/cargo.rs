//! cargo, as a user would start it in the workspace.

use std::path::Path;
use std::process::Command;

#[path = "../../xtask/src/cargo.rs"]
mod anywhere;

/// cargo in the workspace, which builds nothing anew that is built already.
pub fn cargo() -> Command {
    anywhere::cargo(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

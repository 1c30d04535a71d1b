//! cargo, as a user would start it.

use std::path::Path;
use std::process::Command;

/// cargo in a folder, without what the cargo that started us has told of our own package.
///
/// Build scripts that look at those variables would run anew, and all that depends on them would be
/// built anew: each time, because the next cargo tells something else.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    as_a_user(&mut cargo).current_dir(folder);
    cargo
}

/// Takes away what the cargo or the test run that started us has told.
pub(crate) fn as_a_user(cargo: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let is_told = |name: &str| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR", "RUSTC_BOOTSTRAP"]
                .iter()
                .any(|told| name.starts_with(told))
        };
        if name.to_str().is_some_and(is_told) {
            cargo.env_remove(name);
        }
    }
    cargo
}

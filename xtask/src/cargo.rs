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

/// Lets clippy have a look at the workspace's own crates while cargo compiles them, as `cargo clippy` does
/// without compiling: what depends on them needs no second look at everything. Warnings are errors.
///
/// clippy's compiler leaves optimisation to LLVM alone, so this is not for what is to be fast.
pub(crate) fn with_clippy(cargo: &mut Command) -> &mut Command {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", ["--deny", "warnings", ""].join("__CLIPPY_HACKERY__"))
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

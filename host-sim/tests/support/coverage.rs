//! What a test has tried in the simulation, for the summary of a whole test run.

use std::path::PathBuf;
use std::{env, fs};

use picokube::sim::Tally;

/// Keeps what was tried under a name, if somebody wants to know.
pub(crate) fn keep(name: &str, tally: &Tally) {
    let Some(folder) = env::var_os("PICOKUBE_COVERAGE").map(PathBuf::from) else { return };
    fs::create_dir_all(&folder).expect("a folder for what was tried");
    fs::write(folder.join(name), tally.tried()).expect("a place for what was tried");
}

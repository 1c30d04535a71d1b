//! Where a test run begins to count: every commit tries something that none before it has.

use std::env;
use std::process::Command;

/// As many seeds as there may be hexadecimal digits of a commit in them: 28 bits.
const DIGITS: usize = 7;

/// The number that a variable names, or else one that follows from the commit at hand; and how that is
/// repeated. What is not under version control begins with 0.
pub(crate) fn beginning(variable: &str) -> (u64, String) {
    let asked = env::var(variable).ok().map(|number| number.parse().expect(variable));
    let number = asked.or_else(of_commit).unwrap_or(0);
    (number, format!("{variable}={number}"))
}

fn of_commit() -> Option<u64> {
    let mut git = Command::new("git");
    // Whoever tests need not be who has cloned.
    git.args(["-c", "safe.directory=*", "rev-parse", "HEAD"]);
    let head = git.current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?.stdout;
    let digits = std::str::from_utf8(&head).ok()?.get(..DIGITS)?;
    u64::from_str_radix(digits, 16).ok()
}

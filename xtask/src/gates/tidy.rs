//! Rules that need no compiler.
//!
//! What clippy can check better (no `unwrap`, no indexing in core) is left to clippy; here it is
//! only checked that each crate keeps its promise to switch those lints on.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace;

/// rustfmt keeps code to 100 columns; strings and comments it leaves alone.
const MAX_COLUMNS: usize = 110;
/// A file that is longer has more than one concept inside.
const MAX_LINES: usize = 600;

/// What a crate promises in its `lib.rs` or `main.rs`.
const PROMISES: [(&str, &[&str]); 4] = [
    ("core/src/lib.rs", &NEVER_STOPS),
    ("targets/driver/src/lib.rs", &["#![no_std]", "#![forbid(unsafe_code)]"]),
    ("targets/http2/src/lib.rs", &NEVER_STOPS),
    ("tests/first-light/src/lib.rs", &["#![no_std]", "#![forbid(unsafe_code)]"]),
];

/// Of a crate that nothing that comes in can stop.
const NEVER_STOPS: [&str; 7] = [
    "#![no_std]",
    "#![forbid(unsafe_code)]",
    "clippy::unwrap_used",
    "clippy::expect_used",
    "clippy::panic",
    "clippy::unreachable",
    "clippy::indexing_slicing",
];

/// Checks every source file of the workspace at `root`.
pub(super) fn check(root: &Path) -> Result<String> {
    let mut findings = Vec::new();
    let mut checked = 0;
    for path in workspace::files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            checked += 1;
            findings.extend(check_file(&name, &fs::read_to_string(&path)?));
        }
    }
    for (name, promises) in PROMISES {
        let source = fs::read_to_string(root.join(name))?;
        findings.extend(check_promises(name, &source, promises));
    }
    if findings.is_empty() {
        return Ok(format!("{checked} source files are tidy"));
    }
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    bail!("{} findings:\n{}", list.len(), list.join("\n"))
}

/// Something that breaks a rule, and where.
#[derive(Debug, PartialEq)]
struct Finding {
    file: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

fn check_file(name: &str, source: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find =
        |line: usize, what: String| findings.push(Finding { file: name.to_owned(), line, what });
    let lines = source.lines().count();
    if lines > MAX_LINES {
        find(lines, format!("{lines} lines, more than {MAX_LINES}: split it by concept"));
    }
    if !source.starts_with("//!") && !source.starts_with("#![") {
        find(1, "no module documentation (`//!`) at the top".to_owned());
    }
    for (index, line) in source.lines().enumerate() {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS && !line.contains("://") {
            find(index + 1, format!("{columns} columns, more than {MAX_COLUMNS}"));
        }
        if line.ends_with([' ', '\t']) {
            find(index + 1, "white space at the end of the line".to_owned());
        }
        for (banned, why) in banned_words() {
            if line.contains(&banned) {
                find(index + 1, format!("`{banned}`: {why}"));
            }
        }
    }
    findings
}

/// Put together at run time, so that this file does not contain them.
fn banned_words() -> [(String, &'static str); 8] {
    [
        (["to", "do!("].concat(), "nothing lands unfinished"),
        (["unimple", "mented!("].concat(), "nothing lands unfinished"),
        (["db", "g!("].concat(), "a debugging aid"),
        (["#[ig", "nore"].concat(), "a test that does not run proves nothing"),
        (["allow(de", "ad_code)"].concat(), "delete it instead"),
        (["allow(un", "used"].concat(), "delete it instead"),
        (["TO", "DO"].concat(), "do it, or open an issue"),
        (["FIX", "ME"].concat(), "fix it, or open an issue"),
    ]
}

fn check_promises(name: &str, source: &str, promises: &[&str]) -> Vec<Finding> {
    let broken = promises.iter().filter(|promise| !source.contains(**promise));
    broken
        .map(|promise| Finding {
            file: name.to_owned(),
            line: 1,
            what: format!("promises `{promise}` and does not have it"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str) -> Vec<String> {
        check_file("a.rs", source).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_tidy_file_passes() {
        assert_eq!(findings("//! A file.\n\nfn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn every_rule_can_be_broken() {
        assert_eq!(findings("fn f() {}\n").len(), 1, "no documentation");
        assert_eq!(findings(&format!("//! {}\n", "x".repeat(MAX_COLUMNS))).len(), 1, "long line");
        assert_eq!(findings(&format!("//! A.\n{}", "\n".repeat(MAX_LINES))).len(), 1, "long file");
        assert_eq!(findings("//! A. \n").len(), 1, "trailing space");
        for (word, _) in banned_words() {
            assert_eq!(findings(&format!("//! A.\n{word}\n")).len(), 1, "{word}");
        }
    }

    #[test]
    fn a_crate_that_drops_its_promise_is_found() {
        let promises = ["#![forbid(unsafe_code)]"];
        assert_eq!(check_promises("a.rs", "#![forbid(unsafe_code)]\n", &promises), []);
        assert_eq!(check_promises("a.rs", "#![no_std]\n", &promises).len(), 1);
    }
}

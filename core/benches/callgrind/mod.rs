//! Instructions that a case of a bench takes, counted by valgrind: the bench runs itself.

use std::process::Command;

/// The numbers that this process was started with, if it is to run a case and nothing else.
pub(crate) fn asked_to_run() -> Option<Vec<usize>> {
    let mut arguments = std::env::args().skip(1);
    let is_asked = arguments.next().is_some_and(|flag| flag == "--run");
    is_asked.then(|| arguments.map(|number| number.parse().expect("a number")).collect())
}

/// Whether instructions can be counted here. If not, says why.
pub(crate) fn is_there() -> bool {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("valgrind is not installed: nothing is counted");
    }
    is_there
}

/// Counts the instructions of this program when it is [asked to run](asked_to_run) these.
pub(crate) fn count(numbers: &[usize]) -> u64 {
    let this = std::env::current_exe().expect("the path of this program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .arg("--run")
        .args(numbers.iter().map(usize::to_string))
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{numbers:?} failed:\n{text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    collected.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

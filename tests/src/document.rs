//! A document whose commands are run: what stands in it is what was tried.
//!
//! Each block of shell commands has a comment before it that says what becomes of it:
//!
//! - `<!-- run -->`: runs, and has to end well;
//! - `<!-- run: NAME -->`: the same, in one of several ways that the document describes;
//! - `<!-- started -->`: starts, and goes on until the end;
//! - `<!-- not run: WHY -->`: cannot be run in a test.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::following::Following;

/// A block of shell commands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    fate: Fate,
    commands: String,
}

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Run,
    RunIf(String),
    Started,
    NotRun,
}

/// Runs the commands of a document in a folder, in one of the ways that it describes; `prepare` tells a shell
/// what the document leaves open. Gives how many blocks ran.
pub fn run(
    document: &str,
    way: &str,
    folder: &Path,
    prepare: impl Fn(&mut Command),
) -> Result<usize> {
    let mut count = 0;
    let mut going_on = Vec::new();
    for Block { fate, commands } in blocks(document)? {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &commands]).current_dir(folder);
        prepare(&mut shell);
        match fate {
            Fate::NotRun => continue,
            Fate::RunIf(wanted) if wanted != way => continue,
            Fate::Started => {
                // The command itself, without a shell that would outlive it.
                let mut shell = Command::new("sh");
                shell.args(["-eu", "-c", &format!("exec {commands}")]).current_dir(folder);
                prepare(&mut shell);
                going_on.push(Following::start(shell)?);
            }
            Fate::Run | Fate::RunIf(_) => {
                let output = shell.stdin(Stdio::null()).output()?;
                ensure!(
                    output.status.success(),
                    "these commands failed:\n{commands}\n{}{}",
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        count += 1;
    }
    Ok(count)
}

fn blocks(document: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut comment = None;
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            let commands: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let commands = commands.join("\n");
            let comment = comment.with_context(|| format!("what about this?\n{commands}"))?;
            blocks.push(Block { fate: fate(comment)?, commands });
        }
        comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    }
    Ok(blocks)
}

fn fate(comment: &str) -> Result<Fate> {
    match comment.split_once(": ") {
        None if comment == "run" => Ok(Fate::Run),
        None if comment == "started" => Ok(Fate::Started),
        Some(("run", way)) => Ok(Fate::RunIf(way.to_owned())),
        Some(("not run", _)) => Ok(Fate::NotRun),
        _ => bail!("<!-- {comment} --> says not what becomes of the block after it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_a_fate() {
        let text = "<!-- run -->\n```sh\na\nb\n```\ntext\n<!-- run: x -->\n```sh\nc\n```\n";
        let block = |fate, commands: &str| Block { fate, commands: commands.to_owned() };
        let expected = [block(Fate::Run, "a\nb"), block(Fate::RunIf("x".to_owned()), "c")];
        assert_eq!(blocks(text).unwrap(), expected);
        assert!(blocks("```sh\na\n```\n").is_err(), "nobody said anything");
        assert!(blocks("<!-- not run -->\n```sh\na\n```\n").is_err(), "why not?");
        assert!(blocks("<!-- run -->\n\n```sh\na\n```\n").is_err(), "too far away");
    }

    #[test]
    fn what_fails_is_told_and_other_ways_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let run = |text: &str| run(text, "x", folder.path(), |_| {});
        let text = "<!-- run: x -->\n```sh\necho > a\n```\n<!-- run: y -->\n```sh\nfalse\n```\n";
        assert_eq!(run(text).unwrap(), 1);
        assert!(folder.path().join("a").exists());
        let error = run("<!-- run -->\n```sh\nfalse\ntrue\n```\n").unwrap_err();
        assert!(error.to_string().contains("false"), "{error}");
    }
}

//! Running other programs.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs a command with its output shown; fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = describe(command);
    let status = command.status().with_context(|| format!("cannot run `{name}`"))?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// Runs a command with its output shown and hands every line of it to `see`.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let name = describe(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{name}`"))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            see(&line);
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// Runs a command and returns what it prints; fails, with its errors, if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = describe(command);
    let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{name}` failed ({}):\n{errors}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` printed no text"))
}

/// Whether a program can be started by its name.
pub(crate) fn exists(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").output();
    probe.is_ok()
}

/// The command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

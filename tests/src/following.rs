//! A command that goes on printing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::picokube::PATIENCE;

/// A command that goes on printing. It ends when it is dropped.
pub struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    /// Starts a command. What it prints and what it complains about are read as one.
    pub fn start(mut command: Command) -> Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, lines) = channel();
        read_lines(child.stdout.take().context("no output")?, sender.clone());
        read_lines(child.stderr.take().context("no output")?, sender);
        Ok(Self { child, lines })
    }

    /// Reads on until a line contains all of `words`; gives that line.
    pub fn line_with(&self, words: &[&str]) -> Result<String> {
        let give_up = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                bail!("no line with {words:?}, but these:\n{}", seen.join("\n"));
            };
            if words.iter().all(|word| line.contains(word)) {
                return Ok(line);
            }
            seen.push(line);
        }
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Whether a line comes, or has come, soon.
    pub fn line_soon(&self) -> bool {
        self.lines.recv_timeout(Duration::from_millis(100)).is_ok()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) -> Result<()> {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &process]).status()?;
        ensure!(sent.success(), "cannot interrupt process {process}");
        Ok(())
    }

    /// Waits for the end; says whether the command was content with itself.
    pub fn ends_well(mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }

    /// Waits for the end of a command that has to fail; gives what it has printed.
    pub fn fails(mut self) -> Result<String> {
        let give_up = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        // Both outputs are closed when the command ends.
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("it does not end, but says:\n{}", said.join("\n"))
                }
            }
        }
        let said = said.join("\n");
        let ended = self.child.wait()?;
        ensure!(!ended.success(), "it did not fail, but said:\n{said}");
        Ok(said)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(output: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

//! A command that goes on printing.

use std::cell::RefCell;
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
    /// What has been read, oldest first.
    said: RefCell<Vec<String>>,
}

impl Following {
    /// Starts a command. What it prints and what it complains about are read as one.
    pub fn start(mut command: Command) -> Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, lines) = channel();
        read_lines(child.stdout.take().context("no output")?, sender.clone());
        read_lines(child.stderr.take().context("no output")?, sender);
        Ok(Self { child, lines, said: RefCell::default() })
    }

    /// Reads on until a line contains all of `words`; gives that line.
    pub fn line_with(&self, words: &[&str]) -> Result<String> {
        let give_up = Instant::now() + PATIENCE;
        let begin = self.said.borrow().len();
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let said = self.said.borrow();
                let unread = said.get(begin..).unwrap_or_default().join("\n");
                bail!("no line with {words:?}, but these:\n{unread}");
            };
            self.said.borrow_mut().push(line.clone());
            if contains_all(&line, words) {
                return Ok(line);
            }
        }
    }

    /// A line that contains all of `words`, whether it has been read or is still to come: for what several
    /// parts of the command say, in an order that nobody promises.
    pub fn line_ever_with(&self, words: &[&str]) -> Result<String> {
        let said = self.said.borrow().iter().find(|line| contains_all(line, words)).cloned();
        said.map_or_else(|| self.line_with(words), Ok)
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

fn contains_all(line: &str, words: &[&str]) -> bool {
    words.iter().all(|word| line.contains(word))
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

//! The log of a firmware, as `picokube-log` decodes it.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result};

use crate::image::Image;

/// The decoder: a program of its own, see its manifest.
pub const DECODER: &str = "picokube-log";

/// Names another place for the decoder than beside this program.
const PLACE: &str = "PICOKUBE_LOG_DECODER";

/// Decodes what `output` says. The lines end when it does.
pub(crate) fn decode(image: &Image, output: ChildStdout) -> Result<Receiver<Line>> {
    let decoder = place()?;
    let mut process = Command::new(&decoder)
        .arg(image.path())
        .stdin(Stdio::from(output))
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| {
            let place = decoder.display();
            format!("cannot start {place}: `cargo build --package {DECODER}` builds it")
        })?;
    let decoded = process.stdout.take().context("the decoder has no output")?;
    let (sender, lines) = channel();
    thread::spawn(move || pass_on(process, decoded, &sender));
    Ok(lines)
}

/// Beside this program or, for a test, beside the programs of its build.
fn place() -> Result<PathBuf> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Ok(place.into());
    }
    let program = std::env::current_exe().context("where is this program?")?;
    let mut folders = program.ancestors().skip(1).take(2).map(|folder| folder.join(DECODER));
    let beside = program.with_file_name(DECODER);
    Ok(folders.find(|decoder| decoder.exists()).unwrap_or(beside))
}

/// Passes lines on until there are no more or nobody listens.
fn pass_on(mut process: Child, decoded: ChildStdout, lines: &Sender<Line>) {
    for line in BufReader::new(decoded).lines().map_while(Result::ok) {
        if line.parse().is_ok_and(|line| lines.send(line).is_err()) {
            break;
        }
    }
    // It has nothing left to read or to say.
    let _ = process.wait();
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    fn named(name: &str) -> Self {
        match name {
            "trace" => Self::Trace,
            "debug" => Self::Debug,
            "warn" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Info,
        }
    }
}

/// One line of the firmware's log.
#[derive(Clone, Debug)]
pub struct Line {
    /// Time since the boot, as the firmware's clock has it.
    pub time: String,
    /// How much it matters.
    pub level: Level,
    /// The text.
    pub message: String,
}

impl FromStr for Line {
    type Err = ();

    fn from_str(decoded: &str) -> Result<Self, ()> {
        let mut parts = decoded.splitn(3, '\t');
        let (Some(time), Some(level), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(());
        };
        let message = unescape(text);
        Ok(Self { time: time.to_owned(), level: Level::named(level), message })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, level, message } = self;
        let level = match level {
            Level::Trace => "TRACE",
            Level::Debug => "DEBUG",
            Level::Info => "INFO ",
            Level::Warn => "WARN ",
            Level::Error => "ERROR",
        };
        write!(f, "{time:>12} {level} {message}")
    }
}

/// Undoes what the decoder does to keep a text on one line.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain
                .extend(chars.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped })),
            _ => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_line_is_taken_apart() {
        let line: Line = "0.002095\twarn\ta\\\\b\tc\\nd".parse().expect("a line");
        assert_eq!((line.time.as_str(), line.level), ("0.002095", Level::Warn));
        assert_eq!(line.message, "a\\b\tc\nd");
        assert!("no tabs".parse::<Line>().is_err());
    }
}

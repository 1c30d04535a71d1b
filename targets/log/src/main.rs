//! `picokube-log ELF`: decodes the log of a firmware, from standard input to standard output.
//!
//! The strings of log lines stay in the ELF file; the firmware sends numbers. A line comes out for
//! each that comes in: its time, its level and its text, with tabs between. Line ends and backslashes
//! in the text are escaped.

use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use defmt_decoder::{DecodeError, Frame, StreamDecoder, Table};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: picokube-log ELF < BYTES")?;
    let elf = std::fs::read(&path).with_context(|| format!("cannot read firmware {path}"))?;
    let table = Table::parse(&elf).with_context(|| format!("{path}: broken log table"))?;
    let table = table.with_context(|| format!("{path} has no log table: is it firmware?"))?;
    decode(table.new_stream_decoder().as_mut(), std::io::stdin().lock(), std::io::stdout().lock())
}

/// Decodes until the input ends.
fn decode(decoder: &mut dyn StreamDecoder, mut from: impl Read, mut to: impl Write) -> Result<()> {
    let mut bytes = [0; 1024];
    loop {
        let len = from.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        decoder.received(bytes.get(..len).unwrap_or_default());
        loop {
            match decoder.decode() {
                Ok(frame) => to.write_all(line(&frame).as_bytes())?,
                Err(DecodeError::UnexpectedEof) => break,
                // A damaged frame: the encoding finds the start of the next one by itself.
                Err(DecodeError::Malformed) => {}
            }
        }
        // Somebody watches.
        to.flush()?;
    }
}

fn line(frame: &Frame<'_>) -> String {
    let time = frame.display_timestamp().map(|time| time.to_string()).unwrap_or_default();
    let level = frame.level().map_or("info", |level| level.as_str());
    let text = frame.display_message().to_string().replace('\\', "\\\\").replace('\n', "\\n");
    format!("{time}\t{level}\t{text}\n")
}

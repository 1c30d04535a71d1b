//! A firmware image and the meaning of its log.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use defmt_decoder::{DecodeError, StreamDecoder, Table};
use object::{Object, ObjectSymbol};

/// What memory maps call the configuration page.
const PAGE: &str = "_config";

/// A linked firmware.
pub struct Image {
    path: PathBuf,
    table: Table,
    /// The address of the configuration page.
    page: Option<u64>,
}

impl Image {
    /// Reads the ELF file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let elf = std::fs::read(path).with_context(|| format!("cannot read firmware {name}"))?;
        let table = Table::parse(&elf).with_context(|| format!("{name}: broken log table"))?;
        let table = table.with_context(|| format!("{name} has no log table: is it firmware?"))?;
        let page = object::File::parse(&*elf)?.symbol_by_name(PAGE).map(|symbol| symbol.address());
        Ok(Self { path: path.to_owned(), table, page })
    }

    /// Where the ELF file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of the flash that is set aside for the configuration page.
    pub fn configuration_page(&self) -> Result<u64> {
        let name = self.path.display();
        self.page.with_context(|| format!("the memory map of {name} has no configuration page"))
    }

    /// A decoder for one boot's log.
    pub(crate) fn decoder(&self) -> Box<dyn StreamDecoder + Send + Sync + '_> {
        self.table.new_stream_decoder()
    }
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

/// Decodes what can be decoded of the bytes received so far.
pub(crate) fn next_line(decoder: &mut dyn StreamDecoder) -> Option<Line> {
    loop {
        match decoder.decode() {
            Ok(frame) => {
                let time = frame.display_timestamp().map(|time| time.to_string());
                return Some(Line {
                    time: time.unwrap_or_default(),
                    level: frame.level().map_or(Level::Info, |level| Level::named(level.as_str())),
                    message: frame.display_message().to_string(),
                });
            }
            Err(DecodeError::UnexpectedEof) => return None,
            // A damaged frame: the encoding finds the start of the next one by itself.
            Err(DecodeError::Malformed) => {}
        }
    }
}

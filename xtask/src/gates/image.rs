//! What is in a firmware image.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{SectionFlags, SegmentFlags, SymbolKind};
use rustc_demangle::demangle;

/// Where RAM begins on every Cortex-M.
const RAM: u64 = 0x2000_0000;

/// Crates that are one part to whoever asks where flash went. All others are parts of their own.
const TOGETHER: [(&str, &[&str]); 4] = [
    ("picokube_firmware", &["picokube_config", "picokube_mps2_an386"]),
    ("network", &["embassy_net", "smoltcp", "embassy_sync", "embassy_time"]),
    // A task is all that it awaits, whoever wrote it.
    ("tasks", &["embassy_executor"]),
    ("HTTP", &["reqwless", "httparse", "nourl", "embedded_io_async", "buffered_io"]),
];

/// Parts smaller than this are one.
const SMALL: u64 = 1_024;

/// An image, in bytes.
pub(super) struct Image {
    /// What is flashed, also the initial values of RAM.
    pub(super) flash: u64,
    /// What is taken of RAM before anything runs.
    pub(super) static_ram: u64,
    /// Of that, what is copied from flash because it does not start as zero.
    pub(super) copied: u64,
    /// What each part takes of flash.
    pub(super) parts: BTreeMap<String, u64>,
}

impl Image {
    pub(super) fn measure(elf: &[u8]) -> Result<Self> {
        let file = object::File::parse(elf).context("the firmware is no ELF file")?;
        let flash = loaded(&file).map(|bytes| bytes.len() as u64).sum();
        let in_ram = |flags| matches!(flags, SectionFlags::Elf { sh_flags } if sh_flags & 2 != 0);
        let sections = || {
            file.sections().filter(|section| section.address() >= RAM && in_ram(section.flags()))
        };
        let copied = sections().filter(|section| section.name() == Ok(".data"));
        Ok(Self {
            flash,
            static_ram: sections().map(|section| section.size()).sum(),
            copied: copied.map(|section| section.size()).sum(),
            parts: parts(&file, flash),
        })
    }
}

/// Fails if what is flashed tells of a folder of this machine.
pub(super) fn check_folders(elf: &[u8], folders: &[String]) -> Result<()> {
    let file = object::File::parse(elf).context("the firmware is no ELF file")?;
    for folder in folders.iter().filter(|folder| folder.len() > 1) {
        let tells =
            |bytes: &[u8]| bytes.windows(folder.len()).any(|text| text == folder.as_bytes());
        ensure!(
            !loaded(&file).any(tells),
            "the image tells where it was built: {folder} is in it, and with another home it would have \
             another size"
        );
    }
    Ok(())
}

/// What is flashed.
fn loaded<'d>(file: &object::File<'d>) -> impl Iterator<Item = &'d [u8]> {
    let segments: Vec<&[u8]> = file
        .segments()
        .filter(|segment| matches!(segment.flags(), SegmentFlags::Elf { .. }))
        .filter_map(|segment| segment.data().ok())
        .collect();
    segments.into_iter()
}

fn parts(file: &object::File<'_>, flash: u64) -> BTreeMap<String, u64> {
    let mut parts = BTreeMap::<String, u64>::new();
    for symbol in file.symbols().filter(|symbol| symbol.address() < RAM) {
        if let (SymbolKind::Text | SymbolKind::Data, Ok(name)) = (symbol.kind(), symbol.name()) {
            *parts.entry(part(name)).or_default() += symbol.size();
        }
    }
    let (mut parts, small): (BTreeMap<_, _>, BTreeMap<_, _>) =
        parts.into_iter().partition(|(_, size)| *size >= SMALL);
    parts.insert("small parts".to_owned(), small.values().sum());
    let named: u64 = parts.values().sum();
    parts.insert("without a name".to_owned(), flash.saturating_sub(named));
    parts
}

/// Which part a symbol is of: the first crate in its name that is not the standard library.
fn part(symbol: &str) -> String {
    if symbol.starts_with("OUTLINED_FUNCTION") {
        return "outlined code".to_owned();
    }
    let name = format!("{:#}", demangle(symbol));
    let is_of_name = |character: char| character.is_alphanumeric() || "_:".contains(character);
    let mut crates = name.split(|character| !is_of_name(character)).filter_map(|path| {
        let (first, _) = path.split_once("::")?;
        (!first.is_empty()).then_some(first)
    });
    let first = crates.find(|name| !["core", "compiler_builtins"].contains(name));
    let Some(first) = first else {
        return if name.contains("::") { "libcore".to_owned() } else { "small parts".to_owned() };
    };
    let together = TOGETHER.iter().find(|(_, crates)| crates.contains(&first));
    together.map_or(first, |(part, _)| part).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_of_the_first_crate_that_it_names() {
        for (symbol, expected) in [
            ("_ZN13picokube_core5store5table4find17h0123456789abcdefE", "picokube_core"),
            ("_ZN7smoltcp5iface9interface17h0123456789abcdefE", "network"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "libcore"),
            ("OUTLINED_FUNCTION_17", "outlined code"),
            ("memcpy", "small parts"),
        ] {
            assert_eq!(part(symbol), expected, "{symbol}");
        }
    }

    #[test]
    fn a_program_that_names_a_folder_is_found() {
        let this = std::env::current_exe().and_then(std::fs::read).expect("this program");
        assert!(
            check_folders(&this, &["/no/such/folder/anywhere".to_owned().to_uppercase()]).is_ok()
        );
        let named = concat!(env!("CARGO_MANIFEST_DIR"), "/named");
        assert!(std::hint::black_box(named).ends_with("named"));
        assert!(check_folders(&this, &[named.to_owned()]).is_err());
    }
}

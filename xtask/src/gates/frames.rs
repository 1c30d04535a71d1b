//! No frame of the stack is larger than what lies below the stack.
//!
//! The guard below the stack turns an overflow into a fault only if the stack cannot step over it. A frame
//! larger than the guard and the reserve together would reach the variables behind them without a word.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use rustc_demangle::demangle;

use super::thumb::{self, Code};

/// Where the size of the guard is decided.
const GUARD: &str = "targets/firmware/src/stack.rs";

/// How many frames the table shows.
const SHOWN: usize = 5;

/// The largest frame of each function, by its name.
#[derive(Default)]
pub(super) struct Frames(BTreeMap<String, Frame>);

/// The ordering is by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    bytes: u64,
    /// Of the function: all tasks have the same name.
    address: u64,
}

impl Frames {
    /// Adds the functions of an image.
    pub(super) fn add(&mut self, elf: &[u8]) -> Result<()> {
        let file = object::File::parse(elf).context("the firmware is no ELF file")?;
        let symbols = file.symbols().filter_map(|symbol| {
            let is_function = symbol.kind() == SymbolKind::Text;
            Some(Symbol {
                name: symbol.name().ok()?,
                address: symbol.address(),
                size: symbol.size(),
                is_function,
            })
        });
        let symbols: Vec<_> = symbols.collect();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            self.add_section(section.address(), section.data()?, &symbols)?;
        }
        Ok(())
    }

    /// Adds the functions of a section that is at `start`.
    fn add_section(&mut self, start: u64, bytes: &[u8], symbols: &[Symbol<'_>]) -> Result<()> {
        for Function { name, code: range, constants } in functions(symbols, start, bytes.len()) {
            let address = start + range.start as u64;
            let code = Code { bytes: bytes.get(range).unwrap_or_default(), constants };
            let frame = thumb::frame(&code);
            let frame = frame.with_context(|| {
                format!("{name} has a frame whose size is known only while it runs")
            })?;
            let frame = Frame { bytes: frame.into(), address };
            let largest = self.0.entry(name).or_default();
            *largest = frame.max(*largest);
        }
        Ok(())
    }

    /// A table of the largest frames; an error if one is larger than `guard` and than its exception, or if an
    /// exception is not needed.
    pub(super) fn judge(&self, guard: u64, exceptions: &BTreeMap<String, u64>) -> Result<String> {
        let mut table = format!("{:>7} {:>7}  largest stack frames\n", "used", "limit");
        let mut errors = String::new();
        let mut frames: Vec<_> = self.0.iter().collect();
        frames.sort_by_key(|(name, frame)| (std::cmp::Reverse(frame.bytes), *name));
        for (n, (name, frame)) in frames.into_iter().enumerate() {
            let limit = exceptions.get(name).copied().unwrap_or(guard);
            let Frame { bytes, address } = *frame;
            let is_over = bytes > limit;
            if n < SHOWN || is_over {
                let verdict = if is_over { "  TOO LARGE" } else { "" };
                writeln!(table, "{bytes:>7} {limit:>7}  {name}{verdict}")?;
            }
            if is_over {
                let at = format!("at {address:#x}");
                writeln!(
                    errors,
                    "{name} ({at}) has a frame of {bytes} bytes; {limit} are allowed"
                )?;
            }
        }
        for name in exceptions.keys() {
            if self.0.get(name).is_none_or(|frame| frame.bytes <= guard) {
                writeln!(
                    errors,
                    "budget.toml: frames.{name:?} is no exception any more: remove it"
                )?;
            }
        }
        if !errors.is_empty() {
            bail!(
                "the stack's guard has {guard} bytes and a larger frame steps over it\n{errors}{table}"
            );
        }
        Ok(table)
    }
}

/// Bytes that may be written below the stack without harm to any variable, as the firmware's sources say.
pub(super) fn guard(root: &Path) -> Result<u64> {
    let source = fs::read_to_string(root.join(GUARD)).context(GUARD)?;
    guard_of(&source).with_context(|| format!("{GUARD} does not say how large the guard is"))
}

fn guard_of(source: &str) -> Option<u64> {
    let constant = |name: &str| {
        let line = source.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_suffix(';')?.replace('_', "").parse::<u64>().ok()
    };
    Some(constant("const RESERVE: usize = ")? + constant("const GUARD: usize = ")?)
}

/// A name in an image.
struct Symbol<'n> {
    name: &'n str,
    /// Odd for functions.
    address: u64,
    /// 0 if it is not said: assembly does not.
    size: u64,
    is_function: bool,
}

/// A function in a section, by offsets in there.
struct Function {
    name: String,
    code: std::ops::Range<usize>,
    /// By offsets in the function.
    constants: Vec<std::ops::Range<usize>>,
}

fn functions(symbols: &[Symbol<'_>], start: u64, len: usize) -> Vec<Function> {
    let offset = |address: u64| -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(start)?).ok()?;
        (offset < len).then_some(offset)
    };
    // By offset: where constants begin (`$d`), and where code does (`$t`).
    let mut is_constant = BTreeMap::new();
    // By offset: what begins there, and how long it is said to be.
    let mut beginnings = BTreeMap::new();
    for Symbol { name, address, size, is_function } in symbols {
        let Some(at) = offset(address & !1) else { continue };
        match name.get(..2) {
            Some("$d") => drop(is_constant.insert(at, true)),
            Some("$t") => drop(is_constant.insert(at, false)),
            _ if *is_function => {
                beginnings.insert(at, (format!("{:#}", demangle(name)), *size));
            }
            _ => {}
        }
    }
    let mut functions = Vec::new();
    let mut next = len;
    for (at, (name, size)) in beginnings.into_iter().rev() {
        let said = usize::try_from(size).ok().filter(|size| *size > 0);
        let end = said.map_or(next, |size| (at + size).min(len));
        next = at;
        let mut constants = Vec::new();
        let mut since = None;
        for (mark, is_constant) in is_constant.range(at..end) {
            match (is_constant, since) {
                (true, None) => since = Some(mark - at),
                (false, Some(from)) => {
                    constants.push(from..mark - at);
                    since = None;
                }
                _ => {}
            }
        }
        constants.extend(since.map(|from| from..end - at));
        functions.push(Function { name, code: at..end, constants });
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(numbers: &[(&str, u64)]) -> BTreeMap<String, u64> {
        numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    }

    fn judge(exceptions: &[(&str, u64)], guard: u64) -> Result<String, String> {
        let frames = by_name(&[("small", 8), ("middling", 1280), ("large", 3592)]);
        let frames = frames.into_iter().map(|(name, bytes)| (name, Frame { bytes, address: 64 }));
        let frames = Frames(frames.collect());
        frames.judge(guard, &by_name(exceptions)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_frame_that_steps_over_the_guard_fails_by_name() {
        assert!(judge(&[], 3592).is_ok());
        let error = judge(&[], 3591).expect_err("one byte too many");
        assert!(error.contains("large (at 0x40) has a frame of 3592 bytes; 3591 are"), "{error}");
        assert!(!error.contains("middling (at"), "{error}");
        let error = judge(&[], 1279).expect_err("two are too large");
        assert!(error.contains("middling (at 0x40) has a frame of 1280"), "{error}");
    }

    #[test]
    fn an_exception_holds_to_the_byte() {
        let table = judge(&[("large", 3592)], 1280).expect("excepted");
        let words: Vec<&str> = table.lines().nth(1).unwrap_or("").split_whitespace().collect();
        assert_eq!(words, ["3592", "3592", "large"]);
        let error = judge(&[("large", 3591)], 1280).expect_err("grown");
        assert!(error.contains("a frame of 3592 bytes; 3591 are allowed"), "{error}");
    }

    #[test]
    fn an_exception_that_is_not_needed_fails() {
        for name in ["middling", "gone"] {
            let error = judge(&[("large", 3592), (name, 4000)], 1280).expect_err("not needed");
            assert!(error.contains(&format!("frames.{name:?} is no exception")), "{error}");
        }
    }

    #[test]
    fn the_guard_is_read_from_the_firmwares_sources() {
        let source = "const RESERVE: usize = 1_024;\n/// Aligned.\nconst GUARD: usize = 256;\n";
        assert_eq!(guard_of(source), Some(1280));
        assert_eq!(guard_of("const GUARD: usize = 256;\n"), None);
        assert!(guard(&crate::workspace::root()).is_ok());
    }

    #[test]
    fn frames_are_found_by_symbols() {
        // Three functions: one with a frame of 1,300 and a table, one without a frame, and one of assembly
        // that does not say how long it is. What are constants would read as `sub sp, #508`.
        let halves =
            [0xF2AD_u16, 0x5D14, 0x4770, 0xB0FF, 0xB0FF, 0x4770, 0xB082, 0x4770, 0xB0FF, 0xB0FF];
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        let symbols = [
            ("_ZN5board5large17h0123456789abcdefE", 0x401, 10, true),
            ("$d.0", 0x406, 0, false),
            ("$t.1", 0x40A, 0, false),
            ("leaf", 0x40B, 2, true),
            ("assembly", 0x40D, 0, true),
            ("$d.2", 0x410, 0, false),
            ("elsewhere", 0x501, 2, true),
        ];
        let symbols = symbols.map(|(name, address, size, is_function)| Symbol {
            name,
            address,
            size,
            is_function,
        });
        let mut frames = Frames::default();
        frames.add_section(0x400, &bytes, &symbols).expect("known frames");
        let sizes = frames.0.iter().map(|(name, frame)| (name.clone(), frame.bytes)).collect();
        assert_eq!(by_name(&[("board::large", 1300), ("leaf", 0), ("assembly", 8)]), sizes);
        let error = frames.judge(1280, &BTreeMap::new()).expect_err("too large").to_string();
        assert!(error.contains("board::large (at 0x400) has a frame of 1300 bytes"), "{error}");
    }
}

//! Flash, RAM and stack of the firmware, and bytes per cached object, against `budget.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSegment, SectionFlags, SegmentFlags};
use serde::Deserialize;

use crate::{firmware, process};

/// Where RAM begins on every Cortex-M.
const RAM: u64 = 0x2000_0000;

pub(super) fn check(root: &Path) -> Result<String> {
    let budget = fs::read_to_string(root.join("budget.toml")).context("cannot read budget.toml")?;
    let budget: Budget = toml::from_str(&budget).context("budget.toml")?;
    let image = firmware::build(firmware::Profile::Reference)?;
    let (flash, ram) = measure(&fs::read(image)?)?;
    let stack = measure_stack()?;
    let mut rows = vec![
        Row::new("flash: code and constants", flash, budget.firmware.flash),
        Row::new("RAM: static", ram, budget.firmware.static_ram),
        Row::new("RAM: stack, at its deepest", stack, budget.firmware.stack),
    ];
    let objects = measure_objects(root)?;
    for (kind, limit) in &budget.objects {
        let used = objects.get(kind);
        let used = used.with_context(|| format!("budget.toml: objects.{kind} is not measured"))?;
        rows.push(Row::new(&format!("cache: one {kind}"), *used, *limit));
    }
    judge(&rows)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    firmware: FirmwareBudget,
    /// Per cached object: record, indices and names.
    objects: BTreeMap<String, u64>,
}

/// In bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirmwareBudget {
    flash: u64,
    static_ram: u64,
    stack: u64,
}

struct Row {
    what: String,
    used: u64,
    limit: u64,
}

impl Row {
    fn new(what: &str, used: u64, limit: u64) -> Self {
        Self { what: what.to_owned(), used, limit }
    }
}

/// A table of all rows; an error if one is over its limit.
fn judge(rows: &[Row]) -> Result<String> {
    let mut table = format!("{:<28} {:>9} {:>9} {:>6}\n", "bytes", "used", "budget", "");
    for Row { what, used, limit } in rows {
        let percent = used * 100 / limit.max(&1);
        let verdict = if used > limit { "  OVER BUDGET" } else { "" };
        table.push_str(&format!("{what:<28} {used:>9} {limit:>9} {percent:>5}%{verdict}\n"));
    }
    if rows.iter().any(|row| row.used > row.limit) {
        bail!("over budget; if the growth is worth it, say why in budget.toml\n{table}");
    }
    Ok(table)
}

/// Bytes of flash and of static RAM that an image takes.
fn measure(elf: &[u8]) -> Result<(u64, u64)> {
    let file = object::File::parse(elf).context("the firmware is no ELF file")?;
    // What is loaded is flashed, also the initial values of RAM.
    let flash = file
        .segments()
        .filter(|segment| matches!(segment.flags(), SegmentFlags::Elf { .. }))
        .map(|segment| segment.file_range().1)
        .sum();
    let in_ram = |flags| matches!(flags, SectionFlags::Elf { sh_flags } if sh_flags & 2 != 0);
    let ram = file
        .sections()
        .filter(|section| section.address() >= RAM && in_ram(section.flags()))
        .map(|section| section.size())
        .sum();
    Ok((flash, ram))
}

/// Bytes of each kind of object in a full cache, as core's example measures them.
fn measure_objects(root: &Path) -> Result<BTreeMap<String, u64>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["run", "--quiet", "--package", "picokube-core"]);
    let printed = process::output(cargo.args(["--example", "bytes_per_object"]))?;
    Ok(printed.lines().filter_map(object_line).collect())
}

fn object_line(line: &str) -> Option<(String, u64)> {
    let field = |name: &str| {
        line.split(' ').filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)
    };
    Some((field("kind")?.1.to_owned(), field("bytes")?.1.parse().ok()?))
}

/// The stack's high-water mark over a whole self-test in QEMU.
fn measure_stack() -> Result<u64> {
    let log = firmware::self_test_log()?;
    log.lines().find_map(high_water_mark).context("the firmware has not reported its stack")
}

fn high_water_mark(line: &str) -> Option<u64> {
    line.split_once("stack high-water mark ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_too_many_fails() {
        let row = |used| [Row::new("flash", used, 1000)];
        assert!(judge(&row(1000)).is_ok());
        let error = judge(&row(1001)).expect_err("over budget").to_string();
        assert!(error.contains("1001") && error.contains("OVER BUDGET"), "{error}");
    }

    #[test]
    fn the_stack_line_is_understood() {
        assert_eq!(
            high_water_mark("9.2 INFO stack high-water mark 6712 of 200000 bytes"),
            Some(6712)
        );
        assert_eq!(high_water_mark("passed: not_http"), None);
    }

    #[test]
    fn the_lines_of_objects_are_understood() {
        assert_eq!(object_line("kind=pod bytes=93 entry=88"), Some(("pod".to_owned(), 93)));
        assert_eq!(object_line("kind=pod"), None);
    }
}

//! Flash, RAM and stack of the firmware against `budget.toml`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSegment, SectionFlags, SegmentFlags};
use serde::Deserialize;

use crate::firmware;

/// Where RAM begins on every Cortex-M.
const RAM: u64 = 0x2000_0000;

pub(super) fn check(root: &Path) -> Result<String> {
    let budget = fs::read_to_string(root.join("budget.toml")).context("cannot read budget.toml")?;
    let budget: Budget = toml::from_str(&budget).context("budget.toml")?;
    let image = firmware::build()?;
    let (flash, ram) = measure(&fs::read(image)?)?;
    let stack = measure_stack()?;
    let rows = [
        Row { what: "flash: code and constants", used: flash, limit: budget.firmware.flash },
        Row { what: "RAM: static", used: ram, limit: budget.firmware.static_ram },
        Row { what: "RAM: stack, at its deepest", used: stack, limit: budget.firmware.stack },
    ];
    judge(&rows)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    firmware: FirmwareBudget,
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
    what: &'static str,
    used: u64,
    limit: u64,
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

/// The stack's high-water mark over a whole self-test in QEMU.
fn measure_stack() -> Result<u64> {
    let mut mark = None;
    firmware::run_self_test(|line| mark = mark.or_else(|| high_water_mark(&line.message)))?;
    mark.context("the firmware has not reported its stack")
}

fn high_water_mark(message: &str) -> Option<u64> {
    message.strip_prefix("stack high-water mark ")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_too_many_fails() {
        let row = |used| [Row { what: "flash", used, limit: 1000 }];
        assert!(judge(&row(1000)).is_ok());
        let error = judge(&row(1001)).expect_err("over budget").to_string();
        assert!(error.contains("1001") && error.contains("OVER BUDGET"), "{error}");
    }

    #[test]
    fn the_stack_line_is_understood() {
        assert_eq!(high_water_mark("stack high-water mark 6712 of 200000 bytes"), Some(6712));
        assert_eq!(high_water_mark("passed: not_http"), None);
    }
}

//! Flash, RAM, stack and stack frames of the firmware, bytes per cached object, and what HTTPS costs, against
//! `budget.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::frames::{self, Frames};
use super::image::{Image, check_folders};
use crate::firmware::{self, Binary, Profile};
use crate::{process, setup, workspace};

/// What was measured, by name.
type Figures = BTreeMap<String, u64>;

pub(super) fn check(root: &Path) -> Result<String> {
    let budget = fs::read_to_string(root.join("budget.toml")).context("cannot read budget.toml")?;
    let budget: Budget = toml::from_str(&budget).context("budget.toml")?;
    let mut rows = Vec::new();
    let mut notes = String::new();
    let mut frames = Frames::default();
    let images: Vec<PathBuf> =
        Profile::ALL.into_iter().map(firmware::build).collect::<Result<_>>()?;
    // Each has one core and much to wait for.
    let at_work =
        process::side_by_side(&images, |image| program_figures("picokube-figures", image));
    for ((profile, image), figures) in Profile::ALL.into_iter().zip(&images).zip(at_work) {
        let name = profile.name();
        let limits = budget.firmware.get(name);
        let limits = limits.with_context(|| format!("budget.toml: no firmware.{name}"))?;
        let elf = fs::read(image)?;
        let Image { flash, static_ram, copied, parts } = Image::measure(&elf)?;
        check_folders(&elf, &setup::folders()).with_context(|| name.to_owned())?;
        frames.add(&elf).with_context(|| name.to_owned())?;
        let figures = figures.with_context(|| format!("{name}, at work in QEMU"))?;
        let figure = |what: &str| {
            figures.get(what).copied().with_context(|| format!("{name}: {what} was not measured"))
        };
        rows.push(Row::new(&format!("{name}: flash"), flash, limits.flash));
        rows.push(Row::new(&format!("{name}: static RAM"), static_ram, limits.static_ram));
        rows.push(Row::new(&format!("{name}: not zero at start"), copied, limits.copied));
        rows.push(Row::new(&format!("{name}: stack at work"), figure("stack")?, limits.stack));
        if profile == Profile::Reference {
            notes.insert_str(0, &compare(&parts, &budget.parts));
        }
        notes += &format!(
            "{name}: {} instructions from the boot to synced caches with 100 pods, {} over TLS with a \
             client certificate; a Deployment of 10 takes {} requests to create and {} to roll\n",
            figure("boot_instructions")?,
            figure("boot_instructions_tls")?,
            figure("requests_create")?,
            figure("requests_roll")?,
        );
    }
    let objects = measure_objects()?;
    for (kind, limit) in &budget.objects {
        let used = objects.get(kind);
        let used = used.with_context(|| format!("budget.toml: objects.{kind} is not measured"))?;
        rows.push(Row::new(&format!("cache: one {kind}"), *used, *limit));
    }
    let transport = firmware::build_binary(Binary::Transport, Profile::Reference)?;
    let transport = program_figures("picokube-transport", &transport).context("HTTPS in QEMU")?;
    for (figure, limit) in &budget.instructions {
        let used = transport.get(figure);
        let used = used.with_context(|| format!("budget.toml: {figure} is not measured"))?;
        rows.push(Row::new(&format!("HTTPS: {}", figure.replace('_', " ")), *used, *limit));
    }
    let frames = frames.judge(frames::guard(root)?, &budget.frames)?;
    judge(&rows).map(|table| table + &frames + &notes)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    /// By profile.
    firmware: BTreeMap<String, FirmwareBudget>,
    /// Functions whose stack frames may be larger than the stack's guard, by name.
    frames: BTreeMap<String, u64>,
    /// Per cached object: record, indices and names.
    objects: BTreeMap<String, u64>,
    /// What HTTPS takes of the processor, in instructions.
    instructions: BTreeMap<String, u64>,
    /// What each part of the reference firmware takes of flash: to see which one grows.
    parts: BTreeMap<String, u64>,
}

/// In bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirmwareBudget {
    flash: u64,
    static_ram: u64,
    copied: u64,
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
    let mut table =
        format!("{:<44} {:>10} {:>10} {:>6}\n", "bytes, instructions", "used", "budget", "");
    for Row { what, used, limit } in rows {
        let percent = used * 100 / limit.max(&1);
        let verdict = if used > limit { "  OVER BUDGET" } else { "" };
        table.push_str(&format!("{what:<44} {used:>10} {limit:>10} {percent:>5}%{verdict}\n"));
    }
    if rows.iter().any(|row| row.used > row.limit) {
        bail!("over budget; if the growth is worth it, say why in budget.toml\n{table}");
    }
    Ok(table)
}

/// A table of what each part takes of flash, and by how much that differs from what was recorded.
fn compare(parts: &Figures, recorded: &Figures) -> String {
    let mut table =
        format!("{:<28} {:>9} {:>9} {:>7}\n", "reference: flash by part", "used", "was", "");
    let mut names: Vec<&String> = parts.keys().chain(recorded.keys()).collect();
    names.sort_by_key(|name| (std::cmp::Reverse(parts.get(*name)), *name));
    names.dedup();
    for name in names {
        let size = |of: &Figures| of.get(name).copied().unwrap_or(0);
        let (used, was) = (size(parts), size(recorded));
        let difference = used as i64 - was as i64;
        table.push_str(&format!("{name:<28} {used:>9} {was:>9} {difference:>+7}\n"));
    }
    table
}

/// Bytes of each kind of object in a full cache, as core's example measures them.
fn measure_objects() -> Result<BTreeMap<String, u64>> {
    let mut example = workspace::program("picokube-core", "--example", "bytes_per_object");
    let printed = process::output(&mut example)?;
    Ok(printed.lines().filter_map(object_line).collect())
}

fn object_line(line: &str) -> Option<(String, u64)> {
    let field = |name: &str| {
        line.split(' ').filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)
    };
    Some((field("kind")?.1.to_owned(), field("bytes")?.1.parse().ok()?))
}

/// What an image costs at work: `name=value` lines of a program of the tests.
fn program_figures(program: &str, image: &Path) -> Result<Figures> {
    let mut program = workspace::program("picokube-tests", "--bin", program);
    let printed = process::output(program.arg(image))?;
    Ok(printed.lines().filter_map(figure_line).collect())
}

fn figure_line(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once('=')?;
    Some((name.to_owned(), value.parse().ok()?))
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
    fn it_is_told_which_part_has_grown() {
        let sizes = |sizes: &[(&str, u64)]| -> Figures {
            sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
        };
        let table = compare(&sizes(&[("a", 5), ("b", 70)]), &sizes(&[("a", 9), ("gone", 3)]));
        let lines: Vec<&str> = table.lines().skip(1).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[0]), ["b", "70", "0", "+70"]);
        assert_eq!(words(lines[1]), ["a", "5", "9", "-4"]);
        assert_eq!(words(lines[2]), ["gone", "0", "3", "-3"]);
    }

    #[test]
    fn the_lines_of_figures_are_understood() {
        assert_eq!(figure_line("stack=6712"), Some(("stack".to_owned(), 6712)));
        assert_eq!(figure_line("Compiling picokube"), None);
    }

    #[test]
    fn the_lines_of_objects_are_understood() {
        assert_eq!(object_line("kind=pod bytes=93 entry=88"), Some(("pod".to_owned(), 93)));
        assert_eq!(object_line("kind=pod"), None);
    }
}

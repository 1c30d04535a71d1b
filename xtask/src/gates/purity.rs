//! Core, driver, HTTP/2 and TLS need neither `std` nor an allocator, on any Cortex-M.
//!
//! Two proofs: their compiled objects, for the smallest and for the reference target, name no
//! symbol of either; and neither does the linked firmware, where generic code has become real.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use rustc_demangle::demangle;
use serde_json::Value;

use crate::setup::embedded_cargo;
use crate::workspace::{FIRMWARE_TARGET, NO_STD_CRATES, SMALLEST_TARGET};
use crate::{firmware, process};

pub(super) fn check(root: &Path) -> Result<String> {
    let mut symbols = 0;
    for target in [SMALLEST_TARGET, FIRMWARE_TARGET] {
        for library in build(root, target)? {
            symbols += check_library(&library)?;
        }
    }
    let image = firmware::build(firmware::Profile::Reference)?;
    let bytes = fs::read(&image)?;
    symbols += check_object(&image.display().to_string(), &bytes)?;
    Ok(format!("{symbols} symbols, none of std or of an allocator"))
}

/// Builds the crates for `target` and says where their libraries are.
fn build(root: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let mut cargo = embedded_cargo("build");
    // Neither optimised, so that nothing that is named is left out, nor with optimisation at link time,
    // with which the objects would hold bitcode.
    cargo.current_dir(root).args(["--profile", "firmware", "--target", target]);
    for setting in ["lto=\"off\"", "opt-level=0", "debug=false"] {
        cargo.args(["--config", &format!("profile.firmware.{setting}")]);
    }
    cargo.arg("--target-dir").arg(firmware::target());
    for package in NO_STD_CRATES {
        cargo.args(["--package", package]);
    }
    let messages = process::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    let names = NO_STD_CRATES.map(|name| name.replace('-', "_"));
    let libraries: Vec<PathBuf> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| names.iter().any(|name| message["target"]["name"] == **name))
        .filter_map(|message| {
            let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
            files.into_iter().find(|file| file.ends_with(".rlib")).map(PathBuf::from)
        })
        .collect();
    if libraries.len() != names.len() {
        bail!("expected a library of each of {names:?} for {target}, found {libraries:?}");
    }
    Ok(libraries)
}

/// Checks the objects in a library; returns how many symbols they name.
fn check_library(path: &Path) -> Result<usize> {
    let name = path.display();
    let bytes = fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let archive = ArchiveFile::parse(&*bytes).with_context(|| format!("{name}: no library"))?;
    let mut symbols = 0;
    for member in archive.members() {
        let member = member?;
        let member_name = String::from_utf8_lossy(member.name());
        if member_name.ends_with(".o") {
            symbols += check_object(&format!("{name}({member_name})"), member.data(&*bytes)?)?;
        }
    }
    Ok(symbols)
}

/// Fails if the object names a symbol that it should not; returns how many it names.
fn check_object(name: &str, bytes: &[u8]) -> Result<usize> {
    let file = object::File::parse(bytes).with_context(|| format!("{name}: no object file"))?;
    let mut symbols = 0;
    for symbol in file.symbols().filter_map(|symbol| symbol.name().ok()) {
        symbols += 1;
        if is_forbidden(symbol) {
            bail!("{name} needs {:#}", demangle(symbol));
        }
    }
    Ok(symbols)
}

fn is_forbidden(symbol: &str) -> bool {
    const ALLOCATOR: [&str; 6] = [
        "__rust_alloc",
        "__rust_dealloc",
        "__rust_realloc",
        "__rust_no_alloc_shim_is_unstable",
        "__rdl_alloc",
        "__rg_alloc",
    ];
    let name = format!("{:#}", demangle(symbol));
    let of_crate = |path: &str| {
        name.starts_with(path)
            || [" ", "<", "(", "&"].iter().any(|c| name.contains(&format!("{c}{path}")))
    };
    ALLOCATOR.iter().any(|part| symbol.contains(part)) || of_crate("alloc::") || of_crate("std::")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn forbidden_symbols_are_told_from_others() {
        for good in ["_ZN4core3fmt5write17h0123456789abcdefE", "memcpy", "picokube_alloc_free"] {
            assert!(!is_forbidden(good), "{good}");
        }
        for bad in [
            "_ZN5alloc7raw_vec17capacity_overflow17h0123456789abcdefE",
            "_ZN3std2io5stdio6_print17h0123456789abcdefE",
            "__rust_alloc",
            "_RNvCs1234_7___rustc12___rust_alloc",
        ] {
            assert!(is_forbidden(bad), "{bad}");
        }
    }

    fn compile(source: &str) -> Result<usize> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("lib.rs");
        fs::write(&file, source)?;
        let library = folder.path().join("library.rlib");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "--crate-type=lib", "--crate-name=sample", "-Cpanic=abort"]);
        process::run(rustc.arg("-o").arg(&library).arg(&file))?;
        check_library(&library)
    }

    #[test]
    fn a_library_that_allocates_is_found() {
        let pure = "#![no_std]\npub fn f(x: &[u8]) -> usize { x.len() }";
        assert!(compile(pure).is_ok());
        let vector = "#![no_std]\nextern crate alloc;\n\
                      pub fn f(n: usize) -> alloc::vec::Vec<u8> { alloc::vec![1; n] }";
        assert!(compile(vector).is_err());
        assert!(compile("pub fn f() { println!(\"hello\"); }").is_err());
    }
}

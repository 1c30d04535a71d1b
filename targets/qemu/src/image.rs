//! A firmware image.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol};

/// What memory maps call the configuration page.
const PAGE: &str = "_config";

/// A linked firmware.
pub struct Image {
    path: PathBuf,
    /// The address of the configuration page.
    page: Option<u64>,
}

impl Image {
    /// Reads the ELF file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let elf = std::fs::read(path).with_context(|| format!("cannot read firmware {name}"))?;
        let elf = object::File::parse(&*elf).with_context(|| format!("{name} is no firmware"))?;
        let page = elf.symbol_by_name(PAGE).map(|symbol| symbol.address());
        Ok(Self { path: path.to_owned(), page })
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
}

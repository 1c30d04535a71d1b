//! Boots a firmware image in QEMU and decodes its log.
//!
//! [`Image`] is an ELF file as the linker left it: what would be flashed, and beside it the strings
//! of its log lines, which stay on the host. [`Machine`] is a running emulation of the MPS2 AN386;
//! its log comes as [`Line`]s.

mod image;
mod log;
mod machine;

pub use image::Image;
pub use log::{DECODER, Level, Line};
pub use machine::{Console, HOST_SEEN_BY_GUEST, Machine, PROGRAM, Start};

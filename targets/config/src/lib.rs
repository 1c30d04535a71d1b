//! The configuration page: what makes one firmware image serve many gateways.
//!
//! A page of flash outside the image holds a [`Document`] as JSON behind a header with a version
//! and a checksum. The host writes it ([`write_page`]), the firmware reads it at every boot
//! ([`read_page`]) and checks it into a [`Configuration`]. Nothing is copied: texts stay in flash.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod configuration;
mod document;
mod error;
mod page;

pub use configuration::{Address, Configuration, FeatureGates, Rate};
pub use document::Document;
pub use error::{Field, PageError};
pub use page::{HEADER, PAGE, read_page, write_page};

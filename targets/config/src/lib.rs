//! The configuration page: what makes one firmware image serve many gateways.
//!
//! A page of flash outside the image holds a [`Document`] behind a header with a version and a
//! checksum: as JSON, with certificates and a key in parts of their own. The host writes it
//! ([`write_page`]), the firmware reads it at every boot ([`read_page`]) and checks it into a
//! [`Configuration`]. Nothing is copied: texts and certificates stay in flash. What is in certificates is
//! for those who use them to judge.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod certificates;
mod configuration;
mod document;
mod error;
mod page;

pub use certificates::{Certificates, ClientKey, MAX_CERTIFICATES};
pub use configuration::{Address, Configuration, FeatureGates, Identity, Rate, Tls};
pub use document::{Document, Election};
pub use error::{Field, PageError};
pub use page::{HEADER, PAGE, read_page, write_page};

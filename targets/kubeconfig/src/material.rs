//! Certificates and keys, wherever they are.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A certificate or key: in a file of its own, or in the text.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    /// In the PEM file at this path.
    File(PathBuf),
    /// PEM, encoded in base64, in the kubeconfig.
    Base64(String),
    /// PEM.
    Pem(String),
}

/// Where it is; never what it is.
impl fmt::Display for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Base64(_) => f.write_str("the kubeconfig"),
            Self::Pem(_) => f.write_str("the text given"),
        }
    }
}

/// The same, since it may be a key.
impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Material({self})")
    }
}

impl Material {
    /// What is there, in PEM.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::File(path) => std::fs::read(path).with_context(|| format!("cannot read {self}")),
            Self::Base64(text) => STANDARD
                .decode(text.trim())
                .context("a certificate or key in the kubeconfig is not base64"),
            Self::Pem(text) => Ok(text.clone().into_bytes()),
        }
    }
}

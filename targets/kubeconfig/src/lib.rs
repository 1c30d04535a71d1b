//! Reading kubeconfig files: where a cluster is, whom to trust, and as whom to come.
//!
//! What a file asks for and nobody here can do (running programs, proxies, impersonation, trusting whoever
//! answers) is refused with what to do instead: left out, it would lead elsewhere or to another user.

#![forbid(unsafe_code)]

mod document;
mod material;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use document::Document;
pub use material::Material;

/// What a context of a kubeconfig file says.
#[derive(Debug, Default)]
pub struct Kubeconfig {
    /// The URL of the API server.
    pub server: String,
    /// The name in the server's certificate, if it is not the one in the URL.
    pub tls_server_name: Option<String>,
    /// Certificates of the authorities that may have issued the server's.
    pub authority: Option<Material>,
    /// The bearer token.
    pub token: Option<String>,
    /// The file that the token is to be read from, now and again.
    pub token_file: Option<PathBuf>,
    /// The certificate and key of whoever comes.
    pub client: Option<(Material, Material)>,
    /// The namespace that is meant where none is named.
    pub namespace: Option<String>,
}

impl Kubeconfig {
    /// Reads the file at `path`, and in it `context` or else its current one.
    pub fn read(path: &Path, context: Option<&str>) -> Result<Self> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        // One document: which of several would be meant, nobody can tell.
        let document: Document = serde_saphyr::from_str(&text)
            .with_context(|| format!("{name} is no kubeconfig, which is one YAML document"))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        document.resolve(context, folder).with_context(|| name.to_string())
    }
}

//! Reading kubeconfig files, as far as a client needs it.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::endpoint::{Credentials, read};

/// What the chosen context of a kubeconfig file says.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    pub(super) server: String,
    pub(super) token: Option<String>,
    /// The file the token is from.
    pub(super) token_file: Option<PathBuf>,
    pub(super) credentials: Credentials,
}

/// A certificate or key: in a file of its own, or in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// In the PEM file at this path.
    File(PathBuf),
    /// PEM, encoded in base64.
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

impl Material {
    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::File(path) => Ok(read(path)?.into_bytes()),
            Self::Base64(text) => {
                STANDARD.decode(text.trim()).context("a certificate or key is not base64")
            }
            Self::Pem(text) => Ok(text.clone().into_bytes()),
        }
    }
}

impl Kubeconfig {
    /// Reads the file at `path`, and in it `context` or else its current one.
    pub(super) fn read(path: &Path, context: Option<&str>) -> Result<Self> {
        let name = path.display();
        let document: Document = serde_saphyr::from_str(&read(path)?)
            .with_context(|| format!("{name}: no kubeconfig"))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        document.resolve(context, folder).with_context(|| format!("{name}"))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Document {
    current_context: String,
    contexts: Vec<NamedContext>,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: ContextEntry,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContextEntry {
    cluster: String,
    user: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    tls_server_name: Option<String>,
    insecure_skip_tls_verify: bool,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    exec: Option<serde::de::IgnoredAny>,
}

impl Document {
    fn resolve(self, context: Option<&str>, folder: &Path) -> Result<Kubeconfig> {
        let wanted = context.unwrap_or(&self.current_context);
        let context = self.contexts.into_iter().find(|entry| entry.name == wanted);
        let ContextEntry { cluster, user } =
            context.with_context(|| format!("there is no context \"{wanted}\""))?.context;
        let found = self.clusters.into_iter().find(|entry| entry.name == cluster);
        let cluster = found.with_context(|| format!("there is no cluster \"{cluster}\""))?.cluster;
        let user = match user.as_str() {
            "" => User::default(),
            name => {
                let found = self.users.into_iter().find(|entry| entry.name == name);
                found.with_context(|| format!("there is no user \"{name}\""))?.user
            }
        };
        if cluster.insecure_skip_tls_verify {
            bail!("insecure-skip-tls-verify is not supported: give the cluster's authority");
        }
        if user.exec.is_some() {
            bail!("exec credentials are not supported: give a token or a client certificate");
        }
        let material = |data: Option<String>, file: Option<PathBuf>| match (data, file) {
            (Some(data), _) => Some(Material::Base64(data)),
            (None, file) => file.map(|file| Material::File(folder.join(file))),
        };
        let certificate = material(user.client_certificate_data, user.client_certificate);
        let key = material(user.client_key_data, user.client_key);
        // As in client-go, the file comes first if it can be read.
        let token_file = user.token_file.map(|file| folder.join(file));
        let token = match (token_file.as_deref().map(read), user.token) {
            (Some(Err(_)), Some(token)) | (None, Some(token)) => Some(token),
            (read, _) => read.transpose()?,
        };
        let authority = material(cluster.certificate_authority_data, cluster.certificate_authority);
        let credentials = Credentials {
            authority,
            client: certificate.zip(key),
            server_name: cluster.tls_server_name,
        };
        Ok(Kubeconfig { server: cluster.server, token, token_file, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
current-context: edge
contexts:
- {name: edge, context: {cluster: gateway, user: controller}}
- {name: lost, context: {cluster: nowhere}}
- {name: cloud, context: {cluster: gateway, user: helper}}
clusters:
- name: gateway
  cluster: {server: 'https://10.0.0.1:6443', certificate-authority: pki/ca.crt}
users:
- {name: controller, user: {token: abc}}
- {name: helper, user: {exec: {command: get-token}}}
";

    fn resolve(context: Option<&str>) -> Result<Kubeconfig> {
        let document: Document = serde_saphyr::from_str(TEXT)?;
        document.resolve(context, Path::new("/etc/k"))
    }

    #[test]
    fn the_current_context_leads_to_server_and_user() {
        let config = resolve(None).unwrap();
        assert_eq!(config.server, "https://10.0.0.1:6443");
        assert_eq!(config.token.as_deref(), Some("abc"));
        let authority = config.credentials.authority.unwrap();
        assert_eq!(authority, Material::File(PathBuf::from("/etc/k/pki/ca.crt")));
    }

    #[test]
    fn what_is_missing_or_unsupported_is_named() {
        let error = |context| format!("{:#}", resolve(Some(context)).expect_err("an error"));
        assert!(error("other").contains("no context \"other\""));
        assert!(error("lost").contains("no cluster \"nowhere\""));
        assert!(error("cloud").contains("exec credentials"));
    }
}

//! The file as it is written, and the way from a context to all that it names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{Kubeconfig, Material};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Document {
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
    namespace: Option<String>,
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
    proxy_url: Option<String>,
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
    username: Option<String>,
    #[serde(rename = "as")]
    impersonated: Option<String>,
    auth_provider: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
}

impl Document {
    /// All that `context` or else the current one leads to; paths are those seen from `folder`.
    pub(crate) fn resolve(self, context: Option<&str>, folder: &Path) -> Result<Kubeconfig> {
        let wanted = context.unwrap_or(&self.current_context);
        ensure!(!wanted.is_empty(), "it has no current-context: give --context NAME");
        let context = self.contexts.into_iter().find(|entry| entry.name == wanted);
        let ContextEntry { cluster, user, namespace } =
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
        cluster.check()?;
        user.check()?;
        let material = |data: Option<String>, file: Option<PathBuf>| match (data, file) {
            (Some(data), _) => Some(Material::Base64(data)),
            (None, file) => file.map(|file| Material::File(folder.join(file))),
        };
        let token_file = user.token_file.map(|file| folder.join(file));
        let certificate = material(user.client_certificate_data, user.client_certificate);
        Ok(Kubeconfig {
            server: cluster.server,
            tls_server_name: cluster.tls_server_name,
            authority: material(cluster.certificate_authority_data, cluster.certificate_authority),
            token: token(token_file.as_deref(), user.token)?,
            token_file,
            client: match (certificate, material(user.client_key_data, user.client_key)) {
                (Some(certificate), Some(key)) => Some((certificate, key)),
                (None, None) => None,
                _ => bail!("a client certificate and its key are given together, or neither"),
            },
            namespace,
        })
    }
}

/// As in client-go, the file comes first if it can be read.
fn token(file: Option<&Path>, text: Option<String>) -> Result<Option<String>> {
    let Some(file) = file else { return Ok(text) };
    match (std::fs::read_to_string(file), text) {
        (Ok(read), _) => Ok(Some(read)),
        (Err(_), Some(text)) => Ok(Some(text)),
        (Err(error), None) => {
            Err(error).with_context(|| format!("cannot read the tokenFile {}", file.display()))
        }
    }
}

impl Cluster {
    fn check(&self) -> Result<()> {
        if self.insecure_skip_tls_verify {
            bail!(
                "insecure-skip-tls-verify is not supported, since the token would go to whoever answers: \
                 give the cluster's certificate-authority"
            );
        }
        if self.proxy_url.is_some() {
            bail!("proxy-url is not supported: give a server that can be reached without it");
        }
        Ok(())
    }
}

impl User {
    fn check(&self) -> Result<()> {
        let instead = "give a token of a service account or a client certificate";
        if self.exec.is_some() {
            bail!("exec credentials are not supported, since no programs are run: {instead}");
        }
        if self.auth_provider.is_some() {
            bail!("an auth-provider is not supported: {instead}");
        }
        if self.username.is_some() {
            bail!(
                "a username and password are not supported, nor does Kubernetes since 1.19: {instead}"
            );
        }
        if self.impersonated.is_some() {
            bail!("impersonation (as) is not supported: {instead} of whom it is to be");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
current-context: edge
contexts:
- {name: edge, context: {cluster: gateway, user: controller, namespace: shop}}
- {name: lost, context: {cluster: nowhere}}
- {name: nobody, context: {cluster: gateway, user: unknown}}
- {name: as-told, context: {cluster: gateway, user: rotated}}
clusters:
- name: gateway
  cluster: {server: 'https://10.0.0.1:6443', certificate-authority: pki/ca.crt}
users:
- {name: controller, user: {token: abc}}
- {name: rotated, user: {token: old, tokenFile: token}}
";

    fn resolve(text: &str, context: Option<&str>, folder: &Path) -> Result<Kubeconfig> {
        let document: Document = serde_saphyr::from_str(text)?;
        document.resolve(context, folder)
    }

    #[test]
    fn the_current_context_leads_to_server_and_user() {
        let config = resolve(TEXT, None, Path::new("/etc/k")).unwrap();
        assert_eq!(config.server, "https://10.0.0.1:6443");
        assert_eq!(config.token.as_deref(), Some("abc"));
        assert_eq!(config.namespace.as_deref(), Some("shop"));
        assert_eq!(config.authority, Some(Material::File(PathBuf::from("/etc/k/pki/ca.crt"))));
    }

    #[test]
    fn a_token_file_that_can_be_read_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let token = || {
            let config = resolve(TEXT, Some("as-told"), folder.path()).unwrap();
            assert_eq!(config.token_file, Some(folder.path().join("token")));
            config.token
        };
        assert_eq!(token().as_deref(), Some("old"));
        std::fs::write(folder.path().join("token"), "new").unwrap();
        assert_eq!(token().as_deref(), Some("new"));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (context, said) in [
            ("other", "no context \"other\""),
            ("lost", "no cluster \"nowhere\""),
            ("nobody", "no user \"unknown\""),
        ] {
            let error = resolve(TEXT, Some(context), Path::new(".")).expect_err(said);
            assert!(format!("{error:#}").contains(said), "{error:#}");
        }
        let error = resolve("{}", None, Path::new(".")).expect_err("no context");
        assert!(format!("{error:#}").contains("give --context NAME"), "{error:#}");
    }

    #[test]
    fn what_nobody_can_do_is_refused_and_not_left_out() {
        for (was, is, said) in [
            (
                "certificate-authority: pki/ca.crt",
                "insecure-skip-tls-verify: true",
                "whoever answers",
            ),
            ("certificate-authority: pki/ca.crt", "proxy-url: 'http://p:1'", "proxy-url"),
            ("token: abc", "exec: {command: get-token}", "exec credentials"),
            ("token: abc", "auth-provider: {name: gcp}", "auth-provider"),
            ("token: abc", "username: a, password: b", "a username and password"),
            ("token: abc", "token: abc, as: admin", "impersonation"),
            ("token: abc", "tokenFile: nowhere", "cannot read the tokenFile"),
            ("token: abc", "client-certificate: client.crt", "are given together"),
            ("token: abc", "client-key: client.key", "are given together"),
        ] {
            let text = TEXT.replace(was, is);
            assert_ne!(text, TEXT);
            let error = resolve(&text, None, Path::new("/nowhere")).expect_err(said);
            assert!(format!("{error:#}").contains(said), "{is}: {error:#}");
        }
    }

    #[test]
    fn keys_stay_out_of_logs() {
        let text = TEXT
            .replace("token: abc", "client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0");
        let config = resolve(&text, None, Path::new(".")).unwrap();
        let client = format!("{:?}", config.client);
        assert!(client.contains("the kubeconfig") && !client.contains("c2VjcmV0"), "{client}");
        assert_eq!(config.client.unwrap().0.bytes().unwrap(), b"secret");
    }
}

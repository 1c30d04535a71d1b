//! Where the API server is, and how to be let in.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use picokube_driver::Server;
use picokube_kubeconfig::{Kubeconfig, Material};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::network::HTTP2;

/// An API server, and what it wants to see of a client.
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its name and port, as a client would write them.
    pub host: String,
    /// The whole `Authorization` header.
    pub authorization: Option<String>,
    /// The file its token is from, which may change.
    pub(super) token_file: Option<PathBuf>,
    /// The trust in its certificate, and the name that has to be in it.
    pub(super) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// Without the token: this may end up in a log.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, host, authorization, token_file, tls } = self;
        f.debug_struct("Endpoint")
            .field("address", address)
            .field("host", host)
            .field("authorization", &authorization.is_some())
            .field("token_file", token_file)
            .field("tls", &tls.is_some())
            .finish()
    }
}

impl Endpoint {
    /// The server at a URL, with a token if it wants one, and certificates if it is `https`.
    pub fn new(url: &str, token: Option<&str>, credentials: &Credentials) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").with_context(|| {
            format!("{url}: a server is given as http://HOST:PORT or https://HOST:PORT")
        })?;
        let authority = rest.split('/').next().unwrap_or_default();
        ensure!(rest.trim_end_matches('/') == authority, "{url}: a path is not supported");
        let (encrypted, default_port) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => bail!("{url}: the scheme is neither http nor https"),
        };
        let (name, port) = split_port(authority, default_port)
            .with_context(|| format!("{url}: the port is no number"))?;
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let address = (bare, port)
            .to_socket_addrs()
            .with_context(|| format!("{url}: cannot find the address of {name}"))?
            .next()
            .with_context(|| format!("{url}: {name} has no address"))?;
        let expected = credentials.server_name.as_deref().unwrap_or(bare);
        let tls = match encrypted {
            true => {
                let name = ServerName::try_from(expected.to_owned()).with_context(|| {
                    format!("{expected} is no name that a certificate can have")
                })?;
                let mut config = credentials.client_config()?;
                config.alpn_protocols = vec![HTTP2.to_vec()];
                Some((Arc::new(config), name))
            }
            false => None,
        };
        let authorization = token.map(bearer).transpose()?;
        let host = authority.to_owned();
        Ok(Self { address, host, authorization, token_file: None, tls })
    }

    /// Whom to talk to, for the driver.
    pub(super) fn server(&self) -> Server<'_> {
        let Self { address, host, authorization, .. } = self;
        Server { address: *address, host, authorization: authorization.as_deref() }
    }

    /// The same server, whose token is read from this file again and again.
    pub fn with_token_file(self, token_file: Option<PathBuf>) -> Self {
        Self { token_file, ..self }
    }

    /// The server that a kubeconfig file's current context leads to.
    pub fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self> {
        let Kubeconfig { server, tls_server_name, authority, token, token_file, client, .. } =
            Kubeconfig::read(path, context)?;
        let credentials = Credentials { authority, client, server_name: tls_server_name };
        let endpoint = Self::new(&server, token.as_deref(), &credentials)?;
        Ok(endpoint.with_token_file(token_file))
    }

    /// The server of the cluster in which this process is a pod, by the variables of its
    /// environment and the files of its service account.
    pub fn in_cluster(
        variable: impl Fn(&str) -> Option<String>,
        service_account: &Path,
    ) -> Result<Self> {
        let variable = |name| {
            variable(name).with_context(|| {
                format!("{name} is not set: this is no pod, so give --kubeconfig or --server")
            })
        };
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let folder = service_account;
        let token_file = folder.join("token");
        let token = read(&token_file)
            .context("the pod has no service account: see automountServiceAccountToken")?;
        let authority = Material::File(folder.join("ca.crt"));
        let credentials = Credentials { authority: Some(authority), ..Credentials::default() };
        let endpoint = Self::new(&format!("https://{host}:{port}"), Some(&token), &credentials)?;
        Ok(endpoint.with_token_file(Some(token_file)))
    }
}

/// Whom to trust, and what to show.
#[derive(Debug, Default)]
pub struct Credentials {
    /// Certificates of the authority that has signed the server's.
    pub authority: Option<Material>,
    /// A certificate of the client's, with its key.
    pub client: Option<(Material, Material)>,
    /// The name in the server's certificate, if it is not the one in the URL.
    pub server_name: Option<String>,
}

impl Credentials {
    fn client_config(&self) -> Result<ClientConfig> {
        let authority = self.authority.as_ref().context(
            "the certificate of the cluster's authority is needed to verify the server's: \
             give --certificate-authority, or a kubeconfig that has it",
        )?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority.bytes()?) {
            roots.add(certificate.context("the authority's certificate is broken")?)?;
        }
        ensure!(!roots.is_empty(), "there is no certificate in {authority}");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let Some((certificate, key)) = &self.client else {
            return Ok(config.with_no_client_auth());
        };
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&certificate.bytes()?)
                .collect::<Result<_, _>>()
                .context("the client's certificate is broken")?;
        ensure!(!chain.is_empty(), "there is no certificate in {certificate}");
        let key = PrivateKeyDer::from_pem_slice(&key.bytes()?)
            .with_context(|| format!("there is no private key in {key}"))?;
        config.with_client_auth_cert(chain, key).context("certificate and key do not match")
    }
}

/// The header for a token.
pub(super) fn bearer(token: &str) -> Result<String> {
    let token = token.trim();
    ensure!(!token.is_empty(), "the token is empty");
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(is_plain, "the token has spaces or other characters that no token has");
    Ok(format!("Bearer {token}"))
}

fn split_port(authority: &str, default: u16) -> Option<(&str, u16)> {
    match authority.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((name, port)) if !port.ends_with(']') => Some((name, port.parse().ok()?)),
        _ => Some((authority, default)),
    }
}

/// Reads a text file, with an error that names it.
pub(super) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_to_addresses() {
        let address = |url: &str| {
            Endpoint::new(url, None, &Credentials::default()).map(|endpoint| endpoint.address)
        };
        assert_eq!(address("http://127.0.0.1:8001").unwrap(), ([127, 0, 0, 1], 8001).into());
        assert_eq!(address("http://127.0.0.1/").unwrap(), ([127, 0, 0, 1], 80).into());
        assert_eq!(address("http://[::1]:99").unwrap().port(), 99);
        assert_eq!(address("http://[::1]").unwrap().port(), 80);
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        let error = |url: &str| {
            let endpoint = Endpoint::new(url, None, &Credentials::default());
            format!("{:#}", endpoint.expect_err("an error"))
        };
        assert!(error("127.0.0.1:8001").contains("http://HOST:PORT"));
        assert!(error("ftp://127.0.0.1").contains("neither http nor https"));
        assert!(error("http://127.0.0.1:many").contains("port is no number"));
        assert!(error("http://127.0.0.1:1/prefix").contains("path is not supported"));
        assert!(error("https://127.0.0.1:1").contains("--certificate-authority"));
    }

    #[test]
    fn a_token_becomes_a_header_and_stays_out_of_logs() {
        let endpoint =
            Endpoint::new("http://127.0.0.1:1", Some("secret\n"), &Credentials::default()).unwrap();
        assert_eq!(endpoint.authorization.as_deref(), Some("Bearer secret"));
        assert!(!format!("{endpoint:?}").contains("secret"));
        for bad in ["", " \n", "two words"] {
            Endpoint::new("http://127.0.0.1:1", Some(bad), &Credentials::default()).unwrap_err();
        }
    }

    #[test]
    fn a_pod_finds_its_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let error = |variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let endpoint = Endpoint::in_cluster(variable, folder.path());
            format!("{:#}", endpoint.expect_err("an error"))
        };
        let host = ("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        let port = ("KUBERNETES_SERVICE_PORT", "443");
        assert!(error(&[]).contains("KUBERNETES_SERVICE_HOST is not set: this is no pod"));
        assert!(error(&[host]).contains("KUBERNETES_SERVICE_PORT is not set"));
        assert!(error(&[host, port]).contains("automountServiceAccountToken"));
        std::fs::write(folder.path().join("token"), "secret\n").unwrap();
        assert!(error(&[host, port]).contains("ca.crt"));
        std::fs::write(folder.path().join("ca.crt"), "").unwrap();
        assert!(error(&[host, port]).contains("there is no certificate in"));
        let names = crate::http::names::ServerNames::of([127, 0, 0, 1].into(), &[]).unwrap();
        let made = crate::http::tls::Certificates::generate(&names).unwrap();
        std::fs::write(folder.path().join("ca.crt"), made.authority_pem).unwrap();
        let variable = |name: &str| {
            let value = if name.ends_with("HOST") { "::1" } else { "6443" };
            Some(value.to_owned())
        };
        let endpoint = Endpoint::in_cluster(variable, folder.path()).unwrap();
        assert_eq!(endpoint.host, "[::1]:6443");
        assert_eq!(endpoint.token_file, Some(folder.path().join("token")));
        assert_eq!(endpoint.authorization.as_deref(), Some("Bearer secret"));
    }
}

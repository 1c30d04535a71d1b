//! A way for tests, which speak plain HTTP, to a server that speaks TLS.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

/// Listens without TLS, and passes everything on with it and a client certificate, as long as it lives.
#[derive(Debug)]
pub struct Tunnel {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Tunnel {
    /// To `server`, with what a kubeconfig of picokube's says.
    pub fn start(server: SocketAddr, kubeconfig: &Path) -> Result<Self> {
        let connector = TlsConnector::from(Arc::new(config(kubeconfig)?));
        let name = ServerName::from(server.ip());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(async move {
            while let Ok((mut inside, _)) = listener.accept().await {
                let (connector, name) = (connector.clone(), name.clone());
                tokio::spawn(async move {
                    let Ok(stream) = TcpStream::connect(server).await else { return };
                    let _ = stream.set_nodelay(true);
                    let Ok(mut outside) = connector.connect(name, stream).await else { return };
                    // Either side may hang up.
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                });
            }
        });
        Ok(Self { address, _runtime: runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn config(kubeconfig: &Path) -> Result<ClientConfig> {
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    let pem = |entry: &Value| -> Result<Vec<u8>> {
        Ok(STANDARD.decode(entry.as_str().context("not in the kubeconfig")?)?)
    };
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let user = &kubeconfig["users"][0]["user"];
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&pem(&cluster["certificate-authority-data"])?) {
        roots.add(authority?)?;
    }
    let own = CertificateDer::from_pem_slice(&pem(&user["client-certificate-data"])?)?;
    let key = PrivateKeyDer::from_pem_slice(&pem(&user["client-key-data"])?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![own], key)?)
}

//! A server that wants a token.
//!
//! It gives tokens with TLS only, which the firmware does not speak: a tunnel adds the TLS.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use picokube_config::Document;
use picokube_qemu::HOST_SEEN_BY_GUEST;
use picokube_tests::firmware::{self, Device};
use picokube_tests::following::Following;
use picokube_tests::picokube::binary;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_with_the_token_comes_in_and_one_without_does_not() -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let mut command = Command::new(binary()?);
    command.args(["up", "--secure", "--no-controllers", "--nodes", "1"]);
    command.args(["--listen", "127.0.0.1:0", "--cert-dir"]).arg(path);
    command.arg("--write-kubeconfig").arg(path.join("kubeconfig"));
    let cluster = Following::start(command)?;
    let line = cluster.line_with(&["listening on https://"])?;
    let server = line.rsplit('/').next().context("no address")?.to_owned();
    let port = tunnel(path, server).await?;

    let token = std::fs::read_to_string(path.join("token"))?;
    let wrong = device(port, "Bearer of-good-news")?;
    wrong.wait_for_line("the server does not accept the token")?;
    ensure!(wrong.get("/readyz")?.status == 503, "of no use without the token");
    drop(wrong);

    let device = device(port, &format!("Bearer {}", token.trim()))?;
    device.wait_for_line("the controllers have started")?;
    for arguments in [
        &["create", "deployment", "web", "--image=app:1", "--replicas=2"][..],
        &["rollout", "status", "deployment/web", "--timeout=10m"],
    ] {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("KUBECONFIG", path.join("kubeconfig")).env("HOME", path);
        let output = kubectl.args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {arguments:?}: {said}\n{}", device.log());
    }
    Ok(())
}

fn device(port: u16, authorization: &str) -> Result<Device> {
    let server = format!("{HOST_SEEN_BY_GUEST}:{port}");
    let authorization = Some(authorization);
    let document =
        Document { server: &server, identity: "device", authorization, ..Document::default() };
    Device::boot_with(firmware::image()?, &document)
}

/// Listens without TLS and passes everything on to `server` with it; gives the port.
async fn tunnel(certificates: &Path, server: String) -> Result<u16> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.join("ca.crt"))?)?;
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let name = ServerName::try_from("127.0.0.1")?;
    tokio::spawn(async move {
        while let Ok((mut inside, _)) = listener.accept().await {
            let (connector, server, name) = (connector.clone(), server.clone(), name.clone());
            tokio::spawn(async move {
                let Ok(stream) = TcpStream::connect(&server).await else { return };
                let Ok(mut outside) = connector.connect(name, stream).await else { return };
                // Either side may hang up.
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            });
        }
    });
    Ok(port)
}

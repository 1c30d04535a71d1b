//! TLS, tokens, client certificates, and what a pod finds in its cluster.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::lab::Lab;
use picokube_tests::picokube::{Picokube, binary};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::complaints::complains;
use super::{deployment, run, wait_until_available};

/// A cluster behind TLS, with nodes and without controllers. Its certificates and its token are
/// in a directory, and so is a kubeconfig.
pub(super) struct SecureCluster {
    /// It ends with this.
    _process: Following,
    /// With `https://`.
    pub(super) address: String,
}

pub(super) fn secure_cluster(directory: &TempDir) -> Result<SecureCluster> {
    let path = directory.path();
    let mut command = Command::new(binary()?);
    command.args(["up", "--no-controllers", "--nodes", "1", "--listen", "127.0.0.1:0"]);
    command.arg("--secure").arg("--cert-dir").arg(path);
    command.arg("--write-kubeconfig").arg(path.join("kubeconfig"));
    let process = Following::start(command)?;
    let line = process.line_with(&["listening on https://"])?;
    let address = line.rsplit(' ').next().unwrap_or_default().to_owned();
    Ok(SecureCluster { _process: process, address })
}

fn kubectl(directory: &Path, arguments: &[&str]) -> Result<()> {
    let output = Command::new("kubectl")
        .env("KUBECONFIG", directory.join("kubeconfig"))
        .env("HOME", directory)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments:?}: {complaints}");
    Ok(())
}

/// Controllers that are started so have to roll out a Deployment.
fn rolls_out(directory: &Path, name: &str, command: Command) -> Result<()> {
    let controllers = Following::start(command)?;
    controllers.line_with(&["controllers run against"])?;
    let image = ["create", "deployment", name, "--image=app:1", "--replicas=2"];
    kubectl(directory, &image)?;
    let deployment = format!("deployment/{name}");
    kubectl(directory, &["rollout", "status", &deployment, "--timeout=10m"])
}

#[test]
fn every_way_in() -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let cluster = secure_cluster(&directory)?;
    let file = |name: &str| path.join(name).to_string_lossy().into_owned();
    rolls_out(path, "by-kubeconfig", run(["--kubeconfig", &file("kubeconfig")])?)?;

    let flags = [
        "--server",
        &cluster.address,
        "--certificate-authority",
        &file("ca.crt"),
        "--token-file",
        &file("token"),
    ];
    rolls_out(path, "by-flags", run(flags)?)?;

    // As a pod: its environment, and the files of its service account.
    let mut command = run(["--service-account-dir", &file("")])?;
    let (_, port) = cluster.address.rsplit_once(':').context("no port")?;
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", port);
    rolls_out(path, "as-a-pod", command)
}

#[test]
fn wrong_ways_in() -> Result<()> {
    let (directory, other) = (TempDir::new()?, TempDir::new()?);
    let cluster = secure_cluster(&directory)?;
    let stranger = secure_cluster(&other)?;
    let file = |directory: &TempDir, name: &str| {
        directory.path().join(name).to_string_lossy().into_owned()
    };
    let (authority, token) = (file(&directory, "ca.crt"), file(&directory, "token"));
    let (wrong_authority, wrong_token) = (file(&other, "ca.crt"), file(&other, "token"));
    let server = ["--server", cluster.address.as_str()];
    let with = |authority: &str, token: Option<&str>| {
        let mut arguments = server.map(str::to_owned).to_vec();
        arguments.extend(["--certificate-authority".to_owned(), authority.to_owned()]);
        arguments.extend(token.iter().flat_map(|t| ["--token-file".to_owned(), (*t).to_owned()]));
        arguments
    };
    for (arguments, words) in [
        (
            with(&wrong_authority, Some(&token)),
            ["not signed by the authority that was given", "--certificate-authority"],
        ),
        (
            with(&authority, Some(&wrong_token)),
            ["does not accept this token (401)", "--token-file"],
        ),
        (with(&authority, None), ["wants to know who asks (401)", "--client-certificate"]),
        (with(&token, Some(&token)), ["there is no certificate in", &token]),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        complains(&arguments, &words)?;
    }
    ensure!(stranger.address != cluster.address, "they are the same");
    Ok(())
}

#[test]
fn kubectl_trusts_a_server_by_each_of_its_names() -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let mut command = Command::new(binary()?);
    command.args(["server", "--listen", "0.0.0.0:0", "--cert-dir"]).arg(path);
    command.args(["--tls-san", "127.0.0.3", "--tls-san", "picokube.test"]);
    command.arg("--write-kubeconfig").arg(path.join("kubeconfig"));
    let server = Following::start(command)?;
    let line = server.line_with(&["for others: https://127.0.0.3:"])?;
    let (_, port) = line.rsplit_once(':').context("no port")?;
    // The kubeconfig leads to the first name; the others are as good.
    kubectl(path, &["get", "namespaces"])?;
    let elsewhere = format!("--server=https://127.0.0.2:{port}");
    kubectl(path, &["get", "namespaces", &elsewhere, "--tls-server-name=picokube.test"])?;
    let refused = kubectl(path, &["get", "namespaces", &elsewhere, "--request-timeout=60s"]);
    let refused = refused.err().context("an address that is not named was trusted")?;
    ensure!(refused.to_string().contains("127.0.0.2"), "{refused}");
    Ok(())
}

/// An authority, and certificates that it has signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(Vec::<String>::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(parameters, key), pem })
    }

    /// A certificate and its key, in PEM.
    fn sign(&self, name: &str) -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new([name.to_owned()])?.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// Passes on to a server without TLS what clients with a certificate of the authority say.
async fn front(authority: &Authority, server: &Picokube, protocol: &[u8]) -> Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes())?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let (certificate, key) = authority.sign("127.0.0.1")?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes())?],
            PrivateKeyDer::from_pem_slice(key.as_bytes())?,
        )?;
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("https://{}", listener.local_addr()?);
    let behind = server.address();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let Ok(mut inside) = TcpStream::connect(behind).await else { return };
                // Either side may hang up.
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    Ok(address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_opens_the_door() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let (authority, stranger) = (Authority::new()?, Authority::new()?);
    let address = front(&authority, &cluster, b"h2").await?;
    let old = front(&authority, &cluster, b"http/1.1").await?;
    let directory = TempDir::new()?;
    let write = |name: &str, text: &str| -> Result<String> {
        let path = directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let ca = write("ca.crt", &authority.pem)?;
    let (certificate, key) = authority.sign("controller")?;
    let (wrong_certificate, wrong_key) = stranger.sign("controller")?;
    let (certificate, key) = (write("me.crt", &certificate)?, write("me.key", &key)?);
    let wrong_certificate = write("wrong.crt", &wrong_certificate)?;
    let wrong_key = write("wrong.key", &wrong_key)?;
    let server = ["--server", address.as_str(), "--certificate-authority", ca.as_str()];
    let shown = |certificate, key| {
        [&server[..], &["--client-certificate", certificate, "--client-key", key]].concat()
    };
    complains(&server, &["--client-certificate"])?;
    let with_old = ["--server", old.as_str(), "--certificate-authority", ca.as_str()];
    complains(&with_old, &["does not speak HTTP/2", "ALPN h2"])?;
    complains(&shown(&wrong_certificate, &wrong_key), &["--client-certificate"])?;
    complains(&shown(&certificate, &wrong_key), &["certificate and key do not match"])?;
    complains(&shown(&certificate, &certificate), &["there is no private key in", &certificate])?;

    let controllers = Following::start(run(shown(&certificate, &key))?)?;
    controllers.line_with(&["controllers run against"])?;
    let lab = Lab::new(&cluster, "certified")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")
}

//! A look at the server before the controllers start, so that what is misconfigured is told at
//! once and in plain words.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use embedded_io_async::{Read, Write};

use super::Endpoint;
use super::network::{Network, Traffic};
use super::trouble::Trouble;

const PATIENCE: Duration = Duration::from_secs(10);

impl Endpoint {
    /// Asks the server for Deployments, in a namespace if one is given.
    ///
    /// A server that is not there, or not well, is no error: the controllers wait for it. An
    /// answer that will be the same until somebody changes the configuration is one.
    pub async fn check(&self, namespace: Option<&str>) -> Result<()> {
        let path = match namespace {
            Some(namespace) => format!("/apis/apps/v1/namespaces/{namespace}/deployments?limit=1"),
            None => "/apis/apps/v1/deployments?limit=1".to_owned(),
        };
        let network = Network::new(self, Arc::new(Traffic::default()));
        let opened = tokio::time::timeout(PATIENCE, network.open(self.address)).await;
        let mut stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let trouble = Trouble::of(&error);
                if trouble.is_lasting() {
                    bail!("{}: {trouble}", self.host);
                }
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let authorization = self.authorization.as_deref();
        let authorization = authorization.map(|value| format!("authorization: {value}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{}\r\n",
            self.host,
            authorization.unwrap_or_default()
        );
        let mut answer = [0; 64];
        let exchange = async {
            stream.write_all(request.as_bytes()).await?;
            stream.flush().await?;
            stream.read(&mut answer).await
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(Ok(length)) => self.judge(answer.get(..length).unwrap_or_default(), namespace),
            // With TLS 1.3 a server refuses a client's certificate only now.
            Ok(Err(error)) if Trouble::of(&error).is_lasting() => {
                bail!(
                    "{}: {}: does the server want another --client-certificate?",
                    self.host,
                    Trouble::of(&error)
                )
            }
            _ => Ok(()),
        }
    }

    fn judge(&self, answer: &[u8], namespace: Option<&str>) -> Result<()> {
        let line = String::from_utf8_lossy(answer);
        let line = line.lines().next().unwrap_or_default();
        let code = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
        let code = code.and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok());
        let code = code.with_context(|| {
            format!("{}: no HTTP server: \"{line}\"; is it https where http was given?", self.host)
        })?;
        let host = &self.host;
        match (code, self.authorization.is_some()) {
            (401, true) => bail!(
                "{host}: the server does not accept this token (401): is it of this cluster, and \
                 has it expired? See --token-file, or the user in the kubeconfig"
            ),
            (401, false) => bail!(
                "{host}: the server wants to know who asks (401): give --token-file or \
                 --client-certificate, or a kubeconfig with a user"
            ),
            (403, _) => bail!(
                "{host}: not allowed to list deployments.apps in {} (403): apply deploy/rbac.yaml, \
                 or look at one namespace with --namespace",
                namespace.unwrap_or("all namespaces")
            ),
            (404, _) => bail!("{host}: it serves no apps/v1 (404): is it a Kubernetes API server?"),
            _ => Ok(()),
        }
    }
}

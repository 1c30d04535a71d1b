//! A look at the server before the controllers start, so that what is misconfigured is told at
//! once and in plain words.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use embassy_time::Duration as DriverDuration;
use embedded_io_async::{Read, Write};
use picokube_driver::{
    Error, Memory, Method, Patience, Receiver, Request, ResponseHead, Secure, Session,
};

use super::Endpoint;
use super::network::{Network, Stream, Traffic};
use super::secure::SecureChannel;
use super::trouble::Trouble;

const PATIENCE: Duration = Duration::from_secs(10);
/// The same for the driver, whose own patience must not end first.
const LONGER: DriverDuration = DriverDuration::from_secs(20);

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
        let stream = match opened {
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
        let status = match self.tls {
            None => self.ask_plainly(stream, &path).await?,
            Some(_) => self.ask(stream, &network, &path).await?,
        };
        status.map_or(Ok(()), |status| self.judge(status, namespace))
    }

    /// Asks over HTTP/2: the status, unless there is no answer.
    async fn ask(&self, stream: Stream, network: &Network, path: &str) -> Result<Option<u16>> {
        let (mut memory, mut out) = (Box::new(Memory::new()), vec![0; 16 * 1024]);
        let mut ring = vec![0; 16 * 1024];
        let server = self.server();
        let session = Session::new(server, &mut memory, &mut out, 0);
        let patience = Patience { connect: LONGER, response: LONGER, ..Patience::REQUESTS };
        let mut client =
            session.stream(&mut ring, patience, 0).context("a session without room")?;
        let mut answer = Status(0);
        let request = Request { method: Method::GET, target: &path, headers: &[], body: &[][..] };
        let mut secure = Opened(Some(SecureChannel::new(stream, network)));
        let asked = async {
            tokio::select! {
                asked = client.exchange(&request, &mut answer) => asked,
                never = session.run(&mut secure) => match never {},
            }
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(())) => Ok(Some(answer.0)),
            // With TLS 1.3 a server refuses a client's certificate only now.
            Ok(Err(_)) if let Some(trouble) = network.last_trouble() => bail!(
                "{}: {trouble}: does the server want another --client-certificate?",
                self.host
            ),
            _ => Ok(None),
        }
    }

    /// Asks over HTTP/1.1.
    async fn ask_plainly(&self, mut stream: Stream, path: &str) -> Result<Option<u16>> {
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
        let Ok(Ok(length)) = tokio::time::timeout(PATIENCE, exchange).await else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(answer.get(..length).unwrap_or_default());
        let line = line.lines().next().unwrap_or_default();
        let code = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
        let code = code.and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok());
        code.map(Some).with_context(|| {
            format!("{}: no HTTP server: \"{line}\"; is it https where http was given?", self.host)
        })
    }

    fn judge(&self, code: u16, namespace: Option<&str>) -> Result<()> {
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

/// A connection that is open already, and no other one.
struct Opened<'n>(Option<SecureChannel<'n>>);

impl<'n> Secure for Opened<'n> {
    type Channel<'c>
        = SecureChannel<'n>
    where
        Self: 'c;

    async fn open(&mut self, _: &mut [u8]) -> Result<SecureChannel<'n>, Error> {
        self.0.take().ok_or(Error::Unreachable)
    }
}

/// The status of an answer, whose body is not of interest.
struct Status(u16);

impl Receiver for Status {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.0 = head.status;
        ControlFlow::Break(())
    }

    async fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

//! The cluster in which controllers are measured, and the controllers in a process of their own.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use http::Method;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::controllers::Capacity;
use crate::http::kubeconfig::{Credential, kubeconfig};
use crate::http::names::ServerNames;
use crate::http::tls::{Certificates, new_token};
use crate::http::{AcceptedHosts, Access, Cluster, Limits, SharedServer, Subject, serve};
use crate::store::HistoryLimits;

use super::super::inside;
use super::process::{anonymous, cpu_seconds, resident};

/// Pods that a simulated node takes.
const PODS_PER_NODE: usize = 110;

/// How controllers reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/2 over TLS 1.3, by token.
    Secure,
}

impl Transport {
    pub(super) const ALL: [Self; 2] = [Self::Plain, Self::Secure];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "HTTP/1.1",
            Self::Secure => "HTTP/2 over TLS",
        }
    }
}

/// A cluster in this process. What is asked of it here is not counted as a request.
pub(super) struct Site {
    shared: Arc<SharedServer>,
    /// How clients find it.
    kubeconfig: NamedTempFile,
    /// How often is looked whether something has happened.
    pace: Duration,
    /// The server ends when this is dropped.
    _stop: watch::Sender<bool>,
}

impl Site {
    /// A cluster with room for that many pods, without TLS.
    pub(super) async fn start(pods: usize) -> Result<Self> {
        Self::over(Transport::Plain, pods).await
    }

    /// The same for clients that come so.
    pub(super) async fn over(transport: Transport, pods: usize) -> Result<Self> {
        let cluster = Cluster::start(HistoryLimits::default(), None)?;
        cluster.start_nodes(pods / PODS_PER_NODE + 1);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (acceptor, access, kubeconfig) = match transport {
            Transport::Plain => {
                let kubeconfig =
                    kubeconfig(&format!("http://{address}"), None, &Credential::Nothing);
                (None, Access::Open(AcceptedHosts::default()), kubeconfig)
            }
            Transport::Secure => {
                let certificates = Certificates::generate(&ServerNames::of(address.ip(), &[])?)?;
                let token = new_token()?;
                let kubeconfig = kubeconfig(
                    &format!("https://{address}"),
                    Some(&certificates.authority_pem),
                    &Credential::Token(token.clone()),
                );
                let acceptor = TlsAcceptor::from(certificates.server_config(None)?);
                (Some(acceptor), Access::Known { token, clients: None }, kubeconfig)
            }
        };
        let mut file = NamedTempFile::new()?;
        file.write_all(kubeconfig.as_bytes())?;
        let (stop, stopping) = watch::channel(false);
        let shared = cluster.shared().clone();
        tokio::spawn(serve(
            listener,
            acceptor,
            access,
            shared.clone(),
            Limits::default(),
            Arc::default(),
            stopping,
        ));
        Ok(Self { shared, kubeconfig: file, pace: Duration::from_millis(20), _stop: stop })
    }

    /// The same, for who wants to know when something has happened.
    pub(super) fn watched_closely(self) -> Self {
        Self { pace: Duration::from_millis(1), ..self }
    }

    /// Asks for something that has to work.
    pub(super) async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<()> {
        inside::ask(&self.shared, method, path, body).await
    }

    /// Looks at all objects of a resource until `is_done`.
    pub(super) async fn wait(&self, resource: &str, is_done: impl Fn(&[Value]) -> bool) {
        while !is_done(&inside::outlines(&self.shared, resource)) {
            tokio::time::sleep(self.pace).await;
        }
    }

    /// Requests that came over connections until now.
    pub(super) fn requests(&self) -> BTreeMap<(Subject, u16), u64> {
        self.shared.request_counts()
    }

    /// Waits until no more requests come.
    pub(super) async fn settle(&self) {
        let mut before = self.requests();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.requests();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// `picokube run`, in a process of its own.
pub(super) struct Controllers {
    process: Child,
    metrics: String,
}

/// What they have used until now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) cpu_seconds: f64,
    pub(super) anonymous: usize,
    pub(super) resident: usize,
}

impl Controllers {
    /// Starts them and waits until they have seen the cluster.
    pub(super) async fn start(site: &Site, capacity: Capacity, status_lag: u32) -> Result<Self> {
        Self::start_with(site, capacity, status_lag, &[]).await
    }

    /// The same with further arguments.
    pub(super) async fn start_with(
        site: &Site,
        capacity: Capacity,
        status_lag: u32,
        arguments: &[&str],
    ) -> Result<Self> {
        let capacity = capacity.to_possible_value().context("a capacity without a name")?;
        let mut process = Command::new(std::env::current_exe()?)
            .args(["run", "--kubeconfig"])
            .arg(site.kubeconfig.path())
            .args(arguments)
            .args(["--kube-api-qps", "0", "--capacity", capacity.get_name()])
            .args(["--status-lag", &status_lag.to_string()])
            .args(["--metrics-bind-address", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = process.stdout.take().context("the controllers have no output")?;
        let mut lines = BufReader::new(output).lines();
        let metrics = loop {
            let Some(line) = lines.next_line().await? else {
                bail!("the controllers ended before they were ready");
            };
            if let Some(address) = line.strip_prefix("metrics and health on http://") {
                break address.to_owned();
            }
        };
        let controllers = Self { process, metrics };
        while !controllers.get("/readyz").await?.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(controllers)
    }

    /// What they have used until now, where the system tells.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let page = self.get("/metrics").await?;
        let metric = |name: &str| -> Result<u64> {
            let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(value.with_context(|| format!("no metric {name}"))?.parse()?)
        };
        let process = self.process.id();
        Ok(Usage {
            sent: metric("picokube_network_sent_bytes_total")?,
            received: metric("picokube_network_received_bytes_total")?,
            cpu_seconds: cpu_seconds(process).unwrap_or_default(),
            anonymous: anonymous(process).unwrap_or_default(),
            resident: resident(process).unwrap_or_default(),
        })
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    async fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.metrics).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

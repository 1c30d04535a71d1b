//! `picokube up` and `picokube server`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use picokube_core::manager::{ControllerName, Enabled, Settings};
use picokube_core::time::Duration as Span;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::controllers::{self, Credentials, Endpoint, Material};
use crate::disk::{self, Disk};
use crate::http::names::ServerNames;
use crate::http::tls::{self, Certificates};
use crate::http::{Access, Cluster, Logs, kubeconfig, serve};
use crate::private;
use crate::store::HistoryLimits;

use super::firmware::Device;
use super::run::{Defaults, serve as serve_health, settings};
use super::{ServeOptions, UpOptions, demo, screen};

/// Starts a cluster and runs it until Ctrl-C.
pub(super) async fn up(options: UpOptions) -> Result<()> {
    let nodes = if options.manual { 0 } else { options.nodes };
    let running = Running::start(&options.serve, nodes).await?;
    running.introduce();
    if nodes == 0 {
        say!("nodes: none; only clients move pods");
    } else {
        say!("nodes: {nodes} simulated");
    }
    let mut device = None;
    let settings = settings(&options.controllers, &defaults(nodes))?;
    if let Some(image) = &options.firmware {
        let pages = options.controllers.metrics_bind_address;
        device = Some(Device::start(image.as_deref(), &running.url, &settings, pages)?);
        say!("controllers: those of the firmware, on an emulated Cortex-M4");
    } else if options.no_controllers {
        say!("controllers: none; nothing creates the pods of Deployments and ReplicaSets");
    } else {
        let endpoint = running.endpoint()?;
        let capacity = options.controllers.capacity;
        let options_of_run = controllers::Options { endpoint, capacity, settings };
        let controllers = controllers::start(options_of_run)?;
        running.cluster.shared().also_show_metrics_of(controllers.metrics_source());
        say!("controllers: {}; over HTTP like any client", keys(settings.controllers));
        serve_health(&controllers, options.controllers.metrics_bind_address).await?;
    }
    if options.demo {
        let (shared, url) = (running.cluster.shared().clone(), running.url.clone());
        return running.until_interrupted(demo::run(shared, url)).await;
    }
    running.show_until_interrupted(device.as_ref()).await
}

/// The kinds that controllers look after.
fn keys(enabled: Enabled) -> String {
    let enabled = ControllerName::ALL.iter().filter(|controller| enabled.contains(**controller));
    let kinds: Vec<_> = enabled.map(|controller| controller.info().key.info().name).collect();
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}

/// On one machine there is nobody to spare. Who moves every pod by hand wants to see every status.
fn defaults(nodes: usize) -> Defaults {
    let status_lag = if nodes == 0 { Span::ZERO } else { Settings::STATUS_LAG };
    Defaults { qps: 0, status_lag }
}

/// Starts the API server alone and runs it until Ctrl-C.
pub(super) async fn server(options: ServeOptions) -> Result<()> {
    let running = Running::start(&options, 0).await?;
    running.introduce();
    running.show_until_interrupted(None).await
}

/// A cluster with an open socket.
struct Running {
    cluster: Cluster,
    /// For clients on this machine.
    url: String,
    /// For clients elsewhere.
    outside: String,
    authority_pem: Option<String>,
    token: Option<String>,
    kubeconfig: Option<std::path::PathBuf>,
    logs: Arc<Logs>,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start(options: &ServeOptions, nodes: usize) -> Result<Self> {
        if let Some(data) = &options.data {
            // Before the first secret goes into it.
            private::directory(data, &disk::FILES)?;
        }
        let security = Security::of(options)?;
        let logs = Arc::new(options.logs.open()?);
        let disk = options.data.as_deref().map(Disk::open).transpose()?;
        let limits =
            HistoryLimits { changes: options.watch_history.max(1), ..HistoryLimits::default() };
        let cluster = Cluster::start(limits, disk)?;
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("cannot listen on {}", options.listen))?;
        let bound = listener.local_addr()?;
        let (url, outside) = (security.url(bound), security.outside_url(bound));
        cluster.publish(bound.port(), security.authority_pem.as_deref());
        if let Some(path) = &options.write_kubeconfig {
            let text = kubeconfig::kubeconfig(
                &outside,
                security.authority_pem.as_deref(),
                security.token.as_deref(),
            );
            private::write(path, &text)?;
        }
        if nodes > 0 {
            cluster.start_nodes(nodes);
        }
        let access = match &security.token {
            Some(token) => Access::Token(token.clone()),
            None => Access::Open(options.accept_hosts.clone()),
        };
        let (stop, stopping) = watch::channel(false);
        let shared = cluster.shared().clone();
        let serving = tokio::spawn(serve(
            listener,
            security.acceptor.clone(),
            access,
            shared,
            options.limits.limits(),
            logs.clone(),
            stopping,
        ));
        let kubeconfig = options.write_kubeconfig.clone();
        let Security { authority_pem, token, .. } = security;
        Ok(Self { cluster, url, outside, authority_pem, token, kubeconfig, logs, stop, serving })
    }

    /// This server, for a client in this process.
    fn endpoint(&self) -> Result<Endpoint> {
        let authority = self.authority_pem.clone().map(Material::Pem);
        let credentials = Credentials { authority, ..Credentials::default() };
        Endpoint::new(&self.url, self.token.as_deref(), &credentials)
    }

    /// Says where the server is and what to try.
    fn introduce(&self) {
        say!("listening on {}", self.url);
        if self.outside != self.url {
            say!("for others: {}", self.outside);
        }
        match &self.kubeconfig {
            Some(path) => {
                let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                say!("\n  export KUBECONFIG={}\n", path.display());
            }
            None => say!("\n  (for kubectl: start with --write-kubeconfig FILE)\n"),
        }
        say!("Then try:");
        say!("  kubectl get nodes");
        say!("  kubectl run hello --image=nginx && kubectl get pods --watch");
        say!("  kubectl run broken --image=app:crash-loop && kubectl describe pod broken\n");
    }

    /// Shows the usual screen until Ctrl-C.
    async fn show_until_interrupted(self, device: Option<&Device>) -> Result<()> {
        let (shared, url) = (self.cluster.shared().clone(), self.url.clone());
        let shown = async {
            screen::show(shared, url, device).await;
            Ok(())
        };
        self.until_interrupted(shown).await
    }

    /// Goes on until Ctrl-C, or until what is done meanwhile ends.
    async fn until_interrupted(self, meanwhile: impl Future<Output = Result<()>>) -> Result<()> {
        tokio::select! {
            interrupted = interrupted() => interrupted?,
            ended = meanwhile => ended?,
        }
        say!("stopping");
        // Nobody else listens to this channel once the server has ended by itself.
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(Duration::from_secs(6), self.serving).await;
        self.cluster.stop().await;
        let logs = self.logs;
        // The last lines may have to wait for a slow disk.
        let _ = tokio::task::spawn_blocking(move || logs.finish()).await;
        Ok(())
    }
}

/// Ctrl-C, or the signal with which service managers end a process.
pub(super) async fn interrupted() -> Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// How the socket is protected.
struct Security {
    acceptor: Option<TlsAcceptor>,
    authority_pem: Option<String>,
    token: Option<String>,
    names: ServerNames,
}

impl Security {
    fn of(options: &ServeOptions) -> Result<Self> {
        let address = options.listen.ip();
        let names = ServerNames::of(address, &options.tls_san)?;
        let given = options.tls_cert_file.is_some()
            || options.token_file.is_some()
            || !options.tls_san.is_empty();
        if address.is_loopback() && !options.secure && !given {
            return Ok(Self { acceptor: None, authority_pem: None, token: None, names });
        }
        let directory = match (&options.cert_dir, &options.data) {
            (Some(directory), _) => Some(directory.clone()),
            (None, Some(data)) => {
                let directory = data.join("pki");
                private::directory(&directory, &tls::FILES)?;
                Some(directory)
            }
            (None, None) => None,
        };
        let certificates = match (&options.tls_cert_file, &options.tls_private_key_file) {
            (Some(chain), Some(key)) => {
                let certificates = Certificates::from_files(chain, key)?;
                let missing = certificates.missing(&options.tls_san)?;
                if !missing.is_empty() {
                    let missing = missing.join(", ");
                    bail!("{} is not valid for --tls-san {missing}", chain.display());
                }
                certificates
            }
            _ => certificates(directory.as_deref(), &names)?,
        };
        let token = match (&options.token_file, &directory) {
            (Some(file), _) => {
                let token = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                if token.trim().is_empty() {
                    bail!("{} is empty", file.display());
                }
                token.trim().to_owned()
            }
            (None, Some(directory)) => tls::token_in_directory(directory)?,
            (None, None) => tls::new_token()?,
        };
        if options.write_kubeconfig.is_none() && directory.is_none() && options.token_file.is_none()
        {
            bail!(
                "a server at {address} wants a token from its clients, but nobody would know it: \
                 give --write-kubeconfig, --cert-dir, --data or --token-file"
            );
        }
        Ok(Self {
            acceptor: Some(TlsAcceptor::from(certificates.server_config()?)),
            authority_pem: Some(certificates.authority_pem),
            token: Some(token),
            names,
        })
    }

    /// The address for clients on this machine; a wildcard is reached over loopback.
    fn url(&self, bound: SocketAddr) -> String {
        let scheme = if self.acceptor.is_some() { "https" } else { "http" };
        let mut address = bound;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
                IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            });
        }
        format!("{scheme}://{address}")
    }

    /// The address for clients on other machines. Without TLS, there are none.
    fn outside_url(&self, bound: SocketAddr) -> String {
        match self.acceptor {
            Some(_) => format!("https://{}", self.names.authority(bound.port())),
            None => self.url(bound),
        }
    }
}

fn certificates(directory: Option<&Path>, names: &ServerNames) -> Result<Certificates> {
    match directory {
        Some(directory) => {
            Certificates::in_directory(directory, names, |news| say!("note: {news}"))
        }
        None => Certificates::generate(names),
    }
}

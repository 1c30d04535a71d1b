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
use crate::http::kubeconfig::{self, Credential};
use crate::http::names::ServerNames;
use crate::http::tls::{self, Certificates, Clients};
use crate::http::{Access, ClientAuthorities, Cluster, Logs, serve};
use crate::private;
use crate::store::HistoryLimits;

use super::firmware::{Booting, Devices, Served};
use super::interruption::Interruption;
use super::run::{Defaults, serve as serve_health, settings};
use super::{ServeOptions, UpOptions, demo, screen};

/// How long the garbage collector takes where every pod is moved by hand: whoever looks at each step sees the
/// controllers have their say before the next one, also where they are slow.
const COLLECTOR_BY_HAND_MILLIS: i64 = 400;

/// Starts a cluster and runs it until Ctrl-C.
pub(super) async fn up(options: UpOptions) -> Result<()> {
    let nodes = if options.manual { 0 } else { options.nodes };
    let has_device = options.firmware.is_some() && !options.firmware_plain_http;
    let running = Running::start(&options.serve, nodes, has_device).await?;
    running.introduce();
    if nodes == 0 {
        let shared = running.cluster.shared();
        shared.write(|server, _| server.delay_garbage_collection(COLLECTOR_BY_HAND_MILLIS));
        say!("nodes: none; only clients move pods");
    } else {
        say!("nodes: {nodes} simulated");
    }
    let mut devices = Devices::default();
    let settings = settings(&options.controllers, &defaults(nodes))?;
    if let Some(image) = &options.firmware {
        devices = Devices::boot(&Booting {
            image: image.as_deref(),
            served: running.served(),
            settings: &settings,
            pages: options.controllers.metrics_bind_address,
            has_standby: options.standby,
        })?;
        let on = if options.standby {
            "two emulated Cortex-M4, of which one stands by"
        } else {
            "an emulated Cortex-M4"
        };
        say!("controllers: those of the firmware, on {on}");
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
        return running.until_interrupted(&devices, demo::run(shared, url)).await;
    }
    running.show_until_interrupted(&devices).await
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
    let running = Running::start(&options, 0, false).await?;
    running.introduce();
    running.show_until_interrupted(&Devices::default()).await
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
    interruption: Interruption,
}

impl Running {
    /// `has_device`: there is a device that speaks TLS.
    async fn start(options: &ServeOptions, nodes: usize, has_device: bool) -> Result<Self> {
        if let Some(data) = &options.data {
            // Before the first secret goes into it.
            private::directory(data, &disk::FILES)?;
        }
        let security = Security::of(options, has_device)?;
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
            let credential = security.credential(options)?;
            let authority = security.authority_pem.as_deref();
            let text = kubeconfig::kubeconfig(&outside, authority, &credential);
            private::write(path, &text)?;
        }
        if nodes > 0 {
            cluster.start_nodes(nodes);
        }
        let access = match &security.token {
            Some(token) => {
                Access::Known { token: token.clone(), clients: security.clients.clone() }
            }
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
        Ok(Self {
            cluster,
            url,
            outside,
            authority_pem,
            token,
            kubeconfig,
            logs,
            stop,
            serving,
            interruption: Interruption::expect()?,
        })
    }

    /// This server, for a client in this process.
    fn endpoint(&self) -> Result<Endpoint> {
        let authority = self.authority_pem.clone().map(Material::Pem);
        let credentials = Credentials { authority, ..Credentials::default() };
        Endpoint::new(&self.url, self.token.as_deref(), &credentials)
    }

    /// This server, for a device in the emulator.
    fn served(&self) -> Served<'_> {
        let token = self.token.clone().map_or(Credential::Nothing, Credential::Token);
        let authority = self.authority_pem.as_deref();
        let kubeconfig = authority.map(|it| kubeconfig::kubeconfig(&self.url, Some(it), &token));
        Served { url: &self.url, kubeconfig }
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
    async fn show_until_interrupted(self, devices: &Devices) -> Result<()> {
        let (shared, url) = (self.cluster.shared().clone(), self.url.clone());
        let shown = async {
            screen::show(shared, url, devices).await;
            Ok(())
        };
        self.until_interrupted(devices, shown).await
    }

    /// Goes on until Ctrl-C, or until what is done meanwhile ends. Devices end first, with the server there
    /// to take what they give back.
    async fn until_interrupted(
        self,
        devices: &Devices,
        meanwhile: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        tokio::select! {
            () = self.interruption.comes() => {}
            ended = meanwhile => ended?,
        }
        say!("stopping");
        // The server has threads of its own.
        tokio::task::block_in_place(|| devices.end());
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

/// How the socket is protected.
struct Security {
    acceptor: Option<TlsAcceptor>,
    authority_pem: Option<String>,
    token: Option<String>,
    /// Who vouches for clients.
    clients: Option<ClientAuthorities>,
    /// The same, if it is the cluster's own and can sign.
    own_clients: Option<Clients>,
    names: ServerNames,
}

impl Security {
    fn of(options: &ServeOptions, has_device: bool) -> Result<Self> {
        let address = options.listen.ip();
        let names = ServerNames::of(address, &options.tls_san)?;
        let given = options.tls_cert_file.is_some()
            || options.token_file.is_some()
            || options.client_ca_file.is_some()
            || options.kubeconfig_user.is_some()
            || !options.tls_san.is_empty();
        if address.is_loopback() && !options.secure && !given && !has_device {
            return Ok(Self {
                acceptor: None,
                authority_pem: None,
                token: None,
                clients: None,
                own_clients: None,
                names,
            });
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
        let (clients, own_clients) = match (&options.client_ca_file, &directory) {
            (Some(file), _) => (ClientAuthorities::from_file(file)?, None),
            (None, directory) => {
                let own = match directory {
                    Some(directory) => Clients::in_directory(directory)?,
                    None => Clients::generate()?,
                };
                (own.authorities()?, Some(own))
            }
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
        let told = options.write_kubeconfig.is_some()
            || options.token_file.is_some()
            || options.client_ca_file.is_some()
            // The device knows it.
            || has_device;
        if !told && directory.is_none() {
            bail!(
                "a server at {address} wants a token from its clients, but nobody would know it: \
                 give --write-kubeconfig, --cert-dir, --data, --token-file or --client-ca-file"
            );
        }
        Ok(Self {
            acceptor: Some(TlsAcceptor::from(certificates.server_config(Some(&clients))?)),
            authority_pem: Some(certificates.authority_pem),
            token: Some(token),
            clients: Some(clients),
            own_clients,
            names,
        })
    }

    /// What a kubeconfig shows to this server.
    fn credential(&self, options: &ServeOptions) -> Result<Credential> {
        match (&options.kubeconfig_user, &self.own_clients, &self.token) {
            (Some(user), Some(clients), _) => {
                let group = options.kubeconfig_group.as_deref();
                Ok(Credential::Certificate(clients.identify(user, group)?))
            }
            (_, _, Some(token)) => Ok(Credential::Token(token.clone())),
            (_, _, None) => Ok(Credential::Nothing),
        }
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

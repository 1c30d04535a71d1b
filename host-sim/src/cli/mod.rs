//! The command line.

/// Like `println!`, but it makes no difference whether anybody takes it: who pipes a cluster or a check into
/// `head` does not mean to end it.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod bench;
mod check;
mod demo;
mod election;
mod firmware;
mod inside;
mod interruption;
mod limits;
mod run;
mod screen;
mod up;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::controllers::Capacity;
use crate::http::{AcceptedHosts, DEFAULT_ACCEPT_HOSTS};

use election::ElectionOptions;
use limits::{LimitOptions, LogOptions};

/// Parses the arguments of this process and does what they say.
pub fn run() -> anyhow::Result<ExitCode> {
    // Every watch holds a connection; the usual soft limit is 1024. Without more it works too.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let arguments = Arguments::parse();
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Up(options) => up::up(options).await,
            Command::Server(options) => up::server(options).await,
            Command::Run(options) => run::run(options).await,
            Command::Check(options) => return Ok(check::check(&options)),
            Command::Bench { what: Bench::Server(options) } => bench::server(options).await,
            Command::Bench { what: Bench::Controllers(options) } => {
                bench::controllers(options).await
            }
            Command::Bench { what: Bench::Latency(options) } => bench::latency(options).await,
            Command::Bench { what: Bench::Transport(options) } => bench::transport(options).await,
        }
        .map(|()| ExitCode::SUCCESS)
    });
    // A client that never lets go of its connection must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// A Kubernetes cluster in one process.
///
/// picokube serves the Kubernetes API and plays the nodes, so that kubectl and your own
/// controllers have a cluster to talk to within a second, without containers or root.
#[derive(Debug, Parser)]
#[command(
    name = "picokube",
    version,
    after_help = "Start a cluster and look at it:\n  \
        picokube up --write-kubeconfig kubeconfig\n  \
        export KUBECONFIG=$PWD/kubeconfig\n  \
        kubectl get nodes"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a cluster: API server, simulated nodes and workload controllers
    Up(UpOptions),
    /// Start the API server alone: nothing in the cluster moves by itself
    Server(ServeOptions),
    /// Run only the workload controllers, against any cluster
    Run(RunOptions),
    /// Break the controllers in a simulation, over and over, and see whether they hold
    Check(check::CheckOptions),
    /// Measure how fast this machine is
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Creates, gets, lists and watches per second, and memory per pod
    Server(ServerBenchOptions),
    /// Requests, bytes, CPU time and memory that the controllers need for Deployments
    Controllers(ControllersBenchOptions),
    /// How long people wait for a Deployment, with statuses that wait for each other and without
    Latency(LatencyBenchOptions),
    /// Requests, bytes and CPU time over HTTP/1.1 and over HTTP/2 with TLS, at work and idle
    Transport(TransportBenchOptions),
}

/// What firmware decides itself, or its configuration does.
const OWN_BUSINESS_OF_FIRMWARE: [&str; 4] =
    ["controllers", "capacity", "kube_api_qps", "kube_api_burst"];

/// Options of `picokube up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    picokube up                              a cluster of three nodes on 127.0.0.1:8001\n  \
    picokube up --demo                       watch a rollout, one that fails, and an undo\n  \
    picokube up --nodes 50 --data ./cluster  fifty nodes; everything survives a restart\n  \
    picokube up --manual                     nobody but you moves pods (for tests)\n  \
    picokube up --firmware                   controllers on an emulated microcontroller\n  \
    picokube up --firmware --standby         on two of them, of which one leads\n  \
    picokube up --listen 0.0.0.0:6443 --tls-san ci.example.org --write-kubeconfig kubeconfig\n  \
    \u{20}                                        for other machines, with TLS and a token\n  \
    picokube up --write-kubeconfig kubeconfig --kubeconfig-user alice\n  \
    \u{20}                                        with TLS and a client certificate\n  \
    picokube up --audit-log-path audit.log   who did what, as kube-apiserver writes it\n\n\
    How simulated pods behave is chosen by image tag or annotation, for example\n  \
    kubectl run broken --image=app:crash-loop\n\
    See docs/simulated-nodes.md.")]
struct UpOptions {
    #[command(flatten)]
    serve: ServeOptions,
    /// Number of simulated nodes
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: usize,
    /// No nodes at all: only clients bind pods and write their status, and see every status of the
    /// controllers
    #[arg(long, conflicts_with = "nodes")]
    manual: bool,
    /// Do not run the workload controllers
    #[arg(long)]
    no_controllers: bool,
    /// Run them on an emulated microcontroller instead: the firmware that `cargo xtask firmware
    /// build` has built, or another image
    #[arg(long, value_name = "ELF", num_args = 0..=1)]
    #[arg(conflicts_with_all = OWN_BUSINESS_OF_FIRMWARE, conflicts_with = "no_controllers")]
    firmware: Option<Option<PathBuf>>,
    /// Have the microcontroller speak plain HTTP, on loopback and without a token, instead of TLS
    #[arg(long, requires = "firmware", conflicts_with = "secure")]
    firmware_plain_http: bool,
    /// Have two of them, of which one leads and the other stands by: the first serves its pages at
    /// --metrics-bind-address, the second at the next port
    #[arg(long, requires = "firmware")]
    standby: bool,
    /// Show what the controllers do: three Deployments, a rollout, one that fails, and an undo
    #[arg(long, conflicts_with_all = ["manual", "no_controllers"])]
    demo: bool,
    #[command(flatten)]
    controllers: ControllerOptions,
}

/// Options of `picokube run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    picokube run --kubeconfig ~/.kube/config       the cluster kubectl talks to\n  \
    picokube run --server http://127.0.0.1:8001    a server without TLS\n  \
    picokube run                                   as a pod, in the cluster it runs in\n\n\
    The controllers of the cluster's own kube-controller-manager must not run at the same time:\n  \
    kube-controller-manager --controllers='*,-deployment,-replicaset,-replicationcontroller,-statefulset'")]
struct RunOptions {
    /// kubeconfig file that leads to the cluster
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig file [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubeconfig", conflicts_with = "server")]
    context: Option<String>,
    /// API server, as http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// File with a token for --server
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "kubeconfig")]
    token_file: Option<PathBuf>,
    /// Certificate of the authority that has signed the server's, in PEM, for --server
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "kubeconfig")]
    certificate_authority: Option<PathBuf>,
    /// Certificate to show to the server, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["server", "client_key"])]
    #[arg(conflicts_with = "kubeconfig")]
    client_certificate: Option<PathBuf>,
    /// Private key for --client-certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    /// Where a pod finds token and authority of its service account
    #[arg(long, value_name = "DIR")]
    #[arg(default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    service_account_dir: PathBuf,
    /// Look at these namespaces only, given with commas between or one by one [default: all]; for
    /// more than one, permission to list and watch the whole cluster is needed
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    namespace: Vec<String>,
    /// Look at objects with these labels only; up to 128 characters, as a URL has them
    #[arg(long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    election: ElectionOptions,
    #[command(flatten)]
    controllers: ControllerOptions,
}

/// How the controllers run.
#[derive(Debug, Args)]
struct ControllerOptions {
    /// Controllers to run: '*' is all, 'foo' turns one on, '-foo' turns one off. There are
    /// deployment-controller, replicaset-controller, statefulset-controller and
    /// replicationcontroller-controller, for short deployment, replicaset, statefulset and
    /// replicationcontroller
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "LIST")]
    #[arg(allow_hyphen_values = true)]
    controllers: Vec<String>,
    /// Feature gates, as NAME=true or NAME=false; known:
    /// DeploymentReplicaSetTerminatingReplicas and MaxUnavailableStatefulSet, both off
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    feature_gates: Vec<String>,
    /// Requests a second of each controller; 0 is no limit [default: 20, in `up` 0]
    #[arg(long, value_name = "N")]
    kube_api_qps: Option<u32>,
    /// Requests at once of each controller
    #[arg(long, default_value_t = 30, value_name = "N")]
    kube_api_burst: u32,
    /// Milliseconds that statuses may wait for each other while a rollout goes on: fewer requests,
    /// the same end; 0 writes every one, as Kubernetes does [default: 100, in `up` without nodes 0]
    #[arg(long, value_name = "MILLISECONDS")]
    status_lag: Option<u32>,
    /// Serve /metrics, /healthz, /livez and /readyz of the controllers here [default: nowhere; in
    /// `up`, /metrics of the API server has the metrics anyway, but for those of a firmware]
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_bind_address: Option<SocketAddr>,
    /// How many objects the controllers can hold
    #[arg(long, value_enum, default_value_t = Capacity::Host, value_name = "SIZE")]
    capacity: Capacity,
}

/// Options of everything that serves the API.
#[derive(Debug, Args)]
struct ServeOptions {
    /// Address to listen on; anything but loopback needs TLS and a token, and gets both
    #[arg(long, default_value = "127.0.0.1:8001", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Hosts that requests may name where no token is asked for: regular expressions for the whole
    /// host without its port, with commas between, as in `kubectl proxy`. So no web page gets in by
    /// a name of its own (DNS rebinding); IP addresses are always accepted. Writes from pages of
    /// other origins are refused, too
    #[arg(long, value_name = "LIST", default_value = DEFAULT_ACCEPT_HOSTS)]
    #[arg(value_parser = AcceptedHosts::parse)]
    accept_hosts: AcceptedHosts,
    /// Write a kubeconfig that leads here, for its owner only
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Let the kubeconfig show a certificate for this user, good for a year, instead of the token
    #[arg(long, value_name = "NAME", requires = "write_kubeconfig")]
    #[arg(conflicts_with = "client_ca_file")]
    kubeconfig_user: Option<String>,
    /// A group that this user belongs to
    #[arg(long, value_name = "NAME", requires = "kubeconfig_user")]
    kubeconfig_group: Option<String>,
    /// Keep the cluster in this directory, which is closed to everybody else (mode 0700); without
    /// it, it lives in memory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use TLS and a token on loopback too
    #[arg(long)]
    secure: bool,
    /// Certificate chain of the server in PEM; made at the first start if not given
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Private key for --tls-cert-file in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// Directory for generated certificates and token; a certificate that lacks a name of the
    /// server is renewed [default: DATA/pki, or none]
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// File with the token that clients have to show; made at the first start if not given
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Authorities of clients, in PEM: whoever shows a certificate that one of them has signed is the
    /// user that it names (CN), in its groups (O); others need the token; made at the first start if
    /// not given
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Another name or address by which clients reach the server: certificates that are made name
    /// it, and kubeconfigs lead to the first of them; may be given several times
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,
    /// Changes that are remembered per resource, for watches that are resumed
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    watch_history: usize,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    logs: LogOptions,
}

/// Options of `picokube bench server`.
#[derive(Debug, Args)]
struct ServerBenchOptions {
    /// Pods to create
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Bytes of each pod once it is stored, about
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    pod_bytes: usize,
    /// Watches that follow
    #[arg(long, default_value_t = 10, value_name = "N")]
    watchers: usize,
    /// Connections that write and read
    #[arg(long, default_value_t = 16, value_name = "N")]
    clients: usize,
    /// Measure with the cluster on disk, in this directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Options of `picokube bench controllers`.
#[derive(Debug, Args)]
struct ControllersBenchOptions {
    /// Deployments to create, update and delete; with commas between, one round for each number
    #[arg(long, value_delimiter = ',', default_value = "100,500", value_name = "N")]
    deployments: Vec<usize>,
    /// Replicas of each
    #[arg(long, default_value_t = 10, value_name = "N")]
    replicas: usize,
    /// How many objects the controllers can hold
    #[arg(long, value_enum, default_value_t = Capacity::Medium, value_name = "SIZE")]
    capacity: Capacity,
    /// Milliseconds that a status may wait; with commas between, each is measured
    #[arg(long, value_delimiter = ',', default_value = "0,100", value_name = "MS")]
    status_lag: Vec<u32>,
}

/// Options of `picokube bench transport`.
#[derive(Debug, Args)]
struct TransportBenchOptions {
    /// Deployments that are rolled at once, beside one alone
    #[arg(long, default_value_t = 100, value_name = "N")]
    deployments: usize,
    /// Replicas of each
    #[arg(long, default_value_t = 10, value_name = "N")]
    replicas: usize,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// How long the controllers are watched while they have nothing to do; 0 leaves that out
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    idle: u64,
    /// Have the controllers renew a Lease, as they do unless told otherwise
    #[arg(long)]
    leader_elect: bool,
    /// How many objects the controllers can hold
    #[arg(long, value_enum, default_value_t = Capacity::Medium, value_name = "SIZE")]
    capacity: Capacity,
}

/// Options of `picokube bench latency`.
#[derive(Debug, Args)]
struct LatencyBenchOptions {
    /// How often each is measured
    #[arg(long, default_value_t = 11, value_name = "N")]
    rounds: usize,
    /// How many objects the controllers can hold
    #[arg(long, value_enum, default_value_t = Capacity::Medium, value_name = "SIZE")]
    capacity: Capacity,
    /// Milliseconds that a status may wait, to compare with one that never does
    #[arg(long, default_value_t = 100, value_name = "MS")]
    status_lag: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn credentials_belong_to_a_server_or_are_in_a_kubeconfig() {
        let parse = |arguments: &[&str]| {
            Arguments::try_parse_from([&["picokube", "run"], arguments].concat()).is_ok()
        };
        assert!(parse(&[]));
        assert!(parse(&["--kubeconfig", "a", "--context", "b"]));
        assert!(parse(&["--server", "a", "--token-file", "b", "--certificate-authority", "c"]));
        assert!(parse(&["--server", "a", "--client-certificate", "b", "--client-key", "c"]));
        assert!(!parse(&["--server", "a", "--kubeconfig", "b"]));
        assert!(!parse(&["--server", "a", "--context", "b"]));
        assert!(!parse(&["--server", "a", "--client-certificate", "b"]));
        assert!(!parse(&["--server", "a", "--client-key", "b"]));
        for option in ["--token-file", "--certificate-authority"] {
            assert!(!parse(&[option, "a"]), "{option}");
            assert!(!parse(&["--kubeconfig", "a", option, "b"]), "{option}");
        }
    }

    #[test]
    fn firmware_takes_some_of_the_controllers_options() {
        let parse = |arguments: &[&str]| {
            let up = [&["picokube", "up", "--firmware"], arguments].concat();
            Arguments::try_parse_from(up).is_ok()
        };
        assert!(parse(&[]));
        assert!(parse(&["--status-lag", "0", "--feature-gates", "A=true"]));
        assert!(parse(&["--metrics-bind-address", "127.0.0.1:1"]));
        for option in ["--controllers=-deployment", "--capacity=tiny", "--kube-api-qps=1"] {
            assert!(!parse(&[option]), "{option}");
        }
        assert!(!parse(&["--no-controllers"]));
    }

    #[test]
    fn the_demo_needs_nodes_and_controllers() {
        for with in ["--manual", "--no-controllers"] {
            assert!(Arguments::try_parse_from(["picokube", "up", "--demo", with]).is_err());
        }
    }

    #[test]
    fn nodes_and_manual_exclude_each_other() {
        assert!(Arguments::try_parse_from(["picokube", "up", "--nodes", "2", "--manual"]).is_err());
        assert!(Arguments::try_parse_from(["picokube", "up", "--manual"]).is_ok());
    }
}

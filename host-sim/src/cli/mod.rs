//! The command line.

mod bench;
mod screen;
mod up;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Parses the arguments of this process and does what they say.
pub fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let arguments = Arguments::parse();
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Up(options) => up::up(options).await,
            Command::Server(options) => up::server(options).await,
            Command::Bench { what: Bench::Server(options) } => bench::server(options).await,
        }
    });
    // A client that never lets go of its connection must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// A Kubernetes cluster in one process.
///
/// picokube serves the Kubernetes API and plays the nodes, so that kubectl, Helm and your own
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
    /// Start a cluster: API server and simulated nodes
    Up(UpOptions),
    /// Start the API server alone: nothing in the cluster moves by itself
    Server(ServeOptions),
    /// Measure how fast this machine is
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Creates, gets, lists and watches per second, and memory per pod
    Server(BenchOptions),
}

/// Options of `picokube up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    picokube up                              a cluster of three nodes on 127.0.0.1:8001\n  \
    picokube up --nodes 50 --data ./cluster  fifty nodes; everything survives a restart\n  \
    picokube up --manual                     nobody but you moves pods (for tests)\n  \
    picokube up --listen 0.0.0.0:6443        for other machines, with TLS and a token\n\n\
    How simulated pods behave is chosen by image tag or annotation, for example\n  \
    kubectl run broken --image=app:crash-loop\n\
    See docs/simulated-nodes.md.")]
struct UpOptions {
    #[command(flatten)]
    serve: ServeOptions,
    /// Number of simulated nodes
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: usize,
    /// No nodes at all: only clients bind pods and write their status
    #[arg(long, conflicts_with = "nodes")]
    manual: bool,
    /// Do not run the workload controllers
    #[arg(long)]
    no_controllers: bool,
}

/// Options of everything that serves the API.
#[derive(Debug, Args)]
struct ServeOptions {
    /// Address to listen on; anything but loopback needs TLS and a token, and gets both
    #[arg(long, default_value = "127.0.0.1:8001", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Write a kubeconfig that leads here
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Keep the cluster in this directory; without it, it lives in memory
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
    /// Directory for generated certificates and token [default: DATA/pki, or none]
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// File with the token that clients have to show; made at the first start if not given
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Watches at the same time
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    max_watches: usize,
    /// Changes that are remembered per resource, for watches that are resumed
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    watch_history: usize,
}

/// Options of `picokube bench server`.
#[derive(Debug, Args)]
struct BenchOptions {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn nodes_and_manual_exclude_each_other() {
        assert!(Arguments::try_parse_from(["picokube", "up", "--nodes", "2", "--manual"]).is_err());
        assert!(Arguments::try_parse_from(["picokube", "up", "--manual"]).is_ok());
    }
}

//! The `picokube` command.

use std::net::SocketAddr;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "picokube", version, about = "A Kubernetes cluster in one process")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster on this machine
    Up {
        /// Address to listen on
        #[arg(long, default_value = "127.0.0.1:8001")]
        listen: SocketAddr,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Up { listen } => tokio::select! {
            served = picokube::http::serve(listen) => served?,
            stopped = tokio::signal::ctrl_c() => stopped?,
        },
    }
    Ok(())
}

//! `picokube-qemu`: a firmware as the controller of a cluster on this machine.
//!
//! A program of its own, so that `picokube` needs no decoder of firmware logs. `picokube up
//! --firmware` runs it and shows what it prints.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{process, thread};

use anyhow::{Result, bail, ensure};
use clap::Parser;
use picokube_config::{Document, PAGE, write_page};
use picokube_qemu::{HOST_SEEN_BY_GUEST, Image, Machine, Start};

/// Boots a firmware in QEMU as the controller of a cluster, and prints its log.
///
/// It ends when its standard input does.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The firmware: what `cargo xtask firmware build` prints
    #[arg(long, value_name = "ELF")]
    image: PathBuf,
    /// The API server, on this machine's loopback
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: SocketAddr,
    /// Who the device is
    #[arg(long, default_value = "picokube")]
    identity: String,
    /// Milliseconds that statuses may wait for each other while a rollout goes on; 0 writes every
    /// status, as kube-controller-manager does
    #[arg(long, value_name = "MILLISECONDS")]
    status_lag: Option<u32>,
    /// Kubernetes' feature gates, such as DeploymentReplicaSetTerminatingReplicas=true
    #[arg(long, value_name = "NAME=BOOL,…")]
    feature_gates: Option<String>,
    /// Serve the device's /healthz, /readyz and /metrics here
    #[arg(long, value_name = "ADDRESS:PORT")]
    status: Option<SocketAddr>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { image, server, identity, status, status_lag, feature_gates } = arguments;
    ensure!(
        image.exists(),
        "there is no firmware at {}: `cargo xtask firmware build` builds it",
        image.display()
    );
    ensure!(
        server.ip().is_loopback(),
        "QEMU's network leads the firmware to this machine's loopback only, and {server} is not there"
    );
    let image = Arc::new(Image::open(image)?);
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", server.port());
    let document = Document {
        server: &address,
        identity,
        qps: Some(0),
        status_lag: *status_lag,
        feature_gates: feature_gates.as_deref(),
        ..Document::default()
    };
    let mut page = [0; PAGE];
    let len = write_page(&document, &mut page)?;
    let page = page.get(..len);
    let mut machine = Machine::boot(&image, Start { page, status: *status, ..Start::default() })?;
    let emulator = machine.process_id();
    thread::spawn(move || end_with_input(emulator));
    while let Some(line) = machine.next_line(Duration::MAX)? {
        println!("{line}");
    }
    bail!("the emulator has ended")
}

/// Whoever started this is gone, or wants no more.
fn end_with_input(emulator: u32) {
    // Whatever comes is of no interest, and an error is an end, too.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let _ = process::Command::new("kill").arg(emulator.to_string()).status();
    process::exit(0);
}

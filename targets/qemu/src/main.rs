//! `picokube-qemu`: a firmware as the controller of a cluster on this machine.
//!
//! A program of its own, so that `picokube` needs no decoder of firmware logs. `picokube up
//! --firmware` runs it and shows what it prints.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};

use anyhow::{Result, ensure};
use clap::Parser;
use picokube_config::{Document, PAGE, write_page};
use picokube_provision::{AccessArguments, ElectionArguments};
use picokube_qemu::{Console, HOST_SEEN_BY_GUEST, Image, Machine, Start};

/// Boots a firmware in QEMU as the controller of a cluster, and prints its log.
///
/// It ends when its standard input does; a device that leads then gives leadership back before.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The firmware: what `cargo xtask firmware build` prints
    #[arg(long, value_name = "ELF")]
    image: PathBuf,
    /// The API server, on this machine's loopback
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: SocketAddr,
    /// The server speaks TLS: a kubeconfig that says whom to trust and as whom to come
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
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
    /// Which device it is of several
    #[arg(long, value_name = "N", default_value_t = 0)]
    number: u8,
    #[command(flatten)]
    election: ElectionArguments,
    /// Serve the device's /healthz, /readyz and /metrics here
    #[arg(long, value_name = "ADDRESS:PORT")]
    status: Option<SocketAddr>,
}

/// Longer than a device takes to give leadership back, or to give that up: the renew deadline.
const ORDERLY_END: Duration = Duration::from_secs(12);

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
    let Arguments { image, server, identity, status, number, kubeconfig, .. } = arguments;
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
    let scheme = if kubeconfig.is_some() { "https" } else { "http" };
    let access = AccessArguments {
        kubeconfig: kubeconfig.clone(),
        server: Some(format!("{scheme}://{HOST_SEEN_BY_GUEST}:{}", server.port())),
        // Where the emulated network leads is this machine's loopback, and that is what a certificate names.
        tls_server_name: kubeconfig.is_some().then(|| server.ip().to_string()),
        ..AccessArguments::default()
    };
    let access = access.access()?;
    let document = access.apply(Document {
        identity,
        qps: Some(0),
        status_lag: arguments.status_lag,
        feature_gates: arguments.feature_gates.as_deref(),
        leader_election: arguments.election.election(false)?,
        ..Document::default()
    });
    let mut page = [0; PAGE];
    let len = write_page(&document, &mut page)?;
    let page = page.get(..len);
    let start = Start { page, status: *status, number: *number, ..Start::default() };
    let mut machine = Machine::boot(&image, start)?;
    let (emulator, console) = (machine.process_id(), machine.console());
    let console = document.leader_election.map(|_| console);
    let is_to_end = Arc::new(AtomicBool::new(false));
    {
        let is_to_end = Arc::clone(&is_to_end);
        thread::spawn(move || end_with_input(emulator, console, &is_to_end));
    }
    while let Some(line) = machine.next_line(Duration::MAX)? {
        println!("{line}");
    }
    ensure!(is_to_end.load(Ordering::SeqCst), "the emulator has ended");
    Ok(())
}

/// Whoever started this is gone, or wants no more. A device that takes part in an election has the time to
/// give leadership back.
fn end_with_input(emulator: u32, console: Option<Console>, is_to_end: &AtomicBool) {
    // Whatever comes is of no interest, and an error is an end, too.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    is_to_end.store(true, Ordering::SeqCst);
    if console.is_some_and(|console| console.ask_for_end().is_ok()) {
        // When it ends by itself, so does this program.
        thread::sleep(ORDERLY_END);
    }
    let _ = process::Command::new("kill").arg(emulator.to_string()).status();
    process::exit(0);
}

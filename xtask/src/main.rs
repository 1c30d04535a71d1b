//! `cargo xtask`: everything a developer of picokube does, one command each.

mod cargo;
mod firmware;
mod fuzz;
mod gates;
mod golden;
mod process;
mod setup;
mod test;
mod workspace;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use firmware::configure::Configuration;
use firmware::{Binary, Profile};

/// Everything a developer of picokube does, one command each.
///
/// Start with `cargo xtask test`: it sets the machine up, then runs every check and every test.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what firmware needs to build and run: bare-metal targets, QEMU, kubectl
    Setup,
    /// Set up, then run every check and every test, and print a summary
    ///
    /// Everything runs side by side as far as the machine allows; what each part says is in
    /// target/test-run. Before a commit, `--quick` is enough; CI runs everything.
    Test(test::Selection),
    /// Play the golden scenarios: what the real controllers did, step by step
    Golden {
        /// With the firmware in QEMU as the only controller, instead of the controllers on a PC
        #[arg(long)]
        firmware: bool,
        /// Only these, with commas between; `*` at the end for all that begin so
        #[arg(long, value_name = "NAMES")]
        only: Option<String>,
    },
    /// Run every fuzz target for a while, from its committed corpus
    Fuzz {
        /// How long each target runs
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        seconds: u32,
        /// Only as much as fits into a test run: the targets of core, HTTP/2 and TLS, for a moment
        #[arg(long, conflicts_with = "seconds")]
        brief: bool,
        /// Only this target
        #[arg(long, value_name = "TARGET")]
        only: Option<String>,
    },
    /// Run one of the checks that `test` runs
    #[command(flatten)]
    Gate(gates::Gate),
    /// Build the firmware, or run it in QEMU with its log decoded
    #[command(subcommand)]
    Firmware(FirmwareCommand),
}

#[derive(Subcommand)]
enum FirmwareCommand {
    /// Build the image that would be flashed, and print where it is
    Build {
        /// Every image that is measured or tested
        #[arg(long, conflicts_with_all = ["profile", "binary"])]
        all: bool,
        /// How large it is
        #[arg(long, value_enum, default_value_t)]
        profile: Profile,
        /// What it is for
        #[arg(long, value_enum, default_value_t)]
        binary: Binary,
    },
    /// Make the configuration page of one device, to be flashed beside the image
    Configure {
        #[command(flatten)]
        configuration: Box<Configuration>,
        /// The image whose memory map says where the page is; without it, the reference firmware
        #[arg(long, value_name = "ELF")]
        image: Option<PathBuf>,
        /// Where the page is written: Intel HEX (.hex) or plain bytes (.bin)
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Boot it in QEMU and show its log
    Run {
        /// The API server to talk to, on this machine's loopback (`picokube up` starts one)
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8001")]
        server: SocketAddr,
        /// How large it is
        #[arg(long, value_enum, default_value_t)]
        profile: Profile,
        /// Run the driver's test cases instead, against a peer that is started for it, and exit
        #[arg(long, conflicts_with = "server")]
        self_test: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Setup => setup::run(),
        Command::Test(selection) => test::run(&selection),
        Command::Golden { firmware, only } => golden::run(firmware, only.as_deref()),
        Command::Fuzz { brief: true, .. } => fuzz::run_briefly().map(|report| println!("{report}")),
        Command::Fuzz { seconds, only, .. } => {
            fuzz::run(seconds, only.as_deref()).map(|report| println!("{report}"))
        }
        Command::Gate(gate) => gate.run().map(|report| println!("{report}")),
        Command::Firmware(command) => run_firmware(command),
    }
}

fn run_firmware(command: FirmwareCommand) -> Result<()> {
    match command {
        FirmwareCommand::Build { all: true, .. } => {
            setup::run()?;
            println!("{} images, each linked once", firmware::build_all()?.len());
            Ok(())
        }
        FirmwareCommand::Build { profile, binary, .. } => {
            setup::run()?;
            println!("{}", firmware::build_binary(binary, profile)?.display());
            Ok(())
        }
        FirmwareCommand::Configure { configuration, image, out } => {
            firmware::configure(&configuration, image, &out)
        }
        FirmwareCommand::Run { self_test: true, .. } => firmware::self_test(),
        FirmwareCommand::Run { server, profile, .. } => firmware::connect(server, profile),
    }
}

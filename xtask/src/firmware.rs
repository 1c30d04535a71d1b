//! Building the firmware and running it in QEMU.

pub(crate) mod configure;

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use picokube_qemu::{HOST_SEEN_BY_GUEST, Image, Machine, Start};
use serde_json::Value;

use configure::Configuration;

use crate::workspace::{self, FIRMWARE_TARGET};
use crate::{process, setup};

/// The firmware that runs in QEMU.
pub(crate) const PACKAGE: &str = "picokube-mps2-an386";

/// No self-test is silent for so long.
const PATIENCE: Duration = Duration::from_secs(600);

/// What an image is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Binary {
    /// To run the controllers
    #[default]
    Controllers,
    /// To run the controllers, that of ReplicationControllers included
    WithReplicationController,
    /// To run the driver's test cases
    SelfTest,
    /// To tell what HTTPS costs
    Transport,
    /// To run the controllers, and to get into trouble on request
    Trouble,
}

impl Binary {
    /// The name of the program.
    fn name(self) -> String {
        match self {
            Self::Controllers | Self::WithReplicationController => PACKAGE.to_owned(),
            Self::SelfTest => format!("{PACKAGE}-self-test"),
            Self::Transport => format!("{PACKAGE}-transport"),
            Self::Trouble => format!("{PACKAGE}-trouble"),
        }
    }

    fn features(self) -> &'static [&'static str] {
        match self {
            Self::Controllers | Self::SelfTest | Self::Transport => &[],
            Self::WithReplicationController => &["--features", "replication-controller"],
            Self::Trouble => &["--features", "trouble"],
        }
    }

    /// The name of the image: there may be several of a program.
    fn image(self, profile: Profile) -> String {
        let variant = match self {
            Self::WithReplicationController => "-with-replication-controller",
            Self::Controllers | Self::SelfTest | Self::Transport | Self::Trouble => "",
        };
        format!("{}{variant}-{}.elf", self.name(), profile.name())
    }
}

/// How large a firmware is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// 224 pods in 192 KiB of RAM
    Tiny,
    /// 512 pods in 256 KiB of RAM
    #[default]
    Reference,
    /// 2,000 pods in 512 KiB of RAM
    Large,
}

impl Profile {
    pub(crate) const ALL: [Self; 3] = [Self::Tiny, Self::Reference, Self::Large];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Reference => "reference",
            Self::Large => "large",
        }
    }
}

/// Builds the image as it would be flashed.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    build_binary(Binary::Controllers, profile)
}

/// Builds every image that is measured or tested: each is linked once.
pub(crate) fn build_all() -> Result<Vec<PathBuf>> {
    let controllers = Profile::ALL.map(|profile| (Binary::Controllers, profile));
    let others = [Binary::SelfTest, Binary::Transport, Binary::Trouble];
    let others = others.map(|binary| (binary, Profile::Reference));
    // The profile of the others last, so that nothing is built again for them.
    let [tiny, reference, large] = controllers;
    let all = [large, tiny, reference].into_iter().chain(others);
    all.map(|(binary, profile)| build_binary(binary, profile)).collect()
}

/// Builds an image, unless a test run has done so.
pub(crate) fn build_binary(binary: Binary, profile: Profile) -> Result<PathBuf> {
    let images = workspace::target().join("images");
    // A name of its own, since cargo builds every profile to the same place.
    let image = images.join(binary.image(profile));
    if env::var_os(workspace::BUILT).is_some() {
        return Ok(image);
    }
    let mut cargo = setup::embedded_cargo("build");
    cargo.current_dir(workspace::root()).env("PICOKUBE_PROFILE", profile.name());
    cargo.args(["--package", PACKAGE, "--bin", &binary.name()]);
    cargo.args(binary.features());
    cargo.args(["--profile", "firmware", "--target", FIRMWARE_TARGET]);
    cargo.arg("--target-dir").arg(target());
    let messages = process::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo has built the firmware and not said where it is")?;
    fs::create_dir_all(&images)?;
    // Whole or not at all: somebody may be reading the last one.
    let fresh = image.with_extension("new");
    let copied = fs::copy(&built, &fresh).and_then(|_| fs::rename(&fresh, &image));
    copied.with_context(|| format!("cannot write {}", image.display()))?;
    Ok(image)
}

/// Where cargo builds for microcontrollers: not where it builds for this machine, so that it can do
/// both at a time.
pub(crate) fn target() -> PathBuf {
    workspace::target().join("firmware")
}

/// `firmware configure`.
pub(crate) fn configure(
    configuration: &Configuration,
    image: Option<PathBuf>,
    out: &Path,
) -> Result<()> {
    let image = match image {
        Some(image) => Image::open(&image)?,
        None => Image::open(&build(Profile::Reference)?)?,
    };
    println!("{}", configure::write(configuration, &image, out)?);
    Ok(())
}

/// `firmware run`: shows the log of a firmware that talks to `server`, until interrupted.
pub(crate) fn connect(server: SocketAddr, profile: Profile) -> Result<()> {
    ensure!(
        server.ip().is_loopback(),
        "QEMU's network leads the firmware to this machine's loopback only, and {server} is not there"
    );
    setup::run()?;
    let image = Image::open(&build(profile)?)?;
    build_decoder()?;
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", server.port());
    let (page, _) = Configuration::trial(address).page()?;
    println!("The firmware talks to {server}. Ctrl-C ends it.");
    let mut machine = Machine::boot(&image, Start { page: Some(&page), ..Start::default() })?;
    // An idle firmware has nothing to log.
    while let Some(line) = machine.next_line(Duration::MAX)? {
        println!("{line}");
    }
    let status = machine.wait(PATIENCE)?;
    ensure!(status.success(), "the firmware has stopped ({status})");
    Ok(())
}

/// `firmware run --self-test`: shows the log of the driver's cases and succeeds if they pass.
pub(crate) fn self_test() -> Result<()> {
    setup::run()?;
    let image = build_binary(Binary::SelfTest, Profile::Reference)?;
    build_decoder()?;
    process::run(workspace::program("picokube-tests", "--bin", "picokube-self-test").arg(image))
}

/// Builds the decoder of logs, which is looked for beside this program, unless a test run has done so.
pub(crate) fn build_decoder() -> Result<()> {
    if env::var_os(workspace::BUILT).is_some() {
        return Ok(());
    }
    let mut cargo = crate::cargo::cargo(&workspace::root());
    process::run(cargo.args(["build", "--quiet"]).args(workspace::APART))
}

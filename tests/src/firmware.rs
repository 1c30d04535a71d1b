//! The firmware under test, in QEMU.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use picokube_config::{Document, PAGE, write_page};
use picokube_provision::{Access, AccessArguments};
use picokube_qemu::{DECODER, HOST_SEEN_BY_GUEST, Image, Line, Machine, Start};

use crate::cargo::{cargo, program};
use crate::http::{Answer, Client};
use crate::peer::Peer;
use crate::picokube::{PATIENCE, Picokube};
use crate::port::Port;

/// The reference firmware, built once as it would be flashed.
pub fn image() -> Result<Arc<Image>> {
    static IMAGE: Built = Built::new(&[], "picokube-mps2-an386-reference.elf");
    IMAGE.open()
}

/// The firmware for 512 KiB of RAM, built once.
pub fn large_image() -> Result<Arc<Image>> {
    static IMAGE: Built = Built::new(&["--profile", "large"], "picokube-mps2-an386-large.elf");
    IMAGE.open()
}

/// The image that runs the driver's cases, built once.
pub fn self_test_image() -> Result<Arc<Image>> {
    static IMAGE: Built =
        Built::new(&["--binary", "self-test"], "picokube-mps2-an386-self-test-reference.elf");
    IMAGE.open()
}

/// The firmware that gets into trouble on request, built once.
pub fn trouble_image() -> Result<Arc<Image>> {
    static IMAGE: Built =
        Built::new(&["--binary", "trouble"], "picokube-mps2-an386-trouble-reference.elf");
    IMAGE.open()
}

/// Boots the firmware for its self-test against a peer of its own and hands every log line to
/// `see`. Returns how the emulation ended.
pub fn self_test(image: &Arc<Image>, mut see: impl FnMut(&Line)) -> Result<ExitStatus> {
    let peer = Peer::start().context("cannot start the test peer")?;
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", peer.address().port());
    let black_hole = peer.black_hole_port().to_string();
    let words = &[address.as_str(), &black_hole];
    let mut machine = Machine::boot(image, Start { words, ..Start::default() })?;
    while let Some(line) = machine.next_line(PATIENCE)? {
        see(&line);
    }
    machine.wait(PATIENCE)
}

/// What a device is booted with.
pub struct Setup {
    image: Arc<Image>,
    page: Vec<u8>,
    words: Vec<String>,
    leaps: bool,
    number: u8,
    second_network: bool,
}

impl Setup {
    /// An image with whatever is on its configuration page.
    pub fn with_page(image: Arc<Image>, page: Vec<u8>) -> Self {
        Self { image, page, words: Vec::new(), leaps: false, number: 0, second_network: false }
    }

    /// An image with a configuration.
    pub fn with(image: Arc<Image>, document: &Document<'_>) -> Result<Self> {
        Ok(Self::with_page(image, encode(document)?))
    }

    /// An image that serves the API server at `server`, over plain HTTP.
    pub fn serving(image: Arc<Image>, server: SocketAddr) -> Result<Self> {
        let address = format!("{HOST_SEEN_BY_GUEST}:{}", server.port());
        Self::with(image, &Document { server: &address, ..usual() })
    }

    /// An image that serves a cluster that speaks TLS.
    pub fn of(image: Arc<Image>, cluster: &Picokube, shows: Shows) -> Result<Self> {
        Self::of_with(image, cluster, shows, usual())
    }

    /// The same with a configuration that says what else there is.
    pub fn of_with(
        image: Arc<Image>,
        cluster: &Picokube,
        shows: Shows,
        document: Document<'_>,
    ) -> Result<Self> {
        let access = access(cluster, shows)?;
        Self::with(image, &access.apply(document))
    }

    /// Words that the firmware can read at its boot.
    pub fn words(self, words: &[&str]) -> Self {
        Self { words: words.iter().map(|&word| word.to_owned()).collect(), ..self }
    }

    /// Time leaps whenever the device waits: a little, and with [`Device::leap`] far.
    pub fn with_leaps(self) -> Self {
        Self { leaps: true, ..self }
    }

    /// Which device it is of several.
    pub fn number(self, number: u8) -> Self {
        Self { number, ..self }
    }

    /// There is a second network to move to.
    pub fn with_second_network(self) -> Self {
        Self { second_network: true, ..self }
    }

    /// Boots it.
    pub fn boot(self) -> Result<Device> {
        let port = Port::free()?;
        let machine = self.start(port.address())?;
        let running = Mutex::new(Running { machine, log: Vec::new() });
        Ok(Device { setup: self, port, running })
    }

    fn start(&self, status: SocketAddr) -> Result<Machine> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let start = Start {
            words: &words,
            page: Some(&self.page),
            status: Some(status),
            count_instructions: self.leaps,
            number: self.number,
            second_network: self.second_network,
        };
        Machine::boot(&self.image, start)
    }
}

/// What a device shows to a server that asks who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The token.
    Token,
    /// A client certificate.
    Certificate,
}

/// How a device gets at a cluster that speaks TLS, as `cargo xtask firmware configure` would have it.
pub fn access(cluster: &Picokube, shows: Shows) -> Result<Access> {
    ensure!(cluster.is_secure(), "the cluster speaks plain HTTP");
    let address = cluster.address();
    let (token, authority) = cluster.token_and_authority();
    let arguments = AccessArguments {
        server: Some(format!("https://{HOST_SEEN_BY_GUEST}:{}", address.port())),
        tls_server_name: Some(address.ip().to_string()),
        ..AccessArguments::default()
    };
    let arguments = match shows {
        Shows::Token => AccessArguments {
            certificate_authority: Some(authority),
            token_file: Some(token),
            ..arguments
        },
        Shows::Certificate => {
            AccessArguments { kubeconfig: Some(cluster.kubeconfig()), ..arguments }
        }
    };
    arguments.access()
}

/// A device that manages the workloads of a cluster. It is switched off when dropped.
pub struct Device {
    setup: Setup,
    /// Where its status pages are, whether it runs or not.
    port: Port,
    running: Mutex<Running>,
}

struct Running {
    machine: Machine,
    /// All lines of the log that were read, since the first boot.
    log: Vec<String>,
}

impl Device {
    /// Boots the reference firmware, configured for the API server at `server`.
    pub fn boot(server: SocketAddr) -> Result<Self> {
        Setup::serving(image()?, server)?.boot()
    }

    /// Boots the reference firmware for a cluster that speaks TLS.
    pub fn boot_secure(cluster: &Picokube, shows: Shows) -> Result<Self> {
        Setup::of(image()?, cluster, shows)?.boot()
    }

    /// Boots an image with a configuration.
    pub fn boot_with(image: Arc<Image>, document: &Document<'_>) -> Result<Self> {
        Setup::with(image, document)?.boot()
    }

    /// Boots an image with whatever is on its configuration page.
    pub fn boot_page(image: Arc<Image>, page: Vec<u8>) -> Result<Self> {
        Setup::with_page(image, page).boot()
    }

    /// Cuts the power and boots again.
    pub fn cut_power(&self) -> Result<()> {
        let mut running = self.running();
        // The old machine has to let go of its port first.
        running.machine.switch_off();
        running.machine = self.setup.start(self.port.address())?;
        Ok(())
    }

    /// Writes another configuration page, and nothing else, and boots again.
    pub fn configure(&mut self, document: &Document<'_>) -> Result<()> {
        self.setup.page = encode(document)?;
        self.cut_power()
    }

    /// Asks it to reset itself, as a button on a board would.
    pub fn ask_for_reset(&self) -> Result<()> {
        self.running().machine.console().ask_for_reset()
    }

    /// The same, and cuts the power where it would boot again.
    pub fn ask_for_end(&self) -> Result<()> {
        self.running().machine.console().ask_for_end()
    }

    /// Where its status pages are.
    pub fn status_address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Cuts the power for good.
    pub fn switch_off(&self) {
        self.running().machine.switch_off();
    }

    /// Plugs the network cable into the other network, once the device knows that it is out.
    pub fn move_to_second_network(&self) -> Result<()> {
        self.set_link(false)?;
        self.wait_for_line("link down")?;
        self.running().machine.move_to_second_network()?;
        self.set_link(true)
    }

    /// Lets time leap from timer to timer for a moment. How far it gets depends on the machine.
    pub fn leap(&self) -> Result<()> {
        let running = self.running();
        running.machine.release_brake()?;
        running.machine.apply_brake()
    }

    /// Seconds since the boot by the device's own clock, as its metrics tell.
    pub fn uptime(&self) -> Result<u64> {
        self.metric("picokube_uptime_seconds")
    }

    /// The value of one of its metrics.
    pub fn metric(&self, name: &str) -> Result<u64> {
        let page = self.get("/metrics")?.text();
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {name} in:\n{page}"))?.parse()?)
    }

    /// The sum of all of its metrics that begin so.
    pub fn metrics(&self, name: &str) -> Result<u64> {
        Ok(sum_of_metrics(&self.get("/metrics")?.text(), name))
    }

    /// Pulls the network cable, or plugs it in again.
    pub fn set_link(&self, up: bool) -> Result<()> {
        self.running().machine.set_link(up)
    }

    /// Asks the device itself for a page, again if it is not listening yet.
    pub fn get(&self, path: &str) -> Result<Answer> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let answer = Client::connect(self.status_address())
                .and_then(|mut client| client.send("GET", path, &[], b""));
            if answer.is_ok() || Instant::now() > give_up {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Reads the log on until a line contains `words`; gives that line.
    pub fn wait_for_line(&self, words: &str) -> Result<String> {
        let give_up = Instant::now() + PATIENCE;
        let mut running = self.running();
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let Ok(Some(line)) = running.machine.next_line(left) else {
                bail!("no line with `{words}` in the log:\n{}", running.log.join("\n"));
            };
            let line = line.to_string();
            running.log.push(line.clone());
            if line.contains(words) {
                return Ok(line);
            }
        }
    }

    /// All of the log so far.
    pub fn log(&self) -> String {
        let mut running = self.running();
        while let Ok(Some(line)) = running.machine.next_line(Duration::ZERO) {
            running.log.push(line.to_string());
        }
        running.log.join("\n")
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sum of all metrics of a page that begin so.
pub fn sum_of_metrics(page: &str, name: &str) -> u64 {
    let values = page.lines().filter(|line| line.starts_with(name));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// What stands on the page of every device under test, but for the server.
fn usual() -> Document<'static> {
    Document { identity: "device-under-test", qps: Some(0), ..Document::default() }
}

fn encode(document: &Document<'_>) -> Result<Vec<u8>> {
    let mut page = [0; PAGE];
    let len = write_page(document, &mut page)?;
    Ok(page[..len].to_vec())
}

/// An image that is built once per process.
struct Built {
    options: &'static [&'static str],
    /// Its name in the folder of a test run's images.
    name: &'static str,
    image: OnceLock<Arc<Image>>,
    building: Mutex<()>,
}

impl Built {
    const fn new(options: &'static [&'static str], name: &'static str) -> Self {
        Self { options, name, image: OnceLock::new(), building: Mutex::new(()) }
    }

    fn open(&self) -> Result<Arc<Image>> {
        let _one_builds = self.building.lock();
        if let Some(image) = self.image.get() {
            return Ok(Arc::clone(image));
        }
        let image = Arc::new(Image::open(&self.build()?)?);
        Ok(Arc::clone(self.image.get_or_init(|| image)))
    }

    /// By the same command as a user, unless the test run has done so.
    fn build(&self) -> Result<PathBuf> {
        if let Some(built) = crate::cargo::built() {
            return Ok(built.join("../images").join(self.name));
        }
        program(DECODER, &[], DECODER)?;
        let output = cargo()
            .args(["run", "--quiet", "--package", "xtask", "--", "firmware", "build"])
            .args(self.options)
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`cargo xtask firmware build` failed:\n{errors}");
        // The last word it prints is the path of the image.
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
    }
}

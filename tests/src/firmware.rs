//! The firmware under test, in QEMU.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use picokube_config::{Document, PAGE, write_page};
use picokube_qemu::{DECODER, HOST_SEEN_BY_GUEST, Image, Line, Machine, Start};

use crate::cargo::{cargo, program};
use crate::http::{Answer, Client};
use crate::peer::Peer;
use crate::picokube::PATIENCE;

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
    second_network: bool,
}

impl Setup {
    /// An image with whatever is on its configuration page.
    pub fn with_page(image: Arc<Image>, page: Vec<u8>) -> Self {
        Self { image, page, words: Vec::new(), leaps: false, second_network: false }
    }

    /// An image with a configuration.
    pub fn with(image: Arc<Image>, document: &Document<'_>) -> Result<Self> {
        Ok(Self::with_page(image, encode(document)?))
    }

    /// An image that serves the API server at `server`.
    pub fn serving(image: Arc<Image>, server: SocketAddr) -> Result<Self> {
        Ok(Self::with_page(image, page(server)?))
    }

    /// Words that the firmware can read at its boot.
    pub fn words(self, words: &[&str]) -> Self {
        Self { words: words.iter().map(|&word| word.to_owned()).collect(), ..self }
    }

    /// Time leaps whenever the device waits: a little, and with [`Device::leap`] far.
    pub fn with_leaps(self) -> Self {
        Self { leaps: true, ..self }
    }

    /// There is a second network to move to.
    pub fn with_second_network(self) -> Self {
        Self { second_network: true, ..self }
    }

    /// Boots it.
    pub fn boot(self) -> Result<Device> {
        let status = free_address()?;
        let machine = self.start(status)?;
        let running = Mutex::new(Running { machine, log: Vec::new() });
        Ok(Device { setup: self, status, running })
    }

    fn start(&self, status: SocketAddr) -> Result<Machine> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let start = Start {
            words: &words,
            page: Some(&self.page),
            status: Some(status),
            count_instructions: self.leaps,
            second_network: self.second_network,
        };
        Machine::boot(&self.image, start)
    }
}

/// A device that manages the workloads of a cluster. It is switched off when dropped.
pub struct Device {
    setup: Setup,
    status: SocketAddr,
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
        running.machine = self.setup.start(self.status)?;
        Ok(())
    }

    /// Where its status pages are.
    pub fn status_address(&self) -> SocketAddr {
        self.status
    }

    /// Cuts the power for good.
    pub fn switch_off(&self) {
        self.running().machine.switch_off();
    }

    /// Plugs the network cable into the other network.
    pub fn move_to_second_network(&self) -> Result<()> {
        self.running().machine.move_to_second_network()
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

    /// Pulls the network cable, or plugs it in again.
    pub fn set_link(&self, up: bool) -> Result<()> {
        self.running().machine.set_link(up)
    }

    /// Asks the device itself for a page, again if it is not listening yet.
    pub fn get(&self, path: &str) -> Result<Answer> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let answer = Client::connect(self.status)
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

/// The page of a device at this server's service.
fn page(server: SocketAddr) -> Result<Vec<u8>> {
    let address = format!("{HOST_SEEN_BY_GUEST}:{}", server.port());
    let identity = "device-under-test";
    let document = Document { server: &address, identity, qps: Some(0), ..Document::default() };
    encode(&document)
}

fn encode(document: &Document<'_>) -> Result<Vec<u8>> {
    let mut page = [0; PAGE];
    let len = write_page(document, &mut page)?;
    Ok(page[..len].to_vec())
}

/// An address on loopback where nobody listens.
///
/// Not one that the system hands out to whoever asks for any: between this and the start of QEMU, somebody
/// else might get it.
pub fn free_address() -> Result<SocketAddr> {
    const PORTS: std::ops::Range<u32> = 10_000..32_000;
    static TRIED: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at a time begin far from each other.
    let first = std::process::id().wrapping_mul(7_919);
    for _ in PORTS {
        let number = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(PORTS.start + number)?));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no port from {} to {} is free", PORTS.start, PORTS.end)
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

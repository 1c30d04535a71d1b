//! A running emulation.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::image::Image;
use crate::log::{self, Line};

/// The emulator.
pub const PROGRAM: &str = "qemu-system-arm";

/// The loopback of the host, as the firmware sees it.
pub const HOST_SEEN_BY_GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// The port of the firmware's status pages, on the firmware's side.
const STATUS_PORT: u16 = 80;

/// No answer of the emulator takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a machine is started with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// The words of the semihosting command line.
    pub words: &'a [&'a str],
    /// What is in the flash that is set aside for the configuration page.
    pub page: Option<&'a [u8]>,
    /// Where on the host the firmware's status pages are served.
    pub status: Option<SocketAddr>,
    /// Count instructions: each takes a nanosecond of the firmware's time, and while it waits for a
    /// timer, time leaps there: by a millisecond at most, see [`Machine::release_brake`].
    pub count_instructions: bool,
    /// Which device it is of several: each has an Ethernet address of its own.
    pub number: u8,
    /// There is a second network, for [`Machine::move_to_second_network`]. It has no status pages.
    pub second_network: bool,
}

/// An emulated MPS2 AN386 with a network card. It is switched off when dropped.
pub struct Machine {
    emulator: Child,
    lines: Receiver<Line>,
    /// Holds the page and the sockets of the emulator's monitor and of the board's console.
    directory: TempDir,
}

impl Machine {
    /// Boots `image`.
    pub fn boot(image: &Image, start: Start<'_>) -> Result<Self> {
        let directory = TempDir::new()?;
        let mut emulator = command(image, start, directory.path())?
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}: run `cargo xtask setup`"))?;
        let stdout = emulator.stdout.take().context("the emulator has no output")?;
        let lines = match log::decode(image, stdout) {
            Ok(lines) => lines,
            Err(error) => {
                // Nobody would ever switch it off.
                let _ = emulator.kill();
                let _ = emulator.wait();
                return Err(error);
            }
        };
        let machine = Self { emulator, lines, directory };
        if start.second_network {
            machine.set_network(SECOND, false)?;
            machine.tell(r#"{"execute":"cont"}"#)?;
        }
        Ok(machine)
    }

    /// The next line of the log; `None` when there will be no more. Fails after `patience`.
    pub fn next_line(&mut self, patience: Duration) -> Result<Option<Line>> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the firmware has not logged anything for {} s", patience.as_secs())
            }
        }
    }

    /// The emulator's process.
    pub fn process_id(&self) -> u32 {
        self.emulator.id()
    }

    /// Cuts the power.
    pub fn switch_off(&mut self) {
        // Fails only if it has ended already.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }

    /// The board's console.
    pub fn console(&self) -> Console {
        Console(self.directory.path().to_owned())
    }

    /// Pulls the network cable, or plugs it in again.
    pub fn set_link(&self, up: bool) -> Result<()> {
        self.set_network(CABLE, up)
    }

    /// Where instructions are counted: lets time leap as far as the firmware's next timer, an hour in
    /// a moment. Whoever talks to it from outside will be too late then.
    pub fn release_brake(&self) -> Result<()> {
        self.set_brake("off")
    }

    /// Lets time leap by no more than a millisecond again.
    pub fn apply_brake(&self) -> Result<()> {
        self.set_brake("on")
    }

    fn set_brake(&self, status: &str) -> Result<()> {
        let property =
            format!(r#""path":"/objects/{BRAKE}","property":"status","value":"{status}""#);
        self.tell(&format!(r#"{{"execute":"qom-set","arguments":{{{property}}}}}"#))
    }

    /// Has the cable lead to another network, which gives the device another address. The device has to know
    /// by then that its link is down: one that comes back before it has looked has never been away.
    pub fn move_to_second_network(&self) -> Result<()> {
        self.set_network(FIRST, false)?;
        self.set_network(SECOND, true)
    }

    fn set_network(&self, name: &str, up: bool) -> Result<()> {
        self.tell(&format!(r#"{{"execute":"set_link","arguments":{{"name":"{name}","up":{up}}}}}"#))
    }

    /// Waits until the firmware ends the emulation by itself.
    pub fn wait(mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.emulator.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("the emulation has not ended within {} s", patience.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn tell(&self, command: &str) -> Result<()> {
        tell(self.directory.path(), command)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.switch_off();
    }
}

/// The console of a board: whatever is sent there is a wish for a reset, as a button would be. It is good for
/// nothing any more when the machine is gone.
#[derive(Clone, Debug)]
pub struct Console(PathBuf);

impl Console {
    /// Asks the firmware for an orderly reset.
    pub fn ask_for_reset(&self) -> Result<()> {
        let mut console =
            connect(&self.0.join(CONSOLE)).context("cannot reach the board's console")?;
        console.write_all(b"r").context("cannot reach the board's console")?;
        // Kept open as long as the emulator runs: it may not have had the time to read yet.
        thread::spawn(move || io::copy(&mut console, &mut io::sink()));
        Ok(())
    }

    /// The same, and cuts the power where the firmware would boot again.
    pub fn ask_for_end(&self) -> Result<()> {
        tell(&self.0, r#"{"execute":"set-action","arguments":{"reboot":"shutdown"}}"#)?;
        self.ask_for_reset()
    }
}

/// Gives the emulator's monitor a command and waits until it is done.
fn tell(directory: &Path, command: &str) -> Result<()> {
    let socket =
        connect(&directory.join(MONITOR)).context("cannot reach the emulator's monitor")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut answers = BufReader::new(socket.try_clone()?).lines();
    // It greets first, then wants to be asked for nothing special.
    answers.next().context("the emulator's monitor does not greet")??;
    for command in [r#"{"execute":"qmp_capabilities"}"#, command] {
        writeln!(&socket, "{command}")?;
        loop {
            let answer = answers.next().context("the emulator's monitor does not answer")??;
            ensure!(!answer.contains("\"error\""), "{command}: {answer}");
            // Between answers it tells of events.
            if answer.contains("\"return\"") {
                break;
            }
        }
    }
    Ok(())
}

/// A connection to a socket of the emulator's, which is there a moment after the start.
fn connect(socket: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket) {
            Ok(socket) => return Ok(socket),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

const MONITOR: &str = "monitor";
const CONSOLE: &str = "console";

/// The emulator's names for the cable and the networks.
const CABLE: &str = "cable";
const FIRST: &str = "first";
const SECOND: &str = "second";
/// Its name for something that has a timer.
const BRAKE: &str = "brake";

fn command(image: &Image, start: Start<'_>, directory: &Path) -> Result<Command> {
    let mut semihosting = "enable=on,target=native".to_owned();
    for word in start.words {
        semihosting.push_str(",arg=");
        semihosting.push_str(word);
    }
    let forward = start
        .status
        .map(|status| format!(",hostfwd=tcp:{}:{}-:{STATUS_PORT}", status.ip(), status.port()));
    let forward = forward.unwrap_or_default();
    let socket = |name| format!("unix:{},server=on,wait=off", directory.join(name).display());
    let (monitor, console) = (socket(MONITOR), socket(CONSOLE));
    // The first is what the emulator would choose itself.
    let hardware_address = format!("mac=52:54:00:12:34:{:02x}", start.number.wrapping_add(0x56));
    let mut command = Command::new(PROGRAM);
    command
        .args(["-machine", "mps2-an386"])
        .args(["-display", "none", "-serial", &console, "-monitor", "none", "-qmp", &monitor])
        .args(["-semihosting-config", &semihosting])
        .arg("-kernel")
        .arg(image.path());
    if start.second_network {
        // Both networks and the card are at one hub; it waits until one network is switched off.
        command.args([
            "-S",
            "-nic",
            &format!("hubport,id={CABLE},hubid=0,model=lan9118,{hardware_address}"),
        ]);
        for (name, options) in [(FIRST, forward.as_str()), (SECOND, ",dhcpstart=10.0.2.40")] {
            command.args(["-netdev", &format!("user,id={name}{options}")]);
            let port = format!("hubport,id={name}-port,hubid=0,netdev={name}");
            command.args(["-netdev", &port]);
        }
    } else {
        command
            .args(["-nic", &format!("user,id={CABLE},model=lan9118,{hardware_address}{forward}")]);
    }
    if let Some(page) = start.page {
        let file = directory.join("page");
        std::fs::write(&file, page)?;
        let address = image.configuration_page()?;
        let loader = format!("loader,file={},addr={address:#x},force-raw=on", file.display());
        command.args(["-device", &loader]);
    }
    if start.count_instructions {
        command.args(["-icount", "shift=0,sleep=off"]);
        // It keeps frames for no longer than they take on a wire, and its timer keeps time from leaping
        // farther than that.
        let brake = format!("filter-buffer,id={BRAKE},netdev={CABLE},queue=rx,interval=1000");
        command.args(["-object", &brake]);
    }
    Ok(command)
}

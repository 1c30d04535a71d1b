//! Running other programs.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// Clock ticks a second in /proc, on every Linux that there is.
const TICKS: u64 = 100;

/// Runs a command with its output shown; fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = describe(command);
    let status = command.status().with_context(|| format!("cannot run `{name}`"))?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// Runs a command and hands every line of its standard output to `see`. What it says on standard
/// error goes to the file `log`.
pub(crate) fn run_read(command: &mut Command, log: &Path, mut see: impl FnMut(&str)) -> Result<()> {
    let name = describe(command);
    let file = create(log)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
    let mut child = command.spawn().with_context(|| format!("cannot run `{name}`"))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            see(&String::from_utf8_lossy(&line?));
        }
    }
    WORKED.set(WORKED.get() + worked_at_its_end(child.id()));
    let status = child.wait()?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

thread_local! {
    static WORKED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The processor time of all that this thread has run and read.
pub(crate) fn processor_time() -> Duration {
    WORKED.get()
}

/// What a child and all that it has waited for have worked, when it has ended. Only as long as nobody
/// has asked for its status does the system still know.
fn worked_at_its_end(child: u32) -> Duration {
    let id = Id::Pid(Pid::from_raw(child as i32));
    let waited = waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
    let stat = waited.ok().and_then(|_| Stat::of(&child.to_string()));
    stat.map_or(Duration::ZERO, |stat| stat.own + stat.children)
}

/// Processor times of a process, as the system tells them.
pub(crate) struct Stat {
    own: Duration,
    /// Of those that it has waited for, and theirs.
    pub(crate) children: Duration,
}

impl Stat {
    /// Of a process by its number, or of `self`.
    pub(crate) fn of(process: &str) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program, which may contain anything, ends with the last parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let time = |at: usize| {
            let ticks = fields.get(at)?.parse::<u64>().ok()?;
            Some(Duration::from_millis(ticks * 1000 / TICKS))
        };
        Some(Self { own: time(11)? + time(12)?, children: time(13)? + time(14)? })
    }
}

/// The same, with standard output in the file, too.
pub(crate) fn run_logged(
    command: &mut Command,
    log: &Path,
    mut see: impl FnMut(&str),
) -> Result<()> {
    // Both ends write at the file's end.
    let mut also = None;
    run_read(command, log, |line| {
        let file = also.get_or_insert_with(|| File::options().append(true).open(log));
        if let Ok(file) = file {
            // A log that cannot be written is missed by whoever wants to read it.
            let _ = writeln!(file, "{line}");
        }
        see(line);
    })
}

fn create(log: &Path) -> Result<File> {
    let file = File::options().create(true).append(true).open(log);
    file.with_context(|| format!("cannot write {}", log.display()))
}

/// A command that gets out of the way of what waits for something to happen.
pub(crate) fn patient(program: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// Runs a command and returns what it prints; fails, with its errors, if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = describe(command);
    let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{name}` failed ({}):\n{errors}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` printed no text"))
}

/// Does all of `works` at the same time, and gives what came of each, in their order.
pub(crate) fn side_by_side<W, T>(
    works: impl IntoIterator<Item = W>,
    work: impl Fn(W) -> Result<T> + Sync,
) -> Vec<Result<T>>
where
    W: Send,
    T: Send,
{
    let work = &work;
    thread::scope(|scope| {
        let begun: Vec<_> = works.into_iter().map(|what| scope.spawn(move || work(what))).collect();
        let panicked = |_| Err(anyhow!("it panicked"));
        begun.into_iter().map(|begun| begun.join().unwrap_or_else(panicked)).collect()
    })
}

/// Whether a program can be started by its name.
pub(crate) fn exists(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").output();
    probe.is_ok()
}

/// The command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

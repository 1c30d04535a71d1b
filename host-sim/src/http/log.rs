//! A log that never holds up who writes to it.
//!
//! Lines wait in a bounded queue for a thread of their own. If that cannot keep up, or the disk is
//! full, lines are lost and counted, and requests go on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

/// Bytes of lines that may wait to be written.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Bytes that are written at once, about.
const BATCH_BYTES: usize = 64 << 10;

/// How long an orderly stop waits for the last lines.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard output.
    Stdout,
    /// The standard error output.
    Stderr,
    /// The end of a file.
    File(PathBuf),
}

/// A log.
#[derive(Debug)]
pub(super) struct Log {
    queue: Sender<Message>,
    counters: Arc<Counters>,
    finished: Mutex<Receiver<()>>,
}

enum Message {
    Line(Vec<u8>),
    Finish,
}

#[derive(Debug, Default)]
struct Counters {
    waiting_bytes: AtomicUsize,
    written: AtomicU64,
    lost: AtomicU64,
}

impl Log {
    /// Opens a log; `name` is what complaints call it. A new file is for its owner only.
    pub(super) fn open(name: &'static str, target: &LogTarget) -> Result<Self> {
        let output: Box<dyn Output> = match target {
            LogTarget::Stdout => Box::new(io::stdout()),
            LogTarget::Stderr => Box::new(io::stderr()),
            LogTarget::File(path) => {
                let file = FileOutput::open(path.clone());
                Box::new(file.with_context(|| {
                    format!("cannot open {} for the {name} log", path.display())
                })?)
            }
        };
        let (queue, messages) = mpsc::channel();
        let (finish, finished) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let writer = Writer { name, output, counters: counters.clone(), failing: false };
        std::thread::Builder::new().name(format!("{name}-log")).spawn(move || {
            writer.run(&messages);
            // Nobody may be waiting.
            let _ = finish.send(());
        })?;
        Ok(Self { queue, counters, finished: Mutex::new(finished) })
    }

    /// Adds a line, which brings its end along. Never waits.
    pub(super) fn write(&self, line: Vec<u8>) {
        let (length, counters) = (line.len(), &self.counters);
        let waiting = counters.waiting_bytes.fetch_add(length, Ordering::Relaxed);
        if waiting + length > MAX_WAITING_BYTES || self.queue.send(Message::Line(line)).is_err() {
            counters.waiting_bytes.fetch_sub(length, Ordering::Relaxed);
            counters.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything so far is written, but not for ever.
    pub(super) fn finish(&self) {
        if self.queue.send(Message::Finish).is_ok() {
            let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = finished.recv_timeout(LAST_WORDS);
        }
    }

    /// Lines that were written, and lines that were lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counters.written), count(&self.counters.lost))
    }
}

/// What a log is written to.
trait Output: Write + Send {
    /// Called before every batch.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for io::Stdout {}
impl Output for io::Stderr {}

/// The end of a file. When somebody has moved the file away, a new one is begun.
struct FileOutput {
    path: PathBuf,
    file: File,
}

impl FileOutput {
    fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        Ok(Self { file: options.open(&path)?, path })
    }
}

impl Output for FileOutput {
    fn prepare(&mut self) -> io::Result<()> {
        if !is_at(&self.file, &self.path)? {
            *self = Self::open(self.path.clone())?;
        }
        Ok(())
    }
}

impl Write for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let open = file.metadata()?;
    match path.metadata() {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// The thread that writes.
struct Writer {
    name: &'static str,
    output: Box<dyn Output>,
    counters: Arc<Counters>,
    /// The last batch could not be written, or only in part.
    failing: bool,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut last = false;
        while !last {
            let (mut batch, mut lines) = (Vec::new(), 0);
            let mut next = messages.recv().ok();
            loop {
                match next {
                    Some(Message::Line(line)) => {
                        self.counters.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                        batch.extend_from_slice(&line);
                        lines += 1;
                    }
                    // The log was dropped, or is complete.
                    Some(Message::Finish) | None => last = true,
                }
                if last || batch.len() >= BATCH_BYTES {
                    break;
                }
                let Ok(message) = messages.try_recv() else { break };
                next = Some(message);
            }
            self.write(&batch, lines);
        }
    }

    /// Complains once, and says when it works again.
    fn write(&mut self, batch: &[u8], lines: u64) {
        if lines == 0 {
            return;
        }
        // What was cut off must not run into the next line.
        let separator: &[u8] = if self.failing { b"\n" } else { b"" };
        let written = self.output.prepare().and_then(|()| {
            self.output.write_all(separator)?;
            self.output.write_all(batch)?;
            self.output.flush()
        });
        match written {
            Ok(()) => {
                self.counters.written.fetch_add(lines, Ordering::Relaxed);
                if std::mem::take(&mut self.failing) {
                    let lost = self.counters.lost.load(Ordering::Relaxed);
                    complain(&format!(
                        "picokube: the {} log is written again; {lost} lines are lost",
                        self.name
                    ));
                }
            }
            Err(error) => {
                self.counters.lost.fetch_add(lines, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    complain(&format!(
                        "picokube: cannot write the {} log: {error}; requests are served on, and \
                         lines are lost until it can be written",
                        self.name
                    ));
                }
            }
        }
    }
}

/// Says something to whoever may listen; a closed standard error is no reason to end.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_log(path: &Path) -> Log {
        Log::open("test", &LogTarget::File(path.to_owned())).unwrap()
    }

    #[test]
    fn every_line_is_there_after_an_orderly_stop() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = file_log(&path);
        for number in 0..20_000 {
            log.write(format!("{number}\n").into_bytes());
        }
        log.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().map(|line| line.parse::<u32>().unwrap()).eq(0..20_000));
        assert_eq!(log.counts(), (20_000, 0));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_was_moved_away_is_begun_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("log"), directory.path().join("log.1"));
        let log = file_log(&path);
        log.write(b"one\n".to_vec());
        while log.counts().0 < 1 {
            std::thread::yield_now();
        }
        std::fs::rename(&path, &moved).unwrap();
        log.write(b"two\n".to_vec());
        log.finish();
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    }

    /// A disk without room: every write to this device fails so.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let log = file_log(Path::new("/dev/full"));
        for _ in 0..100 {
            log.write(b"line\n".to_vec());
        }
        log.finish();
        assert_eq!(log.counts(), (0, 100));
    }

    #[test]
    fn what_waits_is_bounded() {
        let log = file_log(Path::new("/dev/null"));
        log.write(vec![b'x'; MAX_WAITING_BYTES + 1]);
        log.write(b"fits\n".to_vec());
        log.finish();
        assert_eq!(log.counts(), (1, 1));
    }
}

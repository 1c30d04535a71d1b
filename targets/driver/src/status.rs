//! The pages that tell how a manager is doing: `/healthz`, `/healthz/leaderElection`, `/readyz` and
//! `/metrics`.
//!
//! One request per connection, over any byte stream: whoever listens hands each connection that
//! comes in to [`Pages::answer`] and closes it afterwards.

use core::fmt::{self, Write as _};

use embedded_io_async::{Read, Write};
use picokube_core::kind::Kind;
use picokube_core::manager::Manager;

use crate::runtime::Runtime;
use crate::window::Window;

/// How much of a page is in memory at a time.
const WINDOW: usize = 256;

/// The most of a request that is looked at: method and path are all that matters, and no page has
/// a path as long as this.
const REQUEST: usize = 64;

/// The pages of one runtime.
pub struct Pages<'r, 'm> {
    /// Whose pages they are.
    pub runtime: &'r Runtime<'m>,
    /// Writes metrics of the platform.
    pub platform: &'r dyn Fn(&mut dyn fmt::Write) -> fmt::Result,
}

const NOT_FOUND: &str = "404 Not Found";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Health,
    LeaderElection,
    Ready,
    Metrics,
    Unknown,
    /// Another method than GET.
    Refused,
}

impl Pages<'_, '_> {
    /// Reads a request and answers it.
    pub async fn answer<S: Read + Write>(&self, stream: &mut S) -> Result<(), S::Error> {
        let Some(page) = read_request(stream).await? else { return Ok(()) };
        let length = self.length(page);
        // One window after the other, the head in the first: what lives across an await is static
        // memory in firmware.
        let mut window = Window::<WINDOW>::after(0);
        // It fits: the longest status has 23 characters and the longest number 10.
        let _ = write!(
            window,
            "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n",
            self.status(page)
        );
        stream.write_all(window.bytes()).await?;
        let mut sent = 0;
        while sent < length {
            window = Window::after(sent);
            // A window takes in all it is given.
            let _ = self.write(page, &mut window);
            // Counters grow: what was announced is sent, and not a byte more or less.
            let rest = length - sent;
            let piece = window.bytes().get(..rest).unwrap_or(window.bytes());
            let piece = if piece.is_empty() { b"\n" } else { piece };
            stream.write_all(piece).await?;
            sent += piece.len();
        }
        stream.flush().await
    }

    fn length(&self, page: Page) -> usize {
        let mut window = Window::<0>::counting();
        let _ = self.write(page, &mut window);
        window.seen()
    }

    fn status(&self, page: Page) -> &'static str {
        match page {
            Page::LeaderElection if self.runtime.inspect(|it| it.elector().is_none()) => NOT_FOUND,
            Page::Health | Page::LeaderElection if !self.runtime.is_leader_healthy() => {
                "500 Internal Server Error"
            }
            Page::Health | Page::LeaderElection | Page::Metrics => "200 OK",
            Page::Ready if self.runtime.inspect(Manager::has_started) => "200 OK",
            Page::Ready => "503 Service Unavailable",
            Page::Unknown => NOT_FOUND,
            Page::Refused => "405 Method Not Allowed",
        }
    }

    fn write(&self, page: Page, out: &mut dyn fmt::Write) -> fmt::Result {
        let is_leader_healthy = self.runtime.is_leader_healthy();
        self.runtime.inspect(|manager| match page {
            Page::Health => {
                write_leadership(manager, is_leader_healthy, out)?;
                write_shortage(manager, out)
            }
            Page::LeaderElection if manager.elector().is_none() => {
                out.write_str("there is no election\n")
            }
            Page::LeaderElection => write_leadership(manager, is_leader_healthy, out),
            Page::Ready => write_ready(manager, out),
            Page::Metrics => {
                manager.write_metrics(out)?;
                (self.platform)(out)
            }
            Page::Unknown => out.write_str("there are /healthz, /readyz and /metrics\n"),
            Page::Refused => out.write_str("only GET\n"),
        })
    }
}

/// In the words of client-go's health adaptor, which is content with everybody but a leader whose lease ended
/// long ago.
fn write_leadership(
    manager: &Manager<'_>,
    is_healthy: bool,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    match manager.elector().filter(|_| !is_healthy) {
        None => out.write_str("ok\n"),
        Some(elector) => writeln!(
            out,
            "[-]leaderElection failed: failed election to renew leadership on lease {}",
            elector.settings().resource_name
        ),
    }
}

/// What does not fit, whose owners nothing is decided for.
fn write_shortage(manager: &Manager<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
    for kind in Kind::ALL {
        let name = kind.info().plural;
        match manager.cache().refused(*kind) {
            0 => {}
            refused => writeln!(
                out,
                "blind: {name} do not fit the cache, {refused} refusals since the last list"
            )?,
        }
    }
    Ok(())
}

/// In the form of Kubernetes' verbose health checks.
fn write_ready(manager: &Manager<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
    for kind in Kind::ALL.iter().filter(|kind| manager.watches(**kind)) {
        let name = kind.info().plural;
        match manager.has_synced(*kind) {
            true => writeln!(out, "[+]{name} ok")?,
            false => writeln!(out, "[-]{name} not listed yet")?,
        }
    }
    let verdict = if manager.has_started() { "passed" } else { "failed" };
    writeln!(out, "readyz check {verdict}")
}

/// Reads to the end of the request's head; `None` if the client went away before.
async fn read_request<S: Read>(stream: &mut S) -> Result<Option<Page>, S::Error> {
    let mut line = heapless::Vec::<u8, REQUEST>::new();
    let mut end = [0; 4];
    let mut bytes = [0; 64];
    loop {
        let len = stream.read(&mut bytes).await?;
        let bytes = bytes.get(..len).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        for byte in bytes {
            // What does not fit is headers, which nobody looks at.
            let _ = line.push(*byte);
            end.rotate_left(1);
            if let Some(last) = end.last_mut() {
                *last = *byte;
            }
            if end == *b"\r\n\r\n" {
                return Ok(Some(page(&line)));
            }
        }
    }
}

fn page(line: &[u8]) -> Page {
    let mut words = line.split(|byte| *byte == b' ');
    if words.next() != Some(b"GET") {
        return Page::Refused;
    }
    let target = words.next().unwrap_or_default();
    match target.split(|byte| *byte == b'?').next() {
        Some(b"/healthz" | b"/livez") => Page::Health,
        Some(b"/healthz/leaderElection") => Page::LeaderElection,
        Some(b"/readyz") => Page::Ready,
        Some(b"/metrics") => Page::Metrics,
        _ => Page::Unknown,
    }
}

//! The server's open watches, and what they bring.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use picokube_core::kind::Kind;

use crate::server::request::Request;
use crate::server::response::CHUNK_BYTES;
use crate::server::watch::{Watch, WatchState};

use super::super::clock::Moment;
use super::super::device::KINDS;
use super::super::world::World;
use super::Shipped;
use super::net::Net;
use super::service::{Pipe, PipeEnd};

/// Events that can be repeated.
const REMEMBERED: usize = 16;

/// A watch looks at least so often, which costs nobody anything.
const LOOK_SECS: u64 = 60;

/// A watch that a client has begun.
pub(super) struct OpenWatch {
    pub(super) device: usize,
    pub(super) connection: u64,
    /// The place of its kind.
    pub(super) kind: usize,
    watch: Box<Watch>,
    pipe: Rc<RefCell<Pipe>>,
    pub(super) stalled_until: Moment,
    /// The next event is cut there, in percent.
    pub(super) cut_at: Option<u8>,
    recent: VecDeque<Bytes>,
    /// When it looks for something new although nothing was written.
    pub(super) looks_at: Moment,
    /// What was written up to this version has been told.
    told: u64,
}

/// The place of the kind that a request lists or watches.
pub(super) fn kind_of(request: &Request) -> Option<usize> {
    let plural = request.path.rsplit('/').next().unwrap_or_default();
    let is_collection =
        request.method == http::Method::GET && !request.path.contains("/namespaces/");
    KINDS.iter().position(|kind| is_collection && kind.info().plural == plural)
}

/// Path and query, as they were asked for.
pub(super) fn target(request: &Request) -> String {
    format!("{}?{}", request.path, request.query)
}

impl OpenWatch {
    pub(super) fn new(
        device: usize,
        connection: u64,
        kind: usize,
        watch: Box<Watch>,
        pipe: &Rc<RefCell<Pipe>>,
        now: Moment,
    ) -> Self {
        Self {
            device,
            connection,
            kind,
            watch,
            pipe: pipe.clone(),
            stalled_until: now,
            cut_at: None,
            recent: VecDeque::new(),
            looks_at: now,
            told: 0,
        }
    }

    pub(super) fn is_of(&self, kind: Kind) -> bool {
        KINDS.get(self.kind) == Some(&kind)
    }

    /// Whether events get to the client, as far as anybody knows.
    pub(super) fn is_open(&self, net: &Net) -> bool {
        let mut is_open = self.pipe.borrow().end == PipeEnd::NotYet && !self.has_gone();
        net.with(self.connection, |connection| is_open &= connection.is_open());
        is_open
    }

    /// Whether nobody sends it any more.
    fn has_gone(&self) -> bool {
        Rc::strong_count(&self.pipe) == 1
    }

    pub(super) fn end(&mut self, how: PipeEnd) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.end = how;
        pipe.wake();
    }

    /// Sends the last events once more.
    pub(super) fn repeat(&mut self, count: usize) {
        let skipped = self.recent.len().saturating_sub(count);
        let again: Vec<u8> = self.recent.iter().skip(skipped).flatten().copied().collect();
        if !again.is_empty() {
            self.send(again);
        }
    }

    fn send(&mut self, chunk: Vec<u8>) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.chunks.push_back(Bytes::from(chunk));
        pipe.is_hungry = false;
        pipe.wake();
    }
}

impl Shipped {
    /// Tells watchers what is new, as soon as they have taken what was told before. How many were told.
    pub(super) fn feed(&mut self, world: &mut World<'_>) -> usize {
        self.watches.retain(|watch| !watch.has_gone());
        let newest = world.server.store().revision();
        let mut told = 0;
        for open in &mut self.watches {
            let is_due = open.told != newest || open.looks_at <= world.now;
            if !is_due || open.pipe.borrow().end != PipeEnd::NotYet {
                // It goes as soon as somebody looks.
                open.looks_at = open.looks_at.max(world.now.plus_secs(1));
                continue;
            }
            if open.stalled_until > world.now {
                open.looks_at = open.stalled_until;
                continue;
            }
            if !open.pipe.borrow().is_hungry {
                open.looks_at = world.now.plus_secs(LOOK_SECS);
                continue;
            }
            told += usize::from(open.look(world, newest));
        }
        told
    }
}

impl OpenWatch {
    /// Takes what is new: whether there was something.
    fn look(&mut self, world: &mut World<'_>, newest: u64) -> bool {
        let wall = world.wall();
        let mut out = Vec::new();
        let state = self.watch.fill(world.server.store(), wall, &mut out, CHUNK_BYTES);
        let pause = self.watch.wake_at().millis_since(wall).clamp(1, LOOK_SECS as i64 * 1000);
        self.looks_at = world.now.plus_millis(pause as u64);
        if out.len() < CHUNK_BYTES {
            self.told = newest;
        }
        let mut chunk = Vec::with_capacity(out.len());
        let mut is_cut = false;
        for line in out.split_inclusive(|byte| *byte == b'\n') {
            let is_bookmark = line.starts_with(br#"{"type":"BOOKMARK""#);
            if is_bookmark && world.no_bookmarks_until > world.now {
                continue;
            }
            if let Some(percent) = self.cut_at.take() {
                chunk.extend_from_slice(&line[..line.len() * usize::from(percent) / 100]);
                is_cut = true;
                break;
            }
            if !is_bookmark {
                world.counts.events += 1;
                if self.recent.len() == REMEMBERED {
                    self.recent.pop_front();
                }
                self.recent.push_back(Bytes::copy_from_slice(line));
            }
            chunk.extend_from_slice(line);
        }
        let is_told = !chunk.is_empty();
        if is_told {
            self.send(chunk);
        }
        if is_cut {
            self.end(PipeEnd::Broken);
        } else if state == WatchState::Ended {
            self.end(PipeEnd::InOrder);
        }
        is_told || is_cut || state == WatchState::Ended
    }
}

//! The queue of events, and the one that is being sent.

use core::fmt::{self, Write};

use crate::planted::{Bug, planted};
use crate::text::Interner;
use crate::time::{Duration, Instant, Timestamp};
use crate::zero::ZeroOption;

use super::correlate::{Correlated, Keys, Printer, Remembered, correlate};
use super::message::{Message, Subject};
use super::write;

/// Tries of one event while the server cannot be reached.
const TRIES: u8 = 12;
/// Time between them.
const PAUSE: Duration = Duration::from_secs(10);

/// An event that waits. [`Recorder`] holds a ring of them.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    waiting: ZeroOption<Waiting>,
    memory: Remembered,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    subject: Subject,
    message: Message,
    at: Timestamp,
}

/// The recorder. `S` is `[Event; N]` where it lives, `[Event]` where it is used.
#[derive(Debug)]
pub struct Recorder<S: ?Sized = [Event]> {
    first: u16,
    len: u16,
    tick: u64,
    last_name: u64,
    current: ZeroOption<Current>,
    dropped: u32,
    events: S,
}

/// The event that is being sent.
#[derive(Clone, Copy, Debug)]
struct Current {
    event: Waiting,
    correlated: Correlated,
    sending: Sending,
    tries: u8,
    not_before: Instant,
}

/// How an event is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// POST of a new one.
    Create = 1,
    /// PATCH of one that was sent before.
    Count,
}

impl Event {
    /// No event.
    pub const EMPTY: Self = Self { waiting: ZeroOption::None, memory: Remembered::EMPTY };
}

impl AsMut<Remembered> for Event {
    fn as_mut(&mut self) -> &mut Remembered {
        &mut self.memory
    }
}

impl<const N: usize> Recorder<[Event; N]> {
    /// A recorder that has heard nothing.
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= u16::MAX as usize) };
        Self {
            first: 0,
            len: 0,
            tick: 0,
            last_name: 0,
            current: ZeroOption::None,
            dropped: 0,
            events: [Event::EMPTY; N],
        }
    }
}

impl<const N: usize> Default for Recorder<[Event; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Puts an event into the queue, or drops it when that is full.
    pub fn record(
        &mut self,
        texts: &mut Interner,
        subject: Subject,
        message: Message,
        at: Timestamp,
    ) {
        let place = (usize::from(self.first) + usize::from(self.len)) % self.events.len().max(1);
        let is_full = usize::from(self.len) >= self.events.len();
        match self.events.get_mut(place) {
            Some(event) if !is_full => {
                texts.retain(subject.namespace);
                subject.name.retain(texts);
                message.retain(texts);
                event.waiting = ZeroOption::Some(Waiting { subject, message, at });
                self.len += 1;
            }
            _ => self.dropped = self.dropped.wrapping_add(1),
        }
    }

    /// What is to be sent now: the event at hand, or else the next one that is not silenced.
    pub fn poll(&mut self, texts: &mut Interner, now: Instant) -> Option<Sending> {
        while self.current.as_ref().is_none() {
            let next = self.take()?;
            self.begin(texts, next, now);
        }
        self.current
            .get()
            .filter(|current| current.not_before <= now)
            .map(|current| current.sending)
    }

    /// When [`poll`](Self::poll) has something to send, if it has something.
    pub fn poll_at(&self) -> Option<Instant> {
        match self.current.get() {
            Some(current) => Some(current.not_before),
            None => (self.len > 0).then_some(Instant::ZERO),
        }
    }

    /// The server has answered: whatever it said, the event is done with; except that one which
    /// was to be counted may be gone, and is then sent as new.
    pub fn answered(&mut self, texts: &mut Interner, status: u16) {
        match &mut self.current {
            ZeroOption::Some(current) if status == 404 && current.sending == Sending::Count => {
                current.sending = Sending::Create;
            }
            ZeroOption::Some(_) if status >= 400 && planted(Bug::EventsForEver) => {}
            _ => self.end(texts),
        }
    }

    /// The server could not be reached: once more later, but not forever.
    pub fn failed(&mut self, texts: &mut Interner, now: Instant, random: u32) {
        let ZeroOption::Some(current) = &mut self.current else { return };
        current.tries += 1;
        if current.tries >= TRIES {
            self.dropped = self.dropped.wrapping_add(1);
            return self.end(texts);
        }
        let pause = match current.tries {
            1 => Duration::from_micros((PAUSE.as_micros() * u64::from(random)) >> 32),
            _ => PAUSE,
        };
        current.not_before = now + pause;
    }

    /// Path of the request for the event at hand.
    pub fn write_target(&self, texts: &Interner, out: &mut dyn Write) -> fmt::Result {
        let current = self.current.as_ref().ok_or(fmt::Error)?;
        let Waiting { subject, .. } = &current.event;
        write::target(out, texts, subject, current.sending, current.correlated.name)
    }

    /// Body of the request for the event at hand.
    pub fn write_body(&self, texts: &Interner, out: &mut dyn Write) -> fmt::Result {
        let Current { event, correlated, sending, .. } = self.current.as_ref().ok_or(fmt::Error)?;
        let Waiting { subject, message, at } = event;
        write::body(out, texts, subject, message, *at, correlated, *sending)
    }

    /// Which component the event at hand is from.
    pub fn component(&self) -> Option<&'static str> {
        self.current.get().map(|current| current.event.subject.component)
    }

    /// Events that were dropped.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    fn take(&mut self) -> Option<Waiting> {
        if self.len == 0 {
            return None;
        }
        let place = usize::from(self.first);
        self.first = ((place + 1) % self.events.len().max(1)) as u16;
        self.len -= 1;
        self.events.get_mut(place)?.waiting.take()
    }

    fn begin(&mut self, texts: &mut Interner, event: Waiting, now: Instant) {
        self.tick += 1;
        // Unix time in nanoseconds, but never the same twice.
        let nanos = (event.at.as_micros().max(0) as u64).saturating_mul(1_000);
        self.last_name = nanos.max(self.last_name + 1);
        let keys = keys(texts, &event.subject, &event.message);
        let correlated =
            correlate(&mut self.events, self.tick, &keys, self.last_name, now, event.at);
        let sending = if correlated.count > 1 { Sending::Count } else { Sending::Create };
        self.current =
            ZeroOption::Some(Current { event, correlated, sending, tries: 0, not_before: now });
        if correlated.silenced {
            self.end(texts);
        }
    }

    fn end(&mut self, texts: &mut Interner) {
        if let Some(Current { event: Waiting { subject, message, .. }, .. }) = self.current.take() {
            texts.release(subject.namespace);
            subject.name.release(texts);
            message.release(texts);
        }
    }
}

fn keys(texts: &Interner, subject: &Subject, message: &Message) -> Keys {
    let print = |write: &dyn Fn(&mut Printer) -> fmt::Result| {
        let mut printer = Printer::default();
        // A printer takes everything.
        let _ = write(&mut printer);
        printer.finish()
    };
    let source = subject.component;
    let kind = message.event_type().name();
    Keys {
        object: print(&|out| write!(out, "{source}/{}/{kind}", subject.uid)),
        similar: print(&|out| write!(out, "{source}/{}/{kind}/{}", subject.uid, message.reason())),
        message: print(&|out| message.write(out, texts, subject)),
    }
}

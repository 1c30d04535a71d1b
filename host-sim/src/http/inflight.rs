//! How many requests, and how many bytes of their bodies, are in hand at a time.
//!
//! As in kube-apiserver, requests that only look and requests that change something have a number
//! of places each, and who finds none is told to come again in a second. Watches are not counted
//! here: they have a limit of their own. All bodies together share one room.
//!
//! Slow clients cannot keep others out: a request whose body has been on its way for longer than
//! [`GRACE`] gives way as soon as somebody else needs its place or its bytes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::status::Status;

/// How long a body may be on its way before it has to give way to others.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// Bodies up to this size find room where larger ones do not any more.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// One part in so many of the room is for small bodies only.
const PARTS: usize = 8;

/// What may be in hand at a time; 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub struct InFlightLimits {
    /// Requests that only look.
    pub read_only: usize,
    /// Requests that change something.
    pub mutating: usize,
    /// Bytes of the bodies of all requests.
    pub body_bytes: usize,
}

impl InFlightLimits {
    /// The least room in which the largest body has a chance.
    pub const LEAST_BODY_BYTES: usize = 4 << 20;
}

impl Default for InFlightLimits {
    fn default() -> Self {
        Self { read_only: 400, mutating: 200, body_bytes: 128 << 20 }
    }
}

/// Which places a request takes one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    ReadOnly,
    Mutating,
}

/// Everything that is in hand.
#[derive(Debug)]
pub(super) struct InFlight {
    limits: InFlightLimits,
    hand: Mutex<Hand>,
}

#[derive(Debug, Default)]
struct Hand {
    read_only: usize,
    mutating: usize,
    body_bytes: usize,
    dropped: u64,
    /// Requests whose body is still on its way, in the order in which they came.
    uploads: BTreeMap<u64, Upload>,
    next_upload: u64,
}

#[derive(Debug)]
struct Upload {
    kind: RequestKind,
    bytes: usize,
    since: Instant,
    give_way: Arc<Notify>,
}

/// There is no place, or no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl From<Full> for Status {
    fn from(_: Full) -> Self {
        Self::too_many_requests("Too many requests, please try again later.", 1)
    }
}

impl InFlight {
    pub(super) fn new(limits: InFlightLimits) -> Arc<Self> {
        Arc::new(Self { limits, hand: Mutex::default() })
    }

    /// Takes a place for a request without a body.
    pub(super) fn enter(self: &Arc<Self>, kind: RequestKind) -> Result<Place, Full> {
        self.find_place(&mut self.hand(), kind)?;
        Ok(Place { all: self.clone(), kind, held: Held::Own { bytes: 0 } })
    }

    /// Takes a place for a request whose body is on its way.
    pub(super) fn enter_with_body(self: &Arc<Self>, kind: RequestKind) -> Result<Place, Full> {
        let mut hand = self.hand();
        self.find_place(&mut hand, kind)?;
        let (number, give_way) = (hand.next_upload, Arc::new(Notify::new()));
        hand.next_upload += 1;
        let upload = Upload { kind, bytes: 0, since: Instant::now(), give_way: give_way.clone() };
        hand.uploads.insert(number, upload);
        Ok(Place { all: self.clone(), kind, held: Held::Upload { number, give_way } })
    }

    /// The Prometheus text format, in kube-apiserver's names where it has them.
    pub(super) fn render(&self) -> String {
        let hand = self.hand();
        let mut text = String::new();
        let mut section = |name: &str, kind: &str, help: &str, lines: &[(&str, u64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        section(
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests in hand, without watches.",
            &[
                ("{request_kind=\"mutating\"}", hand.mutating as u64),
                ("{request_kind=\"readOnly\"}", hand.read_only as u64),
            ],
        );
        section(
            "picokube_inflight_body_bytes",
            "gauge",
            "Bytes held for the bodies of requests.",
            &[("", hand.body_bytes as u64)],
        );
        section(
            "picokube_dropped_requests_total",
            "counter",
            "Requests that were told to come again, because there was no place or no room.",
            &[("", hand.dropped)],
        );
        text
    }

    fn find_place(&self, hand: &mut Hand, kind: RequestKind) -> Result<(), Full> {
        let limit = match kind {
            RequestKind::ReadOnly => self.limits.read_only,
            RequestKind::Mutating => self.limits.mutating,
        };
        if limit > 0 && *hand.places(kind) >= limit {
            let slowest = hand.slowest(|upload| upload.kind == kind);
            slowest.map(|number| hand.send_away(number)).ok_or_else(|| hand.refuse())?;
        }
        *hand.places(kind) += 1;
        Ok(())
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hand {
    fn places(&mut self, kind: RequestKind) -> &mut usize {
        match kind {
            RequestKind::ReadOnly => &mut self.read_only,
            RequestKind::Mutating => &mut self.mutating,
        }
    }

    /// The upload that has taken longest, if that is too long.
    fn slowest(&self, among: impl Fn(&Upload) -> bool) -> Option<u64> {
        let slowest = self.uploads.iter().find(|(_, upload)| among(upload));
        slowest.filter(|(_, upload)| upload.since.elapsed() >= GRACE).map(|(number, _)| *number)
    }

    /// What an upload had is free at once; its own task finds out in a moment.
    fn send_away(&mut self, number: u64) {
        if let Some(upload) = self.uploads.remove(&number) {
            self.leave(upload.kind, upload.bytes);
            self.dropped += 1;
            upload.give_way.notify_one();
        }
    }

    fn leave(&mut self, kind: RequestKind, bytes: usize) {
        let places = self.places(kind);
        *places = places.saturating_sub(1);
        self.body_bytes = self.body_bytes.saturating_sub(bytes);
    }

    fn refuse(&mut self) -> Full {
        self.dropped += 1;
        Full
    }
}

/// A place, and room for a body; both are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<InFlight>,
    kind: RequestKind,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// For good.
    Own { bytes: usize },
    /// Until somebody else needs it more: the list of uploads says whether it still is held.
    Upload { number: u64, give_way: Arc<Notify> },
}

impl Place {
    /// Takes more room: `bytes` that make `total` of this body.
    pub(super) fn grow(&mut self, bytes: usize, total: usize) -> Result<(), Full> {
        let Held::Upload { number, .. } = self.held else { return Ok(()) };
        let all = self.all.limits.body_bytes;
        let limit = if total > SMALL_BODY_BYTES { all - all / PARTS } else { all };
        let mut hand = self.all.hand();
        while all > 0 && hand.body_bytes.saturating_add(bytes) > limit {
            let others = hand.slowest(|upload| upload.bytes > 0);
            let Some(slowest) = others.filter(|slowest| *slowest != number) else {
                return Err(hand.refuse());
            };
            hand.send_away(slowest);
        }
        let upload = hand.uploads.get_mut(&number).ok_or(Full)?;
        upload.bytes += bytes;
        hand.body_bytes += bytes;
        Ok(())
    }

    /// Resolves when the body has to give way.
    pub(super) async fn has_to_give_way(&self) {
        match &self.held {
            Held::Upload { give_way, .. } => give_way.notified().await,
            Held::Own { .. } => std::future::pending().await,
        }
    }

    /// The whole body is here: from now on nobody can claim the place.
    pub(super) fn arrived(&mut self) -> Result<(), Full> {
        if let Held::Upload { number, .. } = self.held {
            // What is sent away has been taken off the books already.
            let upload = self.all.hand().uploads.remove(&number).ok_or(Full)?;
            self.held = Held::Own { bytes: upload.bytes };
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hand = self.all.hand();
        match self.held {
            Held::Own { bytes } => hand.leave(self.kind, bytes),
            Held::Upload { number, .. } => {
                if let Some(upload) = hand.uploads.remove(&number) {
                    hand.leave(upload.kind, upload.bytes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RequestKind::{Mutating, ReadOnly};
    use super::*;

    fn in_flight(read_only: usize, mutating: usize, body_bytes: usize) -> Arc<InFlight> {
        InFlight::new(InFlightLimits { read_only, mutating, body_bytes })
    }

    fn counts(all: &InFlight) -> (usize, usize, usize) {
        let hand = all.hand();
        (hand.read_only, hand.mutating, hand.body_bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn reads_and_writes_have_places_of_their_own() {
        let all = in_flight(2, 1, 0);
        let (one, _two) = (all.enter(ReadOnly).unwrap(), all.enter(ReadOnly).unwrap());
        let write = all.enter(Mutating).unwrap();
        assert!(all.enter(ReadOnly).is_err() && all.enter(Mutating).is_err());
        drop(one);
        let _three = all.enter(ReadOnly).unwrap();
        assert!(all.enter(Mutating).is_err(), "that was a place for reads");
        drop(write);
        all.enter(Mutating).unwrap();
        assert_eq!(counts(&all), (2, 0, 0));
        assert!(all.render().contains("picokube_dropped_requests_total 3"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_limit_is_none() {
        let all = in_flight(0, 0, 0);
        let places: Vec<_> = (0..5_000)
            .map(|_| {
                let mut place = all.enter_with_body(Mutating).unwrap();
                place.grow(3 << 20, 3 << 20).unwrap();
                place
            })
            .collect();
        drop(places);
        assert_eq!(counts(&all), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_gives_way_after_a_moment_of_grace() {
        let all = in_flight(1, 2, 0);
        let (slow, slower) = (all.enter_with_body(Mutating), all.enter_with_body(Mutating));
        let (mut slow, mut slower) = (slow.unwrap(), slower.unwrap());
        tokio::time::advance(GRACE / 2).await;
        assert!(all.enter(Mutating).is_err(), "everybody gets a moment");
        tokio::time::advance(GRACE / 2).await;
        let quick = all.enter(Mutating).unwrap();
        slow.has_to_give_way().await;
        assert!(slow.grow(1, 1).is_err() && slow.arrived().is_err());
        drop(slow);
        assert_eq!(counts(&all), (0, 2, 0), "what is sent away is counted once");
        slower.arrived().unwrap();
        assert!(all.enter(Mutating).is_err(), "who is complete stays");
        drop((quick, slower));
        assert_eq!(counts(&all), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_and_small_bodies_find_room_last() {
        let all = in_flight(0, 0, 8 << 20);
        let mut bodies: Vec<_> = (0..7).map(|_| all.enter_with_body(Mutating).unwrap()).collect();
        for body in &mut bodies {
            body.grow(1 << 20, 1 << 20).unwrap();
        }
        let mut large = all.enter_with_body(Mutating).unwrap();
        assert!(large.grow(1 << 17, 1 << 17).is_err(), "the last part is not for large ones");
        let mut small = all.enter_with_body(Mutating).unwrap();
        small.grow(4096, 4096).unwrap();
        small.arrived().unwrap();
        assert_eq!(counts(&all).2, (7 << 20) + 4096);

        tokio::time::advance(GRACE).await;
        large.grow(3 << 20, 3 << 20).unwrap();
        assert!(bodies[3].grow(0, 1 << 20).is_err(), "the oldest four had to go");
        assert!(bodies[4].grow(0, 1 << 20).is_ok());
        assert_eq!(counts(&all).2, (6 << 20) + 4096);
        drop((bodies, large, small));
        assert_eq!(counts(&all), (0, 0, 0));
    }
}

//! What must hold in the end: everything becomes as desired, and then nothing is written.

use super::boards::Seen;
use super::checks::{Model, Verdict};
use super::clock::Moment;
use super::device::Stream;
use super::memory::Room;
use super::trace::Actor;
use super::world::{Happening, World};

const CONVERGENCE: &str = "everything becomes as desired";
const SILENCE: &str = "a steady cluster is silent";
const CACHE: &str = "the cache becomes what the server has";
const LEFT_OPEN: &str = "what was given up does not stay open";

/// Nothing may take longer than expectations that are never met.
const LONGEST_SECS: u64 = 300;
/// As in Kubernetes, a key that has failed often is tried again after so long. Nobody tells it when what
/// it has failed of has gone, such as a quota, unless all connections are reset.
const LONGEST_BACKOFF_SECS: u64 = 1_000;
/// No cluster needs so many writes to become as desired: somebody sends the same again and again.
const MOST_WRITES: u32 = 50_000;
/// How often to look.
const LOOK_SECS: u64 = 2;

/// How far the end of a run is.
#[derive(Debug, Default)]
pub(super) struct Ending {
    healed_at: Option<Moment>,
    /// When the controller had all its watches again: it may have been waiting to try.
    reconnected_at: Option<Moment>,
    converged_at: Option<Moment>,
    last_write: Moment,
    /// How often a controller has written something since all trouble is over.
    writes: u32,
    over: bool,
}

impl Ending {
    /// All trouble is over.
    pub(super) fn begin(&mut self, now: Moment) {
        self.healed_at = Some(now);
    }

    /// The controller has all its watches.
    pub(super) fn connected(&mut self, now: Moment) {
        if self.healed_at.is_some() && self.reconnected_at.is_none() {
            self.reconnected_at = Some(now);
        }
    }

    /// A controller has written something, or has tried to.
    pub(super) fn wrote(&mut self, now: Moment) {
        self.last_write = now;
        self.writes = self.writes.saturating_add(u32::from(self.healed_at.is_some()));
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// From the end of all trouble until everything was as desired. A back-off of the watches that
    /// was running then does not count.
    pub(super) fn converged_after(&self) -> Option<Moment> {
        let micros = self.converged_at?.micros_since(self.reconnected_at.or(self.healed_at)?);
        Some(Moment::from_micros(micros))
    }
}

impl World<'_> {
    /// Is everything as desired? Does it stay so?
    pub(super) fn look(&mut self) {
        let Some(healed_at) = self.ending.healed_at else { return };
        let patience = self.patience(healed_at);
        if self.ending.writes > MOST_WRITES {
            let writes = self.ending.writes;
            return self.violate(SILENCE, format!("{writes} writes since the end of all trouble"));
        }
        if let Some(converged_at) = self.ending.converged_at {
            return self.look_at_silence(converged_at);
        }
        if self.plan.shape.stateful_sets > 0 {
            self.lend_a_hand();
            self.observe(Actor::User);
        }
        let quiet = self.now.micros_since(self.ending.last_write) >= LOOK_SECS * 1_000_000;
        let is_last = self.now >= patience;
        if quiet || is_last {
            match self.as_desired() {
                Ok(()) => {
                    let done = self.ending.last_write.max(healed_at);
                    self.ending.converged_at = Some(done);
                    let until = self.now.plus_secs(self.plan.shape.silence_secs);
                    return self.agenda.plan(until, Happening::Look);
                }
                Err((property, detail)) if is_last => return self.violate(property, detail),
                Err(_) => {}
            }
        }
        self.agenda.plan(self.now.plus_secs(LOOK_SECS), Happening::Look);
    }

    /// Until when everything has to be as desired.
    fn patience(&self, healed_at: Moment) -> Moment {
        let running = if self.plan.is_helped() { 0 } else { LONGEST_BACKOFF_SECS };
        healed_at.plus_secs(LONGEST_SECS + running)
    }

    fn look_at_silence(&mut self, converged_at: Moment) {
        if self.gropes() {
            self.ending.over = true;
            return;
        }
        let healed_at = self.ending.healed_at.unwrap_or_default();
        if self.ending.last_write > converged_at {
            // There was more to do, such as events that wait for better times.
            if self.ending.last_write < self.patience(healed_at) {
                self.ending.converged_at = None;
                return self.agenda.plan(self.now, Happening::Look);
            }
            let late = self.ending.last_write.micros_since(converged_at) / 1_000_000;
            return self.violate(SILENCE, format!("a write {late} s after the last one needed"));
        }
        if !self.is_connected() && self.now < self.patience(healed_at) {
            // A watch may be about to be tried again.
            return self.agenda.plan(self.now.plus_secs(LOOK_SECS), Happening::Look);
        }
        let verdict = self.as_desired().and_then(|()| self.cache_is_right());
        let left_open = self.boards.as_ref().and_then(|boards| boards.left_open());
        let verdict = verdict.and_then(|()| left_open.map_or(Ok(()), |it| Err((LEFT_OPEN, it))));
        if let Err((property, detail)) = verdict {
            return self.violate(property, detail);
        }
        self.ending.over = true;
    }

    /// Whether the controller has all of its watches.
    fn is_connected(&self) -> bool {
        if let Some(boards) = &self.boards {
            return boards.are_connected();
        }
        let is_open =
            |stream: &Option<Stream>| stream.as_ref().is_some_and(|it| it.watch.is_some());
        self.devices.iter().flatten().all(|device| device.streams().all(is_open))
    }

    fn as_desired(&mut self) -> Verdict {
        if self.gropes() {
            return Ok(());
        }
        let model = self.checks.model();
        model.deployments_are_complete()?;
        model.replica_sets_have_their_pods()?;
        model.stateful_sets_are_complete()?;
        model.nothing_is_left_behind()
    }

    /// Whether there is a controller without room for everything: it does not act where it is
    /// blind, and what it sees changes with every list.
    fn gropes(&mut self) -> bool {
        self.plan.shape.room == Room::Tight && self.is_blind()
    }

    fn is_blind(&mut self) -> bool {
        self.look_inside().iter().any(|seen| seen.is_blind)
    }

    /// What all controllers know.
    fn look_inside(&mut self) -> Vec<Seen> {
        let now = self.now;
        let boards = self.boards.as_mut().map(|boards| boards.look_inside(now));
        boards.unwrap_or_else(|| {
            let running = self.devices.iter().flatten();
            running.map(|device| Seen::of(&device.manager)).collect()
        })
    }

    /// What the controller knows is what there is.
    pub(super) fn cache_is_right(&mut self) -> Verdict {
        if self.plan.shape.room == Room::Tight {
            return Ok(());
        }
        for seen in self.look_inside() {
            for (plural, cached) in seen.versions {
                if !self.checks.looks_at(plural) {
                    continue;
                }
                let resource = self.checks.resource(&self.server, plural);
                let stored = resource.range("", None).map(|entry| entry.revision);
                let mut stored: Vec<u64> = stored.collect();
                stored.sort_unstable();
                if cached != stored {
                    return Err((CACHE, format!("{plural}: {cached:?} cached, {stored:?} stored")));
                }
            }
        }
        Ok(())
    }
}

impl Model {
    /// Nothing that is owned by nobody, nothing that does not go.
    fn nothing_is_left_behind(&self) -> Verdict {
        for object in self.objects.values() {
            let orphaned = object.controller.as_ref().filter(|it| !self.objects.contains_key(*it));
            if orphaned.is_some() {
                return wrong(format!("{}/{} belongs to nobody", object.plural, object.key));
            }
            if object.deleting {
                return wrong(format!("{}/{} does not go", object.plural, object.key));
            }
        }
        Ok(())
    }
}

pub(super) fn wrong(detail: String) -> Verdict {
    Err((CONVERGENCE, detail))
}

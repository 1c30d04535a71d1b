//! Who is told of changes in the cache: every controller.

use crate::control::record;
use crate::event::{Message, Recorder};
use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::registry::{ControllerName, Controllers};
use crate::store::{Cache, Change, Owner, Refusal};
use crate::text::Name;
use crate::time::{Instant, Timestamp};
use crate::watch::Handler;
use crate::wire::{Meta, ObjectFault};

/// Hands changes on to the controllers.
pub(super) struct Informers<'i, 'a> {
    pub(super) controllers: &'i mut Controllers<'a>,
    pub(super) recorder: &'i mut Recorder,
    pub(super) metrics: &'i mut Metrics,
    pub(super) now: Instant,
    /// `None` before the first answer of a server.
    pub(super) wall: Option<Timestamp>,
}

impl Informers<'_, '_> {
    /// Tells an owner which of its objects could not be kept, and why, unless it knows that there is one.
    fn tell(&mut self, cache: &mut Cache<'_>, kind: Kind, meta: &Meta, refusal: &Refusal) {
        let Owner::Resolved(owner, slot) = refusal.owner else { return };
        let owners = ControllerName::ALL.iter().map(|name| name.info());
        let by = owners.into_iter().find(|info| info.key == owner);
        let (Some(by), Some(wall)) = (by, self.wall) else { return };
        if cache.tell_blind(owner, slot, true) {
            return;
        }
        let name = match kind.info().has_generated_names {
            true => Name::split(cache.texts, &meta.name),
            false => Name::whole(cache.texts, &meta.name),
        };
        match name {
            Ok(name) => {
                let message = Message::Refused { kind, name, reason: refusal.reason };
                record(self.recorder, cache, by, slot, message, wall);
                name.release(cache.texts);
            }
            // There is not even room for its name.
            Err(_) => record(self.recorder, cache, by, slot, Message::Blind(kind), wall),
        }
    }
}

impl Handler for Informers<'_, '_> {
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change) {
        for controller in self.controllers.all_mut() {
            controller.changed(cache, kind, change, self.now);
        }
    }

    fn refused(&mut self, cache: &mut Cache<'_>, kind: Kind, meta: &Meta, refusal: &Refusal) {
        self.metrics.refused = self.metrics.refused.wrapping_add(1);
        self.tell(cache, kind, meta, refusal);
        self.healed(cache, kind, refusal.owner);
    }

    fn faulty(&mut self, _: &ObjectFault<'_>) {
        self.metrics.faulty = self.metrics.faulty.wrapping_add(1);
    }

    /// The owner is looked at: to tell that it is blind, or to go on now that it sees. So is its own
    /// owner: a Deployment that recreates waits for pods that nobody sees, too.
    fn healed(&mut self, cache: &mut Cache<'_>, _: Kind, owner: Owner) {
        let above = match owner {
            Owner::Resolved(kind, slot) => cache.owner_of(kind, slot),
            Owner::None | Owner::Unresolved => Owner::None,
        };
        for controller in self.controllers.all_mut() {
            controller.keys_mut().add_owner(owner);
            controller.keys_mut().add_owner(above);
        }
    }
}

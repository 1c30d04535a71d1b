//! Who is told of changes in the cache: every controller.

use crate::kind::Kind;
use crate::metrics::Metrics;
use crate::registry::Controllers;
use crate::store::{Cache, Change, Owner, Refusal};
use crate::time::Instant;
use crate::watch::Handler;
use crate::wire::{Meta, ObjectFault};

/// Hands changes on to the controllers.
pub(super) struct Informers<'i, 'a> {
    pub(super) controllers: &'i mut Controllers<'a>,
    pub(super) metrics: &'i mut Metrics,
    pub(super) now: Instant,
}

impl Handler for Informers<'_, '_> {
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change) {
        for controller in self.controllers.all_mut() {
            controller.changed(cache, kind, change, self.now);
        }
    }

    fn refused(&mut self, cache: &mut Cache<'_>, kind: Kind, _: &Meta, refusal: &Refusal) {
        self.metrics.refused = self.metrics.refused.wrapping_add(1);
        self.healed(cache, kind, refusal.owner);
    }

    fn faulty(&mut self, _: &ObjectFault<'_>) {
        self.metrics.faulty = self.metrics.faulty.wrapping_add(1);
    }

    /// The owner is looked at: to tell that it is blind, or to go on now that it sees.
    fn healed(&mut self, _: &mut Cache<'_>, _: Kind, owner: Owner) {
        for controller in self.controllers.all_mut() {
            controller.keys_mut().add_owner(owner);
        }
    }
}

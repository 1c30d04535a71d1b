//! What controllers with the driver that is shipped are to the rest of the simulation.

use std::collections::BTreeMap;

use picokube_core::manager::Manager;

use super::clock::Moment;
use super::device::{KINDS, Start};
use super::fault::Fault;
use super::memory::Memory;
use super::world::World;

/// Controllers, each on a board of its own, the network, and the server's end of it.
pub(super) trait Boards {
    /// When something happens there.
    fn next_at(&self) -> Option<Moment>;

    /// Lets everything happen there that can: how often somebody has gone on.
    fn go_on(&mut self, world: &mut World<'_>) -> usize;

    /// Whether this board runs.
    fn runs(&self, device: usize) -> bool;

    /// Starts a board.
    fn boot(&mut self, start: Start, memory: Memory);

    /// A board goes: whether it was there.
    fn stop(&mut self, device: usize) -> bool;

    /// A fault has come.
    fn strike(&mut self, world: &mut World<'_>, fault: Fault);

    /// All trouble is over.
    fn heal(&mut self, world: &mut World<'_>);

    /// Whether all controllers have all of their watches.
    fn are_connected(&self) -> bool;

    /// What is open although nobody reads it.
    fn left_open(&self) -> Option<String>;

    /// What they know.
    fn look_inside(&mut self, now: Moment) -> Vec<Seen>;

    /// A line about all that the network has carried.
    fn carried(&self) -> String;
}

/// What a controller knows, as far as it is compared with what there is.
pub(super) struct Seen {
    /// The versions of all objects, by resource.
    pub(super) versions: BTreeMap<&'static str, Vec<u64>>,
    /// Whether it has no room for something.
    pub(super) is_blind: bool,
}

impl Seen {
    pub(super) fn of(manager: &Manager<'_>) -> Self {
        let cache = manager.cache();
        let mut versions = BTreeMap::new();
        let mut add = |plural, found: &mut dyn Iterator<Item = u64>| {
            let mut found: Vec<u64> = found.collect();
            found.sort_unstable();
            versions.insert(plural, found);
        };
        add("deployments", &mut cache.deployments.iter().map(|(_, it)| it.version().number()));
        add("replicasets", &mut cache.replica_sets.iter().map(|(_, it)| it.version().number()));
        add("pods", &mut cache.pods.iter().map(|(_, it)| it.version().number()));
        let controllers = &cache.replication_controllers;
        add("replicationcontrollers", &mut controllers.iter().map(|(_, it)| it.version().number()));
        add("statefulsets", &mut cache.stateful_sets.iter().map(|(_, it)| it.version().number()));
        let revisions = &cache.controller_revisions;
        add("controllerrevisions", &mut revisions.iter().map(|(_, it)| it.version().number()));
        let claims = &cache.persistent_volume_claims;
        add("persistentvolumeclaims", &mut claims.iter().map(|(_, it)| it.version().number()));
        let is_blind = KINDS
            .into_iter()
            .filter(|kind| manager.watches(*kind))
            .any(|kind| cache.refused(kind) > 0 || cache.is_everyone_blind(kind));
        Self { versions, is_blind }
    }
}

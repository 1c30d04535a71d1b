//! What must hold in the end: everything becomes as desired, and then nothing is written.

use super::checks::{Model, Verdict};
use super::clock::Moment;
use super::device::KINDS;
use super::memory::Room;
use super::trace::Actor;
use super::world::{Happening, World};

const CONVERGENCE: &str = "everything becomes as desired";
const SILENCE: &str = "a steady cluster is silent";
const CACHE: &str = "the cache becomes what the server has";

/// Nothing may take longer than expectations that are never met.
const LONGEST_SECS: u64 = 300;
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
        let patience = healed_at.plus_secs(LONGEST_SECS);
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

    fn look_at_silence(&mut self, converged_at: Moment) {
        if self.gropes() {
            self.ending.over = true;
            return;
        }
        let healed_at = self.ending.healed_at.unwrap_or_default();
        if self.ending.last_write > converged_at {
            // There was more to do, such as events that wait for better times.
            if self.ending.last_write < healed_at.plus_secs(LONGEST_SECS) {
                self.ending.converged_at = None;
                return self.agenda.plan(self.now, Happening::Look);
            }
            let late = self.ending.last_write.micros_since(converged_at) / 1_000_000;
            return self.violate(SILENCE, format!("a write {late} s after the last one needed"));
        }
        let verdict = self.as_desired().and_then(|()| self.cache_is_right());
        if let Err((property, detail)) = verdict {
            return self.violate(property, detail);
        }
        self.ending.over = true;
    }

    fn as_desired(&self) -> Verdict {
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
    fn gropes(&self) -> bool {
        self.plan.shape.room == Room::Tight && self.is_blind()
    }

    fn is_blind(&self) -> bool {
        self.devices.iter().flatten().any(|device| {
            let cache = device.manager.cache();
            KINDS
                .into_iter()
                .filter(|kind| device.manager.watches(*kind))
                .any(|kind| cache.refused(kind) > 0 || cache.is_everyone_blind(kind))
        })
    }

    /// What the controller knows is what there is.
    pub(super) fn cache_is_right(&self) -> Verdict {
        if self.plan.shape.room == Room::Tight {
            return Ok(());
        }
        for device in self.devices.iter().flatten() {
            let cache = device.manager.cache();
            let version = |versions: &mut dyn Iterator<Item = u64>| {
                let mut versions: Vec<u64> = versions.collect();
                versions.sort_unstable();
                versions
            };
            for (plural, cached) in [
                (
                    "deployments",
                    version(&mut cache.deployments.iter().map(|(_, d)| d.version().number())),
                ),
                (
                    "replicasets",
                    version(&mut cache.replica_sets.iter().map(|(_, d)| d.version().number())),
                ),
                ("pods", version(&mut cache.pods.iter().map(|(_, d)| d.version().number()))),
                (
                    "statefulsets",
                    version(&mut cache.stateful_sets.iter().map(|(_, d)| d.version().number())),
                ),
                (
                    "controllerrevisions",
                    version(
                        &mut cache.controller_revisions.iter().map(|(_, d)| d.version().number()),
                    ),
                ),
                (
                    "persistentvolumeclaims",
                    version(
                        &mut cache
                            .persistent_volume_claims
                            .iter()
                            .map(|(_, d)| d.version().number()),
                    ),
                ),
            ] {
                if !self.checks.looks_at(plural) {
                    continue;
                }
                let resource = self.checks.resource(&self.server, plural);
                let stored = version(&mut resource.range("", None).map(|entry| entry.revision));
                if cached != stored {
                    return Err((CACHE, format!("{plural}: {cached:?} cached, {stored:?} stored")));
                }
            }
        }
        Ok(())
    }
}

impl Model {
    fn deployments_are_complete(&self) -> Verdict {
        for d in self.all("deployments").filter(|d| !d.deleting) {
            let wanted = d.spec("replicas");
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            let generation = d.object["metadata"]["generation"].as_i64();
            let observed = d.object["status"]["observedGeneration"].as_i64();
            let right = counts.iter().all(|count| d.status(count) == wanted);
            let settled = d.status("unavailableReplicas") == 0 && generation == observed;
            if !right || !settled {
                let (spec, status) = (&d.object["spec"], &d.object["status"]);
                return wrong(format!("{}: is {status}, should be {spec}", d.key));
            }
            let sets = self.controlled_by(&d.uid).filter(|set| !set.deleting);
            let sizes: i64 = sets.map(|set| set.spec("replicas")).sum();
            if sizes != wanted {
                return wrong(format!("{}: {wanted} wanted, its sets want {sizes}", d.key));
            }
            let old = self.controlled_by(&d.uid).filter(|set| !set.deleting).count();
            let limit = d.object["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(u64::MAX);
            if old.saturating_sub(1) as u64 > limit {
                return wrong(format!("{}: {old} sets, {limit} old ones allowed", d.key));
            }
        }
        Ok(())
    }

    fn replica_sets_have_their_pods(&self) -> Verdict {
        for set in self.all("replicasets").filter(|set| !set.deleting) {
            let pods = || self.controlled_by(&set.uid).filter(|pod| pod.is_active());
            let (there, ready) = (pods().count() as i64, pods().filter(|p| p.is_ready()).count());
            let wanted = set.spec("replicas");
            // Nobody puts right the image of one that has lost its Deployment.
            let is_forlorn = set.controller.is_none() && !set.runs();
            if there != wanted || (ready as i64 != wanted && !is_forlorn) {
                let detail = format!("{}: {wanted} wanted, {there} there, {ready} ready", set.key);
                return wrong(detail);
            }
            let generation = set.object["metadata"]["generation"].as_i64();
            if generation != set.object["status"]["observedGeneration"].as_i64() {
                return wrong(format!("{}: generation {generation:?} is not observed", set.key));
            }
            let told = ["replicas", "readyReplicas", "availableReplicas"].map(|f| set.status(f));
            if told != [wanted, ready as i64, ready as i64] {
                return wrong(format!("{}: {wanted} there, told {told:?}", set.key));
            }
        }
        Ok(())
    }

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

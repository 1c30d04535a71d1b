//! What a StatefulSet's worker does next.

use crate::control::{ClaimRule, Claiming, Purpose, SlowStart, Write, next_availability};
use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::request::ContentType;
use crate::store::{Cache, Head, Record};
use crate::text::Name;
use crate::time::Duration;

use super::claims::SetClaims;
use super::controller::{INFO, Sync};
use super::decide::decide;
use super::facts::{facts, fill_pods, is_member, revisions};
use super::identity::Parts;
use super::plan::{End, Phase, Step};
use super::revisions::{UpdateRevision, current_revision, next_surplus, update_revision};
use super::view::{PodManagementPolicy, View};
use super::worker::{HeldRevision, Outcome, Stage, StepPart, Worker};

/// How long to wait for the watch after a write of which nobody knows whether it succeeded.
const AMBIGUOUS: Duration = Duration::from_secs(1);

/// Orphaned revisions are adopted; those of its own that it does not select any more stay.
const REVISIONS: ClaimRule = ClaimRule {
    only_active: false,
    releases: false,
    ..ClaimRule::new(Kind::ControllerRevision, Kind::StatefulSet)
};

/// Also of pods that have come to their end: they are replaced by name.
const PODS: ClaimRule =
    ClaimRule { only_active: false, is_member, ..ClaimRule::new(Kind::Pod, Kind::StatefulSet) };

impl Worker {
    /// The next request of this sync; `None` while it waits for an answer or when it has ended.
    pub(super) fn next(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let key = self.key?;
        if self.open {
            return None;
        }
        loop {
            let found = sync.world.cache.stateful_sets.get(key);
            if found.is_none_or(|set| set.uid() != self.uid) {
                self.stage = Stage::Ending;
            }
            let write = match self.stage {
                Stage::Idle => return None,
                Stage::AdoptRevisions => self.next_adoption(sync, key),
                Stage::ClaimPods => self.next_claim(sync, key, &PODS, Stage::Revisions),
                Stage::Revisions => self.next_revision(sync, key),
                Stage::Steps => self.next_step(sync, key),
                Stage::Status if self.plan.status.is_needed() => {
                    let head = sync.world.cache.head(Kind::StatefulSet, key)?;
                    Some(Write::status(Purpose::Status, Kind::StatefulSet, key, head))
                }
                Stage::Status => {
                    self.stage = Stage::History;
                    None
                }
                Stage::History => self.next_surplus(sync, key),
                Stage::Ending => {
                    self.end(sync, key);
                    return None;
                }
            };
            if write.is_some() {
                return write;
            }
        }
    }

    fn next_adoption(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) -> Option<Write> {
        let set = sync.world.cache.stateful_sets.get(key)?;
        // Kubernetes looks no further either.
        if set.record.selector.validate().is_err() || sync.world.is_blind(&INFO, key) {
            self.stage = Stage::Ending;
            return None;
        }
        self.next_claim(sync, key, &REVISIONS, Stage::ClaimPods)
    }

    /// The next request for claiming. Without one, goes on if all could be claimed.
    fn next_claim(
        &mut self,
        sync: &Sync<'_, '_, '_>,
        key: Slot,
        rule: &ClaimRule,
        then: Stage,
    ) -> Option<Write> {
        let write = self.claiming.next(sync.world.cache, rule, key);
        if write.is_none() {
            self.claiming = Claiming::START;
            self.stage = if self.outcome == Outcome::Good { then } else { Stage::Ending };
        }
        write
    }

    /// Sees to the revision of the template; once it is there, decides what to do.
    fn next_revision(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) -> Option<Write> {
        // One that was created and could not be kept would be created again and again.
        if sync.world.is_blind(&INFO, key) {
            self.stage = Stage::Ending;
            return None;
        }
        let cache = &*sync.world.cache;
        if let Some(name) = self.taken {
            let head = cache.head(Kind::StatefulSet, key)?;
            return Some(Write { name, ..Write::get(Kind::ControllerRevision, key, head) });
        }
        let all = revisions(cache, key, None, None);
        match update_revision(all.clone()) {
            UpdateRevision::Use(update) => {
                let current = current_revision(all).unwrap_or(update);
                self.current = HeldRevision::of(cache, current);
                self.update = HeldRevision::of(cache, update);
                self.decide(sync, key, current, update);
                None
            }
            UpdateRevision::Bump { slot, revision } => {
                self.revision = revision;
                let (kind, patch) = (Kind::ControllerRevision, ContentType::MergePatch);
                Some(Write::patch(Purpose::Step, patch, kind, slot, cache.head(kind, slot)?))
            }
            UpdateRevision::Create { revision } => {
                self.revision = revision;
                let head = cache.head(Kind::StatefulSet, key)?;
                Some(Write::create(Purpose::Create, Kind::ControllerRevision, key, head))
            }
        }
    }

    fn decide(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot, current: Slot, update: Slot) {
        let ordinals = core::mem::take(&mut sync.world.ordinals);
        let cache = &*sync.world.cache;
        let (set, claims) = (cache.stateful_sets.get(key), SetClaims::of(cache, key));
        self.stage = Stage::Ending;
        if let (Some(set), Some(claims)) = (set, &claims) {
            let len = fill_pods(cache, key, (current, update), sync.world.wall, ordinals);
            let pods = ordinals.get(..len).unwrap_or_default();
            let set = facts(cache, set, current, update, sync.world.max_unavailable_stateful_set);
            self.generation = set.generation;
            self.is_parallel = set.policy == PodManagementPolicy::Parallel;
            match decide(&View { set, pods, claims }, &mut self.plan) {
                Ok(()) => self.stage = Stage::Steps,
                Err(_) => self.fail(Outcome::Retry),
            }
        }
        sync.world.ordinals = ordinals;
    }

    /// The request of the step at hand, if it has one and still is wanted.
    fn next_step(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) -> Option<Write> {
        let Some(step) = self.step() else {
            self.stage = Stage::Status;
            return None;
        };
        let set = sync.world.cache.stateful_sets.get(key)?;
        if set.record.generation() != self.generation {
            // Something else is wanted by now: what has not begun is decided anew.
            self.begin(key, self.uid, self.collisions);
            return None;
        }
        if !self.begin_step(&step) {
            self.stage = Stage::Status;
            return None;
        }
        match self.part {
            StepPart::Claims(from) => self.next_missing_claim(sync, key, &step, from),
            StepPart::Pod => self.next_of_pod(sync, key, &step),
            StepPart::References(from) => self.next_reference(sync, key, &step, from),
        }
    }

    /// Whether a step may begin, or has begun. Nothing of a phase begins when one before it has failed;
    /// within a phase, a set whose pods come in parallel goes on until a batch with a failure is over.
    fn begin_step(&mut self, step: &Step) -> bool {
        let phase = step.phase();
        if self.phase != Some(phase) {
            if self.outcome != Outcome::Good {
                return false;
            }
            self.phase = Some(phase);
            let mut ordinal = None;
            let steps = self.plan.steps.iter().filter(|step| step.phase() == phase);
            let pods = steps.filter(|step| ordinal.replace(step.ordinal()) != Some(step.ordinal()));
            self.batch = SlowStart::new(pods.count() as u16);
        }
        if self.has_begun {
            return true;
        }
        let is_batch = self.is_parallel && !matches!(phase, Phase::Heal | Phase::Update);
        self.part = StepPart::first(step);
        self.claims_failed = false;
        self.has_begun = if is_batch { self.batch.begin() } else { self.outcome == Outcome::Good };
        self.has_begun
    }

    /// The creation of the next claim that is not there.
    fn next_missing_claim(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        step: &Step,
        from: u8,
    ) -> Option<Write> {
        let cache = &*sync.world.cache;
        let claims = SetClaims::of(cache, key)?;
        let ordinal = step.ordinal();
        for (at, template) in claims.templates().enumerate().skip(usize::from(from)) {
            match claims.find(template, ordinal) {
                Some((_, claim)) if claim.record.is_deleting() => {
                    let name = claims.claim_name(template, ordinal);
                    self.claim_failed(format_args!("pvc {name} is being deleted"));
                }
                Some(_) => {}
                None => {
                    self.part = StepPart::Claims(at as u8);
                    let head = cache.head(Kind::StatefulSet, key)?;
                    return Some(Write::create(
                        Purpose::Create,
                        Kind::PersistentVolumeClaim,
                        key,
                        head,
                    ));
                }
            }
        }
        if self.claims_failed {
            self.pod_failed(sync, key, step);
            return None;
        }
        self.next_part(step);
        None
    }

    fn next_of_pod(&mut self, sync: &Sync<'_, '_, '_>, key: Slot, step: &Step) -> Option<Write> {
        let cache = &*sync.world.cache;
        let write = match *step {
            Step::Create { ordinal, .. } => match SetClaims::of(cache, key)?.pod(ordinal) {
                None => {
                    let head = cache.head(Kind::StatefulSet, key)?;
                    Some(Write::create(Purpose::Create, Kind::Pod, key, head))
                }
                Some(pod) if is_ours(cache, key, pod) => None,
                // The name is taken. As in Kubernetes, nobody is told, and it is tried again and again.
                Some(_) => {
                    self.fail(Outcome::Retry);
                    self.end_step(false);
                    return None;
                }
            },
            Step::Update { ordinal, pod } => {
                let patch = ContentType::StrategicMergePatch;
                let head = still_member(cache, key, pod, ordinal);
                head.map(|head| Write::patch(Purpose::Step, patch, Kind::Pod, pod, head))
            }
            Step::Delete { ordinal, pod, .. } => {
                let head = still_member(cache, key, pod, ordinal);
                head.map(|head| Write::delete(Purpose::Delete, Kind::Pod, pod, head))
            }
            Step::FixClaims { .. } => None,
        };
        if write.is_none() {
            self.next_part(step);
        }
        write
    }

    /// The change of the next claim that belongs to somebody else than it should.
    fn next_reference(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        step: &Step,
        from: u8,
    ) -> Option<Write> {
        let (ordinal, is_condemned) = (step.ordinal(), step.is_about_condemned());
        let mut at = usize::from(from);
        loop {
            let cache = &*sync.world.cache;
            let claims = SetClaims::of(cache, key)?;
            let Some(template) = claims.templates().nth(at) else { break };
            let claim = claims.find(template, ordinal);
            let verdict = claim.map(|claim| claims.verdict(&claim, ordinal, is_condemned));
            let conflicts = verdict.is_some_and(|verdict| verdict.conflicts());
            self.part = StepPart::References(at as u8);
            if let (Some((slot, claim)), Some(verdict)) = (claim, verdict)
                && !verdict.is_right()
            {
                let (kind, patch) = (Kind::PersistentVolumeClaim, ContentType::StrategicMergePatch);
                let write = Write::patch(Purpose::Step, patch, kind, slot, &claim);
                self.verdict = Some(verdict);
                return Some(write);
            }
            if let Some((slot, _)) = claim.filter(|_| conflicts) {
                sync.record_conflict(key, slot);
            }
            at += 1;
        }
        self.next_part(step);
        None
    }

    /// The part of the step at hand is over.
    pub(super) fn next_part(&mut self, step: &Step) {
        match self.part.after(step) {
            Some(part) => self.part = part,
            None => self.end_step(true),
        }
    }

    fn next_surplus(&mut self, sync: &Sync<'_, '_, '_>, key: Slot) -> Option<Write> {
        let cache = &*sync.world.cache;
        let limit = cache.stateful_sets.get(key)?.record.revision_history_limit();
        let [current, update] =
            [self.current, self.update].map(|held| held.and_then(|held| held.slot(cache)));
        // What has been deleted is in the cache until the watch tells.
        let deleted = self.deleted;
        let all = revisions(cache, key, current, update).filter(|it| Some(it.age()) > deleted);
        let surplus = next_surplus(all, limit.unwrap_or(DEFAULT_HISTORY));
        let Some(slot) = surplus.filter(|_| update.is_some()) else {
            self.stage = Stage::Ending;
            return None;
        };
        let kind = Kind::ControllerRevision;
        Some(Write::delete(Purpose::Step, kind, slot, cache.head(kind, slot)?))
    }

    fn end(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) {
        let now = sync.world.now;
        self.key = None;
        self.stage = Stage::Idle;
        if let Some(name) = self.taken.take() {
            name.release(sync.world.cache.texts);
        }
        let cache = &*sync.world.cache;
        let seconds = cache.stateful_sets.get(key).map(|set| set.record.min_ready_seconds);
        let queue = &mut *sync.keys.queue;
        match (seconds, self.outcome) {
            (None, _) => {}
            (Some(_), Outcome::Retry) => queue.add_rate_limited(key, now),
            (Some(_), Outcome::RetryLater) => queue.add_after(key, AMBIGUOUS, now),
            (Some(seconds), Outcome::Good) => {
                queue.forget(key);
                if self.plan.end == End::Again {
                    queue.add(key);
                }
                let counts = self.plan.status.counts;
                let is_forgotten = planted(Bug::SetAvailabilityForgotten);
                if seconds > 0 && counts.ready != counts.available && !is_forgotten {
                    let pods = cache.pods_of(Kind::StatefulSet, key).map(|(_, pod)| pod.record);
                    let fallback = Duration::from_secs(u64::from(seconds.unsigned_abs()));
                    let wait = next_availability(pods, seconds, sync.world.wall);
                    // It is longer only by a wrong clock, which may be put right any moment.
                    queue.add_after(key, wait.unwrap_or(fallback).min(fallback), now);
                }
            }
        }
        sync.keys.end(sync.world.cache, key);
    }
}

/// `spec.revisionHistoryLimit`, where a server sets none.
const DEFAULT_HISTORY: i32 = 10;

/// Whether a pod belongs to a StatefulSet.
fn is_ours(cache: &Cache<'_>, key: Slot, pod: Slot) -> bool {
    cache.owner_of(Kind::Pod, pod).of(Kind::StatefulSet) == Some(key)
}

/// The pod of a step, if it still is there, and that of this ordinal.
fn still_member<'c>(cache: &'c Cache<'_>, key: Slot, pod: Slot, ordinal: i32) -> Option<&'c Head> {
    let head = cache.head(Kind::Pod, pod).filter(|_| is_ours(cache, key, pod))?;
    let name = head.name().to_object_name(cache.texts);
    let parts = Parts::of(&name)?;
    (parts.ordinal() == Some(ordinal)).then_some(head)
}

impl Step {
    /// Whether it is about a pod that is on its way out.
    const fn is_about_condemned(&self) -> bool {
        matches!(self, Self::FixClaims { is_condemned: true, .. })
    }
}

impl StepPart {
    /// What a step begins with.
    pub(super) const fn first(step: &Step) -> Self {
        match step {
            Step::Create { .. } | Step::FixClaims { is_condemned: false, .. } => Self::Claims(0),
            Step::FixClaims { .. } | Step::Update { .. } => Self::References(0),
            Step::Delete { .. } => Self::Pod,
        }
    }

    /// What follows a part of a step: claims are there before their pod, and belong to it after it is.
    const fn after(self, step: &Step) -> Option<Self> {
        match (step, self) {
            (Step::Create { .. }, Self::Claims(_)) | (Step::Update { .. }, Self::References(_)) => {
                Some(Self::Pod)
            }
            (Step::Create { .. }, Self::Pod)
            | (Step::FixClaims { is_condemned: false, .. }, Self::Claims(_)) => {
                Some(Self::References(0))
            }
            _ => None,
        }
    }
}

impl Sync<'_, '_, '_> {
    /// Tells that a claim belongs to somebody else.
    pub(super) fn record_conflict(&mut self, key: Slot, claim: Slot) {
        let head = self.world.cache.head(Kind::PersistentVolumeClaim, claim);
        if let Some(name) = head.map(|head| head.name()) {
            self.record(key, Message::ConflictingController(name));
        }
    }

    /// The pod of an ordinal, by name; to be released.
    pub(super) fn intern_pod(&mut self, key: Slot, ordinal: i32) -> Option<Name> {
        let cache = &mut *self.world.cache;
        let name = SetClaims::of(cache, key)?.pod_name(ordinal);
        Name::split(cache.texts, &name).ok()
    }
}

//! What a StatefulSet's worker does next.

use crate::control::{ClaimRule, NextClaim, Outcome, Purpose, SlowStart, Write};
use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::request::ContentType;
use crate::store::{Cache, Entry, Head, Pod, Record};
use crate::text::{Fingerprint, Name};

use super::claims::SetClaims;
use super::controller::Sync;
use super::decide::decide;
use super::facts::{REVISION_LABEL, facts, fill_pods, is_member, revisions};
use super::identity::Parts;
use super::plan::{DeleteReason, End, Phase, Step};
use super::retention::Verdict;
use super::revisions::{UpdateRevision, current_revision, next_surplus, update_revision};
use super::view::{PodManagementPolicy, View};
use super::worker::{HeldRevision, Stage, StepPart, Worker};

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
    pub(super) fn next_request(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        if sync.run.open > 0 {
            return None;
        }
        loop {
            if sync.run.is_void(sync.world.cache, Kind::StatefulSet) {
                self.stage = Stage::Ending;
            }
            let write = match self.stage {
                Stage::AdoptRevisions => self.next_adoption(sync),
                Stage::ClaimPods => self.next_claim(sync, &PODS, Stage::Revisions),
                Stage::Revisions => self.next_revision(sync),
                Stage::Steps => self.next_step(sync),
                Stage::Status if self.plan.status.is_needed() => {
                    let head = sync.world.cache.head(Kind::StatefulSet, sync.key)?;
                    Some(Write::status(Purpose::Status, Kind::StatefulSet, sync.key, head))
                }
                Stage::Status => {
                    self.stage = Stage::History;
                    None
                }
                Stage::History => self.next_surplus(sync),
                Stage::Ending => {
                    self.end(sync);
                    return None;
                }
            };
            if write.is_some() {
                return write;
            }
        }
    }

    fn next_adoption(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let set = sync.world.cache.stateful_sets.get(sync.key)?;
        // A pod that has gone by a request of the set's own is not there any more, and not on its way out:
        // the watch is about to say so, and then the set looks again.
        let is_behind = sync.world.cache.expects_deletions(Kind::StatefulSet, sync.key);
        // Kubernetes looks no further either.
        if is_behind || set.record.selector.validate().is_err() || sync.is_blind() {
            self.stage = Stage::Ending;
            return None;
        }
        self.next_claim(sync, &REVISIONS, Stage::ClaimPods)
    }

    /// The next request for claiming. Without one, goes on if all could be claimed.
    fn next_claim(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        rule: &ClaimRule,
        then: Stage,
    ) -> Option<Write> {
        self.stage = match sync.run.next_claim(sync.world.cache, rule) {
            NextClaim::Send(write) => return Some(write),
            NextClaim::Failed => Stage::Ending,
            NextClaim::Done => then,
        };
        None
    }

    /// Sees to the revision of the template; once it is there, decides what to do.
    fn next_revision(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        // One that was created and could not be kept would be created again and again.
        if sync.is_blind() {
            self.stage = Stage::Ending;
            return None;
        }
        let (cache, key) = (&*sync.world.cache, sync.key);
        if let Some(name) = self.taken {
            let head = cache.head(Kind::StatefulSet, key)?;
            let get = Write::get(Kind::ControllerRevision, key, head);
            return Some(Write { name, purpose: Purpose::Step, ..get });
        }
        let all = revisions(cache, key, None, None);
        match update_revision(all) {
            UpdateRevision::Use(update) => {
                self.work_with(sync, update);
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

    /// The revision of the template is there: decides what to do.
    pub(super) fn work_with(&mut self, sync: &mut Sync<'_, '_, '_>, update: Slot) {
        let cache = &*sync.world.cache;
        let current = current_revision(revisions(cache, sync.key, None, None)).unwrap_or(update);
        self.current = HeldRevision::of(cache, current);
        self.update = HeldRevision::of(cache, update);
        self.decide(sync, current, update);
    }

    #[inline(never)]
    fn decide(&mut self, sync: &mut Sync<'_, '_, '_>, current: Slot, update: Slot) {
        let places = core::mem::take(&mut sync.world.pods);
        let (cache, key) = (&*sync.world.cache, sync.key);
        let (set, claims) = (cache.stateful_sets.get(key), SetClaims::of(cache, key));
        self.stage = Stage::Ending;
        if let (Some(set), Some(claims)) = (set, &claims) {
            let len = fill_pods(cache, key, (current, update), sync.world.wall, places);
            let pods = places.get(..len).unwrap_or_default();
            let set = facts(cache, set, current, update, sync.world.max_unavailable_stateful_set);
            self.generation = set.generation;
            self.is_parallel = set.policy == PodManagementPolicy::Parallel;
            match decide(&View { set, pods, claims }, &mut self.plan) {
                Ok(()) => self.stage = Stage::Steps,
                Err(_) => sync.run.fail(Outcome::Retry, ""),
            }
        }
        sync.world.pods = places;
    }

    /// The request of the step at hand, if it has one and still is wanted.
    fn next_step(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let Some(step) = self.step() else {
            self.stage = Stage::Status;
            return None;
        };
        let set = sync.world.cache.stateful_sets.get(sync.key)?;
        if set.record.generation() != self.generation {
            // Something else is wanted by now: what has not begun is decided anew.
            self.decide_anew(sync);
            return None;
        }
        if !self.begin_step(sync.run.outcome, &step) {
            self.stage = Stage::Status;
            return None;
        }
        match self.part {
            StepPart::Claims(from) => self.next_missing_claim(sync, &step, from),
            StepPart::Pod => self.next_of_pod(sync, &step),
            StepPart::References(from) => self.next_reference(sync, &step, from),
        }
    }

    /// Whether a step may begin, or has begun. Nothing of a phase begins when one before it has failed;
    /// within a phase, a set whose pods come in parallel goes on until a batch with a failure is over.
    fn begin_step(&mut self, outcome: Outcome, step: &Step) -> bool {
        let phase = step.phase();
        if self.phase != Some(phase) {
            if outcome != Outcome::Good {
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
        self.has_begun = if is_batch { self.batch.begin() } else { outcome == Outcome::Good };
        self.has_begun
    }

    /// The creation of the next claim that is not there.
    #[inline(never)]
    fn next_missing_claim(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        step: &Step,
        from: u8,
    ) -> Option<Write> {
        let (cache, key) = (&*sync.world.cache, sync.key);
        let claims = SetClaims::of(cache, key)?;
        let ordinal = step.ordinal();
        for (at, template) in claims.templates().enumerate().skip(usize::from(from)) {
            match claims.find(template, ordinal) {
                Some((_, claim)) if claim.record.is_deleting() => {
                    let name = claims.claim_name(template, ordinal);
                    self.claim_failed(sync.run, format_args!("pvc {name} is being deleted"));
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
            self.pod_failed(sync, step);
            return None;
        }
        self.next_part(step);
        None
    }

    #[inline(never)]
    fn next_of_pod(&mut self, sync: &mut Sync<'_, '_, '_>, step: &Step) -> Option<Write> {
        let (cache, key) = (&*sync.world.cache, sync.key);
        let write = match *step {
            Step::Create { ordinal, .. } => match SetClaims::of(cache, key)?.pod(ordinal) {
                None => {
                    let head = cache.head(Kind::StatefulSet, key)?;
                    Some(Write::create(Purpose::Create, Kind::Pod, key, head))
                }
                Some(pod) if is_ours(cache, key, pod) => None,
                // The name is taken. As in Kubernetes, nobody is told, and it is tried again and again.
                Some(_) => {
                    sync.run.fail(Outcome::Retry, "");
                    self.end_step(false);
                    return None;
                }
            },
            Step::Update { ordinal, pod } => {
                let patch = ContentType::StrategicMergePatch;
                let head = still_member(cache, key, pod, ordinal);
                head.map(|head| Write::patch(Purpose::Step, patch, Kind::Pod, pod, head))
            }
            Step::Delete { ordinal, pod, reason, .. } => {
                let head = still_member(cache, key, pod, ordinal);
                let head = head.filter(|_| self.still_holds(cache, pod, reason));
                head.map(|head| Write::delete(Purpose::Delete, Kind::Pod, pod, head))
            }
            Step::FixClaims { .. } => None,
        };
        if write.is_none() {
            self.next_part(step);
        }
        write
    }

    /// Whether a pod is to be deleted for what it is now: another one may have taken its name and its place.
    fn still_holds(&self, cache: &Cache<'_>, pod: Slot, reason: DeleteReason) -> bool {
        let Some(pod) = cache.pods.get(pod) else { return false };
        match reason {
            DeleteReason::Condemned => true,
            DeleteReason::Ended => pod.record.phase().is_terminal(),
            DeleteReason::Broken | DeleteReason::Outdated => {
                let update = self.update.and_then(|held| held.slot(cache));
                update.is_some_and(|update| !is_of_revision(cache, pod, update))
            }
        }
    }

    /// The change of the next claim that belongs to somebody else than it should.
    #[inline(never)]
    fn next_reference(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        step: &Step,
        from: u8,
    ) -> Option<Write> {
        let (ordinal, is_condemned) = (step.ordinal(), step.is_about_condemned());
        let mut at = usize::from(from);
        loop {
            let claims = SetClaims::of(sync.world.cache, sync.key)?;
            let Some(template) = claims.templates().nth(at) else { break };
            let claim = claims.find(template, ordinal);
            let verdict = claim.map(|claim| claims.verdict(&claim, ordinal, is_condemned));
            let conflicts = verdict.is_some_and(|verdict| verdict.conflicts());
            self.part = StepPart::References(at as u8);
            // A pod that has gone meanwhile can own nothing.
            let is_void = matches!(verdict, Some(Verdict::Write { pod: true, .. }))
                && claims.pod(ordinal).is_none();
            if let (Some((slot, claim)), Some(verdict)) = (claim, verdict)
                && !verdict.is_right()
                && !is_void
            {
                // What is given away may be lost, and cannot be made again: unlike in Kubernetes, only what
                // is so now, and not what was once, is reason enough.
                if verdict.gives_away() && !self.has_looked {
                    let head = sync.world.cache.head(Kind::StatefulSet, sync.key)?;
                    let look = Write::get(Kind::StatefulSet, sync.key, head);
                    return Some(Write { purpose: Purpose::Step, ..look });
                }
                let (kind, patch) = (Kind::PersistentVolumeClaim, ContentType::StrategicMergePatch);
                let write = Write::patch(Purpose::Step, patch, kind, slot, &claim);
                self.verdict = Some(verdict);
                return Some(write);
            }
            if let Some((slot, _)) = claim.filter(|_| conflicts) {
                sync.record_conflict(slot);
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

    fn next_surplus(&mut self, sync: &Sync<'_, '_, '_>) -> Option<Write> {
        let (cache, key) = (&*sync.world.cache, sync.key);
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

    fn end(&mut self, sync: &mut Sync<'_, '_, '_>) {
        if let Some(name) = self.taken.take() {
            name.release(sync.world.cache.texts);
        }
        let set = sync.world.cache.stateful_sets.get(sync.key);
        let counts = self.plan.status.counts;
        let is_coming = counts.ready != counts.available && !planted(Bug::SetAvailabilityForgotten);
        let seconds = set.filter(|_| is_coming).map(|set| set.record.min_ready_seconds);
        if set.is_some() && sync.run.outcome == Outcome::Good && self.plan.end == End::Again {
            sync.keys.queue.add(sync.key);
        }
        sync.end(seconds);
    }
}

/// `spec.revisionHistoryLimit`, where a server sets none.
const DEFAULT_HISTORY: i32 = 10;

/// Whether a pod has been made from a revision.
fn is_of_revision(cache: &Cache<'_>, pod: Entry<'_, Pod>, revision: Slot) -> bool {
    let value = pod.record.labels.value(cache.texts, Fingerprint::of(REVISION_LABEL));
    let revision = cache.controller_revisions.get(revision);
    let name = revision.map(|it| Fingerprint::of(&it.name().to_object_name(cache.texts)));
    value.is_some() && value == name
}

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
    pub(super) fn record_conflict(&mut self, claim: Slot) {
        let head = self.world.cache.head(Kind::PersistentVolumeClaim, claim);
        if let Some(name) = head.map(|head| head.name()) {
            self.record(Message::ConflictingController(name));
        }
    }

    /// The pod of an ordinal, by name; to be released.
    pub(super) fn intern_pod(&mut self, ordinal: i32) -> Option<Name> {
        let cache = &mut *self.world.cache;
        let name = SetClaims::of(cache, self.key)?.pod_name(ordinal);
        Name::split(cache.texts, &name).ok()
    }
}

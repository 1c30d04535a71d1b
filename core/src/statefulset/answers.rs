//! What the answers to a StatefulSet's requests mean.

use core::fmt::{self, Write as _};

use crate::control::{Purpose, Reply, Verdict, Write};
use crate::event::{Message, PodVerb};
use crate::kind::Kind;
use crate::link::Slot;
use crate::request::Failure;
use crate::store::{Owner, Record};
use crate::text::{Name, push_cut};

use super::claims::SetClaims;
use super::controller::Sync;
use super::facts::new_revision_name;
use super::plan::Step;
use super::worker::{Outcome, Stage, StepPart, Worker};

/// How often a status is written before the key is retried.
const STATUS_TRIES: u8 = 2;

impl Worker {
    /// A request was answered, or will not be.
    pub(super) fn answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        self.open = false;
        match self.stage {
            Stage::AdoptRevisions | Stage::ClaimPods => {
                if !self.claiming.answered(self.uid, write, reply) {
                    self.fail(Outcome::Retry);
                }
            }
            Stage::Revisions => self.revision_answered(sync, key, write, reply),
            Stage::Steps => self.step_answered(sync, key, write, reply),
            Stage::Status => self.status_answered(reply),
            Stage::History if reply.is_done() || reply.verdict == Verdict::NotFound => {
                let gone = sync.world.cache.controller_revisions.get(write.slot);
                if let Some(gone) = gone.filter(|gone| gone.uid() == write.uid) {
                    self.deleted = Some((gone.record.revision(), gone.record.created));
                }
            }
            Stage::History => self.give_up(reply),
            Stage::Idle | Stage::Ending => {}
        }
    }

    /// The sync ends here, and is done again.
    fn give_up(&mut self, reply: &Reply<'_>) {
        self.fail(outcome(reply.verdict));
        self.stage = Stage::Ending;
    }

    /// The revision that was created or renewed is looked for again, now that it is there.
    fn revision_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        let looked = self.taken.take();
        if let Some(name) = looked {
            name.release(sync.world.cache.texts);
        }
        match reply.verdict {
            Verdict::Done if looked.is_some() => self.revision_exists(sync, key, true),
            Verdict::Done => {}
            // The name is free again.
            Verdict::NotFound if looked.is_some() => {}
            Verdict::AlreadyExists if write.purpose == Purpose::Create => {
                self.revision_exists(sync, key, false);
            }
            _ => self.give_up(reply),
        }
    }

    /// The name of the new revision is taken: by itself, after an answer that got lost and before the
    /// watch has told, or by another one, whose name then is avoided. Which of them, the server tells.
    fn revision_exists(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot, has_looked: bool) {
        let cache = &mut *sync.world.cache;
        let Some(set) = cache.stateful_sets.get(key) else { return };
        let collisions = self.collisions.unwrap_or(0);
        let name = new_revision_name(cache, set, collisions);
        let kind = Kind::ControllerRevision;
        let found = Name::find_whole(cache.texts, &name)
            .and_then(|name| cache.find_name(kind, set.namespace(), name))
            .and_then(|slot| Some((slot, cache.controller_revisions.get(slot)?)));
        let is_ours =
            |(slot, _): &(Slot, _)| cache.owner_of(kind, *slot).of(Kind::StatefulSet) == Some(key);
        // What is known of somebody else's may be out of date: its owner may have left it behind.
        if !has_looked && !found.as_ref().is_some_and(is_ours) {
            match Name::whole(cache.texts, &name) {
                Ok(name) => self.taken = Some(name),
                Err(_) => {
                    self.fail(Outcome::Retry);
                    self.stage = Stage::Ending;
                }
            }
            return;
        }
        let Some((slot, revision)) = found else {
            // Whose it is, is none of our business.
            self.collisions = Some(collisions.saturating_add(1));
            return;
        };
        let is_equal = revision.record.data() == set.record.template();
        match cache.owner_of(kind, slot) {
            // The next look at the revisions finds it.
            owner if is_equal && owner.of(Kind::StatefulSet) == Some(key) => {}
            // It is to be adopted first.
            Owner::None
                if is_equal
                    && set.record.selector.matches(cache.texts, revision.record.labels()) =>
            {
                self.fail(Outcome::Retry);
                self.stage = Stage::Ending;
            }
            _ => self.collisions = Some(collisions.saturating_add(1)),
        }
    }

    fn status_answered(&mut self, reply: &Reply<'_>) {
        self.status_tries += 1;
        if reply.is_done() {
            self.stage = Stage::History;
        } else if self.status_tries >= STATUS_TRIES {
            self.fail(outcome(reply.verdict));
            self.stage = Stage::History;
        }
    }

    fn step_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        let Some(step) = self.step() else { return self.give_up(reply) };
        match self.part {
            StepPart::Claims(at) => {
                self.claim_created(sync, key, &step, at, reply);
                self.part = StepPart::Claims(at.saturating_add(1));
            }
            StepPart::Pod => self.pod_answered(sync, key, &step, reply),
            StepPart::References(at) => {
                if self.verdict.is_some_and(|verdict| verdict.conflicts()) {
                    sync.record_conflict(key, write.slot);
                }
                match reply.verdict {
                    Verdict::Done | Verdict::NotFound => {
                        self.part = StepPart::References(at.saturating_add(1));
                    }
                    verdict => {
                        self.fail(outcome(verdict));
                        self.end_step(false);
                    }
                }
            }
        }
    }

    fn claim_created(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        step: &Step,
        at: u8,
        reply: &Reply<'_>,
    ) {
        if !reply.is_done() {
            self.fail(outcome(reply.verdict));
            self.claim_failed(format_args!("{}", reply.message));
            // Where the source has changed, the watch tells; what is there already needs no words.
            if is_silent(reply.verdict) {
                return;
            }
        }
        let ordinal = step.ordinal();
        let Some(pod) = sync.intern_pod(key, ordinal) else { return };
        let cache = &mut *sync.world.cache;
        let name = SetClaims::of(cache, key).and_then(|claims| {
            Some(claims.claim_name(claims.templates().nth(usize::from(at))?, ordinal))
        });
        if let Some(Ok(claim)) = name.map(|name| Name::split(cache.texts, &name)) {
            let message = reply.message;
            let error = if reply.is_done() { None } else { Some(message) };
            sync.record_error(key, error, |error| Message::CreatedClaim { claim, pod, error });
            claim.release(sync.world.cache.texts);
        }
        pod.release(sync.world.cache.texts);
    }

    fn pod_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        step: &Step,
        reply: &Reply<'_>,
    ) {
        let is_deletion = matches!(step, Step::Delete { .. });
        if reply.is_done() || (is_deletion && reply.verdict == Verdict::NotFound) {
            sync.record_pod(key, step, None);
            if matches!(step, Step::Delete { lowers_current: true, .. }) {
                self.plan.status.lower_current();
            }
            return self.next_part(step);
        }
        self.fail(outcome(reply.verdict));
        if !is_silent(reply.verdict) {
            sync.record_pod(key, step, Some(reply.message));
        }
        self.end_step(false);
    }

    /// A claim could not be created, so that its pod is not.
    pub(super) fn claim_failed(&mut self, error: fmt::Arguments<'_>) {
        if !self.claims_failed {
            self.error.clear();
            let mut text = heapless::String::<{ crate::limits::MESSAGE }>::new();
            // What does not fit is cut.
            let _ = text.write_fmt(error);
            push_cut(&mut self.error, &text);
        }
        self.claims_failed = true;
    }

    /// The step at hand fails because of its claims.
    pub(super) fn pod_failed(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot, step: &Step) {
        self.fail(Outcome::Retry);
        if matches!(step, Step::Create { .. }) {
            sync.record_pod(key, step, Some(&self.error));
        }
        self.end_step(false);
    }
}

/// How a sync goes on after a refusal.
const fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Failed(Failure::Ambiguous) => Outcome::RetryLater,
        _ => Outcome::Retry,
    }
}

/// Whether nobody is told of a failure: as in Kubernetes where the name is taken; and where the source of a
/// body was not what it had been, or nothing has been sent, nothing has happened.
const fn is_silent(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::AlreadyExists | Verdict::Failed(_))
}

impl Sync<'_, '_, '_> {
    /// Tells what became of a step's pod.
    fn record_pod(&mut self, key: Slot, step: &Step, error: Option<&str>) {
        let verb = match step {
            Step::Create { .. } | Step::FixClaims { .. } => PodVerb::Create,
            Step::Update { .. } => PodVerb::Update,
            Step::Delete { .. } => PodVerb::Delete,
        };
        let Some(pod) = self.intern_pod(key, step.ordinal()) else { return };
        self.record_error(key, error, |error| Message::StatefulSetPod { verb, pod, error });
        pod.release(self.world.cache.texts);
    }

    /// Tells something that may have failed.
    fn record_error(
        &mut self,
        key: Slot,
        error: Option<&str>,
        message: impl FnOnce(Option<crate::text::Text>) -> Message,
    ) {
        let texts = &mut *self.world.cache.texts;
        let text = error.map(|error| texts.intern(error.as_bytes()).unwrap_or_default());
        self.record(key, message(text));
        if let Some(text) = text {
            self.world.cache.texts.release(text);
        }
    }
}

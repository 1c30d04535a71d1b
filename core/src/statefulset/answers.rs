//! What the answers to a StatefulSet's requests mean.

use core::fmt::{self, Write as _};

use crate::control::{Outcome, Purpose, Reply, Run, Verdict, Write};
use crate::event::{Message, PodVerb};
use crate::kind::Kind;
use crate::request::Failure;
use crate::store::{Owner, Record};
use crate::text::{Name, Text, push_cut};
use crate::wire::Meta;

use super::claims::SetClaims;
use super::controller::Sync;
use super::facts::new_revision_name;
use super::plan::Step;
use super::worker::{Stage, StepPart, Worker};

impl Worker {
    /// A request was answered, or will not be.
    pub(super) fn request_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        match self.stage {
            Stage::Revisions => self.revision_answered(sync, write, reply),
            Stage::Steps => self.step_answered(sync, write, reply),
            Stage::Status => self.status_answered(sync.run, reply),
            Stage::History if reply.is_done() || reply.verdict == Verdict::NotFound => {
                let gone = sync.world.cache.controller_revisions.get(write.slot);
                if let Some(gone) = gone.filter(|gone| gone.uid() == write.uid) {
                    self.deleted = Some((gone.record.revision(), gone.record.created));
                }
            }
            Stage::History => self.give_up(sync.run, reply),
            Stage::AdoptRevisions | Stage::ClaimPods | Stage::Ending => {}
        }
    }

    /// The sync ends here, and is done again.
    fn give_up(&mut self, run: &mut Run, reply: &Reply<'_>) {
        run.fail(outcome(reply.verdict), reply.message);
        self.stage = Stage::Ending;
    }

    /// The revision that was created or renewed is looked for again, now that it is there.
    fn revision_answered(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write, reply: &Reply<'_>) {
        let looked = self.taken.take();
        if let Some(name) = looked {
            name.release(sync.world.cache.texts);
        }
        match reply.verdict {
            Verdict::Done if looked.is_some() => self.revision_exists(sync, true),
            Verdict::Done => {}
            // The name is free again.
            Verdict::NotFound if looked.is_some() => {}
            Verdict::AlreadyExists if write.purpose == Purpose::Create => {
                self.revision_exists(sync, false);
            }
            _ => self.give_up(sync.run, reply),
        }
    }

    /// The name of the new revision is taken: by itself, after an answer that got lost and before the
    /// watch has told, or by another one, whose name then is avoided. Which of them, the server tells.
    fn revision_exists(&mut self, sync: &mut Sync<'_, '_, '_>, has_looked: bool) {
        let cache = &mut *sync.world.cache;
        let Some(set) = cache.stateful_sets.get(sync.key) else { return };
        let collisions = self.collisions.unwrap_or(0);
        let name = new_revision_name(cache, set, collisions);
        let kind = Kind::ControllerRevision;
        let found = Name::find_whole(cache.texts, &name)
            .and_then(|name| cache.find_name(kind, set.namespace(), name))
            .and_then(|slot| Some((slot, cache.controller_revisions.get(slot)?)));
        let owner = found.as_ref().map(|(slot, _)| cache.owner_of(kind, *slot));
        let is_ours = owner.is_some_and(|owner| owner.of(Kind::StatefulSet) == Some(sync.key));
        // What is known of somebody else's may be out of date: its owner may have left it behind.
        if !has_looked && !is_ours {
            match Name::whole(cache.texts, &name) {
                Ok(name) => self.taken = Some(name),
                Err(_) => {
                    sync.run.fail(Outcome::Retry, "");
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
            owner if is_equal && owner.of(Kind::StatefulSet) == Some(sync.key) => {}
            // It is to be adopted first.
            Owner::None
                if is_equal
                    && set.record.selector.matches(cache.texts, revision.record.labels()) =>
            {
                sync.run.fail(Outcome::Retry, "");
                self.stage = Stage::Ending;
            }
            // Whose it is, does not matter. It is asked for again in every sync, as in Kubernetes.
            _ if is_equal => self.work_with(sync, slot),
            _ => self.collisions = Some(collisions.saturating_add(1)),
        }
    }

    fn status_answered(&mut self, run: &mut Run, reply: &Reply<'_>) {
        if !reply.is_done() {
            run.status_failed(outcome(reply.verdict), reply);
        }
        if reply.is_done() || run.gives_up_status() {
            self.stage = Stage::History;
        }
    }

    fn step_answered(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write, reply: &Reply<'_>) {
        let Some(step) = self.step() else { return self.give_up(sync.run, reply) };
        match self.part {
            StepPart::Claims(at) => {
                self.claim_created(sync, &step, at, reply);
                self.part = StepPart::Claims(at.saturating_add(1));
            }
            StepPart::Pod => self.pod_answered(sync, &step, write, reply),
            StepPart::References(_) if write.kind == Kind::StatefulSet => {
                let is_as_known = |meta: &Meta| meta.generation == self.generation;
                self.has_looked =
                    reply.shows_alive(sync.run.uid) && reply.meta.is_some_and(is_as_known);
                if !self.has_looked {
                    sync.run.fail(Outcome::Retry, reply.message);
                    self.stage = Stage::Ending;
                }
            }
            StepPart::References(at) => {
                if self.verdict.is_some_and(|verdict| verdict.conflicts()) {
                    sync.record_conflict(write.slot);
                }
                match reply.verdict {
                    Verdict::Done | Verdict::NotFound => {
                        self.part = StepPart::References(at.saturating_add(1));
                    }
                    verdict => {
                        sync.run.fail(outcome(verdict), reply.message);
                        self.end_step(false);
                    }
                }
            }
        }
    }

    fn claim_created(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        step: &Step,
        at: u8,
        reply: &Reply<'_>,
    ) {
        if !reply.is_done() {
            sync.run.fail(outcome(reply.verdict), reply.message);
            self.claim_failed(sync.run, format_args!("{}", reply.message));
            // Where the source has changed, the watch tells; what is there already needs no words.
            if is_silent(reply.verdict) {
                return;
            }
        }
        let ordinal = step.ordinal();
        let Some(pod) = sync.intern_pod(ordinal) else { return };
        let cache = &mut *sync.world.cache;
        let name = SetClaims::of(cache, sync.key).and_then(|claims| {
            Some(claims.claim_name(claims.templates().nth(usize::from(at))?, ordinal))
        });
        if let Some(Ok(claim)) = name.map(|name| Name::split(cache.texts, &name)) {
            let error = if reply.is_done() { None } else { sync.intern_error(reply.message) };
            sync.record(Message::CreatedClaim { claim, pod, error });
            sync.release(error);
            claim.release(sync.world.cache.texts);
        }
        pod.release(sync.world.cache.texts);
    }

    fn pod_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        step: &Step,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        let is_deletion = matches!(step, Step::Delete { .. });
        if reply.is_done() || (is_deletion && reply.verdict == Verdict::NotFound) {
            sync.record_pod(step, None);
            if is_deletion && reply.meta.is_some_and(|meta| meta.goes_at_once) {
                sync.world.cache.expect_deletion(write.slot, write.uid);
            }
            if matches!(step, Step::Delete { lowers_current: true, .. }) {
                self.plan.status.lower_current();
            }
            return self.next_part(step);
        }
        sync.run.fail(outcome(reply.verdict), reply.message);
        if !is_silent(reply.verdict) {
            let error = sync.intern_error(reply.message);
            sync.record_pod(step, error);
        }
        self.end_step(false);
    }

    /// A claim could not be created, so that its pod is not.
    pub(super) fn claim_failed(&mut self, run: &mut Run, error: fmt::Arguments<'_>) {
        if !self.claims_failed {
            run.error.clear();
            let mut text = heapless::String::<{ crate::limits::MESSAGE }>::new();
            // What does not fit is cut.
            let _ = text.write_fmt(error);
            push_cut(&mut run.error, &text);
        }
        self.claims_failed = true;
    }

    /// The step at hand fails because of its claims.
    pub(super) fn pod_failed(&mut self, sync: &mut Sync<'_, '_, '_>, step: &Step) {
        sync.run.fail(Outcome::Retry, "");
        if matches!(step, Step::Create { .. }) {
            let error =
                sync.world.cache.texts.intern(sync.run.error.as_bytes()).unwrap_or_default();
            sync.record_pod(step, Some(error));
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
    fn record_pod(&mut self, step: &Step, error: Option<Text>) {
        let verb = match step {
            Step::Create { .. } | Step::FixClaims { .. } => PodVerb::Create,
            Step::Update { .. } => PodVerb::Update,
            Step::Delete { .. } => PodVerb::Delete,
        };
        if let Some(pod) = self.intern_pod(step.ordinal()) {
            self.record(Message::StatefulSetPod { verb, pod, error });
            pod.release(self.world.cache.texts);
        }
        self.release(error);
    }

    /// The text of an error, to be told and released.
    fn intern_error(&mut self, error: &str) -> Option<Text> {
        Some(self.world.cache.texts.intern(error.as_bytes()).unwrap_or_default())
    }

    fn release(&mut self, error: Option<Text>) {
        if let Some(text) = error {
            self.world.cache.texts.release(text);
        }
    }
}

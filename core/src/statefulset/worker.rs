//! One sync of a StatefulSet as a resumable machine: claim, revisions, step by step, status, history.

use core::fmt;

use crate::control::{self, Keys, Look, Reply, SlowStart, Write};
use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::Splice;
use crate::store::{Cache, Change, ChangeType, Owner, StatefulSet};
use crate::text::Name;
use crate::time::Instant;
use crate::wire::Uid;

use super::body::RequestBodies;
use super::controller::{Sync, add_all, add_user, pod_changed};
use super::plan::{Phase, Plan, Step};
use super::retention::Verdict;
use super::revisions::Age;

/// The state of one sync.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(super) stage: Stage,
    /// The revision that pods come from, once that is known.
    pub(super) current: Option<HeldRevision>,
    /// The revision that pods come to.
    pub(super) update: Option<HeldRevision>,
    /// The name of the new revision, while nobody knows by whom it is taken; interned.
    pub(super) taken: Option<Name>,
    /// `status.collisionCount`
    pub(super) collisions: Option<i32>,
    pub(super) plan: Plan,
    /// The generation that the plan was made for.
    pub(super) generation: i64,
    /// The step at hand.
    pub(super) at: usize,
    /// How far that is.
    pub(super) part: StepPart,
    /// The phase of the steps at hand, and how many of it are done.
    pub(super) phase: Option<Phase>,
    pub(super) batch: SlowStart,
    /// The step at hand has begun.
    pub(super) has_begun: bool,
    /// The pods come all at once.
    pub(super) is_parallel: bool,
    /// A claim of the step at hand could not be created; the sync's error is why.
    pub(super) claims_failed: bool,
    /// The set was seen to be as it is cached, before a claim was given away.
    pub(super) has_looked: bool,
    /// What is to become of the claim at hand.
    pub(super) verdict: Option<Verdict>,
    /// The number of the revision that is created or renewed.
    pub(super) revision: i64,
    /// Revisions of the history that are not younger have been deleted.
    pub(super) deleted: Option<Age>,
}

/// A revision that a sync works with. Its slot may become another object's meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRevision {
    slot: Slot,
    uid: Uid,
}

impl HeldRevision {
    pub(super) fn of(cache: &Cache<'_>, slot: Slot) -> Option<Self> {
        let uid = cache.head(Kind::ControllerRevision, slot)?.uid();
        Some(Self { slot, uid })
    }

    /// Where it is cached, if it still is there.
    pub(super) fn slot(self, cache: &Cache<'_>) -> Option<Slot> {
        let head = cache.head(Kind::ControllerRevision, self.slot)?;
        (head.uid() == self.uid).then_some(self.slot)
    }
}

/// Where a sync stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    AdoptRevisions,
    ClaimPods,
    /// Sees to the update revision.
    Revisions,
    Steps,
    Status,
    /// Deletes revisions of the history that are too many.
    History,
    Ending,
}

/// What is done of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepPart {
    /// Claims before this one have been created.
    Claims(u8),
    /// The pod is created, updated or deleted next.
    Pod,
    /// The owner references of claims before this one are in order.
    References(u8),
}

impl control::Worker for Worker {
    /// Nothing.
    type Shared<'a> = ();

    const IDLE: Self = Self {
        stage: Stage::AdoptRevisions,
        current: None,
        update: None,
        taken: None,
        collisions: None,
        plan: Plan::EMPTY,
        generation: 0,
        at: 0,
        part: StepPart::Claims(0),
        phase: None,
        batch: SlowStart::new(0),
        has_begun: false,
        is_parallel: false,
        claims_failed: false,
        has_looked: false,
        verdict: None,
        revision: 0,
        deleted: None,
    };

    /// In Kubernetes, claims and revisions are only looked at, whatever happens to them. Here, a claim may
    /// have been waited for or counted on, and a revision that is told of late is a set's too.
    fn changed(
        keys: &mut Keys<'_>,
        (): &mut (),
        cache: &mut Cache<'_>,
        kind: Kind,
        change: &Change,
        now: Instant,
    ) {
        match kind {
            Kind::Pod => pod_changed(keys, cache, change, now),
            Kind::StatefulSet => keys.changed(cache, change),
            Kind::ControllerRevision if change.event == ChangeType::Deleted => {}
            Kind::ControllerRevision if !change.same_version => match change.new_owner {
                Owner::None => keys.add_selecting(cache, kind, change.slot),
                owner => keys.add_owner(owner),
            },
            Kind::PersistentVolumeClaim if change.event == ChangeType::Deleted => {
                let has_claims = |set: &StatefulSet| !set.claim_templates.is_empty();
                add_all(keys, cache, change.gone_from, has_claims);
            }
            Kind::PersistentVolumeClaim if !change.same_version => {
                add_user(keys, cache, change.slot);
            }
            _ => {}
        }
    }

    fn begin(&mut self, sync: &mut Sync<'_, '_, '_>) {
        let set = sync.world.cache.stateful_sets.get(sync.key);
        self.collisions = set.and_then(|set| set.record.collision_count());
        self.clear();
    }

    fn next(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        self.next_request(sync)
    }

    fn answered(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write, reply: &Reply<'_>) {
        self.request_answered(sync, write, reply);
    }

    fn write_body(
        &self,
        look: &Look<'_, '_, ()>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        RequestBodies::of(look, self).write(write, out)
    }

    fn splice(&self, look: &Look<'_, '_, ()>, write: &Write) -> Option<Splice> {
        RequestBodies::of(look, self).splice(write)
    }
}

impl Worker {
    /// Nothing is left of what was decided.
    fn clear(&mut self) {
        self.stage = Stage::AdoptRevisions;
        self.current = None;
        self.update = None;
        self.plan.clear();
        self.at = 0;
        self.part = StepPart::Claims(0);
        self.phase = None;
        self.has_begun = false;
        self.claims_failed = false;
        self.has_looked = false;
        self.verdict = None;
        self.deleted = None;
    }

    /// Forgets what was decided and looks at everything again, but for collisions that were met.
    pub(super) fn decide_anew(&mut self, sync: &mut Sync<'_, '_, '_>) {
        sync.run.restart();
        self.clear();
    }

    /// The step at hand.
    pub(super) fn step(&self) -> Option<Step> {
        self.plan.steps.get(self.at).copied().filter(|_| self.stage == Stage::Steps)
    }

    /// The step at hand has ended.
    pub(super) fn end_step(&mut self, is_good: bool) {
        let ordinal = self.step().map(|step| step.ordinal());
        self.at += 1;
        // What is left of the same pod builds on it.
        while !is_good && self.step().is_some_and(|step| Some(step.ordinal()) == ordinal) {
            self.at += 1;
        }
        let is_same_phase = self.step().is_some_and(|step| Some(step.phase()) == self.phase);
        let is_same_pod = self.step().is_some_and(|step| Some(step.ordinal()) == ordinal);
        // All steps of a pod in one phase count as one.
        self.has_begun = is_good && is_same_phase && is_same_pod;
        if self.has_begun {
            self.part = self.step().map_or(self.part, |step| StepPart::first(&step));
        } else {
            self.batch.end(is_good);
        }
    }
}

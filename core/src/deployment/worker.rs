//! One sync of a Deployment as a resumable machine: claim, decide, then step by step.

use core::fmt;

use crate::control::{self, Activity, Keys, Look, Outcome, Reply, Run, Write};
use crate::kind::Kind;
use crate::splice::Splice;
use crate::store::{Cache, Change};
use crate::time::Instant;

use super::body::RequestBodies;
use super::controller::{Sync, pod_changed, replica_set_changed};
use super::plan::{Plan, Step};
use super::view::View;

/// The state of one sync.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    pub(crate) plan: Plan,
    /// The step at hand.
    pub(crate) at: usize,
    /// `desired-replicas` and `max-replicas` of ReplicaSets that are scaled.
    pub(crate) sizes: (i32, i32),
    pub(crate) has_deadline: bool,
}

/// Where a sync stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Claim,
    Steps,
    Ending,
    /// Over, and to be done again once the ReplicaSets have got on.
    Waiting,
}

impl control::Worker for Worker {
    /// What the sync that decides looks at.
    type Shared<'a> = &'a mut View;

    const IDLE: Self =
        Self { phase: Phase::Claim, plan: Plan::EMPTY, at: 0, sizes: (0, 0), has_deadline: false };

    fn changed(
        keys: &mut Keys<'_>,
        _: &mut &mut View,
        cache: &mut Cache<'_>,
        kind: Kind,
        change: &Change,
        _: Instant,
    ) {
        match kind {
            Kind::Pod => pod_changed(keys, cache, change),
            Kind::ReplicaSet => replica_set_changed(keys, cache, change),
            Kind::Deployment => keys.changed(cache, change),
            #[allow(unreachable_patterns, reason = "kinds may be left out of a build")]
            _ => {}
        }
    }

    fn begin(&mut self, _: &mut Sync<'_, '_, '_>) {
        self.phase = Phase::Claim;
        self.plan.clear();
        self.at = 0;
    }

    fn next(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        self.next_request(sync)
    }

    fn answered(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write, reply: &Reply<'_>) {
        self.step_answered(sync, write, reply);
    }

    fn write_body(
        &self,
        look: &Look<'_, '_, &mut View>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        RequestBodies::of(look, self).write(write, out)
    }

    fn splice(&self, look: &Look<'_, '_, &mut View>, write: &Write) -> Option<Splice> {
        RequestBodies::of(look, self).splice(write)
    }

    fn activity(&self, _: &Run) -> Activity {
        if self.phase == Phase::Waiting { Activity::Idle } else { Activity::Begun }
    }
}

impl Worker {
    /// The step at hand.
    pub(crate) fn step(&self) -> Option<&Step> {
        self.plan.steps.get(self.at).filter(|_| self.phase == Phase::Steps)
    }

    /// Forgets what was decided and looks at everything again.
    // Once, however many places it is called from.
    #[inline(never)]
    pub(crate) fn decide_anew(&mut self, sync: &mut Sync<'_, '_, '_>) {
        sync.run.restart();
        control::Worker::begin(self, sync);
    }

    /// The sync ends here.
    pub(crate) fn stop(&mut self, run: &mut Run, outcome: Outcome) {
        run.outcome = outcome;
        self.phase = Phase::Ending;
    }
}

//! One sync of a ReplicaSet as a resumable machine: claim, manage, status.

use core::fmt;

use crate::control::{self, Activity, Keys, Look, Outcome, Purpose, Reply, Run, SlowStart, Write};
use crate::kind::Kind;
use crate::splice::Splice;
use crate::store::{Cache, Change, ConditionReason};
use crate::time::Instant;

use super::body::{pod_of, write_status};
use super::controller::{Shared, Sync};
use super::status::{Counts, FailureWrite};

/// The state of one sync.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    pub(crate) creations: SlowStart,
    /// How many pods there are to be when all have been created or deleted.
    pub(crate) goal: usize,
    /// When that was decided.
    pub(crate) decided: Instant,
    pub(crate) count: Counts,
    pub(crate) failure: FailureWrite,
    /// Why `ReplicaFailure` holds after this sync.
    pub(crate) failed: Option<ConditionReason>,
}

/// Where a sync stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Claim,
    Create,
    Delete,
    Status,
    Ending,
}

impl control::Worker for Worker {
    type Shared<'a> = Shared<'a>;

    const IDLE: Self = Self {
        phase: Phase::Claim,
        creations: SlowStart::new(0),
        goal: 0,
        decided: Instant::ZERO,
        count: Counts {
            observed_generation: 0,
            replicas: 0,
            fully_labeled: 0,
            ready: 0,
            available: 0,
            terminating: None,
        },
        failure: FailureWrite::Keep,
        failed: None,
    };

    fn changed(
        keys: &mut Keys<'_>,
        shared: &mut Shared<'_>,
        cache: &mut Cache<'_>,
        kind: Kind,
        change: &Change,
        now: Instant,
    ) {
        if kind == Kind::Pod {
            shared.pod_changed(keys, cache, change, now);
        } else if kind == keys.kind() {
            shared.key_changed(change);
            keys.changed(cache, change);
        }
    }

    fn begin(&mut self, _: &mut Sync<'_, '_, '_>) {
        self.phase = Phase::Claim;
        self.creations = SlowStart::new(0);
        self.failure = FailureWrite::Keep;
        self.failed = None;
    }

    fn next(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        self.next_request(sync)
    }

    fn answered(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write, reply: &Reply<'_>) {
        match write.purpose {
            Purpose::Create => self.pod_created(sync, reply),
            Purpose::Delete => self.pod_deleted(sync, write, reply),
            _ if reply.is_done() => {
                sync.keys.status_told(sync.key);
                self.phase = Phase::Ending;
            }
            _ => sync.run.status_failed(Outcome::Retry, reply),
        }
    }

    fn write_body(
        &self,
        look: &Look<'_, '_, Shared<'_>>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let rs = (look.shared.like.table)(look.cache).get(look.key);
        match write.purpose {
            Purpose::Status => write_status(self, &look.run.error, rs, write, out),
            _ => Err(fmt::Error),
        }
    }

    fn splice(&self, look: &Look<'_, '_, Shared<'_>>, _: &Write) -> Option<Splice> {
        let rs = (look.shared.like.table)(look.cache).get(look.key)?;
        pod_of(look.cache, look.kind, rs, self.creations.to_come())
    }

    fn abandoned(shared: &mut Shared<'_>) {
        shared.expectations.forget_all();
    }

    /// A sync has got on when pods have begun to come, or all that are too many have been sent
    /// away. If a creation has failed, the end of the sync tells.
    fn activity(&self, run: &Run) -> Activity {
        match self.phase {
            Phase::Create if self.creations.goes_well() => Activity::GotOn,
            Phase::Status if run.outcome == Outcome::Good => Activity::AtStatus,
            Phase::Ending if run.outcome == Outcome::Good => Activity::GotOn,
            _ => Activity::Begun,
        }
    }
}

//! Whole syncs of Deployments once more, in plain words: every step, every field of the status, and when to
//! look again.

use picokube_core::control::NewCondition;
use picokube_core::deployment::{
    ConditionWrite, Counts, End, Impossible, NewSet, Set, StatusWrite, Step, View, Warning,
};
use picokube_core::store::{Condition, ConditionReason as Reason, Seconds};
use picokube_core::time::{Duration, Timestamp};
use picokube_core::wire::{ConditionStatus as Status, IntAnnotation, IntOrPercent, Strategy};

use crate::model::{Model, proportional};

/// What a sync comes to.
#[derive(Debug, PartialEq)]
pub(crate) struct Whole {
    pub(crate) steps: Vec<Step>,
    pub(crate) status: Option<StatusWrite>,
    pub(crate) end: End,
}

/// A sync that goes on, and what it has come to so far. `Stop` ends it.
struct Sync {
    view: View,
    now: Timestamp,
    whole: Whole,
}

struct Stop;
type Goes = Result<(), Stop>;

pub(crate) fn whole(view: &View, now: Timestamp) -> Result<Whole, Impossible> {
    let whole = Whole { steps: Vec::new(), status: None, end: End::Done };
    let mut sync = Sync { view: view.clone(), now, whole };
    if view.overflowed {
        return Err(Impossible::TooManyReplicaSets);
    }
    match sync.run() {
        Some(impossible) => Err(impossible),
        None => Ok(sync.whole),
    }
}

/// Surge and unavailable pods, of a Deployment that rolls.
fn fenceposts(view: &View) -> (i64, i64) {
    let d = &view.deployment;
    let share = |share: Option<IntOrPercent>, up: bool| match share {
        None => 0,
        Some(IntOrPercent::Int(number)) => i64::from(number),
        Some(IntOrPercent::Percent(percent)) => {
            let exact = f64::from(percent) * f64::from(d.replicas) / 100.0;
            (if up { exact.ceil() } else { exact.floor() }) as i64
        }
    };
    match (share(d.max_surge, true), share(d.max_unavailable, false)) {
        _ if d.strategy != Strategy::RollingUpdate => (0, 0),
        (0, 0) => (0, 1),
        both => both,
    }
}

impl Sync {
    fn run(&mut self) -> Option<Impossible> {
        let strategy = self.view.deployment.strategy;
        let ended = self.before_rollout();
        if ended.is_err() {
            return None;
        }
        let _ = match strategy {
            Strategy::RollingUpdate => self.roll(),
            Strategy::Recreate => self.recreate(),
            Strategy::Other => return Some(Impossible::UnexpectedStrategy),
        };
        None
    }

    fn before_rollout(&mut self) -> Goes {
        if self.view.deployment.deleting {
            self.status_only();
            return Err(Stop);
        }
        self.tell_pause();
        if self.view.deployment.paused {
            self.refresh()?;
            self.scale();
            if self.view.deployment.rollback_to.value().is_none() {
                self.cleanup();
            }
            self.status_only();
            return Err(Stop);
        }
        if let Some(revision) = self.view.deployment.rollback_to.value() {
            self.roll_back(revision)?;
            return Err(Stop);
        }
        let before = self.whole.steps.len();
        let goes = self.refresh();
        if self.whole.steps[before..].iter().any(|step| matches!(step, Step::Update { .. })) {
            self.whole.end = End::Again;
            return Err(Stop);
        }
        goes?;
        let wanted = self.view.deployment.replicas;
        let is_resized = self.view.sets.iter().any(|set| {
            set.replicas > 0 && set.desired.is_some_and(|desired| desired >= 0 && desired != wanted)
        });
        let before = self.whole.steps.len();
        if is_resized {
            self.scale();
        }
        if self.whole.steps.len() > before {
            self.status_only();
            return Err(Stop);
        }
        Ok(())
    }

    fn set_condition(&self, old: &Condition, status: Status, reason: Reason) -> ConditionWrite {
        if old.status() == Some(status) && old.reason == Some(reason) {
            return ConditionWrite::Keep;
        }
        ConditionWrite::Set(self.replaced(old, status, reason))
    }

    fn replaced(&self, old: &Condition, status: Status, reason: Reason) -> NewCondition {
        let is_kept = old.status() == Some(status);
        let last_transition = match old.last_transition.get() {
            Some(since) if is_kept => since,
            _ => self.now,
        };
        NewCondition { status, reason, last_update: self.now, last_transition }
    }

    /// A second status in one sync is not written: it is done over.
    fn write(&mut self, status: StatusWrite) -> Goes {
        let nothing = StatusWrite { failing: None, new_set: NewSet::None, ..status };
        if nothing == StatusWrite::EMPTY {
            return Ok(());
        }
        if self.whole.status.is_some() {
            self.whole.end = End::Again;
            return Err(Stop);
        }
        self.whole.steps.push(Step::Status);
        self.whole.status = Some(status);
        Ok(())
    }

    fn new_set(&self) -> NewSet {
        match self.view.new.map(|new| self.view.sets[new].slot) {
            None => NewSet::None,
            Some(Some(slot)) => NewSet::Cached(slot),
            Some(None) => NewSet::Unborn,
        }
    }

    fn remember(&mut self, write: ConditionWrite) {
        if let ConditionWrite::Set(set) = write {
            self.view.deployment.progressing = Condition::of(
                set.status,
                Some(set.reason),
                Seconds::new(Some(set.last_update)),
                Seconds::new(Some(set.last_transition)),
            );
        }
    }

    fn tell_pause(&mut self) {
        let d = &self.view.deployment;
        let is = |reason| d.progressing.status().is_some() && d.progressing.reason == Some(reason);
        if d.progress_deadline_seconds.is_none() || is(Reason::ProgressDeadlineExceeded) {
            return;
        }
        let reason = match (d.paused, is(Reason::DeploymentPaused)) {
            (true, false) => Reason::DeploymentPaused,
            (false, true) => Reason::DeploymentResumed,
            _ => return,
        };
        let progressing = self.set_condition(&d.progressing, Status::Unknown, reason);
        self.remember(progressing);
        let new_set = self.new_set();
        let _ = self.write(StatusWrite { progressing, new_set, ..StatusWrite::EMPTY });
    }

    /// Revision, annotations and `minReadySeconds` of the new ReplicaSet; or what its Deployment shows of it.
    fn refresh(&mut self) -> Goes {
        let Some(at) = self.view.new else { return Ok(()) };
        let new = self.view.sets[at];
        let next = self.view.max_old_revision + 1;
        let revision = match new.revision {
            IntAnnotation::Absent => Some(next).filter(|next| *next > 0),
            IntAnnotation::Value(current) => Some(next).filter(|next| *next > current),
            IntAnnotation::Invalid => None,
        };
        let differs = new.min_ready_seconds != self.view.deployment.min_ready_seconds;
        if revision.is_some() || differs || !new.has_annotations {
            let (set, annotations) = (new.slot.expect("it is there"), !new.has_annotations);
            self.whole.steps.push(Step::Update { set, revision, annotations });
            if let Some(revision) = revision {
                self.view.sets[at].revision = IntAnnotation::Value(revision);
                self.view.second_revision = self.view.max_old_revision;
            }
            return Ok(());
        }
        let new_set = self.new_set();
        self.show(new.revision.value(), Reason::FoundNewReplicaSet, new_set)
    }

    /// The Deployment shows a revision, and that it has a new ReplicaSet.
    fn show(&mut self, revision: Option<i64>, reason: Reason, new_set: NewSet) -> Goes {
        let d = &self.view.deployment;
        let is_new = reason == Reason::NewReplicaSetCreated;
        let tells =
            d.progress_deadline_seconds.is_some() && (is_new || d.progressing.status().is_none());
        let progressing = match tells {
            true => self.set_condition(&d.progressing, Status::True, reason),
            false => ConditionWrite::Keep,
        };
        let revision = revision.filter(|it| d.revision != IntAnnotation::Value(*it));
        self.remember(progressing);
        if let Some(revision) = revision {
            self.view.deployment.revision = IntAnnotation::Value(revision);
        }
        self.write(StatusWrite { revision, progressing, new_set, ..StatusWrite::EMPTY })
    }

    fn create(&mut self) -> Goes {
        let d = &self.view.deployment;
        let (replicas, ready) = (i64::from(d.replicas), d.min_ready_seconds);
        let total: i64 = self.view.sets.iter().map(|set| i64::from(set.replicas)).sum();
        let room = replicas + fenceposts(&self.view).0 - total;
        let is_rolling = d.strategy == Strategy::RollingUpdate;
        let size = if is_rolling { room.clamp(0, replicas) } else { replicas } as i32;
        let revision = self.view.max_old_revision + 1;
        self.whole.steps.push(Step::Create { replicas: size, revision });
        let mut unborn = Set::unborn(size, ready);
        unborn.revision = IntAnnotation::Value(revision);
        self.view.sets.push(unborn).expect("there is room");
        self.view.new = Some(self.view.sets.len() - 1);
        self.view.second_revision = self.view.max_old_revision;
        self.show(Some(revision), Reason::NewReplicaSetCreated, NewSet::Unborn)
    }

    fn roll_back(&mut self, revision: i64) -> Goes {
        if self.view.new.is_some() {
            self.refresh()?;
        } else {
            self.create()?;
        }
        if self.whole.status.is_some() {
            self.whole.end = End::Again;
            return Err(Stop);
        }
        let wanted = if revision == 0 { self.view.second_revision } else { revision };
        let mut sets = self.view.sets.iter();
        let found = sets.find(|set| set.revision == IntAnnotation::Value(wanted));
        let warning = match found {
            _ if wanted == 0 => Warning::NoLastRevision,
            None => Warning::NoSuchRevision,
            Some(set) if set.same_template => Warning::TemplateUnchanged,
            Some(set) => {
                let set = set.slot.expect("it is there");
                self.whole.steps.push(Step::Rollback { set, revision: wanted });
                return Ok(());
            }
        };
        self.whole.steps.extend([Step::Warn(warning), Step::ClearRollback]);
        Ok(())
    }

    fn old(&self) -> Vec<usize> {
        (0..self.view.sets.len()).filter(|at| Some(*at) != self.view.new).collect()
    }

    fn resize(&mut self, at: usize, to: i32, available: Option<i32>) {
        let set = self.view.sets[at];
        let slot = set.slot.expect("it is there");
        self.whole.steps.push(Step::Scale { set: slot, from: set.replicas, to, available });
    }

    fn scale(&mut self) {
        let wanted = self.view.deployment.replicas;
        let all = 0..self.view.sets.len();
        let active: Vec<usize> = all.filter(|at| self.view.sets[*at].replicas > 0).collect();
        let only = match active[..] {
            [] => self.view.new.or(self.old().last().copied()),
            [only] => Some(only),
            _ => None,
        };
        if let Some(only) = only {
            if self.view.sets[only].replicas != wanted {
                self.resize(only, wanted, None);
            }
            return;
        }
        let new = self.view.new.map(|new| self.view.sets[new]);
        let is_saturated = new.is_some_and(|new| {
            new.replicas == wanted && new.desired == Some(wanted) && new.available == wanted
        });
        if is_saturated {
            for at in self.old().into_iter().filter(|at| active.contains(at)) {
                self.resize(at, 0, None);
            }
        } else if self.view.deployment.strategy == Strategy::RollingUpdate {
            self.scale_in_proportion();
        }
    }

    fn scale_in_proportion(&mut self) {
        let d = &self.view.deployment;
        let (wanted, surge) = (d.replicas, fenceposts(&self.view).0);
        let max = wanted + surge as i32;
        let model = |set: &Set| Model {
            size: i64::from(set.replicas),
            available: i64::from(set.available),
            max: i64::from(set.max.unwrap_or(0)),
        };
        let models: Vec<Model> = self.view.sets.iter().map(model).collect();
        let status = i64::from(d.status.replicas);
        let sizes = proportional(i64::from(wanted), surge, status, &models);
        let total: i64 = models.iter().map(|set| set.size).sum();
        let grows = if wanted > 0 { i64::from(max) > total } else { false };
        let mut order: Vec<usize> = (0..models.len()).filter(|at| models[*at].size > 0).collect();
        if grows {
            order.reverse();
        }
        order.sort_by_key(|at| -models[*at].size);
        for at in order {
            let set = self.view.sets[at];
            let is_told = set.desired == Some(wanted) && set.max == Some(max);
            if !is_told || sizes[at] != models[at].size {
                self.resize(at, sizes[at] as i32, None);
            }
        }
    }

    fn roll(&mut self) -> Goes {
        let d = self.view.deployment;
        if self.view.new.is_none() {
            self.create()?;
        }
        let available: i64 = self.view.sets.iter().map(|it| i64::from(it.available)).sum();
        let (surge, unavailable) = fenceposts(&self.view);
        let total: i64 = self.view.sets.iter().map(|it| i64::from(it.replicas)).sum();
        let wanted = i64::from(d.replicas);
        let at = self.view.new.expect("it has been created");
        let new = self.view.sets[at];
        let size = i64::from(new.replicas);
        if new.slot.is_some() {
            let room = wanted + surge - total;
            let grown = if room > 0 { size + room.min(wanted - size) } else { size };
            let to = if size > wanted { wanted } else { grown };
            if to != size {
                self.resize(at, to as i32, None);
                self.rollout_status();
                return Err(Stop);
            }
        }
        let needed = wanted - if wanted == 0 { 0 } else { unavailable.min(wanted) };
        if self.shrink(total - needed - (size - i64::from(new.available)), available - needed) {
            self.rollout_status();
            return Err(Stop);
        }
        self.finish()
    }

    /// Takes at most so many pods from old ReplicaSets that are not available, then as many as can be spared.
    fn shrink(&mut self, mut may_go: i64, mut spare: i64) -> bool {
        let old = self.old();
        if may_go <= 0 || old.iter().all(|at| self.view.sets[*at].replicas == 0) {
            return false;
        }
        let before = self.whole.steps.len();
        let mut sizes: Vec<i32> = self.view.sets.iter().map(|set| set.replicas).collect();
        let mut take = |sync: &mut Self, at: usize, count: i64| {
            let Set { slot, available, .. } = sync.view.sets[at];
            let (set, from) = (slot.expect("it is there"), sizes[at]);
            sizes[at] -= count as i32;
            let to = sizes[at];
            sync.whole.steps.push(Step::Scale { set, from, to, available: Some(available) });
            i64::from(to)
        };
        let mut left = vec![0; self.view.sets.len()];
        for &at in &old {
            let set = self.view.sets[at];
            left[at] = i64::from(set.replicas);
            let unhealthy = left[at] - i64::from(set.available);
            if set.replicas > 0 && unhealthy < 0 && may_go > 0 {
                return false;
            }
            let count = unhealthy.min(may_go);
            if set.replicas > 0 && count > 0 {
                left[at] = take(self, at, count);
                may_go -= count;
            }
        }
        for &at in &old {
            let count = left[at].min(spare);
            if count > 0 {
                take(self, at, count);
                spare -= count;
            }
        }
        self.whole.steps.len() > before
    }

    fn recreate(&mut self) -> Goes {
        let wanted = self.view.deployment.replicas;
        let old = self.old();
        for &at in old.iter().filter(|at| self.view.sets[**at].replicas > 0).collect::<Vec<_>>() {
            self.resize(at, 0, None);
        }
        let has_shrunk = old.iter().any(|at| self.view.sets[*at].replicas > 0);
        let remain = old.iter().any(|at| self.view.sets[*at].status_replicas > 0);
        if has_shrunk || remain || self.view.old_pods_running {
            self.rollout_status();
            return Err(Stop);
        }
        match self.view.new {
            None => self.create()?,
            Some(new) if self.view.sets[new].replicas != wanted => self.resize(new, wanted, None),
            Some(_) => {}
        }
        self.finish()
    }

    fn finish(&mut self) -> Goes {
        if self.is_complete(&self.view.deployment.status) {
            self.cleanup();
        }
        self.rollout_status();
        Ok(())
    }

    fn cleanup(&mut self) {
        let Some(limit) = self.view.deployment.revision_history_limit else { return };
        let excess = self.view.old_count.saturating_sub(limit.max(0) as usize);
        let mut old: Vec<usize> = self.old();
        old.retain(|at| !self.view.sets[*at].deleting);
        old.sort_by_key(|at| self.view.sets[*at].revision.value().unwrap_or(0));
        for at in old.into_iter().take(excess) {
            let set = self.view.sets[at];
            if set.replicas == 0 && set.status_replicas == 0 && set.up_to_date {
                self.whole.steps.push(Step::Delete { set: set.slot.expect("it is there") });
            }
        }
    }

    fn is_complete(&self, counts: &Counts) -> bool {
        let d = &self.view.deployment;
        [counts.updated, counts.replicas, counts.available].iter().all(|it| *it == d.replicas)
            && counts.observed_generation >= d.generation
    }

    fn counts(&self) -> Counts {
        let sum = |of: &dyn Fn(&Set) -> i32| self.view.sets.iter().map(of).sum::<i32>();
        let available = sum(&|set| set.available);
        let is_silent = |set: &Set| set.observed && set.terminating.is_none();
        let tells = self.view.keep_terminating && !self.view.sets.iter().any(is_silent);
        Counts {
            observed_generation: self.view.deployment.generation,
            replicas: sum(&|set| set.status_replicas),
            updated: self.view.new.map_or(0, |new| self.view.sets[new].status_replicas),
            ready: sum(&|set| set.ready),
            available,
            unavailable: (sum(&|set| set.replicas) - available).max(0),
            terminating: tells.then(|| sum(&|set| set.terminating.unwrap_or(0))),
        }
    }

    fn status(&self) -> StatusWrite {
        let (d, counts) = (&self.view.deployment, self.counts());
        let unavailable = fenceposts(&self.view).1.min(i64::from(d.replicas));
        let (status, reason) =
            match i64::from(counts.available) >= i64::from(d.replicas) - unavailable {
                true => (Status::True, Reason::MinimumReplicasAvailable),
                false => (Status::False, Reason::MinimumReplicasUnavailable),
            };
        let available = self.set_condition(&d.available, status, reason);
        let counts = Some(counts).filter(|counts| *counts != d.status).into();
        StatusWrite { counts, available, new_set: self.new_set(), ..StatusWrite::EMPTY }
    }

    fn status_only(&mut self) {
        let status = self.status();
        let _ = self.write(status);
    }

    fn rollout_status(&mut self) {
        let mut status = self.status();
        status.progressing = self.progress();
        (status.replica_failure, status.failing) = self.failure();
        let nothing = StatusWrite { failing: None, new_set: NewSet::None, ..status };
        if nothing != StatusWrite::EMPTY {
            let _ = self.write(status);
        } else if self.whole.end == End::Done {
            self.whole.end = self.looks_again();
        }
    }

    fn progress(&self) -> ConditionWrite {
        let (d, counts) = (&self.view.deployment, self.counts());
        let current = &d.progressing;
        let is = |reason| current.status().is_some() && current.reason == Some(reason);
        let Some(_) = d.progress_deadline_seconds else {
            let is_there = current.status().is_some();
            return if is_there { ConditionWrite::Remove } else { ConditionWrite::Keep };
        };
        let is_done = is(Reason::NewReplicaSetAvailable);
        if counts.replicas == counts.updated && is_done {
            return ConditionWrite::Keep;
        }
        if self.is_complete(&counts) {
            return self.set_condition(current, Status::True, Reason::NewReplicaSetAvailable);
        }
        let then = &d.status;
        if counts.updated > then.updated
            || counts.replicas - counts.updated < then.replicas - then.updated
            || counts.ready > then.ready
            || counts.available > then.available
        {
            let reason = Reason::ReplicaSetUpdated;
            return ConditionWrite::Set(self.replaced(current, Status::True, reason));
        }
        let is_late = self.deadline().is_some_and(|deadline| deadline < self.now);
        if !is_done && (is(Reason::ProgressDeadlineExceeded) || is_late) {
            let reason = Reason::ProgressDeadlineExceeded;
            return self.set_condition(current, Status::False, reason);
        }
        ConditionWrite::Keep
    }

    fn deadline(&self) -> Option<Timestamp> {
        let d = &self.view.deployment;
        let seconds = d.progress_deadline_seconds?;
        d.progressing.status()?;
        let since = d.progressing.last_update.get().map_or(0, Timestamp::as_secs);
        Some(Timestamp::from_secs(since + i64::from(seconds)))
    }

    fn looks_again(&self) -> End {
        let current = &self.view.deployment.progressing;
        let Some(deadline) = self.deadline() else { return End::Done };
        let is_over = current.reason == Some(Reason::ProgressDeadlineExceeded);
        if is_over || self.is_complete(&self.counts()) {
            return End::Done;
        }
        match deadline.as_secs() - self.now.as_secs() {
            ..1 => End::RateLimited,
            after => End::After(Duration::from_secs(after as u64 + 1)),
        }
    }

    fn failure(&self) -> (ConditionWrite, Option<picokube_core::link::Slot>) {
        let current = &self.view.deployment.replica_failure;
        let fails = |at: &usize| self.view.sets[*at].failure.status().is_some();
        let failing = self.view.new.filter(fails).or((0..self.view.sets.len()).find(fails));
        let Some(set) = failing.map(|at| self.view.sets[at]) else {
            let is_there = current.status().is_some();
            return (if is_there { ConditionWrite::Remove } else { ConditionWrite::Keep }, None);
        };
        let reason = match set.failure.reason {
            Some(Reason::FailedDelete) => Reason::FailedDelete,
            _ => Reason::FailedCreate,
        };
        let status = set.failure.status();
        let Some(since) = set.failure.last_transition.get() else {
            return (ConditionWrite::Keep, None);
        };
        if status == current.status() && current.reason == Some(reason) {
            return (ConditionWrite::Keep, None);
        }
        let status = status.expect("it is there");
        let told = NewCondition { status, reason, last_update: since, last_transition: since };
        (ConditionWrite::Set(told), set.slot)
    }
}

//! What a Deployment's worker does next.

use core::cmp::Ordering;

use crate::control::{Activity, BodySource, ClaimRule, NextClaim, Outcome, Purpose, Run, Write};
use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::request::ContentType;
use crate::store::{self, Cache, Entry, Head, Record, ReplicaSet};
use crate::time::Duration;
use crate::wire::Strategy;
use crate::zero::ZeroOption;

use super::basis::{Basis, Ground, may_have_pods};
use super::controller::Sync;
use super::decide::decide;
use super::plan::{End, Plan, StatusWrite, Step, Warning};
use super::view::{Counts, Facts, SETS, Set, View};
use super::worker::{Phase, Worker};

/// The longest that a sync waits for its ReplicaSets before it is done again.
const PATIENCE: Duration = Duration::from_millis(250);

/// What a Deployment claims.
const REPLICA_SETS: ClaimRule = ClaimRule::new(Kind::ReplicaSet, Kind::Deployment);

/// Failures in a row after which a key is left alone until something happens to it.
const RETRIES: u16 = 15;

impl Worker {
    /// The next request of this sync; `None` while it waits for an answer or when it has ended.
    pub(super) fn next_request(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        if sync.run.open > 0 {
            return None;
        }
        loop {
            if sync.run.is_void(sync.world.cache, Kind::Deployment) {
                self.phase = Phase::Ending;
            }
            match self.phase {
                Phase::Claim => {
                    if let Some(write) = self.next_claim(sync) {
                        return Some(write);
                    }
                }
                Phase::Steps => {
                    if let Some(write) = self.next_step(sync) {
                        return Some(write);
                    }
                }
                Phase::Ending => {
                    self.end(sync);
                    return None;
                }
                Phase::Waiting => {
                    let is_early = sync.run.wakes_at.is_some_and(|at| sync.world.now < at);
                    if is_early && !sync.sets_have_got_on(&self.plan) {
                        return None;
                    }
                    self.decide_anew(sync);
                }
            }
        }
    }

    /// The request of the step at hand, if it has one, is still wanted and its ground still holds.
    fn next_step(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let Some(&step) = self.step() else {
            self.phase = Phase::Ending;
            return None;
        };
        let is_skipped = match step {
            Step::Warn(warning) => {
                sync.record(warning.message());
                true
            }
            Step::Status => !self.plan.status.changes_something() || self.may_lag(sync),
            _ => false,
        };
        if is_skipped {
            self.at += 1;
            return None;
        }
        let (cache, key) = (&*sync.world.cache, sync.key);
        match self.plan.basis.of_step(&step, &self.plan, cache, key) {
            Ground::Holds => match write_of(cache, key, &step) {
                // What was decided before it had to wait for another request is decided anew: things may
                // have changed, and where Kubernetes does not wait, it runs into a conflict.
                Some(write) if changes_replica_set(&step) && sync.has_waited_for(&write) => {
                    self.decide_anew(sync);
                }
                Some(write) => return Some(write),
                // What it is about has gone meanwhile.
                None => self.stop(sync.run, Outcome::Retry),
            },
            Ground::Gone => self.decide_anew(sync),
            Ground::Conflict => self.step_failed(sync.run, Outcome::Retry),
        }
        None
    }

    /// Whether the status tells only how far things are: then it may wait for more of the sort.
    fn may_lag(&self, sync: &mut Sync<'_, '_, '_>) -> bool {
        let key = sync.key;
        let Some(d) = sync.world.cache.deployments.get(key) else { return false };
        if !self.plan.status.is_interim(d.record.observed_generation()) {
            return false;
        }
        let (lag, now) = (sync.world.status_lag, sync.world.now);
        let Some(left) = sync.keys.lag_left(key, lag, now) else { return false };
        sync.keys.queue.add_after(key, left, now);
        true
    }

    /// The step at hand has failed. Scaling down old ReplicaSets may fail: then that is all of it
    /// for now, and the sync goes on.
    pub(crate) fn step_failed(&mut self, run: &mut Run, outcome: Outcome) {
        let is_tolerant = |step: &Step| matches!(step, Step::Scale { available: Some(_), .. });
        if !self.plan.steps.get(self.at).is_some_and(is_tolerant) {
            return self.stop(run, outcome);
        }
        while self.plan.steps.get(self.at).is_some_and(is_tolerant) {
            self.at += 1;
        }
    }

    /// Writes this status and nothing else, then ends with a failure.
    pub(crate) fn end_with_status(&mut self, run: &mut Run, status: StatusWrite) {
        self.plan.steps.clear();
        self.plan.status = status;
        self.at = 0;
        self.plan.push(Step::Status);
        run.outcome = Outcome::Retry;
    }

    /// The next request for claiming ReplicaSets. Without one, decides what to do.
    fn next_claim(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        if sync.is_blind() {
            self.stop(sync.run, Outcome::Good);
            return None;
        }
        let (cache, key) = (&*sync.world.cache, sync.key);
        let selector = cache.deployments.get(key)?.record.selector;
        if selector.is_empty() {
            self.plan_selecting_all(cache, key);
            return None;
        }
        if selector.validate().is_err() {
            self.stop(sync.run, Outcome::Retry);
            return None;
        }
        match sync.run.next_claim(cache, &REPLICA_SETS) {
            NextClaim::Send(write) => return Some(write),
            NextClaim::Failed => self.phase = Phase::Ending,
            NextClaim::Done => self.decide(sync),
        }
        None
    }

    fn decide(&mut self, sync: &mut Sync<'_, '_, '_>) {
        let wall = sync.world.wall;
        self.plan.basis = Basis::of(sync.world.cache, sync.key);
        sync.fill_view();
        let view = &mut **sync.shared;
        self.sizes = (view.deployment.replicas, view.deployment.max_replicas());
        self.has_deadline = view.deployment.progress_deadline_seconds.is_some();
        self.at = 0;
        match decide(view, &mut self.plan, wall) {
            Ok(()) => self.phase = Phase::Steps,
            Err(_) => self.stop(sync.run, Outcome::Retry),
        }
    }

    /// A selector that selects everything is refused; only that is told.
    fn plan_selecting_all(&mut self, cache: &Cache<'_>, key: Slot) {
        let Some(d) = cache.deployments.get(key) else { return };
        let counts = Counts::of(d.record);
        self.phase = Phase::Steps;
        self.plan.push(Step::Warn(Warning::SelectingAll));
        if d.record.observed_generation() < d.record.generation() {
            let observed_generation = d.record.generation();
            let counts = ZeroOption::Some(Counts { observed_generation, ..counts });
            self.plan.push_status(StatusWrite { counts, ..StatusWrite::EMPTY });
        }
    }

    fn end(&mut self, sync: &mut Sync<'_, '_, '_>) {
        let (key, now) = (sync.key, sync.world.now);
        let queue = &mut *sync.keys.queue;
        match sync.run.outcome {
            _ if sync.world.cache.head(Kind::Deployment, key).is_none() => {}
            // Another one has taken its name and its place: what was planned is void.
            _ if sync.run.is_void(sync.world.cache, Kind::Deployment) => {
                sync.run.outcome = Outcome::Forget;
                queue.add(key);
            }
            Outcome::Retry if queue.num_requeues(key) >= RETRIES => {
                sync.run.outcome = Outcome::Forget;
            }
            Outcome::Good => {
                if self.plan.end == End::RateLimited {
                    queue.add_rate_limited(key, now);
                }
                queue.forget(key);
                if let End::After(wait) = self.plan.end {
                    queue.add_after(key, wait, now);
                }
                if self.plan.end == End::Again
                    || shrinks_old_sets(sync.world.cache, key, &self.plan)
                {
                    self.phase = Phase::Waiting;
                    sync.run.wakes_at = Some(now + PATIENCE);
                    return;
                }
            }
            _ => {}
        }
        sync.end(None);
    }
}

/// The request of a step. `None` if what it is about is gone.
fn write_of(cache: &Cache<'_>, key: Slot, step: &Step) -> Option<Write> {
    use ContentType::{JsonPatch, MergePatch};
    let (kind, slot) = match *step {
        Step::Update { set, .. } | Step::Scale { set, .. } | Step::Delete { set } => {
            (Kind::ReplicaSet, set)
        }
        _ => (Kind::Deployment, key),
    };
    let head = cache.head(kind, slot)?;
    let patch = |content_type, is_splice| {
        let body = if is_splice { BodySource::Splice } else { BodySource::Document };
        Write { body, ..Write::patch(Purpose::Step, content_type, kind, slot, head) }
    };
    Some(match *step {
        Step::Create { .. } => Write::create(Purpose::Step, Kind::ReplicaSet, slot, head),
        Step::Update { annotations, .. } => patch(MergePatch, annotations),
        Step::Scale { .. } | Step::ClearRollback => patch(MergePatch, false),
        Step::Rollback { .. } => patch(JsonPatch, true),
        Step::Status => Write::status(Purpose::Step, kind, slot, head),
        Step::Delete { .. } => Write::delete(Purpose::Step, kind, slot, head),
        Step::Warn(_) => return None,
    })
}

/// Whether a step changes a ReplicaSet that is there.
const fn changes_replica_set(step: &Step) -> bool {
    matches!(step, Step::Scale { .. } | Step::Update { .. })
}

/// Whether a plan takes pods from ReplicaSets of other templates.
fn shrinks_old_sets(cache: &Cache<'_>, key: Slot, plan: &Plan) -> bool {
    let template = cache.deployments.get(key).map(|d| d.record.template());
    plan.steps.iter().any(|step| match step {
        Step::Scale { set, from, to, .. } if to < from => {
            let set = cache.replica_sets.get(*set);
            set.is_some_and(|set| Some(set.record.template()) != template)
        }
        _ => false,
    })
}

impl Warning {
    const fn message(self) -> Message {
        match self {
            Self::SelectingAll => Message::SelectingAll,
            Self::NoLastRevision => Message::LastRevisionNotFound,
            Self::NoSuchRevision => Message::RevisionNotFound,
            Self::TemplateUnchanged => Message::TemplateUnchanged,
        }
    }
}

impl Counts {
    /// The numbers of a stored status.
    pub(crate) fn of(d: &store::Deployment) -> Self {
        Self {
            observed_generation: d.observed_generation(),
            replicas: d.status_replicas.get(),
            updated: d.updated_replicas.get(),
            ready: d.ready_replicas.get(),
            available: d.available_replicas.get(),
            unavailable: d.unavailable_replicas,
            terminating: d.terminating_replicas(),
        }
    }
}

impl Facts {
    fn of(d: &store::Deployment) -> Self {
        Self {
            generation: d.generation(),
            deleting: d.is_deleting(),
            replicas: d.replicas,
            paused: d.is_paused(),
            strategy: d.strategy(),
            max_surge: d.max_surge(),
            max_unavailable: d.max_unavailable(),
            min_ready_seconds: d.min_ready_seconds,
            progress_deadline_seconds: d.progress_deadline_seconds().filter(|s| *s != i32::MAX),
            revision_history_limit: d.revision_history_limit().filter(|limit| *limit != i32::MAX),
            revision: d.revision(),
            rollback_to: d.rollback_to(),
            status: Counts::of(d),
            available: d.available,
            progressing: d.progressing,
            replica_failure: d.replica_failure,
        }
    }
}

impl Sync<'_, '_, '_> {
    /// Whether the ReplicaSet controller has got on with what a sync has left it. Kubernetes
    /// gives it that time by a conflict of its own making, with a back-off: the recordings show
    /// the first pod of a new ReplicaSet before the next status of the Deployment, and if old
    /// ReplicaSets were scaled, also all that the new one has to say. Where it runs into no
    /// conflict, requests that take their time let the old ReplicaSets tell that they have shrunk
    /// before the new one has grown.
    fn sets_have_got_on(&self, plan: &Plan) -> bool {
        let (cache, key) = (&*self.world.cache, self.key);
        let Some(d) = cache.deployments.get(key) else { return true };
        let template = d.record.template();
        let is_done_over = plan.end == End::Again;
        cache.replica_sets_of(key).all(|(slot, set)| {
            let is_new = set.record.template() == template;
            match self.world.peer(Kind::ReplicaSet, slot) {
                _ if is_new && !is_done_over => true,
                Activity::Idle => true,
                Activity::Queued | Activity::Begun => false,
                Activity::GotOn => !(is_new && plan.scales()),
                Activity::AtStatus => is_new && !plan.scales(),
            }
        })
    }

    /// Takes the facts about a Deployment and its claimed ReplicaSets.
    fn fill_view(&mut self) {
        let Self { key, shared: view, world, .. } = self;
        let (cache, key) = (&*world.cache, *key);
        view.sets.clear();
        view.new = None;
        view.old_count = 0;
        view.max_old_revision = 0;
        view.second_revision = 0;
        view.overflowed = false;
        view.old_pods_running = false;
        view.keep_terminating = world.terminating_replicas;
        let Some(d) = cache.deployments.get(key) else { return };
        view.deployment = Facts::of(d.record);
        let claimed = || {
            let matches = |set: &ReplicaSet| d.record.selector.matches(cache.texts, set.labels);
            cache.replica_sets_of(key).filter(move |(_, set)| matches(set.record))
        };
        let revisions = || claimed().map(|(_, set)| set.record.revision().value().unwrap_or(0));
        view.second_revision = second(revisions());
        let wanted = match view.deployment.rollback_to.value() {
            Some(0) => Some(view.second_revision),
            revision => revision,
        };
        for (slot, set) in claimed() {
            let same_template = set.record.template() == d.record.template();
            let annotations = set.record.annotations.contains(cache.texts, d.record.annotations);
            let has_annotations = !same_template || annotations.unwrap_or(true);
            keep(view, facts(slot, set, same_template, has_annotations), wanted);
        }
        sort_by_creation(
            view,
            |set| set.slot.and_then(|slot| cache.head(Kind::ReplicaSet, slot)).map(Head::name),
            cache.texts,
        );
        view.new = view.sets.iter().position(|set| set.same_template);
        let new = view.new_set().and_then(|set| set.slot);
        for (_, set) in claimed().filter(|(slot, _)| Some(*slot) != new) {
            let revision = set.record.revision().value().unwrap_or(0);
            view.max_old_revision = view.max_old_revision.max(revision);
            view.old_count += usize::from(!set.record.is_deleting());
        }
        if view.deployment.strategy == Strategy::Recreate {
            view.old_pods_running =
                claimed().any(|(slot, _)| Some(slot) != new && may_have_pods(cache, slot));
        }
    }
}

fn facts(
    slot: Slot,
    set: Entry<'_, ReplicaSet>,
    same_template: bool,
    has_annotations: bool,
) -> Set {
    let rs = set.record;
    Set {
        slot: Some(slot),
        created: rs.created,
        replicas: rs.replicas,
        planned: rs.replicas,
        status_replicas: rs.status_replicas.get(),
        ready: rs.ready_replicas.get(),
        available: rs.available_replicas.get(),
        terminating: rs.terminating_replicas(),
        observed: rs.observed_generation() != 0,
        up_to_date: rs.generation() <= rs.observed_generation(),
        deleting: rs.is_deleting(),
        desired: rs.desired_replicas(),
        max: rs.max_replicas(),
        revision: rs.revision(),
        min_ready_seconds: rs.min_ready_seconds,
        same_template,
        has_annotations,
        failure: rs.replica_failure(),
    }
}

/// Puts a ReplicaSet into the view. When that is full, idle ones of the highest revisions stay
/// out: the history is tidied up from the lowest. That of a revision which is wanted back stays. One
/// place is left for a new ReplicaSet.
fn keep(view: &mut View, set: Set, wanted: Option<i64>) {
    if view.sets.len() + 1 < SETS && view.sets.push(set).is_ok() {
        return;
    }
    let revision = |set: &Set| set.revision.value().unwrap_or(0);
    let spare = |set: &Set| set.is_idle() && !set.same_template && Some(revision(set)) != wanted;
    let highest = view.sets.iter_mut().filter(|set| spare(set)).max_by_key(|set| revision(set));
    match highest {
        Some(other) if !spare(&set) || revision(&set) < revision(other) => *other = set,
        Some(_) => {}
        None if spare(&set) => {}
        None => view.overflowed = true,
    }
}

/// The second highest of some numbers, or 0.
fn second(numbers: impl Iterator<Item = i64>) -> i64 {
    let order = |(first, second): (i64, i64), number: i64| match number {
        _ if number >= first => (number, first),
        _ => (first, second.max(number)),
    };
    numbers.fold((0, 0), order).1
}

/// Oldest first; of the same age, by name.
fn sort_by_creation(
    view: &mut View,
    name: impl Fn(&Set) -> Option<crate::text::Name>,
    texts: &crate::text::Interner,
) {
    crate::sort::heap_sort(&mut view.sets, |a, b| {
        a.created.cmp(&b.created).then_with(|| match (name(a), name(b)) {
            (Some(a), Some(b)) => a.compare(b, texts),
            _ => Ordering::Equal,
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::IntAnnotation;

    fn idle(revision: i64) -> Set {
        Set {
            slot: None,
            created: store::Seconds::NONE,
            replicas: 0,
            planned: 0,
            status_replicas: 0,
            ready: 0,
            available: 0,
            terminating: None,
            observed: true,
            up_to_date: true,
            deleting: false,
            desired: None,
            max: None,
            revision: IntAnnotation::Value(revision),
            min_ready_seconds: 0,
            same_template: false,
            has_annotations: true,
            failure: store::Condition::ABSENT,
        }
    }

    #[test]
    fn the_second_highest_revision_is_the_last_one() {
        for (revisions, expected) in
            [(&[][..], 0), (&[4], 0), (&[4, 7], 4), (&[7, 4, 5], 5), (&[3, 3], 3), (&[0, 0, 9], 0)]
        {
            assert_eq!(second(revisions.iter().copied()), expected, "{revisions:?}");
        }
    }

    /// However many there are, and in whatever order they come.
    #[test]
    fn a_revision_that_is_wanted_back_is_in_view() {
        for wanted in [1, 30, 60, 99] {
            for backwards in [false, true] {
                let mut view = std::boxed::Box::new(View::EMPTY);
                let mut revisions: std::vec::Vec<i64> = (1..100).collect();
                if backwards {
                    revisions.reverse();
                }
                for revision in revisions {
                    keep(&mut view, idle(revision), Some(wanted));
                }
                let is_wanted = |set: &Set| set.revision == IntAnnotation::Value(wanted);
                assert!(view.sets.iter().any(is_wanted), "{wanted} {backwards}");
                assert!(view.sets.len() < SETS && !view.overflowed);
            }
        }
    }
}

//! What a plan was made from, as far as its later steps depend on it.
//!
//! A plan is carried out one request at a time, and each may take a while. Where Kubernetes would
//! act by what it knew when it began, a plan whose ground has gone is made anew.

use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::store::{Cache, Record};
use crate::wire::{IntAnnotation, Strategy};

use super::plan::{Plan, Step};

/// What is left of the ground that a step was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// All of it.
    Holds,
    /// Something else would be decided now.
    Gone,
    /// Something has happened that Kubernetes would run into a conflict by: the step fails.
    Conflict,
}

/// What a plan was made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis {
    /// The Deployment's.
    generation: i64,
    /// The highest that a ReplicaSet has.
    highest_revision: i64,
    /// Where the Deployment was asked to be rolled back to.
    rollback_to: IntAnnotation,
    /// Pods that are available, as the ReplicaSets tell.
    available: i32,
    /// Pods that the ReplicaSets are to have.
    wanted: i32,
    /// ReplicaSets of other templates than the Deployment's that are not being deleted.
    others: u16,
}

impl Basis {
    /// Nothing has been planned.
    pub(crate) const NONE: Self = Self {
        generation: 0,
        highest_revision: 0,
        rollback_to: IntAnnotation::Absent,
        available: 0,
        wanted: 0,
        others: 0,
    };

    /// What a plan that is made now is made from.
    pub(crate) fn of(cache: &Cache<'_>, key: Slot) -> Self {
        let d = cache.deployments.get(key);
        let sets = || cache.replica_sets_of(key).map(|(_, set)| set.record);
        let template = d.map(|d| d.record.template());
        let others = sets().filter(|set| !set.is_deleting() && Some(set.template()) != template);
        Self {
            generation: d.map_or(0, |d| d.record.generation()),
            highest_revision: sets().filter_map(|set| set.revision().value()).max().unwrap_or(0),
            rollback_to: d.map_or(IntAnnotation::Absent, |d| d.record.rollback_to()),
            available: sum(sets().map(|set| set.available_replicas.get())),
            wanted: sum(sets().map(|set| set.replicas)),
            others: u16::try_from(others.count()).unwrap_or(u16::MAX),
        }
    }

    /// The one answer to whether a step of the plan still is what it was meant to be.
    pub(super) fn of_step(&self, step: &Step, plan: &Plan, cache: &Cache<'_>, key: Slot) -> Ground {
        if would_conflict(step, plan, cache, key) {
            return Ground::Conflict;
        }
        let holds: fn(&Self, &Self) -> bool = match *step {
            Step::Create { .. } => |then, now| {
                now.highest_revision <= then.highest_revision && now.wanted <= then.wanted
            },
            Step::Update { revision: Some(_), .. } => {
                |then, now| now.highest_revision <= then.highest_revision
            }
            // With fewer pods available, fewer can be spared.
            Step::Scale { available: Some(_), .. } => |then, now| now.available >= then.available,
            // What somebody else has let grow meanwhile takes of the room that there was.
            Step::Scale { from, to, .. } if to > from => |then, now| now.wanted <= then.wanted,
            Step::Scale { .. } | Step::Update { .. } => |_, _| true,
            // Kubernetes looks at what there was when it began: it deletes what it has given pods in the
            // same sync, and what is not too much any more because somebody else has deleted some.
            Step::Delete { set } if !is_idle(cache, key, set) => return Ground::Gone,
            Step::Delete { .. } => |then, now| now.others >= then.others,
            Step::Rollback { .. } | Step::ClearRollback => {
                |then, now| now.rollback_to == then.rollback_to
            }
            Step::Status | Step::Warn(_) => return Ground::Holds,
        };
        let mut now = Self::of(cache, key);
        now.others = now.others.saturating_add(deletions_before(plan, step));
        now.wanted = now.wanted.saturating_sub(growth_before(plan, step));
        let holds = now.generation == self.generation && holds(self, &now);
        if holds { Ground::Holds } else { Ground::Gone }
    }
}

/// Whether Kubernetes would run into a conflict with this step, or has to.
fn would_conflict(step: &Step, plan: &Plan, cache: &Cache<'_>, key: Slot) -> bool {
    match *step {
        // Somebody else has scaled it, or a pod that was to go because it was not available is by now.
        Step::Scale { set, from, available, .. } => {
            !is_size(cache, key, set, from)
                || available.is_some_and(|then| available_of(cache, set) > then)
        }
        // An old pod has turned up.
        Step::Create { replicas: 1.., .. } => old_pod_runs(cache, key),
        // Somebody else has told of a newer generation.
        Step::Status => {
            let told = cache.deployments.get(key).map_or(0, |d| d.record.observed_generation());
            plan.status.counts.get().is_some_and(|counts| counts.observed_generation < told)
        }
        _ => false,
    }
}

/// Whether a ReplicaSet still is the Deployment's and of this size.
fn is_size(cache: &Cache<'_>, key: Slot, set: Slot, size: i32) -> bool {
    cache.owner_of(Kind::ReplicaSet, set).of(Kind::Deployment) == Some(key)
        && cache.replica_sets.get(set).is_some_and(|set| set.record.replicas == size)
}

/// Whether a ReplicaSet still is the Deployment's, has no pods and is to have none.
fn is_idle(cache: &Cache<'_>, key: Slot, set: Slot) -> bool {
    is_size(cache, key, set, 0)
        && cache.replica_sets.get(set).is_some_and(|set| {
            let rs = set.record;
            rs.status_replicas.get() == 0 && rs.generation() <= rs.observed_generation()
        })
}

/// How many ReplicaSets a plan deletes before it takes a step.
fn deletions_before(plan: &Plan, step: &Step) -> u16 {
    let before = plan.steps.iter().take_while(|it| *it != step);
    before.filter(|it| matches!(it, Step::Delete { .. })).count() as u16
}

/// By how much a plan lets all sizes together grow before it takes a step.
fn growth_before(plan: &Plan, step: &Step) -> i32 {
    let before = plan.steps.iter().take_while(|it| *it != step);
    sum(before.map(|it| match it {
        Step::Create { replicas, .. } => *replicas,
        Step::Scale { from, to, .. } => to.saturating_sub(*from),
        _ => 0,
    }))
}

fn sum(numbers: impl Iterator<Item = i32>) -> i32 {
    numbers.fold(0, i32::saturating_add)
}

/// How many pods of a ReplicaSet are available, as it tells.
fn available_of(cache: &Cache<'_>, set: Slot) -> i32 {
    cache.replica_sets.get(set).map_or(0, |set| set.record.available_replicas.get())
}

/// Whether a Deployment that recreates has a pod of an old template. A rollback does not ask.
fn old_pod_runs(cache: &Cache<'_>, key: Slot) -> bool {
    let Some(d) = cache.deployments.get(key) else { return false };
    let template = d.record.template();
    d.record.strategy() == Strategy::Recreate
        && !planted(Bug::RecreateImpatient)
        && d.record.rollback_to().value().is_none()
        && cache
            .replica_sets_of(key)
            .any(|(slot, set)| set.record.template() != template && may_have_pods(cache, slot))
}

/// Whether a ReplicaSet has a pod that has not come to its end, or may have one that did not fit.
pub(super) fn may_have_pods(cache: &Cache<'_>, set: Slot) -> bool {
    let mut pods = cache.pods_of(Kind::ReplicaSet, set);
    pods.any(|(_, pod)| !pod.record.phase().is_terminal()) || cache.is_blind(Kind::ReplicaSet, set)
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::deployment::plan::{StatusWrite, Warning};
    use crate::deployment::view::Counts;
    use crate::json::Digest;
    use crate::kind::OwnerKind;
    use crate::resources::Few;
    use crate::time::Timestamp;
    use crate::wire::{ControllerRef, Meta, ResourceVersion, Uid};
    use crate::wire::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus};
    use crate::wire::{Pod, PodPhase};
    use crate::zero::ZeroOption;

    /// What the cache is told of.
    struct Cluster {
        d: Deployment,
        /// Of the Deployment's template, with two pods that are available.
        new: ReplicaSet,
        /// Of another one, with three pods of which one is available.
        old: ReplicaSet,
        /// Of yet another one, without pods.
        idle: ReplicaSet,
        /// Likewise, and on its way out.
        leaving: ReplicaSet,
        pods: Vec<Pod>,
    }

    /// Every object here has a name that ends in a letter of its own.
    fn meta(name: &str, owner: Option<(OwnerKind, &str)>) -> Meta {
        let uid = |name: &str| Uid::from_bytes([name.bytes().last().unwrap(); 16]);
        let controller = owner.map(|(kind, name)| ControllerRef {
            kind,
            name: name.try_into().unwrap(),
            uid: uid(name),
        });
        Meta {
            namespace: "default".try_into().unwrap(),
            name: name.try_into().unwrap(),
            uid: uid(name),
            generation: 5,
            controller,
            ..Meta::default()
        }
    }

    fn set(name: &str, template: u128, replicas: i32, available: i32) -> ReplicaSet {
        ReplicaSet {
            meta: meta(name, Some((OwnerKind::Deployment, "web"))),
            revision: IntAnnotation::Value(template as i64),
            replicas,
            template: Digest::from_bits(template),
            status: ReplicaSetStatus {
                replicas,
                available_replicas: available,
                observed_generation: 5,
                ..ReplicaSetStatus::EMPTY
            },
            ..ReplicaSet::default()
        }
    }

    impl Cluster {
        fn new() -> Self {
            let status = DeploymentStatus { observed_generation: 5, ..DeploymentStatus::EMPTY };
            let meta = meta("web", None);
            let mut leaving = set("leaving", 1, 0, 0);
            leaving.meta.deletion = Some(Timestamp::EPOCH);
            Self {
                d: Deployment {
                    meta,
                    template: Digest::from_bits(4),
                    status,
                    ..Deployment::default()
                },
                new: set("new", 4, 2, 2),
                old: set("old", 3, 3, 1),
                idle: set("idle", 2, 0, 0),
                leaving,
                pods: Vec::new(),
            }
        }

        fn add_pod(&mut self, set: &str, phase: PodPhase) {
            let meta = meta("p", Some((OwnerKind::ReplicaSet, set)));
            self.pods.push(Pod { meta, phase, ..Pod::default() });
        }

        fn tell(&mut self, cache: &mut Cache<'_>, version: u64) {
            let version = ResourceVersion::new(version);
            let Self { d, new, old, idle, leaving, pods } = self;
            d.meta.resource_version = version;
            cache.apply(d);
            for set in [new, old, idle, leaving] {
                set.meta.resource_version = version;
                cache.apply(set);
            }
            for pod in pods {
                pod.meta.resource_version = version;
                cache.apply(pod);
            }
        }
    }

    /// What of these is looked at.
    struct Slots {
        old: Slot,
        idle: Slot,
    }

    /// What is left of the ground of a plan's step `at` when this has happened since.
    fn ground_of(
        plan: impl Fn(&Slots) -> Vec<Step>,
        at: usize,
        happens: impl Fn(&mut Cluster),
    ) -> Ground {
        let mut memory = Box::new(Few::new());
        let mut cache = memory.parts().cache;
        let mut cluster = Cluster::new();
        cluster.tell(&mut cache, 1);
        let key = cache.find(Kind::Deployment, "default", "web").unwrap();
        let slot = |name| cache.find(Kind::ReplicaSet, "default", name).unwrap();
        let slots = Slots { old: slot("old"), idle: slot("idle") };
        let mut made = Plan::EMPTY;
        made.steps.extend(plan(&slots));
        let counts = Counts { observed_generation: 5, ..Counts::default() };
        made.status = StatusWrite { counts: ZeroOption::Some(counts), ..StatusWrite::EMPTY };
        let basis = Basis::of(&cache, key);
        happens(&mut cluster);
        cluster.tell(&mut cache, 2);
        basis.of_step(&made.steps[at], &made, &cache, key)
    }

    type Happens = fn(&mut Cluster);

    const NOTHING: Happens = |_| {};
    const NEW_GENERATION: Happens = |it| it.d.meta.generation = 6;
    const IS_LOST: Happens = |it| it.old.meta.controller = None;
    const LESS_AVAILABLE: Happens = |it| it.new.status.available_replicas = 1;
    const MORE_AVAILABLE: Happens = |it| it.old.status.available_replicas = 2;
    const IDLE_GOES: Happens = |it| it.idle.meta.deletion = Some(Timestamp::EPOCH);
    const OLD_GOES: Happens = |it| it.old.meta.deletion = Some(Timestamp::EPOCH);

    #[test]
    fn a_plan_remembers_what_it_was_made_from() {
        let mut memory = Box::new(Few::new());
        let mut cache = memory.parts().cache;
        let mut cluster = Cluster::new();
        cluster.d.rollback_to = IntAnnotation::Value(2);
        cluster.tell(&mut cache, 1);
        let key = cache.find(Kind::Deployment, "default", "web").unwrap();
        let Basis { generation, available, wanted, highest_revision, rollback_to, others } =
            Basis::of(&cache, key);
        assert_eq!((generation, available, wanted, highest_revision), (5, 3, 5, 4));
        assert_eq!((rollback_to, others), (IntAnnotation::Value(2), 2));
    }

    #[test]
    fn a_scaling_holds_while_the_size_is_what_it_was() {
        let scale = |available| {
            move |slots: &Slots| {
                Vec::from([Step::Scale { set: slots.old, from: 3, to: 2, available }])
            }
        };
        let rows: [(Happens, Ground, Ground); 7] = [
            (NOTHING, Ground::Holds, Ground::Holds),
            (NEW_GENERATION, Ground::Gone, Ground::Gone),
            (|it| it.old.replicas = 4, Ground::Conflict, Ground::Conflict),
            (IS_LOST, Ground::Conflict, Ground::Conflict),
            (LESS_AVAILABLE, Ground::Holds, Ground::Gone),
            (MORE_AVAILABLE, Ground::Holds, Ground::Conflict),
            (|it| it.new.status.available_replicas = 3, Ground::Holds, Ground::Holds),
        ];
        for (at, (happens, expected, of_rolling)) in rows.into_iter().enumerate() {
            assert_eq!(ground_of(scale(None), 0, happens), expected, "{at}");
            assert_eq!(ground_of(scale(Some(1)), 0, happens), of_rolling, "{at}");
        }
    }

    /// What the plan itself has let grow or shrink before does not count.
    #[test]
    fn what_somebody_else_lets_grow_leaves_no_room_to_grow() {
        let grow = |slots: &Slots| {
            let scale = |set, from, to| Step::Scale { set, from, to, available: None };
            let create = Step::Create { replicas: 1, revision: 5 };
            let (first, second) = (scale(slots.idle, 0, 2), scale(slots.old, 3, 4));
            Vec::from([create, first, second])
        };
        const AS_PLANNED: Happens = |it| (it.idle.replicas, it.new.replicas) = (2, 3);
        let rows: [(Happens, usize, Ground); 7] = [
            (NOTHING, 0, Ground::Holds),
            (|it| it.new.replicas = 1, 0, Ground::Holds),
            (|it| it.new.replicas = 3, 0, Ground::Gone),
            // Created: here it is the new one that has one more.
            (|it| it.new.replicas = 3, 1, Ground::Holds),
            (|it| it.new.replicas = 4, 1, Ground::Gone),
            (AS_PLANNED, 2, Ground::Holds),
            (|it| (it.idle.replicas, it.new.replicas) = (2, 4), 2, Ground::Gone),
        ];
        for (row, (happens, at, expected)) in rows.into_iter().enumerate() {
            assert_eq!(ground_of(grow, at, happens), expected, "{row}");
        }
    }

    #[test]
    fn a_revision_is_given_once() {
        let steps: [fn(&Slots) -> Vec<Step>; 3] = [
            |_| Vec::from([Step::Create { replicas: 1, revision: 5 }]),
            |it| Vec::from([Step::Update { set: it.old, revision: Some(5), annotations: false }]),
            |it| Vec::from([Step::Update { set: it.old, revision: None, annotations: true }]),
        ];
        for (happens, expected) in [
            (NOTHING, [Ground::Holds; 3]),
            (NEW_GENERATION, [Ground::Gone; 3]),
            (|it| it.idle.revision = IntAnnotation::Value(4), [Ground::Holds; 3]),
            (
                |it| it.idle.revision = IntAnnotation::Value(5),
                [Ground::Gone, Ground::Gone, Ground::Holds],
            ),
        ] {
            assert_eq!(steps.map(|step| ground_of(step, 0, happens)), expected);
        }
    }

    #[test]
    fn history_is_deleted_while_it_is_idle_and_too_much() {
        let delete = |slots: &Slots| Vec::from([Step::Delete { set: slots.idle }]);
        let rows: [(Happens, Ground); 8] = [
            (NOTHING, Ground::Holds),
            (NEW_GENERATION, Ground::Gone),
            (|it| it.idle.replicas = 1, Ground::Gone),
            (|it| it.idle.status.replicas = 1, Ground::Gone),
            (|it| it.idle.meta.generation = 6, Ground::Gone),
            (|it| it.idle.meta.controller = None, Ground::Gone),
            (OLD_GOES, Ground::Gone),
            (|it| it.leaving.meta.deletion = None, Ground::Holds),
        ];
        for (at, (happens, expected)) in rows.into_iter().enumerate() {
            assert_eq!(ground_of(delete, 0, happens), expected, "{at}");
        }
    }

    /// Those that the plan itself has deleted before do not count.
    #[test]
    fn what_a_plan_has_deleted_holds_up_no_later_deletion() {
        let both = |slots: &Slots| {
            let old = Step::Scale { set: slots.old, from: 3, to: 0, available: None };
            let (first, second) =
                (Step::Delete { set: slots.old }, Step::Delete { set: slots.idle });
            Vec::from([old, first, second])
        };
        assert_eq!(ground_of(both, 2, OLD_GOES), Ground::Holds);
        let both_go: Happens = |it| {
            OLD_GOES(it);
            IDLE_GOES(it);
        };
        assert_eq!(ground_of(both, 2, both_go), Ground::Gone);
    }

    #[test]
    fn a_rollback_holds_while_it_is_asked_for() {
        let steps: [fn(&Slots) -> Vec<Step>; 2] = [
            |it| Vec::from([Step::Rollback { set: it.old, revision: 3 }]),
            |_| Vec::from([Step::ClearRollback]),
        ];
        for step in steps {
            assert_eq!(ground_of(step, 0, NOTHING), Ground::Holds);
            assert_eq!(ground_of(step, 0, NEW_GENERATION), Ground::Gone);
            let asked_for: Happens = |it| it.d.rollback_to = IntAnnotation::Value(3);
            assert_eq!(ground_of(step, 0, asked_for), Ground::Gone);
        }
    }

    #[test]
    fn no_status_is_written_of_a_generation_before_the_one_that_was_told() {
        let status = |_: &Slots| Vec::from([Step::Status]);
        for (told, expected) in
            [(0, Ground::Holds), (4, Ground::Holds), (5, Ground::Holds), (6, Ground::Conflict)]
        {
            let ground = ground_of(status, 0, |it| it.d.status.observed_generation = told);
            assert_eq!(ground, expected, "{told}");
        }
        // Whatever is wanted by now.
        assert_eq!(ground_of(status, 0, NEW_GENERATION), Ground::Holds);
        let warning = |_: &Slots| Vec::from([Step::Warn(Warning::SelectingAll)]);
        assert_eq!(ground_of(warning, 0, NEW_GENERATION), Ground::Holds);
    }

    #[test]
    fn recreating_waits_for_old_pods_that_turn_up() {
        let create =
            |replicas| move |_: &Slots| Vec::from([Step::Create { replicas, revision: 5 }]);
        let recreate: Happens = |it| it.d.strategy = Strategy::Recreate;
        let rows: [(Happens, Happens, Ground); 8] = [
            (recreate, NOTHING, Ground::Holds),
            (recreate, |it| it.add_pod("old", PodPhase::Running), Ground::Conflict),
            (recreate, |it| it.add_pod("old", PodPhase::Pending), Ground::Conflict),
            (recreate, |it| it.add_pod("old", PodPhase::Failed), Ground::Holds),
            (recreate, |it| it.add_pod("old", PodPhase::Succeeded), Ground::Holds),
            (recreate, |it| it.add_pod("new", PodPhase::Running), Ground::Holds),
            (NOTHING, |it| it.add_pod("old", PodPhase::Running), Ground::Holds),
            (
                |it| {
                    (it.d.strategy, it.d.rollback_to) =
                        (Strategy::Recreate, IntAnnotation::Value(0))
                },
                |it| it.add_pod("old", PodPhase::Running),
                Ground::Holds,
            ),
        ];
        for (at, (is_before, happens, expected)) in rows.into_iter().enumerate() {
            let both = |it: &mut Cluster| {
                is_before(it);
                happens(it);
            };
            assert_eq!(ground_of(create(1), 0, both), expected, "{at}");
            assert_eq!(ground_of(create(0), 0, both), Ground::Holds, "{at}");
        }
    }

    /// A pod that does not fit may be one that runs.
    #[test]
    fn who_does_not_see_all_pods_may_have_some() {
        let mut memory = Box::new(Few::new());
        let mut cache = memory.parts().cache;
        Cluster::new().tell(&mut cache, 1);
        let old = cache.find(Kind::ReplicaSet, "default", "old").unwrap();
        assert!(!may_have_pods(&cache, old));
        let mut pod =
            Pod { meta: meta("fat", Some((OwnerKind::ReplicaSet, "old"))), ..Pod::default() };
        (0..100).for_each(|at| pod.meta.labels.insert_text(&std::format!("{at}"), ""));
        cache.apply(&pod);
        assert!(may_have_pods(&cache, old));
    }
}

//! Random states: whole syncs of Deployments agree with the model, step by step and field by field.

use std::collections::BTreeMap;

use picokube_core::deployment::{Counts, End, Facts, Plan, Set, Step, View, decide};
use picokube_core::store::{Condition, ConditionReason as Reason, Seconds};
use picokube_core::time::Timestamp;
use picokube_core::wire::{ConditionStatus as Status, IntAnnotation, IntOrPercent, Strategy};

use crate::support::{NOW, Rng, set};
use crate::whole::{Whole, whole};

const STATES: usize = 400_000;

fn pick<T: Copy, const N: usize>(rng: &mut Rng, of: [T; N]) -> T {
    of[rng.below(N as i64) as usize]
}

fn condition(rng: &mut Rng, reasons: &[Reason]) -> Condition {
    if rng.chance(4) {
        return Condition::ABSENT;
    }
    let status = pick(rng, [Status::True, Status::True, Status::False, Status::Unknown]);
    let reason = reasons.get(rng.below(reasons.len() as i64 + 1) as usize).copied();
    let seconds = |rng: &mut Rng| {
        let ago = pick(rng, [0, 1, 8, 9, 10, 11, 12, 599, 700]);
        let at = Timestamp::from_secs(NOW.as_secs() - ago);
        Seconds::new(Some(at).filter(|_| !rng.chance(10)))
    };
    Condition::of(status, reason, seconds(rng), seconds(rng))
}

fn share(rng: &mut Rng) -> Option<IntOrPercent> {
    match rng.below(4) {
        0 => None,
        1 => Some(IntOrPercent::Percent(pick(rng, [0, 25, 34, 50, 100]))),
        _ => Some(IntOrPercent::Int(rng.below(4))),
    }
}

fn number(rng: &mut Rng) -> IntAnnotation {
    if rng.chance(6) { IntAnnotation::Absent } else { IntAnnotation::Value(rng.below(6).into()) }
}

fn random_set(rng: &mut Rng, at: usize, replicas: i32) -> Set {
    let size = if rng.chance(3) { 0 } else { rng.below(6) };
    let there = if rng.chance(2) { size } else { rng.below(6) };
    let ready = if rng.chance(2) { there } else { rng.below(i64::from(there) + 1) };
    let failures = [Reason::FailedCreate, Reason::FailedDelete];
    let failure = if rng.chance(4) { condition(rng, &failures) } else { Condition::ABSENT };
    Set {
        status_replicas: there,
        ready,
        available: if rng.chance(2) { ready } else { rng.below(i64::from(ready) + 1) },
        terminating: if rng.chance(3) { None } else { Some(rng.below(3)) },
        observed: !rng.chance(3),
        up_to_date: !rng.chance(4),
        deleting: rng.chance(8),
        desired: pick(rng, [Some(replicas), Some(replicas), Some(3), Some(-1), None]),
        max: pick(rng, [None, Some(0), Some(replicas), Some(replicas + 1), Some(5)]),
        revision: number(rng),
        min_ready_seconds: if rng.chance(6) { 5 } else { 0 },
        same_template: rng.chance(3),
        has_annotations: !rng.chance(8),
        failure,
        ..set(at, size, 0)
    }
}

/// The status as it would be, so that often there is nothing to write.
fn told(view: &View) -> Counts {
    let sum = |of: fn(&Set) -> i32| view.sets.iter().map(of).sum::<i32>();
    let available = sum(|set| set.available);
    Counts {
        observed_generation: view.deployment.generation,
        replicas: sum(|set| set.status_replicas),
        updated: view.new_set().map_or(0, |new| new.status_replicas),
        ready: sum(|set| set.ready),
        available,
        unavailable: (sum(|set| set.replicas) - available).max(0),
        terminating: None,
    }
}

fn random_view(rng: &mut Rng) -> View {
    let replicas = rng.below(6);
    let mut view = View::EMPTY;
    for at in 0..rng.below(5) as usize {
        let set = random_set(rng, at, replicas);
        view.sets.push(set).expect("there is room");
    }
    view.new = view.sets.iter().position(|set| set.same_template);
    if let Some(new) = view.new.filter(|_| rng.chance(20)) {
        view.sets[new].revision = IntAnnotation::Invalid;
    }
    let deleting = view.old_sets().filter(|(_, set)| set.deleting).count();
    view.old_count = view.old_sets().count() - deleting + pick(rng, [0, 0, 0, 2]);
    let revisions = view.old_sets().map(|(_, set)| set.revision.value().unwrap_or(0));
    view.max_old_revision = revisions.max().unwrap_or(0);
    view.second_revision = rng.below(4).into();
    view.overflowed = rng.chance(100);
    view.old_pods_running = rng.chance(6);
    view.keep_terminating = rng.chance(3);
    let progressing = [
        Reason::NewReplicaSetAvailable,
        Reason::NewReplicaSetCreated,
        Reason::FoundNewReplicaSet,
        Reason::ReplicaSetUpdated,
        Reason::ReplicaSetUpdated,
        Reason::ProgressDeadlineExceeded,
        Reason::DeploymentPaused,
        Reason::DeploymentResumed,
    ];
    let available = [Reason::MinimumReplicasAvailable, Reason::MinimumReplicasUnavailable];
    let new_revision = view.new_set().map_or(IntAnnotation::Absent, |new| new.revision);
    view.deployment = Facts {
        generation: 1 + i64::from(rng.below(2)),
        deleting: rng.chance(16),
        replicas,
        paused: rng.chance(6),
        strategy: match rng.below(40) {
            0 => Strategy::Other,
            1..=12 => Strategy::Recreate,
            _ => Strategy::RollingUpdate,
        },
        max_surge: share(rng),
        max_unavailable: share(rng),
        min_ready_seconds: if rng.chance(8) { 5 } else { 0 },
        progress_deadline_seconds: pick(rng, [None, Some(0), Some(10), Some(10), Some(600)]),
        revision_history_limit: pick(rng, [None, Some(-1), Some(0), Some(1), Some(2)]),
        revision: if rng.chance(3) { number(rng) } else { new_revision },
        rollback_to: match rng.below(12) {
            0 => IntAnnotation::Value(0),
            1 => number(rng),
            2 => IntAnnotation::Invalid,
            _ => IntAnnotation::Absent,
        },
        status: Counts::default(),
        available: condition(rng, &available),
        progressing: condition(rng, &progressing),
        replica_failure: condition(rng, &[Reason::FailedCreate, Reason::FailedDelete]),
    };
    let mut status = told(&view);
    let fields =
        [&mut status.replicas, &mut status.updated, &mut status.ready, &mut status.available];
    if rng.chance(2) {
        for field in fields {
            *field = (*field + pick(rng, [0, 0, 0, 1, -1])).max(0);
        }
        status.observed_generation -= i64::from(rng.below(2));
    }
    if rng.chance(4) {
        status.terminating = Some(rng.below(3));
    }
    if rng.chance(3) {
        // As when a rollout has come to its end.
        let all = replicas;
        (status.replicas, status.updated, status.available) = (all, all, all);
    }
    view.deployment.status = status;
    if !rng.chance(3) {
        settle(&mut view);
    }
    view
}

/// Nothing is to be refreshed or scaled, and nothing has failed: what is left is the rollout.
fn settle(view: &mut View) {
    let d = &mut view.deployment;
    for set in &mut view.sets {
        (set.desired, set.failure) = (Some(d.replicas), Condition::ABSENT);
    }
    d.replica_failure = Condition::ABSENT;
    let Some(new) = view.new.and_then(|new| view.sets.get_mut(new)) else { return };
    (new.has_annotations, new.min_ready_seconds) = (true, d.min_ready_seconds);
    new.revision = IntAnnotation::Value(view.max_old_revision + 1);
    d.revision = new.revision;
}

/// Both agree, and every sort of step, of end and of refusal is among what they agree on.
#[test]
fn whole_syncs_agree_with_the_model() {
    let mut rng = Rng(11);
    let mut seen = BTreeMap::<String, usize>::new();
    let mut plan = Plan::EMPTY;
    for number in 0..STATES {
        let view = random_view(&mut rng);
        let mut own = view.clone();
        plan.status = picokube_core::deployment::StatusWrite::EMPTY;
        let decided = decide(&mut own, &mut plan, NOW).map(|()| Whole {
            steps: plan.steps.to_vec(),
            status: plan.steps.contains(&Step::Status).then_some(plan.status),
            end: plan.end,
        });
        let expected = whole(&view, NOW);
        assert_eq!(decided, expected, "state {number}: {view:#?}");
        let mut note = |what: String| {
            let word = what.split(['{', '(', ' ']).next().unwrap_or_default();
            *seen.entry(word.to_owned()).or_default() += 1;
        };
        match expected {
            Err(impossible) => note(format!("{impossible:?}")),
            Ok(whole) => {
                whole.steps.iter().for_each(|step| match step {
                    Step::Warn(warning) => note(format!("{warning:?}")),
                    step => note(format!("{step:?}")),
                });
                note(match whole.end {
                    End::Done => "Done".to_owned(),
                    end => format!("{end:?}"),
                });
            }
        }
    }
    for what in [
        "Create",
        "Update",
        "Scale",
        "Status",
        "Delete",
        "Rollback",
        "ClearRollback",
        "NoLastRevision",
        "NoSuchRevision",
        "TemplateUnchanged",
        "Done",
        "Again",
        "After",
        "RateLimited",
        "UnexpectedStrategy",
        "TooManyReplicaSets",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count > STATES / 1_000), "{what}: {seen:?}");
    }
}

//! Builders of views, and a seeded source of randomness.

use picokube_core::deployment::{Counts, Facts, Plan, Set, Step, View, decide};
use picokube_core::link::Slot;
use picokube_core::store::Seconds;
use picokube_core::time::Timestamp;
use picokube_core::wire::{IntAnnotation, IntOrPercent};

pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// SplitMix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: i64) -> i32 {
        (self.next() % bound as u64) as i32
    }

    pub(crate) fn chance(&mut self, one_in: i64) -> bool {
        self.below(one_in) == 0
    }
}

/// A ReplicaSet of so many replicas, all of them available, with revision `number + 1`.
pub(crate) fn set(number: usize, replicas: i32, max: i32) -> Set {
    Set {
        slot: Slot::from_index(number),
        created: Seconds::new(Some(Timestamp::from_secs(1_000 + number as i64))),
        planned: replicas,
        status_replicas: replicas,
        ready: replicas,
        available: replicas,
        observed: true,
        max: Some(max),
        desired: Some(0),
        revision: IntAnnotation::Value(number as i64 + 1),
        same_template: false,
        ..Set::unborn(replicas, 0)
    }
}

/// A view of a Deployment that knows no deadline and no limit. The last set is the new one if
/// `has_new`.
pub(crate) fn view(
    replicas: i32,
    surge: IntOrPercent,
    unavailable: IntOrPercent,
    sets: &[Set],
    has_new: bool,
) -> View {
    let mut view = View {
        deployment: Facts {
            generation: 2,
            replicas,
            max_surge: Some(surge),
            max_unavailable: Some(unavailable),
            revision: IntAnnotation::Value(sets.len() as i64),
            status: Counts {
                observed_generation: 2,
                replicas: sets.iter().map(|set| set.status_replicas).sum(),
                ..Counts::default()
            },
            ..Facts::EMPTY
        },
        ..View::EMPTY
    };
    for set in sets {
        view.sets.push(*set).unwrap();
    }
    let old = sets.len() - usize::from(has_new);
    view.old_count = old;
    view.max_old_revision = old as i64;
    if has_new {
        view.new = sets.len().checked_sub(1);
        view.sets.last_mut().unwrap().same_template = true;
    }
    view
}

/// Decides and returns what is created and scaled, in order: place, size before, size after.
/// A ReplicaSet that is created has the place after all others.
pub(crate) fn scalings(view: &mut View) -> Vec<(usize, i32, i32)> {
    let places = view.sets.len();
    let mut plan = Plan::EMPTY;
    decide(view, &mut plan, NOW).unwrap();
    plan.steps
        .iter()
        .filter_map(|step| match *step {
            Step::Create { replicas, .. } => Some((places, 0, replicas)),
            Step::Scale { set, from, to, .. } => Some((set.index(), from, to)),
            _ => None,
        })
        .collect()
}

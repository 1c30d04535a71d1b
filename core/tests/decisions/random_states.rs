//! Random states: the controller agrees with the plain model, and keeps its promises.

use picokube_core::deployment::Set;
use picokube_core::wire::IntOrPercent::Int;

use crate::model::{Model, proportional, rolling};
use crate::support::{Rng, scalings, set, view};

const ROLLING_STATES: usize = 600_000;
const SCALING_STATES: usize = 400_000;

struct State {
    replicas: i32,
    surge: i32,
    unavailable: i32,
    sets: Vec<Set>,
    has_new: bool,
}

impl State {
    fn random(rng: &mut Rng) -> Self {
        let most = *[3, 12, 120].get(rng.below(3) as usize).unwrap();
        let count = 1 + rng.below(4) as usize;
        let mut sets: Vec<Set> = (0..count)
            .map(|number| {
                let size = if rng.chance(4) { 0 } else { rng.below(most) };
                let max = if rng.chance(4) { 0 } else { rng.below(2 * most) };
                let mut set = set(number, size, max);
                // Often healthy, often not; sometimes a status that lags behind.
                let lag = if rng.chance(8) { rng.below(4) } else { 0 };
                set.available = if rng.chance(2) { size } else { rng.below(i64::from(size) + 1) };
                set.available += lag;
                set.ready = set.available;
                set.status_replicas = set.available.max(size);
                set
            })
            .collect();
        let replicas = if rng.chance(10) { 0 } else { rng.below(most) };
        sets.iter_mut().for_each(|set| set.desired = Some(replicas));
        Self {
            replicas,
            surge: rng.below(6),
            unavailable: rng.below(6),
            sets,
            has_new: rng.chance(2),
        }
    }

    fn models(&self) -> Vec<Model> {
        let model = |set: &Set| Model {
            size: i64::from(set.replicas),
            available: i64::from(set.available),
            max: i64::from(set.max.unwrap_or(0)),
        };
        self.sets.iter().map(model).collect()
    }
}

#[test]
fn rolling_updates_agree_with_the_model_and_keep_their_bounds() {
    let mut rng = Rng(1);
    let mut acted = 0;
    for number in 0..ROLLING_STATES {
        let state = State::random(&mut rng);
        let State { replicas, surge, unavailable, ref sets, has_new } = state;
        let mut view = view(replicas, Int(surge), Int(unavailable), sets, has_new);
        let min_available = view.deployment.min_available();
        let new = has_new.then(|| sets.len() - 1);
        let steps = scalings(&mut view);
        let expected = rolling(
            i64::from(replicas),
            i64::from(surge),
            i64::from(unavailable),
            &state.models(),
            new,
        );
        let as_model: Vec<_> = steps
            .iter()
            .map(|(place, from, to)| (*place, i64::from(*from), i64::from(*to)))
            .collect();
        assert_eq!(as_model, expected, "state {number}: {replicas} {surge} {unavailable} {sets:?}");
        acted += usize::from(!steps.is_empty());
        check_bounds(&state, &steps, new, min_available, number);
    }
    assert!(acted > ROLLING_STATES / 2, "{acted}");
}

/// Scaling up stays within the surge; scaling down never takes an available pod that is needed.
fn check_bounds(
    state: &State,
    steps: &[(usize, i32, i32)],
    new: Option<usize>,
    min_available: i32,
    number: usize,
) {
    let mut sizes: Vec<i32> = state.sets.iter().map(|set| set.replicas).collect();
    sizes.push(0);
    let before: i32 = sizes.iter().sum();
    let (surge, _) = {
        let view = view(
            state.replicas,
            Int(state.surge),
            Int(state.unavailable),
            &state.sets,
            state.has_new,
        );
        view.deployment.fenceposts()
    };
    for (place, from, to) in steps {
        assert_eq!(sizes[*place], *from, "state {number}");
        assert!(*to >= 0, "state {number}");
        sizes[*place] = *to;
        if to > from {
            let total: i32 = sizes.iter().sum();
            assert!(total <= state.replicas + surge, "state {number}: surge");
        }
    }
    let lags = state.sets.iter().any(|set| set.available > set.replicas);
    let after: i32 = sizes.iter().sum();
    if after < before && !lags && steps.iter().all(|(place, ..)| Some(*place) != new) {
        let kept = state.sets.iter().zip(&sizes).map(|(set, size)| set.available.min(*size));
        let available_before: i32 = state.sets.iter().map(|set| set.available).sum();
        let kept: i32 = kept.sum();
        assert!(
            kept >= min_available.min(available_before),
            "state {number}: {kept} of {min_available} left"
        );
    }
}

#[test]
fn proportional_scaling_agrees_with_the_model() {
    let mut rng = Rng(2);
    let mut compared = 0;
    for number in 0..SCALING_STATES {
        let state = State::random(&mut rng);
        let State { replicas, surge, ref sets, .. } = state;
        if sets.iter().filter(|set| set.replicas > 0).count() < 2 {
            continue;
        }
        let mut sets = sets.clone();
        sets.iter_mut().for_each(|set| set.desired = Some(replicas + 1));
        let mut view = view(replicas, Int(surge), Int(1), &sets, true);
        // The new ReplicaSet must not look complete: then the others are scaled to nothing.
        view.sets.last_mut().unwrap().desired = Some(replicas + 1);
        let status = i64::from(view.deployment.status.replicas);
        let (surge, _) = view.deployment.fenceposts();
        let expected = proportional(i64::from(replicas), i64::from(surge), status, &state.models());
        let mut sizes: Vec<i64> = sets.iter().map(|set| i64::from(set.replicas)).collect();
        for (place, from, to) in scalings(&mut view) {
            assert_eq!(sizes[place], i64::from(from), "state {number}");
            sizes[place] = i64::from(to);
        }
        assert_eq!(sizes, expected, "state {number}: {replicas} {surge} {sets:?}");
        compared += 1;
    }
    assert!(compared > SCALING_STATES / 3, "{compared}");
}

//! Known vectors: rolling traces and proportional scaling.

use picokube_core::deployment::Set;
use picokube_core::wire::IntOrPercent::{self, Int, Percent};

use crate::support::{scalings, set, view};

/// Rolls from one ReplicaSet to a new one, all pods available between syncs if `healthy`.
/// Returns what each sync does that does something.
fn roll(
    replicas: i32,
    surge: IntOrPercent,
    unavailable: IntOrPercent,
    healthy: bool,
) -> Vec<Vec<(usize, i32, i32)>> {
    let mut sets: Vec<Set> = vec![set(0, replicas, 0)];
    let mut trace = Vec::new();
    loop {
        let has_new = sets.len() == 2;
        let mut view = view(replicas, surge, unavailable, &sets, has_new);
        view.sets.iter_mut().for_each(|set| set.desired = Some(replicas));
        let steps = scalings(&mut view);
        if steps.is_empty() {
            return trace;
        }
        for &(place, _, to) in &steps {
            match sets.get_mut(place) {
                Some(set) => set.replicas = to,
                None => sets.push(set(1, to, 0)),
            }
        }
        for (place, set) in sets.iter_mut().enumerate() {
            let available = if healthy || place == 0 { set.replicas } else { 0 };
            set.planned = set.replicas;
            (set.status_replicas, set.ready, set.available) = (set.replicas, available, available);
        }
        trace.push(steps);
        assert!(trace.len() < 100);
    }
}

#[test]
fn rolling_traces() {
    let quarter = Percent(25);
    assert_eq!(
        roll(3, quarter, quarter, true),
        [
            vec![(1, 0, 1)],
            vec![(0, 3, 2)],
            vec![(1, 1, 2)],
            vec![(0, 2, 1)],
            vec![(1, 2, 3)],
            vec![(0, 1, 0)],
        ]
    );
    assert_eq!(
        roll(10, quarter, quarter, true),
        [
            vec![(1, 0, 3), (0, 10, 8)],
            vec![(1, 3, 5)],
            vec![(0, 8, 3)],
            vec![(1, 5, 10)],
            vec![(0, 3, 0)],
        ]
    );
    assert_eq!(roll(1, quarter, quarter, true), [vec![(1, 0, 1)], vec![(0, 1, 0)]]);
    assert_eq!(
        roll(4, Int(0), Int(1), true),
        [
            vec![(1, 0, 0), (0, 4, 3)],
            vec![(1, 0, 1)],
            vec![(0, 3, 2)],
            vec![(1, 1, 2)],
            vec![(0, 2, 1)],
            vec![(1, 2, 3)],
            vec![(0, 1, 0)],
            vec![(1, 3, 4)],
        ]
    );
    assert_eq!(
        roll(10, Int(3), Int(2), false),
        [vec![(1, 0, 3), (0, 10, 8)], vec![(1, 3, 5)]],
        "new pods never become available"
    );
}

#[test]
fn proportional_scaling() {
    // replicas, surge, sizes (the last is the new one), base, sizes after
    for (replicas, surge, sizes, base, after) in [
        (30, 3, &[8, 5][..], 13, &[20, 13][..]),
        (5, 3, &[8, 5], 13, &[5, 3]),
        (0, 0, &[8, 5], 13, &[0, 0]),
        (12, 3, &[5, 5, 3], 13, &[6, 6, 3]),
        (6, 2, &[5, 5, 3], 13, &[3, 3, 2]),
        (20, 5, &[4, 4, 4], 12, &[8, 8, 9]),
    ] {
        let sets: Vec<_> =
            sizes.iter().enumerate().map(|(number, size)| set(number, *size, base)).collect();
        let mut view = view(replicas, Int(surge), Int(2), &sets, true);
        // Not all of the new pods are available, so that nothing is saturated.
        view.sets.last_mut().unwrap().available = 0;
        view.sets.iter_mut().for_each(|set| set.desired = Some(replicas + 1));
        let mut result = sizes.to_vec();
        for (place, from, to) in scalings(&mut view) {
            assert_eq!(result[place], from);
            result[place] = to;
        }
        assert_eq!(result, after, "{replicas} replicas, surge {surge}, from {sizes:?}");
    }
}

#[test]
fn the_largest_is_written_first() {
    let sets = [set(0, 8, 13), set(1, 5, 13)];
    let mut view = view(15, Int(3), Int(2), &sets, true);
    view.sets.iter_mut().for_each(|set| set.desired = Some(10));
    view.sets.last_mut().unwrap().available = 0;
    assert_eq!(scalings(&mut view), [(0, 8, 11), (1, 5, 7)]);
}

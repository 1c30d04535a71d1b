//! The rules once more, in the plainest way: floating point, owned vectors, no shared code.

/// A ReplicaSet in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) size: i64,
    pub(crate) available: i64,
    pub(crate) max: i64,
}

/// What a sync of a RollingUpdate does: place, size before, size after. `new` is the place of
/// the new ReplicaSet; one that has to be created comes after all others.
pub(crate) fn rolling(
    replicas: i64,
    surge: i64,
    unavailable: i64,
    sets: &[Model],
    new: Option<usize>,
) -> Vec<(usize, i64, i64)> {
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    let max_unavailable = if replicas == 0 { 0 } else { unavailable.min(replicas) };
    let mut sets = sets.to_vec();
    let mut steps = Vec::new();
    let total = |sets: &[Model]| sets.iter().map(|set| set.size).sum::<i64>();
    let grow = |size: i64, total: i64| {
        let room = replicas + surge - total;
        if room <= 0 { size } else { size + room.min(replicas - size) }
    };
    let new = match new {
        Some(new) => {
            let size = sets[new].size;
            let to = if size > replicas { replicas } else { grow(size, total(&sets)) };
            if to != size {
                return vec![(new, size, to)];
            }
            new
        }
        None => {
            let size = grow(0, total(&sets));
            steps.push((sets.len(), 0, size));
            sets.push(Model { size, available: 0, max: 0 });
            sets.len() - 1
        }
    };
    let old: Vec<usize> = (0..sets.len()).filter(|place| *place != new).collect();
    if old.iter().all(|place| sets[*place].size == 0) {
        return steps;
    }
    let min_available = replicas - max_unavailable;
    let available: i64 = sets.iter().map(|set| set.available).sum();
    let mut may_go = total(&sets) - min_available - (sets[new].size - sets[new].available);
    if may_go <= 0 {
        return steps;
    }
    for &place in &old {
        let unhealthy = sets[place].size - sets[place].available;
        if sets[place].size == 0 || unhealthy == 0 || may_go <= 0 {
            continue;
        }
        if unhealthy < 0 {
            return steps;
        }
        let count = unhealthy.min(may_go);
        steps.push((place, sets[place].size, sets[place].size - count));
        sets[place].size -= count;
        may_go -= count;
    }
    let mut spare = available - min_available;
    for &place in &old {
        let count = sets[place].size.min(spare);
        if count > 0 {
            steps.push((place, sets[place].size, sets[place].size - count));
            sets[place].size -= count;
            spare -= count;
        }
    }
    steps
}

/// The sizes after proportional scaling, in the order of `sets`.
pub(crate) fn proportional(
    replicas: i64,
    surge: i64,
    status_replicas: i64,
    sets: &[Model],
) -> Vec<i64> {
    let allowed = if replicas > 0 { replicas + surge } else { 0 };
    let delta = allowed - sets.iter().map(|set| set.size).sum::<i64>();
    let mut order: Vec<usize> = (0..sets.len()).filter(|place| sets[*place].size > 0).collect();
    if delta > 0 {
        order.reverse();
    }
    order.sort_by_key(|place| -sets[*place].size);
    let mut sizes: Vec<i64> = sets.iter().map(|set| set.size).collect();
    let mut given = 0;
    for &place in &order {
        let set = &sets[place];
        let base = if set.max > 0 { set.max } else { status_replicas };
        let wish = match () {
            () if replicas == 0 => -set.size,
            () if base == 0 => 0,
            () => {
                let exact = set.size as f64 * (replicas + surge) as f64 / base as f64;
                exact.round() as i64 - set.size
            }
        };
        let share = match delta {
            0 => 0,
            delta if delta == given => 0,
            delta if delta > 0 => wish.min(delta - given),
            delta => wish.max(delta - given),
        };
        sizes[place] += share;
        given += share;
    }
    if let Some(&first) = order.first()
        && delta != 0
    {
        sizes[first] = (sizes[first] + delta - given).max(0);
    }
    sizes
}

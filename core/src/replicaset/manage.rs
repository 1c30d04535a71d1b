//! How many pods to create or delete.

/// The most pods that one sync creates or deletes.
pub const BURST: u16 = 500;

/// What to do about the number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manage {
    /// It is right.
    Nothing,
    /// There are too few.
    Create(u16),
    /// There are too many.
    Delete(u16),
}

/// Compares the claimed, active pods with `spec.replicas`.
pub fn manage(claimed: usize, replicas: i32) -> Manage {
    let wanted = usize::try_from(replicas).unwrap_or(0);
    let burst = |count: usize| count.min(usize::from(BURST)) as u16;
    match claimed.cmp(&wanted) {
        core::cmp::Ordering::Less => Manage::Create(burst(wanted - claimed)),
        core::cmp::Ordering::Equal => Manage::Nothing,
        core::cmp::Ordering::Greater => Manage::Delete(burst(claimed - wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_burst_at_a_time() {
        for (claimed, replicas, expected) in [
            (0, 0, Manage::Nothing),
            (3, 3, Manage::Nothing),
            (0, 3, Manage::Create(3)),
            (2, 5, Manage::Create(3)),
            (0, 501, Manage::Create(500)),
            (5, 2, Manage::Delete(3)),
            (1000, 0, Manage::Delete(500)),
            (2, -1, Manage::Delete(2)),
        ] {
            assert_eq!(manage(claimed, replicas), expected);
        }
    }
}

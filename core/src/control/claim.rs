//! Claiming: which objects a controller counts as its own, adopts or releases.

/// The controller that claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimer {
    /// It has a deletion timestamp.
    pub deleting: bool,
}

/// An object it may claim, of its own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its controller reference names the claimer; `None` without a controller reference.
    pub owned: Option<bool>,
    /// The claimer's selector selects it.
    pub matches: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
}

/// What becomes of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is the claimer's.
    Claimed,
    /// It is none of the claimer's business.
    Ignored,
    /// An orphan to be adopted.
    Adopt,
    /// Owned, but no longer selected: to be released.
    Release,
}

/// Kubernetes' rules of claiming.
pub const fn claim(claimer: Claimer, candidate: Candidate) -> Claim {
    match candidate {
        Candidate { owned: Some(false), .. } => Claim::Ignored,
        Candidate { owned: Some(true), matches: true, .. } => Claim::Claimed,
        _ if claimer.deleting => Claim::Ignored,
        Candidate { owned: Some(true), .. } => Claim::Release,
        Candidate { owned: None, matches: true, deleting: false } => Claim::Adopt,
        Candidate { owned: None, .. } => Claim::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case() {
        for claimer_deleting in [false, true] {
            for owned in [None, Some(false), Some(true)] {
                for (matches, deleting) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let verdict = claim(
                        Claimer { deleting: claimer_deleting },
                        Candidate { owned, matches, deleting },
                    );
                    let expected = match owned {
                        Some(false) => Claim::Ignored,
                        Some(true) if matches => Claim::Claimed,
                        Some(true) if claimer_deleting => Claim::Ignored,
                        Some(true) => Claim::Release,
                        None if !claimer_deleting && matches && !deleting => Claim::Adopt,
                        None => Claim::Ignored,
                    };
                    assert_eq!(verdict, expected);
                }
            }
        }
    }
}

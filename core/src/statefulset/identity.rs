//! What the pods, claims and revisions of a StatefulSet are called.

use core::fmt;

/// The longest part of a StatefulSet's name in the name of a revision.
const REVISION_PREFIX: usize = 223;

/// The parts of the name of a pod: `<set>-<digits>`, at the last dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The StatefulSet that it is a member of.
    pub set: &'a str,
    digits: &'a str,
}

impl<'a> Parts<'a> {
    /// Takes the name of a pod apart, if it is one of a StatefulSet's.
    pub fn of(name: &'a str) -> Option<Self> {
        let (set, digits) = name.rsplit_once('-')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(Self { set, digits })
    }

    /// Its place in the set; a pod without one is a member of the set, but nobody looks at it.
    pub fn ordinal(&self) -> Option<i32> {
        self.digits.parse().ok()
    }

    /// Whether this is how the ordinal is written: `web-01` is not the name of any pod to be.
    pub fn is_exact(&self) -> bool {
        self.digits == "0" || !self.digits.starts_with('0')
    }
}

/// Whether an ordinal is one of `start … start + replicas − 1`.
pub fn is_in_range(ordinal: i32, start: i32, replicas: i32) -> bool {
    (0..i64::from(replicas)).contains(&(i64::from(ordinal) - i64::from(start)))
}

/// The name of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodName<'a> {
    /// The name of the StatefulSet.
    pub set: &'a str,
    /// The ordinal.
    pub ordinal: i32,
}

impl fmt::Display for PodName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.set, self.ordinal)
    }
}

/// The name of a PersistentVolumeClaim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimName<'a> {
    /// The name of the claim template.
    pub template: &'a str,
    /// The name of the StatefulSet.
    pub set: &'a str,
    /// The ordinal.
    pub ordinal: i32,
}

impl fmt::Display for ClaimName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.template, self.set, self.ordinal)
    }
}

/// The name of a ControllerRevision.
#[derive(Clone, Copy, Debug)]
pub struct RevisionName<'a> {
    /// The name of the StatefulSet, which is cut off where the whole would be too long.
    pub set: &'a str,
    /// The hash of the revision's data.
    pub hash: &'a str,
}

impl fmt::Display for RevisionName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.set.get(..REVISION_PREFIX).unwrap_or(self.set), self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    /// Upstream's GetParentNameAndOrdinal and IsMemberOf.
    #[test]
    fn names_come_apart_at_the_last_dash() {
        for (name, set, ordinal, is_exact) in [
            ("web-0", "web", Some(0), true),
            ("web-12", "web", Some(12), true),
            ("web-1-2", "web-1", Some(2), true),
            ("web--3", "web-", Some(3), true),
            ("-5", "", Some(5), true),
            ("web-007", "web", Some(7), false),
            ("web-00", "web", Some(0), false),
            ("web-2147483647", "web", Some(i32::MAX), true),
            ("web-2147483648", "web", None, true),
            ("web-00000000000000000000000000001", "web", Some(1), false),
            ("web-99999999999999999999999999999", "web", None, true),
        ] {
            let parts = Parts::of(name).unwrap();
            assert_eq!((parts.set, parts.ordinal(), parts.is_exact()), (set, ordinal, is_exact));
        }
        for name in
            ["", "web", "web-", "web-a", "web-1a", "web1", "web-+1", "web-1-", "web-\u{661}"]
        {
            assert_eq!(Parts::of(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_written_comes_apart_again() {
        for (set, ordinal) in [("web", 0), ("web-1", 10), ("a.b-c", i32::MAX)] {
            let name = PodName { set, ordinal }.to_string();
            let parts = Parts::of(&name).unwrap();
            assert_eq!((parts.set, parts.ordinal(), parts.is_exact()), (set, Some(ordinal), true));
        }
    }

    #[test]
    fn the_range_begins_at_the_start_and_has_no_end_to_overflow() {
        for (ordinal, start, replicas, expected) in [
            (0, 0, 1, true),
            (1, 0, 1, false),
            (0, 0, 0, false),
            (1, 2, 3, false),
            (2, 2, 3, true),
            (4, 2, 3, true),
            (5, 2, 3, false),
            (i32::MAX, i32::MAX, i32::MAX, true),
            (i32::MIN, i32::MAX, i32::MAX, false),
            (0, 0, -1, false),
        ] {
            assert_eq!(
                is_in_range(ordinal, start, replicas),
                expected,
                "{ordinal} {start} {replicas}"
            );
        }
    }

    #[test]
    fn claims_and_revisions_have_their_names() {
        let claim = ClaimName { template: "data", set: "web-1", ordinal: 2 };
        assert_eq!(claim.to_string(), "data-web-1-2");
        assert_eq!(RevisionName { set: "web", hash: "7865cc96f7" }.to_string(), "web-7865cc96f7");
        for (length, kept) in [(222, 222), (223, 223), (224, 223), (253, 223)] {
            let set = &String::from("a").repeat(length);
            let name = RevisionName { set, hash: "7865cc96f7" }.to_string();
            assert_eq!(name.len(), kept + 1 + 10);
        }
    }
}

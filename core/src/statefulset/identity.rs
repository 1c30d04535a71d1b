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

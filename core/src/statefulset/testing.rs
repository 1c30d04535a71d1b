//! Tests of decisions as tables: pods in a line of text, steps as another.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::plan::{DeleteReason, End, NewRevision, Plan, Step};
use super::view::{Claims, Counts, Facts, PodFacts, PodManagementPolicy, PodState};
use super::view::{UpdateStrategy, View};
use crate::link::Slot;
use crate::wire::IntOrPercent;

/// Claims by ordinal: all that is not named is in order.
#[derive(Clone, Copy, Default)]
pub(super) struct ClaimTable {
    pub(super) stale: &'static [i32],
    pub(super) wrong: &'static [i32],
    pub(super) missing: &'static [i32],
}

impl Claims for ClaimTable {
    fn is_stale(&self, ordinal: i32) -> bool {
        self.stale.contains(&ordinal)
    }

    fn are_right(&self, ordinal: i32, _: bool) -> bool {
        !self.wrong.contains(&ordinal)
    }

    fn are_missing(&self, ordinal: i32) -> bool {
        self.missing.contains(&ordinal)
    }
}

/// An update is under way; nothing is to be told by the status.
pub(super) fn ordered(replicas: i32) -> Facts {
    let counts = Counts { observed_generation: 1, ..Counts::default() };
    Facts { generation: 1, replicas, status: counts, strategy: partition(0), ..Facts::EMPTY }
}

pub(super) fn parallel(replicas: i32) -> Facts {
    Facts { policy: PodManagementPolicy::Parallel, ..ordered(replicas) }
}

pub(super) fn partition(partition: i32) -> UpdateStrategy {
    UpdateStrategy::RollingUpdate { partition: Some(partition), max_unavailable: None }
}

pub(super) fn with_max_unavailable(set: Facts, max_unavailable: IntOrPercent) -> Facts {
    let max_unavailable = Some(max_unavailable);
    let strategy = UpdateStrategy::RollingUpdate { partition: Some(0), max_unavailable };
    Facts { strategy, honours_max_unavailable: true, ..set }
}

/// One word an ordinal, from 0: `.` is no pod; else the revision, `u`pdate, `c`urrent or a`n`other, and what
/// else is the case: `r`eady but not available, not ready and `p`ending or `b`roken, `e`nded; `t`erminating;
/// no `i`dentity, no `s`torage, not there for its `0` phase.
pub(super) fn pods(words: &str) -> Vec<PodFacts> {
    let words = words.split_whitespace().enumerate().filter(|(_, word)| *word != ".");
    words.map(|(at, word)| pod(at as i32, word)).collect()
}

fn pod(ordinal: i32, word: &str) -> PodFacts {
    let is = |letter: char| word.contains(letter);
    let is_ready = !['p', 'b', 'e', '0'].into_iter().any(is);
    let state = PodState::CREATED.when(!is('0'))
        | PodState::ENDED.when(is('e'))
        | PodState::PENDING.when(is('p'))
        | PodState::READY.when(is_ready)
        | PodState::AVAILABLE.when(is_ready && !is('r'))
        | PodState::TERMINATING.when(is('t'))
        | PodState::CURRENT.when(is('c'))
        | PodState::UPDATED.when(is('u'))
        | PodState::IDENTITY.when(!is('i'))
        | PodState::STORAGE.when(!is('s'));
    PodFacts::new(ordinal, Slot::from_index(ordinal as usize).unwrap(), state)
}

pub(super) fn plan(set: Facts, words: &str, claims: ClaimTable) -> Plan {
    let mut plan = Plan::EMPTY;
    super::decide(&View { set, pods: &pods(words), claims: &claims }, &mut plan).unwrap();
    plan
}

/// Its steps in words, one after the other.
pub(super) fn steps(plan: &Plan) -> String {
    let mut words: Vec<String> = plan.steps.iter().map(describe).collect();
    if plan.end == End::Again {
        words.push("again".to_string());
    }
    words.join(", ")
}

fn describe(step: &Step) -> String {
    let ordinal = step.ordinal();
    match *step {
        Step::FixClaims { is_condemned: false, .. } => format!("claims {ordinal}"),
        Step::FixClaims { is_condemned: true, .. } => format!("condemned claims {ordinal}"),
        Step::Create { revision: NewRevision::Current, .. } => format!("create {ordinal}c"),
        Step::Create { revision: NewRevision::Update, .. } => format!("create {ordinal}u"),
        Step::Update { .. } => format!("update {ordinal}"),
        Step::Delete { reason, lowers_current, .. } => {
            let reason = match reason {
                DeleteReason::Broken => "broken",
                DeleteReason::Ended => "ended",
                DeleteReason::Condemned => "condemned",
                DeleteReason::Outdated => "outdated",
            };
            format!("delete {reason} {ordinal}{}", if lowers_current { "-" } else { "" })
        }
    }
}

/// Each row: a set, its pods, the steps.
pub(super) fn check(rows: &[(Facts, &str, &str)]) {
    for (set, words, expected) in rows {
        let plan = plan(*set, words, ClaimTable::default());
        assert_eq!(steps(&plan), *expected, "{words}: {set:?}");
    }
}

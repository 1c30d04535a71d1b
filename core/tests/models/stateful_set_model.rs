//! One sync of a StatefulSet as a plain model: a list of actions, as Kubernetes goes about it.

use std::collections::BTreeMap;

use picokube_core::statefulset::{DeleteReason, STEPS};
use picokube_core::wire::IntOrPercent;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    None,
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) ordinal: i64,
    pub(crate) phase: Phase,
    pub(crate) ready: bool,
    pub(crate) ready_for_long: bool,
    pub(crate) terminating: bool,
    pub(crate) revision: u8,
    pub(crate) identity: bool,
    pub(crate) storage: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Strategy {
    RollingUpdate(Option<(i64, Option<IntOrPercent>)>),
    OnDelete,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) stale: bool,
    pub(crate) wrong: bool,
    pub(crate) wrong_when_condemned: bool,
    pub(crate) missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) generation: i64,
    pub(crate) replicas: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    pub(crate) current: i64,
    pub(crate) updated: i64,
    pub(crate) current_revision: Option<u8>,
    pub(crate) update_revision: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) replicas: i64,
    pub(crate) start: i64,
    pub(crate) monotonic: bool,
    pub(crate) strategy: Strategy,
    pub(crate) gate: bool,
    pub(crate) heals: bool,
    pub(crate) current: u8,
    pub(crate) update: u8,
    pub(crate) status: Status,
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: BTreeMap<i64, Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    FixClaims { ordinal: i64, condemned: bool },
    Create { ordinal: i64, revision: u8 },
    Update { ordinal: i64 },
    Delete { ordinal: i64, reason: DeleteReason, lowers: bool },
}

impl Pod {
    pub(crate) fn created(&self) -> bool {
        self.phase != Phase::None
    }

    pub(crate) fn running_and_ready(&self) -> bool {
        self.phase == Phase::Running && self.ready
    }

    pub(crate) fn available(&self) -> bool {
        self.ready && self.ready_for_long
    }

    fn unavailable(&self) -> bool {
        !self.available() || self.terminating
    }
}

/// The model: everything that one sync does if all of it succeeds.
pub(crate) struct Sync<'a> {
    state: &'a State,
    replicas: Vec<Pod>,
    condemned: Vec<Pod>,
    actions: Vec<Action>,
}

impl<'a> Sync<'a> {
    pub(crate) fn new(state: &'a State) -> Self {
        let end = state.start + state.replicas;
        let by_ordinal = |ordinal| state.pods.iter().find(|pod| pod.ordinal == ordinal).cloned();
        let replicas = (state.start..end)
            .map(|ordinal| by_ordinal(ordinal).unwrap_or_else(|| state.new_pod(ordinal)))
            .collect();
        let out_of_range = |pod: &&Pod| pod.ordinal < state.start || pod.ordinal >= end;
        let mut condemned: Vec<Pod> = state.pods.iter().filter(out_of_range).cloned().collect();
        condemned.sort_by_key(|pod| -pod.ordinal);
        Self { state, replicas, condemned, actions: Vec::new() }
    }

    pub(crate) fn run(&mut self) {
        if self.state.deleting {
            return;
        }
        self.heal();
        if !self.actions.is_empty() || !self.process_replicas() {
            return;
        }
        if self.process_condemned()
            && let Strategy::RollingUpdate(rolling) = self.state.strategy
        {
            self.update(rolling);
        }
    }

    fn delete(&mut self, pod: &Pod, reason: DeleteReason, lowers: bool) {
        self.actions.push(Action::Delete { ordinal: pod.ordinal, reason, lowers });
    }

    /// Not in Kubernetes.
    fn heal(&mut self) {
        let Strategy::RollingUpdate(rolling) = self.state.strategy else { return };
        let first = self.state.start + rolling.map_or(0, |(partition, _)| partition);
        let busy = self.state.pods.iter().any(|pod| pod.terminating);
        if !self.state.heals || (self.state.monotonic && busy) {
            return;
        }
        for pod in self.replicas.clone().iter().rev() {
            let broken = pod.created() && !pod.terminating && !pod.running_and_ready();
            if broken && pod.revision != self.state.update && pod.ordinal >= first {
                self.delete(pod, DeleteReason::Broken, pod.revision == self.state.current);
                if self.state.monotonic {
                    return;
                }
            }
        }
    }

    fn process_replicas(&mut self) -> bool {
        let monotonic = self.state.monotonic;
        for pod in self.replicas.clone() {
            let ordinal = pod.ordinal;
            let claim = self.state.claims.get(&ordinal).copied().unwrap_or_default();
            if matches!(pod.phase, Phase::Failed | Phase::Succeeded) {
                if !pod.terminating {
                    self.delete(&pod, DeleteReason::Ended, false);
                }
                if monotonic {
                    return false;
                }
                continue;
            }
            if !pod.created() {
                if !claim.stale {
                    let revision = self.state.new_pod(ordinal).revision;
                    self.actions.push(Action::Create { ordinal, revision });
                }
                if monotonic {
                    return false;
                }
                // What was created a moment ago is as it should be.
                continue;
            }
            let mut wrong = claim.wrong;
            if pod.phase == Phase::Pending {
                if claim.missing || claim.wrong {
                    self.actions.push(Action::FixClaims { ordinal, condemned: false });
                }
                wrong = false;
            }
            if monotonic && pod.terminating {
                return false;
            }
            if monotonic && !pod.running_and_ready() {
                return false;
            }
            if monotonic && !pod.available() {
                return false;
            }
            if !pod.identity || !pod.storage || wrong {
                self.actions.push(Action::Update { ordinal });
            }
        }
        true
    }

    fn process_condemned(&mut self) -> bool {
        for pod in self.condemned.clone() {
            if self.state.claims.get(&pod.ordinal).is_some_and(|claim| claim.wrong_when_condemned) {
                self.actions.push(Action::FixClaims { ordinal: pod.ordinal, condemned: true });
            }
        }
        let first_unavailable = self
            .replicas
            .iter()
            .chain(self.condemned.iter().rev())
            .find(|pod| pod.unavailable())
            .map(|pod| pod.ordinal);
        for pod in self.condemned.clone() {
            let is_first = Some(pod.ordinal) == first_unavailable;
            if self.state.monotonic {
                if pod.terminating {
                    return false;
                }
                if !pod.running_and_ready() && !is_first {
                    return false;
                }
                if !pod.available() && !is_first {
                    return false;
                }
                self.delete(&pod, DeleteReason::Condemned, false);
                return false;
            }
            if !pod.terminating {
                self.delete(&pod, DeleteReason::Condemned, false);
            }
        }
        true
    }

    fn update(&mut self, rolling: Option<(i64, Option<IntOrPercent>)>) {
        let state = self.state;
        let (partition, max_unavailable) = rolling.unwrap_or((0, None));
        let targets: Vec<Pod> = self.replicas[partition.min(state.replicas).max(0) as usize..]
            .iter()
            .rev()
            .cloned()
            .collect();
        let outdated = |pod: &&Pod| pod.revision != state.update && !pod.terminating;
        if !state.gate {
            for pod in &targets {
                if outdated(&pod) {
                    self.delete(pod, DeleteReason::Outdated, true);
                    return;
                }
                if pod.unavailable() {
                    return;
                }
            }
            return;
        }
        let most = match max_unavailable {
            None => 1,
            Some(IntOrPercent::Int(number)) => i64::from(number),
            Some(IntOrPercent::Percent(percent)) => {
                (state.replicas as f64 * f64::from(percent) / 100.0).floor() as i64
            }
        };
        let unavailable: Vec<&Pod> = self.replicas.iter().filter(|pod| pod.unavailable()).collect();
        let mut budget = most.max(1) - unavailable.len() as i64;
        if budget <= 0
            && (state.monotonic || !unavailable.iter().copied().any(|pod| outdated(&pod)))
        {
            return;
        }
        if !state.monotonic {
            for pod in targets.iter().filter(outdated).filter(|pod| !pod.available()) {
                self.delete(pod, DeleteReason::Outdated, true);
            }
        }
        for pod in targets.iter().filter(outdated) {
            if budget > 0 && (state.monotonic || pod.available()) {
                self.delete(pod, DeleteReason::Outdated, true);
                budget -= 1;
            }
        }
    }

    /// Where we are more careful than Kubernetes: a pod that is not there is not deleted, and none twice. And
    /// whether there are not too many of them; what comes after those is not looked at.
    pub(crate) fn careful_actions(&self) -> (Vec<Action>, bool) {
        let exists = |ordinal| self.state.pods.iter().any(|pod| pod.ordinal == ordinal);
        let mut careful: Vec<Action> = Vec::new();
        for action in &self.actions {
            if let Action::Delete { ordinal: gone, lowers: also, .. } = *action {
                if !exists(gone) {
                    continue;
                }
                let before = careful.iter_mut().find_map(|action| match action {
                    Action::Delete { ordinal, lowers, .. } if *ordinal == gone => Some(lowers),
                    _ => None,
                });
                if let Some(lowers) = before {
                    *lowers |= also;
                    continue;
                }
            }
            if careful.len() == STEPS {
                return (careful, false);
            }
            careful.push(*action);
        }
        (careful, true)
    }
}

impl State {
    fn new_pod(&self, ordinal: i64) -> Pod {
        let index = ordinal - self.start;
        let of_current = match self.strategy {
            Strategy::RollingUpdate(None) => index < self.status.current,
            Strategy::RollingUpdate(Some((partition, _))) => index < partition,
            Strategy::OnDelete => false,
        };
        Pod {
            ordinal,
            phase: Phase::None,
            ready: false,
            ready_for_long: false,
            terminating: false,
            revision: if of_current { self.current } else { self.update },
            identity: true,
            storage: true,
        }
    }

    /// The status after a sync in which `lowered` outdated pods were deleted.
    pub(crate) fn next_status(&self, lowered: i64) -> Status {
        let count =
            |is: &dyn Fn(&Pod) -> bool| self.pods.iter().filter(|pod| is(pod)).count() as i64;
        let lives = |pod: &Pod| pod.created() && !pod.terminating;
        let mut status = Status {
            generation: self.generation,
            replicas: count(&Pod::created),
            ready: count(&Pod::running_and_ready),
            available: count(&|pod| pod.running_and_ready() && pod.available()),
            current: count(&|pod| lives(pod) && pod.revision == self.current),
            updated: count(&|pod| lives(pod) && pod.revision == self.update),
            current_revision: Some(self.current),
            update_revision: Some(self.update),
        };
        status.current = (status.current - lowered).max(0);
        let all =
            [status.updated, status.ready, status.replicas].map(|count| count == self.replicas);
        if all == [true; 3] && matches!(self.strategy, Strategy::RollingUpdate(_)) {
            status.current = status.updated;
            status.current_revision = status.update_revision;
        }
        status
    }
}

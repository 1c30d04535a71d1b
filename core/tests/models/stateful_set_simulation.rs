//! StatefulSets from beginning to end: plans are carried out in a toy cluster whose pods become Ready and go
//! away at random, while a user changes templates and sizes.
//!
//! `PICOKUBE_STATES` is the number of syncs.

use std::collections::BTreeMap;

use picokube_core::link::Slot;
use picokube_core::statefulset::{
    Claims, Counts, DeleteReason, End, Facts, NewRevision, Plan, PodFacts, PodManagementPolicy,
    PodState, Step, UpdateStrategy, View, decide,
};
use picokube_core::wire::IntOrPercent;

use crate::support::Rng;

const SYNCS: usize = 60_000;
/// Syncs until everything has to be as it should be.
const PATIENCE: usize = 3_000;

struct Pod {
    revision: u8,
    is_ready: bool,
    is_terminating: bool,
}

impl Pod {
    fn is_up(&self) -> bool {
        self.is_ready && !self.is_terminating
    }
}

/// All claims are as they should be.
struct NoClaims;

impl Claims for NoClaims {
    fn is_stale(&self, _: i32) -> bool {
        false
    }

    fn are_right(&self, _: i32, _: bool) -> bool {
        true
    }

    fn are_missing(&self, _: i32) -> bool {
        false
    }
}

struct Cluster {
    rng: Rng,
    set: Facts,
    partition: i32,
    /// The template.
    update: u8,
    /// `status.currentRevision`
    current: Option<u8>,
    /// `status.updateRevision`
    told_update: Option<u8>,
    pods: BTreeMap<i32, Pod>,
    /// A pod that is no longer wanted goes also while a lower one of those is not up.
    was_scaled_down: bool,
    plan: Plan,
}

/// Pods of such a template never become Ready.
fn is_broken(revision: u8) -> bool {
    revision % 3 == 2
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let replaces_broken_pods = rng.chance(2);
        // A pod that breaks below the partition is out of reach of whatever would heal it.
        let partition = if replaces_broken_pods { 0 } else { *rng.pick(&[0, 0, 2, 5]) };
        let max_unavailable =
            *rng.pick(&[None, Some(IntOrPercent::Int(3)), Some(IntOrPercent::Percent(40))]);
        let set = Facts {
            generation: 1,
            replicas: rng.below(9) as i32,
            start: *rng.pick(&[0, 0, 3]),
            policy: *rng.pick(&[PodManagementPolicy::OrderedReady, PodManagementPolicy::Parallel]),
            strategy: UpdateStrategy::RollingUpdate { partition: Some(partition), max_unavailable },
            honours_max_unavailable: rng.chance(2),
            replaces_broken_pods,
            ..Facts::EMPTY
        };
        Self {
            rng,
            set,
            partition,
            update: 0,
            current: None,
            told_update: None,
            pods: BTreeMap::new(),
            was_scaled_down: false,
            plan: Plan::EMPTY,
        }
    }

    fn is_ordered(&self) -> bool {
        self.set.policy == PodManagementPolicy::OrderedReady
    }

    /// One sync, all of which succeeds. Whether anything was done.
    fn sync(&mut self) -> bool {
        let current = self.current.unwrap_or(self.update);
        let pods: Vec<PodFacts> = self
            .pods
            .iter()
            .map(|(&ordinal, pod)| {
                let slot = Slot::from_index(ordinal as usize).unwrap();
                let state = PodState::CREATED
                    | PodState::PENDING.when(!pod.is_ready)
                    | (PodState::READY | PodState::AVAILABLE).when(pod.is_ready)
                    | PodState::TERMINATING.when(pod.is_terminating)
                    | PodState::CURRENT.when(pod.revision == current)
                    | PodState::UPDATED.when(pod.revision == self.update)
                    | PodState::IDENTITY
                    | PodState::STORAGE;
                PodFacts::new(ordinal, slot, state)
            })
            .collect();
        self.set.same_revision = current == self.update;
        self.set.revisions_differ =
            self.current != Some(current) || self.told_update != Some(self.update);
        let mut plan = std::mem::replace(&mut self.plan, Plan::EMPTY);
        decide(&View { set: self.set, pods: &pods, claims: &NoClaims }, &mut plan).unwrap();
        assert_eq!(plan.end, End::Done);
        self.check(&plan);
        for step in plan.steps.clone() {
            match step {
                Step::Create { ordinal, revision } => {
                    let revision = match revision {
                        NewRevision::Current => current,
                        NewRevision::Update => self.update,
                    };
                    let pod = Pod { revision, is_ready: false, is_terminating: false };
                    assert!(self.pods.insert(ordinal, pod).is_none(), "created twice");
                }
                Step::Delete { ordinal, lowers_current, .. } => {
                    self.pods.get_mut(&ordinal).unwrap().is_terminating = true;
                    if lowers_current {
                        plan.status.lower_current();
                    }
                }
                Step::FixClaims { .. } | Step::Update { .. } => panic!("{step:?}"),
            }
        }
        let is_written = plan.status.is_needed();
        if is_written {
            self.set.status = plan.status.counts;
            self.current = Some(if plan.status.is_complete { self.update } else { current });
            self.told_update = Some(self.update);
        }
        let acted = is_written || !plan.steps.is_empty();
        self.plan = plan;
        acted
    }

    /// What must hold of every plan, whatever the state.
    fn check(&self, plan: &Plan) {
        let of = |reason| {
            let has_it = move |step: &&Step| match step {
                Step::Delete { reason: why, .. } => *why == reason,
                _ => false,
            };
            plan.steps.iter().filter(has_it)
        };
        let one_by_one = self.is_ordered() && !self.set.honours_max_unavailable;
        if one_by_one {
            assert!(plan.steps.len() <= 1, "{:?}", plan.steps);
        }
        let is_up = |at| self.pods.get(&at).is_some_and(Pod::is_up);
        for step in &plan.steps {
            let at = step.ordinal();
            match step {
                Step::Create { .. } if self.is_ordered() => {
                    assert_eq!(plan.steps.len(), 1);
                    assert!((self.set.start..at).all(is_up), "{at} before its time");
                }
                Step::Delete { reason: DeleteReason::Condemned, .. } if self.is_ordered() => {
                    assert!(self.set.ordinals().all(is_up), "{at} before its time");
                }
                _ => (),
            }
            if let Step::Delete { .. } = step {
                assert!(!self.pods[&at].is_terminating, "deleted twice");
            }
        }
        for step in of(DeleteReason::Outdated).chain(of(DeleteReason::Broken)) {
            assert!(step.ordinal() >= self.set.start + self.partition, "below the partition");
            assert_ne!(self.pods[&step.ordinal()].revision, self.update);
        }
        assert!(of(DeleteReason::Broken).all(|step| !self.pods[&step.ordinal()].is_ready));
        assert!(self.set.replaces_broken_pods || of(DeleteReason::Broken).count() == 0);
        self.check_availability(of(DeleteReason::Outdated).map(Step::ordinal).collect());
    }

    fn check_availability(&self, gone: Vec<i32>) {
        let range = self.set.start..self.set.start + self.set.replicas;
        let before = self.pods.range(range).filter(|(_, pod)| pod.is_up()).count() as i32;
        let lost = gone.iter().filter(|ordinal| self.pods[ordinal].is_up()).count() as i32;
        match (self.set.honours_max_unavailable, self.is_ordered()) {
            (true, _) => {
                let UpdateStrategy::RollingUpdate { max_unavailable, .. } = self.set.strategy
                else {
                    panic!()
                };
                let most = match max_unavailable {
                    None => 1,
                    Some(IntOrPercent::Int(most)) => most,
                    Some(IntOrPercent::Percent(percent)) => {
                        (self.set.replicas * percent / 100).max(1)
                    }
                };
                let least = (self.set.replicas - most).min(before);
                assert!(before - lost >= least, "{before} - {lost} of {}", self.set.replicas);
            }
            (false, true) => assert!(lost == 0 || before == self.set.replicas && lost == 1),
            // Only one at a time, but whatever lower pods are like.
            (false, false) => assert!(gone.len() <= 1),
        }
    }

    /// What kubelets do in a moment.
    fn live(&mut self) {
        let rng = &mut self.rng;
        self.pods.retain(|_, pod| !(pod.is_terminating && rng.chance(3)));
        for pod in self.pods.values_mut() {
            pod.is_ready |= !is_broken(pod.revision) && rng.chance(3);
        }
        let unsettled = self.pods.values().filter(|pod| !pod.is_up()).count();
        let is_one_by_one = self.is_ordered() && !self.set.honours_max_unavailable;
        if is_one_by_one && !self.was_scaled_down {
            assert!(unsettled <= 1, "{unsettled} pods change at once");
        }
    }

    /// Somebody changes the spec.
    fn meddle(&mut self, may_break: bool) {
        self.set.generation += 1;
        match self.rng.below(3) {
            0 => {
                let before = self.set.replicas;
                self.set.replicas = self.rng.below(9) as i32;
                self.was_scaled_down |= self.set.replicas < before;
            }
            _ => self.update = self.rng.below(7) as u8,
        }
        // Without healing, a broken template stays broken until somebody deletes the pod.
        if is_broken(self.update) && !(may_break && self.set.replaces_broken_pods) {
            self.update -= 1;
        }
    }

    /// Until nothing changes any more. How many syncs that took.
    fn settle(&mut self) -> usize {
        for syncs in 1..PATIENCE {
            if !self.sync() && self.is_settled() {
                return syncs;
            }
            self.live();
        }
        panic!("not settled: {:?}, {:?}", self.set, self.pods.keys());
    }

    fn is_settled(&self) -> bool {
        self.pods.values().all(Pod::is_up)
            && self.pods.keys().copied().eq(self.set.ordinals())
            && self.reached().all(|pod| pod.revision == self.update)
    }

    fn reached(&self) -> impl Iterator<Item = &Pod> {
        self.pods.range(self.set.start + self.partition..).map(|(_, pod)| pod)
    }

    fn check_end(&self) {
        let status = &self.set.status;
        let settled = Counts {
            observed_generation: self.set.generation,
            replicas: self.set.replicas,
            ready: self.set.replicas,
            available: self.set.replicas,
            ..*status
        };
        assert_eq!(*status, settled);
        let updated = self.pods.values().filter(|pod| pod.revision == self.update).count() as i32;
        assert_eq!(status.updated, updated);
        assert!(self.reached().count() as i32 <= updated);
        if updated == self.set.replicas {
            assert_eq!(self.current, Some(self.update));
        }
    }
}

#[test]
fn whatever_a_user_does_it_ends_as_it_should() {
    let syncs = std::env::var("PICOKUBE_STATES").map_or(SYNCS, |syncs| syncs.parse().unwrap());
    let (mut done, mut seed) = (0, 0);
    while done < syncs {
        seed += 1;
        let mut cluster = Cluster::new(seed);
        for _ in 0..cluster.rng.below(6) {
            for _ in 0..cluster.rng.below(40) {
                cluster.sync();
                cluster.live();
                done += 1;
            }
            cluster.meddle(true);
        }
        cluster.meddle(false);
        done += cluster.settle();
        cluster.check_end();
    }
    println!("{done} syncs of {seed} sets");
}

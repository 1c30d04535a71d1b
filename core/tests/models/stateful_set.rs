//! Random states of StatefulSets: the controller agrees with the plain model about each.
//!
//! `PICOKUBE_STATES` is the number of states.

use std::collections::BTreeMap;

use picokube_core::link::Slot;
use picokube_core::statefulset::{
    Claims, Counts, End, Facts, NewRevision, Plan, PodFacts, PodManagementPolicy, PodState, Step,
    UpdateStrategy, View, decide,
};
use picokube_core::wire::IntOrPercent;

use crate::stateful_set_model::{Action, Claim, Phase, Pod, State, Status, Strategy, Sync};
use crate::support::Rng;

const STATES: usize = 30_000;

impl State {
    fn random(rng: &mut Rng) -> Self {
        let most = *rng.pick(&[4, 4, 7, 12, 40]);
        let replicas = rng.below(most) as i64;
        let start = if rng.chance(4) { rng.below(4) as i64 } else { 0 };
        let update = rng.below(2) as u8;
        let named = if rng.chance(5) { None } else { Some(rng.below(2) as u8) };
        let health = *rng.pick(&[2, 5, 30]);
        let (sparse, odd) = (*rng.pick(&[2, 6, 100]), *rng.pick(&[3, 20, 1000]));
        let beyond = *rng.pick(&[0, 0, 1, 4]);
        let mut pods = Vec::new();
        let mut claims = BTreeMap::new();
        for ordinal in 0..start + replicas + beyond {
            if (ordinal >= start || rng.chance(3)) && !rng.chance(sparse) {
                pods.push(Pod::random(rng, ordinal, health, odd));
            }
            let claim = Claim {
                stale: rng.chance(odd),
                wrong: rng.chance(odd),
                wrong_when_condemned: rng.chance(odd),
                missing: rng.chance(odd),
            };
            claims.insert(ordinal, claim);
        }
        let mut state = Self {
            generation: 5,
            deleting: rng.chance(40),
            replicas,
            start,
            monotonic: rng.chance(2),
            strategy: Strategy::random(rng, most),
            gate: rng.chance(2),
            heals: rng.chance(4),
            current: named.unwrap_or(update),
            update,
            status: Status::random(rng, named),
            pods,
            claims,
        };
        if rng.chance(3) {
            // What it was, or only nearly.
            state.status = state.next_status(0);
            state.status.current_revision = named;
            match rng.below(12) {
                0 => state.status.generation += 1,
                1 => state.status.generation -= 1,
                2 => state.status.available += 1,
                3 => state.status.update_revision = None,
                4 => state.status.current -= 1,
                _ => (),
            }
        }
        state
    }

    fn facts(&self) -> Facts {
        let status = &self.status;
        let same = status.current_revision == Some(self.current)
            && status.update_revision == Some(self.update);
        Facts {
            generation: self.generation,
            deleting: self.deleting,
            replicas: self.replicas as i32,
            start: self.start as i32,
            policy: match self.monotonic {
                true => PodManagementPolicy::OrderedReady,
                false => PodManagementPolicy::Parallel,
            },
            strategy: match self.strategy {
                Strategy::OnDelete => UpdateStrategy::OnDelete,
                Strategy::RollingUpdate(rolling) => UpdateStrategy::RollingUpdate {
                    partition: rolling.map(|(partition, _)| partition as i32),
                    max_unavailable: rolling.and_then(|(_, most)| most),
                },
            },
            honours_max_unavailable: self.gate,
            replaces_broken_pods: self.heals,
            same_revision: self.current == self.update,
            status: status.counts(),
            revisions_differ: !same,
        }
    }

    fn pod_facts(&self, pod: &Pod) -> PodFacts {
        let state = PodState::CREATED.when(pod.created())
            | PodState::ENDED.when(matches!(pod.phase, Phase::Failed | Phase::Succeeded))
            | PodState::PENDING.when(pod.phase == Phase::Pending)
            | PodState::READY.when(pod.running_and_ready())
            | PodState::AVAILABLE.when(pod.available())
            | PodState::TERMINATING.when(pod.terminating)
            | PodState::CURRENT.when(pod.revision == self.current)
            | PodState::UPDATED.when(pod.revision == self.update)
            | PodState::IDENTITY.when(pod.identity)
            | PodState::STORAGE.when(pod.storage);
        let slot = Slot::from_index(1_000 + pod.ordinal as usize).unwrap();
        PodFacts::new(pod.ordinal as i32, slot, state)
    }

    fn action(&self, step: &Step) -> Action {
        let check = |pod: Slot| assert_eq!(pod.index(), 1_000 + step.ordinal() as usize);
        let ordinal = i64::from(step.ordinal());
        match *step {
            Step::FixClaims { pod, is_condemned: condemned, .. } => {
                check(pod);
                Action::FixClaims { ordinal, condemned }
            }
            Step::Create { revision: NewRevision::Current, .. } => {
                Action::Create { ordinal, revision: self.current }
            }
            Step::Create { revision: NewRevision::Update, .. } => {
                Action::Create { ordinal, revision: self.update }
            }
            Step::Update { pod, .. } => {
                check(pod);
                Action::Update { ordinal }
            }
            Step::Delete { pod, reason, lowers_current: lowers, .. } => {
                check(pod);
                Action::Delete { ordinal, reason, lowers }
            }
        }
    }
}

impl Pod {
    fn random(rng: &mut Rng, ordinal: i64, health: usize, odd: usize) -> Self {
        let sick = rng.chance(health);
        let phases = [
            Phase::Pending,
            Phase::Pending,
            Phase::Running,
            Phase::Running,
            Phase::Succeeded,
            Phase::Failed,
            Phase::Unknown,
            Phase::None,
        ];
        let phase = if sick { *rng.pick(&phases) } else { Phase::Running };
        let ready = !sick || rng.chance(3);
        Self {
            ordinal,
            phase,
            ready,
            ready_for_long: !sick || rng.chance(2),
            terminating: rng.chance(health * 2),
            revision: *rng.pick(&[0, 0, 0, 1, 1, 1, 2]),
            identity: !rng.chance(odd),
            storage: !rng.chance(odd),
        }
    }
}

impl Strategy {
    fn random(rng: &mut Rng, most: usize) -> Self {
        let max_unavailable = match rng.below(3) {
            0 => None,
            1 => Some(IntOrPercent::Int(rng.below(5) as i32)),
            _ => Some(IntOrPercent::Percent(rng.below(101) as i32)),
        };
        match rng.below(8) {
            0 => Self::OnDelete,
            1 => Self::RollingUpdate(None),
            2..5 => Self::RollingUpdate(Some((0, max_unavailable))),
            _ => Self::RollingUpdate(Some((rng.below(most) as i64, max_unavailable))),
        }
    }
}

impl Status {
    fn random(rng: &mut Rng, current_revision: Option<u8>) -> Self {
        let [replicas, ready, available, current, updated] = [(); 5].map(|()| rng.below(5) as i64);
        let update_revision = Some(rng.below(2) as u8);
        let generation = 4 + rng.below(2) as i64;
        Self {
            generation,
            replicas,
            ready,
            available,
            current,
            updated,
            current_revision,
            update_revision,
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            observed_generation: self.generation,
            replicas: self.replicas as i32,
            ready: self.ready as i32,
            available: self.available as i32,
            current: self.current as i32,
            updated: self.updated as i32,
        }
    }
}

impl Claims for State {
    fn is_stale(&self, ordinal: i32) -> bool {
        self.claims.get(&i64::from(ordinal)).is_some_and(|claim| claim.stale)
    }

    fn are_right(&self, ordinal: i32, is_condemned: bool) -> bool {
        let claim = self.claims.get(&i64::from(ordinal)).copied().unwrap_or_default();
        if is_condemned { !claim.wrong_when_condemned } else { !claim.wrong }
    }

    fn are_missing(&self, ordinal: i32) -> bool {
        self.claims.get(&i64::from(ordinal)).is_some_and(|claim| claim.missing)
    }
}

#[test]
fn syncs_agree_with_the_model() {
    let states = std::env::var("PICOKUBE_STATES").map_or(STATES, |states| states.parse().unwrap());
    let mut rng = Rng::new(10);
    let mut plan = Plan::EMPTY;
    let (mut acted, mut cut, mut written) = (0, 0, 0);
    for number in 0..states {
        let state = State::random(&mut rng);
        let mut sync = Sync::new(&state);
        sync.run();
        let (expected, fits) = sync.careful_actions();

        let pods: Vec<PodFacts> = state.pods.iter().map(|pod| state.pod_facts(pod)).collect();
        decide(&View { set: state.facts(), pods: &pods, claims: &state }, &mut plan).unwrap();
        let actions: Vec<Action> = plan.steps.iter().map(|step| state.action(step)).collect();
        assert_eq!(actions, expected, "state {number}: {state:#?}");
        assert_eq!(plan.end, if fits { End::Done } else { End::Again }, "state {number}");
        assert!(plan.steps.iter().map(Step::phase).is_sorted(), "state {number}");

        let lowers = |action: &&Action| matches!(action, Action::Delete { lowers: true, .. });
        let lowered = expected.iter().filter(lowers).count();
        (0..lowered).for_each(|_| plan.status.lower_current());
        let status = state.next_status(lowered as i64);
        assert_eq!(plan.status.counts, status.counts(), "state {number}: {state:#?}");
        let current = if plan.status.is_complete { state.update } else { state.current };
        assert_eq!(Some(current), status.current_revision, "state {number}: {state:#?}");
        let mut before = state.status;
        before.generation = before.generation.max(status.generation);
        let differs = status != Status { generation: status.generation, ..before }
            || status.generation > state.status.generation;
        assert_eq!(plan.status.is_needed(), differs, "state {number}: {state:#?}");

        acted += usize::from(!actions.is_empty());
        cut += usize::from(!fits);
        written += usize::from(differs);
    }
    println!("{states} states: {acted} with steps, {cut} with too many, {written} with a status");
    assert!(acted > states / 3 && cut > states / 1_000, "{acted} {cut}");
    assert!(written > states / 2 && written < states - states / 100, "{written}");
}

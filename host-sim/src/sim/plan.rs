//! What a run is made of: a cluster, what its users do, what breaks. All of it from one seed.

use picokube_core::manager::Rate;

use crate::random::Random;

use super::clock::Moment;
use super::fault::Fault;
use super::memory::{MOST_LANES, Room};
use super::users_of_sets::SetAction;
use super::workload::Action;

/// A whole run. The same plan gives the same run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Draws everything that is not written here: delays, names, where bytes are cut.
    pub seed: u64,
    /// The cluster.
    pub shape: Shape,
    /// What users do.
    pub actions: Vec<Timed<Action>>,
    /// What breaks.
    pub faults: Vec<Timed<Fault>>,
}

/// Something and when it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// When.
    pub when: When,
    /// What.
    pub what: T,
}

/// What users work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Deployments alone. There is no controller of StatefulSets.
    Deployments,
    /// StatefulSets alone.
    StatefulSets,
    /// Both.
    Both,
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a moment.
    At(Moment),
    /// When the first controller sends its n-th request, lists and watches included.
    Request(u64),
    /// When the n-th event of a watch is sent to the first controller.
    Event(u64),
}

/// The cluster and its controllers.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Deployments that users work with.
    pub deployments: usize,
    /// StatefulSets that users work with.
    pub stateful_sets: usize,
    /// Whether there is a controller of StatefulSets.
    pub with_stateful_sets: bool,
    /// Namespaces they are spread over.
    pub namespaces: usize,
    /// Simulated nodes.
    pub nodes: usize,
    /// Connections for requests.
    pub lanes: usize,
    /// The client-side rate limit.
    pub rate: Option<Rate>,
    /// `Settings::status_lag`
    pub status_lag_millis: u64,
    /// The feature gate `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
    /// The feature gate `MaxUnavailableStatefulSet`.
    pub max_unavailable_stateful_set: bool,
    /// Shortest delay of the network, and how much longer it may be.
    pub delay_micros: (u64, u64),
    /// How fast the controllers' clock runs, in thousandths.
    pub clock_rate: u64,
    /// How much they can hold.
    pub room: Room,
    /// When users and faults come to an end.
    pub horizon: Moment,
    /// How long nothing may be written once everything is as desired, in seconds.
    pub silence_secs: u64,
}

impl Plan {
    /// The plan of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self::draw(seed, Workload::of_seed(seed), None)
    }

    /// The plan of a seed for such work.
    pub fn of_workload(seed: u64, workload: Workload) -> Self {
        Self::draw(seed, workload, None)
    }

    /// The plan of a seed for a cluster of so many Deployments.
    pub fn of_deployments(seed: u64, deployments: usize) -> Self {
        Self::draw(seed, Workload::Deployments, Some(deployments))
    }

    fn draw(seed: u64, workload: Workload, deployments: Option<usize>) -> Self {
        // The plan and the run draw from different sequences, and so do StatefulSets: what is said
        // of the seeds of Deployments stays true.
        let mut random = Random::from_seed(seed ^ 0x005e_ed0f_91a2);
        let mut shape = Shape::draw(&mut random);
        if let Some(deployments) = deployments {
            shape.deployments = deployments;
            shape.room = Room::Wide;
        }
        let mut of_sets = Random::from_seed(seed ^ 0x5e75_0f91_a2b3);
        if workload != Workload::Deployments {
            shape.add_stateful_sets(&mut of_sets);
        }
        let horizon = shape.horizon.as_micros();
        let moment = |random: &mut Random| {
            // Users begin when the controllers have had a chance to start, or before that.
            Moment::from_micros(random.below(horizon * 9 / 10))
        };
        let mut actions = Vec::new();
        if workload != Workload::StatefulSets {
            actions = Action::beginning(&mut random, &shape);
            let more = 3 + random.below(4 + 3 * shape.deployments as u64);
            actions.extend((0..more).flat_map(|_| {
                let at = moment(&mut random);
                Action::draw(&mut random, &shape, at)
            }));
        }
        if workload != Workload::Deployments {
            actions.extend(SetAction::beginning(&mut of_sets, &shape));
            let more = 3 + of_sets.below(6 + 4 * shape.stateful_sets as u64);
            actions.extend((0..more).flat_map(|_| {
                let at = moment(&mut of_sets);
                SetAction::draw(&mut of_sets, &shape, at)
            }));
        }
        if workload == Workload::StatefulSets {
            shape.deployments = 0;
        }
        let kinds = if shape.with_stateful_sets { 6 } else { 3 };
        let sorts = Fault::draw_sorts(&mut random);
        let most = if sorts.is_empty() { 0 } else { 1 + random.below(25) };
        let faults = (0..most).filter_map(|_| {
            let at = moment(&mut random);
            let what = Fault::draw(&mut random, &sorts, kinds)?;
            Some(Timed { when: When::At(at), what })
        });
        let faults = faults.collect();
        Self { seed, shape, actions, faults }
    }

    /// The most boots of controllers that it can lead to.
    pub(super) fn most_boots(&self) -> usize {
        let boots = self.faults.iter().filter(|fault| {
            matches!(
                fault.what,
                Fault::KillBeforeRequest | Fault::KillAfterRequest | Fault::SecondController(_)
            )
        });
        1 + boots.count()
    }
}

impl Workload {
    /// What the users of a seed work with: Deployments alone four times out of ten, StatefulSets
    /// alone or both three times each.
    fn of_seed(seed: u64) -> Self {
        match Random::from_seed(seed ^ 0x10ad_5eed).below(10) {
            0..=3 => Self::Deployments,
            4..=6 => Self::StatefulSets,
            _ => Self::Both,
        }
    }
}

impl Shape {
    fn add_stateful_sets(&mut self, random: &mut Random) {
        self.with_stateful_sets = true;
        self.stateful_sets = [1, 1, 1, 2, 2, 3][random.below(6) as usize];
        self.max_unavailable_stateful_set = random.below(4) == 0;
    }

    fn draw(random: &mut Random) -> Self {
        let deployments = match random.below(10) {
            0..=3 => 1,
            4..=6 => 2,
            7 | 8 => 3,
            _ => 5,
        };
        Self {
            deployments,
            stateful_sets: 0,
            with_stateful_sets: false,
            namespaces: 1 + random.below(deployments.min(2) as u64) as usize,
            nodes: 1 + random.below(3) as usize,
            lanes: 1 + random.below(MOST_LANES as u64) as usize,
            rate: [None, Some(Rate::KUBERNETES), Some(Rate { qps: 50, burst: 100 })]
                [random.below(3) as usize],
            status_lag_millis: [0, 0, 50, 500][random.below(4) as usize],
            terminating_replicas: random.below(4) == 0,
            max_unavailable_stateful_set: false,
            delay_micros: [(200, 500), (1_000, 4_000), (20_000, 60_000), (5, 400_000)]
                [random.below(4) as usize],
            clock_rate: [1000, 1000, 900, 1100][random.below(4) as usize],
            room: if random.below(8) == 0 { Room::Tight } else { Room::Roomy },
            horizon: Moment::from_secs(30 + random.below(270)),
            silence_secs: if random.below(16) == 0 { 600 } else { 90 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_plan() {
        for seed in 0..100 {
            let (one, two) = (Plan::from_seed(seed), Plan::from_seed(seed));
            assert_eq!(format!("{one:?}"), format!("{two:?}"));
        }
        assert_ne!(format!("{:?}", Plan::from_seed(1)), format!("{:?}", Plan::from_seed(2)));
    }

    #[test]
    fn swarms_differ_in_the_sorts_of_their_faults() {
        let faultless = (0..200).filter(|seed| Plan::from_seed(*seed).faults.is_empty()).count();
        assert!((10..70).contains(&faultless), "{faultless} of 200 plans have no faults");
    }
}

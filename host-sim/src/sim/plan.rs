//! What a run is made of: a cluster, what its users do, what breaks. All of it from one seed.

use picokube_core::kind::Kind;
use picokube_core::manager::Rate;
use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::server::Server;
use crate::store::HistoryLimits;

use super::clock::Moment;
use super::controllers::ControllerAction;
use super::device::KINDS;
use super::election::Election;
use super::fault::Fault;
use super::kept::pace;
use super::memory::{MOST_LANES, Room};
use super::users_of_sets::SetAction;
use super::workload::Action;

/// A whole run. The same plan gives the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// How workloads select their objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selectors {
    /// By `matchLabels`, each its own.
    #[default]
    Labels,
    /// By `matchExpressions`, each its own.
    Expressions,
    /// All Deployments of a namespace, and ReplicaSets made by hand, select the same.
    Overlapping,
}

/// What the driver that is shipped speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 over a connection for each watch and each lane.
    Http1,
    /// HTTP/2 over one connection for all.
    Http2,
}

/// How the driver that is shipped is set up, and what carries its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipping {
    /// What it speaks.
    pub protocol: Protocol,
    /// The memory of a client: over HTTP/2, the window of its streams.
    pub buffer: usize,
    /// The memory for what is sent over HTTP/2.
    pub out: usize,
    /// Documents up to this size are written in one go.
    pub page: usize,
    /// Bodies up to this size are made before they are sent.
    pub body: usize,
    /// The largest piece that the network carries at once.
    pub segment: usize,
    /// How much may be under way or unread in a direction.
    pub window: usize,
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// At a moment.
    At(Moment),
    /// When the first controller sends its n-th request, lists and watches included.
    Request(u64),
    /// When the n-th event of a watch is sent to the first controller.
    Event(u64),
}

/// The cluster and its controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Deployments that users work with.
    pub deployments: usize,
    /// StatefulSets that users work with.
    pub stateful_sets: usize,
    /// Whether there is a controller of StatefulSets.
    pub with_stateful_sets: bool,
    /// ReplicationControllers that users work with. Without, there is no controller of them.
    #[serde(default)]
    pub replication_controllers: usize,
    /// Namespaces they are spread over.
    pub namespaces: usize,
    /// Simulated nodes.
    pub nodes: usize,
    /// Connections for requests.
    pub lanes: usize,
    /// The client-side rate limit.
    #[serde(with = "pace")]
    pub rate: Option<Rate>,
    /// `Settings::status_lag`
    pub status_lag_millis: u64,
    /// The feature gate `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
    /// The feature gate `MaxUnavailableStatefulSet`.
    pub max_unavailable_stateful_set: bool,
    /// Shortest delay of the network, and how much longer it may be.
    pub delay_micros: (u64, u64),
    /// How fast the controllers' clock runs, in thousandths, unless there is an election.
    pub clock_rate: u64,
    /// The election that several managers take part in, if there is one.
    pub election: Option<Election>,
    /// The driver that is shipped, if it takes part instead of one of the simulation's own.
    #[serde(default)]
    pub shipping: Option<Shipping>,
    /// How much they can hold.
    pub room: Room,
    /// When users and faults come to an end.
    pub horizon: Moment,
    /// How workloads select.
    #[serde(default)]
    pub selectors: Selectors,
    /// Whether the server keeps `managedFields`.
    #[serde(default)]
    pub managed_fields: bool,
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

    /// The plan of a seed, with two or three managers of which one leads.
    pub fn with_election(seed: u64) -> Self {
        let mut plan = Self::from_seed(seed);
        let mut random = Random::from_seed(seed ^ 0x001e_ade7_5eed);
        let election = Election::draw(&mut random);
        // What is waited for may have come too early by any of them.
        plan.shape.clock_rate = election.clock_rates.iter().copied().max().unwrap_or(1000);
        plan.shape.election = Some(election);
        let horizon = plan.shape.horizon.as_micros();
        // One in eight has an easy life.
        let most = if random.below(8) == 0 { 0 } else { 1 + random.below(12) };
        plan.faults.extend((0..most).map(|_| {
            let at = Moment::from_micros(random.below(horizon * 9 / 10));
            Timed { when: When::At(at), what: Fault::draw_of_election(&mut random) }
        }));
        plan
    }

    /// The same plan with the driver that is shipped, which speaks that, and with faults that only real
    /// connections have.
    #[cfg(feature = "driver")]
    pub fn with_driver(mut self, protocol: Protocol) -> Self {
        let mut random = Random::from_seed(self.seed ^ 0x5a1b_bed0);
        self.shape.shipping = Some(Shipping::draw(&mut random, protocol));
        let horizon = self.shape.horizon.as_micros();
        // One in four has an easy life.
        let most = if random.below(4) == 0 { 0 } else { 1 + random.below(12) };
        self.faults.extend((0..most).map(|_| {
            let at = Moment::from_micros(random.below(horizon * 9 / 10));
            Timed { when: When::At(at), what: Fault::draw_of_driver(&mut random) }
        }));
        self
    }

    fn draw(seed: u64, workload: Workload, deployments: Option<usize>) -> Self {
        // The plan and the run draw from different sequences, and so do StatefulSets: what is said
        // of the seeds of Deployments stays true.
        let mut random = Random::from_seed(seed ^ 0x005e_ed0f_91a2);
        let mut shape = Shape::draw(&mut random);
        if let Some(deployments) = deployments {
            shape.deployments = deployments;
            shape.replication_controllers = 0;
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
        if shape.replication_controllers > 0 {
            actions.extend(ControllerAction::beginning(&mut random, &shape));
            let more = random.below(6 * shape.replication_controllers as u64);
            actions.extend((0..more).flat_map(|_| {
                let at = moment(&mut random);
                ControllerAction::draw(&mut random, &shape, at)
            }));
        }
        let templates = if random.below(3) == 0 { random.below(6) } else { 0 };
        actions.extend((0..templates).map(|_| {
            let at = moment(&mut random);
            let what = Action::draw_template(&mut random, &shape, workload);
            Timed { when: When::At(at), what }
        }));
        let kinds = shape.watched();
        let sorts = Fault::draw_sorts(&mut random);
        let most = if sorts.is_empty() { 0 } else { 1 + random.below(35) };
        let faults = (0..most).filter_map(|_| {
            let at = moment(&mut random);
            let what = Fault::draw(&mut random, &sorts, &kinds)?;
            Some(Timed { when: When::At(at), what })
        });
        Self { seed, shape, actions, faults: faults.collect() }
    }

    /// A server as the plan wants it.
    pub(super) fn new_server(&self, seed: u64) -> Server {
        let limits = HistoryLimits { changes: 4_000, ..HistoryLimits::default() };
        let server = Server::new(seed, limits);
        if self.shape.managed_fields { server } else { server.without_managed_fields() }
    }

    /// How many managers there are from the beginning.
    pub(super) fn managers(&self) -> usize {
        self.shape.election.as_ref().map_or(1, Election::managers)
    }

    /// Whether everything is reset when all trouble ends: all connections are closed, so that controllers
    /// list and watch anew, and look at everything once more. Mostly nobody helps them like that.
    pub(super) fn is_helped(&self) -> bool {
        (self.seed / 2).is_multiple_of(8)
    }

    /// The most boots of controllers that it can lead to.
    pub(super) fn most_boots(&self) -> usize {
        let boots = self.faults.iter().filter(|fault| {
            matches!(
                fault.what,
                Fault::KillBeforeRequest
                    | Fault::KillAfterRequest
                    | Fault::SecondController(_)
                    | Fault::OrderlyEnd
            )
        });
        self.managers() + boots.count()
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

#[cfg(feature = "driver")]
impl Shipping {
    /// From what a board has to what a PC has.
    fn draw(random: &mut Random, protocol: Protocol) -> Self {
        let mut one_of = |sizes: &[usize]| sizes[random.below(sizes.len() as u64) as usize];
        Self {
            protocol,
            buffer: one_of(&[1536, 1536, 2048, 4096, 16_384]),
            out: one_of(&[1536, 2048, 8192]),
            page: one_of(&[0, 256, 512, 2048]),
            body: one_of(&[256, 1024, 4096, 32_768]),
            segment: one_of(&[1460, 1460, 1460, 8192, 536, 64]),
            window: one_of(&[2048, 8192, 65_536]),
        }
    }
}

impl Shape {
    fn add_stateful_sets(&mut self, random: &mut Random) {
        self.with_stateful_sets = true;
        self.stateful_sets = [1, 1, 1, 2, 2, 3][random.below(6) as usize];
        self.max_unavailable_stateful_set = random.below(4) == 0;
    }

    /// The kinds that its controllers watch.
    pub(super) fn watched(&self) -> Vec<Kind> {
        let is_watched = |kind: &Kind| match kind {
            Kind::Pod | Kind::ReplicaSet | Kind::Deployment => true,
            Kind::ReplicationController => self.replication_controllers > 0,
            _ => self.with_stateful_sets,
        };
        KINDS.into_iter().filter(is_watched).collect()
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
            replication_controllers: [0, 0, 0, 1, 2][random.below(5) as usize],
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
            election: None,
            shipping: None,
            room: if random.below(8) == 0 { Room::Tight } else { Room::Roomy },
            selectors: match random.below(6) {
                0 | 1 => Selectors::Expressions,
                2 => Selectors::Overlapping,
                _ => Selectors::Labels,
            },
            managed_fields: random.below(4) == 0,
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

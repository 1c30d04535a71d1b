//! Several managers of which one leads: who takes part, and what users do to the Lease.

use http::Method;
use picokube_core::leader_election::LeaderElection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::random::Random;
use crate::server::request::Request;

use super::trace::Actor;
use super::world::{Happening, World};

/// How slow or fast a clock may be, in thousandths.
const CLOCK_RATES: [u64; 5] = [900, 950, 1000, 1050, 1100];
/// The slowest of them.
const SLOWEST: u64 = CLOCK_RATES[0];
/// Somebody leads so long after all trouble has ended, by the own clocks.
const LEADS_WITHIN_MILLIS: u64 = 24_000;
/// Where nobody resets connections, they rest so long at most after what has failed just before, and what
/// was lost is waited for half as long.
const RESTS_MILLIS: u64 = 10_000;
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// An election between managers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Election {
    /// How fast the clock of each runs, in thousandths.
    pub clock_rates: Vec<u64>,
}

/// What a user does to the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseEdit {
    /// Deletes it.
    Delete,
    /// Takes the holder out, as who gives it back does.
    Release,
    /// Makes somebody else the holder, who does not exist.
    GiveToNobody,
    /// Makes the manager of this number the holder, if it runs.
    GiveTo(u8),
    /// Gives it another duration.
    Duration(u8),
    /// Puts a label on it, which concerns nobody.
    Label(u8),
}

impl Election {
    /// Two or three managers.
    pub(super) fn draw(random: &mut Random) -> Self {
        let managers = 2 + random.below(2);
        let rate = |_| CLOCK_RATES[random.below(CLOCK_RATES.len() as u64) as usize];
        Self { clock_rates: (0..managers).map(rate).collect() }
    }

    /// How many take part.
    pub fn managers(&self) -> usize {
        self.clock_rates.len()
    }

    /// What a manager is started with. Every boot has an identity of its own.
    pub(super) fn settings(device: usize, boot: u64) -> LeaderElection<'static> {
        let identity = format!("manager-{device}_{boot}").leak();
        LeaderElection { identity, ..LeaderElection::DEFAULT }
    }
}

impl LeaseEdit {
    pub(super) fn draw(random: &mut Random) -> Self {
        let number = random.below(3) as u8;
        match random.below(8) {
            0 | 1 => Self::Delete,
            2 => Self::Release,
            3 => Self::GiveToNobody,
            4 => Self::GiveTo(number),
            5 | 6 => Self::Duration([1, 5, 60][usize::from(number)]),
            _ => Self::Label(number),
        }
    }
}

/// Whether a request is about the Lease or tells of it.
pub(super) fn is_of_election(path: &str) -> bool {
    path.contains("/leases") || path.starts_with("/api/v1/namespaces/kube-system/events")
}

impl World<'_> {
    /// The Lease as it is stored.
    pub(super) fn lease(&mut self) -> Option<Value> {
        let request = Request::new(Method::GET, &format!("{LEASES}/picokube"));
        let answer = self.server.handle(self.now.wall(), &request);
        (answer.status == 200).then(|| answer.into_value())
    }

    /// A user does something to the Lease.
    pub(super) fn edit_lease(&mut self, edit: LeaseEdit) {
        let spec = match edit {
            LeaseEdit::Delete => return self.change_lease(Method::DELETE, &json!({})),
            LeaseEdit::Release => json!({"holderIdentity": null, "leaseDurationSeconds": 1}),
            LeaseEdit::GiveToNobody => json!({"holderIdentity": "nobody"}),
            LeaseEdit::GiveTo(number) => {
                let device = self.devices.get(usize::from(number)).and_then(Option::as_ref);
                let elector = device.and_then(|device| device.manager.elector());
                let Some(elector) = elector else { return };
                json!({"holderIdentity": elector.settings().identity})
            }
            LeaseEdit::Duration(seconds) => json!({"leaseDurationSeconds": seconds}),
            LeaseEdit::Label(number) => {
                let labels = json!({"labels": {"n": number.to_string()}});
                return self.change_lease(Method::PATCH, &json!({"metadata": labels}));
            }
        };
        self.change_lease(Method::PATCH, &json!({"spec": spec}));
    }

    fn change_lease(&mut self, method: Method, body: &Value) {
        self.leadership.meddled(self.now);
        let request = Request::new(method, &format!("{LEASES}/picokube"))
            .with_body("application/merge-patch+json", body.to_string());
        let answer = self.server.handle(self.now.wall(), &request);
        self.note(Actor::User, format_args!("does {body} to the Lease: {}", answer.status));
        self.observe(Actor::User);
    }

    /// All trouble has ended: a Lease that says that nobody else may lead for long does not any more.
    pub(super) fn put_election_right(&mut self) {
        if self.plan.shape.election.is_none() {
            return;
        }
        let lasts = |lease: &Value| lease["spec"]["leaseDurationSeconds"].as_i64();
        if self.lease().as_ref().and_then(lasts).is_some_and(|seconds| seconds > 15) {
            self.edit_lease(LeaseEdit::Duration(15));
        }
        // By the slowest clock, and with the way of some requests.
        let rests = if self.plan.is_helped() { 0 } else { RESTS_MILLIS };
        let micros = (LEADS_WITHIN_MILLIS + rests) * 1_000 * 1_000 / SLOWEST + 100_000;
        self.agenda.plan(self.now.plus_micros(micros), Happening::SomebodyLeads);
    }

    /// By now one of the managers leads, and no other.
    pub(super) fn somebody_leads(&mut self) {
        let leaders: Vec<usize> = self
            .devices
            .iter()
            .flatten()
            .filter(|device| device.manager.leads())
            .map(|device| device.number)
            .collect();
        if leaders.len() != 1 {
            let holder = self.lease().map(|lease| lease["spec"].clone());
            let detail = format!("{leaders:?} lead; the Lease says {holder:?}");
            self.violate("somebody leads soon after trouble ends", detail);
        }
    }
}

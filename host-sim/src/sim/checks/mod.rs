//! What must hold at every step, one property a file.
//!
//! Some properties are about what a controller decides: they look at a request when it leaves,
//! together with the cache that it was decided on. They hold whatever the network does. Others
//! are about what becomes of the cluster: they look at every change of an object, and at who made
//! it.

mod bases;
mod born;
mod causes;
mod creations;
mod deletions;
pub(in crate::sim) mod deployments;
mod events;
mod leadership;
mod looks;
mod model;
mod own;
mod ownership;
mod past;
mod recreate;
mod revisions;
mod rolling;
mod selector;
mod sets;
mod statuses;
mod wanted;
mod workers;

use std::collections::BTreeMap;

use bytes::Bytes;
use picokube_core::link::Slot;
use picokube_core::manager::{Body, Failure, Make, Method, Request, Ticket};
use picokube_core::store::{Cache, Entry, Kind, Pod, ReplicaSet, Table};
use picokube_core::wire::Uid;
use serde_json::Value;

use crate::server::Server;
use crate::server::request::Request as HttpRequest;
use crate::store::{ChangeKind, Resource, ResourceId};
use crate::time::Timestamp;

use super::clock::Moment;
use super::device::Device;
use super::operation::{Operation, Verb};
use super::plan::Plan;
use super::trace::Actor;

use deployments::Act;
pub(super) use leadership::{Leadership, Leaving};
pub(super) use model::{Change, Facts, Model};
use own::Own;
pub(super) use past::Basis;
use past::View;
use sets::Sets;
pub(super) use sets::names;

/// What is always looked at.
const RESOURCES: [&str; 3] = ["deployments", "replicasets", "pods"];
/// Likewise, with StatefulSets.
const OF_SETS: [&str; 3] = ["statefulsets", "controllerrevisions", "persistentvolumeclaims"];
/// Likewise, with ReplicationControllers.
const OF_CONTROLLERS: [&str; 1] = ["replicationcontrollers"];

/// The moment at which a request leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instant {
    pub(super) now: Moment,
    /// The latest that the controller may take the time to be.
    pub(super) wall: Timestamp,
    /// The server's newest version.
    pub(super) version: u64,
}

/// A property that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub property: &'static str,
    /// What was seen.
    pub detail: String,
    /// When.
    pub at: Moment,
}

/// Whether a property holds; if not, which it is and what was seen.
pub(super) type Verdict = Result<(), (&'static str, String)>;

/// Everything that is checked, and what the checks know.
pub(super) struct Checks {
    /// Resources that are looked at, in this order.
    resources: Vec<(ResourceId, &'static str)>,
    model: Model,
    flights: Flights,
    /// Requests that are to be sent again because the server has asked for it: nobody decides
    /// about them anew.
    postponed: Flights,
    wanted: wanted::Wanted,
    rolling: rolling::Rolling,
    causes: causes::Causes,
    born: born::Born,
    looks: looks::Looks,
    sizes: events::Sizes,
    sets: Sets,
    bases: bases::Bases,
    own: Own,
    /// What the request at hand may have been decided on.
    basis: Option<Basis>,
    /// Whether its controller awaits the answer.
    is_awaited: bool,
    /// It may have been decided on anything: of StatefulSets too many histories would have to be tried.
    is_anything: bool,
    /// Answers that are being told.
    answers: Vec<(usize, Ticket, Bytes)>,
    /// Changes that were judged, by resource and by what was done.
    judged: BTreeMap<(&'static str, &'static str), u64>,
}

/// A request that leaves a controller.
pub(super) struct Issued<'i, 'm> {
    pub(super) device: usize,
    pub(super) operation: &'i Operation,
    pub(super) request: &'i Request,
    /// The body, where it is a small document.
    pub(super) document: &'i str,
    /// What the controller knows.
    pub(super) cache: &'i Cache<'m>,
    pub(super) now: Moment,
}

/// What [`Checks::observe`] has found.
pub(super) struct Found {
    pub(super) verdict: Verdict,
    /// What happened, for the trace.
    pub(super) lines: Vec<String>,
}

/// A ReplicaSet or a ReplicationController, as a controller knows it.
type Keeper = (Kind, Slot);
const KEEPERS: [Kind; 2] = [Kind::ReplicaSet, Kind::ReplicationController];

/// Where ReplicaSets and ReplicationControllers are cached, which are kept alike.
trait Tables<'m> {
    fn table_of(&self, kind: Kind) -> &Table<'m, ReplicaSet>;
}

impl<'m> Tables<'m> for Cache<'m> {
    fn table_of(&self, kind: Kind) -> &Table<'m, ReplicaSet> {
        match kind {
            Kind::ReplicationController => &self.replication_controllers,
            _ => &self.replica_sets,
        }
    }
}

/// Requests that are under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Vec<Flight>);

/// A request that is under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    device: usize,
    ticket: Ticket,
    sent: Moment,
    pub(super) operation: Operation,
    document: String,
    /// The owner of the pod that is created or deleted.
    owner: Option<Uid>,
    /// What it may have been decided on.
    basis: Option<Basis>,
    /// From when on it is sent again, if the server has asked for that.
    again_from: Option<Moment>,
}

impl Checks {
    pub(super) fn new(server: &Server, plan: &Plan) -> Self {
        let id = |plural: &str| {
            let at = server.stored_kinds().iter().position(|kind| kind.plural == plural);
            ResourceId(at.unwrap_or(0) as u16)
        };
        let of_sets = OF_SETS.into_iter().filter(|_| plan.shape.with_stateful_sets);
        let has_controllers = plan.shape.replication_controllers > 0;
        let of_controllers = OF_CONTROLLERS.into_iter().filter(|_| has_controllers);
        let looked_at = RESOURCES.into_iter().chain(of_sets).chain(of_controllers);
        Self {
            resources: looked_at.map(|plural| (id(plural), plural)).collect(),
            model: Model::default(),
            sets: Sets::new(plan),
            flights: Flights::default(),
            postponed: Flights::default(),
            wanted: wanted::Wanted::default(),
            rolling: rolling::Rolling::default(),
            causes: causes::Causes::default(),
            born: born::Born::default(),
            looks: looks::Looks::default(),
            sizes: events::Sizes::default(),
            bases: bases::Bases::default(),
            own: Own::default(),
            basis: None,
            is_awaited: false,
            is_anything: false,
            answers: Vec::new(),
            judged: BTreeMap::new(),
        }
    }

    /// Whether a resource is looked at.
    pub(super) fn looks_at(&self, plural: &str) -> bool {
        self.resources.iter().any(|(_, known)| *known == plural)
    }

    /// What is stored of a resource that the checks know.
    pub(super) fn resource<'s>(&self, server: &'s Server, plural: &str) -> &'s Resource {
        let id = self.resources.iter().find(|(_, known)| *known == plural);
        server.store().resource(id.map_or(self.resources[0].0, |(id, _)| *id))
    }

    /// The cluster as it is.
    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// A controller has booted: it knows nothing, and nothing of it is under way.
    pub(super) fn booted(&mut self, device: usize) {
        self.died(device);
    }

    /// A controller has died.
    pub(super) fn died(&mut self, device: usize) {
        self.flights.0.retain(|flight| flight.device != device);
        self.postponed.0.retain(|flight| flight.device != device);
        self.wanted.forget(device);
        self.rolling.forget(device);
        self.causes.forget(device);
        self.bases.forget(device);
        self.own.forget(device);
        self.answers.retain(|(of, ..)| *of != device);
        self.born.forget(device);
        self.looks.forget(device);
        self.sets.forget(device);
    }

    /// A controller opens a list or a watch.
    pub(super) fn opens(&self, target: &str) -> Verdict {
        looks::check_opening(target)
    }

    /// A request leaves a controller.
    pub(super) fn issued(
        &mut self,
        device: &Device<'_>,
        operation: &Operation,
        request: &Request,
        document: &str,
        at: Instant,
    ) -> (Basis, Verdict) {
        let number = device.number;
        let cache = device.manager.cache();
        let issued = Issued { device: number, operation, request, document, cache, now: at.now };
        self.wanted.note(&issued);
        self.rolling.note(&issued);
        self.born.note(&issued, &self.model);
        let flight = Flight {
            device: number,
            ticket: request.ticket,
            sent: at.now,
            operation: operation.clone(),
            document: document.to_owned(),
            owner: issued.owner(),
            basis: None,
            again_from: None,
        };
        // One that looks the same may leave before its time has come: another pod of a burst.
        let before = self.postponed.take(|postponed| {
            postponed.is_same_as(&flight) && postponed.again_from.is_some_and(|from| from <= at.now)
        });
        let is_again = before.is_some();
        let is_held_up = self.postponed.of(number).next().is_some();
        let told = &device.told;
        let of_sets = self.sets.issued(&self.model, &issued, told, at, is_again, is_held_up);
        let basis = of_sets.unwrap_or_else(|| match before.and_then(|before| before.basis) {
            Some(before) => Basis { until: at.version, wall: at.wall, ..before },
            None => {
                let there_again = self.own.there_again(number);
                self.bases.issued(&self.model, &issued, told, there_again, at)
            }
        });
        let lately = self.bases.lately(number, told, at.now);
        let path = request.target.split('?').next().unwrap_or_default();
        let basis = Basis { lately, answered: self.causes.of(number, path), ..basis };
        let flight = Flight { basis: Some(basis.clone()), ..flight };
        if is_again {
            self.flights.0.push(flight);
            return (basis, Ok(()));
        }
        let verdict = workers::check(&self.flights, &issued, &self.model)
            .and_then(|()| self.looks.check(device, &issued))
            .and_then(|()| self.check_creation(&issued))
            .and_then(|()| deletions::check(&self.wanted, &self.flights, &issued))
            .and_then(|()| self.rolling.check(&issued))
            .and_then(|()| recreate::check(&self.rolling, &issued))
            .and_then(|()| ownership::check_claim(&issued))
            .and_then(|()| revisions::check(&issued));
        self.flights.0.push(flight);
        (basis, verdict)
    }

    /// A ReplicaSet that has gone may be told of again, and get another worker while the last
    /// requests of the first one are under way.
    fn check_creation(&self, issued: &Issued<'_, '_>) -> Verdict {
        let Body::Splice(splice) = &issued.request.body else { return Ok(()) };
        if !matches!(splice.make, Make::Pod { .. }) {
            return Ok(());
        }
        if self.model.gone.contains_key(&splice.uid.to_string()) {
            return Ok(());
        }
        creations::check(&self.wanted, &self.flights, &self.born, issued)
    }

    /// A controller has been told of a kind up to a version: by an event, or by a list of all there were.
    pub(super) fn told(&mut self, device: usize, kind: Kind, version: u64, by_list: bool) {
        if kind == Kind::Pod {
            self.own.told(device, version, by_list, &self.model.past);
        }
    }

    /// The server has asked a controller to send its request again later, not before then by any clock.
    pub(super) fn postponed(&mut self, device: usize, ticket: Ticket, from: Moment) {
        let flight = self.flights.take(|flight| flight.device == device && flight.ticket == ticket);
        self.postponed.0.extend(flight.map(|it| Flight { again_from: Some(from), ..it }));
        self.sets.hold_up(device);
    }

    /// A controller begins to be told that its request is done.
    pub(super) fn done(&mut self, device: usize, ticket: Ticket, body: Bytes) {
        self.answers.push((device, ticket, body));
    }

    /// A controller has been told that its request is done.
    fn knows(&mut self, device: usize, request: &Request, body: &[u8]) {
        self.born.done(device, request, body);
        self.own.done(device, request, body);
        // What it has only looked at is as it was.
        if request.method == Method::Patch
            && let Some(version) = super::stream::version_in(body)
        {
            let path = request.target.split('?').next().unwrap_or_default();
            self.causes.answered(device, path, version);
        }
    }

    /// A request of a controller has ended.
    pub(super) fn ended(
        &mut self,
        device: &Device<'_>,
        request: &Request,
        end: Result<(), Failure>,
        now: Moment,
    ) {
        let number = device.number;
        let is_it = |flight: &Flight| flight.device == number && flight.ticket == request.ticket;
        if let Some(flight) = self.flights.take(is_it) {
            self.bases.ended(number, flight.sent, now);
        }
        let is_it = |(of, ticket, _): &(usize, Ticket, Bytes)| {
            *of == device.number && *ticket == request.ticket
        };
        let answer = self.answers.iter().position(is_it).map(|at| self.answers.swap_remove(at));
        if let (Ok(()), Some((number, _, body))) = (end, &answer) {
            self.knows(*number, request, body);
        }
        if end.is_err() || answer.is_none() {
            self.own.lost(device.number, request);
        }
    }

    /// A request of a controller arrives of which nobody knows what it was decided on, nor whether its
    /// controller awaits an answer.
    pub(super) fn arrives_unknown(&mut self, basis: Basis) {
        self.arrives(Some(basis), false);
        self.is_anything = true;
    }

    /// A request arrives: of a controller that awaits the answer, or has died or given that up meanwhile.
    pub(super) fn arrives(&mut self, basis: Option<Basis>, is_awaited: bool) {
        self.basis = basis;
        self.is_awaited = is_awaited;
    }

    /// The server has carried out a write of a controller.
    pub(super) fn wrote(&mut self, http: &HttpRequest, changed: bool) -> Verdict {
        self.sizes.check(http, &self.model)?;
        match &self.basis {
            Some(basis) if !changed => causes::check(&self.model, basis, http),
            _ => Ok(()),
        }
    }

    /// Objects have changed.
    pub(super) fn observe(
        &mut self,
        server: &Server,
        actor: Actor,
        since: u64,
        now: Moment,
    ) -> Found {
        let mut found = Found { verdict: Ok(()), lines: Vec::new() };
        for at in 0..self.resources.len() {
            let (id, plural) = self.resources[at];
            let changes = server.store().resource(id).changes_after(since);
            for change in changes.into_iter().flatten() {
                let how = match change.kind {
                    ChangeKind::Added => "appears",
                    ChangeKind::Modified => "changes",
                    ChangeKind::Deleted => "is gone",
                };
                let entry = &change.entry;
                let seen = self.model.apply(plural, change, now);
                seen.after.iter().for_each(|after| self.sizes.note(after));
                let told = seen.told();
                found.lines.push(format!("{plural}/{} {how} @{}{told}", entry.key, entry.revision));
                if matches!(actor, Actor::Controller(_)) {
                    *self.judged.entry((plural, seen.done())).or_default() += 1;
                }
                if found.verdict.is_ok() {
                    found.verdict = self.judge(actor, &seen);
                }
                if self.is_awaited {
                    self.own.note(actor, &seen, entry.revision);
                }
            }
        }
        found
    }

    /// Changes of controllers that were judged, by resource and by what was done.
    pub(super) fn judged(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.judged.clone()
    }

    fn judge(&self, actor: Actor, change: &Change) -> Verdict {
        let (Actor::Controller(device), Some(basis)) = (actor, &self.basis) else { return Ok(()) };
        let view = View::new(&self.model.past, basis);
        statuses::check(view.lately(), change)?;
        ownership::check(&self.model, change)?;
        revisions::check_history(change)?;
        if !self.is_anything {
            self.sets.check(view, &self.model, change)?;
        }
        deployments::check(Act { view, own: &self.own, device }, change)
    }
}

impl Issued<'_, '_> {
    /// The pods of a ReplicaSet or ReplicationController that count, as the controller knows them.
    fn claimed(&self, (kind, set): Keeper) -> impl Iterator<Item = (Slot, Entry<'_, Pod>)> {
        let cache = self.cache;
        let rs = cache.table_of(kind).get(set);
        let is_claimed = move |pod: &Entry<'_, Pod>| {
            let labels = pod.record.labels;
            let selects = rs.is_some_and(|rs| rs.record.selector.matches(cache.texts, labels));
            pod.record.is_active() && selects
        };
        cache.pods_of(kind, set).filter(move |(_, pod)| is_claimed(pod))
    }

    /// The ReplicaSet or ReplicationController with this uid.
    fn keeper(&self, uid: Uid) -> Option<Keeper> {
        KEEPERS.into_iter().find_map(|kind| Some((kind, self.cache.table_of(kind).find_uid(uid)?)))
    }

    /// The owner of the pod that is created or deleted.
    fn owner(&self) -> Option<Uid> {
        match &self.request.body {
            Body::Splice(splice) => Some(splice.uid),
            Body::Empty | Body::Document if self.operation.is(Verb::Delete, "pods") => {
                let (kind, set) = deletions::owner_of_pod(self)?;
                self.cache.table_of(kind).get(set).map(|set| set.uid())
            }
            Body::Empty | Body::Document => None,
        }
    }
}

impl Flight {
    /// Whether both do the same to the same object.
    fn is_same_as(&self, other: &Self) -> bool {
        self.device == other.device
            && self.operation == other.operation
            && self.says_the_same_as(other)
            // The pod that is deleted may have gone meanwhile.
            && (self.owner == other.owner || self.operation.verb == Verb::Delete)
    }

    /// A document is written anew when it is sent again. If it names the version that it is about, the server
    /// takes it only if nothing has changed since.
    fn says_the_same_as(&self, other: &Self) -> bool {
        let [one, other] = [self, other].map(|it| (it.version(), &it.document));
        if one.0.is_some() { one.0 == other.0 } else { one.1 == other.1 }
    }

    fn version(&self) -> Option<String> {
        let document: Value = serde_json::from_str(&self.document).ok()?;
        Some(document["metadata"]["resourceVersion"].as_str()?.to_owned())
    }
}

impl Flights {
    /// Those of one controller.
    fn of(&self, device: usize) -> impl Iterator<Item = &Flight> {
        self.0.iter().filter(move |flight| flight.device == device)
    }

    /// Those of one controller that do this to pods of that owner.
    fn of_owner(&self, device: usize, verb: Verb, owner: Uid) -> impl Iterator<Item = &Flight> {
        let is_it = move |flight: &&Flight| {
            flight.owner == Some(owner) && flight.operation.is(verb, "pods")
        };
        self.of(device).filter(is_it)
    }

    fn take(&mut self, is_it: impl Fn(&Flight) -> bool) -> Option<Flight> {
        let at = self.0.iter().position(is_it)?;
        Some(self.0.remove(at))
    }
}

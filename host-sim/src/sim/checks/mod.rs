//! What must hold at every step, one property a file.
//!
//! Some properties are about what a controller decides: they look at a request when it leaves,
//! together with the cache that it was decided on. They hold whatever the network does. Others
//! are about what becomes of the cluster: they look at every change of an object, and at who made
//! it.

mod born;
mod causes;
mod creations;
mod deletions;
mod events;
mod looks;
mod model;
mod ownership;
mod past;
mod recreate;
mod revisions;
mod rolling;
mod sets;
mod statuses;
mod templates;
mod wanted;
mod workers;

use picokube_core::link::Slot;
use picokube_core::manager::{Body, Failure, Make, Request, Ticket};
use picokube_core::store::{Cache, Entry, Kind, Pod};
use picokube_core::wire::Uid;

use crate::server::Server;
use crate::server::request::Request as HttpRequest;
use crate::store::{ChangeKind, Resource, ResourceId};
use crate::time::Timestamp;

use super::clock::Moment;
use super::device::Device;
use super::fault::Fault;
use super::operation::{Operation, Verb};
use super::plan::Plan;
use super::trace::Actor;

pub(super) use model::{Change, Facts, Model};
pub(super) use past::Basis;
use past::Past;
use sets::Sets;
pub(super) use sets::names;

/// What is looked at; the first three without StatefulSets.
const RESOURCES: [&str; 6] = [
    "deployments",
    "replicasets",
    "pods",
    "statefulsets",
    "controllerrevisions",
    "persistentvolumeclaims",
];

/// The moment at which a request leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instant {
    pub(super) now: Moment,
    /// What the server's clock shows.
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
    /// Whether controllers may work on what is no longer so: a second one, or old lists.
    views_may_differ: bool,
    /// Whether whoever sent the request at hand has given it up: it may come after what was sent
    /// instead.
    is_overtaken: bool,
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

/// Requests that are under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Vec<Flight>);

/// A request that is under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    device: usize,
    ticket: Ticket,
    pub(super) operation: Operation,
    document: String,
    /// The owner of the pod that is created or deleted.
    owner: Option<Uid>,
    /// The version of its object that the controller knew.
    knew: Option<u64>,
}

impl Checks {
    pub(super) fn new(server: &Server, plan: &Plan) -> Self {
        let id = |plural: &str| {
            let at = server.stored_kinds().iter().position(|kind| kind.plural == plural);
            ResourceId(at.unwrap_or(0) as u16)
        };
        let confuses = |fault: Fault| {
            matches!(
                fault,
                Fault::SecondController(_) | Fault::OldLists(_) | Fault::WrongClock { .. }
            )
        };
        let looked_at: &[&'static str] = match plan.shape.with_stateful_sets {
            true => &RESOURCES,
            false => &RESOURCES[..3],
        };
        Self {
            resources: looked_at.iter().map(|plural| (id(plural), *plural)).collect(),
            model: Model {
                past: plan.shape.with_stateful_sets.then(Past::default),
                ..Model::default()
            },
            sets: Sets::new(plan),
            flights: Flights::default(),
            postponed: Flights::default(),
            wanted: wanted::Wanted::default(),
            rolling: rolling::Rolling::default(),
            causes: causes::Causes::default(),
            born: born::Born::default(),
            looks: looks::Looks::default(),
            sizes: events::Sizes::default(),
            is_overtaken: false,
            views_may_differ: plan.faults.iter().any(|fault| confuses(fault.what)),
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
        self.causes.excuse(device);
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
            operation: operation.clone(),
            document: document.to_owned(),
            owner: issued.owner(),
            knew: issued.known_version(),
        };
        let is_again = self.postponed.take(|postponed| postponed.is_same_as(&flight)).is_some();
        let is_held_up = self.postponed.of(number).next().is_some();
        let basis = self.sets.issued(&self.model, &issued, &device.told, at, is_again, is_held_up);
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

    /// The server has asked a controller to send its request again later.
    pub(super) fn postponed(&mut self, device: usize, ticket: Ticket) {
        let flight = self.flights.take(|flight| flight.device == device && flight.ticket == ticket);
        self.postponed.0.extend(flight);
        self.sets.hold_up(device);
    }

    /// A controller is told that its request is done.
    pub(super) fn done(&mut self, device: usize, request: &Request, body: &[u8]) {
        self.born.done(device, request, body);
    }

    /// A request of a controller has ended.
    pub(super) fn ended(
        &mut self,
        device: &Device<'_>,
        request: &Request,
        end: Result<(), Failure>,
    ) {
        self.flights.remove(device.number, request.ticket);
        if end.is_err() {
            let path = request.target.split('?').next().unwrap_or_default();
            self.causes.failed(device.number, path);
        }
    }

    /// A request arrives. What it does is judged with leniency if its sender no longer waits for
    /// it: he knows nothing of it, and may have sent another one since.
    pub(super) fn arrives(&mut self, is_overtaken: bool, basis: Option<Basis>) {
        self.is_overtaken = is_overtaken;
        self.sets.arrives(basis);
    }

    /// The server has carried out a write of a controller.
    pub(super) fn wrote(&mut self, device: usize, http: &HttpRequest, changed: bool) -> Verdict {
        self.sizes.check(http, &self.model)?;
        if self.views_may_differ || self.is_overtaken || self.has_changed_since(device, http) {
            return Ok(());
        }
        if self.sets.may_change_nothing(http) {
            return Ok(());
        }
        self.causes.wrote(device, http, changed)
    }

    /// Whether the object of a write has changed since the controller heard of it for the last
    /// time: somebody else may have done the same.
    fn has_changed_since(&self, device: usize, http: &HttpRequest) -> bool {
        self.flights.of(device).filter(|flight| flight.operation.path_is(&http.path)).any(
            |flight| {
                let Operation { resource, namespace, name, .. } = &flight.operation;
                let key = format!("{namespace}/{name}");
                let object = self.model.all(resource).find(|object| object.key == key);
                let version = object.map(|it| &it.object["metadata"]["resourceVersion"]);
                let version = version.and_then(|version| version.as_str()?.parse().ok());
                version != flight.knew
            },
        )
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
                if found.verdict.is_ok() {
                    found.verdict = self.judge(actor, &seen);
                }
            }
        }
        found
    }

    fn judge(&self, actor: Actor, change: &Change) -> Verdict {
        if !matches!(actor, Actor::Controller(_)) {
            return Ok(());
        }
        statuses::check(change, self.views_may_differ || self.is_overtaken)?;
        ownership::check(&self.model, change)?;
        revisions::check_history(change)?;
        self.sets.check(&self.model, change)?;
        if !self.views_may_differ {
            templates::check(&self.model, change)?;
        }
        Ok(())
    }
}

impl Issued<'_, '_> {
    /// The pods of a ReplicaSet that count, as the controller knows them.
    fn claimed(&self, set: Slot) -> impl Iterator<Item = (Slot, Entry<'_, Pod>)> {
        let cache = self.cache;
        let rs = cache.replica_sets.get(set);
        let is_claimed = move |pod: &Entry<'_, Pod>| {
            let labels = pod.record.labels;
            let selects = rs.is_some_and(|rs| rs.record.selector.matches(cache.texts, labels));
            pod.record.is_active() && selects
        };
        cache.pods_of(Kind::ReplicaSet, set).filter(move |(_, pod)| is_claimed(pod))
    }

    /// The version of the request's object, as the controller knows it.
    fn known_version(&self) -> Option<u64> {
        let (cache, Operation { resource, namespace, name, .. }) = (self.cache, self.operation);
        let texts = &*cache.texts;
        let version = match resource.as_str() {
            "pods" => cache.pods.get(cache.pods.find(texts, namespace, name)?)?.version(),
            "replicasets" => {
                let slot = cache.replica_sets.find(texts, namespace, name)?;
                cache.replica_sets.get(slot)?.version()
            }
            "statefulsets" => {
                let slot = cache.stateful_sets.find(texts, namespace, name)?;
                cache.stateful_sets.get(slot)?.version()
            }
            "controllerrevisions" => {
                let slot = cache.controller_revisions.find(texts, namespace, name)?;
                cache.controller_revisions.get(slot)?.version()
            }
            "persistentvolumeclaims" => {
                let slot = cache.persistent_volume_claims.find(texts, namespace, name)?;
                cache.persistent_volume_claims.get(slot)?.version()
            }
            _ => cache.deployments.get(cache.deployments.find(texts, namespace, name)?)?.version(),
        };
        Some(version.number())
    }

    /// The owner of the pod that is created or deleted.
    fn owner(&self) -> Option<Uid> {
        match &self.request.body {
            Body::Splice(splice) => Some(splice.uid),
            Body::Empty | Body::Document if self.operation.is(Verb::Delete, "pods") => {
                let set = deletions::owner_of_pod(self)?;
                self.cache.replica_sets.get(set).map(|set| set.uid())
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
            && self.document == other.document
            // The pod that is deleted may have gone meanwhile.
            && (self.owner == other.owner || self.operation.verb == Verb::Delete)
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

    fn remove(&mut self, device: usize, ticket: Ticket) {
        self.0.retain(|flight| flight.device != device || flight.ticket != ticket);
    }
}

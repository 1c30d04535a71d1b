//! What a driver does for an election: it gives up in time what the lease does not last for. And what the
//! checks of leadership are told.

use bytes::Bytes;
use http::Method;
use picokube_core::manager::{Failure, Method as Verb};

use crate::server::request::Request as HttpRequest;

use super::checks::Leaving;
use super::device::Device;
use super::election::is_of_election;
use super::exchange::{Message, Purpose, Reply};
use super::trace::Actor;
use super::world::{Happening, World};

impl<'m> World<'m> {
    /// Gives up the requests whose time is over.
    pub(super) fn expire(&mut self, device: &mut Device<'m>) {
        let local = device.local(self.now);
        for lane in 0..device.lanes.len() {
            let Some(work) = &device.lanes[lane].work else { continue };
            let expires_at = device.manager.expires_at(work.request.ticket);
            if expires_at.is_none_or(|at| at > local) {
                continue;
            }
            let Some(work) = device.lanes[lane].work.take() else { continue };
            self.given_up.insert(work.exchange, self.now);
            let actor = Actor::Controller(device.number);
            self.trace.note(self.now, actor, format_args!("gives up {}", work.request.target));
            let end = Err(Failure::Ambiguous);
            device.manager.response_end(work.request.ticket, local, end);
            self.checks.ended(device, &work.request, end, self.now);
        }
    }

    /// Whether a request was given up before it had left.
    pub(super) fn was_given_up(&mut self, message: &Message) -> bool {
        let (Purpose::Request { exchange, .. } | Purpose::Source { exchange }) = &message.purpose
        else {
            return false;
        };
        let given_up_at = self.given_up.remove(exchange);
        given_up_at.is_some_and(|at| at < message.leaves)
    }

    /// A controller stands still.
    pub(super) fn freeze(&mut self, device: &mut Device<'m>, seconds: u32) {
        device.frozen_until = self.now.plus_secs(u64::from(seconds));
        device.wakes_at = Some(device.frozen_until);
        let (number, boot) = (device.number, device.boot);
        let actor = Actor::Controller(number);
        self.trace.note(self.now, actor, format_args!("is frozen for {seconds} s before a write"));
        self.agenda.plan(device.frozen_until, Happening::Wake { device: number, boot });
    }

    /// What was to be sent when the controller was frozen is sent now, unless it was given up.
    pub(super) fn send_unsent(&mut self, device: &mut Device<'m>) {
        for lane in 0..device.lanes.len() {
            let work = device.lanes[lane].work.as_mut();
            let unsent: Option<Bytes> = work.and_then(|work| work.unsent.take());
            if let Some(body) = unsent {
                self.send_request(device, lane, body);
            }
        }
    }

    /// A request leaves a manager.
    pub(super) fn check_leadership(&mut self, device: &Device<'m>, http: &HttpRequest) {
        let Some(elector) = device.manager.elector() else { return };
        let (number, local) = (device.number, device.local(self.now));
        let verdict = if http.path.contains("/leases") {
            let changes = |work: &&super::device::Work| {
                work.request.method != Verb::Get && !is_of_election(&work.request.target)
            };
            let lanes = device.lanes.iter().filter_map(|lane| lane.work.as_ref());
            self.leadership.asks(number, local, &http.body, lanes.filter(changes).count())
        } else if http.method == Method::GET || is_of_election(&http.path) {
            Ok(())
        } else {
            let identity = elector.settings().identity;
            let lease = self.lease().unwrap_or_default();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let now = self.now;
            let leaving = Leaving { device: number, identity, local, now, holder };
            self.leadership.check(&leaving)
        };
        if let Err((property, detail)) = verdict {
            self.violate(property, format!("{detail}: {} {}", http.method, http.path));
        }
    }

    /// An answer reaches a manager.
    pub(super) fn tell_leadership(&mut self, device: &Device<'m>, lane: usize, reply: &Reply) {
        let Some(elector) = device.manager.elector() else { return };
        let work = device.lanes[lane].work.as_ref();
        if !reply.cut && work.is_some_and(|work| work.request.target.contains("/leases")) {
            let identity = elector.settings().identity;
            self.leadership.is_told(device.number, identity, reply.status, &reply.body);
        }
    }
}

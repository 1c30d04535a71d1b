//! How faults strike, and how everything is put right in the end.

use bytes::Bytes;
use picokube_core::kind::Kind;

use crate::store::{Entry, ResourceId};

use super::device::{Device, KINDS};
use super::fault::Fault;
use super::link::Way;
use super::plan::When;
use super::trace::Actor;
use super::world::{Happening, World};

impl<'m> World<'m> {
    /// The moment of a fault has come.
    pub(super) fn strike(&mut self, index: usize) {
        let fault = self.plan.faults[index].what;
        if self.strike_others(fault)
            || self.with_boards(|boards, world| boards.strike(world, fault)).is_some()
        {
            return;
        }
        if fault.waits_for_request() {
            self.waiting.push_back(index);
            return;
        }
        let alive: Vec<usize> =
            (0..self.devices.len()).filter(|it| self.devices[*it].is_some()).collect();
        if alive.is_empty() {
            return;
        }
        let victim = alive[self.random.below(alive.len() as u64) as usize];
        self.struck(fault);
        if let Some(mut device) = self.devices[victim].take() {
            self.strike_device(&mut device, fault);
            self.devices[victim] = Some(device);
        }
        self.strike_server(fault);
    }

    /// A fault has done what it does.
    pub(super) fn struck(&mut self, fault: Fault) {
        self.counts.faults += 1;
        *self.struck.entry(fault.sort()).or_default() += 1;
        self.note(Actor::Fault, format_args!("{fault}"));
    }

    /// What happens to the request that a controller sends now.
    pub(super) fn next_fate(&mut self, device: usize) -> Option<Fault> {
        if device == 0 {
            self.counts.sent += 1;
            let when = When::Request(self.counts.sent);
            if let Some(fault) = self.plan.faults.iter().find(|fault| fault.when == when) {
                return Some(fault.what);
            }
        }
        self.waiting.pop_front().map(|index| self.plan.faults[index].what)
    }

    /// What happens to a watch at this event. Says how many events are repeated once it was sent.
    pub(super) fn strike_event(
        &mut self,
        device: &mut Device<'m>,
        kind: Kind,
        when: When,
    ) -> Option<u8> {
        let fault = self.plan.faults.iter().find(|fault| fault.when == when)?.what;
        self.struck(fault);
        if let Fault::RepeatEvents(_, count) = fault {
            return Some(count);
        }
        // The plan cannot know of which kind the event is.
        let fault = match fault {
            Fault::StallWatch(_, seconds) => Fault::StallWatch(kind, seconds),
            Fault::ForgetEvents(_) => Fault::ForgetEvents(kind),
            Fault::CutWatch(_, percent) => Fault::CutWatch(kind, percent),
            other => other,
        };
        self.strike_device(device, fault);
        self.strike_server(fault);
        if let (Fault::StallWatch(_, seconds), Some(stream)) = (fault, device.stream_mut(kind)) {
            // This very event waits, too, and all that come after it.
            stream.last_delivery = self.now.plus_secs(u64::from(seconds));
        }
        None
    }

    fn strike_device(&mut self, device: &mut Device<'m>, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Freeze(seconds) => {
                device.frozen_until = now.plus_secs(u64::from(seconds));
                let (number, boot) = (device.number, device.boot);
                device.wakes_at = Some(device.frozen_until);
                let wake = Happening::Wake { device: number, boot };
                self.agenda.plan(device.frozen_until, wake);
            }
            Fault::ChangeToken(seconds) => {
                device.token_is_old_until = now.plus_secs(u64::from(seconds));
            }
            Fault::EndWatch(kind) => self.close_stream(device, kind, true),
            Fault::ForgetEvents(kind) => self.close_stream(device, kind, false),
            Fault::CutWatch(kind, percent) => {
                if let Some(stream) = device.stream_mut(kind) {
                    stream.cut_at = Some(percent);
                }
            }
            Fault::StallWatch(kind, seconds) => {
                if let Some(stream) = device.stream_mut(kind) {
                    stream.stalled_until = now.plus_secs(u64::from(seconds));
                }
            }
            Fault::RepeatEvents(kind, count) => {
                self.repeat_events(device, kind, usize::from(count));
            }
            Fault::LinkDown(seconds) => device.link.take_down(now, seconds),
            Fault::Flapping { period_millis, seconds } => {
                device.link.flap(now, seconds, period_millis);
            }
            Fault::SlowLink(seconds) => device.link.slow_down(now, seconds),
            Fault::OrderlyEnd => {
                device.is_ending = true;
                device.manager.release_leadership(device.local(now));
                if device.frozen_until <= now {
                    device.wakes_at = Some(now);
                    let (device, boot) = (device.number, device.boot);
                    self.agenda.plan(now, Happening::Wake { device, boot });
                }
            }
            Fault::OneWay { to_server, seconds } => {
                let way = if to_server { Way::ToServer } else { Way::FromServer };
                device.link.cut(now, seconds, way);
            }
            Fault::RestartServer { .. } => {
                KINDS.into_iter().for_each(|kind| self.close_stream(device, kind, false));
            }
            _ => {}
        }
    }

    pub(super) fn strike_server(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            // Two at once are enough.
            Fault::SecondController(seconds) if self.running() < 2 => {
                let device = self.devices.len();
                self.devices.push(None);
                self.agenda.plan(now, Happening::Boot { device });
                let ends = now.plus_secs(u64::from(seconds));
                self.agenda.plan(ends, Happening::SwitchOff { device });
            }
            Fault::ForgetEvents(_) => {
                let newest = self.server.store().revision();
                self.server.store_mut().compact(newest);
            }
            Fault::SkipVersions(count) => {
                let newest = self.server.store().revision();
                self.server.store_mut().restore_revision(newest + count);
                self.observe(Actor::Fault);
            }
            Fault::FreezeBeforeWrite(seconds) => self.freezes.push_back(seconds),
            Fault::Lease(edit) => self.edit_lease(edit),
            Fault::NoBookmarks(seconds) => {
                self.no_bookmarks_until = now.plus_secs(u64::from(seconds));
            }
            Fault::OldLists(seconds) => self.old_lists_until = now.plus_secs(u64::from(seconds)),
            Fault::RestartServer { seconds, forgets } => {
                for number in 0..self.devices.len() {
                    let Some(mut device) = self.devices[number].take() else { continue };
                    KINDS.into_iter().for_each(|kind| self.close_stream(&mut device, kind, false));
                    self.devices[number] = Some(device);
                }
                self.server_down_until = now.plus_secs(u64::from(seconds));
                self.restart_server(forgets);
            }
            Fault::WrongClock { days, seconds } => {
                self.set_clock(i64::from(days) * 86_400_000);
                self.agenda.plan(now.plus_secs(u64::from(seconds)), Happening::ClockIsRight);
            }
            _ => {}
        }
    }

    /// How many controllers run.
    fn running(&self) -> usize {
        match &self.boards {
            Some(boards) => (0..self.devices.len()).filter(|it| boards.runs(*it)).count(),
            None => self.devices.iter().flatten().count(),
        }
    }

    /// A new server from what a disk would have kept of the old one.
    fn restart_server(&mut self, forgets: bool) {
        let mut fresh = self.plan.new_server(self.random.next_u64());
        let old = self.server.store();
        let kinds = self.server.stored_kinds().len();
        for id in (0..kinds).map(|id| ResourceId(id as u16)) {
            let resource = old.resource(id);
            for entry in resource.range("", None) {
                let (key, json): (_, Bytes) = (entry.key.clone(), entry.json.clone());
                let entry = Entry::from_parts(key, entry.revision, json, &entry.parse());
                fresh.store_mut().restore(id, entry);
            }
            let compacted = if forgets { old.revision() } else { resource.compacted() };
            fresh.store_mut().restore_compacted(id, compacted);
            for change in resource.changes_after(compacted).into_iter().flatten() {
                fresh.store_mut().restore_history(id, change.clone());
            }
        }
        fresh.store_mut().restore_revision(old.revision());
        fresh.resume(self.now.wall());
        self.server = fresh;
        self.step_cluster();
    }

    /// All trouble ends here: what is still broken is mended, users put right what they broke.
    pub(super) fn heal(&mut self) {
        self.healed_at = Some(self.now);
        self.waiting.clear();
        self.freezes.clear();
        self.user_fates.clear();
        self.kubelets_held_until = self.now;
        self.server_down_until = self.now;
        self.no_bookmarks_until = self.now;
        self.old_lists_until = self.now;
        self.note(Actor::Fault, format_args!("all faults end"));
        if self.wrong_by_millis != 0 {
            self.set_clock(0);
        }
        for number in 0..self.devices.len() {
            if number >= self.plan.managers() {
                self.switch_off(number);
            }
            let Some(mut device) = self.devices[number].take() else { continue };
            device.link.heal(self.now);
            device.frozen_until = self.now;
            device.token_is_old_until = self.now;
            if self.plan.is_helped() {
                // What is under way may have been caught in a slow link: begin afresh.
                self.reset(&mut device);
            } else {
                device.end_trouble(self.now);
            }
            self.devices[number] = Some(device);
            self.pump(number);
        }
        if !self.plan.is_helped() {
            // What the link held up comes through; what was lost stays so.
            self.agenda.hasten(self.now.plus_millis(1), |happening| match happening {
                Happening::Arrive(_) => true,
                Happening::Answer(answer) => answer.is_reply(),
                Happening::Stream(piece) => piece.is_sent(),
                _ => false,
            });
        }
        self.with_boards(|boards, world| boards.heal(world));
        self.feed_streams();
        self.tell_the_truth();
        self.put_right();
        self.put_election_right();
        self.ending.begin(self.now);
        self.agenda.plan(self.now.plus_secs(5), Happening::Look);
    }
}

//! What breaks for the driver that is shipped.

use picokube_core::kind::Kind;

use super::super::clock::Moment;
use super::super::fault::{Break, Fault};
use super::super::link::Way;
use super::super::world::{Happening, World};
use super::net::{End, Listening, Parting, Trap};
use super::service::{AnswerBody, PipeEnd};
use super::{HEAD_BYTES, Shipped};

impl Shipped {
    pub(super) fn strike_boards(&mut self, world: &mut World<'_>, fault: Fault) {
        // The next bytes that a client sends may be of any request.
        match fault {
            Fault::LoseRequest => self.net.set_trap(Trap::Loss),
            Fault::KillBeforeRequest => self.net.set_trap(Trap::Death),
            _ if fault.waits_for_request() => return self.fates.push_back(fault),
            _ => {}
        }
        let running: Vec<usize> = self.boards.keys().copied().collect();
        if running.is_empty() {
            return;
        }
        let victim = running[self.random.below(running.len() as u64) as usize];
        world.struck(fault);
        self.strike_board(world, victim, fault);
        match fault {
            Fault::RestartServer { seconds, .. } => self.restart_server(world, seconds),
            Fault::Connections(how) => self.break_connections(world, how),
            Fault::ChangeToken(seconds) => {
                self.knows_at = world.now.plus_secs(u64::from(seconds));
            }
            _ => {}
        }
        // With boards, that counts for nobody else.
        let has_room = self.boards.len() < 2;
        if has_room || !matches!(fault, Fault::SecondController(_)) {
            world.strike_server(fault);
        }
    }

    fn strike_board(&mut self, world: &mut World<'_>, victim: usize, fault: Fault) {
        let now = world.now;
        match fault {
            Fault::Freeze(seconds) => {
                if let Some(board) = self.boards.get_mut(&victim) {
                    board.frozen_until = now.plus_secs(u64::from(seconds));
                }
            }
            Fault::EndWatch(kind) => self.end_watches(victim, kind, PipeEnd::InOrder),
            Fault::ForgetEvents(kind) => self.end_watches(victim, kind, PipeEnd::Broken),
            Fault::CutWatch(kind, percent) => {
                self.each_watch(victim, kind, |watch| watch.cut_at = Some(percent));
            }
            Fault::StallWatch(kind, seconds) => {
                let until = now.plus_secs(u64::from(seconds));
                self.each_watch(victim, kind, |watch| watch.stalled_until = until);
            }
            Fault::RepeatEvents(kind, count) => {
                self.each_watch(victim, kind, |watch| watch.repeat(usize::from(count)));
            }
            Fault::LinkDown(seconds) => self.net.link(victim, |link| link.take_down(now, seconds)),
            Fault::Flapping { period_millis, seconds } => {
                self.net.link(victim, |link| link.flap(now, seconds, period_millis));
            }
            Fault::SlowLink(seconds) => self.net.link(victim, |link| link.slow_down(now, seconds)),
            Fault::OneWay { to_server, seconds } => {
                let way = if to_server { Way::ToServer } else { Way::FromServer };
                self.net.link(victim, |link| link.cut(now, seconds, way));
            }
            _ => {}
        }
    }

    fn each_watch(&mut self, device: usize, kind: Kind, act: impl FnMut(&mut super::OpenWatch)) {
        let of_kind = self.watches.iter_mut().filter(|it| it.device == device && it.is_of(kind));
        of_kind.for_each(act);
    }

    fn end_watches(&mut self, device: usize, kind: Kind, how: PipeEnd) {
        self.each_watch(device, kind, |watch| watch.end(how));
    }

    /// The server is gone for a while, and its connections with it, with or without a word.
    fn restart_server(&mut self, world: &World<'_>, seconds: u32) {
        let is_cut = self.random.below(2) == 0;
        let (parting, listening) = match is_cut {
            true => (Parting::Silent, Listening::Ignores),
            false => (Parting::Usual, Listening::Refuses),
        };
        let net = self.net.clone();
        net.parting(parting, || self.start_server());
        self.keep_from_listening(world.now, seconds, listening);
    }

    fn keep_from_listening(&mut self, now: Moment, seconds: u32, how: Listening) {
        self.net.listen(how);
        let until = now.plus_secs(u64::from(seconds));
        self.listens_at = Some(self.listens_at.map_or(until, |at| at.max(until)));
    }

    /// The time has come to listen again.
    pub(super) fn listen_again(&mut self, now: Moment) {
        if self.listens_at.is_some_and(|at| at <= now) {
            self.listens_at = None;
            self.net.listen(Listening::Yes);
        }
    }

    fn break_connections(&mut self, world: &World<'_>, how: Break) {
        match how {
            Break::Reset(of) => {
                let random = &mut self.random;
                self.net.each(|connection| {
                    if random.below(u64::from(of)) == 0 {
                        connection.reset();
                    }
                });
            }
            Break::Close => self.start_server(),
            Break::Forget => {
                let net = self.net.clone();
                net.parting(Parting::Silent, || self.start_server());
            }
            Break::Refuse(seconds) => {
                self.keep_from_listening(world.now, seconds, Listening::Refuses);
            }
            Break::Ignore(seconds) => {
                self.keep_from_listening(world.now, seconds, Listening::Ignores);
            }
            Break::Leave => self.net.each(|connection| connection.ask_to_leave()),
            Break::Unknown(seconds) => {
                self.knows_at = world.now.plus_secs(u64::from(seconds));
            }
        }
    }

    /// What becomes of an answer, and of who has asked.
    pub(super) fn seal_fate(
        &mut self,
        world: &mut World<'_>,
        fate: Option<Fault>,
        device: usize,
        connection: u64,
        body: &AnswerBody,
    ) {
        let now = world.now;
        match fate {
            Some(Fault::KillAfterRequest) => self.kill(world, device),
            Some(Fault::LoseAnswer) => self.net.with(connection, |it| it.lose(End::Client)),
            Some(Fault::LateAnswer(seconds)) => {
                let until = now.plus_secs(u64::from(seconds));
                self.net.with(connection, |it| it.hold(End::Client, until));
            }
            Some(Fault::CutAnswer(percent)) => {
                let body = match body {
                    AnswerBody::Whole(Some(bytes)) => bytes.len(),
                    _ => 2000,
                };
                let bytes = 1 + (HEAD_BYTES + body) * usize::from(percent) / 100;
                self.net.with(connection, |it| it.cut_after(End::Client, bytes));
            }
            _ => {}
        }
    }

    /// All trouble is over.
    pub(super) fn end_trouble(&mut self, world: &mut World<'_>) {
        let now = world.now;
        self.fates.clear();
        self.listens_at = None;
        self.knows_at = now;
        self.net.heal(now);
        for board in self.boards.values_mut().filter(|board| board.frozen_until > now) {
            board.frozen_until = now;
        }
        for watch in &mut self.watches {
            watch.cut_at = None;
            watch.stalled_until = watch.stalled_until.min(now);
            watch.looks_at = now;
        }
        if world.plan.is_helped() {
            self.net.each(|connection| connection.reset());
        }
        // Somebody looks at once.
        world.agenda.plan(now, Happening::Cluster);
    }
}

//! Where a spliced body waits between the source that is read and the request that is sent.

use core::cell::{Cell, Ref, RefCell};

use embedded_io_async::Write;
use picokube_core::manager::{Failure, Splice};
use reqwless::request::RequestBody;

use crate::bell::Bell;

/// How much of a body is in hand at a time.
const WINDOW: usize = 256;

/// The tanks of all lanes: what one has read serves the others, too.
pub struct Tanks<'b> {
    tanks: &'b [Tank<'b>],
    /// Rings when a body is wanted, or a tank is whole or free.
    bell: Bell,
}

/// A bounded buffer that whoever makes bodies fills and lanes drain.
///
/// A body that fits is sent only when it is complete and checked, with its length, and stays for
/// the next request that wants the same. A body that does not fit is sent while it is made, in
/// chunks; should its source turn out to be wrong, it is never ended, and so never takes effect.
pub struct Tank<'b> {
    bytes: RefCell<&'b mut [u8]>,
    filled: Cell<usize>,
    drained: Cell<usize>,
    stage: Cell<Stage>,
    /// What the bytes are, or are to become.
    holds: RefCell<Option<Splice>>,
    /// How many lanes use it.
    users: Cell<u8>,
    /// A body is being made in it, whether or not somebody still wants that.
    is_filling: Cell<bool>,
    bell: Bell,
}

/// How far the making of a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Wanted, and nobody makes it yet.
    Wanted,
    /// Being made, and all of it is in the tank.
    Gathering,
    /// Being made, and it does not fit.
    Overflowing,
    /// Made, and all of it is in the tank.
    Whole,
    /// Made, and its last bytes are in the tank.
    Ending,
    /// Cannot be made.
    Spoilt(Failure),
}

/// How a body can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Whole, with its length.
    Whole(usize),
    /// While it is made.
    InPieces,
    /// Not at all.
    No(Failure),
}

impl<'b> Tank<'b> {
    /// An empty tank.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self {
            bytes: RefCell::new(bytes),
            filled: Cell::new(0),
            drained: Cell::new(0),
            stage: Cell::new(Stage::Spoilt(Failure::NotSent)),
            holds: RefCell::new(None),
            users: Cell::new(0),
            is_filling: Cell::new(false),
            bell: Bell::new(),
        }
    }

    /// Whether it has the body that `splice` makes, or is to have it.
    fn is_for(&self, splice: &Splice) -> bool {
        self.holds.borrow().as_ref().is_some_and(|held| held.makes_the_same(splice))
    }

    /// Empties the tank for a new body.
    fn begin(&self, splice: &Splice) {
        *self.holds.borrow_mut() = Some(splice.clone());
        self.filled.set(0);
        self.drained.set(0);
        self.set(Stage::Wanted);
    }

    /// Whether it may be filled with something else.
    fn is_free(&self) -> bool {
        self.users.get() == 0 && !self.is_filling.get()
    }

    /// Adds bytes to the body; waits for room if need be.
    pub(super) async fn fill(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.take_in(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
            if taken == 0 {
                self.set(Stage::Overflowing);
                self.bell.wait(self.bell.rung()).await;
            }
        }
    }

    /// Waits until it is known how the body can be sent.
    pub(super) async fn ready(&self) -> Ready {
        loop {
            let before = self.bell.rung();
            match self.stage.get() {
                Stage::Wanted | Stage::Gathering => self.bell.wait(before).await,
                Stage::Overflowing | Stage::Ending => return Ready::InPieces,
                Stage::Whole => return Ready::Whole(self.filled.get()),
                Stage::Spoilt(failure) => return Ready::No(failure),
            }
        }
    }

    /// Waits until the body turns out to be impossible, if it does.
    pub(super) async fn until_spoilt(&self) -> Failure {
        loop {
            let before = self.bell.rung();
            if let Stage::Spoilt(failure) = self.stage.get() {
                return failure;
            }
            self.bell.wait(before).await;
        }
    }

    fn set(&self, stage: Stage) {
        self.stage.set(stage);
        self.bell.ring();
    }

    /// Copies what fits; returns how much that was.
    fn take_in(&self, bytes: &[u8]) -> usize {
        // What was drained makes room, but a body that is still whole is kept whole.
        if self.stage.get() == Stage::Overflowing && self.drained.get() == self.filled.get() {
            self.filled.set(0);
            self.drained.set(0);
        }
        let mut tank = self.bytes.borrow_mut();
        let room = tank.get_mut(self.filled.get()..).unwrap_or_default();
        let len = room.len().min(bytes.len());
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.filled.set(self.filled.get() + len);
        if len > 0 {
            self.bell.ring();
        }
        len
    }

    /// Copies bytes from `at` on into `window`; returns how many.
    fn copy(&self, at: usize, window: &mut [u8]) -> usize {
        let tank = self.bytes.borrow();
        let there = tank.get(at..self.filled.get()).unwrap_or_default();
        let len = there.len().min(window.len());
        for (to, from) in window.iter_mut().zip(there) {
            *to = *from;
        }
        len
    }

    /// Copies the next undrained bytes into `window`; returns how many.
    fn drain_into(&self, window: &mut [u8]) -> usize {
        let len = self.copy(self.drained.get(), window);
        self.drained.set(self.drained.get() + len);
        len
    }
}

impl<'b> Tanks<'b> {
    /// Empty tanks.
    pub const fn new(tanks: &'b [Tank<'b>]) -> Self {
        Self { tanks, bell: Bell::new() }
    }

    /// A tank that has the body, or in which it is to be made. Waits while all tanks are in use.
    pub(super) async fn take(&self, splice: &Splice) -> Taken<'_, 'b> {
        loop {
            let before = self.bell.rung();
            if let Some(tank) = self.find(splice) {
                return Taken::new(self, tank);
            }
            self.bell.wait(before).await;
        }
    }

    fn find(&self, splice: &Splice) -> Option<&'b Tank<'b>> {
        let is_there = |tank: &&Tank<'_>| tank.is_for(splice);
        if let Some(tank) = self.tanks.iter().find(is_there) {
            match tank.stage.get() {
                Stage::Whole => return Some(tank),
                // It may turn out to fit, and then serves both.
                Stage::Wanted | Stage::Gathering if tank.users.get() > 0 => return None,
                _ => {}
            }
        }
        // One that holds nothing of use before one that may be wanted again.
        let free = || self.tanks.iter().filter(|tank| tank.is_free());
        let tank =
            free().find(|tank| tank.stage.get() != Stage::Whole).or_else(|| free().next())?;
        tank.begin(splice);
        self.bell.ring();
        Some(tank)
    }

    /// Waits for a body that is wanted and that nobody makes.
    pub(super) async fn next_order(&self) -> Order<'_, 'b> {
        loop {
            let before = self.bell.rung();
            let is_wanted = |tank: &&Tank<'_>| tank.stage.get() == Stage::Wanted;
            if let Some(tank) = self.tanks.iter().find(is_wanted) {
                tank.is_filling.set(true);
                tank.set(Stage::Gathering);
                return Order { tanks: self, tank, splice: tank.holds.borrow() };
            }
            self.bell.wait(before).await;
        }
    }
}

/// A body to be made.
pub(super) struct Order<'t, 'b> {
    tanks: &'t Tanks<'b>,
    /// Where it is to be put.
    pub(super) tank: &'t Tank<'b>,
    /// No other body is begun in a tank that is being filled, so that this can be held.
    splice: Ref<'t, Option<Splice>>,
}

impl Order<'_, '_> {
    /// What to make.
    pub(super) fn splice(&self) -> Option<&Splice> {
        self.splice.as_ref()
    }

    /// Waits until the lanes have lost interest: the server may have answered before it had all
    /// of a body.
    pub(super) async fn until_nobody_wants_it(&self) {
        loop {
            let before = self.tank.bell.rung();
            if self.tank.users.get() == 0 {
                return;
            }
            self.tank.bell.wait(before).await;
        }
    }

    /// The body is complete and right, or cannot be completed.
    pub(super) fn end(self, made: Result<(), Failure>) {
        let Self { tanks, tank, splice } = self;
        drop(splice);
        tank.is_filling.set(false);
        tank.set(match (made, tank.stage.get()) {
            (Ok(()), Stage::Gathering) => Stage::Whole,
            (Ok(()), _) => Stage::Ending,
            (Err(failure), _) => Stage::Spoilt(failure),
        });
        tanks.bell.ring();
    }
}

/// A tank that a lane uses.
pub(super) struct Taken<'t, 'b> {
    tanks: &'t Tanks<'b>,
    pub(super) tank: &'t Tank<'b>,
}

impl<'t, 'b> Taken<'t, 'b> {
    fn new(tanks: &'t Tanks<'b>, tank: &'t Tank<'b>) -> Self {
        tank.users.set(tank.users.get().saturating_add(1));
        Self { tanks, tank }
    }
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        self.tank.users.set(self.tank.users.get().saturating_sub(1));
        self.tank.bell.ring();
        self.tanks.bell.ring();
    }
}

/// A body that is drained from a tank.
#[derive(Clone, Copy)]
pub(super) struct FromTank<'t, 'b> {
    tank: &'t Tank<'b>,
    len: Option<usize>,
}

impl<'t, 'b> FromTank<'t, 'b> {
    /// With `len`, the whole body is in the tank; without, it comes in pieces.
    pub(super) const fn new(tank: &'t Tank<'b>, len: Option<usize>) -> Self {
        Self { tank, len }
    }

    /// Sends a body that others may send at the same time.
    async fn write_whole<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        let mut window = [0; WINDOW];
        let mut at = 0;
        loop {
            let len = self.tank.copy(at, &mut window);
            if len == 0 {
                return Ok(());
            }
            writer.write_all(window.get(..len).unwrap_or_default()).await?;
            at += len;
        }
    }
}

impl RequestBody for FromTank<'_, '_> {
    fn len(&self) -> Option<usize> {
        self.len
    }

    /// Never returns for a body that was spoilt half-way: the caller gives the request up.
    async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        if self.len.is_some() {
            return self.write_whole(writer).await;
        }
        let mut window = [0; WINDOW];
        loop {
            let before = self.tank.bell.rung();
            let len = self.tank.drain_into(&mut window);
            if len > 0 {
                writer.write_all(window.get(..len).unwrap_or_default()).await?;
                self.tank.bell.ring();
                continue;
            }
            match self.tank.stage.get() {
                Stage::Whole | Stage::Ending => return Ok(()),
                _ => self.tank.bell.wait(before).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::task::Poll;

    use embassy_futures::block_on;
    use embassy_futures::poll_once;
    use picokube_core::json::Digest;
    use picokube_core::kind::Kind;
    use picokube_core::manager::{Make, ObjectName, Target};
    use picokube_core::wire::Uid;

    use super::*;

    /// A pod of the ReplicaSet of this number.
    fn pod_of(set: u8) -> Splice {
        let uid = Uid::from_bytes([set; 16]);
        let make = Make::Pod { owner: ObjectName::new(), more: 0 };
        let (source, kind) = (Target::new(), Kind::ReplicaSet);
        Splice { source, kind, uid, template: Digest::from_bits(0), make }
    }

    fn with_one_tank(check: impl FnOnce(&Tanks<'_>)) {
        let mut bytes = [0; 8];
        let tank = [Tank::new(&mut bytes)];
        check(&Tanks::new(&tank));
    }

    /// Makes the body that is wanted next, which is for this ReplicaSet.
    fn make_body_of(tanks: &Tanks<'_>, set: u8) {
        let order = block_on(tanks.next_order());
        assert_eq!(order.splice(), Some(&pod_of(set)));
        block_on(order.tank.fill(b"body"));
        order.end(Ok(()));
    }

    #[test]
    fn what_one_lane_wants_serves_the_others() {
        with_one_tank(|tanks| {
            let first = block_on(tanks.take(&pod_of(1)));
            assert!(poll_once(tanks.take(&pod_of(1))).is_pending(), "it is still being made");
            make_body_of(tanks, 1);
            let second = block_on(tanks.take(&pod_of(1)));
            for taken in [&first, &second] {
                assert_eq!(block_on(taken.tank.ready()), Ready::Whole(4));
            }
            assert!(poll_once(tanks.next_order()).is_pending(), "it is made once");
            assert!(poll_once(tanks.take(&pod_of(2))).is_pending(), "both still send it");
            drop((first, second));
            assert!(poll_once(tanks.take(&pod_of(2))).is_ready());
        });
    }

    #[test]
    fn a_body_that_nobody_wants_any_more_is_given_up_before_the_next_is_begun() {
        with_one_tank(|tanks| {
            let taken = block_on(tanks.take(&pod_of(1)));
            let order = block_on(tanks.next_order());
            assert!(poll_once(order.tank.fill(b"longer than the tank")).is_pending());
            assert_eq!(block_on(taken.tank.ready()), Ready::InPieces);
            assert!(poll_once(order.until_nobody_wants_it()).is_pending());
            // As when the server answers before it has read all of it.
            drop(taken);
            assert!(poll_once(tanks.take(&pod_of(2))).is_pending(), "it is still being filled");
            assert!(poll_once(order.until_nobody_wants_it()).is_ready());
            order.end(Err(Failure::NotSent));
            let next = block_on(tanks.take(&pod_of(2)));
            make_body_of(tanks, 2);
            assert_eq!(block_on(next.tank.ready()), Ready::Whole(4));
        });
    }

    #[test]
    fn a_source_that_fails_half_way_ends_the_request() {
        with_one_tank(|tanks| {
            let taken = block_on(tanks.take(&pod_of(1)));
            let order = block_on(tanks.next_order());
            assert!(poll_once(order.tank.fill(b"longer than the tank")).is_pending());
            assert!(poll_once(taken.tank.until_spoilt()).is_pending());
            order.end(Err(Failure::SourceChanged));
            assert_eq!(poll_once(taken.tank.until_spoilt()), Poll::Ready(Failure::SourceChanged));
            drop(taken);
            // The next one tries again.
            let again = block_on(tanks.take(&pod_of(1)));
            assert!(poll_once(again.tank.ready()).is_pending());
        });
    }
}

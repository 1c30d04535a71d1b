//! Where a spliced body waits between the source that is read and the request that is sent.

use core::cell::{Cell, RefCell};

use embedded_io_async::Write;
use picokube_core::manager::Splice;
use reqwless::request::RequestBody;

use crate::bell::Bell;

/// How much of a body is in hand at a time.
const WINDOW: usize = 256;

/// The tanks of all lanes: what one has read serves the others, too.
pub struct Tanks<'b> {
    tanks: &'b [Tank<'b>],
    /// Rings when a tank is whole or free.
    bell: Bell,
}

/// A bounded buffer that one side fills and others drain.
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
    /// How many use it. One that nobody uses may be filled with something else.
    users: Cell<u8>,
    bell: Bell,
}

/// How far the making of a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Being made, and all of it is in the tank.
    Gathering,
    /// Being made, and it does not fit.
    Overflowing,
    /// Made, and all of it is in the tank.
    Whole,
    /// Made, and its last bytes are in the tank.
    Ending,
    /// Cannot be made.
    Spoilt,
}

/// How a body can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Whole, with its length.
    Whole(usize),
    /// While it is made.
    InPieces,
    /// Not at all.
    No,
}

impl<'b> Tank<'b> {
    /// An empty tank.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self {
            bytes: RefCell::new(bytes),
            filled: Cell::new(0),
            drained: Cell::new(0),
            stage: Cell::new(Stage::Spoilt),
            holds: RefCell::new(None),
            users: Cell::new(0),
            bell: Bell::new(),
        }
    }

    /// Whether it has the body that `splice` makes, or is to have it.
    fn is_for(&self, splice: &Splice) -> bool {
        self.holds.borrow().as_ref().is_some_and(|held| held.makes_the_same(splice))
    }

    /// Empties the tank for a new body.
    fn begin(&self, splice: &Splice) {
        self.holds.replace(Some(splice.clone()));
        self.filled.set(0);
        self.drained.set(0);
        self.set(Stage::Gathering);
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

    /// The body is complete and right.
    pub(super) fn finish(&self) {
        match self.stage.get() {
            Stage::Gathering => self.set(Stage::Whole),
            _ => self.set(Stage::Ending),
        }
    }

    /// The body cannot be completed.
    pub(super) fn spoil(&self) {
        self.set(Stage::Spoilt);
    }

    /// Waits until it is known how the body can be sent.
    pub(super) async fn ready(&self) -> Ready {
        loop {
            let before = self.bell.rung();
            match self.stage.get() {
                Stage::Gathering => self.bell.wait(before).await,
                Stage::Overflowing | Stage::Ending => return Ready::InPieces,
                Stage::Whole => return Ready::Whole(self.filled.get()),
                Stage::Spoilt => return Ready::No,
            }
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

    /// A tank that has the body, or an empty one to make it in. Waits while another lane makes
    /// the same, and while all tanks are in use.
    pub(super) async fn take(&self, splice: &Splice) -> Taken<'_, 'b> {
        loop {
            let before = self.bell.rung();
            if let Some(taken) = self.try_take(splice) {
                return taken;
            }
            self.bell.wait(before).await;
        }
    }

    fn try_take(&self, splice: &Splice) -> Option<Taken<'_, 'b>> {
        let is_there = |tank: &&Tank<'_>| tank.is_for(splice);
        if let Some(tank) = self.tanks.iter().find(is_there) {
            match tank.stage.get() {
                Stage::Whole => return Some(Taken::new(self, tank, Some(tank.filled.get()))),
                Stage::Gathering if tank.users.get() > 0 => return None,
                Stage::Gathering | Stage::Overflowing | Stage::Ending | Stage::Spoilt => {}
            }
        }
        // One that holds nothing of use before one that may be wanted again.
        let free = || self.tanks.iter().filter(|tank| tank.users.get() == 0);
        let tank =
            free().find(|tank| tank.stage.get() != Stage::Whole).or_else(|| free().next())?;
        tank.begin(splice);
        Some(Taken::new(self, tank, None))
    }
}

/// A tank in use.
pub(super) struct Taken<'t, 'b> {
    tanks: &'t Tanks<'b>,
    pub(super) tank: &'t Tank<'b>,
    /// The length of the body, if it is there.
    pub(super) len: Option<usize>,
}

impl<'t, 'b> Taken<'t, 'b> {
    fn new(tanks: &'t Tanks<'b>, tank: &'t Tank<'b>, len: Option<usize>) -> Self {
        tank.users.set(tank.users.get().saturating_add(1));
        Self { tanks, tank, len }
    }

    /// The body has been made: others may send it, too.
    pub(super) fn share(&self) {
        self.tanks.bell.ring();
    }
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        self.tank.users.set(self.tank.users.get().saturating_sub(1));
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
                Stage::Gathering | Stage::Overflowing | Stage::Spoilt => {
                    self.tank.bell.wait(before).await;
                }
            }
        }
    }
}

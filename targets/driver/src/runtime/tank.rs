//! Where a spliced body waits between the source that is read and the request that is sent.

use core::cell::{Cell, RefCell};

use embedded_io_async::Write;
use picokube_core::manager::Splice;
use reqwless::request::RequestBody;

use crate::bell::Bell;

/// A bounded buffer that one side fills and the other drains.
///
/// A body that fits is sent only when it is complete and checked, with its length, and stays for
/// the next request that wants the same. A body that does not fit is sent while it is made, in
/// chunks; should its source turn out to be wrong, it is never ended, and so never takes effect.
pub struct Tank<'b> {
    bytes: RefCell<&'b mut [u8]>,
    filled: Cell<usize>,
    drained: Cell<usize>,
    stage: Cell<Stage>,
    /// What the bytes are, while they are a whole body.
    holds: RefCell<Option<Splice>>,
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
            bell: Bell::new(),
        }
    }

    /// The length of the body that `splice` would make, if the tank has it from before.
    pub(super) fn has(&self, splice: &Splice) -> Option<usize> {
        let same = self.holds.borrow().as_ref().is_some_and(|held| held.makes_the_same(splice));
        (same && self.stage.get() == Stage::Whole).then(|| self.filled.get())
    }

    /// Empties the tank for a new body.
    pub(super) fn begin(&self) {
        self.holds.replace(None);
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

    /// The body is complete and right: it is what `splice` makes.
    pub(super) fn finish(&self, splice: &Splice) {
        match self.stage.get() {
            Stage::Gathering => {
                self.holds.replace(Some(splice.clone()));
                self.set(Stage::Whole);
            }
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

    /// Copies the next undrained bytes into `window`; returns how many.
    fn drain_into(&self, window: &mut [u8]) -> usize {
        let tank = self.bytes.borrow();
        let undrained = tank.get(self.drained.get()..self.filled.get()).unwrap_or_default();
        let len = undrained.len().min(window.len());
        for (to, from) in window.iter_mut().zip(undrained) {
            *to = *from;
        }
        self.drained.set(self.drained.get() + len);
        len
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
    pub(super) fn new(tank: &'t Tank<'b>, len: Option<usize>) -> Self {
        if len.is_some() {
            tank.drained.set(0);
        }
        Self { tank, len }
    }
}

impl RequestBody for FromTank<'_, '_> {
    fn len(&self) -> Option<usize> {
        self.len
    }

    /// Never returns for a body that was spoilt half-way: the caller gives the request up.
    async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        let mut window = [0; 256];
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

//! Where a spliced body waits between the source that is read and the request that is sent.

use core::cell::{Cell, Ref, RefCell};

use embedded_io_async::Write;
use picokube_core::manager::{Failure, Splice};
use reqwless::request::RequestBody;

use crate::notify::Notify;
use crate::planted::{Bug, planted};

/// How much of a body is in hand at a time.
const WINDOW: usize = 256;

/// The buffers of all lanes: what one has read serves the others, too.
pub struct BodyBuffers<'b> {
    buffers: &'b [BodyBuffer<'b>],
    /// Told when a body is wanted, or a buffer is whole or free.
    notify: Notify,
}

/// A bounded buffer that whoever makes bodies fills and lanes drain.
///
/// A body that fits is sent only when it is complete and checked, with its length, and stays for
/// the next request that wants the same. A body that does not fit is sent while it is made, in
/// chunks; should its source turn out to be wrong, it is never ended, and so never takes effect.
pub struct BodyBuffer<'b> {
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
    notify: Notify,
}

/// How far the making of a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Wanted, and nobody makes it yet.
    Wanted,
    /// Being made, and all of it is in the buffer.
    Gathering,
    /// Being made, and it does not fit.
    Overflowing,
    /// Made, and all of it is in the buffer.
    Whole,
    /// Made, and its last bytes are in the buffer.
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

impl<'b> BodyBuffer<'b> {
    /// An empty buffer.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self {
            bytes: RefCell::new(bytes),
            filled: Cell::new(0),
            drained: Cell::new(0),
            stage: Cell::new(Stage::Spoilt(Failure::NotSent)),
            holds: RefCell::new(None),
            users: Cell::new(0),
            is_filling: Cell::new(false),
            notify: Notify::new(),
        }
    }

    /// Whether it has the body that `splice` makes, or is to have it.
    fn is_for(&self, splice: &Splice) -> bool {
        self.holds.borrow().as_ref().is_some_and(|held| held.makes_the_same(splice))
    }

    /// Empties the buffer for a new body.
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
                self.notify.wait(self.notify.notified()).await;
            }
        }
    }

    /// Waits until it is known how the body can be sent.
    pub(super) async fn ready(&self) -> Ready {
        loop {
            let before = self.notify.notified();
            match self.stage.get() {
                Stage::Wanted | Stage::Gathering => self.notify.wait(before).await,
                Stage::Overflowing | Stage::Ending => return Ready::InPieces,
                Stage::Whole => return Ready::Whole(self.filled.get()),
                Stage::Spoilt(failure) => return Ready::No(failure),
            }
        }
    }

    /// Waits until the body turns out to be impossible, if it does.
    pub(super) async fn until_spoilt(&self) -> Failure {
        loop {
            let before = self.notify.notified();
            if let Stage::Spoilt(failure) = self.stage.get() {
                return failure;
            }
            self.notify.wait(before).await;
        }
    }

    fn set(&self, stage: Stage) {
        self.stage.set(stage);
        self.notify.notify();
    }

    /// Copies what fits; returns how much that was.
    fn take_in(&self, bytes: &[u8]) -> usize {
        // What was drained makes room, but a body that is still whole is kept whole.
        if self.stage.get() == Stage::Overflowing && self.drained.get() == self.filled.get() {
            self.filled.set(0);
            self.drained.set(0);
        }
        let mut buffer = self.bytes.borrow_mut();
        let room = buffer.get_mut(self.filled.get()..).unwrap_or_default();
        let len = room.len().min(bytes.len());
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.filled.set(self.filled.get() + len);
        if len > 0 {
            self.notify.notify();
        }
        len
    }

    /// Copies bytes from `at` on into `window`; returns how many.
    fn copy(&self, at: usize, window: &mut [u8]) -> usize {
        let buffer = self.bytes.borrow();
        let there = buffer.get(at..self.filled.get()).unwrap_or_default();
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

impl<'b> BodyBuffers<'b> {
    /// Empty buffers.
    pub const fn new(buffers: &'b [BodyBuffer<'b>]) -> Self {
        Self { buffers, notify: Notify::new() }
    }

    /// A buffer that has the body, or in which it is to be made. Waits while all buffers are in use.
    pub(super) async fn take(&self, splice: &Splice) -> Taken<'_, 'b> {
        loop {
            let before = self.notify.notified();
            if let Some(buffer) = self.find(splice) {
                return Taken::new(self, buffer);
            }
            self.notify.wait(before).await;
        }
    }

    fn find(&self, splice: &Splice) -> Option<&'b BodyBuffer<'b>> {
        let is_there = |buffer: &&BodyBuffer<'_>| buffer.is_for(splice);
        if let Some(buffer) = self.buffers.iter().find(is_there) {
            match buffer.stage.get() {
                Stage::Whole => return Some(buffer),
                // It may turn out to fit, and then serves both.
                Stage::Wanted | Stage::Gathering if buffer.users.get() > 0 => return None,
                _ => {}
            }
        }
        // One that holds nothing of use before one that may be wanted again.
        let free = || self.buffers.iter().filter(|buffer| buffer.is_free());
        let buffer =
            free().find(|buffer| buffer.stage.get() != Stage::Whole).or_else(|| free().next())?;
        buffer.begin(splice);
        self.notify.notify();
        Some(buffer)
    }

    /// Waits for a body that is wanted and that nobody makes.
    pub(super) async fn next_order(&self) -> Order<'_, 'b> {
        loop {
            let before = self.notify.notified();
            let is_wanted = |buffer: &&BodyBuffer<'_>| buffer.stage.get() == Stage::Wanted;
            if let Some(buffer) = self.buffers.iter().find(is_wanted) {
                buffer.is_filling.set(true);
                buffer.set(Stage::Gathering);
                return Order { buffers: self, buffer, splice: buffer.holds.borrow() };
            }
            self.notify.wait(before).await;
        }
    }
}

/// A body to be made.
pub(super) struct Order<'t, 'b> {
    buffers: &'t BodyBuffers<'b>,
    /// Where it is to be put.
    pub(super) buffer: &'t BodyBuffer<'b>,
    /// No other body is begun in a buffer that is being filled, so that this can be held.
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
            let before = self.buffer.notify.notified();
            if self.buffer.users.get() == 0 {
                return;
            }
            self.buffer.notify.wait(before).await;
        }
    }

    /// The body is complete and right, or cannot be completed.
    pub(super) fn end(self, made: Result<(), Failure>) {
        let Self { buffers, buffer, splice } = self;
        drop(splice);
        buffer.is_filling.set(false);
        buffer.set(match (made, buffer.stage.get()) {
            (Ok(()), Stage::Gathering) => Stage::Whole,
            (Ok(()), _) => Stage::Ending,
            (Err(failure), _) => Stage::Spoilt(failure),
        });
        buffers.notify.notify();
    }
}

/// A buffer that a lane uses.
pub(super) struct Taken<'t, 'b> {
    buffers: &'t BodyBuffers<'b>,
    pub(super) buffer: &'t BodyBuffer<'b>,
}

impl<'t, 'b> Taken<'t, 'b> {
    fn new(buffers: &'t BodyBuffers<'b>, buffer: &'t BodyBuffer<'b>) -> Self {
        buffer.users.set(buffer.users.get().saturating_add(1));
        Self { buffers, buffer }
    }
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        self.buffer.users.set(self.buffer.users.get().saturating_sub(1));
        self.buffer.notify.notify();
        self.buffers.notify.notify();
    }
}

/// A body that is drained from a buffer.
#[derive(Clone, Copy)]
pub(super) struct FromBuffer<'t, 'b> {
    buffer: &'t BodyBuffer<'b>,
    len: Option<usize>,
}

impl<'t, 'b> FromBuffer<'t, 'b> {
    /// With `len`, the whole body is in the buffer; without, it comes in pieces.
    pub(super) const fn new(buffer: &'t BodyBuffer<'b>, len: Option<usize>) -> Self {
        Self { buffer, len }
    }

    /// Sends a body while it is made.
    async fn write_pieces<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        let mut window = [0; WINDOW];
        loop {
            let before = self.buffer.notify.notified();
            if planted(Bug::BodyCutShort) && self.buffer.stage.get() == Stage::Ending {
                return Ok(());
            }
            let len = self.buffer.drain_into(&mut window);
            if len > 0 {
                writer.write_all(window.get(..len).unwrap_or_default()).await?;
                self.buffer.notify.notify();
                continue;
            }
            match self.buffer.stage.get() {
                Stage::Whole | Stage::Ending => return Ok(()),
                _ => self.buffer.notify.wait(before).await,
            }
        }
    }

    /// Sends a body that others may send at the same time.
    async fn write_whole<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        let mut window = [0; WINDOW];
        let mut at = 0;
        loop {
            let len = self.buffer.copy(at, &mut window);
            if len == 0 {
                return Ok(());
            }
            writer.write_all(window.get(..len).unwrap_or_default()).await?;
            at += len;
        }
    }
}

impl RequestBody for FromBuffer<'_, '_> {
    fn len(&self) -> Option<usize> {
        self.len
    }

    /// Never returns for a body that was spoilt half-way: the caller gives the request up.
    async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        match self.len {
            Some(_) => self.write_whole(writer).await,
            None => self.write_pieces(writer).await,
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

    fn with_one_buffer(check: impl FnOnce(&BodyBuffers<'_>)) {
        let mut bytes = [0; 8];
        let buffer = [BodyBuffer::new(&mut bytes)];
        check(&BodyBuffers::new(&buffer));
    }

    /// Makes the body that is wanted next, which is for this ReplicaSet.
    fn make_body_of(buffers: &BodyBuffers<'_>, set: u8) {
        let order = block_on(buffers.next_order());
        assert_eq!(order.splice(), Some(&pod_of(set)));
        block_on(order.buffer.fill(b"body"));
        order.end(Ok(()));
    }

    #[test]
    fn what_one_lane_wants_serves_the_others() {
        with_one_buffer(|buffers| {
            let first = block_on(buffers.take(&pod_of(1)));
            assert!(poll_once(buffers.take(&pod_of(1))).is_pending(), "it is still being made");
            make_body_of(buffers, 1);
            let second = block_on(buffers.take(&pod_of(1)));
            for taken in [&first, &second] {
                assert_eq!(block_on(taken.buffer.ready()), Ready::Whole(4));
            }
            assert!(poll_once(buffers.next_order()).is_pending(), "it is made once");
            assert!(poll_once(buffers.take(&pod_of(2))).is_pending(), "both still send it");
            drop((first, second));
            assert!(poll_once(buffers.take(&pod_of(2))).is_ready());
        });
    }

    #[test]
    fn a_body_that_nobody_wants_any_more_is_given_up_before_the_next_is_begun() {
        with_one_buffer(|buffers| {
            let taken = block_on(buffers.take(&pod_of(1)));
            let order = block_on(buffers.next_order());
            assert!(poll_once(order.buffer.fill(b"longer than the buffer")).is_pending());
            assert_eq!(block_on(taken.buffer.ready()), Ready::InPieces);
            assert!(poll_once(order.until_nobody_wants_it()).is_pending());
            // As when the server answers before it has read all of it.
            drop(taken);
            assert!(poll_once(buffers.take(&pod_of(2))).is_pending(), "it is still being filled");
            assert!(poll_once(order.until_nobody_wants_it()).is_ready());
            order.end(Err(Failure::NotSent));
            let next = block_on(buffers.take(&pod_of(2)));
            make_body_of(buffers, 2);
            assert_eq!(block_on(next.buffer.ready()), Ready::Whole(4));
        });
    }

    #[test]
    fn a_source_that_fails_half_way_ends_the_request() {
        with_one_buffer(|buffers| {
            let taken = block_on(buffers.take(&pod_of(1)));
            let order = block_on(buffers.next_order());
            assert!(poll_once(order.buffer.fill(b"longer than the buffer")).is_pending());
            assert!(poll_once(taken.buffer.until_spoilt()).is_pending());
            order.end(Err(Failure::SourceChanged));
            assert_eq!(poll_once(taken.buffer.until_spoilt()), Poll::Ready(Failure::SourceChanged));
            drop(taken);
            // The next one tries again.
            let again = block_on(buffers.take(&pod_of(1)));
            assert!(poll_once(again.buffer.ready()).is_pending());
        });
    }
}

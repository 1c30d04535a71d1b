//! Where the response of a client's request comes to.

use embassy_sync::waitqueue::WakerRegistration;
use picokube_core::manager::ResponseHead;
use picokube_http2::StreamKey;

use crate::Error;

/// What is known of the request under way.
pub(super) struct Inbox {
    /// Its stream, as long as the server may say something about it.
    pub(super) key: Option<StreamKey>,
    /// Whether a head has come.
    pub(super) has_head: bool,
    pub(super) head: ResponseHead,
    /// Whether it has ended, and how. What is in the ring came before.
    pub(super) end: End,
    /// Whether its response has an end of its own: a watch has none.
    pub(super) ends_by_itself: bool,
    /// Its owner cannot send: there is no connection, or no room.
    pub(super) waits_to_send: bool,
    /// Of its owner.
    pub(super) waker: WakerRegistration,
}

/// How a request has ended.
#[derive(Clone, Copy)]
#[repr(u8)] // so that the first is zero
pub(super) enum End {
    NotYet,
    Complete,
    Failed(Error),
}

impl End {
    pub(super) fn get(self) -> Option<Result<(), Error>> {
        match self {
            Self::NotYet => None,
            Self::Complete => Some(Ok(())),
            Self::Failed(error) => Some(Err(error)),
        }
    }
}

impl Inbox {
    pub(super) const EMPTY: Self = Self {
        key: None,
        has_head: false,
        head: ResponseHead::of_status(0),
        end: End::NotYet,
        ends_by_itself: false,
        waits_to_send: false,
        waker: WakerRegistration::new(),
    };

    /// A request has ended, one way or another.
    pub(super) fn end(&mut self, how: Result<(), Error>) {
        self.key = None;
        self.end = match how {
            Ok(()) => End::Complete,
            Err(error) => End::Failed(error),
        };
        self.waker.wake();
    }

    /// Whether sending its body is of no more use: the server has answered, or the stream is over.
    pub(super) fn is_answered(&self) -> bool {
        self.has_head || self.end.get().is_some()
    }
}

/// Bytes of a response that its owner has not taken yet. It is as large as the stream's window, so that
/// what the server may send always fits.
///
/// Its memory is its own, and behind that what is lent to it, which every call has to bring.
pub(super) struct Ring<'a> {
    bytes: &'a mut [u8],
    start: usize,
    len: usize,
}

impl<'a> Ring<'a> {
    /// One without memory.
    pub(super) fn none() -> Self {
        Self::new(&mut [])
    }

    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, start: 0, len: 0 }
    }

    /// How much fits, without what is lent.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what is in it. Only then something else may be lent.
    pub(super) fn clear(&mut self) {
        (self.start, self.len) = (0, 0);
    }

    /// All of its own memory, for whoever needs some before a response comes.
    pub(super) fn memory(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Adds bytes, all of them or none: whether they fit.
    pub(super) fn push(&mut self, mut bytes: &[u8], lent: &mut [u8]) -> bool {
        let size = self.bytes.len() + lent.len();
        if bytes.len() > size - self.len {
            return false;
        }
        let mut at = self.start + self.len;
        self.len += bytes.len();
        while !bytes.is_empty() {
            if at >= size {
                at -= size;
            }
            let place = match at.checked_sub(self.bytes.len()) {
                None => self.bytes.get_mut(at..),
                Some(at) => lent.get_mut(at..),
            };
            let count = copy(bytes, place.unwrap_or_default());
            bytes = bytes.get(count..).unwrap_or_default();
            at += count;
        }
        true
    }

    /// Moves bytes into `window`: how many.
    pub(super) fn pop(&mut self, window: &mut [u8], lent: &[u8]) -> usize {
        let size = self.bytes.len() + lent.len();
        let count = window.len().min(self.len);
        let mut window = window.get_mut(..count).unwrap_or_default();
        while !window.is_empty() {
            let from = match self.start.checked_sub(self.bytes.len()) {
                None => self.bytes.get(self.start..),
                Some(at) => lent.get(at..),
            };
            let count = copy(from.unwrap_or_default(), window);
            window = window.get_mut(count..).unwrap_or_default();
            self.start += count;
            if self.start >= size {
                self.start -= size;
            }
        }
        self.len -= count;
        // What comes next then lies in one piece, in memory that was touched a moment ago.
        if self.len == 0 {
            self.start = 0;
        }
        count
    }
}

/// Copies as much as there is, or fits: how many bytes. In blocks: one by one, ten instructions go into
/// each.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}

/// Memory that is lent to one ring at a time, as long as a response takes: the window of its stream is
/// larger by so much. A stream that gets nothing of it has a window all the same, so nobody waits for it.
pub(super) struct Loan<'a> {
    memory: &'a mut [u8],
    /// The number of the inbox whose ring has it.
    borrower: Option<usize>,
}

impl<'a> Loan<'a> {
    pub(super) fn new(memory: &'a mut [u8]) -> Self {
        Self { memory, borrower: None }
    }

    /// Whoever comes first gets it.
    pub(super) fn borrow(&mut self, index: usize) {
        self.borrower.get_or_insert(index);
    }

    pub(super) fn give_back(&mut self, index: usize) {
        self.borrower.take_if(|borrower| *borrower == index);
    }

    /// What the ring of this inbox has of it.
    pub(super) fn of(&mut self, index: usize) -> &mut [u8] {
        if self.borrower == Some(index) { self.memory } else { &mut [] }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::VecDeque;

    use super::*;

    /// With memory that is lent and without, a ring is a queue that holds so much and no more.
    #[test]
    fn bytes_come_out_as_they_went_in() {
        for (own, lent) in [(7, 0), (4, 3), (1, 6), (3, 9)] {
            let (mut own, mut lent) = (std::vec![0; own], std::vec![0; lent]);
            let size = own.len() + lent.len();
            let mut ring = Ring::new(&mut own);
            let mut model = VecDeque::new();
            let mut next = 0_u8;
            for turn in 0..1000_usize {
                let bytes: std::vec::Vec<u8> =
                    (0..turn * 5 % (size + 2)).map(|n| next.wrapping_add(n as u8)).collect();
                let fits = model.len() + bytes.len() <= size;
                assert_eq!(ring.push(&bytes, &mut lent), fits);
                if fits {
                    next = next.wrapping_add(bytes.len() as u8);
                    model.extend(bytes);
                }
                let mut window = [0; 8];
                let count = ring.pop(&mut window[..turn * 3 % 8], &lent);
                let wanted: std::vec::Vec<u8> = model.drain(..count).collect();
                assert_eq!(window[..count], wanted);
                assert_eq!(count, (turn * 3 % 8).min(count + model.len()));
            }
        }
    }

    #[test]
    fn without_memory_nothing_fits() {
        let mut ring = Ring::none();
        assert!(ring.push(&[], &mut []) && !ring.push(&[1], &mut []));
        assert_eq!(ring.pop(&mut [0; 4], &[]), 0);
    }

    #[test]
    fn one_at_a_time_has_what_is_lent() {
        let mut memory = [0; 5];
        let mut loan = Loan::new(&mut memory);
        assert_eq!((loan.of(1).len(), loan.of(2).len()), (0, 0));
        loan.borrow(2);
        loan.borrow(1);
        assert_eq!((loan.of(1).len(), loan.of(2).len()), (0, 5));
        loan.give_back(1);
        assert_eq!((loan.of(1).len(), loan.of(2).len()), (0, 5));
        loan.give_back(2);
        loan.borrow(1);
        assert_eq!((loan.of(1).len(), loan.of(2).len()), (5, 0));
    }
}

//! Output that waits to be taken.

use super::Splice;
#[cfg(feature = "statefulset")]
use super::Text;
use crate::json::Sink;
#[cfg(feature = "statefulset")]
use crate::json::{Place, Window, Writer};
use heapless::Vec;

/// Room for what waits. 32 bytes of source become at most five operations of a patch, or add one
/// map of ours, and let go of one key that was held back.
const PENDING: usize = 512;

/// What was copied and has not been taken, and where a text of ours goes into it.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    bytes: Vec<u8, PENDING>,
    taken: usize,
    overflowed: bool,
    #[cfg(feature = "statefulset")]
    insertion: Option<Insertion>,
}

/// A text that is too long to wait: it is written when its turn has come, right to where it goes.
#[cfg(feature = "statefulset")]
#[derive(Clone, Copy, Debug)]
struct Insertion {
    text: Text,
    /// Where the writer is before it.
    place: Place,
    /// What waits up to here comes before it.
    at: usize,
    /// Bytes of it that are out already.
    done: usize,
}

impl Pending {
    pub(super) const NONE: Self = Self {
        bytes: Vec::new(),
        taken: 0,
        overflowed: false,
        #[cfg(feature = "statefulset")]
        insertion: None,
    };

    /// Moves output to `out`.
    pub(super) fn take(&mut self, splice: &Splice, out: &mut [u8]) -> usize {
        #[cfg(feature = "statefulset")]
        let inserted = self.insert_into(splice, out);
        #[cfg(not(feature = "statefulset"))]
        let (inserted, _) = (0, splice);
        let written = inserted + self.move_to(out.get_mut(inserted..).unwrap_or_default());
        if self.is_drained() {
            self.bytes.clear();
            self.taken = 0;
        }
        written
    }

    /// Whether nothing waits.
    pub(super) fn is_drained(&self) -> bool {
        #[cfg(feature = "statefulset")]
        if self.insertion.is_some() {
            return false;
        }
        self.taken >= self.bytes.len()
    }

    /// Whether something had no room.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Up to where what waits can be taken.
    fn end(&self) -> usize {
        #[cfg(feature = "statefulset")]
        if let Some(insertion) = self.insertion {
            return insertion.at;
        }
        self.bytes.len()
    }

    fn move_to(&mut self, out: &mut [u8]) -> usize {
        let waiting = self.bytes.get(self.taken..self.end()).unwrap_or_default();
        out.iter_mut().zip(waiting).for_each(|(place, byte)| *place = *byte);
        let count = out.len().min(waiting.len());
        self.taken += count;
        count
    }
}

#[cfg(feature = "statefulset")]
impl Pending {
    /// Lets a text follow what waits; tells where the writer is after it. There must be no other
    /// one that waits: `None` if there is.
    pub(super) fn insert(&mut self, text: Text, splice: &Splice, place: Place) -> Option<Place> {
        if self.insertion.is_some() {
            return None;
        }
        self.insertion = Some(Insertion { text, place, at: self.bytes.len(), done: 0 });
        Some(text.write(splice, Writer::resume(&mut Window::new(&mut [], 0), place)))
    }

    /// What comes before an insertion, and as much as fits of the insertion itself.
    fn insert_into(&mut self, splice: &Splice, out: &mut [u8]) -> usize {
        if self.insertion.is_none() {
            return 0;
        }
        let before = self.move_to(out);
        let is_next = self.taken >= self.end();
        let Some(insertion) = self.insertion.as_mut().filter(|_| is_next) else { return before };
        let mut window = Window::new(out.get_mut(before..).unwrap_or_default(), insertion.done);
        insertion.text.write(splice, Writer::resume(&mut window, insertion.place));
        let (written, is_complete) = (window.written(), window.is_complete());
        insertion.done += written;
        if is_complete {
            self.insertion = None;
        }
        before + written
    }
}

impl Sink for Pending {
    fn put(&mut self, bytes: &[u8]) {
        self.overflowed |= self.bytes.extend_from_slice(bytes).is_err();
    }
}

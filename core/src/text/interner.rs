//! Texts and label sets, each stored once, in a table of equal cells.
//!
//! A text is cut into pieces of 16 bytes, the last of which is filled up with zeros: no text here ends with
//! such bytes. A cell holds one piece and a link to the cell before
//! it, and equal cells are one cell: so texts that begin alike share their beginning, equal texts
//! are the same cell, and comparing two of them compares two numbers. A cell is counted by its
//! users and by the cells behind it, and is free again when nobody needs it.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::link::{Link, Slot, bucket};

/// Bytes of text in one cell; also the size of one label (two fingerprints).
pub(crate) const PIECE: usize = 16;

/// A handle to an interned text. The empty text needs no cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Text(Link);

/// No cell is left for another text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TextFull;

/// One piece of text. [`Interner`] explains how cells make up texts.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// First cell of the hash bucket that has this cell's number.
    bucket: Link,
    /// Next cell of the same bucket; of a free cell, the next free one.
    next: Link,
    /// The cell with the piece before this one.
    before: Link,
    /// Handles to the text that ends here, and cells whose `before` this is. [`Cell::MANY`] of them are
    /// not counted any more: the text stays for ever.
    users: u16,
    piece: Piece,
}

/// A piece of text.
pub(crate) type Piece = [u8; PIECE];

/// The table of interned texts. `C` is `[Cell; N]` where it lives and `[Cell]` where it is used.
#[derive(Debug)]
pub struct Interner<C: ?Sized = [Cell]> {
    seed: u64,
    /// First cell of the free list.
    free: Link,
    /// Cells from here on were never used.
    fresh: u16,
    used: u16,
    cells: C,
}

impl Cell {
    const MANY: u16 = u16::MAX;

    fn lose_user(&mut self) {
        if self.users < Self::MANY {
            self.users = self.users.saturating_sub(1);
        }
    }
}

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self(None);

    /// Whether this is the empty text.
    pub const fn is_empty(self) -> bool {
        self.0.is_none()
    }
}

impl Text {
    pub(crate) fn bits(self) -> u16 {
        self.0.map_or(0, |slot| slot.index() as u16 + 1)
    }
}

impl<const N: usize> Interner<[Cell; N]> {
    /// A table without texts: all zero.
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= Slot::MOST) };
        let empty = Cell { bucket: None, next: None, before: None, users: 0, piece: [0; PIECE] };
        Self { seed: 0, free: None, fresh: 0, used: 0, cells: [empty; N] }
    }
}

impl<const N: usize> Default for Interner<[Cell; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Interner {
    /// Sets the secret that spreads texts over buckets, so that nobody outside can choose names
    /// that share one. Ignored once a text is stored.
    pub fn seed(&mut self, seed: u64) {
        if self.used == 0 {
            self.seed = seed;
        }
    }

    /// The handle of `bytes`, storing them if they are new. Each handle is returned with
    /// [`release`](Self::release) once.
    pub fn intern(&mut self, bytes: &[u8]) -> Result<Text, TextFull> {
        self.intern_pieces(pieces_of(bytes))
    }

    /// As [`intern`](Self::intern), for a text that comes in pieces.
    pub(crate) fn intern_pieces(
        &mut self,
        pieces: impl Iterator<Item = Piece>,
    ) -> Result<Text, TextFull> {
        let mut last = None;
        for piece in pieces {
            match self.find_after(last, piece) {
                Some(found) => last = Some(found),
                None => match self.insert_after(last, piece) {
                    Some(inserted) => last = Some(inserted),
                    None => {
                        self.free_unused(last);
                        return Err(TextFull);
                    }
                },
            }
        }
        Ok(self.retain(Text(last)))
    }

    /// The handle of `bytes` if they are stored; it is not counted.
    pub fn find(&self, bytes: &[u8]) -> Option<Text> {
        let mut last = None;
        for piece in pieces_of(bytes) {
            last = Some(self.find_after(last, piece)?);
        }
        Some(Text(last))
    }

    /// Another handle to the same text.
    pub fn retain(&mut self, text: Text) -> Text {
        if let Some(cell) = text.0.and_then(|slot| self.cells.get_mut(slot.index())) {
            cell.users = cell.users.saturating_add(1);
        }
        text
    }

    /// Gives a handle back.
    pub fn release(&mut self, text: Text) {
        if let Some(cell) = text.0.and_then(|slot| self.cells.get_mut(slot.index())) {
            cell.lose_user();
        }
        self.free_unused(text.0);
    }

    /// The pieces of a text, last one first and with what it is filled up with.
    pub(crate) fn pieces_backwards(&self, text: Text) -> impl Iterator<Item = &Piece> {
        let mut at = text.0;
        core::iter::from_fn(move || {
            let cell = self.cells.get(at?.index())?;
            at = cell.before;
            Some(&cell.piece)
        })
    }

    /// The pieces of a text in order. Quadratic in their number, which is small for names.
    pub fn pieces(&self, text: Text) -> impl Iterator<Item = &[u8]> {
        let count = self.pieces_backwards(text).count();
        (0..count).rev().filter_map(move |skipped| {
            let piece = self.pieces_backwards(text).nth(skipped)?;
            Some(if skipped == 0 { without_filling(piece) } else { piece })
        })
    }

    /// Whether a text is exactly these bytes.
    pub fn is(&self, text: Text, bytes: &[u8]) -> bool {
        let mut pieces = bytes.chunks(PIECE).rev().map(fill_up);
        self.pieces_backwards(text).all(|piece| pieces.next().as_ref() == Some(piece))
            && pieces.next().is_none()
    }

    /// A hash that nobody outside can predict, for the indices of tables beside this one.
    pub(crate) fn hash(&self, feed: impl FnOnce(&mut SipHasher13)) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0);
        feed(&mut hasher);
        hasher.finish() as u32
    }

    /// Cells in use.
    pub fn used(&self) -> usize {
        usize::from(self.used)
    }

    /// Cells in all.
    pub fn capacity(&self) -> usize {
        self.cells.len()
    }

    fn find_after(&self, before: Link, piece: Piece) -> Link {
        let mut at = self.cells.get(self.bucket_of(before, piece))?.bucket;
        loop {
            let slot = at?;
            let cell = self.cells.get(slot.index())?;
            if cell.before == before && cell.piece == piece {
                return Some(slot);
            }
            at = cell.next;
        }
    }

    fn insert_after(&mut self, before: Link, piece: Piece) -> Link {
        let slot = self.allocate()?;
        let bucket = self.bucket_of(before, piece);
        let next = self.cells.get_mut(bucket)?.bucket.replace(slot);
        let cell = self.cells.get_mut(slot.index())?;
        cell.next = next;
        cell.before = before;
        cell.users = 0;
        cell.piece = piece;
        self.retain(Text(before));
        Some(slot)
    }

    fn allocate(&mut self) -> Link {
        let slot = match self.free {
            Some(slot) => {
                self.free = self.cells.get(slot.index())?.next;
                slot
            }
            None => {
                let index = usize::from(self.fresh);
                self.cells.get(index)?;
                self.fresh += 1;
                Slot::from_index(index)?
            }
        };
        self.used += 1;
        Some(slot)
    }

    /// Frees the cell if nobody uses it, and then the cells before it likewise.
    fn free_unused(&mut self, mut at: Link) {
        while let Some(slot) = at {
            let Some(&cell) = self.cells.get(slot.index()) else { return };
            if cell.users > 0 {
                return;
            }
            self.unlink(slot, &cell);
            if let Some(freed) = self.cells.get_mut(slot.index()) {
                freed.next = self.free.replace(slot);
            }
            self.used -= 1;
            at = cell.before;
            if let Some(before) = at.and_then(|slot| self.cells.get_mut(slot.index())) {
                before.lose_user();
            }
        }
    }

    fn unlink(&mut self, slot: Slot, cell: &Cell) {
        let bucket = self.bucket_of(cell.before, cell.piece);
        let Some(head) = self.cells.get_mut(bucket) else { return };
        if head.bucket == Some(slot) {
            head.bucket = cell.next;
            return;
        }
        let mut at = head.bucket;
        while let Some(other) = at.and_then(|slot| self.cells.get_mut(slot.index())) {
            if other.next == Some(slot) {
                other.next = cell.next;
                return;
            }
            at = other.next;
        }
    }

    fn bucket_of(&self, before: Link, piece: Piece) -> usize {
        let hash = self.hash(|hasher| {
            hasher.write(&piece);
            hasher.write_u16(Text(before).bits());
        });
        bucket(hash, self.cells.len())
    }
}

fn pieces_of(bytes: &[u8]) -> impl Iterator<Item = Piece> {
    bytes.chunks(PIECE).map(fill_up)
}

fn fill_up(bytes: &[u8]) -> Piece {
    let mut piece = [0; PIECE];
    for (place, byte) in piece.iter_mut().zip(bytes) {
        *place = *byte;
    }
    piece
}

fn without_filling(piece: &Piece) -> &[u8] {
    let last = piece.iter().rposition(|byte| *byte != 0);
    piece.get(..last.map_or(0, |last| last + 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_more_users_than_can_be_counted_stays() {
        let mut memory = Interner::<[Cell; 8]>::new();
        let texts: &mut Interner = &mut memory;
        let users = usize::from(Cell::MANY) + 9;
        let namespace = texts.intern(b"default").unwrap();
        (1..users).for_each(|_| assert_eq!(texts.intern(b"default"), Ok(namespace)));
        let other = texts.intern(b"other").unwrap();
        (0..users).for_each(|_| texts.release(namespace));
        texts.release(other);
        assert_eq!(texts.find(b"default"), Some(namespace));
        assert_eq!((texts.find(b"other"), texts.used()), (None, 1));
    }
}

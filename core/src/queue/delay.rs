//! Delayed Adds: a binary heap by due time, with the place of each key so that it can be moved.

use super::{Item, Queue};
use crate::link::{Link, Slot};
use crate::time::Instant;

impl Item {
    fn due(&self) -> u64 {
        let [low, middle, high] = self.due.map(u64::from);
        low | middle << 16 | high << 32
    }
}

impl Queue {
    /// Sets the delayed Add of a key, or moves it if this is earlier.
    pub(super) fn delay(&mut self, key: Slot, due: Instant) {
        // Enough for nine years; whoever waits longer is looked at then.
        let due = due.as_micros().min(0xffff_ffff_ffff);
        let Some(item) = self.items.get_mut(key.index()) else { return };
        if item.heap_place.is_some() && item.due() <= due {
            return;
        }
        item.due = [due as u16, (due >> 16) as u16, (due >> 32) as u16];
        let place = match item.heap_place {
            Some(place) => place.index(),
            None => {
                self.delayed += 1;
                usize::from(self.delayed - 1)
            }
        };
        self.sift_up(place, key);
    }

    /// Takes the delayed Add that is due first, if it is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Link {
        let key = self.at(0)?;
        if self.due_of(key) > now.as_micros() {
            return None;
        }
        self.cancel_delayed(key);
        Some(key)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.at(0).map(|key| Instant::from_micros(self.due_of(key)))
    }

    pub(super) fn cancel_delayed(&mut self, key: Slot) {
        let place = self.items.get_mut(key.index()).and_then(|item| item.heap_place.take());
        let Some(place) = place.map(Slot::index) else { return };
        self.delayed -= 1;
        let end = usize::from(self.delayed);
        let last = self.at(end);
        if let Some(item) = self.items.get_mut(end) {
            item.heap = None;
        }
        if let Some(last) = last.filter(|_| place != end) {
            let place = self.sift_down(place, last);
            self.sift_up(place, last);
        }
    }

    /// Puts a key into a place that is free, or nearer to the root if it is due before those there, which
    /// make room.
    fn sift_up(&mut self, mut place: usize, key: Slot) {
        let due = self.due_of(key);
        while let Some(above) = place.checked_sub(1).map(|left| left / 2) {
            let Some(parent) = self.at(above).filter(|&parent| due < self.due_of(parent)) else {
                break;
            };
            self.put(place, parent);
            place = above;
        }
        self.put(place, key);
    }

    /// Where a key belongs that is to be in a free place or below it: those that are due before it move up.
    fn sift_down(&mut self, mut place: usize, key: Slot) -> usize {
        let end = usize::from(self.delayed);
        let due = self.due_of(key);
        loop {
            let left = 2 * place + 1;
            let mut first = (due, None);
            for child in [left, left + 1] {
                if let Some(key) = self.at(child).filter(|_| child < end)
                    && self.due_of(key) < first.0
                {
                    first = (self.due_of(key), Some((child, key)));
                }
            }
            let Some((child, key)) = first.1 else { return place };
            self.put(place, key);
            place = child;
        }
    }

    fn at(&self, place: usize) -> Link {
        self.items.get(place)?.heap
    }

    fn put(&mut self, place: usize, key: Slot) {
        if let Some(item) = self.items.get_mut(place) {
            item.heap = Some(key);
        }
        if let Some(item) = self.items.get_mut(key.index()) {
            item.heap_place = Slot::from_index(place);
        }
    }

    fn due_of(&self, key: Slot) -> u64 {
        self.items.get(key.index()).map_or(u64::MAX, Item::due)
    }
}

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
                let place = usize::from(self.delayed);
                self.delayed += 1;
                self.put(place, Some(key));
                place
            }
        };
        self.sift_up(place);
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
        if place != end {
            self.put(place, last);
            self.sift_down(place);
            self.sift_up(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while let Some(parent) = place.checked_sub(1).map(|left| left / 2) {
            if !self.is_before(place, parent) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            let end = usize::from(self.delayed);
            let mut first = place;
            for child in [left, right] {
                if child < end && self.is_before(child, first) {
                    first = child;
                }
            }
            if first == place {
                return;
            }
            self.swap(place, first);
            place = first;
        }
    }

    fn is_before(&self, place: usize, other: usize) -> bool {
        match (self.at(place), self.at(other)) {
            (Some(key), Some(other)) => self.due_of(key) < self.due_of(other),
            _ => false,
        }
    }

    fn swap(&mut self, place: usize, other: usize) {
        let (here, there) = (self.at(place), self.at(other));
        self.put(place, there);
        self.put(other, here);
    }

    fn at(&self, place: usize) -> Link {
        self.items.get(place)?.heap
    }

    fn put(&mut self, place: usize, key: Link) {
        if let Some(item) = self.items.get_mut(place) {
            item.heap = key;
        }
        if let Some(item) = key.and_then(|key| self.items.get_mut(key.index())) {
            item.heap_place = Slot::from_index(place);
        }
    }

    fn due_of(&self, key: Slot) -> u64 {
        self.items.get(key.index()).map_or(u64::MAX, Item::due)
    }
}

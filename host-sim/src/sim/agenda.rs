//! What will happen, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Moment;

/// Things by the moment they are due; what is due at the same moment happens in the order in
/// which it was planned.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Item<T>>>,
    planned: u64,
}

#[derive(Debug)]
struct Item<T> {
    at: Moment,
    number: u64,
    what: T,
}

impl<T> Agenda<T> {
    pub(super) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    pub(super) fn plan(&mut self, at: Moment, what: T) {
        self.planned += 1;
        self.heap.push(Reverse(Item { at, number: self.planned, what }));
    }

    /// When the next thing is due.
    pub(super) fn next_at(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse(item)| item.at)
    }

    pub(super) fn next(&mut self) -> Option<(Moment, T)> {
        self.heap.pop().map(|Reverse(item)| (item.at, item.what))
    }
}

impl<T> Ord for Item<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Item<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_once_happens_in_the_order_of_planning() {
        let mut agenda = Agenda::new();
        for (at, what) in [(5, "c"), (1, "a"), (5, "d"), (1, "b")] {
            agenda.plan(Moment::from_micros(at), what);
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).map(|(_, what)| what).collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
    }
}

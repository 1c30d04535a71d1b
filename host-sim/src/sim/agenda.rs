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

    /// What would happen later than `at` happens then, if it is one of these; in the same order.
    pub(super) fn hasten(&mut self, at: Moment, is_one: impl Fn(&T) -> bool) {
        let mut items = std::mem::take(&mut self.heap).into_vec();
        for Reverse(item) in items.iter_mut().filter(|it| it.0.at > at && is_one(&it.0.what)) {
            item.at = at;
        }
        self.heap = BinaryHeap::from(items);
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

    #[test]
    fn what_is_hastened_keeps_its_order() {
        let mut agenda = Agenda::new();
        for (at, what) in [(9, "c"), (8, "b"), (7, "x"), (1, "a"), (2, "y")] {
            agenda.plan(Moment::from_micros(at), what);
        }
        agenda.hasten(Moment::from_micros(3), |what| "abc".contains(what));
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        let order: Vec<_> = order.iter().map(|(at, what)| (at.as_micros(), *what)).collect();
        assert_eq!(order, [(1, "a"), (2, "y"), (3, "c"), (3, "b"), (7, "x")]);
    }
}

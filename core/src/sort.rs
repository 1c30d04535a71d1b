//! A sort that takes any comparison, however inconsistent, and never panics.

use core::cmp::Ordering;

/// Sorts in place, in `n log n` comparisons. Not stable.
///
/// The order of pods for deletion is not transitive, which the sorts of the standard library may
/// answer with a panic; and those are larger.
pub(crate) fn heap_sort<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut is_less = |a: &T, b: &T| compare(a, b).is_lt();
    for root in (0..items.len() / 2).rev() {
        sift_down(items, root, &mut is_less);
    }
    for end in (1..items.len()).rev() {
        items.swap(0, end);
        if let Some(heap) = items.get_mut(..end) {
            sift_down(heap, 0, &mut is_less);
        }
    }
}

fn sift_down<T>(heap: &mut [T], mut root: usize, is_less: &mut impl FnMut(&T, &T) -> bool) {
    loop {
        let mut largest = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if let (Some(top), Some(below)) = (heap.get(largest), heap.get(child))
                && is_less(top, below)
            {
                largest = child;
            }
        }
        if largest == root {
            return;
        }
        heap.swap(root, largest);
        root = largest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn sorts_like_the_standard_library() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u32
        };
        for len in 0..200 {
            let mut items: Vec<u32> = (0..len).map(|_| random() % 50).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            heap_sort(&mut items, Ord::cmp);
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn keeps_every_item_however_they_are_compared() {
        for verdict in [Ordering::Less, Ordering::Greater, Ordering::Equal] {
            let mut items: Vec<u32> = (0..100).collect();
            heap_sort(&mut items, |_, _| verdict);
            items.sort_unstable();
            assert_eq!(items, (0..100).collect::<Vec<_>>());
        }
    }
}

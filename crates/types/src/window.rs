//! Items by sequence number, from the oldest that has not ended.

use crate::room::shrink_queue;
use alloc::collections::VecDeque;

/// Items with consecutive numbers, which end in any order. An item that ends leaves an empty slot, and the window
/// moves on past the empty slots at its front.
///
/// The slots take memory, not only the items: one item that never ends keeps all the slots behind it. So the limit of a
/// window counts slots.
#[derive(Clone, Debug)]
pub struct Window<T> {
    /// Number of the first slot.
    first: u64,
    slots: VecDeque<Option<T>>,
    /// Slots with an item.
    live: usize,
    slots_max: usize,
}

impl<T> Window<T> {
    /// An empty window whose first item gets the number `first`, with room for `slots_max` slots.
    #[must_use]
    pub const fn new(first: u64, slots_max: usize) -> Self {
        Self { first, slots: VecDeque::new(), live: 0, slots_max }
    }

    /// Number of the first slot: every item with a lower number has ended.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next item will get.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Number of items.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.live
    }

    /// Number of slots, the empty ones included.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// True if there is no slot for another item.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.slots.len() >= self.slots_max
    }

    /// Appends an item and returns its number.
    ///
    /// # Panics
    /// If the window is full: the caller refuses an item before, by [`Self::is_full`] or by a limit below this one.
    pub fn push(&mut self, item: T) -> u64 {
        assert!(!self.is_full(), "a window takes no more than {} slots", self.slots_max);
        self.push_granted(item)
    }

    /// As [`Self::push`], even if the window is full: for items that must not be refused because the group has accepted
    /// them already. The caller says beside the call what bounds their number.
    pub fn push_granted(&mut self, item: T) -> u64 {
        let number = self.end();
        self.slots.push_back(Some(item));
        self.live += 1;
        number
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    /// The item with this number, unless it has ended.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&T> {
        self.slots.get(self.index(number)?)?.as_ref()
    }

    /// As [`Self::get`].
    #[must_use]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let index = self.index(number)?;
        self.slots.get_mut(index)?.as_mut()
    }

    /// Ends the item with this number, and returns it if it had not ended.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let index = self.index(number)?;
        let item = self.slots.get_mut(index)?.take()?;
        self.live -= 1;
        while matches!(self.slots.front(), Some(None)) {
            self.slots.pop_front();
            self.first += 1;
        }
        shrink_queue(&mut self.slots);
        Some(item)
    }

    /// Ends every item. The numbers go on.
    pub fn clear(&mut self) {
        self.first = self.end();
        self.slots.clear();
        self.live = 0;
        shrink_queue(&mut self.slots);
    }

    /// The lowest number of an item, from `number` on.
    #[must_use]
    pub fn next_live(&self, number: u64) -> Option<u64> {
        let start = self.index(number.max(self.first))?;
        let offset = self.slots.iter().skip(start).position(Option::is_some)?;
        Some(self.first + (start + offset) as u64)
    }

    /// Every slot in order; `None` where the item has ended.
    pub fn iter_slots(&self) -> impl ExactSizeIterator<Item = Option<&T>> {
        self.slots.iter().map(Option::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;
    use alloc::collections::BTreeMap;

    #[test]
    fn items_end_in_any_order() {
        let mut window = Window::new(1, 8);
        let numbers = ["a", "b", "c", "d"].map(|item| window.push(item));
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(window.remove(3), Some("c"));
        assert_eq!(window.remove(3), None, "it has ended already");
        assert_eq!((window.first(), window.slots(), window.live()), (1, 4, 3));
        assert_eq!((window.remove(1), window.remove(2)), (Some("a"), Some("b")));
        assert_eq!((window.first(), window.slots(), window.live()), (4, 1, 1));
        assert_eq!(
            (window.get(0), window.get(3), window.get(4), window.get(9)),
            (None, None, Some(&"d"), None)
        );
        assert_eq!(window.get(u64::MAX), None);
        assert_eq!(window.push("e"), 5);
        if let Some(item) = window.get_mut(5) {
            *item = "f";
        }
        assert_eq!(window.remove(5), Some("f"));
        assert_eq!((window.end(), window.slots()), (6, 2), "an empty slot at the end keeps its number");
    }

    #[test]
    fn the_limit_counts_slots() {
        let mut window = Window::new(1, 3);
        for number in 1..=3 {
            assert!(!window.is_full());
            assert_eq!(window.push(()), number);
        }
        window.remove(2);
        assert!(window.is_full(), "one item that has not ended keeps the slots behind it");
        window.remove(1);
        assert!(!window.is_full());
        window.push(());
        window.push(());
        assert!(window.is_full());
        assert_eq!(window.push_granted(()), 6);
        assert_eq!((window.slots(), window.is_full()), (4, true));
    }

    #[test]
    #[should_panic(expected = "a window takes no more than 1 slots")]
    fn a_full_window_takes_nothing() {
        let mut window = Window::new(1, 1);
        window.push(());
        window.push(());
    }

    #[test]
    fn numbers_go_on_after_everything_has_ended() {
        let mut window = Window::new(0, 4);
        window.push('a');
        window.push('b');
        window.clear();
        assert_eq!((window.first(), window.live(), window.next_live(0)), (2, 0, None));
        assert_eq!(window.push('c'), 2);
        assert_eq!((window.get(0), window.get(2)), (None, Some(&'c')));
    }

    #[test]
    fn agrees_with_a_map() {
        let mut prng = Prng::new(1);
        for first in [0, 1, 1 << 40] {
            let (mut window, mut map, mut next) = (Window::new(first, usize::MAX), BTreeMap::new(), first);
            for _ in 0..20_000 {
                let number = next.saturating_sub(prng.below(600));
                // Now more begin than end, now fewer.
                if prng.chance(if next / 1000 % 2 == 0 { 6 } else { 4 }, 10) {
                    assert_eq!(window.push(next * 7), next);
                    map.insert(next, next * 7);
                    next += 1;
                } else {
                    assert_eq!(window.remove(number), map.remove(&number));
                }
                assert_eq!(window.get(number), map.get(&number));
                assert_eq!(window.next_live(number), map.range(number..).next().map(|(number, _)| *number));
                assert_eq!((window.live(), window.end()), (map.len(), next));
                let lowest = map.first_key_value().map_or(next, |(number, _)| *number);
                assert_eq!(window.first(), lowest);
            }
            assert!(window.iter_slots().flatten().eq(map.values()));
            assert_eq!(window.iter_slots().len(), window.slots());
        }
    }
}

//! Room that a burst leaves behind in a collection, and when to give it back.

use alloc::collections::VecDeque;

/// Capacity that a collection keeps, however few elements it holds.
pub const CAPACITY_KEPT: usize = 256;

/// True if a collection with room for `capacity` elements holds so few that it should be made smaller: elements that
/// are spread over much room are not in the processor's caches when they are needed. A collection shrinks at an eighth
/// of its capacity, so the removals before are many times the elements that shrinking copies.
#[must_use]
pub const fn is_roomy(length: usize, capacity: usize) -> bool {
    capacity > 2 * CAPACITY_KEPT && length < capacity / 8
}

/// Gives back the room that a burst has left in a queue. The caller calls it after each removal. A queue that becomes
/// empty starts again at the beginning of its room, which the processor's caches still hold.
pub fn shrink_queue<T>(queue: &mut VecDeque<T>) {
    if is_roomy(queue.len(), queue.capacity()) {
        queue.shrink_to((2 * queue.len()).max(CAPACITY_KEPT));
    } else if queue.is_empty() {
        queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_leave_no_room_behind() {
        let mut queue: VecDeque<u64> = (0..100_000).collect();
        let mut copied = 0;
        for _ in 0..99_900 {
            let before = queue.capacity();
            queue.pop_front();
            shrink_queue(&mut queue);
            copied += if queue.capacity() < before { queue.len() } else { 0 };
        }
        assert!(queue.capacity() <= 1024);
        assert!(copied < 100_000, "{copied} copied");
        assert!(queue.iter().copied().eq(99_900..100_000));
        while queue.pop_front().is_some() {}
        shrink_queue(&mut queue);
        queue.push_back(1);
        assert_eq!(queue.as_slices().0.len(), 1);
    }
}

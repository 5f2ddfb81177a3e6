//! Hash tables with a fixed hasher. They are looked up and never iterated, so their order cannot
//! leak into behaviour.

use alloc::collections::VecDeque;
use core::hash::{BuildHasher, Hasher};

/// A table that is only ever looked up.
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// Capacity that a table or queue keeps however little is in it.
const CAPACITY_KEPT: usize = 256;

/// True if what has room for so many holds so few that it should be made smaller: a burst leaves room
/// behind, and what is spread over it is not in the processor's caches when it is needed. That it holds an eighth means
/// that much more has been removed than is copied then.
const fn is_roomy(length: usize, capacity: usize) -> bool {
    capacity > 2 * CAPACITY_KEPT && length < capacity / 8
}

/// To be called after something was removed: gives up room that a burst has left.
pub(crate) fn shrink_table<K: Eq + core::hash::Hash, V>(table: &mut HashMap<K, V>) {
    if is_roomy(table.len(), buckets(table)) {
        table.shrink_to((2 * table.len()).max(CAPACITY_KEPT));
    }
}

/// Places that a table has in memory, about. (What it calls its capacity is less: it does not count places that removed
/// entries have left and that only a copy makes free again.)
fn buckets<K: Eq + core::hash::Hash, V>(table: &HashMap<K, V>) -> usize {
    table.allocation_size() / (size_of::<(K, V)>() + 1)
}

/// As [`shrink_table`]. A queue that is used up is used from its beginning again, not on through all its room.
pub(crate) fn shrink_queue<T>(queue: &mut VecDeque<T>) {
    if is_roomy(queue.len(), queue.capacity()) {
        queue.shrink_to((2 * queue.len()).max(CAPACITY_KEPT));
    } else if queue.is_empty() {
        queue.clear();
    }
}

/// Builds [`FixedHasher`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixedState;

impl BuildHasher for FixedState {
    type Hasher = FixedHasher;

    fn build_hasher(&self) -> FixedHasher {
        FixedHasher(0x9e37_79b9_7f4a_7c15)
    }
}

/// Multiply-and-fold over 64-bit words. Not resistant to crafted keys: session and sequence numbers
/// are bounded windows, and key hashes only cost their author speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xe703_7ed1_a0b4_28db_u128;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_leave_no_room_behind() {
        let mut table: HashMap<u64, u64> = HashMap::default();
        let mut queue = VecDeque::new();
        for number in 0..100_000 {
            table.insert(number, number);
            queue.push_back(number);
        }
        let mut copied = 0;
        for number in 0..99_900 {
            let before = (buckets(&table), queue.capacity());
            table.remove(&number);
            shrink_table(&mut table);
            queue.pop_front();
            shrink_queue(&mut queue);
            copied += if buckets(&table) < before.0 { table.len() } else { 0 };
            copied += if queue.capacity() < before.1 { queue.len() } else { 0 };
        }
        assert!(buckets(&table) <= 1024 && queue.capacity() <= 1024);
        assert!(copied < 100_000, "{copied} copied");
        assert!((99_900..100_000).all(|number| table.get(&number) == Some(&number)));
        assert!(queue.iter().copied().eq(99_900..100_000));
        while queue.pop_front().is_some() {}
        shrink_queue(&mut queue);
        queue.push_back(1);
        assert_eq!(queue.as_slices().0.len(), 1);
    }
}

//! Hash tables with a fixed hasher. They are looked up and never iterated, so their order cannot
//! leak into behaviour.

use core::hash::{BuildHasher, Hasher};
use syros_types::fold;
use syros_types::room::{CAPACITY_KEPT, is_roomy};

/// A table that is only ever looked up.
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

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
        self.0 = fold(self.0 ^ word, 0xe703_7ed1_a0b4_28db);
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
        for number in 0..100_000 {
            table.insert(number, number);
        }
        let mut copied = 0;
        for number in 0..99_900 {
            let before = buckets(&table);
            table.remove(&number);
            shrink_table(&mut table);
            copied += if buckets(&table) < before { table.len() } else { 0 };
        }
        assert!(buckets(&table) <= 1024);
        assert!(copied < 100_000, "{copied} copied");
        assert!((99_900..100_000).all(|number| table.get(&number) == Some(&number)));
    }
}

//! Hash tables with a fixed hasher. They are looked up and never iterated, so their order cannot
//! leak into behaviour.

use core::hash::{BuildHasher, Hasher};

/// A table that is only ever looked up.
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, FixedState>;

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

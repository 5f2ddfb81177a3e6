//! The hash function of the engine's tables.

use core::hash::{BuildHasher, Hasher};
use syros_types::fold;

/// Builds [`KeyHasher`]s with one seed. The seed changes where a key sits in a table and nothing that
/// can be observed, so every process may have its own; whoever does not know it cannot choose keys that
/// collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHashBuilder {
    start: u64,
    factor: u64,
}

impl KeyHashBuilder {
    pub(crate) const fn new(seed: u64) -> Self {
        let mut prng = syros_types::Prng::new(seed);
        // An odd factor loses no bits.
        Self { start: prng.next_u64(), factor: prng.next_u64() | 1 }
    }
}

impl BuildHasher for KeyHashBuilder {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { hash: self.start, factor: self.factor }
    }
}

/// Multiply-and-fold over 8-byte words, after wyhash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHasher {
    hash: u64,
    factor: u64,
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !tail.is_empty() {
            let mut word = [0; 8];
            word[..tail.len()].copy_from_slice(tail);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.hash = fold(self.hash ^ word, self.factor);
    }

    /// The length of a slice, written before its bytes, tells `a` from `a\0`.
    fn write_usize(&mut self, length: usize) {
        self.hash = self.hash.wrapping_add(length as u64);
    }

    fn finish(&self) -> u64 {
        fold(self.hash, self.factor ^ 0xe703_7ed1_a0b4_28db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(seed: u64, key: &[u8]) -> u64 {
        KeyHashBuilder::new(seed).hash_one(key)
    }

    #[test]
    fn seeds_and_keys_change_the_hash() {
        assert_eq!(hash(1, b"key"), hash(1, b"key"));
        assert_ne!(hash(1, b"key"), hash(2, b"key"));
        assert_ne!(hash(1, b"a"), hash(1, b"a\0"));
        assert_ne!(hash(1, b""), hash(1, b"\0"));
    }

    #[test]
    fn similar_keys_spread_evenly() {
        // The table uses the low bits for the bucket and the high seven as a tag.
        let mut buckets = [0u32; 256];
        let mut tags = [0u32; 128];
        for number in 0..65_536 {
            let value = hash(0, format!("key:{number:012}").as_bytes());
            buckets[(value % 256) as usize] += 1;
            tags[(value >> 57) as usize] += 1;
        }
        // 256 expected, standard deviation 16; 512 expected, standard deviation 23.
        assert!(buckets.iter().all(|count| (160..=352).contains(count)), "{buckets:?}");
        assert!(tags.iter().all(|count| (374..=650).contains(count)), "{tags:?}");
    }
}

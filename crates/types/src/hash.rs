//! Hashing of words and keys by multiplying and folding.

use crate::{Database, mix};

/// The two halves of the product, combined: the step that wyhash is made of. Fixed for ever, because hashes that are
/// stored, sent and compared between processes come from it.
#[must_use]
#[inline]
pub const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of a key of the [first database](Database::FIRST), or of any bytes: fixed for ever and everywhere, so that every replica and client agrees on what
/// overlaps. Multiply-and-fold over 8-byte words, after wyhash; not resistant to crafted collisions,
/// which would only cost their author the fast path.
#[must_use]
pub fn key_hash(key: &[u8]) -> u64 {
    const K0: u64 = 0xa076_1d64_78bd_642f;
    const K1: u64 = 0xe703_7ed1_a0b4_28db;
    let mut hash = K0 ^ (key.len() as u64).wrapping_mul(K1);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        hash = fold(hash ^ u64::from_le_bytes(bytes), K1);
    }
    let mut tail = [0; 8];
    let rest = words.remainder();
    tail[..rest.len()].copy_from_slice(rest);
    fold(fold(hash ^ u64::from_le_bytes(tail), K1) ^ K0, K1)
}

/// Hash of the key of this name in a database: fixed for ever. In the first one it is the [hash](key_hash) of the name.
#[must_use]
#[inline]
pub fn key_hash_in(database: Database, name: &[u8]) -> u64 {
    let hash = key_hash(name);
    if database.is_first() { hash } else { mix(hash ^ mix(database.number() as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fold_is_fixed_for_ever() {
        assert_eq!(fold(3, 5), 15);
        assert_eq!(fold(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(fold(1 << 63, 6), 3);
    }

    #[test]
    fn key_hash_is_fixed_for_ever() {
        // Golden values: changing them would make old and new processes disagree on overlaps.
        let golden = [key_hash(b""), key_hash(b"a"), key_hash(b"key:000000000042")];
        assert_eq!(golden, GOLDEN);
        assert_ne!(key_hash(b"a"), key_hash(b"a\0"));
    }

    #[test]
    fn hashes_of_equal_names_in_two_databases_differ() {
        let mut hashes: alloc::vec::Vec<u64> =
            Database::all().map(|database| key_hash_in(database, b"a")).collect();
        assert_eq!(hashes[0], key_hash(b"a"));
        // Fixed for ever, as those of the first database are.
        assert_eq!((hashes[1], hashes[15]), GOLDEN_IN_OTHERS);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), Database::COUNT);
    }
    const GOLDEN_IN_OTHERS: (u64, u64) = (0x145c_98f2_8fee_3144, 0x4237_f457_a6c0_b03a);
    const GOLDEN: [u64; 3] = [0x832f_f0d4_5093_5050, 0x3560_7cf0_29fc_1bcc, 0x75f0_ec7a_75c0_b610];
}

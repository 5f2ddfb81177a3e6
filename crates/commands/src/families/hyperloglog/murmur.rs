//! MurmurHash64A, by which Redis hashes elements. Strings that hold its results go from one server to another, so it is
//! fixed for ever.

/// The seed that Redis gives it.
const SEED: u64 = 0xadc8_3b19;

const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;

/// The hash of an element.
pub(super) fn hash(element: &[u8]) -> u64 {
    let (words, rest) = element.as_chunks();
    let start = SEED ^ (element.len() as u64).wrapping_mul(FACTOR);
    let mut hash = words.iter().fold(start, |hash, word| {
        let word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        (hash ^ (word ^ (word >> 47)).wrapping_mul(FACTOR)).wrapping_mul(FACTOR)
    });
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(FACTOR);
    hash ^ (hash >> 47)
}

//! The registers of a HyperLogLog.

use super::murmur::hash;

/// How many bits of an element's hash name its register.
const INDEX_BITS: u32 = 14;

/// The other bits of the hash.
pub(super) const RANK_BITS: u32 = 64 - INDEX_BITS;

/// How many registers there are.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;

/// A register for each part of the elements: the highest rank of those that were added; 0 if there were none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers(Box<[u8]>);

/// A rank that an element gives to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// The register.
    pub(super) index: usize,
    /// What it is raised to: 1 to 51.
    pub(super) rank: u8,
}

impl Rank {
    /// The rank of an element: the position of the lowest 1 among the bits of its hash that do not name the register.
    pub(super) fn of(element: &[u8]) -> Self {
        let hash = hash(element);
        // A 1 behind the highest bit ends the search.
        let bits = hash >> INDEX_BITS | 1 << RANK_BITS;
        Self { index: hash as usize % REGISTERS, rank: bits.trailing_zeros() as u8 + 1 }
    }
}

impl Registers {
    /// Of no elements.
    pub(super) fn new() -> Self {
        Self(vec![0; REGISTERS].into_boxed_slice())
    }

    /// All of them, in the order of their indices.
    pub(super) const fn all(&self) -> &[u8] {
        &self.0
    }

    /// All of them, to be changed.
    pub(super) const fn all_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// True if the rank is higher than that of its register.
    pub(super) fn is_below(&self, Rank { index, rank }: Rank) -> bool {
        self.0[index] < rank
    }

    /// Raises a register to a rank.
    pub(super) fn raise(&mut self, Rank { index, rank }: Rank) {
        self.0[index] = self.0[index].max(rank);
    }

    /// Raises each register to the other one of its index.
    pub(super) fn raise_to(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(register, other)| *register = (*register).max(*other));
    }
}

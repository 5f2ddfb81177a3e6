//! A small seeded generator. Entropy is an argument: nothing here knows where a seed comes from.

/// By how much the state of `SplitMix64` grows with each number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64 bits in which every bit of the input reaches every bit of the output: the next number of a
/// [`Prng`] in this state. Fixed for ever, because the digests of states that replicas compare come from it.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `SplitMix64` (Steele, Lea, Flood 2014): 64 bits of state, passes BigCrush, good enough for jitter,
/// simulation and load generation; never for secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// A generator whose whole output is determined by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let number = mix(self.state);
        self.state = self.state.wrapping_add(GAMMA);
        number
    }

    /// A number below `bound` (Lemire's multiplication; its bias of at most `bound`/2^64 is
    /// irrelevant here). Returns 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True with probability `numerator / denominator`.
    pub const fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// An independent generator, seeded from this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::{Prng, mix};

    #[test]
    fn numbers_are_those_of_the_paper() {
        // The first numbers of the authors' reference implementation, from state 0.
        let mut prng = Prng::new(0);
        assert_eq!([prng.next_u64(), prng.next_u64()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn same_seed_same_sequence() {
        let (mut a, mut b) = (Prng::new(7), Prng::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Prng::new(7).next_u64(), Prng::new(8).next_u64());
    }

    #[test]
    fn below_stays_below() {
        let mut prng = Prng::new(1);
        for bound in [1, 2, 3, 10, 1 << 40] {
            assert!((0..1000).all(|_| prng.below(bound) < bound));
        }
        assert_eq!(prng.below(0), 0);
    }
}

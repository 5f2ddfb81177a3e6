//! How many elements were added, estimated from registers: Ertl, "New cardinality estimation algorithms for HyperLogLog
//! sketches" (arXiv:1702.01284), section 4, algorithm 6, as Redis does it since version 5.
//!
//! All that is computed are sums, products, quotients and square roots, which are the same on every machine.

use super::registers::{RANK_BITS, REGISTERS, Registers};

/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The estimate.
pub(super) fn estimate(registers: &Registers) -> u64 {
    const COUNT: f64 = REGISTERS as f64;
    // Registers have six bits. No element gives one a rank above the 51st, but a client may have written it.
    let mut with_rank = [0_u32; 64];
    registers.all().iter().for_each(|rank| with_rank[usize::from(*rank) % 64] += 1);
    let with = |rank: u32| f64::from(with_rank[rank as usize]);
    let highest = COUNT * tau((COUNT - with(RANK_BITS + 1)) / COUNT);
    let sum = (1..=RANK_BITS).rev().fold(highest, |sum, rank| (sum + with(rank)) * 0.5);
    let sum = sum + COUNT * sigma(with(0) / COUNT);
    (ALPHA * COUNT * COUNT / sum).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

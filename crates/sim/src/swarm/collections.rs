//! Worlds whose clients use collections.

use super::{CollectionSettings, Draw, Swarm};
use crate::workload::collections::KINDS;
use syros_types::Prng;

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_6c2a_fa1d;

/// Beside the seed, for all types but hashes.
const DICE_OF_TYPES: u64 = 0x5397_0a11_7be1_03c5;

/// Beside the seed, for what goes from one key to another.
const DICE_OF_TRANSFERS: u64 = 0x5397_0a11_7be1_03c6;

impl Swarm {
    /// In one world of five, clients use collections, unless values are large or no key may be added. In one of four of those,
    /// they use hashes alone. Rolled apart, with dice that leave the worlds of the corpus alone.
    pub(super) fn draw_collections(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        if !draw.one_in(5) || self.workload.value_bytes > 0 {
            return;
        }
        let of_hashes = draw.of(&[0, 1, 1, 4]) + 1;
        // As many dice as there were when each type had a roll here.
        let _ = draw.0.below(1);
        self.workload.collections = Some(CollectionSettings {
            percent: draw.of(&[30, 60, 90]),
            keys: draw.between(1, 3),
            weights: self.draw_types(of_hashes),
            read_percent: draw.of(&[20, 40]),
            blind_percent: draw.of(&[0, 30, 80]),
            lifetime_percent: draw.sometimes(&[4, 15]),
            rename_percent: draw.sometimes(&[3, 10]),
            transfer_percent: Draw(Prng::new(self.seed ^ DICE_OF_TRANSFERS)).sometimes(&[5, 20]),
            text_percent: draw.sometimes(&[5, 20]),
            long_percent: draw.sometimes(&[5, 40]),
        });
    }

    /// The weights of all types. In most worlds one type stands out: operations of different types on one key mostly fail.
    fn draw_types(&self, of_hashes: u64) -> [u64; KINDS] {
        let mut draw = Draw(Prng::new(self.seed ^ DICE_OF_TYPES));
        let mut weights = [0; KINDS];
        weights[0] = of_hashes;
        if draw.one_in(4) {
            return weights;
        }
        for weight in &mut weights {
            *weight = draw.of(&[0, 0, 1]);
        }
        weights[draw.0.below(KINDS as u64) as usize] += draw.of(&[2, 10]);
        weights
    }
}

//! Worlds whose clients use collections.

use super::{CollectionSettings, Draw, Swarm};
use crate::workload::collections::KINDS;
use syros_types::Prng;

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_6c2a_fa1d;

impl Swarm {
    /// In one world of five, clients use collections, unless values are large or no key may be added. Rolled apart, with
    /// dice that leave the worlds of the corpus alone.
    pub(super) fn draw_collections(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        if !draw.one_in(5) || self.workload.value_bytes > 0 {
            return;
        }
        let mut weights = [0; KINDS];
        for weight in &mut weights {
            *weight = draw.of(&[0, 1, 1, 4]);
        }
        // One type at least.
        weights[draw.0.below(KINDS as u64) as usize] += 1;
        self.workload.collections = Some(CollectionSettings {
            percent: draw.of(&[30, 60, 90]),
            keys: draw.between(1, 3),
            weights,
            read_percent: draw.of(&[20, 40]),
            blind_percent: draw.of(&[0, 30, 80]),
            lifetime_percent: draw.sometimes(&[4, 15]),
            rename_percent: draw.sometimes(&[3, 10]),
            text_percent: draw.sometimes(&[5, 20]),
            long_percent: draw.sometimes(&[5, 40]),
        });
    }
}

//! Worlds whose clients watch keys.

use super::{Draw, Swarm};
use crate::workload::WatchSettings;
use syros_types::Prng;

/// Beside the seed. No seed of the corpus has such a world.
const DICE: u64 = 0x5397_0a11_0380_798a;

impl Swarm {
    /// In one world of six, clients watch keys, unless values are large. Rolled apart.
    pub(super) fn draw_watches(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        if !draw.one_in(6) || self.workload.value_bytes > 0 {
            return;
        }
        let shared_part = draw.of(&[0, 2, 2, 4]);
        self.workload.watches = Some(WatchSettings {
            percent: draw.of(&[10, 30, 60]),
            keys_max: draw.of(&[1, 1, 2]),
            // Operations over all keys join all histories.
            shared_part: if self.workload.all_keys_percent > 0 { 0 } else { shared_part },
            updates_percent: draw.of(&[20, 50]),
        });
    }
}

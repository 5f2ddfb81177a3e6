//! Worlds whose Redis clients ask for commands that wait.

use super::{CollectionSettings, Draw, Swarm};
use syros_types::Prng;

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_b10c_0001;

impl Swarm {
    /// In one of two worlds with Redis front ends, clients ask for commands that wait, and all use lists and sorted sets. How
    /// long those who are gone count is told by log time: clocks do not jump then. Rolled apart.
    pub(super) fn draw_waits(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        let jumps = self.clocks.wrong.is_some() || self.nemesis.clock_jump + self.nemesis.end_sessions > 0;
        let is_apart = jumps || self.workload.value_bytes > 0 || self.workload.all_keys_percent > 0;
        let Some(world) = self.front_ends.as_mut().filter(|_| !is_apart && draw.one_in(2)) else { return };
        world.waiters = draw.between(1, 3) as usize;
        let settings = self.workload.collections.get_or_insert(CollectionSettings {
            percent: draw.of(&[30, 60, 90]),
            keys: draw.between(1, 3),
            weights: [0; crate::workload::collections::KINDS],
            read_percent: draw.of(&[20, 40]),
            blind_percent: draw.of(&[0, 30]),
            lifetime_percent: 0,
            rename_percent: draw.sometimes(&[3, 10]),
            transfer_percent: draw.sometimes(&[5, 15]),
            text_percent: draw.sometimes(&[5, 20]),
            long_percent: draw.sometimes(&[5, 40]),
        });
        settings.weights[1] += draw.of(&[1, 4, 10]);
        settings.weights[3] += draw.of(&[0, 0, 4]);
        // What waits at a node that others have lost does not count: more nodes than elsewhere say which they are.
        self.own_front_ends |= draw.one_in(2);
    }
}

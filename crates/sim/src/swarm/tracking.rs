//! Worlds whose Redis clients keep copies of what they read.

use super::{Draw, Swarm};
use syros_types::Prng;

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_c0b1_0001;

impl Swarm {
    /// In one of three worlds with Redis front ends at nodes, clients keep copies. Rolled apart.
    pub(super) fn draw_tracking(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        // Of values of megabytes, clients that read them again and again would not be served.
        let is_apart = self.workload.value_bytes > 10_000;
        let Some(world) = self.front_ends.as_mut().filter(|world| world.at_nodes > 0 && !is_apart) else {
            return;
        };
        if draw.one_in(3) {
            world.keepers = draw.between(1, 3) as usize;
        }
    }
}

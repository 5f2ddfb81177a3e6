//! Worlds whose Redis clients are users, and whose users change.

use super::{Draw, MILLI, Swarm};
use syros_types::{Prng, ReadPolicy};

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_5eed_0054;

/// Clients as users of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserWorld {
    /// Each front end has so many clients that act for users.
    pub actors: usize,
    /// Front ends may go by what they know of the users for so long.
    pub valid: u64,
    /// Pauses between changes take about so long.
    pub change_pause: u64,
    /// Pauses of a client take about so long.
    pub act_pause: u64,
}

impl Swarm {
    /// In one of three worlds with Redis front ends, front ends ask who clients are, and somebody changes that. Rolled apart.
    pub(super) fn draw_users(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        let speed = u64::from(self.protocol.speed);
        // What these clients write counts among all keys; of values of megabytes, others would not be served.
        let is_apart = self.workload.value_bytes > 10_000
            || self.workload.all_keys_percent > 0
            || self.workload.read_policy == Some(ReadPolicy::Stale);
        let Some(world) = self.front_ends.as_mut().filter(|_| draw.one_in(3) && !is_apart) else { return };
        world.users = Some(UserWorld {
            actors: draw.between(1, 3) as usize,
            // Where reads always take longer, nobody is served. Disks are as slow in fast worlds.
            valid: (draw.of(&[300 * MILLI, 600 * MILLI, 1_500 * MILLI]) / speed).max(100 * MILLI),
            change_pause: draw.of(&[5 * MILLI, 50 * MILLI, 200 * MILLI]) / speed,
            act_pause: draw.of(&[MILLI, 10 * MILLI]) / speed,
        });
        // Before a process knows the users it refuses SELECT and MULTI, too, and what comes after them would be something else.
        world.databases = 1;
        world.joined_percent = 0;
        (world.converses, world.scripts_publish) = (false, false);
        (world.waiters, world.keepers) = (0, 0);
    }
}

//! Worlds whose keys are evicted.

use super::{Draw, Swarm};
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{EvictionPolicy, Prng};

/// Beside the seed.
const DICE: u64 = 0x5397_0a11_0e51_c7ed;

impl Swarm {
    /// In one of two worlds with Redis front ends, these are at nodes, as far as there are nodes, and keys are evicted while
    /// memory is short, by any of the policies. Rolled apart.
    pub(super) fn draw_evictions(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ DICE));
        let has_small_values = self.workload.value_bytes == 0;
        let Some(world) = self.front_ends.as_mut().filter(|_| has_small_values && draw.one_in(2)) else {
            return;
        };
        // The leader evicts keys if its process has a front end.
        let count = world.at_nodes + world.gateways;
        world.at_nodes = count.min(self.replicas);
        world.gateways = count - world.at_nodes;
        let mut policy = || draw.of(&EvictionPolicy::ALL);
        self.eviction.policy = policy();
        while self.eviction.policy == EvictionPolicy::NoEviction {
            self.eviction.policy = policy();
        }
        // A key takes some 100 bytes, and nothing at all takes some, too.
        self.maxmemory = Some(MemoryEngine::new().memory_bytes() + draw.of(&[150, 300, 600]));
    }
}

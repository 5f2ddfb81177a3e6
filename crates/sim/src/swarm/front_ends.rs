//! Worlds with Redis front ends, of nine replicas, and with large values. Each is rolled apart, so that no other world changes, with
//! dice that leave the worlds of the corpus alone.

use super::{Draw, MICRO, MILLI, Swarm, UserWorld};
use syros_types::{Group, Prng};

/// Processes with a Redis front end, in the places of the first clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontEndWorld {
    /// So many share the process of a replica, the first ones.
    pub at_nodes: usize,
    /// So many are gateways.
    pub gateways: usize,
    /// Redis clients that each has at a time.
    pub connections: usize,
    /// Pipelines have at most so many operations.
    pub pipeline: u64,
    /// So many bytes of replies are in sockets at most.
    pub window: usize,
    /// A client takes what has arrived within this time.
    pub read_pause: u64,
    /// About how long bytes take between client and process.
    pub delay: u64,
    /// Pipelines of a hundred after which a client goes.
    pub close_percent: u64,
    /// Processes of a hundred that are told to end.
    pub terminate_percent: u64,
    /// Bytes that all clients of a process may take.
    pub client_memory: usize,
    /// Without a majority for so long, commands are refused.
    pub quorum_timeout: u64,
    /// How long a process that is told to end answers clients.
    pub drain_timeout: u64,
    /// Redis clients use so many databases, with keys of the same names.
    pub databases: u64,
    /// Clients that each has whose commands wait, beside the others.
    pub waiters: usize,
    /// Clients of each node that keep copies of what they read, beside the others.
    pub keepers: usize,
    /// Clients of each that are users, beside the others.
    pub users: Option<UserWorld>,
    /// Of a hundred operations, so many are joined with others to one, by a script or in a transaction.
    pub joined_percent: u64,
    /// Scripts must declare the keys that they touch.
    pub declares: bool,
    /// There are clients that publish and subscribe.
    pub converses: bool,
    /// They have not come to an end.
    pub talks_on: bool,
    /// Clients publish by scripts, too.
    pub scripts_publish: bool,
}

/// Operations of a world with values of megabytes.
const LARGE_OPERATIONS_MAX: u64 = 30;

/// Values above this many bytes are large.
const LARGE_BYTES: usize = 100_000;

impl Swarm {
    /// In one of three worlds with front ends at nodes, clients poll: most of what they ask for changes nothing. Rolled apart.
    pub(super) fn draw_polls(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_004f));
        if self.front_ends.is_some_and(|world| world.at_nodes > 0) && draw.one_in(3) {
            self.workload.weights =
                [1, 0, draw.of(&[0, 1]), 0, 0, draw.of(&[0, 1]), 8, 0, 0, 0, draw.of(&[1, 6]), 2];
        }
    }

    /// In one world of eight, some clients are Redis front ends.
    pub(super) fn draw_front_ends(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eee_a392));
        let is_apart = self.permanent.is_some()
            || self.formation.unformed.is_some()
            || self.nemesis.ruin_at.is_some()
            || self.lease_change.is_some();
        if !draw.one_in(8) || is_apart {
            return;
        }
        let speed = u64::from(self.protocol.speed);
        let count = draw.between(1, self.workload.clients.clamp(1, 3) as u64) as usize;
        let at_nodes = (draw.between(0, count as u64) as usize).min(self.replicas);
        // One operation of a workload is a pipeline here: what runs at one time stays about as much.
        self.workload.operations = self.workload.operations.div_ceil(2);
        self.workload.in_flight = 1;
        // Operations over all keys join all histories.
        let pipelines: &[u64] = if self.workload.all_keys_percent > 0 { &[1] } else { &[1, 3, 6] };
        self.front_ends = Some(FrontEndWorld {
            at_nodes,
            gateways: count - at_nodes,
            connections: draw.between(1, 3) as usize,
            pipeline: draw.of(pipelines),
            window: draw.of(&[7, 200, 100_000, 100_000]),
            read_pause: draw.of(&[0, MILLI, 20 * MILLI]) / speed,
            delay: draw.of(&[MICRO, 100 * MICRO, MILLI]) / speed,
            close_percent: draw.sometimes(&[3, 20]),
            terminate_percent: draw.sometimes(&[30, 80]),
            client_memory: draw.of(&[60_000, 1 << 20, 1 << 30]),
            quorum_timeout: draw.of(&[200 * MILLI, 2_000 * MILLI]) / speed,
            drain_timeout: draw.of(&[50 * MILLI, 5_000 * MILLI]) / speed,
            databases: self.databases_of_clients(),
            waiters: 0,
            keepers: 0,
            users: None,
            joined_percent: Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0047)).sometimes(&[10, 40]),
            declares: Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0048)).one_in(2),
            // Without a front end at a node, gateways reach nobody.
            converses: (at_nodes > 0 || count == 1)
                && Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0041)).one_in(2),
            talks_on: true,
            // A gateway hears of scripts from the front end of a node.
            scripts_publish: at_nodes > 0 && Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_0049)).one_in(3),
        });
        if draw.one_in(4) {
            self.make_values_large(draw.of(&[1_500, 1_500, 8_000, 1 << 20]));
        }
    }

    /// How many databases Redis clients use. Where operations concern all keys it is one: of each other database the judge
    /// would have to know how many keys it has.
    fn databases_of_clients(&self) -> u64 {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_db16));
        if self.workload.all_keys_percent > 0 { 1 } else { draw.between(1, 3) }
    }

    /// In one world of fifty there are nine replicas, and in one of fifty values are large.
    pub(super) fn draw_size(&mut self) {
        let mut draw = Draw(Prng::new(self.seed ^ 0x5397_0a11_5eed_2003));
        let is_apart = self.formation.unformed.is_some() || self.clocks.wrong.is_some();
        if draw.one_in(50) && !is_apart {
            if let Ok(group) = Group::new(9) {
                self.resize(group);
            }
            self.cap_operations(40);
        }
        if draw.one_in(50) {
            self.make_values_large(draw.of(&[10_000, 1 << 20, 3 << 20]));
        }
    }

    /// Values have so many bytes; where these are many, operations are few, and what is limited by bytes has room.
    fn make_values_large(&mut self, bytes: usize) {
        if self.hunt.is_some() || self.maxmemory.is_some() {
            return;
        }
        self.workload.value_bytes = bytes;
        if let Some(world) = &mut self.front_ends {
            // A reply to each of a few commands, of several values.
            world.client_memory = world.client_memory.max(60 * bytes);
            // A large reply does not take longer than a client waits.
            world.window = world.window.max(bytes / 4);
        }
        self.protocol.lift_byte_limits();
        if bytes > LARGE_BYTES {
            self.cap_operations(LARGE_OPERATIONS_MAX);
            self.workload.keys = self.workload.keys.min(3);
        }
    }

    fn cap_operations(&mut self, most: u64) {
        // What happens at some count of operations has to come about.
        if self.nemesis.ruin_at.is_none() && self.lease_change.is_none() {
            self.workload.operations = self.workload.operations.min(most);
        }
    }
}

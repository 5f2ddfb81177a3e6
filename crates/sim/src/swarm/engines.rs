//! Worlds whose engines are on disk.

use super::{Draw, MICRO, MILLI, NemesisSettings, Swarm};
use crate::network::NetworkFaults;
use core::time::Duration;
use syros_types::Prng;

/// How an engine on disk executes, and how its disk behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEngineSettings {
    /// Threads that execute.
    pub lanes: usize,
    /// See `Config::apply_ahead`.
    pub apply_ahead: u64,
    /// Longest time until threads get on, in nanoseconds.
    pub step_delay: u64,
    /// Most steps that threads do at a time.
    pub steps_max: u64,
    /// When there is something for lanes and for readers, it is a reader's turn once in so many times at most.
    pub readers_one_in: u64,
    /// Longest time until the process looks at what threads have done.
    pub report_delay: u64,
    /// Longest time a flush takes.
    pub flush_delay: u64,
    /// Flushes of a hundred that the disk refuses.
    pub refused_percent: u64,
}

/// Dice of their own: for a seed, nothing else that is drawn depends on where engines are.
fn dice(seed: u64) -> Draw {
    Draw(Prng::new(seed ^ 0x5397_0a11_5eed_0004))
}

/// True if the engines of this seed's world are on disk.
pub(super) fn are_on_disk(seed: u64) -> bool {
    dice(seed).one_in(3)
}

impl Swarm {
    /// The world that this seed has, or would have if its engines were on disk.
    #[must_use]
    pub fn draw_on_disk(seed: u64) -> Self {
        let mut swarm = Self::draw_wherever(seed);
        swarm.move_to_disk(&mut Draw(dice(seed).0.fork()));
        swarm.draw_clock_hunt();
        swarm.draw_sizes();
        swarm
    }

    fn move_to_disk(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.disk_engine = Some(DiskEngineSettings {
            lanes: draw.between(1, 4) as usize,
            apply_ahead: draw.of(&[0, 1, 3, 10_000]),
            step_delay: draw.of(&[0, 10 * MICRO, 200 * MICRO, 2 * MILLI]) / speed,
            steps_max: draw.of(&[1, 4, 64]),
            readers_one_in: draw.of(&[1, 1, 8]),
            report_delay: draw.sometimes(&[20 * MICRO, MILLI]) / speed,
            flush_delay: draw.of(&[0, MILLI, 20 * MILLI, 200 * MILLI]) / speed,
            refused_percent: draw.sometimes(&[2, 20]),
        });
        self.workload.expiring_percent = draw.sometimes(&[3, 20]);
        self.nemesis.per_snapshot_percent = self.nemesis.per_snapshot_percent.max(draw.of(&[0, 1, 5, 20]));
        let segments = draw.of(&[100, 1_000, self.disk.segment_bytes]);
        let (log, rate) = (draw.of(&[100, 1_000, 5_000]), draw.of(&[u64::MAX, 1_000_000, 50_000]));
        let (block, part) = (draw.of(&[1, 100, 100_000]), draw.of(&[100, 1_000, 100_000]));
        let trim = draw.of(&[usize::MAX, usize::MAX, 0, 3_000]);
        let protocol = &mut self.protocol;
        if protocol.replica.snapshot_log_bytes == usize::MAX {
            // Each ends with a checkpoint of the engine: a world without any says nothing of it.
            protocol.replica.snapshot_log_bytes = log;
        }
        if protocol.snapshot_part_bytes == 0 {
            // Logs begin where checkpoints end, so that somebody may lack what is before.
            protocol.replica.log_keep_bytes = trim;
            protocol.snapshot_block_bytes = block;
            protocol.snapshot_part_bytes = part;
            protocol.replica.transfer_rate = rate.saturating_mul(speed);
            self.disk.segment_bytes = segments;
        }
        if draw.one_in(6) {
            self.become_lane_hunt(draw);
        }
    }

    /// Threads that are slow and far ahead of each other, readers that come round late, and clients that read several
    /// keys while others write them one after the other.
    fn become_lane_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[1, 3, 3, 5]);
        let near = draw.of(&[20 * MICRO, 100 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.between(3, 5) as usize;
        workload.readers = 0;
        workload.in_flight = draw.of(&[1, 2]);
        workload.keys = draw.between(2, 4);
        workload.hot_key_percent = 0;
        workload.think = draw.of(&[0, near, 10 * near]);
        workload.packed_percent = 0;
        workload.weights = [8, draw.of(&[0, 2]), draw.of(&[0, 2]), 0, 0, 0, 0, draw.of(&[0, 1]), 5, 0, 0, 1];
        self.network = NetworkFaults { jitter: draw.of(&[0, near]), ..NetworkFaults::none(near) };
        self.disk.sync_delay = (0, near);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[50 * MILLI, 200 * MILLI]) / speed,
            per_snapshot_percent: draw.of(&[0, 2]),
            duration: draw.of(&[50 * MILLI, 500 * MILLI]) / speed,
            leader_percent: 50,
            crash: 4,
            isolate: 1,
            hand_over: draw.of(&[0, 2]),
            ..NemesisSettings::default()
        };
        self.protocol.replica.order_delay = Duration::from_nanos(draw.of(&[0, near, 10 * near]));
        self.protocol.lift_limits();
        self.service_delay = 0;
        if let Some(engine) = &mut self.disk_engine {
            engine.lanes = draw.between(2, 4) as usize;
            engine.apply_ahead = draw.of(&[3, 10_000, 10_000]);
            engine.step_delay = draw.of(&[2, 5, 20]) * near;
            engine.steps_max = draw.of(&[1, 2]);
            engine.readers_one_in = draw.of(&[2, 8, 32]);
        }
    }
}

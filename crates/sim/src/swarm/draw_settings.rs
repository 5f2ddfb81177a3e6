//! Draws the settings of the parts of a world.

use super::{MICRO, MILLI, NemesisSettings, ProtocolSettings, SECOND, WorkloadSettings};
use crate::network::NetworkFaults;
use core::time::Duration;
use syros_protocol::history::ChangeHistory;
use syros_protocol::replica;
use syros_types::Prng;

/// Draws parameters.
pub(super) struct Draw(pub(super) Prng);

impl Draw {
    /// True once in `n`.
    pub(super) const fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    pub(super) const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// 0 as often as not, else one of `choices`.
    pub(super) fn sometimes(&mut self, choices: &[u64]) -> u64 {
        if self.one_in(2) { 0 } else { self.of(choices) }
    }
}

impl WorkloadSettings {
    pub(super) fn draw(draw: &mut Draw, operations: u64, speed: u64) -> Self {
        let mut weights = [0; crate::workload::KINDS];
        for weight in &mut weights {
            *weight = draw.of(&[0, 1, 1, 2, 8]);
        }
        if weights.iter().all(|weight| *weight == 0) {
            weights = [1; crate::workload::KINDS];
        }
        // The search for a linearization is exponential in what runs at one time; with more than this,
        // histories over several keys are not decided in reasonable time.
        const CONCURRENT_MAX: usize = 10;
        let clients = draw.between(2, 6) as usize;
        Self {
            clients,
            in_flight: draw.of(&[1, 2, 4, 8]).min(CONCURRENT_MAX / clients),
            operations,
            keys: draw.between(2, 6),
            think: draw.of(&[0, MILLI, 10 * MILLI, 40 * MILLI]) / speed,
            hot_key_percent: draw.of(&[0, 50, 90]),
            weights,
            packed_percent: draw.sometimes(&[5, 30]),
            transaction_percent: 0,
            expiring_percent: 0,
            lifetime_max: 200,
            expiring_read: false,
            collections: None,
            watches: None,
            all_keys_percent: 0,
            stale_percent: 0,
            value_bytes: 0,
            readers: draw.sometimes(&[1, 2]) as usize,
            read_policy: None,
            write_policy: None,
        }
    }
}

pub(super) fn draw_network(draw: &mut Draw, speed: u64) -> NetworkFaults {
    let near = draw.of(&[20 * MICRO, 200 * MICRO, 2 * MILLI]) / speed;
    let far = near * draw.of(&[1, 3, 10]);
    NetworkFaults {
        delay: (near, far),
        jitter: draw.sometimes(&[near, 10 * near, 5 * MILLI / speed]),
        loss_ppm: draw.sometimes(&[1_000, 20_000, 100_000]),
        bad_link_percent: if draw.one_in(4) { 10 } else { 0 },
        duplicate_ppm: draw.sometimes(&[1_000, 20_000, 200_000]),
        flip_ppm: 0,
        straggler_ppm: draw.sometimes(&[1_000, 20_000, 100_000]),
        straggle: draw.of(&[20 * MILLI, 500 * MILLI, 3 * SECOND]) / speed,
        spared: 0,
        cut_drops_in_flight: draw.one_in(2),
        in_order: draw.one_in(3),
    }
}

impl NemesisSettings {
    pub(super) fn draw(draw: &mut Draw, speed: u64) -> Self {
        let mut weight = || draw.of(&[0, 0, 1, 3, 9]);
        let weights: [u64; 13] = core::array::from_fn(|_| weight());
        let [
            crash,
            lose_disk,
            crash_all,
            partition,
            isolate,
            one_way,
            creep,
            pause,
            clock_jump,
            client_crash,
            disconnect,
            slow,
            hand_over,
        ] = weights;
        Self {
            interval: if draw.one_in(16) {
                0
            } else {
                draw.of(&[50 * MILLI, 200 * MILLI, 800 * MILLI]) / speed
            },
            per_operation_percent: draw.sometimes(&[1, 5]),
            duration: draw.of(&[50 * MILLI, 500 * MILLI, 2 * SECOND]) / speed,
            leader_percent: draw.of(&[0, 50, 90]),
            cut_clients_percent: 50,
            crash,
            lose_disk: lose_disk / 3,
            crash_all: crash_all / 3,
            partition,
            isolate,
            one_way,
            creep,
            pause,
            clock_jump,
            client_crash,
            disconnect,
            slow: slow / 3,
            hand_over,
            ..Self::default()
        }
    }
}

impl ProtocolSettings {
    pub(super) fn draw(draw: &mut Draw, speed: u32) -> Self {
        let scaled = |millis: u64| Duration::from_micros(millis * 1_000 / u64::from(speed));
        Self {
            speed,
            replica: replica::Settings {
                order_delay: draw.of(&[
                    Duration::ZERO,
                    Duration::from_micros(500),
                    scaled(5),
                    scaled(60),
                    scaled(400),
                ]),
                fetch_delay: draw.of(&[Duration::from_micros(500), scaled(5), scaled(60)]),
                batch_max: draw.of(&[1, 2, 7, 1024]),
                dlog_length_max: draw.of(&[4, 32, 262_144, 262_144]),
                waiting_max: draw.of(&[8, 262_144, 262_144]),
                log_keep_bytes: usize::MAX,
                snapshot_log_bytes: usize::MAX,
                history_bytes_max: draw.of(&[1, 10, 1_000]) * ChangeHistory::CHANGE_BYTES,
                transfer_rate: u64::MAX,
                forward_after: draw.of(&[scaled(100), scaled(1_000)]),
                session_timeout: draw.of(&[
                    scaled(2_000),
                    Duration::from_secs(600),
                    Duration::from_secs(600),
                ]),
                ..replica::Settings::new()
            },
            snapshot_block_bytes: 0,
            snapshot_part_bytes: 0,
            sync_after: draw.of(&[scaled(5), scaled(20), scaled(200)]),
            client_reconnect: draw.of(&[scaled(5), scaled(50)]),
            client_resend: draw.of(&[scaled(30), scaled(200)]),
            give_up_after: draw.of(&[scaled(1_500), scaled(10_000)]),
            ..Self::default()
        }
    }
}

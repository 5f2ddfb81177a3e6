//! Worlds made for one kind of trouble: what it takes comes about there again and again, and hardly anything
//! else happens.

use super::{Draw, MICRO, MILLI, NemesisSettings, SECOND, Swarm};
use crate::network::NetworkFaults;
use core::time::Duration;
use syros_protocol::history::ChangeHistory;
use syros_types::FastQuorum;

/// What a world is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hunt {
    /// Few keys, many writers, leaders that fail.
    Duels,
    /// Readers, and leaders that lose touch.
    Leases,
    /// One key, clocks far apart, links that lose a lot.
    Recovery,
    /// Sessions that end while they are used.
    Sessions,
    /// Copies of one update that differ in age.
    Resends,
    /// Logs that hold hardly anything.
    Snapshots,
    /// Readers that ask members who lag behind.
    Reads,
    /// Keys that expire, and clocks that are off by hours and years.
    Clocks,
}

impl Hunt {
    /// Three worlds of four are made for something; what takes the longest to find gets the most.
    pub(super) fn draw(draw: &mut Draw) -> Option<Self> {
        use Hunt::{Duels, Leases, Reads, Recovery, Resends, Sessions, Snapshots};
        let hunts = [
            Duels, Leases, Leases, Recovery, Recovery, Recovery, Sessions, Resends, Resends, Snapshots, Reads,
        ];
        hunts.get(draw.0.below(14) as usize).copied()
    }
}

impl Swarm {
    pub(super) fn make_for(&mut self, hunt: Option<Hunt>, draw: &mut Draw) {
        match hunt {
            None => {}
            Some(Hunt::Duels) => self.become_duel(draw),
            Some(Hunt::Leases) => self.become_lease_hunt(draw),
            Some(Hunt::Recovery) => self.become_recovery_hunt(draw),
            Some(Hunt::Sessions) => self.become_session_hunt(draw),
            Some(Hunt::Resends) => self.become_resend_hunt(draw),
            Some(Hunt::Snapshots) => self.become_snapshot_hunt(draw),
            Some(Hunt::Reads) => self.become_read_hunt(draw),
            Some(Hunt::Clocks) => self.become_clock_hunt(draw),
        }
    }

    /// One key, few clients whose clocks are far apart, links that lose a lot, and a leader that is cut
    /// off from its followers but not from clients: everything is decided by what the durability logs
    /// hold and by timestamps, and hardly anything is written twice before somebody reads it.
    fn become_recovery_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 5, 5]);
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.between(2, 4) as usize;
        workload.readers = draw.of(&[0, 1]);
        workload.in_flight = 1;
        workload.keys = draw.of(&[1, 1, 2]);
        workload.think = draw.of(&[2 * near, 20 * near, MILLI]);
        workload.packed_percent = 0;
        let merges = if self.fast_quorum.takes_merges() { draw.of(&[0, 2]) } else { 0 };
        workload.weights = [6, merges, 0, merges, 0, 0, 0, 0, 0, 0, 0, draw.of(&[4, 8])];
        self.network = NetworkFaults {
            delay: (near, draw.of(&[1, 4]) * near),
            jitter: draw.of(&[0, near]),
            bad_link_percent: draw.of(&[10, 25, 40]),
            duplicate_ppm: draw.of(&[0, 200_000, 500_000]),
            straggler_ppm: draw.of(&[0, 50_000, 200_000]),
            straggle: draw.of(&[20 * MILLI, 400 * MILLI]) / speed,
            cut_drops_in_flight: draw.one_in(2),
            in_order: draw.one_in(2),
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[5_000, 50_000, 300_000]);
        self.disk.crash_ppm = 0;
        self.disk.sync_delay = (0, near);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[100 * MILLI, 400 * MILLI]) / speed,
            per_operation_percent: draw.of(&[0, 5, 15]),
            duration: draw.of(&[300 * MILLI, SECOND]) / speed,
            leader_percent: 95,
            cut_clients_percent: draw.of(&[0, 0, 50]),
            crash: draw.of(&[0, 1, 4]),
            isolate: 6,
            creep: draw.of(&[0, 2]),
            partition: draw.of(&[0, 1]),
            ..NemesisSettings::default()
        };
        self.protocol.replica.order_delay = Duration::from_millis(draw.of(&[20, 300, 1_000]) / speed);
        self.protocol.lift_limits();
        self.service_delay = 0;
    }

    /// Sessions that end because a wall clock jumps, just when their clients go on: what is hard about
    /// sessions.
    fn become_session_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5]);
        let near = draw.of(&[500 * MICRO, 2 * MILLI]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.between(1, 3) as usize;
        workload.readers = 0;
        workload.in_flight = 1;
        workload.keys = draw.of(&[3, 6]);
        workload.think = draw.of(&[30 * near, 60 * near]);
        workload.packed_percent = 0;
        // What is merged stays missing once it is lost.
        let merges = if self.fast_quorum.takes_merges() { 4 } else { 0 };
        workload.weights = [4, merges, 0, merges, 0, 0, 0, 0, 0, 0, 0, draw.of(&[2, 6])];
        self.network = NetworkFaults {
            delay: (near, 2 * near),
            jitter: draw.of(&[0, near]),
            bad_link_percent: draw.of(&[0, 10]),
            duplicate_ppm: draw.of(&[0, 200_000]),
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[0, 2_000]);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[200 * near, 500 * near]),
            per_operation_percent: draw.of(&[0, 5]),
            per_ending_percent: draw.of(&[30, 60]),
            duration: draw.of(&[100 * MILLI, 500 * MILLI]) / speed,
            leader_percent: 95,
            crash: 1,
            isolate: 1,
            clock_jump: draw.of(&[0, 2]),
            end_sessions: 10,
            ..NemesisSettings::default()
        };
        // Ending a session takes long enough for its client to ask for something meanwhile.
        self.disk.sync_delay = (2 * near, 10 * near);
        self.disk.crash_ppm = 0;
        self.protocol.replica.order_delay = Duration::from_nanos(draw.of(&[20 * near, 50 * near]));
        self.protocol.replica.session_timeout = Duration::from_nanos(draw.of(&[100 * near, 400 * near]));
        self.protocol.lift_limits();
        self.service_delay = 0;
    }

    /// Connections that break, requests that are late or lost, and clients that would rather wait than
    /// ask the leader: copies of one update that differ in age.
    fn become_resend_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5]);
        // With a majority, who lacks an update is hardly ever asked to take it later.
        self.fast_quorum = draw.of(&[FastQuorum::Supermajority, FastQuorum::Supermajority, self.fast_quorum]);
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.of(&[1, 2]);
        workload.readers = 0;
        workload.in_flight = draw.of(&[3, 6]);
        // What is lost is missed at the end, if nobody overwrote it.
        workload.keys = draw.of(&[24, 100]);
        workload.think = draw.of(&[MILLI, 10 * MILLI]) / speed;
        workload.packed_percent = 0;
        workload.weights = [6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, draw.of(&[2, 6])];
        self.network = NetworkFaults {
            delay: (near, near),
            bad_link_percent: draw.of(&[0, 20, 40]),
            straggler_ppm: draw.of(&[100_000, 300_000]),
            straggle: draw.of(&[100 * MILLI, 300 * MILLI]) / speed,
            spared: self.replicas,
            in_order: false,
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[0, 2_000]);
        self.disk.crash_ppm = 0;
        self.disk.sync_delay = (0, near);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[20 * MILLI, 80 * MILLI]) / speed,
            per_resend_percent: draw.of(&[30, 60]),
            duration: draw.of(&[100 * MILLI, 500 * MILLI]) / speed,
            leader_percent: 30,
            disconnect: 1,
            ..NemesisSettings::default()
        };
        self.protocol.replica.order_delay = Duration::from_millis(draw.of(&[60, 150])) / speed as u32;
        self.protocol.replica.fetch_delay = Duration::from_millis(1_000) / speed as u32;
        self.protocol.replica.batch_max = 1024;
        self.protocol.sync_after = Duration::from_secs(2) / speed as u32;
        self.protocol.client_reconnect = Duration::from_nanos(2 * near);
        self.protocol.lift_limits();
        self.service_delay = 0;
        self.apply_delay = 0;
    }

    /// Logs that hold hardly anything, transfers that take long, and faults just when a snapshot is begun,
    /// finished or taken over; increments sent again and again, so that nothing may be done twice.
    fn become_snapshot_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5]);
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.between(2, 4) as usize;
        workload.readers = 0;
        workload.in_flight = draw.of(&[1, 2]);
        workload.keys = draw.of(&[1, 2]);
        workload.think = draw.of(&[2 * near, 20 * near, 2 * MILLI / speed]);
        workload.packed_percent = 0;
        workload.weights = [draw.of(&[0, 4]), 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        self.network = NetworkFaults {
            delay: (near, draw.of(&[1, 4]) * near),
            jitter: draw.of(&[0, near]),
            bad_link_percent: draw.of(&[0, 20, 40]),
            duplicate_ppm: draw.of(&[0, 200_000]),
            straggler_ppm: draw.of(&[0, 100_000, 300_000]),
            straggle: draw.of(&[20 * MILLI, 100 * MILLI, 400 * MILLI]) / speed,
            in_order: draw.one_in(2),
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[0, 5_000]);
        self.disk.crash_ppm = draw.of(&[0, 5_000]);
        self.disk.sync_delay = (0, draw.of(&[1, 10]) * near);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[50 * MILLI, 200 * MILLI]) / speed,
            per_snapshot_percent: draw.of(&[20, 60]),
            duration: draw.of(&[100 * MILLI, 400 * MILLI]) / speed,
            leader_percent: draw.of(&[50, 90]),
            crash: draw.of(&[2, 6]),
            crash_all: draw.of(&[0, 1]),
            isolate: draw.of(&[2, 6]),
            partition: draw.of(&[0, 2]),
            lose_disk: draw.of(&[0, 1]),
            pause: draw.of(&[0, 2]),
            disconnect: draw.of(&[0, 4]),
            // A leader that gives way goes on sending its snapshot, to members of the next view.
            hand_over: draw.of(&[0, 4, 16]),
            ..NemesisSettings::default()
        };
        // What arrives while a snapshot is loaded is not executed, but vouched for.
        self.load_delay = draw.of(&[0, 30 * MILLI, 100 * MILLI, 300 * MILLI]) / speed;
        let protocol = &mut self.protocol;
        protocol.replica.log_keep_bytes = draw.of(&[0, 300, 1_000]);
        protocol.trimming = draw.of(&[1, 2, usize::MAX]);
        protocol.replica.snapshot_log_bytes = draw.of(&[100, 500, usize::MAX]);
        protocol.replica.transfer_rate = draw.of(&[u64::MAX, 50_000 * speed, 10_000 * speed]);
        protocol.snapshot_block_bytes = draw.of(&[1, 100]);
        protocol.snapshot_part_bytes = draw.of(&[100, 1_000]);
        self.disk.segment_bytes = draw.of(&[100, 1_000]);
        protocol.replica.order_delay = Duration::from_nanos(draw.of(&[0, 4 * near, 40 * near]));
        protocol.client_resend = Duration::from_millis(30) / speed as u32;
        self.protocol.lift_limits();
    }

    /// Few keys, mostly nilext updates, clocks apart, a bad network, and leaders that fail while updates
    /// are under way: what is hard about recovering durability logs.
    fn become_duel(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 3, 5]);
        let workload = &mut self.workload;
        workload.clients = draw.between(3, 6) as usize;
        workload.in_flight = draw.of(&[1, 1, 2]);
        workload.keys = draw.between(1, 2);
        workload.think = draw.of(&[0, MILLI]) / speed;
        workload.packed_percent = draw.sometimes(&[10]);
        let merges = if self.fast_quorum.takes_merges() { draw.of(&[1, 4]) } else { 0 };
        workload.weights = [8, merges, merges, 0, 0, 0, 0, 0, 0, draw.of(&[0, 2]), 0, draw.of(&[1, 4])];
        let network = &mut self.network;
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        network.delay = (near, draw.of(&[1, 3]) * near);
        network.jitter = draw.of(&[near, 5 * near]);
        network.loss_ppm = draw.of(&[0, 20_000, 150_000]);
        network.bad_link_percent = draw.of(&[0, 15, 30]);
        network.duplicate_ppm = draw.of(&[0, 100_000, 300_000]);
        network.straggler_ppm = draw.of(&[0, 50_000, 150_000]);
        network.straggle = draw.of(&[10 * MILLI, 300 * MILLI, SECOND]) / speed;
        network.in_order = false;
        self.clocks.skew_micros = draw.of(&[500, 20_000, 300_000]);
        self.nemesis = NemesisSettings {
            per_operation_percent: draw.of(&[2, 5, 10]),
            duration: draw.of(&[50 * MILLI, 500 * MILLI, 2 * SECOND]) / speed,
            leader_percent: draw.of(&[50, 90]),
            cut_clients_percent: 50,
            crash: draw.of(&[0, 3, 9]),
            isolate: draw.of(&[0, 3, 9]),
            pause: draw.of(&[0, 1, 3]),
            client_crash: draw.of(&[0, 1]),
            partition: 1,
            ..NemesisSettings::default()
        };
        let scaled = |micros: u64| Duration::from_micros(micros / speed);
        self.protocol.replica.order_delay = draw.of(&[scaled(1_000), scaled(20_000), scaled(300_000)]);
        self.protocol.lift_limits();
        self.disk.sync_delay = (0, near);
    }

    /// Keys that expire, and clocks of at most `f` replicas that jump by hours and years, the leader's among them;
    /// clients' clocks too. Whatever else fails fails at those replicas, so that most clocks are right at any time.
    pub(super) fn become_clock_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5]);
        let faults = self.replicas / 2;
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.clients = draw.between(2, 4) as usize;
        workload.readers = 0;
        workload.in_flight = draw.of(&[1, 2]);
        workload.keys = draw.between(1, 3);
        workload.think = draw.of(&[2 * near, MILLI, 10 * MILLI]) / speed;
        workload.packed_percent = 0;
        workload.expiring_percent = draw.of(&[20, 40]);
        workload.expiring_read = true;
        workload.lifetime_max = draw.of(&[20, 200, 2_000, 600_000]);
        self.network = NetworkFaults {
            delay: (near, draw.of(&[1, 4]) * near),
            jitter: draw.of(&[0, near]),
            duplicate_ppm: draw.of(&[0, 20_000]),
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[0, 2_000, 20_000]);
        self.clocks.drift_ppm = draw.of(&[0, 100]) as u32;
        self.formation.unformed = None;
        self.clocks.wrong = Some(draw.between(1, faults as u64) as usize);
        self.clocks.stay_wrong = draw.one_in(2);
        self.disk.crash_ppm = 0;
        self.disk.fail_ppm = 0;
        self.disk.sync_delay = (0, near);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[20 * MILLI, 100 * MILLI]) / speed,
            duration: draw.of(&[100 * MILLI, 500 * MILLI]) / speed,
            clock_jump: 6,
            hand_over: draw.of(&[1, 4]),
            crash: draw.of(&[0, 1]),
            isolate: draw.of(&[0, 1]),
            pause: draw.of(&[0, 1]),
            disconnect: draw.of(&[0, 1]),
            client_crash: draw.of(&[0, 1]),
            ..NemesisSettings::default()
        };
        self.protocol.replica.order_delay = Duration::from_nanos(draw.of(&[0, 4 * near, 40 * near]));
        self.protocol.lift_limits();
        self.service_delay = 0;
        if let Some(engine) = &mut self.disk_engine {
            engine.refused_percent = 0;
        }
    }

    /// Few keys that everybody reads and writes, links of very different lengths, members that execute late
    /// or lose touch, and leaders that change: what a member says of a key is old more often than not.
    fn become_read_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5, 5, 7]);
        let near = draw.of(&[50 * MICRO, 500 * MICRO]) / speed;
        let workload = &mut self.workload;
        workload.readers = draw.between(1, 3) as usize;
        workload.clients = workload.readers + draw.between(1, 3) as usize;
        workload.in_flight = draw.of(&[1, 2]);
        workload.keys = draw.between(1, 3);
        workload.think = draw.of(&[near, 10 * near, 2 * MILLI / speed]);
        workload.packed_percent = draw.sometimes(&[10]);
        let merges = if self.fast_quorum.takes_merges() { draw.of(&[0, 2]) } else { 0 };
        workload.weights =
            [6, merges, draw.of(&[0, 2]), 1, 0, draw.of(&[0, 1]), 0, 0, 0, 0, draw.of(&[0, 1]), 6];
        self.network = NetworkFaults {
            delay: (near, draw.of(&[2, 20, 60]) * near),
            jitter: draw.of(&[0, near, 10 * near]),
            bad_link_percent: draw.of(&[0, 20, 40]),
            duplicate_ppm: draw.of(&[0, 100_000]),
            straggler_ppm: draw.of(&[0, 50_000, 200_000]),
            straggle: draw.of(&[20 * MILLI, 300 * MILLI]) / speed,
            in_order: draw.one_in(2),
            ..NetworkFaults::none(near)
        };
        self.clocks.skew_micros = draw.of(&[0, 2_000, 50_000]);
        self.disk.crash_ppm = 0;
        self.disk.sync_delay = (0, draw.of(&[1, 10]) * near);
        self.apply_delay = draw.of(&[0, 2 * near, 40 * near]);
        self.nemesis = NemesisSettings {
            interval: draw.of(&[50 * MILLI, 300 * MILLI]) / speed,
            per_operation_percent: draw.of(&[0, 3]),
            duration: draw.of(&[50 * MILLI, 400 * MILLI]) / speed,
            leader_percent: draw.of(&[30, 80]),
            cut_clients_percent: draw.of(&[0, 50]),
            crash: draw.of(&[1, 4]),
            isolate: draw.of(&[1, 4]),
            creep: draw.of(&[0, 2]),
            one_way: draw.of(&[0, 2]),
            partition: draw.of(&[0, 2]),
            pause: draw.of(&[0, 2]),
            hand_over: draw.of(&[0, 4]),
            slow: draw.of(&[0, 1]),
            ..NemesisSettings::default()
        };
        self.protocol.replica.order_delay = Duration::from_nanos(draw.of(&[0, 4 * near, 60 * near]));
        self.protocol.replica.history_bytes_max = draw.of(&[0, 2, 8, 1_000]) * ChangeHistory::CHANGE_BYTES;
        self.protocol.lift_limits();
    }

    /// Clients that only read, and leaders that lose touch with their followers while clients still
    /// reach them: what is hard about leases.
    fn become_lease_hunt(&mut self, draw: &mut Draw) {
        let speed = u64::from(self.protocol.speed);
        self.replicas = draw.of(&[3, 3, 5]);
        let workload = &mut self.workload;
        workload.readers = draw.between(1, 2) as usize;
        workload.clients = workload.readers + draw.between(1, 2) as usize;
        workload.in_flight = 1;
        workload.keys = draw.between(1, 2);
        workload.think = draw.of(&[15 * MILLI, 50 * MILLI]) / speed;
        workload.packed_percent = 0;
        workload.weights = [8, 0, 0, draw.of(&[0, 4]), 0, 0, 0, 0, 0, 0, 0, 1];
        self.clocks.drift_ppm = 5_000;
        self.network = NetworkFaults {
            jitter: draw.sometimes(&[MILLI / speed]),
            ..NetworkFaults::none(draw.of(&[100 * MICRO, MILLI]) / speed)
        };
        self.disk.crash_ppm = 0;
        self.nemesis = NemesisSettings {
            interval: draw.of(&[200 * MILLI, 600 * MILLI]) / speed,
            duration: draw.of(&[500 * MILLI, SECOND, 2 * SECOND]) / speed,
            leader_percent: draw.of(&[50, 90]),
            isolate: draw.of(&[0, 1, 3]),
            creep: draw.of(&[1, 3, 9]),
            one_way: draw.of(&[0, 1]),
            pause: draw.of(&[0, 1, 3]),
            ..NemesisSettings::default()
        };
        self.protocol.replica.waiting_max = 262_144;
        self.protocol.give_up_after = Duration::from_secs(10) / self.protocol.speed;
    }
}

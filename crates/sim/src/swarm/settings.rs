//! What a world is made of, by its parts.

use core::time::Duration;
use syros_protocol::{client, replica};

/// A rolling restart that gives all replicas a shorter lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseChange {
    /// How many times as long the lease is before.
    pub times: u32,
    /// It begins when so many operations are left to be asked for.
    pub at: u64,
}

/// Faults that last while service is judged: a majority is alive and connected, and nobody else need be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermanentFaults {
    /// So often, who is dead returns, and others die.
    pub rounds: u64,
    /// Replicas that die in a round at most; never more than the group can do without.
    pub dead_max: usize,
    /// Links between replicas that are left.
    pub links: RemainingLinks,
    /// The leader dies while those who return fetch from it what they lack, bit by bit.
    pub chases: bool,
}

/// Links between replicas that permanent faults leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingLinks {
    /// All.
    All,
    /// Those within some majority, and some others.
    Majority,
    /// Those between one replica and the others of a majority, and no other.
    Star,
}

/// How the group comes about. By default it has been formed before time begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormationSettings {
    /// All disks are new, and so many of the members, the last ones, are started later.
    pub unformed: Option<usize>,
    /// Those are not started by themselves.
    pub late_on_demand: bool,
}

/// What the clocks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSettings {
    /// Monotonic clocks run fast or slow by up to this much.
    pub drift_ppm: u32,
    /// Wall clocks are ahead or behind by up to this many microseconds.
    pub skew_micros: u64,
    /// Only the clocks of so many replicas ever jump, the first ones, and no other replica fails: then lifetimes are
    /// judged by true time. `None`: any clock jumps, and it is only judged that what has expired stays gone.
    pub wrong: Option<usize>,
    /// Those clocks stay wrong when everything else is repaired.
    pub stay_wrong: bool,
}

/// Between what sizes the group grows and shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest.
    pub smallest: usize,
    /// That with which it begins.
    pub first: usize,
    /// All nodes that it grows by are of builds that know no learners; else one time in four they are.
    pub older_builds: bool,
}

/// What the disks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSettings {
    /// Shortest and longest time of one sync.
    pub sync_delay: (u64, u64),
    /// Writes and syncs, in a million, at which the process crashes.
    pub crash_ppm: u64,
    /// Writes and syncs, in a million, that fail.
    pub fail_ppm: u64,
    /// Size of a segment of the log.
    pub segment_bytes: u64,
    /// Size of the pieces in which room for records is made in it.
    pub reserve_bytes: u64,
    /// Bytes of segments that are kept beside the log when it needs them no more, for those who copy it.
    pub keep_bytes: u64,
}

/// What breaks. Weights are relative to each other; 0 switches a fault off, as all are by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NemesisSettings {
    /// Mean time between two faults; 0 for none in the course of time.
    pub interval: u64,
    /// Operations of a hundred that are followed by a fault within a few message delays: what is only
    /// wrong while something is under way is found by breaking things just then.
    pub per_operation_percent: u64,
    /// Snapshots of a hundred that are followed by a fault within a few message delays, when they are
    /// begun, finished or taken over.
    pub per_snapshot_percent: u64,
    /// Proposals to end sessions, of a hundred, that are followed by a crash before what is under way then can
    /// be ordered.
    pub per_ending_percent: u64,
    /// Times of a hundred that a replica has adopted a configuration at which another one, or the same, crashes within a few
    /// message delays, and is started again as soon.
    pub per_adoption_percent: u64,
    /// Requests sent again after another one of the client's had been completed, of a hundred, that are
    /// followed by such a crash.
    pub per_resend_percent: u64,
    /// Longest time a fault lasts.
    pub duration: u64,
    /// Faults of a hundred that single out the current leader.
    pub leader_percent: u64,
    /// Isolated replicas, of a hundred, that clients do not reach either.
    pub cut_clients_percent: u64,
    /// A replica crashes.
    pub crash: u64,
    /// A replica crashes and its disk is gone; only its view is known.
    pub lose_disk: u64,
    /// A replica crashes and is started with an empty disk as if it were a new one.
    pub bootstrap: u64,
    /// A replica loses its disk for good, and a new node is to take its place.
    pub replace_node: u64,
    /// The group grows or shrinks by two.
    pub resize: u64,
    /// All replicas crash at once.
    pub crash_all: u64,
    /// The group falls apart into two or three pieces.
    pub partition: u64,
    /// One replica is cut off from all others, and perhaps from clients.
    pub isolate: u64,
    /// One direction between two replicas is cut.
    pub one_way: u64,
    /// A replica is cut off from the others one by one.
    pub creep: u64,
    /// A process stops and goes on later, as after SIGSTOP.
    pub pause: u64,
    /// A wall clock jumps.
    pub clock_jump: u64,
    /// A wall clock jumps ahead by as long as a session may be idle.
    pub end_sessions: u64,
    /// A client dies and another takes its place.
    pub client_crash: u64,
    /// A connection between a client and a replica breaks.
    pub disconnect: u64,
    /// All links of one replica become slow for good.
    pub slow: u64,
    /// All messages of one kind are held back, or lost, for a while.
    pub hold_kind: u64,
    /// A replica is asked to let another one lead.
    pub hand_over: u64,
    /// A replica is asked to let the group go by another mode.
    pub change_mode: u64,
    /// Somebody wants to copy a snapshot of a replica.
    pub copy_snapshot: u64,
    /// A replica asks clients for updates to their leader alone, or for no more such.
    pub advice: u64,
    /// A replica crashes, and something on its disk rots before it starts again.
    pub rot: u64,
    /// The disk of a replica takes long to sync for a while.
    pub slow_disk: u64,
    /// The disk of a replica is full for a while, but for what it keeps in reserve.
    pub fill_disk: u64,
    /// Somebody sends updates under the ids that a client is about to use.
    pub stranger: u64,
    /// A client sends one or the other of two updates under one id, or both.
    pub broken_client: u64,
    /// When so many operations are left to be asked for, more replicas lose their disks at once than the
    /// group can do without. `None`: never.
    pub ruin_at: Option<u64>,
}

/// The protocol's own settings that are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolSettings {
    /// Everything that measures in heartbeats is divided by this.
    pub speed: u32,
    /// What measures in messages between replicas is multiplied by this: they are far from each other.
    pub patience: u32,
    /// Those of every replica, but for what `speed`, `patience` and `trimming` make of them.
    pub replica: replica::Settings,
    /// So many of the replicas, the first ones, trim their logs; the others keep everything.
    pub trimming: usize,
    /// About how many bytes of state are written to a snapshot at a time.
    pub snapshot_block_bytes: usize,
    /// Bytes in a part of a snapshot that is sent.
    pub snapshot_part_bytes: usize,
    /// See `Settings::sync_after` of the client.
    pub sync_after: Duration,
    /// See `Settings::in_flight_max` of the client.
    pub in_flight_max: usize,
    /// Until a client whose connection broke has another.
    pub client_reconnect: Duration,
    /// See `Settings::resend` of the client.
    pub client_resend: Duration,
    /// See `Settings::direct_gain_min` of the client.
    pub direct_gain_min: Duration,
    /// See `Settings::direct_lasting` of the client.
    pub direct_lasting: Duration,
    /// See `Settings::give_up_after` of the client.
    pub give_up_after: Duration,
}

impl ProtocolSettings {
    /// How many times as long as usual a leader's end is not noticed, or a view change waited for, rounded up: by its settings.
    #[must_use]
    pub fn slowness(&self) -> u64 {
        let usual = replica::Settings::new();
        let times = |set: Duration, usual: Duration| set.as_nanos().div_ceil(usual.as_nanos()) as u64;
        let of_suspicion = times(self.replica.suspect_after, usual.suspect_after);
        of_suspicion.max(times(self.replica.view_change_timeout, usual.view_change_timeout)).max(1)
    }

    /// What is limited by bytes has the room that it has in a server.
    pub(super) fn lift_byte_limits(&mut self) {
        self.lift_limits();
        let server = Self::default();
        self.replica = replica::Settings {
            log_bytes_max: server.replica.log_bytes_max,
            log_keep_bytes: server.replica.log_keep_bytes,
            dlog_bytes_max: server.replica.dlog_bytes_max,
            uncommitted_bytes_max: server.replica.uncommitted_bytes_max,
            unexecuted_bytes_max: server.replica.unexecuted_bytes_max,
            reply_bytes_max: server.replica.reply_bytes_max,
            batch_bytes_max: server.replica.batch_bytes_max,
            transfer_bytes_max: server.replica.transfer_bytes_max,
            transfer_rate: u64::MAX,
            ..self.replica.clone()
        };
        self.snapshot_block_bytes = server.snapshot_block_bytes;
        self.snapshot_part_bytes = server.snapshot_part_bytes;
    }

    /// Nothing is refused for want of room: a world that is about something else.
    pub(super) const fn lift_limits(&mut self) {
        let server = replica::Settings::new();
        self.replica.dlog_length_max = server.dlog_length_max;
        self.replica.waiting_max = server.waiting_max;
    }
}

impl Default for ProtocolSettings {
    /// The defaults of replica and client.
    fn default() -> Self {
        Self {
            speed: 1,
            patience: 1,
            replica: replica::Settings::new(),
            trimming: usize::MAX,
            snapshot_block_bytes: 256 << 10,
            snapshot_part_bytes: 256 << 10,
            sync_after: Duration::from_millis(20),
            in_flight_max: 65_536,
            client_reconnect: Duration::from_millis(50),
            client_resend: Duration::from_millis(200),
            direct_gain_min: client::Settings::new().direct_gain_min,
            direct_lasting: client::Settings::new().direct_lasting,
            give_up_after: Duration::from_secs(10),
        }
    }
}

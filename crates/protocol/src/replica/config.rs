//! What a replica is made from, and what may be chosen about it.

use crate::message::{Describe, Overwrites};
use crate::sessions::{COMPLETIONS_MAX, REPLY_BYTES_MAX};
use core::time::Duration;
use syros_types::{Configuration, NodeId, ReplicaId};

/// When an acknowledgement may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// After the record is on this replica's disk.
    #[default]
    Fsync,
    /// At once: the copies on other replicas are the durability. Only view numbers are on disk; a
    /// restarted replica is amnesiac.
    Replicated,
}

impl Durability {
    /// The name in configuration and identity files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Replicated => "replicated",
        }
    }
}

impl core::fmt::Display for Durability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// What may be chosen about a replica: times and limits. Whoever configures one embeds this, so that the defaults stand here
/// and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Heartbeats of an otherwise silent leader.
    pub heartbeat: Duration,
    /// A follower promises not to change views for this long after it heard its leader.
    pub lease: Duration,
    /// Part of the lease given up for clocks that run at different rates, in parts per million.
    pub clock_drift_ppm: u32,
    /// Silence of the leader after which a follower suspects it. At least `lease`.
    pub suspect_after: Duration,
    /// A view change that has not ended after this long moves on to the next view (doubling).
    pub view_change_timeout: Duration,
    /// A leader whose disk takes this much longer than those of `f` followers lets another member lead.
    pub slow_disk_after: Duration,
    /// Messages that may have been lost are sent again after this long.
    pub resend: Duration,
    /// Updates that nobody waits for are ordered at most this long after they arrived.
    pub order_delay: Duration,
    /// A follower waits this long for a body that a Prepare referred to before it asks for it.
    pub fetch_delay: Duration,
    /// A follower hands an update to the leader that has been in its durability log for this long.
    pub forward_after: Duration,
    /// A timestamp further ahead of the replica's clock is refused.
    pub clock_skew_max: Duration,
    /// Sessions without an update for this long, in log time, are ended.
    pub session_timeout: Duration,
    /// A connection may register only a few sessions in this time.
    pub registration_interval: Duration,
    /// Most sessions at a time.
    pub sessions_max: usize,
    /// Entries of the log in a segment of which replicas compare digests.
    pub digest_entries: u64,
    /// Most updates in one Prepare.
    pub batch_max: usize,
    /// Most bytes of log and durability log held in memory; beyond, updates are refused.
    pub log_bytes_max: usize,
    /// Most bytes of the history of changes: beyond, readers are told to wait for more than they need.
    pub history_bytes_max: usize,
    /// Most bytes of the log that stay in memory after they are applied: what a member that was away for a
    /// moment lacks. One that lacks more gets a snapshot. Of what all members hold a 64th of it stays. Less than
    /// `log_bytes_max`.
    pub log_keep_bytes: usize,
    /// A snapshot is taken when the log has grown by this many bytes, or by as many as the last snapshot
    /// has, whichever is more: restarts replay no more than that. Only with durability `fsync`.
    pub snapshot_log_bytes: usize,
    /// A snapshot is received at this many bytes per second, so that it does not hurt clients.
    pub transfer_rate: u64,
    /// Most updates in the durability log; beyond, updates are refused.
    pub dlog_length_max: usize,
    /// Most reads and updates waiting for the leader at a time.
    pub waiting_max: usize,
    /// Most bytes of bodies in the durability log; beyond, updates are refused. A DoViewChange carries it whole.
    pub dlog_bytes_max: usize,
    /// Most bytes of log entries that are not committed; beyond, updates are refused. A DoViewChange and a StartView
    /// carry them whole.
    pub uncommitted_bytes_max: usize,
    /// Most bytes of log entries that an engine on disk may be behind; beyond, updates are refused: the disk is not
    /// to be outrun. (Updates that take the fast path are bounded by the durability log, which they leave when they
    /// are executed.)
    pub unexecuted_bytes_max: usize,
    /// Most bytes of replies in the session table: [`REPLY_BYTES_MAX`]. All members of a group must have the same.
    pub reply_bytes_max: usize,
    /// Most completions in the session table; beyond, a large session that has its share of them may have no more:
    /// [`COMPLETIONS_MAX`].
    pub completions_max: usize,
    /// Bytes of bodies after which a batch leaves at once.
    pub batch_bytes_max: usize,
    /// Most entries executed at a time: bounds how long one `Apply` keeps a driver from its sockets.
    pub apply_chunk: u64,
    /// Bytes of log in one part of a transfer: large enough to amortize the round trip, small enough not to keep
    /// the sender from its clients.
    pub transfer_bytes_max: usize,
    /// Most entries of the log in one part of a transfer.
    pub transfer_entries_max: u64,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            heartbeat: Duration::from_millis(25),
            lease: Duration::from_millis(200),
            clock_drift_ppm: 10_000,
            suspect_after: Duration::from_millis(225),
            view_change_timeout: Duration::from_millis(300),
            slow_disk_after: Duration::from_secs(1),
            resend: Duration::from_millis(50),
            order_delay: Duration::from_micros(500),
            fetch_delay: Duration::from_micros(500),
            forward_after: Duration::from_secs(1),
            clock_skew_max: Duration::from_millis(500),
            session_timeout: Duration::from_secs(600),
            registration_interval: Duration::from_secs(1),
            sessions_max: 65_536,
            digest_entries: 4096,
            batch_max: 1024,
            log_bytes_max: 1 << 30,
            history_bytes_max: 4 << 20,
            log_keep_bytes: 256 << 20,
            snapshot_log_bytes: 256 << 20,
            transfer_rate: 95 << 20,
            dlog_length_max: 262_144,
            waiting_max: 262_144,
            dlog_bytes_max: 64 << 20,
            uncommitted_bytes_max: 64 << 20,
            unexecuted_bytes_max: 64 << 20,
            reply_bytes_max: REPLY_BYTES_MAX,
            completions_max: COMPLETIONS_MAX,
            batch_bytes_max: 1 << 20,
            apply_chunk: 16_384,
            transfer_bytes_max: 1 << 20,
            transfer_entries_max: 8192,
        }
    }

    /// Lets whatever measures in messages between replicas take so many times longer: they are far from each other.
    /// Heartbeats are as frequent as before; they only take longer.
    pub fn lengthen_timeouts(&mut self, times: u32) {
        let timeouts =
            [&mut self.lease, &mut self.suspect_after, &mut self.view_change_timeout, &mut self.resend];
        for timeout in timeouts {
            *timeout *= times;
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// What a replica is made from. Members compare what is in
/// [`SharedSettings`](crate::agreement::SharedSettings), and refuse each other if it differs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration of the group: its members, and how they count.
    pub configuration: Configuration,
    /// Which member this is: a position in the configuration.
    pub replica: ReplicaId,
    /// Which node this is, if its configuration names nodes.
    pub node: Option<NodeId>,
    /// When acknowledgements leave.
    pub durability: Durability,
    /// What the state machine says of an operation.
    pub describe: Describe,
    /// What the state machine says of two overwrites.
    pub overwrites: Overwrites,
    /// Seed of the jitter of this replica's timers.
    pub seed: u64,
    /// The longest lease that this replica may have promised before it started: until that is over it does not miss
    /// its leader, who may rely upon it.
    pub promised_before: Duration,
    /// Any connection may use any session: for models, which have no connections.
    pub open_sessions: bool,
    /// The engine is on disk itself: what it has executed survives at checkpoints of its own, and only a
    /// snapshot for another member is a file.
    pub engine_is_durable: bool,
    /// So many entries may be executed ahead of the last one that all before have been, for engines that execute
    /// several at a time. 0: nothing is asked for before all that was asked for is done.
    pub apply_ahead: u64,
    /// What may be chosen.
    pub settings: Settings,
    /// A known-wrong variant to run, for the simulator.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::replica::PlantedBug>,
}

impl Config {
    /// Member `replica` of a group, with the default settings, and the two functions of the state machine.
    #[must_use]
    pub fn new(
        configuration: Configuration,
        replica: ReplicaId,
        describe: Describe,
        overwrites: Overwrites,
    ) -> Self {
        Self {
            configuration,
            replica,
            node: configuration.roster.node(replica),
            durability: Durability::Fsync,
            describe,
            overwrites,
            seed: replica.0 as u64,
            promised_before: Duration::ZERO,
            open_sessions: false,
            engine_is_durable: false,
            apply_ahead: 0,
            settings: Settings::new(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

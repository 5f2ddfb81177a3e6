//! What goes into a replica and what comes out of it.

use crate::message::{Body, Describe, Freshness, LogEntry, Message, Overwrites, Peer};
use crate::record::{Record, SnapshotHead, Ticket};
use crate::replica::TraceEvent;
use crate::sessions::{COMPLETIONS_MAX, REPLY_BYTES_MAX};
use alloc::boxed::Box;
use core::time::Duration;
use syros_types::{Configuration, OpNumber, OperationId, ReplicaId, View, WallTime};

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

/// Settings of a replica. Members compare what is in
/// [`SharedSettings`](crate::agreement::SharedSettings), and refuse each other if it differs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration of the group: its members, and how they count.
    pub configuration: Configuration,
    /// Which member this is: a position in the configuration.
    pub replica: ReplicaId,
    /// When acknowledgements leave.
    pub durability: Durability,
    /// What the state machine says of an operation.
    pub describe: Describe,
    /// What the state machine says of two overwrites.
    pub overwrites: Overwrites,
    /// The leader takes updates until the state has this many bytes more than followers take it to: where it refuses one
    /// that was sent to all, they have refused it as well, and its client can be told that it is nowhere.
    pub leader_memory_margin: usize,
    /// Seed of the jitter of this replica's timers.
    pub seed: u64,
    /// Heartbeats of an otherwise silent leader.
    pub heartbeat: Duration,
    /// A follower promises not to change views for this long after it heard its leader.
    pub lease: Duration,
    /// The longest lease that this replica may have promised before it started: until that is over it does not miss
    /// its leader, who may rely upon it.
    pub promised_before: Duration,
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
    /// Any connection may use any session: for models, which have no connections.
    pub open_sessions: bool,
    /// Most updates in one Prepare.
    pub batch_max: usize,
    /// Most bytes of log and durability log held in memory; beyond, updates are refused.
    pub log_bytes_max: usize,
    /// Most bytes of the history of changes: beyond, readers are told to wait for more than they need.
    pub history_bytes_max: usize,
    /// Bytes of the log that stay in memory after they are applied: what a member that was away for a
    /// moment lacks. One that lacks more gets a snapshot. Less than `log_bytes_max`.
    pub log_keep_bytes: usize,
    /// A snapshot is taken when the log has grown by this many bytes, or by as many as the last snapshot
    /// has, whichever is more: restarts replay no more than that. Only with durability `fsync`.
    pub snapshot_log_bytes: usize,
    /// The engine is on disk itself: what it has executed survives at checkpoints of its own, and only a
    /// snapshot for another member is a file.
    pub engine_is_durable: bool,
    /// So many entries may be executed ahead of the last one that all before have been, for engines that execute
    /// several at a time. 0: nothing is asked for before all that was asked for is done.
    pub apply_ahead: u64,
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
    /// A known-wrong variant to run, for the simulator.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::replica::PlantedBug>,
}

impl Config {
    /// Lets whatever measures in messages between replicas take so many times longer: they are far from each other.
    /// Heartbeats are as frequent as before; they only take longer.
    pub fn lengthen_timeouts(&mut self, times: u32) {
        let timeouts =
            [&mut self.lease, &mut self.suspect_after, &mut self.view_change_timeout, &mut self.resend];
        for timeout in timeouts {
            *timeout *= times;
        }
    }

    /// The defaults for member `replica` of a group, and the two functions of the state machine.
    #[must_use]
    pub const fn new(
        configuration: Configuration,
        replica: ReplicaId,
        describe: Describe,
        overwrites: Overwrites,
    ) -> Self {
        Self {
            configuration,
            replica,
            durability: Durability::Fsync,
            describe,
            overwrites,
            leader_memory_margin: 0,
            seed: replica.0 as u64,
            heartbeat: Duration::from_millis(25),
            lease: Duration::from_millis(200),
            promised_before: Duration::ZERO,
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
            open_sessions: false,
            batch_max: 1024,
            log_bytes_max: 1 << 30,
            history_bytes_max: 4 << 20,
            log_keep_bytes: 256 << 20,
            snapshot_log_bytes: 256 << 20,
            engine_is_durable: false,
            apply_ahead: 0,
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
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

/// How a replica comes up.
#[derive(Clone, Debug)]
pub enum Boot {
    /// First start of a new cluster: nothing on disk, nobody has ever acted under this identity.
    Fresh,
    /// The write-ahead log was read back whole.
    Restored(Box<crate::replica::Restored>),
    /// Memory is gone, the view number is not: enters only a view started after now (its quorum
    /// excludes this replica), because acknowledgements it gave and forgot may still be counted.
    Amnesiac {
        /// The newest view this replica may have acted in.
        view: View,
    },
}

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message arrived.
    Message {
        /// From whom.
        from: Peer,
        /// The message.
        message: Message,
    },
    /// Every record up to this ticket is on disk.
    Persisted(Ticket),
    /// The disk failed: no record after the last `Persisted` one can be relied upon.
    PersistFailed,
    /// Log entries up to here have been executed, in order.
    Applied {
        /// The last one.
        through: OpNumber,
        /// Results of the updates of class `Update` among them, in order, with their op numbers.
        replies: alloc::vec::Vec<(OpNumber, Body)>,
    },
    /// It cannot be said before it is executed what an update returns that [`Action::Evaluate`] asked for.
    NotEvaluated {
        /// The client.
        to: Peer,
        /// The update.
        id: OperationId,
    },
    /// A read that [`Action::Read`] asked for has not been answered: it would have shown a key that expires at its
    /// `time` or before.
    NotRead {
        /// The client.
        to: Peer,
        /// The client's number for it.
        number: u64,
        /// The operation.
        body: Body,
        /// The time of the read.
        time: WallTime,
        /// The log time at which the first of its keys expires.
        expiry: WallTime,
    },
    /// The snapshot asked for by [`Action::TakeSnapshot`] is on disk.
    SnapshotTaken {
        /// Its last op number.
        op_number: OpNumber,
        /// Its length in bytes.
        bytes: u64,
    },
    /// All of a received snapshot before byte `received` is written.
    SnapshotPartWritten {
        /// Its last op number.
        op_number: OpNumber,
        /// So many bytes of it are here.
        received: u64,
    },
    /// The snapshot named by [`Action::LoadSnapshot`] is intact, durable and loaded.
    SnapshotLoaded {
        /// What it says.
        head: Box<SnapshotHead>,
        /// Its length in bytes.
        bytes: u64,
    },
    /// A snapshot could not be written, or is not intact.
    SnapshotFailed {
        /// Its last op number.
        op_number: OpNumber,
    },
    /// The earliest moment at which some key expires (`None`: no key will), if it changed.
    NextExpiry(Option<WallTime>),
    /// The state may grow by so many bytes; negative if it has more than it may; `i64::MAX`: without limit. From then on
    /// updates that make it grow are refused if they, and those that are not executed yet, may take more.
    MemoryRoom(i64),
    /// Whether the disk is nearly full: updates that make the state grow are refused.
    DiskShort(bool),
    /// A client connection closed: nothing more need be sent there.
    ClientGone(u64),
    /// A client connection is that of a member's front end: it gets a session also when clients have taken all others.
    MemberConnected(u64),
    /// The replica is about to stop: if it leads, let another member lead.
    StepDown,
    /// The deadline passed.
    Tick,
}

/// Something must be done. Actions are to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send `message` to `to` once every record up to `after` is on disk.
    Send {
        /// To whom.
        to: Peer,
        /// What.
        message: Message,
        /// Not before this is on disk.
        after: Ticket,
    },
    /// Append a record to the write-ahead log, and report [`Event::Persisted`] some time later: soon, if the replica waits
    /// for it itself ([`Replica::awaited`](crate::replica::Replica::awaited)).
    Persist {
        /// Its number: one more than the last.
        ticket: Ticket,
        /// The record.
        record: Record,
    },
    /// Execute the log entries after the last applied one, up to here, in order
    /// ([`Replica::entry`](crate::replica::Replica::entry)), and report [`Event::Applied`]. A log
    /// entry never changes once it is to be executed.
    Apply {
        /// The last one to execute.
        through: OpNumber,
    },
    /// Execute a read on the state now applied and send its result to `to` as
    /// [`Message::ReadReply`] with this view and number.
    Read {
        /// The client.
        to: Peer,
        /// The view in which the read is answered.
        view: View,
        /// The client's number for it.
        number: u64,
        /// The entry that [`Message::MemberReply`] names: the last one executed when this was asked for. What has been
        /// executed since may show in the value; the answer must not say so, as it may be of a later view.
        applied: OpNumber,
        /// The operation.
        body: Body,
        /// If there is one, the result goes as [`Message::MemberReply`] with this in it.
        freshness: Option<Freshness>,
        /// A key that expires at this time or before must not be in the result, if there is one: then the result is not
        /// sent, and [`Event::NotRead`] is reported.
        time: Option<WallTime>,
        /// What is left of lifetimes counts from this time. A leader names the members' time, never its own clock alone; a
        /// member that answers with its freshness names there the time that it counted from.
        now: WallTime,
    },
    /// Find out what an update would return if it were executed on the state now executed, without changing that
    /// state, and before any entry is executed that [`Action::Apply`] asks for later. Send it to `to` as
    /// [`Message::Evaluated`]; or report [`Event::NotEvaluated`], if what it returns could change as time goes by: if
    /// it depends on a key that will expire.
    Evaluate {
        /// The client.
        to: Peer,
        /// The view in which it was accepted.
        view: View,
        /// The update.
        id: OperationId,
        /// The operation.
        body: Body,
    },
    /// Begin a snapshot of the state now executed, and report [`Event::SnapshotTaken`] when it is on disk
    /// as a whole, or [`Event::SnapshotFailed`]. What an engine of its own keeps on disk may not get there before
    /// every record up to `ticket` is: the log must not end before it.
    TakeSnapshot {
        /// What goes into it besides the engine's state.
        head: Box<SnapshotHead>,
        /// The record that goes with it.
        ticket: Ticket,
        /// It is a file that can be sent; else a checkpoint of the engine is enough.
        is_file: bool,
    },
    /// Once every record up to `ticket` is on disk, snapshots before this one and the records before
    /// `ticket` are not needed any more.
    KeepFrom {
        /// The oldest snapshot to keep.
        op_number: OpNumber,
        /// The record that goes with it.
        ticket: Ticket,
    },
    /// Send a part of a snapshot on disk, if it is still there, as [`Message::SnapshotPart`].
    SendSnapshotPart {
        /// To whom.
        to: ReplicaId,
        /// Which snapshot.
        op_number: OpNumber,
        /// From which byte on.
        offset: u64,
    },
    /// Write a part of a snapshot that is being received, and report [`Event::SnapshotPartWritten`] or
    /// [`Event::SnapshotFailed`]. Offset 0 begins it anew.
    WriteSnapshotPart {
        /// Which snapshot.
        op_number: OpNumber,
        /// Where the part begins, in bytes.
        offset: u64,
        /// The part.
        part: Body,
    },
    /// Check a snapshot that has been received, make it durable, load it into an engine of its own, and
    /// report [`Event::SnapshotLoaded`] or [`Event::SnapshotFailed`].
    LoadSnapshot {
        /// Which snapshot.
        op_number: OpNumber,
    },
    /// The engine that was loaded from this snapshot takes the place of the present one. Follows
    /// [`Event::SnapshotLoaded`] at once, or never: then the loaded engine is not needed.
    AdoptSnapshot {
        /// Which snapshot.
        op_number: OpNumber,
    },
    /// Tell whoever operates the group. Nothing depends on it.
    Trace(TraceEvent),
}

/// A replica's log entry, as [`Replica::entry`](crate::replica::Replica::entry) gives it.
pub type EntryRef<'a> = &'a LogEntry;

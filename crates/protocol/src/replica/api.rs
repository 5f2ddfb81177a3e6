//! What goes into a replica and what comes out of it.

use crate::message::{Body, Freshness, LogEntry, Message, Peer};
use crate::record::{Record, SnapshotHead, Ticket};
use crate::replica::TraceEvent;
use crate::replica::wanted_entries::{EntriesWanted, ScannedEntries};
use alloc::boxed::Box;
use syros_types::{Configuration, NodeId, OpNumber, OperationId, ReplicaId, View, WallTime};

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

/// What an update has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Its log entry.
    pub number: OpNumber,
    /// What its client is told.
    pub reply: Body,
    /// A hash of what it has done: the same at all members, which tell each other ([`Digests`](crate::digests::Digests)).
    pub effects: u64,
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
    /// The disk takes records again. Those after the last `Persisted` one may be lost. What the replica still needs of
    /// them is emitted again, so that the next record being on disk means all before it. Only with durability
    /// `replicated`: nothing but views is lost then.
    LogReopened,
    /// Log entries up to here have been executed, in order.
    Applied {
        /// The last one.
        through: OpNumber,
        /// What the updates of class `Update` among them have returned, in order.
        replies: alloc::vec::Vec<Returned>,
    },
    /// A snapshot is due, as if the log had grown to where one is: the engine, which is durable by itself, has much in memory that
    /// is not on disk, or executing the log again from the last snapshot on would take long.
    CheckpointDue,
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
    /// A part of a snapshot that [`Action::SendSnapshotPart`] asked for is not there, or cannot be read.
    SnapshotUnreadable {
        /// Its last op number.
        op_number: OpNumber,
    },
    /// What the log on disk holds of the entries that [`Action::ReadEntries`] asked for.
    EntriesRead {
        /// Who wants them.
        copier: Peer,
        /// They follow this entry.
        after: OpNumber,
        /// What a [`LogScan`](super::LogScan) found; `None` if the log cannot be read.
        found: Option<ScannedEntries>,
    },
    /// The earliest moment at which some key expires (`None`: no key will), if it changed.
    NextExpiry(Option<WallTime>),
    /// The state may grow by so many bytes; negative if it has more than it may; `i64::MAX`: without limit. From then on
    /// updates that make it grow are refused if they, and those that are not executed yet, may take more.
    MemoryRoom {
        /// By so many.
        bytes: i64,
        /// A leader takes updates until the state has so many bytes more than followers take it to: where it refuses one that
        /// was sent to all, they have refused it as well, and its client can be told that it is nowhere.
        leader_margin: u64,
    },
    /// The disk has room for so many bytes of updates that make the state grow, beside what it is to keep and the records that
    /// are on their way there; `u64::MAX` if for more than can be on its way. Each such update that is taken until this is told again
    /// takes from it. When nothing is left, the disk counts as nearly full, and the others are refused.
    DiskRoom(u64),
    /// Since this was last told, or the process began, its thread has worked, or waited for a core, for so many thousandths
    /// of the time. Told some times in each second; never where nothing takes time.
    Load(u32),
    /// A client connection closed: nothing more need be sent there.
    ClientGone(u64),
    /// A client connection is that of a member's front end: it gets a session also when clients have taken all others.
    MemberConnected(u64),
    /// A client connection is that of the front end of this replica's own process: as [`Self::MemberConnected`], and it is
    /// answered as soon as this replica has executed an update of its, whether the replica leads or not.
    OwnFrontEnd(u64),
    /// The replica is about to stop: if it leads, let another member lead.
    StepDown,
    /// This node wants to be this member: to replace a node that is lost, or to be one of the two that the group grows by. Only
    /// a leader does anything about it, and only if
    /// [`Replica::objection_to_place`](crate::replica::Replica::objection_to_place) has nothing against it. Says it again and again.
    PlaceWanted {
        /// The place.
        member: ReplicaId,
        /// The node.
        node: NodeId,
    },
    /// A node that was to be this member, and is none, is not connected any more.
    LearnerGone(ReplicaId),
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
        to: Peer,
        /// Which snapshot.
        op_number: OpNumber,
        /// From which byte on.
        offset: u64,
    },
    /// Read entries from the log on disk with a [`LogScan`](super::LogScan), and report [`Event::EntriesRead`]. Each copier has one
    /// answer at a time; at most [`DISK_COPIERS_MAX`](super::DISK_COPIERS_MAX) clients, and [`LAGGING_MAX`](super::LAGGING_MAX)
    /// members and learners, want them.
    ReadEntries(EntriesWanted),
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
    /// This is the configuration that the replica acts in from now on. Whoever carries this out makes it durable before
    /// anything else that follows, and ends the connections to nodes that are not in it.
    Reconfigured(Configuration),
    /// Tell whoever operates the group. Nothing depends on it.
    Trace(TraceEvent),
}

/// A replica's log entry, as [`Replica::entry`](crate::replica::Replica::entry) gives it.
pub type EntryRef<'a> = &'a LogEntry;

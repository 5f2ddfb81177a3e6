//! Everything that travels between clients and replicas, and what an update and a log entry are.

mod refusal;
mod status;

pub use refusal::Refusal;
pub use status::{RoleName, StatusReport};

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{
    Class, ConfigurationEpoch, Description, FastQuorum, FastRule, Footprint, Group, Instant, NodeId,
    OpNumber, OperationId, Reconfiguration, ReplicaId, ReplicaSet, SessionId, Timestamp, View, WallTime,
};

/// The bytes of an operation or of a reply: one allocation, shared by durability log, log, network
/// and engine. The core never looks inside.
pub type Body = Arc<[u8]>;

/// XXH3-64 of an operation's bytes. Two updates with one id are the same update only if their bodies are the same. It
/// tells bodies apart that differ by accident. It does not withstand a client that computes collisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyHash(pub u64);

impl BodyHash {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(body))
    }
}

/// What a state machine says of an operation from its bytes alone: the pure functions that give it the fast path.
/// `None` means the bytes are no operation.
pub type Describe = fn(&[u8]) -> Option<Description>;

/// Whether the first of two overwrites would leave nothing of the second if it ran after it: a pure
/// function of their bytes. Key hashes do not decide it: two keys may share one, and a completed
/// update would be dropped for an update of another key.
pub type Overwrites = fn(newer: &[u8], older: &[u8]) -> bool;

/// An update as a client issued it. A resend has the same id and body, and a new timestamp.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Identity: the update takes effect at most once under it.
    pub id: OperationId,
    /// Hybrid logical clock of the client when it sent this, microseconds since the Unix epoch.
    pub micros: u64,
    /// Every operation of the session with a smaller sequence number has been answered.
    pub acked_below: u64,
    /// The operation.
    pub body: Body,
}

impl Request {
    /// The timestamp that orders updates of one key in recovery: (micros, session).
    #[must_use]
    pub const fn timestamp(&self) -> Timestamp {
        Timestamp { micros: self.micros, session: self.id.session.0 }
    }
}

/// A request together with what the state machine says of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// The request.
    pub request: Request,
    /// Its class.
    pub class: Class,
    /// The keys it touches.
    pub footprint: Footprint,
    /// Bytes by which it may make the state grow.
    pub growth: usize,
    /// The hash of its body.
    pub body_hash: BodyHash,
}

impl Update {
    /// A request of which this is known.
    #[must_use]
    pub fn new(request: Request, Description { class, footprint, growth }: Description) -> Self {
        let body_hash = BodyHash::of(&request.body);
        Self { request, class, footprint, growth, body_hash }
    }

    /// The update that a request asks for; `None` if its body is no operation.
    #[must_use]
    pub fn describe(describe: Describe, request: Request) -> Option<Self> {
        let known = describe(&request.body)?;
        Some(Self::new(request, known))
    }

    /// True if an update has this id and another body.
    #[must_use]
    pub fn contradicts(&self, other: &Self) -> bool {
        self.request.id == other.request.id && self.body_hash != other.body_hash
    }
}

/// One entry of the consensus log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogEntry {
    /// The view whose leader appended it. Two logs that agree on (number, view) of an entry agree on
    /// everything before it.
    pub view: View,
    /// Log time: never decreases along the log; decides expiry, so that no two replicas disagree.
    pub time: WallTime,
    /// What it does.
    pub payload: Payload,
}

/// What a log entry does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// One update.
    Update(Update),
    /// What a view change recovered from the durability logs, in timestamp order. One indivisible
    /// entry: across keys, a reader must not see half of it.
    Recovered(Box<[Update]>),
    /// Registers a session whose id is this entry's op number; `nonce` tells the client it is its own.
    Register {
        /// Chosen by the client.
        nonce: u64,
    },
    /// Ends sessions that have been idle for longer than the session timeout, in log time.
    Expire(Box<[SessionId]>),
    /// Only lets log time move on, so that keys expire.
    Tick,
    /// The group's next configuration. It takes effect when this is committed and its first view begins.
    Reconfigure(Box<Reconfiguration>),
}

impl LogEntry {
    /// The updates in the entry, in execution order.
    #[must_use]
    pub fn updates(&self) -> &[Update] {
        match &self.payload {
            Payload::Update(update) => core::slice::from_ref(update),
            Payload::Recovered(updates) => updates,
            Payload::Register { .. } | Payload::Expire(_) | Payload::Tick | Payload::Reconfigure(_) => &[],
        }
    }

    /// Bytes by which its updates may make the state grow.
    #[must_use]
    pub fn growth(&self) -> usize {
        self.updates().iter().fold(0, |sum: usize, update| sum.saturating_add(update.growth))
    }

    /// Approximate memory the entry takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bodies: usize = self.updates().iter().map(|u| u.request.body.len() + 64).sum();
        size_of::<Self>() + bodies
    }
}

/// One entry as a Prepare carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Prepared {
    /// An update that the follower should have in its durability log.
    Reference {
        /// Which.
        id: OperationId,
        /// The hash of its body: a follower may hold another body under this id. A record of the write-ahead log does not
        /// keep it, because the replica compared it before it wrote the record; there it is 0.
        body_hash: BodyHash,
    },
    /// An update with its body.
    Full(Request),
    /// See [`Payload::Register`].
    Register {
        /// Chosen by the client.
        nonce: u64,
    },
    /// See [`Payload::Expire`].
    Expire(Box<[SessionId]>),
    /// See [`Payload::Tick`].
    Tick,
    /// See [`Payload::Reconfigure`].
    Reconfigure(Box<Reconfiguration>),
}

/// How a client wants an update treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Into the durability log; answered with `Ok` or `Conflict` (by the leader: `Committed`).
    Durability,
    /// Leader only: order it (and all before it) now; answered with `Committed`. Also what the papers
    /// call sync, when the update is already in the leader's durability log.
    Ordered,
}

/// How a leader would have operations come that others could answer, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Advice {
    /// As is soonest for the client.
    #[default]
    Free,
    /// To the leader alone: all wait for its cores and its followers', which have the least to do that way.
    Leader,
}

/// What an [`Advice`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advised {
    /// Updates that may be fast.
    Updates,
    /// Reads.
    Reads,
}

impl Advised {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Updates, Self::Reads];
}

/// Who stands behind a StartViewChange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewChangeReason {
    /// The sender misses its leader, and would move if `f` others do too. It has not moved yet.
    Suspicion,
    /// The sender has moved to the view.
    Moved,
    /// The sender leads the receiver's view and gives it up: leases it was granted are void.
    Abdication,
}

/// What a client asks of a replica with a read (IONIA 4.3, Syros 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// Of the leader: the answer.
    Answer,
    /// Of any member: the answer on its own state, once it has executed this entry of its log.
    Value {
        /// The entry; 0 for the state it has.
        after: OpNumber,
    },
    /// Of the leader: the last entry that changed what is to be read, or the answer if that is still to be
    /// ordered or executed.
    LastChange,
    /// Of any replica that has its memory: the answer on whatever state it has.
    StaleValue,
}

/// What a member knows of a read's keys beyond the state it answered from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// No entry in its log after this one changes them.
    pub accepted: OpNumber,
    /// Its durability log holds an update of them that is not in its log.
    pub unordered: bool,
    /// The log time of the last entry in its log.
    pub time: WallTime,
}

/// What a digest is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DigestOf {
    /// Of the entries: what was to be executed.
    Entries,
    /// Of what their updates have done.
    Effects,
}

/// Every message. Client to replica, replica to client, replica to replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Client to leader: register a session.
    Register {
        /// The client's view.
        view: View,
        /// Comes back in [`Message::Registered`]. Nobody else must be able to guess it: whoever knows it can use the session.
        nonce: u64,
    },
    /// Client to a replica, before its first update on a connection: the session is this client's, which chose this nonce
    /// when it registered. The replica takes updates of a session only from connections that have shown this.
    Attach {
        /// The session.
        session: SessionId,
        /// From [`Message::Register`].
        nonce: u64,
    },
    /// Client to replicas: an update.
    Request {
        /// The view it was sent for; any other view refuses it.
        view: View,
        /// To whom its client has sent it if it is to be durable: the others get it from the leader.
        recipients: ReplicaSet,
        /// How to treat it.
        path: Path,
        /// The update.
        request: Request,
    },
    /// Client to a replica: a read.
    Read {
        /// The client's view.
        view: View,
        /// Chosen by the client; comes back in the reply.
        number: u64,
        /// What is asked of this replica.
        asked: Asked,
        /// The operation, of class `Read`.
        body: Body,
    },
    /// Anyone to a replica: tell your status.
    StatusRequest,
    /// Client to follower: answer the updates of this session that the leader orders as soon as you have executed them, for so
    /// long and while you follow in this view.
    AnswerDirectly {
        /// The session.
        session: SessionId,
        /// What it was registered with.
        nonce: u64,
        /// For how long, from when it is read. Zero if the client wants the follower's answers no more.
        lasting: Duration,
    },
    /// Anyone to the leader: let the group go by this mode from your next view on.
    ChangeMode {
        /// The mode.
        mode: FastQuorum,
    },
    /// Anyone to the leader: let the group have this many members, two less than it has, from your next view on. Those with the
    /// highest numbers go. (A group grows when nodes ask for places in it.)
    Shrink {
        /// The size.
        to: Group,
    },
    /// Client to replica, for a backup: tell of your snapshot file if it goes at least up to this entry; otherwise take one
    /// as soon as that is executed. The replica answers with a `SnapshotOffer`, of no bytes if there is no such file yet.
    WantSnapshot {
        /// The least last op number.
        op_number: OpNumber,
    },
    /// Client to replica, for a backup: send me entries of your log that are committed and executed, and keep what follows
    /// them for a while. The replica answers with [`Message::CommittedEntries`].
    WantEntries {
        /// Those after this one.
        after: OpNumber,
        /// The client has put away for good what is up to here: should it die, another one goes on from there.
        held: OpNumber,
        /// No more bytes than this, about, but one entry at least; none for 0, which only has them kept.
        bytes_max: u64,
    },
    /// Anyone to the leader: let this member lead.
    HandOver {
        /// The next leader.
        to: ReplicaId,
    },

    /// Leader to client: the session is registered.
    Registered {
        /// The leader's view.
        view: View,
        /// From the request.
        nonce: u64,
        /// The new session.
        session: SessionId,
    },
    /// Leader to client: what an update returns that is in its durability log (Skyros 5.7). It counts once the fast
    /// quorum of this view has the update.
    Evaluated {
        /// The leader's view.
        view: View,
        /// The update.
        id: OperationId,
        /// What it returns.
        reply: Body,
    },
    /// Replica to client, for a backup: entries that are committed, in their order and without a gap. None if nothing that was
    /// asked for is executed yet, or if it is gone from the log: then `base` is behind `after`.
    CommittedEntries {
        /// From the request: the first entry is the one behind it.
        after: OpNumber,
        /// The view of that entry; `View(0)` if the log does not have it. Whoever has another entry of this number has another
        /// history.
        after_view: View,
        /// The replica's log begins after this entry.
        base: OpNumber,
        /// The replica has executed everything up to here.
        applied: OpNumber,
        /// The entries.
        entries: Vec<LogEntry>,
    },
    /// Replica to client: the update is durable here (in `fsync` mode: on disk).
    Ok {
        /// The replica's view.
        view: View,
        /// By what this view counts; `None`: by the configuration's rule.
        rule: Option<FastRule>,
        /// The update.
        id: OperationId,
        /// The replica's wall clock.
        clock: WallTime,
    },
    /// Replica to client: something pending has a later timestamp; nothing was stored.
    Conflict {
        /// The replica's view.
        view: View,
        /// The update.
        id: OperationId,
        /// The replica's wall clock.
        clock: WallTime,
    },
    /// Leader to client, or follower to a client that has direct answers: the update is committed and executed.
    Committed {
        /// The leader's view.
        view: View,
        /// The update.
        id: OperationId,
        /// The replica's wall clock.
        clock: WallTime,
        /// What it returned; empty for a nilext update.
        reply: Body,
    },
    /// Leader to a client that has shown its session: by what this view counts fast quorums, if not by the configuration's
    /// mode. A client that takes its updates for ones that only the leader completes would not hear it from an `Ok`.
    FastRule {
        /// The leader's view.
        view: View,
        /// Its rule.
        rule: FastRule,
    },
    /// Leader to client: how updates that may be fast, or reads, had better come, until it says otherwise or its view ends.
    Advise {
        /// The leader's view.
        view: View,
        /// Which of them.
        of: Advised,
        /// How.
        advice: Advice,
    },
    /// Leader to client: the result of a read.
    ReadReply {
        /// The leader's view.
        view: View,
        /// From the request.
        number: u64,
        /// The result.
        reply: Body,
    },
    /// Replica to client: the result of a read on this replica's state, and what it takes to tell whether
    /// that is new enough.
    MemberReply {
        /// The replica's view.
        view: View,
        /// From the request.
        number: u64,
        /// The state that was read is the one after this log entry, or a later one.
        applied: OpNumber,
        /// What the replica knows beyond its state.
        freshness: Freshness,
        /// The earliest moment, in log time, at which a key of the read expires; 0 if none does.
        expiry: WallTime,
        /// The result.
        reply: Body,
    },
    /// Leader to client: no entry after this one has changed what is to be read.
    LastChange {
        /// The leader's view.
        view: View,
        /// From the request.
        number: u64,
        /// That entry.
        op_number: OpNumber,
        /// The log time of the last entry in the leader's log: keys that expire by then may be gone.
        time: WallTime,
    },
    /// Replica to client: the update was not taken.
    Refused {
        /// The replica's view.
        view: View,
        /// The update.
        id: OperationId,
        /// The replica's wall clock.
        clock: WallTime,
        /// Why.
        refusal: Refusal,
    },
    /// Replica to client: the read was not taken.
    ReadRefused {
        /// The replica's view.
        view: View,
        /// From the request.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// Replica to anyone: this is my view, yours is another.
    WrongView {
        /// The replica's view; its leader is `view mod n`.
        view: View,
    },
    /// Replica to anyone: the answer to [`Message::StatusRequest`].
    Status(Box<StatusReport>),

    /// Leader to followers: append these entries (VR 4.1).
    Prepare {
        /// The leader's view.
        view: View,
        /// Op number of the first entry.
        first: OpNumber,
        /// The leader's commit number.
        commit: OpNumber,
        /// The leader's monotonic clock when this was sent; comes back in PrepareOk.
        sent_at: Instant,
        /// Log time of all entries.
        time: WallTime,
        /// The entries.
        entries: Vec<Prepared>,
    },
    /// Leader to followers: commit, heartbeat, lease request.
    Commit {
        /// The leader's view.
        view: View,
        /// The leader's commit number.
        commit: OpNumber,
        /// The last op number in the leader's log.
        op_number: OpNumber,
        /// As in [`Message::Prepare`].
        sent_at: Instant,
    },
    /// Follower to leader: my log is durable up to here; I will not leave the view for `promise`
    /// counted from `sent_at`.
    PrepareOk {
        /// The follower's view.
        view: View,
        /// Durable up to this op number.
        op_number: OpNumber,
        /// Executed up to this op number.
        applied: OpNumber,
        /// From the message this answers; 0 if it answers none and promises nothing.
        sent_at: Instant,
        /// How long the follower will not leave the view: its own lease duration, whatever the leader's is.
        promise: Duration,
        /// The follower's wall clock when it sent this. The leader bounds log time by the
        /// members' clocks together.
        clock: WallTime,
    },
    /// Follower to leader: I have executed a segment of the log, and this is its digest.
    Digest {
        /// The follower's view.
        view: View,
        /// The last entry of the segment.
        op_number: OpNumber,
        /// See [`Digests`](crate::digests::Digests).
        of: DigestOf,
        /// It.
        digest: u64,
    },
    /// Follower to a member: tell me how far your log is durable, whenever that changes, for as long as you are in my view.
    WatchLog {
        /// The follower's view.
        view: View,
    },
    /// Member to a follower that asked for it: my log is durable up to here, all of it.
    LogDurable {
        /// The member's view.
        view: View,
        /// Durable up to this op number.
        op_number: OpNumber,
    },
    /// Leader to followers: every member's log is durable up to here. Nobody will ask for these entries again.
    HeldByAll {
        /// The leader's view.
        view: View,
        /// Durable with all members up to this op number.
        op_number: OpNumber,
    },
    /// Leader to follower: a majority has another digest than you, and your state is not theirs.
    Diverged {
        /// The leader's view.
        view: View,
        /// The last entry of the segment.
        op_number: OpNumber,
        /// What the digest is of.
        of: DigestOf,
        /// What the majority has.
        digest: u64,
    },
    /// Follower to leader: I lack the bodies of these updates.
    FetchBodies {
        /// The follower's view.
        view: View,
        /// Which.
        ids: Vec<OperationId>,
    },
    /// Leader to follower: the bodies.
    Bodies {
        /// The leader's view.
        view: View,
        /// The updates.
        requests: Vec<Request>,
    },
    /// Follower to leader: an update that has stayed in my durability log for long; order it.
    Forward {
        /// The follower's view.
        view: View,
        /// The updates.
        requests: Vec<Request>,
    },
    /// Replica to replica: send me the log from here on (VR 5.2).
    GetState {
        /// The sender's view.
        view: View,
        /// First op number wanted.
        from: OpNumber,
    },
    /// Replica to replica: a part of the log.
    NewState {
        /// The sender's view.
        view: View,
        /// Op number of the first entry.
        first: OpNumber,
        /// The sender's commit number.
        commit: OpNumber,
        /// The entries.
        entries: Vec<LogEntry>,
    },
    /// Replica to all: a view change (VR 4.2).
    StartViewChange {
        /// The view to move to.
        view: View,
        /// Why.
        reason: ViewChangeReason,
    },
    /// Replica to all: how long I wait for a view to begin after others that have not begun.
    Patience {
        /// The view.
        view: View,
        /// So many times as long as for a first one.
        times: u8,
    },
    /// Replica to the new leader: what I have (VR 4.2, with the durability log of Skyros 4.6).
    DoViewChange(Box<DoViewChange>),
    /// New leader to all: the log of the new view (VR 4.2).
    StartView(Box<StartView>),
    /// Replica to the leader of a newer view: let me in.
    GetStartView {
        /// The view the sender wants to enter.
        view: View,
        /// The sender's commit number.
        commit: OpNumber,
    },
    /// A replica that lost its memory to all: I need a new view, in whose making I take no part.
    Rejoin {
        /// The newest view the sender may have acted in.
        view: View,
    },
    /// Learner to members: let the group grow by me.
    PlaceWanted {
        /// The view that the learner has copied from.
        view: View,
        /// The node that it is.
        node: NodeId,
        /// It has executed what is committed up to here.
        applied: OpNumber,
    },
    /// Replica to replica: I have heard of a view of a later configuration. I know that of this epoch.
    GetConfiguration {
        /// The newest that the sender knows.
        epoch: ConfigurationEpoch,
    },
    /// Replica to replica: the newest configuration that I know. It is committed.
    Configuration(Box<Reconfiguration>),
    /// Follower to leader, as long as it lasts: my disk is nearly full. Leader to followers: those of a majority are.
    DiskShort {
        /// The view.
        view: View,
    },
    /// Replica to replica: the log you asked for is gone; I have this snapshot, and the log after it. Replica to client: I
    /// have this snapshot; without bytes: not the one that you want.
    SnapshotOffer {
        /// The sender's view.
        view: View,
        /// Last op number in the snapshot.
        op_number: OpNumber,
        /// Its length in bytes.
        bytes: u64,
    },
    /// Replica or client to replica: send me the part of that snapshot that begins here. An `offset` at its end
    /// asks for nothing: it says that the sender will need the log after it.
    GetSnapshot {
        /// Last op number in the snapshot.
        op_number: OpNumber,
        /// First byte wanted.
        offset: u64,
    },
    /// Replica to replica or client: a part of a snapshot.
    SnapshotPart {
        /// Last op number in the snapshot.
        op_number: OpNumber,
        /// Where the part begins, in bytes.
        offset: u64,
        /// The part.
        part: Body,
    },
}

impl Message {
    /// The view that it is of, if it is of one.
    #[must_use]
    pub const fn view(&self) -> Option<View> {
        match self {
            Self::Register { view, .. }
            | Self::Request { view, .. }
            | Self::Read { view, .. }
            | Self::Registered { view, .. }
            | Self::Ok { view, .. }
            | Self::Conflict { view, .. }
            | Self::Evaluated { view, .. }
            | Self::Committed { view, .. }
            | Self::FastRule { view, .. }
            | Self::Advise { view, .. }
            | Self::ReadReply { view, .. }
            | Self::MemberReply { view, .. }
            | Self::LastChange { view, .. }
            | Self::Refused { view, .. }
            | Self::ReadRefused { view, .. }
            | Self::WrongView { view }
            | Self::Prepare { view, .. }
            | Self::Commit { view, .. }
            | Self::PrepareOk { view, .. }
            | Self::Digest { view, .. }
            | Self::Diverged { view, .. }
            | Self::HeldByAll { view, .. }
            | Self::WatchLog { view }
            | Self::LogDurable { view, .. }
            | Self::FetchBodies { view, .. }
            | Self::Bodies { view, .. }
            | Self::Forward { view, .. }
            | Self::GetState { view, .. }
            | Self::NewState { view, .. }
            | Self::StartViewChange { view, .. }
            | Self::Patience { view, .. }
            | Self::GetStartView { view, .. }
            | Self::Rejoin { view }
            | Self::PlaceWanted { view, .. }
            | Self::DiskShort { view }
            | Self::SnapshotOffer { view, .. } => Some(*view),
            Self::DoViewChange(change) => Some(change.view),
            Self::StartView(start) => Some(start.view),
            Self::Attach { .. }
            | Self::StatusRequest
            | Self::Status(_)
            | Self::AnswerDirectly { .. }
            | Self::HandOver { .. }
            | Self::WantSnapshot { .. }
            | Self::WantEntries { .. }
            | Self::CommittedEntries { .. }
            | Self::ChangeMode { .. }
            | Self::Shrink { .. }
            | Self::GetSnapshot { .. }
            | Self::SnapshotPart { .. }
            | Self::GetConfiguration { .. }
            | Self::Configuration(_) => None,
        }
    }

    /// The name of its kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Register { .. } => "Register",
            Self::Attach { .. } => "Attach",
            Self::Request { .. } => "Request",
            Self::Read { .. } => "Read",
            Self::StatusRequest => "StatusRequest",
            Self::AnswerDirectly { .. } => "AnswerDirectly",
            Self::HandOver { .. } => "HandOver",
            Self::ChangeMode { .. } => "ChangeMode",
            Self::Shrink { .. } => "Shrink",
            Self::WantSnapshot { .. } => "WantSnapshot",
            Self::WantEntries { .. } => "WantEntries",
            Self::CommittedEntries { .. } => "CommittedEntries",
            Self::Registered { .. } => "Registered",
            Self::Ok { .. } => "Ok",
            Self::Conflict { .. } => "Conflict",
            Self::Evaluated { .. } => "Evaluated",
            Self::Committed { .. } => "Committed",
            Self::FastRule { .. } => "FastRule",
            Self::Advise { .. } => "Advise",
            Self::ReadReply { .. } => "ReadReply",
            Self::MemberReply { .. } => "MemberReply",
            Self::LastChange { .. } => "LastChange",
            Self::Refused { .. } => "Refused",
            Self::ReadRefused { .. } => "ReadRefused",
            Self::WrongView { .. } => "WrongView",
            Self::Status(_) => "Status",
            Self::Prepare { .. } => "Prepare",
            Self::Commit { .. } => "Commit",
            Self::PrepareOk { .. } => "PrepareOk",
            Self::Digest { .. } => "Digest",
            Self::Diverged { .. } => "Diverged",
            Self::HeldByAll { .. } => "HeldByAll",
            Self::WatchLog { .. } => "WatchLog",
            Self::LogDurable { .. } => "LogDurable",
            Self::FetchBodies { .. } => "FetchBodies",
            Self::Bodies { .. } => "Bodies",
            Self::Forward { .. } => "Forward",
            Self::GetState { .. } => "GetState",
            Self::NewState { .. } => "NewState",
            Self::StartViewChange { .. } => "StartViewChange",
            Self::Patience { .. } => "Patience",
            Self::DoViewChange(_) => "DoViewChange",
            Self::StartView(_) => "StartView",
            Self::GetStartView { .. } => "GetStartView",
            Self::Rejoin { .. } => "Rejoin",
            Self::PlaceWanted { .. } => "PlaceWanted",
            Self::GetConfiguration { .. } => "GetConfiguration",
            Self::Configuration(_) => "Configuration",
            Self::DiskShort { .. } => "DiskShort",
            Self::SnapshotOffer { .. } => "SnapshotOffer",
            Self::GetSnapshot { .. } => "GetSnapshot",
            Self::SnapshotPart { .. } => "SnapshotPart",
        }
    }
}

/// Content of a DoViewChange.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DoViewChange {
    /// The view to start.
    pub view: View,
    /// The last view in which the sender was normal.
    pub last_normal: View,
    /// By what that view counted; `None`: by the configuration's rule.
    pub rule: Option<FastRule>,
    /// The sender's commit number.
    pub commit: OpNumber,
    /// View of the entry at `commit`; `View(0)` when that is 0.
    pub commit_view: View,
    /// The sender's log after `commit`.
    pub suffix: Vec<LogEntry>,
    /// The sender's durability log, in arrival order.
    pub dlog: Vec<Request>,
    /// The sender's wall clock when it sent this: log time of the new view's first entries.
    pub clock: WallTime,
}

impl DoViewChange {
    /// The sender's last op number.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        OpNumber(self.commit.0 + self.suffix.len() as u64)
    }
}

/// Content of a StartView.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StartView {
    /// The new view.
    pub view: View,
    /// By what it counts; `None`: by the configuration's rule.
    pub rule: Option<FastRule>,
    /// The entries of `suffix` follow this op number; everything up to it is committed.
    pub base: OpNumber,
    /// View of the entry at `base`; `View(0)` when that is 0.
    pub base_view: View,
    /// The leader's commit number.
    pub commit: OpNumber,
    /// The leader's log after `base`.
    pub suffix: Vec<LogEntry>,
}

/// Where a message comes from or goes to. A client's address is a number its driver chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// A member of the group.
    Replica(ReplicaId),
    /// A client connection.
    Client(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replicas count refusals by these places, and metrics by these names.
    #[test]
    fn every_refusal_has_a_place_and_a_name_of_its_own() {
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place);
            assert_eq!(Refusal::ALL.into_iter().filter(|other| other.name() == refusal.name()).count(), 1);
        }
        // The last one of the declaration is there.
        assert_eq!(Refusal::ReplyDropped as usize + 1, Refusal::ALL.len());
    }
}

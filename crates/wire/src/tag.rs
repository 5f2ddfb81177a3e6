//! Every tag of the format. None may change its meaning; the number of a retired one stays in its
//! table, marked as retired, and is never used again.

/// Messages. 1..16: client to replica; 16..32: replica to client; 32..64: between replicas.
pub mod message {
    /// `Register`.
    pub const REGISTER: u8 = 1;
    /// `Request`.
    pub const REQUEST: u8 = 2;
    /// `Read`.
    pub const READ: u8 = 3;
    /// `StatusRequest`.
    pub const STATUS_REQUEST: u8 = 4;
    /// `HandOver`.
    pub const HAND_OVER: u8 = 5;
    /// `Read` that asks for anything but the leader's answer.
    pub const READ_PART: u8 = 6;
    /// `Attach`.
    pub const ATTACH: u8 = 7;
    /// `ChangeMode`: since version 9 of the wire format.
    pub const CHANGE_MODE: u8 = 8;
    /// `AnswerDirectly`: since version 10.
    pub const ANSWER_DIRECTLY: u8 = 9;
    /// `WantSnapshot`: since version 18.
    pub const WANT_SNAPSHOT: u8 = 10;
    /// `Shrink`: since version 19.
    pub const SHRINK: u8 = 11;
    /// `WantEntries`: since version 20.
    pub const WANT_ENTRIES: u8 = 12;

    /// `Registered`.
    pub const REGISTERED: u8 = 16;
    /// `Ok`.
    pub const OK: u8 = 17;
    /// `Conflict`.
    pub const CONFLICT: u8 = 18;
    /// `Committed`.
    pub const COMMITTED: u8 = 19;
    /// `ReadReply`.
    pub const READ_REPLY: u8 = 20;
    /// `Refused`.
    pub const REFUSED: u8 = 21;
    /// `ReadRefused`.
    pub const READ_REFUSED: u8 = 22;
    /// `WrongView`: to anyone.
    pub const WRONG_VIEW: u8 = 23;
    /// `Status`: to anyone.
    pub const STATUS: u8 = 24;
    /// `MemberReply`.
    pub const MEMBER_REPLY: u8 = 25;
    /// `LastChange`.
    pub const LAST_CHANGE: u8 = 26;
    /// `Evaluated`.
    pub const EVALUATED: u8 = 27;
    /// `Ok` of a view that does not count by the configuration's rule: since version 7 of the wire format.
    pub const OK_OF_RULE: u8 = 28;
    /// `Advise` of updates: since version 8.
    pub const ADVISE: u8 = 29;
    /// `FastRule`: since version 9.
    pub const FAST_RULE: u8 = 30;
    /// `Advise` of reads: since version 9.
    pub const ADVISE_READS: u8 = 31;

    /// `Prepare`.
    pub const PREPARE: u8 = 32;
    /// `Commit`.
    pub const COMMIT: u8 = 33;
    /// `PrepareOk`.
    pub const PREPARE_OK: u8 = 34;
    /// `FetchBodies`.
    pub const FETCH_BODIES: u8 = 35;
    /// `Bodies`.
    pub const BODIES: u8 = 36;
    /// `Forward`.
    pub const FORWARD: u8 = 37;
    /// `GetState`.
    pub const GET_STATE: u8 = 38;
    /// `NewState`.
    pub const NEW_STATE: u8 = 39;
    /// `StartViewChange`.
    pub const START_VIEW_CHANGE: u8 = 40;
    /// `DoViewChange`.
    pub const DO_VIEW_CHANGE: u8 = 41;
    /// `StartView`.
    pub const START_VIEW: u8 = 42;
    /// `GetStartView`.
    pub const GET_START_VIEW: u8 = 43;
    /// `Rejoin`.
    pub const REJOIN: u8 = 44;
    /// `PlaceWanted`: since version 24.
    pub const PLACE_WANTED: u8 = 62;
    /// `SnapshotOffer`: to clients, too, since version 18, as the next two.
    pub const SNAPSHOT_OFFER: u8 = 45;
    /// `GetSnapshot`: from clients, too.
    pub const GET_SNAPSHOT: u8 = 46;
    /// `SnapshotPart`: to clients, too.
    pub const SNAPSHOT_PART: u8 = 47;
    /// `DiskShort`.
    pub const DISK_SHORT: u8 = 48;

    /// `WatchLog`: since version 6 of the wire format.
    pub const WATCH_LOG: u8 = 49;
    /// `LogDurable`: since version 6.
    pub const LOG_DURABLE: u8 = 50;
    /// `HeldByAll`: since version 13.
    pub const HELD_BY_ALL: u8 = 53;
    /// `Digest` of effects: since version 15.
    pub const DIGEST_OF_EFFECTS: u8 = 54;
    /// `Diverged` by a digest of effects: since version 15.
    pub const DIVERGED_IN_EFFECTS: u8 = 55;
    /// `DoViewChange` with the rule of the sender's last normal view: since version 7.
    pub const DO_VIEW_CHANGE_OF_RULE: u8 = 51;
    /// `StartView` with a rule: since version 7.
    pub const START_VIEW_OF_RULE: u8 = 52;

    /// `GetConfiguration`, since version 17; from clients, too, since version 19.
    pub const GET_CONFIGURATION: u8 = 56;
    /// `Configuration`, since version 17; to clients, too, since version 19.
    pub const CONFIGURATION: u8 = 57;
    /// `CommittedEntries`, to clients: since version 20.
    pub const COMMITTED_ENTRIES: u8 = 58;
    /// `Digest`.
    pub const DIGEST: u8 = 60;
    /// `Diverged`.
    pub const DIVERGED: u8 = 61;

    /// `Patience`: since version 25.
    pub const PATIENCE: u8 = 63;

    /// Last tag of a message between replicas.
    pub const BETWEEN_REPLICAS_LAST: u8 = 63;
}

/// Messages between front ends: since version 12 of the wire format.
pub mod front_end {
    /// `Interest`.
    pub const INTEREST: u8 = 1;
    /// `InterestKnown`.
    pub const INTEREST_KNOWN: u8 = 2;
    /// `Published`.
    pub const PUBLISHED: u8 = 3;
    /// `WantNodes`: since version 19.
    pub const WANT_NODES: u8 = 4;
    /// `Nodes`: since version 19.
    pub const NODES: u8 = 5;
}

/// Kinds of subscriptions.
pub mod subscription {
    /// `Channel`.
    pub const CHANNEL: u8 = 1;
    /// `Pattern`.
    pub const PATTERN: u8 = 2;
    /// `Shard`.
    pub const SHARD: u8 = 3;
}

/// Records of the write-ahead log.
pub mod record {
    /// `View`.
    pub const VIEW: u8 = 1;
    /// `Accept`.
    pub const ACCEPT: u8 = 2;
    /// `Append`.
    pub const APPEND: u8 = 3;
    /// `Transfer`.
    pub const TRANSFER: u8 = 4;
    /// `EnterView`.
    pub const ENTER_VIEW: u8 = 5;
    /// `Checkpoint`.
    pub const CHECKPOINT: u8 = 6;
    /// `Forgot`.
    pub const FORGOT: u8 = 7;
    /// `Checkpoint` of a replica that lost its memory.
    pub const CHECKPOINT_OF_AMNESIAC: u8 = 8;
    /// Group and epoch come before the record's own tag: since format 3 of the log.
    pub const OF_CONFIGURATION: u8 = 9;
    /// `EnterView` with a rule: since there is the mixed mode, whose name in the identity file builds of before refuse.
    pub const ENTER_VIEW_OF_RULE: u8 = 10;
    /// `Checkpoint` with a rule: likewise.
    pub const CHECKPOINT_OF_RULE: u8 = 11;
    /// `Checkpoint` with a rule of a replica that lost its memory: likewise.
    pub const CHECKPOINT_OF_RULE_AND_AMNESIAC: u8 = 12;
}

/// How operations had better come.
pub mod advice {
    /// `Free`.
    pub const FREE: u8 = 1;
    /// `Leader`.
    pub const LEADER: u8 = 2;
}

/// What a read asks of a replica.
pub mod asked {
    /// `Value`.
    pub const VALUE: u8 = 1;
    /// `LastChange`.
    pub const LAST_CHANGE: u8 = 2;
    /// `StaleValue`.
    pub const STALE_VALUE: u8 = 3;
}

/// Completions in a snapshot's session table.
pub mod completion {
    /// No operation of this sequence number was executed.
    pub const NONE: u8 = 0;
    /// `Nilext`.
    pub const NILEXT: u8 = 1;
    /// `Reply`.
    pub const REPLY: u8 = 2;
    /// `Dropped`.
    pub const DROPPED: u8 = 3;
    /// No operation of so many sequence numbers was executed.
    pub const GAP: u8 = 4;
}

/// Entries of a Prepare and of an Append record.
pub mod prepared {
    /// `Reference` without the hash of the body: in records.
    pub const REFERENCE: u8 = 1;
    /// `Full`.
    pub const FULL: u8 = 2;
    /// `Register`.
    pub const REGISTER: u8 = 3;
    /// `Expire`.
    pub const EXPIRE: u8 = 4;
    /// `Tick`.
    pub const TICK: u8 = 5;
    /// `Reference` with the hash of the body: in Prepares, since version 4 of the wire format.
    pub const HASHED_REFERENCE: u8 = 6;
    /// `Reconfigure`, since version 17 of the wire format.
    pub const RECONFIGURE: u8 = 7;
}

/// Payloads of log entries.
pub mod payload {
    /// `Update`.
    pub const UPDATE: u8 = 1;
    /// `Recovered`.
    pub const RECOVERED: u8 = 2;
    /// `Register`.
    pub const REGISTER: u8 = 3;
    /// `Expire`.
    pub const EXPIRE: u8 = 4;
    /// `Tick`.
    pub const TICK: u8 = 5;
    /// `Reconfigure`, since version 17 of the wire format.
    pub const RECONFIGURE: u8 = 6;
}

/// Paths of a request.
pub mod path {
    /// `Durability`.
    pub const DURABILITY: u8 = 1;
    /// `Ordered`.
    pub const ORDERED: u8 = 2;
}

/// Refusals.
pub mod refusal {
    /// `ClockSkew`.
    pub const CLOCK_SKEW: u8 = 1;
    /// `UnknownSession`.
    pub const UNKNOWN_SESSION: u8 = 2;
    /// `Stale`.
    pub const STALE: u8 = 3;
    /// `Malformed`.
    pub const MALFORMED: u8 = 4;
    /// `LogFull`.
    pub const LOG_FULL: u8 = 5;
    /// `Overloaded`.
    pub const OVERLOADED: u8 = 6;
    /// `DiskFailed`.
    pub const DISK_FAILED: u8 = 7;
    /// `NotNormal`.
    pub const NOT_NORMAL: u8 = 8;
    /// `OtherOperation`.
    pub const OTHER_OPERATION: u8 = 9;
    /// `NotAttached`.
    pub const NOT_ATTACHED: u8 = 10;
    /// `OutOfMemory`.
    pub const OUT_OF_MEMORY: u8 = 11;
    /// `DiskFull`.
    pub const DISK_FULL: u8 = 12;
    /// `ReplyDropped`.
    pub const REPLY_DROPPED: u8 = 13;
    /// `NotActive`: since version 7 of the wire format.
    pub const NOT_ACTIVE: u8 = 14;
}

/// Reasons of a StartViewChange.
pub mod reason {
    /// `Suspicion`.
    pub const SUSPICION: u8 = 1;
    /// `Moved`.
    pub const MOVED: u8 = 2;
    /// `Abdication`.
    pub const ABDICATION: u8 = 3;
}

/// Roles in a status report.
pub mod role {
    /// `Leader`.
    pub const LEADER: u8 = 1;
    /// `Follower`.
    pub const FOLLOWER: u8 = 2;
    /// `ViewChange`.
    pub const VIEW_CHANGE: u8 = 3;
    /// `Recovering`.
    pub const RECOVERING: u8 = 4;
}

/// Booleans.
pub mod boolean {
    /// `false`.
    pub const FALSE: u8 = 0;
    /// `true`.
    pub const TRUE: u8 = 1;
}

/// Senders of a handshake.
pub mod sender {
    /// A client.
    pub const CLIENT: u8 = 1;
    /// A member of the group.
    pub const REPLICA: u8 = 2;
}

/// Fast quorum modes.
pub mod fast_quorum {
    /// `Majority`.
    pub const MAJORITY: u8 = 1;
    /// `Supermajority`.
    pub const SUPERMAJORITY: u8 = 2;
    /// `NilextOrCommutative`.
    pub const NILEXT_OR_COMMUTATIVE: u8 = 3;
    /// `Commutative`.
    pub const COMMUTATIVE: u8 = 4;
    /// `Mixed`: since version 7 of the wire format.
    pub const MIXED: u8 = 5;
}

/// Steps of a handshake after both sides have said who they are.
pub mod step {
    /// `Proof`.
    pub const PROOF: u8 = 1;
    /// `Welcome` without a proof.
    pub const WELCOME: u8 = 2;
    /// `Welcome` with a proof.
    pub const WELCOME_WITH_PROOF: u8 = 3;
    /// `Refused`.
    pub const REFUSED: u8 = 4;
    /// `Stage`.
    pub const STAGE: u8 = 5;
    /// `NotYet`, since version 24.
    pub const NOT_YET: u8 = 6;
}

/// How far a member has come.
pub mod stage {
    /// `New`.
    pub const NEW: u8 = 1;
    /// `Voted`.
    pub const VOTED: u8 = 2;
    /// `Acting`.
    pub const ACTING: u8 = 3;
    /// `Replacing`, since version 17.
    pub const REPLACING: u8 = 4;
    /// `Acting`, with the sizes of the roster and of the one before, since version 19.
    pub const ACTING_RESIZED: u8 = 5;
    /// `Joining`, since version 19.
    pub const JOINING: u8 = 6;
    /// `Learning`, since version 24.
    pub const LEARNING: u8 = 7;
}

/// When acknowledgements leave.
pub mod durability {
    /// `Fsync`.
    pub const FSYNC: u8 = 1;
    /// `Replicated`.
    pub const REPLICATED: u8 = 2;
}

/// In the place of the size of a group, which is at most 9: the roster before is another size's, and comes first. Since
/// version 19.
pub const RESIZED: u8 = 16;

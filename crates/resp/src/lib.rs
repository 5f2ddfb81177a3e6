//! The Redis protocol of Syros, without sockets.
//!
//! A [`Connection`] takes the bytes a client sent and gives [`Submission`]s, encoded operations for the
//! replicated state machine; it takes their [`Completion`]s and gives the bytes of the replies, in the
//! order of the requests. It also answers what needs no data: PING, HELLO, INFO, COMMAND and the like.
//! Whoever drives it owns the sockets, the clock and the client of the group.
#![forbid(unsafe_code)]

mod access;
mod bytes;
mod connection;
mod connection_commands;
mod context;
mod info;
mod keyspace_events;
mod locks;
mod messages;
mod parser;
#[cfg(feature = "planted-bugs")]
mod planted;
mod queue;
mod received;
mod requests;
mod schedule;
mod scripts;
mod settings;
mod shared;
mod statistics;
mod tracking;
mod watch;
mod writer;

pub use connection::{Connection, Unblocking};
pub use context::{Context, Identity, Unavailable};
pub use info::{DatabaseReport, ServerInfo, ServerReport};
pub use keyspace_events::KeyspaceEvents;
pub use messages::{MessageAnswer, MessageRequest, PushedMessage, SubscriptionChange};
pub use parser::{Parser, ParserOutcome, ProtocolError, TooLarge};
#[cfg(feature = "planted-bugs")]
pub use planted::PlantedBug;
pub use received::{BulkHead, ReceivedReply, end_bulk, read_bulk, read_bulk_head, read_reply};
pub use requests::{ClientFilter, ClientKind, ProcessAnswer, ProcessRequest, WaitRequest};
pub use schedule::{Completion, Submission};
pub use shared::{DebugAccess, PauseMode, SLOW_LOG_LENGTH_MAX, Shared, SlowCommandName};
pub use statistics::{ClientTotals, CommandTimes, CommandTotals, CommandUse, Statistics};
pub use tracking::{TrackingChoice, TrackingCounts, TrackingRequest};
pub use writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_nil_array,
    write_push, write_reply, write_set, write_simple, write_verbatim,
};

/// Limits of a connection, each with its reason.
pub mod limits {
    use syros_types::limits::{BODY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};

    /// Longest inline request and longest header line, in bytes: Redis's own limit.
    pub const LINE_BYTES_MAX: usize = 64 * 1024;

    /// Most words of one request: MSET of the most keys, its name, and as much again so that a somewhat
    /// longer one gets an error that says what is wrong, instead of losing its connection.
    pub const WORDS_MAX: usize = 4 * KEYS_PER_OPERATION_MAX;

    /// Longest request, in bytes. A longer one could not become an operation; the client would wait for
    /// it to be received only to be told so.
    pub const REQUEST_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

    /// Longest word of a request that is skipped because it is too large, in bytes: Redis's own limit. A
    /// longer one ends the connection, because hardly any client means it.
    pub const SKIPPED_WORD_BYTES_MAX: usize = 512 * 1024 * 1024;

    /// Most words of a request that is skipped because it is too large: Redis's own limit.
    pub const SKIPPED_WORDS_MAX: usize = i32::MAX as usize;

    /// Most commands of one connection without a reply. Four thousand in flight fill any network, and
    /// bound what one connection takes from the others.
    pub const COMMANDS_MAX: usize = 4096;

    /// A connection that has handed over, or waits to hand over, operations of this many bytes takes no
    /// further commands. Room for one largest value while another is on its way.
    pub const OPERATION_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

    /// A connection with this many bytes of replies that its client has not taken yet takes no further
    /// commands: as much as a socket buffer holds keeps the client busy, more only costs memory.
    pub const REPLY_BYTES_PAUSE: usize = 4 * 1024 * 1024;

    /// No operation that returns values is handed over while the replies expected and held exceed this
    /// many bytes. What replies will be is guessed from what they were. As much as a network of 1 Gbit/s takes in
    /// the 70 ms that an answer may take from another continent; a connection whose client does not read holds no
    /// more than that, and one reply.
    pub const REPLY_BYTES_EXPECTED_MAX: usize = 8 * 1024 * 1024;

    /// As [`REPLY_BYTES_EXPECTED_MAX`], for a connection of a server that is short of memory: so much is sent at once.
    pub const REPLY_BYTES_EXPECTED_NARROW: usize = 256 * 1024;

    /// A connection whose replies take more memory than this is cut off: the guess was wrong by more
    /// than an order of magnitude, and the other connections need the memory.
    pub const REPLY_BYTES_MAX: usize = 1024 * 1024 * 1024;

    /// Longest body that still takes in another command, in bytes. Sending this much takes about 2 ms
    /// on a 1 Gbit/s network; packing more would save less than it delays.
    pub const PACK_BYTES_MAX: usize = 256 * 1024;

    /// Most values that the replies to one pack may hold. As many of the largest ones fit into one
    /// reply, with one to spare for everything else in it: a command never fails for being packed.
    pub const PACK_VALUES_MAX: usize = syros_commands::limits::REPLY_BYTES_MAX / VALUE_BYTES_MAX - 1;

    /// Bytes that a pack of more than one operation touches at most when it is executed, beyond its own and its replies': a
    /// millisecond's work or a few.
    pub const PACK_WORK_MAX: usize = 1 << 20;

    /// Replies to one pack are expected to hold no more bytes of values than this, unless it is one value: a pack is
    /// executed as a whole, however much comes of it.
    pub const PACK_REPLY_BYTES_EXPECTED_MAX: usize = REPLY_BYTES_EXPECTED_MAX / 16;

    /// Most commands of one transaction: as many operations as a body may have.
    pub const TRANSACTION_COMMANDS_MAX: usize = syros_commands::limits::OPERATIONS_PER_BODY_MAX;

    /// Most keys that the commands of one transaction name together: as many as one operation.
    pub const TRANSACTION_KEYS_MAX: usize = KEYS_PER_OPERATION_MAX;

    /// Most commands of one transaction that are about the node, such as INFO, CONFIG and COMMAND. Each takes up to half a
    /// millisecond, and the node does nothing else until all of them have been answered.
    pub const TRANSACTION_NODE_COMMANDS_MAX: usize = 256;

    /// Commands about the node that one connection gets answered before others have their turn: some milliseconds. Thousands may
    /// come in one piece.
    pub const NODE_COMMANDS_PER_TURN: usize = 32;

    /// Most bytes that the keys take which a connection watches: half of what a body may be, so that the other half is left
    /// for the transaction itself.
    pub const WATCHED_BYTES_MAX: usize = BODY_BYTES_MAX / 2;

    /// Bytes that a transaction touches at most when it is executed, beyond its own and its replies': some tenths of a
    /// second's work, in which a replica does nothing else. The client has asked for it to be executed in one go, so it is
    /// far more than [`PACK_WORK_MAX`].
    pub const TRANSACTION_WORK_MAX: usize = 64 * VALUE_BYTES_MAX;

    const _: () = assert!(COMMANDS_MAX <= syros_commands::limits::OPERATIONS_PER_BODY_MAX);
    const _: () = assert!(PACK_BYTES_MAX < BODY_BYTES_MAX);
    const _: () = assert!(PACK_VALUES_MAX > 0);
    const _: () = assert!(WORDS_MAX > 2 * KEYS_PER_OPERATION_MAX);
    const _: () = assert!(REPLY_BYTES_MAX > 4 * syros_commands::limits::REPLY_BYTES_MAX);
}

//! The one place that knows Redis commands: which there are, how they are written, what class each
//! is, which keys it touches, how it and its replies travel as bytes, and what it does.
//!
//! The way of a command: [`parse`] turns the client's words into an [`Operation`];
//! [`Operation::encode`] turns that into a *body*, one or more operations in a row that execute
//! atomically and in order; every replica calls [`describe`] on the untrusted body to learn its class
//! and footprint; an engine executes the [`operations`] of the body ([`execution`]) over its keys ([`access`]) and answers
//! with the concatenated encodings of one [`Reply`] per operation, which [`ReplyRef`] reads without copying.
//!
//! All of one command stands in one file of [`families`].
#![forbid(unsafe_code)]

pub mod access;
pub mod acl;
mod arguments;
mod calling_user;
mod database_key;
mod deadline;
mod describe;
mod double;
mod effects;
mod encoding;
mod error;
mod example;
pub mod execution;
mod extended;
pub mod families;
mod field_error;
mod generation;
mod glob;
mod hexadecimal;
mod key_access;
mod number;
mod operation;
mod parse;
mod payload_error;
mod primitive;
mod programs;
pub mod rdb;
mod reply;
mod script_execution;
mod stream_error;
mod table;
mod user_execution;
mod words;

pub use arguments::{Arguments, ArgumentsIter};
pub use database_key::DatabaseKey;
pub use deadline::Deadline;
pub use describe::{
    Operations, WithoutMemory, asks_about_users, describe, looks_at_little, may_be_heavy, may_be_no_op,
    operations, overwrites, without_memory,
};
pub use double::{parse_double, write_decimal, write_double};
pub use effects::Effects;
pub use error::{CommandError, ExecutionError, NO_MEMORY};
pub use example::put_example;
pub use extended::Extended;
pub use families::specification::{
    CommandKind, CommandSpec, KeyPositions, KeyWord, KeysBehind, LookupReply, SubcommandSpec,
};
pub use families::{Command, Condition, ConnectionCommand, ExpireCondition, Lifetime, TtlChange, Unit};
pub use field_error::FieldError;
pub use generation::Generation;
pub use glob::{glob_matches, glob_matches_in_any_case};
pub use key_access::{AccessedKey, accessed_keys, first_word_specification, key_flags, subcommand_key_flags};
pub use number::{parse_integer, write_integer};
pub use operation::{Operation, ScriptUse};
pub use parse::{Parsed, parse, parse_numbered};
pub use payload_error::PayloadError;
pub use primitive::Malformed;
pub use programs::{Library, Programs, ScriptName};
pub use reply::{
    ArrayRef, Double, Head, PairsRef, Reply, ReplyRef, is_nil_array, is_waits, put_array, put_big_number,
    put_boolean, put_bulk, put_decimal, put_double, put_error, put_integer, put_keyed, put_map, put_nil,
    put_nil_array, put_ok, put_pairs, put_set, put_simple, put_verbatim, put_waits,
};
pub use stream_error::StreamError;
pub use table::{commands, lookup};
pub use words::{database as parse_database, pattern as parse_pattern};

/// Limits of operations and replies that only this crate and the engines share, each with its reason.
pub mod limits {
    /// Most operations packed into one body. Bounds the work one request can cause, like
    /// [`KEYS_PER_OPERATION_MAX`](syros_types::limits::KEYS_PER_OPERATION_MAX).
    pub const OPERATIONS_PER_BODY_MAX: usize = 65_536;

    /// Most operations on all keys in one body that has others, too: each may take time in proportion to the data, and
    /// nothing else is executed meanwhile. As many as a transaction has a use for, such as a FLUSHALL at its beginning and
    /// a DBSIZE at its end.
    pub const WHOLE_KEYSPACE_OPERATIONS_MAX: usize = 8;

    /// Longest pattern of KEYS and of SCAN's MATCH, in bytes. Matching costs the product of the
    /// lengths of pattern and key in the worst case; this keeps the worst key below a tenth of a second.
    pub const PATTERN_BYTES_MAX: usize = 1024;

    /// The replies to one body may grow to this many bytes plus one value. A reply is one buffer at
    /// every station of its way; without a bound one MGET could name a value of 16 MiB 65,536 times.
    pub const REPLY_BYTES_MAX: usize = 128 * 1024 * 1024;

    /// An update that returns elements may answer this many bytes, and otherwise fails before it changes anything: every
    /// replica keeps the reply until the client has it. As many as one longest element, and a key.
    pub const UPDATE_REPLY_BYTES_MAX: usize = syros_types::limits::BODY_BYTES_MAX;

    /// Most bytes that one command may combine, in all strings that it reads: a key of 16 MiB may be named 65,536 times. Going
    /// through so many takes as long as others can be kept waiting.
    pub const SOURCE_BYTES_MAX: usize = 1 << 30;

    /// Most bytes that a command, or a transaction, may go through that changes something, as far as the data tells before it is
    /// executed: as much as a processor does in some seconds. All replicas execute it, and do nothing else meanwhile.
    pub const UPDATE_WORK_MAX: usize = 1 << 30;

    /// Most keys that one SORT may look up for BY and GET. Each takes some hundred nanoseconds, and nothing else is executed
    /// meanwhile.
    pub const SORT_LOOKUPS_MAX: usize = 1 << 22;

    /// The compressed strings of one payload of RESTORE may become this many bytes. Redis compresses what repeats itself to a
    /// hundredth, and a payload has at most 16 MiB.
    pub const RESTORED_BYTES_MAX: usize = 1 << 28;

    /// Units of fuel that a script may use, if the operation is made by this build: about as much as is done in a tenth of a
    /// second. An operation carries its own number, so that replicas of different builds agree.
    pub const SCRIPT_FUEL: u64 = 10_000_000;

    /// Units of fuel that all scripts of one body may use together: nothing else is executed meanwhile. Whoever makes a
    /// transaction of more than eight scripts gives each an equal share.
    pub const SCRIPTS_FUEL_MAX: u64 = 8 * SCRIPT_FUEL;

    /// Most scripts and functions in one body: each takes some tenths of a millisecond before it takes fuel.
    pub const SCRIPTS_PER_BODY_MAX: usize = 2_048;

    /// Bytes of the messages that one script publishes, each with its channel and [`MESSAGE_BYTES`] more. Each node
    /// keeps them until the script has ended, and compares each channel with the patterns of all subscribers.
    pub const SCRIPT_MESSAGES_BYTES_MAX: usize = 1 << 20;

    /// What a message of a script takes beside its channel and its payload.
    pub const MESSAGE_BYTES: usize = 64;

    /// Most cells of the table that LCS fills: one for each pair of a beginning of the first string and one of the second, the
    /// empty ones included. Redis's table of 32-bit numbers has as many if `proto-max-bulk-len` is 16 MiB. Filling it
    /// takes some ten milliseconds.
    pub const LCS_CELLS_MAX: usize = syros_types::limits::VALUE_BYTES_MAX / 4;

    /// Most random elements that a command may ask for with repetitions. Each is looked up by itself, which takes some
    /// hundred nanoseconds: so many of them take as long as others can be kept waiting.
    pub const DRAWS_MAX: u64 = 1 << 20;

    /// Most that wait for elements of one key. Each operation of one of them goes through the queue, which takes some
    /// ten microseconds then.
    pub const QUEUE_LENGTH_MAX: usize = 16_384;

    /// Most keys that a command can wait for. It stands in a queue for each.
    pub const WAITED_KEYS_MAX: usize = 1024;

    /// For so long, in milliseconds, one may count as waiting without saying so again.
    pub const LEASE_MS_MAX: u64 = 24 * 60 * 60 * 1000;

    /// Latest [`Deadline::At`](crate::Deadline::At), in milliseconds since the Unix epoch: one more than Redis's
    /// latest expiry, the largest signed 64-bit number.
    pub const EXPIRY_MS_MAX: u64 = i64::MAX as u64 + 1;

    /// Longest [`Deadline::After`](crate::Deadline::After), in milliseconds. Redis refuses one that overflows when added to the
    /// current time; the reply to a SET must not depend on the time it executes at, so here the bound
    /// is fixed, low enough that the sum does not overflow before the year 2109.
    pub const RELATIVE_EXPIRY_MS_MAX: u64 = EXPIRY_MS_MAX - (1 << 42);
}

//! What a state machine of somebody's own is to Syros: one trait, [`StateMachine`]. A node runs it with
//! `Node::start_machine` of `syros-runtime`, a client submits its operations with `Client::submit_to` of
//! `syros-client`; everything else (log, durability, snapshots, view changes, sessions) is as for the store of keys.
//!
//! `docs/STATE_MACHINES.md` is the guide, and `examples/record-append` the example that it explains.
//!
//! ```
//! use syros_machine::{Class, Footprint, Pieces, StateMachine, Unreadable, WallTime};
//!
//! /// One number. Operations: `+` adds one, `=` and 8 bytes set it, `?` reads it.
//! #[derive(Default)]
//! struct Counter(u64);
//!
//! fn number(bytes: &[u8]) -> Option<u64> {
//!     bytes.try_into().ok().map(u64::from_le_bytes)
//! }
//!
//! impl StateMachine for Counter {
//!     const NAME: &'static str = "counter";
//!
//!     fn class(operation: &[u8]) -> Option<Class> {
//!         match operation {
//!             b"+" => Some(Class::Merge),
//!             [b'=', rest @ ..] => number(rest).map(|_| Class::Overwrite),
//!             b"?" => Some(Class::Read),
//!             _ => None,
//!         }
//!     }
//!
//!     fn footprint(_: &[u8]) -> Footprint {
//!         Footprint::One(0)
//!     }
//!
//!     fn execute(&mut self, _: WallTime, operation: &[u8], _: &mut Vec<u8>) {
//!         self.0 = match operation {
//!             [b'=', rest @ ..] => number(rest).unwrap_or_default(),
//!             _ => self.0.wrapping_add(1),
//!         };
//!     }
//!
//!     fn read(&self, _: &[u8], reply: &mut Vec<u8>) {
//!         reply.extend_from_slice(&self.0.to_le_bytes());
//!     }
//!
//!     fn snapshot(&self) -> Pieces {
//!         Box::new(std::iter::once(self.0.to_le_bytes().to_vec()))
//!     }
//!
//!     fn restore(state: &[u8]) -> Result<Self, Unreadable> {
//!         number(state).map(Self).ok_or_else(|| Unreadable(format!("{} bytes are no number", state.len())))
//!     }
//! }
//! # assert!(syros_machine::MachineKind::of::<Counter>().describe(b"=12345678").is_some());
//! # assert!(syros_machine::MachineKind::of::<Counter>().describe(b"=").is_none());
//! ```
#![forbid(unsafe_code)]

mod machine_kind;
mod name;

pub use machine_kind::{Describe, Executor, MachineKind, Overwrites, describe, overwrites};
pub use name::MachineName;
pub use syros_types::limits::BODY_BYTES_MAX;
pub use syros_types::{Class, Footprint, WallTime, key_hash};

use std::fmt;

/// The state as it was when a snapshot began, in pieces of bytes that a thread of its own asks for one after the other.
/// They may be of any length; what is restored is what they are together.
pub type Pieces = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// Why the bytes of a snapshot, which are what was written, are no state of this machine: most likely another version of
/// the program wrote them. The node does not start, and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// A state machine that can be replicated. Its state when it has executed nothing is its [`Default`].
///
/// **Deterministic.** Every replica executes the same operations in the same order at the same log times, and must come
/// to the same state and the same replies, in every build that runs in one cluster. So no clock but the log time, no
/// randomness, nothing that depends on the order of a hash table, an address, a thread, a file or the environment, and
/// floating point only where it is the same on all machines.
///
/// **Classes and footprints.** [`class`](Self::class) and [`footprint`](Self::footprint) are all that the protocol
/// knows of an operation. They are pure functions of its bytes, and fixed for ever: what is in a log is described anew
/// when it is read back. If they lie, answers are wrong and replicas differ; `docs/STATE_MACHINES.md` says how.
///
/// **Where it runs.** All methods with `self` are called by the node's event loop, one at a time, and everybody waits
/// until they return. A panic ends the node.
pub trait StateMachine: Default + Send + 'static {
    /// Its name: 1 to 32 of `a-z`, `0-9` and `-`, checked when the program is compiled. A data directory says which
    /// machine wrote it, and refuses any other. A format of operations or snapshots that older programs do not
    /// understand deserves a new name.
    const NAME: &'static str;

    /// What kind of operation the bytes are:
    ///
    /// - [`Class::Read`]: changes nothing. It goes to [`read`](Self::read), all others to [`execute`](Self::execute).
    /// - [`Class::Overwrite`]: an update of one key that returns nothing, and whose result does not depend on what the key
    ///   was before. One round trip in every mode.
    /// - [`Class::Merge`]: any other update that returns nothing. One round trip in the supermajority modes.
    /// - [`Class::Update`]: an update that returns something, if only whether it took place. Two round trips; one in the
    ///   commutative modes, where [`evaluate`](Self::evaluate) can tell the answer.
    ///
    /// `None` if the bytes are no operation: they are refused, at the client already. So whatever can be wrong with an
    /// update that returns nothing has to be found here, from its bytes alone. Called for whatever a client sends, of up to
    /// [`BODY_BYTES_MAX`] bytes; must not panic.
    fn class(operation: &[u8]) -> Option<Class>;

    /// The hashes ([`key_hash`]) of all that the operation reads or writes: what "keys" are is the machine's business.
    /// Two operations that do not commute, and a read and an update that it could see, must share one. Too many cost
    /// round trips, too few cost correctness. Only called for operations that have a class.
    ///
    /// An overwrite must have [`Footprint::One`]; with any other it is treated as a merge. A read of one key can be
    /// answered by any replica, all others by the leader.
    fn footprint(operation: &[u8]) -> Footprint;

    /// Of two overwrites with the same footprint: true if nothing is left of `older` once `newer` has run after it, that
    /// is, if they overwrite the same key. A view change drops `older` then, in majority mode.
    ///
    /// By default, equal hashes are taken for equal keys. Two of a billion keys share a hash of 64 bits with a probability
    /// of 3%, and both have to be written at the moment of a view change; but [`key_hash`] does not withstand whoever
    /// searches for such keys. Where keys come from people who might, compare the keys themselves.
    #[must_use]
    fn overwrites(_newer: &[u8], _older: &[u8]) -> bool {
        true
    }

    /// Executes an update and appends to `reply` what it returns: at most a few MiB, as every replica keeps it until the
    /// client has it; and nothing for overwrites and merges, whose replies are dropped. `time` is log time in microseconds since 1970, the same on every replica, and
    /// never less than it was for the operation before.
    fn execute(&mut self, time: WallTime, operation: &[u8], reply: &mut Vec<u8>);

    /// Appends the answer to a read to `reply`, at most a few MiB.
    fn read(&self, operation: &[u8], reply: &mut Vec<u8>);

    /// Appends to `reply` what [`execute`](Self::execute) would append for this [`Class::Update`], now or at any later
    /// time, as long as nothing in its footprint changes until then; changes nothing. False, and nothing is appended, if that
    /// cannot be said. Only asked for in the commutative modes, which save a round trip by it.
    fn evaluate(&self, _operation: &[u8], _reply: &mut Vec<u8>) -> bool {
        false
    }

    /// The whole state as it is now. Called when the log has become long; until it returns nobody is answered, so it should
    /// take milliseconds: more than 200 of them look like a failed leader. A small state may simply become one piece of
    /// bytes (about a second for each GB, and as much memory again). A large one keeps its data in parts that can be
    /// shared (`Arc`), hands out references here, and lets the iterator make bytes of them, on another thread.
    fn snapshot(&self) -> Pieces;

    /// The state that was captured: `state` is all pieces, one after the other. All of it is in memory at once.
    ///
    /// # Errors
    /// [`Unreadable`].
    fn restore(state: &[u8]) -> Result<Self, Unreadable>;

    /// About how many bytes a snapshot takes: none is begun when the disk has less room. 0 if that is not known.
    fn snapshot_bytes(&self) -> usize {
        0
    }
}

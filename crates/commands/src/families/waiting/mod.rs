//! Commands that take elements, and wait for them if there are none.
//!
//! **Queues.** Those who wait for elements of a key stand in a queue, in the order of the log: a list behind a hidden key
//! ([`access::waiting_key`](crate::access::waiting_key)). It is data like all other: a part of snapshots, digests and
//! checkpoints. Only operations that name the key touch its queue.
//!
//! **Turns.** As long as a key has more elements than there are others before one in its queue, it is this one's *turn*.
//! Adding elements serves nobody by itself. The node of whoever has a turn sees so, and submits the same operation
//! ([`Take`]) again: that takes the element and leaves the queues, as one operation on the keys that it names. So elements
//! go to those who wait in the order of the queue, each to one, and never to one whose node has died.

pub(crate) mod leave;
pub(crate) mod take;
pub(crate) mod turns;

mod action;
mod queue;

pub use action::TakeAction;
pub use queue::WaiterId;

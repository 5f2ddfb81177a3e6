//! What a replica says of an update that may change nothing, or take long.

use syros_protocol::message::Body;
use syros_types::OpNumber;

/// What a replica says of an update that a client asks for at its own node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoOpAnswer {
    /// It changes nothing, and would answer so: the state is the one after this entry of the log.
    NoOp(OpNumber, Body),
    /// It changes something, or may do so.
    Change,
    /// It would go through about so many bytes, which keeps all replicas from everything else for too long.
    TooMuch(usize),
    /// An update of its keys is to be executed before that is known.
    Later,
    /// This replica cannot say anything.
    Unknown,
}

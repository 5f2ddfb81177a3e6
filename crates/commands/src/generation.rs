//! Which commands a node knows that may be of an earlier build.

use crate::describe::operations;
use crate::encoding::Opcode;

/// Operations that came into being with the same version of the wire format. While a cluster is upgraded, one node after the
/// other, members of the version before cannot take an operation of a later generation: they would neither order nor
/// execute it. So nobody may submit one before all members know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Strings and keys.
    Strings,
    /// Collections, and all that came with them.
    Collections,
}

impl Generation {
    /// The newest one.
    pub const NEWEST: Self = Self::Collections;

    /// The newest generation that a node knows which speaks this version of the wire format.
    #[must_use]
    pub const fn of_wire_version(version: u16) -> Self {
        if version < 11 { Self::Strings } else { Self::Collections }
    }

    /// The generation that has an operation with this opcode.
    const fn of_opcode(opcode: Opcode) -> Self {
        match opcode {
            1..=14 | 32..=48 => Self::Strings,
            _ => Self::Collections,
        }
    }

    /// The newest generation that a body has an operation of. What is malformed belongs to the oldest: whoever executes it
    /// says so.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Self {
        let known = operations(body).map_while(Result::ok);
        known.map(|operation| Self::of_opcode(operation.command.opcode())).max().unwrap_or(Self::Strings)
    }
}

//! Which commands a node knows that may be of an earlier build.

use crate::describe::operations;
use crate::families::{Abilities, Command, Condition, ObjectAspect, RunTerms};
use crate::limits::WHOLE_KEYSPACE_OPERATIONS_MAX;
use crate::operation::Operation;
use crate::rdb;

/// Operations that came into being with the same version of the wire format. While a cluster is upgraded, one node after the
/// other, members of the version before cannot take an operation of a later generation: they would neither order nor
/// execute it. So nobody may submit one before all members know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Strings and keys.
    Strings,
    /// Collections, and all that came with them.
    Collections,
    /// Streams, scripts, commands that wait, databases, and what else came with those.
    Programs,
    /// Transactions of more scripts than eight, and RESTORE of a stream.
    StreamPayloads,
    /// Scripts and functions that are told that the data may not grow, or whose fuel is counted as theirs alone.
    ScriptTerms,
    /// Scripts in which what goes through a whole value counts as its length, or that may call DEBUG; and DEBUG OBJECT.
    WholeValues,
    /// Users, and scripts that need the rights of one.
    Users,
    /// Scripts that are told which commands their user may run.
    AskedRights,
    /// Scripts in which KEYS and SCAN count as the keys that they go through.
    CountedKeys,
    /// EVAL_RO that may touch any key though its first line does not say so.
    OwningReads,
}

impl Generation {
    /// The newest one.
    pub const NEWEST: Self = Self::OwningReads;

    /// The newest generation that a node knows which speaks this version of the wire format.
    #[must_use]
    pub const fn of_wire_version(version: u16) -> Self {
        match version {
            ..11 => Self::Strings,
            11 => Self::Collections,
            12 => Self::Programs,
            13 => Self::StreamPayloads,
            14 | 15 => Self::ScriptTerms,
            16 | 17 => Self::WholeValues,
            18..=20 => Self::Users,
            21 => Self::AskedRights,
            22 => Self::CountedKeys,
            _ => Self::OwningReads,
        }
    }

    /// The generation that has this operation. Older builds know one database.
    fn of_operation(operation: Operation<'_>) -> Self {
        if operation.user().number().is_some() {
            Self::Users.max(Self::of_command(&operation.command))
        } else if operation.database.is_first() {
            Self::of_command(&operation.command)
        } else {
            Self::Programs
        }
    }

    /// The generation that has this command.
    fn of_command(command: &Command<'_>) -> Self {
        match command {
            Command::UserSet(_) | Command::UserDelete(_) | Command::UserLook(_) => Self::Users,
            Command::Set(set) if matches!(set.parts().condition, Condition::IfEqual(_)) => Self::Collections,
            Command::EvalRo(script) if script.owns_everything => Self::OwningReads,
            Command::Object(object) if object.aspect == ObjectAspect::Everything => Self::WholeValues,
            other if other.terms().is_some_and(|terms| terms.abilities.has(Abilities::COUNTS_KEYS)) => {
                Self::CountedKeys
            }
            other if other.terms().is_some_and(|terms| terms.abilities.has(Abilities::TELLS_RIGHTS)) => {
                Self::AskedRights
            }
            other if other.terms().is_some_and(RunTerms::is_newest) => Self::WholeValues,
            other if other.terms().is_some_and(RunTerms::is_new) => Self::ScriptTerms,
            Command::Restore(restore) if rdb::is_of_stream(restore.payload) => Self::StreamPayloads,
            Command::RestoreReplace(restore) if rdb::is_of_stream(restore.payload) => Self::StreamPayloads,
            other if matches!(other.opcode(), 1..=14 | 32..=48) => Self::Strings,
            other if matches!(other.opcode(), 80..=126 | 315..) => Self::Programs,
            _ => Self::Collections,
        }
    }

    /// The newest generation that a body has an operation of. What is malformed belongs to the oldest: whoever executes it
    /// says so.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Self {
        let (mut newest, mut scripts) = (Self::Strings, 0);
        for operation in operations(body).map_while(Result::ok) {
            newest = newest.max(Self::of_operation(operation));
            scripts += usize::from(operation.fuel().is_some());
        }
        // Builds before took each script for an operation on all keys, of which a body has few.
        if scripts > WHOLE_KEYSPACE_OPERATIONS_MAX { newest.max(Self::StreamPayloads) } else { newest }
    }
}

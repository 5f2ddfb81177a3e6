//! Known-wrong variants, for the simulator: it must catch each.

/// A known-wrong variant of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A reply does not wait for the replies to earlier commands.
    RepliesOutOfOrder,
    /// An update lets the next command on its keys go when it is submitted, not when it has ended.
    LockReleasedEarly,
    /// A command joins one that waits on a key of the same name in another database, and is executed there.
    DatabaseForgotten,
    /// A script of which nobody knows whether it was executed is submitted once more, as is one that was refused for want of
    /// memory.
    UnknownTriedAgain,
    /// Clients become users, and stay that, while nobody can tell whether the users have changed.
    ProvisionalLoginKept,
    /// What a script calls is not checked.
    ScriptOfNobody,
    /// EXEC executes what was allowed when it was queued.
    ExecNotChecked,
    /// The connection of a user that has been removed goes on as that user.
    RemovedUserGoesOn,
}

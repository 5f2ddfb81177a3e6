//! Users, their passwords, and what each of them may do, as Redis's ACLs have it.
//!
//! [`Users`] is replicated state: ACL SETUSER and ACL DELUSER change it as log entries, and all replicas come to the same
//! users. A front end has a copy, and checks with [`User::check`] whether a client may run a command before the command is
//! submitted. A script is checked once more for each command that it calls, by every replica alike.
//!
//! A [`User`] is what its text says (`on #8a1b.. ~cache:* resetchannels -@all +get`): snapshots keep the text, and reading it
//! gives an equal user.

mod command_set;
mod denial;
mod password;
mod rule_error;
mod selector;
mod user;
mod users;

pub use crate::calling_user::{CallingUser, UserNumber};
pub use denial::Denial;
pub use password::{Password, hide_passwords};
pub use rule_error::RuleError;
pub use selector::Selector;
pub use user::{CheckBudget, User};
pub use users::{NamedUser, UserChange, Users};

/// The user of a client that has not said who it is.
pub const DEFAULT_USER: &[u8] = b"default";

/// Limits of users, each with its reason.
pub mod limits {
    /// Most users. Front ends read all of them whenever one has changed.
    pub const USERS_MAX: usize = 1_024;

    /// Longest name of a user, in bytes: CLIENT LIST repeats it for each connection.
    pub const USER_NAME_BYTES_MAX: usize = 256;

    /// Steps in which it is decided whether a user may run a command that names no key: about a millisecond. Thousands of
    /// patterns are compared in fewer with a name of usual length.
    pub const CHECK_STEPS: u64 = 1 << 20;

    /// As many more for each key that a command names: some hundred patterns that begin alike.
    pub const CHECK_STEPS_PER_KEY: u64 = 1 << 11;

    /// Steps in which it is decided whether a user may run a command, or all commands of a transaction: some tenth of a
    /// second, in which a node does nothing else.
    pub const CHECKS_STEPS_MAX: u64 = 1 << 27;

    /// The most that all patterns of a user may weigh who runs scripts. Replicas check each call of a script, and it has to
    /// come to the same at builds that did not bound that: so whoever has worse patterns runs none. Few users have patterns
    /// that weigh a tenth of it.
    pub const SCRIPT_PATTERN_WEIGHT_MAX: usize = 1_024;

    /// Longest text of a user, in bytes. A check compares a key with each pattern of the text.
    pub const USER_BYTES_MAX: usize = 64 * 1024;

    /// Most bytes of the texts of all users: front ends read them as one reply.
    pub const USERS_BYTES_MAX: usize = 4 * 1024 * 1024;
}

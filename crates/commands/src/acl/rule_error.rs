//! What is wrong with a rule of ACL SETUSER.

use core::fmt;

/// What is wrong with a rule of ACL SETUSER, in Valkey's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There is no such command or category.
    Unknown,
    /// It is no rule.
    Syntax,
    /// The user may use all keys already.
    AllKeys,
    /// The user may use all channels already.
    AllChannels,
    /// The user does not have the password that is to be removed.
    NoSuchPassword,
    /// A hash of a password is 64 hexadecimal digits.
    Hash,
    /// A subcommand cannot be allowed for one first argument alone.
    ArgumentOfSubcommand,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Unknown command or category name in ACL",
            Self::Syntax => "Syntax error",
            Self::AllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. \
                 Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Self::Hash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::ArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        })
    }
}

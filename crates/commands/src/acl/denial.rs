//! Why a user may not run a command.

/// Why a user may not run a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The command, or its subcommand, is not among those of the user: its full name.
    Command(&'static str),
    /// It names this key, which the user may not use so.
    Key(Vec<u8>),
    /// It names this channel, or pattern of channels.
    Channel(Vec<u8>),
    /// The option of SORT with this name looks up keys that the words do not name, and the user may not read all keys.
    SortOption(&'static str),
}

impl Denial {
    /// Why, as ACL LOG says it.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Key(_) | Self::SortOption(_) => "key",
            Self::Channel(_) => "channel",
        }
    }

    /// What the user may not run or use.
    #[must_use]
    pub fn object(&self) -> &[u8] {
        match self {
            Self::Command(name) | Self::SortOption(name) => name.as_bytes(),
            Self::Key(name) | Self::Channel(name) => name,
        }
    }

    /// The sentence about it in Valkey's words; ACL DRYRUN names the key or channel, and other replies do not.
    #[must_use]
    pub fn sentence(&self, user: &[u8], names_object: bool) -> Vec<u8> {
        let of_user =
            |rest: &[&[u8]]| [&[b"User ", user, b" has no permissions to "], rest].concat().concat();
        match self {
            Self::Command(name) => of_user(&[b"run the '", name.as_bytes(), b"' command"]),
            Self::Key(name) if names_object => of_user(&[b"access the '", name, b"' key"]),
            Self::Channel(name) if names_object => of_user(&[b"access the '", name, b"' channel"]),
            Self::Key(_) => b"No permissions to access a key".to_vec(),
            Self::Channel(_) => b"No permissions to access a channel".to_vec(),
            Self::SortOption(name) => {
                format!("{name} option of SORT denied due to insufficient ACL permissions.").into_bytes()
            }
        }
    }

    /// The error that the client gets.
    #[must_use]
    pub fn error(&self, user: &[u8]) -> Vec<u8> {
        let code: &[u8] = if matches!(self, Self::SortOption(_)) { b"ERR " } else { b"NOPERM " };
        [code, &self.sentence(user, false)].concat()
    }
}

//! Why a file cannot be read.

use core::fmt;
use std::io;
use syros_commands::rdb::VERSION_MAX;

/// Why an RDB file cannot be read.
#[derive(Debug)]
pub enum RdbError {
    /// The system refuses something.
    Io(io::Error),
    /// The bytes end before the file does.
    Truncated {
        /// Where they end.
        offset: u64,
    },
    /// It does not begin as an RDB file does.
    NoRdb,
    /// It is of a version that this build does not read.
    Version(String),
    /// Something in it is not what any RDB file has.
    Malformed {
        /// Where it begins, or a little behind that.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The checksum at its end is not that of its bytes.
    Checksum {
        /// That of its bytes.
        found: u64,
        /// The one at its end.
        expected: u64,
    },
    /// There is something behind its end.
    Trailing {
        /// Where the file should have ended.
        offset: u64,
    },
}

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Truncated { offset } => write!(f, "it is cut short: it ends at offset {offset}"),
            Self::NoRdb => {
                f.write_str("it is no RDB file: it does not begin with REDIS or VALKEY and a version")
            }
            Self::Version(version) => {
                write!(
                    f,
                    "its format has version {version}; this build reads versions 1 to {VERSION_MAX}, and 80"
                )
            }
            Self::Malformed { offset, problem } => write!(f, "it is damaged near offset {offset}: {problem}"),
            Self::Checksum { found, expected } => {
                write!(
                    f,
                    "it is damaged: its checksum is {found:016x}, and {expected:016x} stands at its end"
                )
            }
            Self::Trailing { offset } => write!(
                f,
                "it goes on behind its end at offset {offset}: an append-only file has an RDB file at its beginning and is none \
                 (BGSAVE writes one)"
            ),
        }
    }
}

impl core::error::Error for RdbError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let Self::Io(error) = self { Some(error) } else { None }
    }
}

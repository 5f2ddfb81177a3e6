//! RDB files, as Redis and Valkey write them: read from their beginning to their end, and written.
//!
//! Values stay as they stand in the file wherever that is possible: RESTORE takes them so. This crate knows where a value begins and
//! ends; what it says, only the codec in `syros_commands::rdb` knows, which DUMP and RESTORE have, too.
//!
//! **Memory.** A value is handed on in [pieces](Piece) of some MiB. One that is longer than a piece is so many elements, and each
//! piece is a value of the same type with some of them. A stream alone is one piece, however long it is, up to a limit.
//!
//! **Bytes from outside.** A file may say anything: no memory is set aside for a length before the bytes are there, and what is
//! longer than its limit is refused. The checksum at the end covers all of it, so whoever must not act on a damaged file reads it
//! twice.
#![forbid(unsafe_code)]

mod commands;
mod error;
mod module;
mod reader;
mod source;
#[cfg(test)]
mod tests;
mod values;
mod writer;

pub use commands::{CommandOf, commands, expiry_command};
pub use error::RdbError;
pub use reader::{FileSummary, Item, Place, has_known_version, read_file, read_value, with_known_version};
pub use source::STRING_BYTES_MAX;
pub use values::{PIECE_BYTES, Piece, STREAM_BYTES_MAX};
pub use writer::FileWriter;

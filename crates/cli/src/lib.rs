//! What the command lines of `syros` and `syros-lab` share: the values that options take, files that they name, regions by
//! their names, signals, and what happens to a command whose output nobody reads.
#![forbid(unsafe_code)]

mod arguments;
mod files;
mod output;
pub mod regions;
pub mod signals;
pub mod tls;

pub use arguments::{DurabilityName, EngineName, check_address, check_different, parse_group};
pub use files::{TEXT_BYTES_MAX, read_text};
pub use output::{end_when_nobody_reads, unwritten, write_to_stderr, write_to_stdout};
pub use syros_settings::{BytesText, parse_bytes, parse_duration};

/// The commit that the programs are built from, or "unknown": it is part of every report of a measurement.
pub const COMMIT: &str = env!("SYROS_COMMIT");

/// What `--version` prints after a program's name: the laboratory reads the commit of a server from it.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("SYROS_COMMIT"), ")");

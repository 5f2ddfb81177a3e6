//! Settings as files and command lines write them. Every TOML file that Syros reads, the configuration of a server and the
//! description of regions, goes through one [`Reader`], so that every error names the key, the value and the limit, and no
//! key is ignored.

#![forbid(unsafe_code)]

mod reader;
mod units;

pub use reader::{ConfigError, Reader};
pub use units::{BytesText, DurationText, parse_bytes, parse_duration};

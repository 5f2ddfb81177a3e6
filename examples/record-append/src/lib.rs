//! A replicated file store: records are appended to named files, and ranges of them read.
//!
//! It shows how to replicate a state machine of one's own with Syros, and is explained in `docs/STATE_MACHINES.md`.
//! [`FileStore`] is the state machine; [`Operation`] is how its operations look as bytes; [`Files`] is a client with a
//! method for each. What is about replication are two functions of [`FileStore`]: `class` and `footprint`.
#![forbid(unsafe_code)]

mod client;
mod file;
mod operation;
mod store;

pub use client::{Error, Files, Listed};
pub use operation::{
    InvalidOperation, LISTED_MAX, NAME_BYTES_MAX, Operation, READ_BYTES_MAX, RECORD_BYTES_MAX,
};
pub use store::{FILE_BYTES_MAX, FileStore};

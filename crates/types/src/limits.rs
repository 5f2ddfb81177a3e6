//! Limits that every part of the system shares, each with its reason.

/// Longest key, in bytes. Far above any sane key, far below what would make an index expensive.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// Longest value, in bytes. A value crosses the network and the write-ahead log in one piece; at
/// 16 MiB that takes tens of milliseconds, about as long as others can be kept waiting for it.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest operation body, in bytes: one largest value with room for its key and options, or
/// several smaller ones (MSET).
pub const BODY_BYTES_MAX: usize = VALUE_BYTES_MAX + 2 * KEY_BYTES_MAX;

/// Most keys one operation may name. Bounds the work one request can cause.
pub const KEYS_PER_OPERATION_MAX: usize = 65_536;

/// Longest frame between processes, in bytes. View change messages carry a durability log and an
/// unapplied log suffix, each bounded well below this.
pub const FRAME_BYTES_MAX: usize = 512 * 1024 * 1024;

const _: () = assert!(FRAME_BYTES_MAX > 4 * BODY_BYTES_MAX);

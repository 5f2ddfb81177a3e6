//! What connections count.

/// What a connection has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read system calls.
    pub reads: u64,
    /// Write system calls.
    pub writes: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes that the socket took.
    pub bytes_out: u64,
}

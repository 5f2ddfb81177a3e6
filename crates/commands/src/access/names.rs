//! Arrays of a reply whose length is known only when they are complete.

use crate::reply::{put_array, put_bulk};

/// Names of keys that become an array of a reply.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Each as a bulk string.
    encoded: Vec<u8>,
    count: usize,
}

impl Names {
    /// Adds a name.
    pub fn push(&mut self, key: &[u8]) {
        put_bulk(&mut self.encoded, key);
        self.count += 1;
    }

    /// How long the array is, but for its head.
    #[must_use]
    pub const fn reply_bytes(&self) -> usize {
        self.encoded.len()
    }

    /// Appends the array.
    pub fn put(&self, reply: &mut Vec<u8>) {
        put_array(reply, self.count);
        reply.extend_from_slice(&self.encoded);
    }
}

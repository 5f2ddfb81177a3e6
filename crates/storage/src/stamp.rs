//! What an engine keeps of a key beside its value.

use core::num::NonZeroU64;
use syros_commands::access::{Expiry, Version};

/// When a key expires, and which log entry has changed it last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) expiry: Expiry,
    /// 0 if an older build has written the key, which took no note of it.
    pub(crate) entry: u64,
}

impl Stamp {
    /// The expiry in milliseconds since the Unix epoch.
    pub(crate) fn expiry_ms(self) -> Option<u64> {
        self.expiry.map(NonZeroU64::get)
    }

    /// The version of a key that exists, in a database that this entry has swapped with another, or 0.
    pub(crate) fn version(self, swapped: u64) -> Version {
        Version::of_present(self.entry.max(swapped))
    }
}

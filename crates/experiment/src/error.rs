//! Why there is no such workload.

use core::fmt;

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWorkload(pub(crate) String);

impl fmt::Display for InvalidWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidWorkload {}

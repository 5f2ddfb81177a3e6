//! Clients as a load sees them, whatever store they are clients of.

use crate::clients::Request;
use crate::error::Error;
use std::time::Instant;
use syros_client::{ReadCounts, WriteCounts};

/// A request has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The client's, by its number.
    pub(crate) client: usize,
    /// It did what it was to do: an error does not, nor does a read of a record that was written and is not found.
    pub(crate) is_good: bool,
}

/// Clients on the calling thread, each with one request at a time.
pub(crate) trait Fleet {
    /// Gives a request to a client that has none.
    fn ask(&mut self, client: usize, request: Request);

    /// Sends what was asked for, waits until something comes or until `until`, and appends what has ended.
    fn turn(&mut self, until: Instant, ended: &mut Vec<Ended>) -> Result<(), Error>;

    /// Ends a turn at this moment, more exactly than `until` can, if these clients are able to.
    fn wake_at(&mut self, _moment: Instant) -> Result<(), Error> {
        Ok(())
    }

    /// Why a request was refused, the last time that one was.
    fn last_refusal(&self) -> Option<String> {
        None
    }

    /// How requests were answered so far; nothing where that is not known.
    fn counts(&self) -> (ReadCounts, WriteCounts) {
        (ReadCounts::default(), WriteCounts::default())
    }
}

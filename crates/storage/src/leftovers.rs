//! What an engine in memory needs no longer and cannot give back in steps, because it is one large allocation: tables of
//! keys. Whoever drives the engine has another thread drop it.

use core::fmt;
use std::collections::VecDeque;

/// What takes fewer bytes is dropped at once, within about a millisecond.
pub(crate) const LEFTOVER_BYTES_MIN: usize = 512 << 10;

/// So many wait to be taken, at most; beyond, they are dropped at once: nobody drives this engine who would take them.
const WAITING_MAX: usize = 8;

/// Things that take long to drop, until they are taken.
#[derive(Default)]
pub(crate) struct Leftovers(VecDeque<Box<dyn Send>>);

impl Leftovers {
    /// Takes something that takes about so many bytes.
    pub(crate) fn add(&mut self, what: impl Send + 'static, bytes: usize) {
        if bytes < LEFTOVER_BYTES_MIN || self.0.len() == WAITING_MAX {
            return drop(what);
        }
        self.0.push_back(Box::new(what));
    }

    /// The next one.
    pub(crate) fn take(&mut self) -> Option<Box<dyn Send>> {
        self.0.pop_front()
    }
}

/// A clone is empty: nobody needs two of what nobody needs.
impl Clone for Leftovers {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers").field("waiting", &self.0.len()).finish()
    }
}

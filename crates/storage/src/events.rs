//! What has happened to keys, for those who want to know.

use syros_commands::access::{KeyEvent, Notification, is_hidden};
use syros_types::Database;

/// Collects what happens to keys, while it is asked to.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    is_on: bool,
    events: Vec<Notification>,
}

impl EventLog {
    /// True if events are collected.
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Collects events from now on, or collects none.
    pub(crate) const fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Something has happened to a key, by this entry. No client knows of hidden keys.
    pub(crate) fn push(&mut self, event: KeyEvent, (database, key): (Database, &[u8]), entry: u64) {
        if self.is_on && !is_hidden(key) {
            self.events.push(Notification { entry, database, key: key.into(), event });
        }
    }

    /// How many have been collected, to [go back](Self::truncate) to.
    pub(crate) const fn len(&self) -> usize {
        self.events.len()
    }

    /// What has been collected since there were so many has not happened.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.events.truncate(length);
    }

    /// Adds what another one has collected, later than all that is here.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.events.append(&mut other.events);
    }

    /// What has been collected since this was asked last, in the order in which it has happened.
    pub(crate) fn take(&mut self) -> Vec<Notification> {
        core::mem::take(&mut self.events)
    }
}

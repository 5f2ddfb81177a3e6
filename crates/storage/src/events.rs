//! What clients are told of: events of keys, and messages of scripts.

use syros_commands::access::{Announcement, KeyEvent, Notification, ScriptMessage, is_hidden};
use syros_types::{Database, SubscriptionKind};

/// Collects what happens to keys, while it is asked to, and the messages of scripts.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    is_on: bool,
    /// Where what happens now belongs among what is collected elsewhere.
    turn: u64,
    events: Vec<(u64, Announcement)>,
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

    /// What happens from now on has happened after all that other logs have collected in turns before this one.
    pub(crate) const fn begin_turn(&mut self, turn: u64) {
        self.turn = turn;
    }

    /// Something has happened to a key, by this entry. No client knows of hidden keys.
    pub(crate) fn push(&mut self, event: KeyEvent, (database, key): (Database, &[u8]), entry: u64) {
        if self.is_on && !is_hidden(key) {
            let event = Notification { entry, database, key: key.into(), event };
            self.events.push((self.turn, Announcement::KeyEvent(event)));
        }
    }

    /// A script of this entry has published a message.
    pub(crate) fn publish(&mut self, (kind, channel): (SubscriptionKind, &[u8]), payload: &[u8], entry: u64) {
        let message = ScriptMessage { entry, kind, channel: channel.into(), payload: payload.into() };
        self.events.push((self.turn, Announcement::Message(message)));
    }

    /// How many have been collected, to [go back](Self::truncate) to.
    pub(crate) const fn len(&self) -> usize {
        self.events.len()
    }

    /// What has been collected since there were so many has not happened.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.events.truncate(length);
    }

    /// What has been collected since this was asked last, with its turns, in the order in which it has happened.
    pub(crate) fn take(&mut self) -> Vec<(u64, Announcement)> {
        core::mem::take(&mut self.events)
    }
}

/// What one log has collected, or several whose turns have been put in order.
pub(crate) fn without_turns(events: Vec<(u64, Announcement)>) -> Vec<Announcement> {
    events.into_iter().map(|(_, event)| event).collect()
}

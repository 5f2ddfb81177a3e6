//! KEYS in steps, for an engine whose caller has other things to do meanwhile: the keys as they were at one moment.
//!
//! As in [`capture`](crate::capture): a cursor walks the positions upwards, and a key that is about to be removed or to
//! move before the cursor has reached it is looked at first, and its position marked. What is at a position that is
//! neither passed nor marked is what was there when the listing began. Values do not matter: only keys that come and
//! go do.

use crate::entry::{Entry, Table, is_due};
use std::sync::Arc;
use syros_commands::access::{Names, is_hidden};
use syros_commands::limits::REPLY_BYTES_MAX;
use syros_commands::{ExecutionError, glob_matches};
use syros_types::WallTime;

/// A listing under way.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pattern: Vec<u8>,
    /// Number of keys when the listing began.
    count: usize,
    /// Log time when the listing began. Keys that were due by then do not belong to it.
    time: WallTime,
    /// The listing has seen all positions before this one.
    cursor: usize,
    /// A bit for every position below `count`: the listing has seen its key ahead of the cursor. Says nothing about
    /// positions before the cursor.
    seen: Vec<u64>,
    matching: Names,
    /// The table that a FLUSHALL has taken out of use, if there was one. Nothing changes in it any more.
    frozen: Option<Arc<Table>>,
}

impl Listing {
    /// A listing of the keys that match, in a table of `count` keys. The table is not looked at.
    pub(crate) fn new(pattern: &[u8], count: usize, time: WallTime) -> Self {
        Self {
            pattern: pattern.to_vec(),
            count,
            time,
            cursor: 0,
            seen: vec![0; count.div_ceil(64)],
            matching: Names::default(),
            frozen: None,
        }
    }

    fn is_seen(&self, position: usize) -> bool {
        self.seen[position / 64] >> (position % 64) & 1 == 1
    }

    /// A key that existed when the listing began has never since got an expiry that was due then.
    fn see(&mut self, key: &[u8], entry: &Entry) {
        if is_due(entry.gone(), self.time) {
            return;
        }
        if self.matching.reply_bytes() <= REPLY_BYTES_MAX
            && glob_matches(&self.pattern, key)
            && !is_hidden(key)
        {
            self.matching.push(key);
        }
    }

    /// Sees the key at `position` of the table in use if the listing has not seen it. To be called before the key is
    /// removed or moves.
    pub(crate) fn preserve(&mut self, position: usize, key: &[u8], entry: &Entry) {
        if self.frozen.is_none() && (self.cursor..self.count).contains(&position) && !self.is_seen(position) {
            self.seen[position / 64] |= 1 << (position % 64);
            self.see(key, entry);
        }
    }

    /// Goes on with this table, which is no longer in use.
    pub(crate) fn freeze(&mut self, table: &Arc<Table>) {
        self.frozen.get_or_insert_with(|| Arc::clone(table));
    }

    /// Looks at up to `steps` more positions of the table in use, or of the one that it goes on with; false when there
    /// are no more.
    pub(crate) fn go_on(&mut self, table: &Table, steps: usize) -> bool {
        let frozen = self.frozen.take();
        let keys = frozen.as_deref().unwrap_or(table);
        // What was removed from the end has been seen.
        let end = self.count.min(keys.len());
        let until = end.min(self.cursor.saturating_add(steps));
        while self.cursor < until {
            let position = self.cursor;
            self.cursor += 1;
            if !self.is_seen(position)
                && let Some((key, entry)) = keys.get_index(position)
            {
                self.see(key, entry);
            }
        }
        self.frozen = frozen;
        self.cursor < end && self.matching.reply_bytes() <= REPLY_BYTES_MAX
    }

    /// What the listing has found, as the reply to KEYS: an array's head and its elements.
    pub(crate) fn finish(self) -> Result<Names, ExecutionError> {
        if self.matching.reply_bytes() > REPLY_BYTES_MAX {
            return Err(ExecutionError::ReplyTooLong);
        }
        Ok(self.matching)
    }
}

//! How many of a stream's entries a group has read, and how many are left: what Redis calls the lag.
//!
//! Entries are not counted one by one. What is known is how many were ever added, how many there are, and the greatest id of
//! those that were removed one by one. From these follows the number of an entry that is the last or the first one, or
//! before all of them, unless one was removed from between.

use super::{Group, Stream, StreamId};

impl Stream {
    /// How many of the entries that were ever added are not behind an id; none if that cannot be told.
    #[must_use]
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        let (added, length) = (self.entries_added(), self.len());
        if added == 0 {
            return Some(0);
        }
        if (length == 0 && id <= self.last_id()) || id == self.last_id() {
            return Some(added);
        }
        let first = self.first_id();
        let has_gaps = self.max_deleted_id() != StreamId::MIN && self.max_deleted_id() >= first;
        if id > self.last_id() || has_gaps || id > first {
            return None;
        }
        // A client may have said that fewer were added than there are.
        let before_first = added.saturating_sub(length);
        Some(if id == first { before_first.saturating_add(1) } else { before_first })
    }

    /// True if an entry was removed from among those that are not before an id.
    #[must_use]
    pub fn has_gaps_from(&self, id: StreamId) -> bool {
        let deleted = self.max_deleted_id();
        let is_among_entries = self.first_id() <= deleted;
        !self.is_empty() && deleted != StreamId::MIN && is_among_entries && id <= deleted
    }

    /// How many entries a group has not read yet; none if that cannot be told. Negative if a client has said that it has
    /// read more than there were.
    #[must_use]
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added() == 0 {
            return Some(0);
        }
        let read = group.entries_read.filter(|_| !self.has_gaps_from(group.last));
        let read = read.or_else(|| self.entries_up_to(group.last))?;
        Some(self.entries_added().wrapping_sub(read).cast_signed())
    }

    /// A group has read an entry, which is behind its last one.
    #[must_use]
    pub fn advanced(&self, group: &Group, id: StreamId) -> Group {
        let entries_read = match group.entries_read {
            Some(read) if !self.has_gaps_from(id) => Some(read.saturating_add(1)),
            _ => self.entries_up_to(id),
        };
        Group { last: id, entries_read, ..*group }
    }
}

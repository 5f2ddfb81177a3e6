//! Room for replies to reads that the front end has asked for and not got.
//!
//! What the front end has asked for, nobody can take back: a value may come from any replica, and a reply may wait in the
//! client core for the words of others. So before a connection whose replies were long of late hands over a read, it has
//! room for the reply reserved; connections that get none wait in line. Nobody knows how long the first replies
//! of a connection will be: one for which there is no room when it comes is dropped, and its read is postponed and
//! asked anew, with room for it. Where other connections have got long replies just now, it is taken to be one of the same:
//! the first replies of many connections at once would keep members and links busy for seconds.

use std::collections::VecDeque;
use std::time::Duration;

use syros_protocol::message::Message;
use syros_types::Instant;

/// Replies shorter than this need no room, in bytes: as many as there may be operations in flight take 64 MiB.
const SHORT_BYTES: usize = 1024;

/// The part of the memory of all clients that replies may take before they belong to a connection.
const SHARE: usize = 8;

/// A turn of the loop executes no further reads of which nobody knows how long their replies will be once it has got
/// this many bytes of long replies: some milliseconds of it. Other clients, and the other members, wait for its end.
const BYTES_PER_TURN: usize = 4 * 1024 * 1024;

/// For so long the longest reply tells what the first ones of other connections may be like. Who reads short values is soon
/// known for that.
const LATELY: Duration = Duration::from_secs(1);

/// The room, and who waits for some.
#[derive(Debug)]
pub(super) struct ReplyRoom {
    limit: usize,
    reserved: usize,
    /// Addresses of connections, each with the bytes that it waits for.
    line: VecDeque<(u64, usize)>,
    /// Bytes of long replies that have come in this turn of the loop.
    this_turn: usize,
    /// When this turn began.
    now: Instant,
    /// Bytes of the longest reply that came lately, and when it did.
    longest: (usize, Instant),
}

impl ReplyRoom {
    /// Room for connections that may take so many bytes together.
    pub(super) const fn new(client_memory: usize) -> Self {
        Self {
            limit: client_memory / SHARE,
            reserved: 0,
            line: VecDeque::new(),
            this_turn: 0,
            now: Instant(0),
            longest: (0, Instant(0)),
        }
    }

    /// True if there is room for so many bytes. Whoever is alone always has room, or it would never go on.
    const fn has(&self, bytes: usize) -> bool {
        bytes == 0 || self.reserved == 0 || self.reserved.saturating_add(bytes) <= self.limit
    }

    /// Reserves room for a read whose reply is expected to have so many bytes. False if there is none, or others have
    /// waited for it longer; whoever `has_turn` has waited longest.
    pub(super) fn reserve(&mut self, bytes: usize, has_turn: bool) -> bool {
        let may = bytes == 0 || ((has_turn || self.line.is_empty()) && self.has(bytes));
        if may {
            self.reserved += bytes;
        }
        may
    }

    /// A reply of so many bytes has come for which `reserved` bytes are reserved. True if it is taken, with room for it.
    pub(super) fn take(&mut self, reserved: usize, bytes: usize) -> bool {
        let others = self.reserved - reserved;
        // Reads without a reservation may come without end: they stay behind those that wait.
        let has_turn = reserved > 0 || self.line.is_empty();
        let fits = others == 0 || others.saturating_add(bytes) <= self.limit;
        let may = bytes <= reserved || (has_turn && fits);
        if may && bytes > reserved {
            self.reserved = others + bytes;
        }
        may
    }

    /// A read has ended for which so many bytes were reserved.
    pub(super) const fn release(&mut self, bytes: usize) {
        self.reserved -= bytes;
    }

    /// Bytes reserved.
    pub(super) const fn reserved(&self) -> usize {
        self.reserved
    }

    /// A connection waits for so many bytes: before all others if it had its turn and could not use it.
    pub(super) fn wait(&mut self, address: u64, bytes: usize, had_turn: bool) {
        if had_turn {
            self.line.push_front((address, bytes));
        } else {
            self.line.push_back((address, bytes));
        }
    }

    /// True if the one that has waited longest may go on.
    pub(super) fn has_next(&self) -> bool {
        self.line.front().is_some_and(|(_, bytes)| self.has(*bytes))
    }

    /// The address of the connection that has waited longest, if it may go on: it waits no more. None in a turn of the loop
    /// that has got as many bytes of long replies as it should.
    pub(super) fn pop_next(&mut self) -> Option<u64> {
        if self.is_turn_over() || !self.has_next() {
            return None;
        }
        self.line.pop_front().map(|(address, _)| address)
    }

    /// A long reply of so many bytes has come in this turn of the loop.
    pub(super) fn count(&mut self, bytes: usize) {
        self.this_turn += bytes;
        if bytes >= self.longest_lately() {
            self.longest = (bytes, self.now);
        }
    }

    /// Bytes of the longest reply that came lately; 0 if none did that needed room.
    pub(super) fn longest_lately(&self) -> usize {
        if self.now.since(self.longest.1) < LATELY { self.longest.0 } else { 0 }
    }

    /// A connection waits no more.
    pub(super) fn forget(&mut self, address: u64) {
        self.line.retain(|(waiting, _)| *waiting != address);
    }

    /// Another turn of the loop begins.
    pub(super) const fn begin_turn(&mut self, now: Instant) {
        (self.this_turn, self.now) = (0, now);
    }

    /// True if this turn of the loop has got as many bytes of long replies as it should.
    pub(super) const fn is_turn_over(&self) -> bool {
        self.this_turn >= BYTES_PER_TURN
    }
}

/// The number of the read, and how long its reply is, if a message is a reply that there has to be room for.
pub(super) fn long_reply(message: &Message) -> Option<(u64, usize)> {
    match message {
        Message::ReadReply { number, reply, .. } | Message::MemberReply { number, reply, .. } => {
            Some((*number, reply.len())).filter(|(_, bytes)| *bytes >= SHORT_BYTES)
        }
        _ => None,
    }
}

/// How much room a reply needs that is expected to hold so many bytes of values.
pub(super) const fn needed(bytes: usize) -> usize {
    if bytes < SHORT_BYTES { 0 } else { bytes }
}

/// True if a message is a reply that there has to be room for.
#[must_use]
pub fn needs_room(message: &Message) -> bool {
    long_reply(message).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_longest_goes_on_first_and_whoever_is_alone_always() {
        let mut room = ReplyRoom::new(8 * 100);
        assert!(room.reserve(0, false) && room.reserve(1000, false), "it is alone");
        assert!(!room.reserve(1, false));
        room.wait(7, 60, false);
        room.wait(8, 60, false);
        assert!(!room.has_next());
        room.release(1000);
        assert!(room.has_next() && !room.reserve(10, false), "others wait");
        assert_eq!(room.line.pop_front(), Some((7, 60)));
        assert!(room.reserve(60, true) && !room.has_next() && !room.reserve(60, true));
        room.wait(7, 60, true);
        assert_eq!(room.line.front(), Some(&(7, 60)));
        room.forget(7);
        room.forget(8);
        assert!(room.line.is_empty() && room.reserve(40, false) && room.reserved() == 100);
    }

    #[test]
    fn a_reply_that_is_longer_than_expected_is_taken_if_there_is_room() {
        let mut room = ReplyRoom::new(8 * 100);
        assert!(room.reserve(50, false) && room.take(50, 20) && room.reserved() == 50);
        assert!(room.take(50, 5000) && room.reserved() == 5000, "it is alone");
        room.release(5000);
        assert!(room.take(0, 50) && room.take(0, 50) && !room.take(0, 1) && !room.take(50, 51));
        room.release(50);
        room.wait(7, 60, false);
        assert!(!room.take(0, 10), "others wait");
        assert!(room.take(50, 51) && room.reserved() == 51);
    }

    #[test]
    fn the_longest_reply_tells_for_a_while_what_others_may_be_like() {
        let mut room = ReplyRoom::new(8 * 100);
        let after = |millis| Instant(0).after(Duration::from_millis(millis));
        room.begin_turn(after(5000));
        assert_eq!(room.longest_lately(), 0);
        room.count(10 << 20);
        room.count(2000);
        room.begin_turn(after(5999));
        assert_eq!(room.longest_lately(), 10 << 20);
        room.begin_turn(after(6000));
        assert_eq!(room.longest_lately(), 0);
        room.count(2000);
        assert_eq!(room.longest_lately(), 2000);
    }
}

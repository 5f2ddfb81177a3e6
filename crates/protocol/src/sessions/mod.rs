//! Sessions and exactly-once: VR's client table, with RIFL's completion records so that a session may
//! have many operations in flight. It is replicated state: it changes only with executed log entries.

mod completions;

pub use completions::{Completion, Completions};

use crate::message::Body;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{OperationId, SessionId, WallTime, micros};

/// How far an operation's sequence number may be ahead of what its client has acknowledged with it: bounds the
/// completion records a session keeps. Above the client's limit of operations in flight.
pub const SESSION_WINDOW_MAX: u64 = 1 << 17;

/// Most bytes of replies that the table keeps before it keeps no more large ones; of small ones it keeps twice as many.
/// Every replica of a group has to use the same number: which replies the table keeps is replicated state.
pub const REPLY_BYTES_MAX: usize = 64 << 20;

/// Most completions that the table keeps before a session that has its share of them may have no more: see
/// [`Sessions::has_room`]. A completion takes less than 100 bytes of memory besides its reply, and 24 where a client numbers
/// its updates one after the other.
pub const COMPLETIONS_MAX: usize = 1 << 21;

/// A session of more completions than this is a large one. So many are for every session there may be.
const SMALL_SESSION: usize = COMPLETIONS_MAX / 65_536;

/// A reply of more bytes than this is a large one.
const LARGE_REPLY: usize = 1 << 10;

/// What is known of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationStatus {
    /// Never executed.
    New,
    /// Executed; the reply, unless it was nilext.
    Executed(Option<Body>),
    /// Executed; its reply was not kept, because the table held too many bytes of replies.
    ReplyDropped,
    /// Its client has acknowledged the answer.
    Acknowledged,
    /// Its sequence number is too far ahead.
    BeyondWindow,
    /// There is no such session.
    UnknownSession,
}

/// One session's part of the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Chosen by the client that registered it, who shows with it that the session is its own. 0: not known, because a build
    /// that kept no nonces registered it or wrote the snapshot; anybody may use the session.
    pub nonce: u64,
    /// The client has the answers of all operations before this one.
    pub acked_below: u64,
    /// Those of its operations that were executed, from `acked_below` on and less than [`SESSION_WINDOW_MAX`] ahead of it.
    pub completions: Completions,
    /// Log time of the last update.
    pub last_active: WallTime,
}

/// The session table of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sessions {
    table: BTreeMap<SessionId, Session>,
    /// What all replies in the table count for.
    reply_bytes: usize,
    /// Completions of all sessions.
    completions: usize,
    /// Sessions of more than [`SMALL_SESSION`] completions.
    large: usize,
}

impl Sessions {
    /// Number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Every session, in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SessionId, &Session)> {
        self.table.iter().map(|(id, session)| (*id, session))
    }

    /// Bytes of the replies that are kept.
    #[must_use]
    pub const fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }

    /// Completions that are kept, of all sessions.
    #[must_use]
    pub const fn completions(&self) -> usize {
        self.completions
    }

    /// True if an operation whose client has the answers of all before `acked_below` may be taken up. When the table keeps
    /// `completions_max` completions, all large sessions share as many: one that has its share, and acknowledges nothing, gets
    /// no more, so that it cannot fill the memory and the snapshots of every replica. Operations that are on their way already
    /// are executed all the same.
    #[must_use]
    pub fn has_room(&self, id: OperationId, acked_below: u64, completions_max: usize) -> bool {
        if self.completions < completions_max {
            return true;
        }
        let Some(session) = self.table.get(&id.session) else { return true };
        let acked_below = acked_below.max(session.acked_below);
        let share = (completions_max / self.large.max(1)).max(1);
        // One that acknowledges all before it makes as much room as it takes. Below what is acknowledged, nobody waits for any.
        id.sequence == acked_below
            || (id.sequence > acked_below && !session.completions.are_at_least(share, acked_below))
    }

    /// A session begins.
    pub fn register(&mut self, id: SessionId, nonce: u64, time: WallTime) {
        let session =
            Session { nonce, acked_below: 1, completions: Completions::default(), last_active: time };
        let before = self.table.insert(id, session);
        assert!(before.is_none(), "a session is registered once");
    }

    /// The nonce that a session was registered with, if there is such a session.
    #[must_use]
    pub fn nonce(&self, id: SessionId) -> Option<u64> {
        self.table.get(&id).map(|session| session.nonce)
    }

    /// Sessions end.
    pub fn expire(&mut self, ids: &[SessionId]) {
        for id in ids {
            let Some(session) = self.table.remove(id) else { continue };
            self.reply_bytes -= session.completions.reply_bytes();
            self.completions -= session.completions.len();
            self.large -= usize::from(session.completions.len() > SMALL_SESSION);
        }
    }

    /// Sessions without an update for `timeout` at log time `time`, oldest id first, at most `max`. One that was registered
    /// before its group had a time, and never used, is none of them: nobody knows when that was.
    #[must_use]
    pub fn idle(&self, time: WallTime, timeout: Duration, max: usize) -> Vec<SessionId> {
        let idle = self
            .table
            .iter()
            .filter(|(_, s)| s.last_active > WallTime(0) && s.last_active.after(timeout) <= time);
        idle.map(|(id, _)| *id).take(max).collect()
    }

    /// Sessions that can be spared at log time `time`: those that were registered `unused` ago and never used, unless their
    /// clients are known to be there, and then those without an update for `idle`, those idle for longest first; only such as
    /// `may_end` accepts.
    #[must_use]
    pub fn least_recently_used(
        &self,
        time: WallTime,
        unused: Duration,
        idle: Duration,
        is_held: impl Fn(SessionId) -> bool,
        may_end: impl Fn(SessionId) -> bool,
    ) -> Vec<SessionId> {
        let before = |age: Duration| time.0.saturating_sub(micros(age));
        let (unused, idle) = (before(unused), before(idle));
        let spare = self.table.iter().filter_map(|(id, session)| {
            let used = session.acked_below > 1 || !session.completions.is_empty() || is_held(*id);
            let since = if used { idle } else { unused };
            (session.last_active.0 <= since && may_end(*id)).then_some((used, session.last_active, *id))
        });
        let mut spare: Vec<_> = spare.collect();
        spare.sort_unstable();
        spare.into_iter().map(|(_, _, id)| id).collect()
    }

    /// What is known of an operation.
    #[must_use]
    pub fn lookup(&self, id: OperationId) -> OperationStatus {
        let Some(session) = self.table.get(&id.session) else { return OperationStatus::UnknownSession };
        let Some(offset) = id.sequence.checked_sub(session.acked_below) else {
            return OperationStatus::Acknowledged;
        };
        if offset >= SESSION_WINDOW_MAX {
            return OperationStatus::BeyondWindow;
        }
        match session.completions.get(id.sequence) {
            None => OperationStatus::New,
            Some(Completion::Nilext) => OperationStatus::Executed(None),
            Some(Completion::Reply(body)) => OperationStatus::Executed(Some(body.clone())),
            Some(Completion::Dropped) => OperationStatus::ReplyDropped,
        }
    }

    /// What is known of an operation with which its client acknowledges all answers of operations before `acked_below`. The
    /// session may not have heard of that yet: operations that are refused are in no log, so it hears of none of them.
    #[must_use]
    pub fn lookup_acknowledging(&self, id: OperationId, acked_below: u64) -> OperationStatus {
        match self.lookup(id) {
            // A client never acknowledges what it has just issued.
            OperationStatus::BeyondWindow
                if id.sequence - acked_below.min(id.sequence) < SESSION_WINDOW_MAX =>
            {
                OperationStatus::New
            }
            status => status,
        }
    }

    /// An operation was executed; `reply` is `None` for a nilext update. Without its session this
    /// leaves no trace. Whether the reply is kept is decided as [`REPLY_BYTES_MAX`] says, with `reply_bytes_max` for the number; a reply that is not kept comes back.
    pub fn complete(
        &mut self,
        id: OperationId,
        acked_below: u64,
        reply: Option<Body>,
        time: WallTime,
        reply_bytes_max: usize,
    ) -> Option<Body> {
        let session = self.table.get_mut(&id.session)?;
        session.last_active = session.last_active.max(time);
        // A client never acknowledges what it has just issued.
        let acked_below = acked_below.min(id.sequence);
        if session.acked_below < acked_below {
            session.acked_below = acked_below;
            let before = session.completions.len();
            self.reply_bytes -= session.completions.forget_below(acked_below);
            let after = session.completions.len();
            self.completions -= before - after;
            self.large -= usize::from(before > SMALL_SESSION && after <= SMALL_SESSION);
        }
        let offset = id.sequence.checked_sub(session.acked_below)?;
        if offset >= SESSION_WINDOW_MAX {
            return None;
        }
        let completion = reply.map_or(Completion::Nilext, Completion::Reply);
        let known = session.completions.get(id.sequence);
        if known.is_none() {
            self.completions += 1;
            self.large += usize::from(session.completions.len() == SMALL_SESSION);
        }
        let held = self.reply_bytes - known.map_or(0, Completion::reply_bytes);
        let held_with_it = held + completion.reply_bytes();
        let (completion, unkept) = match completion {
            Completion::Reply(reply) if !has_room(held_with_it, &reply, reply_bytes_max) => {
                self.reply_bytes = held;
                (Completion::Dropped, Some(reply))
            }
            kept => {
                self.reply_bytes = held_with_it;
                (kept, None)
            }
        };
        session.completions.insert(id.sequence, completion);
        unkept
    }
}

/// True if a reply is kept with which the table holds `held` bytes of replies.
fn has_room(held: usize, reply: &[u8], reply_bytes_max: usize) -> bool {
    held <= if reply.len() > LARGE_REPLY { reply_bytes_max } else { reply_bytes_max.saturating_mul(2) }
}

impl FromIterator<(SessionId, Session)> for Sessions {
    fn from_iter<T: IntoIterator<Item = (SessionId, Session)>>(sessions: T) -> Self {
        let table: BTreeMap<SessionId, Session> = sessions.into_iter().collect();
        let reply_bytes = table.values().map(|session| session.completions.reply_bytes()).sum();
        let lengths = || table.values().map(|session| session.completions.len());
        let (completions, large) =
            (lengths().sum(), lengths().filter(|length| *length > SMALL_SESSION).count());
        Self { table, reply_bytes, completions, large }
    }
}

#[cfg(test)]
mod tests {
    use super::completions::REPLY_OVERHEAD;
    use super::*;
    use alloc::vec;

    fn id(session: u64, sequence: u64) -> OperationId {
        OperationId { session: SessionId(session), sequence }
    }

    #[test]
    fn completions_are_kept_until_acknowledged() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.lookup(id(5, 1)), OperationStatus::UnknownSession);
        sessions.register(SessionId(5), 1, WallTime(0));
        assert_eq!(sessions.lookup(id(5, 1)), OperationStatus::New);
        let reply = Body::from([1]);
        sessions.complete(id(5, 2), 1, Some(reply.clone()), WallTime(1), REPLY_BYTES_MAX);
        assert_eq!(sessions.lookup(id(5, 1)), OperationStatus::New);
        assert_eq!(sessions.lookup(id(5, 2)), OperationStatus::Executed(Some(reply)));
        sessions.complete(id(5, 1), 1, None, WallTime(1), REPLY_BYTES_MAX);
        assert_eq!(sessions.lookup(id(5, 1)), OperationStatus::Executed(None));
        sessions.complete(id(5, 9), 3, None, WallTime(1), REPLY_BYTES_MAX);
        assert_eq!(sessions.lookup(id(5, 2)), OperationStatus::Acknowledged);
        assert_eq!(sessions.lookup(id(5, 3)), OperationStatus::New);
        assert_eq!(sessions.lookup(id(5, 9)), OperationStatus::Executed(None));
        assert_eq!(sessions.lookup(id(5, 3 + SESSION_WINDOW_MAX)), OperationStatus::BeyondWindow);
    }

    #[test]
    fn a_completion_far_ahead_or_without_session_leaves_no_trace() {
        let mut sessions = Sessions::default();
        sessions.complete(id(1, 1), 1, None, WallTime(0), REPLY_BYTES_MAX);
        assert!(sessions.is_empty());
        sessions.register(SessionId(1), 1, WallTime(0));
        let before = sessions.clone();
        sessions.complete(id(1, u64::MAX), 1, None, WallTime(0), REPLY_BYTES_MAX);
        assert_eq!(sessions, before);
    }

    /// What a client does that acknowledges nothing stops at its share once the table is full.
    #[test]
    fn large_sessions_share_a_full_table() {
        const MAX: usize = 4 * SMALL_SESSION;
        let id = |session, sequence| OperationId { session: SessionId(session), sequence };
        let mut sessions = Sessions::default();
        for session in 1..=3 {
            sessions.register(SessionId(session), session, WallTime(0));
        }
        let fill = |sessions: &mut Sessions, session, sequences: core::ops::RangeInclusive<u64>| {
            for sequence in sequences {
                sessions.complete(id(session, sequence), 1, None, WallTime(0), REPLY_BYTES_MAX);
            }
        };
        let (max, small) = (MAX as u64, SMALL_SESSION as u64);
        assert!(sessions.has_room(id(1, max), 1, MAX));
        fill(&mut sessions, 1, 1..=max);
        assert!(!sessions.has_room(id(1, max + 1), 1, MAX), "it has all that the table keeps");
        assert!(sessions.has_room(id(1, max + 1), 2, MAX), "one less is left");
        assert!(sessions.has_room(id(1, max + 1), max + 1, MAX), "it acknowledges all");
        // Another large one: each may have half.
        fill(&mut sessions, 2, 1..=small + 1);
        assert!(sessions.has_room(id(2, small + 2), 1, MAX));
        fill(&mut sessions, 2, small + 2..=2 * small);
        assert!(!sessions.has_room(id(2, 2 * small + 1), 1, MAX));
        assert!(!sessions.has_room(id(1, max + 1), 2 * small, MAX));
        // A small one takes nothing from them, and may always grow.
        fill(&mut sessions, 3, 1..=small);
        assert_eq!((sessions.completions(), sessions.large), (MAX + 3 * SMALL_SESSION, 2));
        assert!(sessions.has_room(id(3, small + 1), 1, MAX));
        // Executed again, acknowledged, in a snapshot, ended: the numbers stay right.
        fill(&mut sessions, 3, 2..=2);
        let copy: Sessions = sessions.iter().map(|(id, session)| (id, session.clone())).collect();
        assert_eq!(copy, sessions);
        sessions.complete(id(1, max + 1), max, None, WallTime(0), REPLY_BYTES_MAX);
        assert_eq!((sessions.completions(), sessions.large), (2 + 3 * SMALL_SESSION, 1));
        sessions.expire(&[SessionId(2)]);
        assert_eq!((sessions.completions(), sessions.large), (2 + SMALL_SESSION, 0));
    }

    #[test]
    fn idle_sessions_are_found_by_log_time() {
        let mut sessions = Sessions::default();
        sessions.register(SessionId(1), 1, WallTime(1));
        sessions.register(SessionId(2), 2, WallTime(1));
        sessions.complete(id(2, 1), 1, None, WallTime(900), REPLY_BYTES_MAX);
        // One that was registered when its group had no time yet, as the first of each node is.
        sessions.register(SessionId(3), 3, WallTime(0));
        assert_eq!(sessions.idle(WallTime(1001), Duration::from_micros(1000), 10), [SessionId(1)]);
        sessions.complete(id(3, 1), 1, None, WallTime(900), REPLY_BYTES_MAX);
        assert_eq!(sessions.idle(WallTime(1901), Duration::from_micros(1000), 1).len(), 1);
        assert_eq!(
            sessions.idle(WallTime(1900), Duration::from_micros(1000), 10),
            [SessionId(1), SessionId(2), SessionId(3)]
        );
        sessions.expire(&[SessionId(1)]);
        assert_eq!(sessions.lookup(id(1, 1)), OperationStatus::UnknownSession);
    }

    #[test]
    fn replies_are_kept_up_to_a_number_of_bytes() {
        let mut sessions = Sessions::default();
        sessions.register(SessionId(1), 1, WallTime(0));
        sessions.register(SessionId(2), 2, WallTime(0));
        let large = Body::from(vec![7; LARGE_REPLY + 1]);
        let small = Body::from(vec![7; LARGE_REPLY]);
        let max = 2 * (large.len() + REPLY_OVERHEAD);
        let complete = |sessions: &mut Sessions, id, acked_below, reply: &Body| {
            sessions.complete(id, acked_below, Some(reply.clone()), WallTime(0), max);
            sessions.lookup(id)
        };
        for sequence in [1, 2] {
            let known = complete(&mut sessions, id(1, sequence), 1, &large);
            assert_eq!(known, OperationStatus::Executed(Some(large.clone())));
        }
        assert_eq!(complete(&mut sessions, id(2, 1), 1, &large), OperationStatus::ReplyDropped);
        for sequence in [2, 3] {
            let known = complete(&mut sessions, id(2, sequence), 1, &small);
            assert_eq!(known, OperationStatus::Executed(Some(small.clone())));
        }
        assert_eq!(complete(&mut sessions, id(2, 4), 1, &small), OperationStatus::ReplyDropped);
        // A nilext update has nothing to keep.
        sessions.complete(id(2, 5), 1, None, WallTime(0), max);
        assert_eq!(sessions.lookup(id(2, 5)), OperationStatus::Executed(None));
        // A snapshot has the same replies, so whoever goes on from it decides in the same way.
        let copy: Sessions = sessions.iter().map(|(id, session)| (id, session.clone())).collect();
        assert_eq!(copy, sessions);
        // Acknowledged replies make room, and so do those of a session that ends.
        assert_eq!(complete(&mut sessions, id(2, 6), 6, &large), OperationStatus::ReplyDropped);
        sessions.expire(&[SessionId(1)]);
        assert_eq!(sessions.reply_bytes(), 0);
        assert_eq!(
            complete(&mut sessions, id(2, 7), 6, &large),
            OperationStatus::Executed(Some(large.clone()))
        );
        assert_eq!(sessions.lookup(id(2, 6)), OperationStatus::ReplyDropped);
    }
}

//! Sessions and exactly-once: VR's client table, with RIFL's completion records so that a session may
//! have many operations in flight. It is replicated state: it changes only with executed log entries.

use crate::message::Body;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{OperationId, SessionId, WallTime, micros};

/// How far an operation's sequence number may be ahead of its session's `acked_below`: bounds the
/// completion records a session keeps. Above the client's limit of operations in flight.
pub const SESSION_WINDOW_MAX: u64 = 1 << 17;

/// What is known of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Never executed.
    New,
    /// Executed; the reply, unless it was nilext.
    Executed(Option<Body>),
    /// Its client has acknowledged the answer.
    Acknowledged,
    /// Its sequence number is too far ahead.
    BeyondWindow,
    /// There is no such session.
    UnknownSession,
}

/// What is remembered of one operation of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// Nothing: it has not been executed.
    None,
    /// A nilext update was executed.
    Nilext,
    /// An update was executed and returned this.
    Reply(Body),
}

/// One session's part of the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Chosen by the client that registered it, who shows with it that the session is its own. 0: not known, because a build
    /// that kept no nonces registered it or wrote the snapshot; anybody may use the session.
    pub nonce: u64,
    /// The client has the answers of all operations before this one.
    pub acked_below: u64,
    /// Completion of sequence number `acked_below + i`; at most [`SESSION_WINDOW_MAX`].
    pub completions: VecDeque<Completion>,
    /// Log time of the last update.
    pub last_active: WallTime,
}

/// The session table of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sessions {
    table: BTreeMap<SessionId, Session>,
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

    /// A session begins.
    pub fn register(&mut self, id: SessionId, nonce: u64, time: WallTime) {
        let session = Session { nonce, acked_below: 1, completions: VecDeque::new(), last_active: time };
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
            self.table.remove(id);
        }
    }

    /// Sessions without an update for `timeout` at log time `time`, oldest id first, at most `max`.
    #[must_use]
    pub fn idle(&self, time: WallTime, timeout: Duration, max: usize) -> Vec<SessionId> {
        let idle = self.table.iter().filter(|(_, s)| s.last_active.after(timeout) <= time);
        idle.map(|(id, _)| *id).take(max).collect()
    }

    /// Sessions that can be spared at log time `time`: those that were registered `unused` ago and never used, and then those
    /// without an update for `idle`, those idle for longest first; only such as `may_end` accepts.
    #[must_use]
    pub fn least_recently_used(
        &self,
        time: WallTime,
        unused: Duration,
        idle: Duration,
        may_end: impl Fn(SessionId) -> bool,
    ) -> Vec<SessionId> {
        let before = |age: Duration| time.0.saturating_sub(micros(age));
        let (unused, idle) = (before(unused), before(idle));
        let spare = self.table.iter().filter_map(|(id, session)| {
            let used = session.acked_below > 1 || !session.completions.is_empty();
            let since = if used { idle } else { unused };
            (session.last_active.0 <= since && may_end(*id)).then_some((used, session.last_active, *id))
        });
        let mut spare: Vec<_> = spare.collect();
        spare.sort_unstable();
        spare.into_iter().map(|(_, _, id)| id).collect()
    }

    /// What is known of an operation.
    #[must_use]
    pub fn lookup(&self, id: OperationId) -> Known {
        let Some(session) = self.table.get(&id.session) else { return Known::UnknownSession };
        let Some(offset) = id.sequence.checked_sub(session.acked_below) else { return Known::Acknowledged };
        if offset >= SESSION_WINDOW_MAX {
            return Known::BeyondWindow;
        }
        match usize::try_from(offset).ok().and_then(|index| session.completions.get(index)) {
            None | Some(Completion::None) => Known::New,
            Some(Completion::Nilext) => Known::Executed(None),
            Some(Completion::Reply(body)) => Known::Executed(Some(body.clone())),
        }
    }

    /// An operation was executed; `reply` is `None` for a nilext update. Without its session this
    /// leaves no trace.
    pub fn complete(&mut self, id: OperationId, acked_below: u64, reply: Option<Body>, time: WallTime) {
        let Some(session) = self.table.get_mut(&id.session) else { return };
        session.last_active = session.last_active.max(time);
        // A client never acknowledges what it has just issued.
        let acked_below = acked_below.min(id.sequence);
        while session.acked_below < acked_below {
            session.acked_below += 1;
            if session.completions.pop_front().is_none() {
                session.acked_below = acked_below;
            }
        }
        let Some(offset) = id.sequence.checked_sub(session.acked_below) else { return };
        if offset >= SESSION_WINDOW_MAX {
            return;
        }
        let index = offset as usize;
        if session.completions.len() <= index {
            session.completions.resize(index + 1, Completion::None);
        }
        session.completions[index] = reply.map_or(Completion::Nilext, Completion::Reply);
    }
}

impl FromIterator<(SessionId, Session)> for Sessions {
    fn from_iter<T: IntoIterator<Item = (SessionId, Session)>>(sessions: T) -> Self {
        Self { table: sessions.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(session: u64, sequence: u64) -> OperationId {
        OperationId { session: SessionId(session), sequence }
    }

    #[test]
    fn completions_are_kept_until_acknowledged() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.lookup(id(5, 1)), Known::UnknownSession);
        sessions.register(SessionId(5), 1, WallTime(0));
        assert_eq!(sessions.lookup(id(5, 1)), Known::New);
        let reply = Body::from([1]);
        sessions.complete(id(5, 2), 1, Some(reply.clone()), WallTime(1));
        assert_eq!(sessions.lookup(id(5, 1)), Known::New);
        assert_eq!(sessions.lookup(id(5, 2)), Known::Executed(Some(reply)));
        sessions.complete(id(5, 1), 1, None, WallTime(1));
        assert_eq!(sessions.lookup(id(5, 1)), Known::Executed(None));
        sessions.complete(id(5, 9), 3, None, WallTime(1));
        assert_eq!(sessions.lookup(id(5, 2)), Known::Acknowledged);
        assert_eq!(sessions.lookup(id(5, 3)), Known::New);
        assert_eq!(sessions.lookup(id(5, 9)), Known::Executed(None));
        assert_eq!(sessions.lookup(id(5, 3 + SESSION_WINDOW_MAX)), Known::BeyondWindow);
    }

    #[test]
    fn a_completion_far_ahead_or_without_session_leaves_no_trace() {
        let mut sessions = Sessions::default();
        sessions.complete(id(1, 1), 1, None, WallTime(0));
        assert!(sessions.is_empty());
        sessions.register(SessionId(1), 1, WallTime(0));
        let before = sessions.clone();
        sessions.complete(id(1, u64::MAX), 1, None, WallTime(0));
        assert_eq!(sessions, before);
    }

    #[test]
    fn idle_sessions_are_found_by_log_time() {
        let mut sessions = Sessions::default();
        sessions.register(SessionId(1), 1, WallTime(0));
        sessions.register(SessionId(2), 2, WallTime(0));
        sessions.complete(id(2, 1), 1, None, WallTime(900));
        assert_eq!(sessions.idle(WallTime(1000), Duration::from_micros(1000), 10), [SessionId(1)]);
        sessions.expire(&[SessionId(1)]);
        assert_eq!(sessions.lookup(id(1, 1)), Known::UnknownSession);
    }
}

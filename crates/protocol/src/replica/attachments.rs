//! Which connections may use which sessions: those on which a client has shown the nonce of the session's registration.
//! Ids of sessions are numbers of log entries, which anybody can guess.

use super::{PlantedBug, Replica};
use crate::hash::{HashMap, shrink_table};
use crate::message::{Payload, Peer, Refusal};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Instant, OpNumber, SessionId};

/// Sessions of one connection. A client uses one at a time, and keeps an old one for as long as operations of it are in
/// flight; more only cost it another `Attach`.
const SESSIONS_PER_CONNECTION_MAX: usize = 8;

/// Sessions that a connection may register in [`Settings::registration_interval`](super::Settings), and at once. A client
/// registers one when it begins and another when that one has been idle for minutes; this leaves room for a process with
/// several clients behind a proxy that shares connections.
const REGISTRATIONS_MAX: u32 = 8;

/// For how long a client has direct answers without asking again, at most: one that is gone, or has another session by now,
/// costs nothing after that.
const DIRECT_ANSWERS_MAX: Duration = Duration::from_secs(60);

/// What is known of a connection.
#[derive(Clone, Debug, Default)]
struct AttachedConnection {
    sessions: Vec<SessionId>,
    /// Sessions registered since `since`.
    registered: u32,
    since: Instant,
    /// It is that of a member's front end.
    is_member: bool,
    /// The last session that was registered here.
    newest: Option<SessionId>,
    /// Sessions whose updates its client wants answered directly.
    direct: Vec<SessionId>,
}

/// What connections have shown. It is a connection's, not the group's: a restart forgets it, and clients show it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Attachments {
    connections: HashMap<u64, AttachedConnection>,
    /// The last one found: requests come many at a time from one connection.
    last: Option<(u64, SessionId)>,
    /// The connections of this process's own front end. A process has one; a simulated replica may have several.
    own: Vec<u64>,
    /// The sessions that these say are their own, with the nonces that they have shown. What the log says of a session
    /// decides when it is answered.
    own_sessions: Vec<(u64, SessionId, u64)>,
    /// The sessions of clients elsewhere that want direct answers in this view, the connections on which these have shown the
    /// sessions' nonces, and until when.
    direct: HashMap<SessionId, (u64, Instant)>,
    /// None of these lasts longer.
    direct_until: Instant,
}

impl Attachments {
    fn add(&mut self, client: u64, session: SessionId) {
        let sessions = &mut self.connections.entry(client).or_default().sessions;
        if !sessions.contains(&session) {
            if sessions.len() == SESSIONS_PER_CONNECTION_MAX {
                sessions.remove(0);
                self.last = None;
            }
            sessions.push(session);
        }
    }

    fn contains(&mut self, client: u64, session: SessionId) -> bool {
        if self.last == Some((client, session)) {
            return true;
        }
        let found = self.connections.get(&client).is_some_and(|known| known.sessions.contains(&session));
        if found {
            self.last = Some((client, session));
        }
        found
    }

    /// A connection has closed.
    pub(super) fn remove(&mut self, client: u64) {
        self.last = None;
        self.own.retain(|own| *own != client);
        self.own_sessions.retain(|(own, ..)| *own != client);
        if let Some(known) = self.connections.remove(&client) {
            known.direct.into_iter().for_each(|session| self.forget_direct(client, session));
        }
        shrink_table(&mut self.direct);
        shrink_table(&mut self.connections);
    }

    /// A connection is that of a member's front end.
    pub(super) fn set_member(&mut self, client: u64) {
        self.connections.entry(client).or_default().is_member = true;
    }

    /// A connection is that of this process's own front end.
    pub(super) fn set_own_front_end(&mut self, client: u64) {
        self.set_member(client);
        self.own.push(client);
    }

    /// The front end of this process says that a session is its own.
    fn claim(&mut self, client: u64, session: SessionId, nonce: u64) {
        let claim = (client, session, nonce);
        if self.own.contains(&client) && !self.own_sessions.contains(&claim) {
            if self.own_sessions.len() >= SESSIONS_PER_CONNECTION_MAX * self.own.len() {
                self.own_sessions.remove(0);
            }
            self.own_sessions.push(claim);
        }
    }

    /// True if a client wants direct answers: this process's own front end, or one elsewhere.
    pub(super) fn answers_directly(&self, now: Instant) -> bool {
        !self.own_sessions.is_empty() || (!self.direct.is_empty() && now < self.direct_until)
    }

    /// True if this process's own front end says that a session is its own.
    pub(super) fn is_own(&self, session: SessionId) -> bool {
        self.own_sessions.iter().any(|(_, own, _)| *own == session)
    }

    /// True if a client elsewhere wants direct answers to the updates of a session.
    pub(super) fn is_direct(&self, session: SessionId, now: Instant) -> bool {
        self.direct.get(&session).is_some_and(|(_, until)| now < *until)
    }

    /// The connection of this process's own front end that has shown the nonce of a session.
    pub(super) fn own_front_end(&self, session: SessionId, nonce: Option<u64>) -> Option<u64> {
        let shown = |(_, own, shown): &&(u64, SessionId, u64)| *own == session && nonce == Some(*shown);
        self.own_sessions.iter().find(shown).map(|(client, ..)| *client)
    }

    /// The connection of the client elsewhere that wants direct answers to the updates of a session.
    pub(super) fn direct_client(&self, session: SessionId) -> Option<u64> {
        self.direct.get(&session).map(|(client, _)| *client)
    }

    /// The client of this connection wants direct answers to the updates of a session until some moment; never, if it wants
    /// them no more.
    fn set_direct(&mut self, client: u64, session: SessionId, until: Option<Instant>) {
        let direct = &mut self.connections.entry(client).or_default().direct;
        direct.retain(|known| *known != session);
        let Some(until) = until else { return self.forget_direct(client, session) };
        let oldest = (direct.len() == SESSIONS_PER_CONNECTION_MAX).then(|| direct.remove(0));
        direct.push(session);
        if let Some(oldest) = oldest {
            self.forget_direct(client, oldest);
        }
        self.direct.insert(session, (client, until));
        self.direct_until = self.direct_until.max(until);
    }

    /// The client of this connection has no direct answers to the updates of a session any more. (Another connection of it may
    /// have asked for them since.)
    fn forget_direct(&mut self, client: u64, session: SessionId) {
        if self.direct_client(session) == Some(client) {
            self.direct.remove(&session);
        }
    }

    /// What a model checker sees of it.
    #[cfg(feature = "model")]
    pub(super) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use core::hash::Hash;
        let mut direct: Vec<_> = self.direct.iter().collect();
        direct.sort_unstable();
        direct.hash(hasher);
    }

    /// True if a connection is that of a member's front end.
    pub(super) fn is_member(&self, client: u64) -> bool {
        self.connections.get(&client).is_some_and(|known| known.is_member)
    }

    /// True if a connection may register a session now: it counts as having done so.
    pub(super) fn may_register(&mut self, client: u64, now: Instant, interval: Duration) -> bool {
        let known = self.connections.entry(client).or_default();
        if now >= known.since.after(interval) {
            known.since = now;
            known.registered = 0;
        }
        known.registered += 1;
        known.is_member || known.registered <= REGISTRATIONS_MAX
    }

    /// A session has been registered for whoever asked for it.
    pub(super) fn on_registered(&mut self, from: Peer, session: SessionId) {
        if let Peer::Client(client) = from
            && let Some(known) = self.connections.get_mut(&client)
        {
            known.newest = Some(session);
        }
    }

    /// The last session that was registered on each connection that is open.
    pub(super) fn newest_sessions(&self) -> BTreeSet<SessionId> {
        self.connections.values().filter_map(|known| known.newest).collect()
    }

    /// Connections that have shown a session, or registered one, in order.
    pub(super) fn clients(&self) -> Vec<u64> {
        let mut clients: Vec<u64> = self.connections.keys().copied().collect();
        clients.sort_unstable();
        clients
    }

    /// What the log says of a session may be another thing in the next view.
    pub(super) fn forget_sessions(&mut self) {
        self.last = None;
        for known in self.connections.values_mut() {
            known.sessions.clear();
            known.direct.clear();
        }
        self.direct.clear();
        self.direct_until = Instant(0);
    }
}

impl Replica {
    /// A client says that a session is its own. A wrong claim is only counted, and so is one that cannot be judged here yet:
    /// the client's next update tells it.
    pub(super) fn on_attach(&mut self, from: Peer, session: SessionId, nonce: u64) {
        if let Peer::Client(client) = from {
            self.attachments.claim(client, session, nonce);
        }
        match (from, self.nonce(session)) {
            (Peer::Client(client), Some(known)) if known == nonce || known == 0 => {
                self.attachments.add(client, session);
                self.brief(client);
            }
            _ => self.counters.refused += 1,
        }
    }

    /// A client wants direct answers to the updates of a session, or wants them no more. The leader answers a client that claims
    /// a session which is not its own, or of which this replica has not heard yet.
    pub(super) fn on_answer_directly(
        &mut self,
        from: Peer,
        session: SessionId,
        nonce: u64,
        lasting: Duration,
    ) {
        let is_shown = self.nonce(session) == Some(nonce) || self.planted(PlantedBug::DirectToStranger);
        // With more members, a follower has to hear from another one, and answers no sooner than the leader.
        let is_small = self.config.configuration.majority() == 2;
        match from {
            Peer::Client(client) if is_shown && is_small && self.role.following().is_some() => {
                let until = self.now.instant.after(lasting.min(DIRECT_ANSWERS_MAX));
                self.attachments.set_direct(client, session, Some(until).filter(|_| !lasting.is_zero()));
            }
            _ => self.counters.refused += 1,
        }
    }

    /// The nonce of a session, as the session table or, if that has not been executed, the log has it.
    fn nonce(&self, session: SessionId) -> Option<u64> {
        if session.0 <= self.applied.0 {
            return self.sessions.nonce(session);
        }
        match self.log.entry(OpNumber(session.0))?.payload {
            Payload::Register { nonce } => Some(nonce),
            _ => None,
        }
    }

    /// Why this connection may not use the session.
    pub(super) fn refusal_of_stranger(&mut self, from: Peer, session: SessionId) -> Option<Refusal> {
        if self.config.open_sessions || self.planted(PlantedBug::UnattachedAccepted) {
            return None;
        }
        let Peer::Client(client) = from else { return Some(Refusal::NotAttached) };
        if self.attachments.contains(client, session) {
            return None;
        }
        match self.nonce(session) {
            Some(0) => {
                self.attachments.add(client, session);
                None
            }
            Some(_) => Some(Refusal::NotAttached),
            // Others have its registration, and can tell.
            None if session.0 > self.log.op_number().0 && !self.is_leader() => Some(Refusal::NotNormal),
            None => Some(Refusal::UnknownSession),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_answers_go_where_they_were_last_asked_for_and_are_bounded() {
        let mut attachments = Attachments::default();
        let session = SessionId(5);
        let (now, until) = (Instant(5), Some(Instant(6)));
        attachments.set_direct(1, session, until);
        // The client has another connection, and the first one is closed later.
        attachments.set_direct(2, session, until);
        attachments.remove(1);
        assert_eq!(attachments.direct_client(session), Some(2));
        assert!(attachments.answers_directly(now) && attachments.is_direct(session, now));
        assert!(!attachments.answers_directly(Instant(6)) && !attachments.is_direct(session, Instant(6)));
        attachments.set_direct(2, session, None);
        assert!(!attachments.answers_directly(now));
        // A connection that asks for many keeps the last ones, and leaves nothing behind.
        let most = SESSIONS_PER_CONNECTION_MAX as u64;
        (0..=most).for_each(|session| attachments.set_direct(2, SessionId(session), until));
        assert!(!attachments.is_direct(SessionId(0), now) && attachments.is_direct(SessionId(most), now));
        assert_eq!(attachments.direct.len(), SESSIONS_PER_CONNECTION_MAX);
        attachments.remove(2);
        assert!(!attachments.answers_directly(now) && attachments.connections.is_empty());
    }
}

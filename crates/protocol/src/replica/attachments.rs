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
        self.connections.remove(&client);
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

    /// True if this process's own front end has a session.
    pub(super) const fn serves_own_front_end(&self) -> bool {
        !self.own_sessions.is_empty()
    }

    /// True if this process's own front end says that a session is its own.
    pub(super) fn is_own(&self, session: SessionId) -> bool {
        self.own_sessions.iter().any(|(_, own, _)| *own == session)
    }

    /// The connection of this process's own front end that has shown the nonce of a session.
    pub(super) fn own_front_end(&self, session: SessionId, nonce: Option<u64>) -> Option<u64> {
        let shown = |(_, own, shown): &&(u64, SessionId, u64)| *own == session && nonce == Some(*shown);
        self.own_sessions.iter().find(shown).map(|(client, ..)| *client)
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
        self.connections.values_mut().for_each(|known| known.sessions.clear());
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

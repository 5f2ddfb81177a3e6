//! Which connections may use which sessions: those on which a client has shown the nonce of the session's registration.
//! Ids of sessions are numbers of log entries, which anybody can guess.

use super::{PlantedBug, Replica};
use crate::hash::{HashMap, shrink_table};
use crate::message::{Payload, Peer, Refusal};
use alloc::vec::Vec;
use syros_types::SessionId;

/// Sessions of one connection. A client uses one at a time, and keeps an old one for as long as operations of it are in
/// flight; more only cost it another `Attach`.
const SESSIONS_PER_CONNECTION_MAX: usize = 8;

/// What connections have shown. It is a connection's, not the group's: a restart forgets it, and clients show it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Attachments {
    sessions: HashMap<u64, Vec<SessionId>>,
    /// The last one found: requests come many at a time from one connection.
    last: Option<(u64, SessionId)>,
}

impl Attachments {
    fn add(&mut self, client: u64, session: SessionId) {
        let sessions = self.sessions.entry(client).or_default();
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
        let found = self.sessions.get(&client).is_some_and(|sessions| sessions.contains(&session));
        if found {
            self.last = Some((client, session));
        }
        found
    }

    /// A connection has closed.
    pub(super) fn remove(&mut self, client: u64) {
        self.last = None;
        self.sessions.remove(&client);
        shrink_table(&mut self.sessions);
    }

    /// What the log says of a session may be another thing in the next view.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Replica {
    /// A client says that a session is its own. A wrong claim is only counted, and so is one that cannot be judged here yet:
    /// the client's next update tells it.
    pub(super) fn on_attach(&mut self, from: Peer, session: SessionId, nonce: u64) {
        match (from, self.nonce(session)) {
            (Peer::Client(client), Some(known)) if known == nonce || known == 0 => {
                self.attachments.add(client, session);
            }
            _ => self.counters.refused += 1,
        }
    }

    /// The nonce of a session, as the session table or, if that has not been executed, the log has it.
    fn nonce(&self, session: SessionId) -> Option<u64> {
        if session.0 <= self.applied.0 {
            return self.sessions.nonce(session);
        }
        match self.log.entry(syros_types::OpNumber(session.0))?.payload {
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

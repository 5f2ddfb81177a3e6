//! Connections to the other replicas: of two replicas the one with the higher id connects to the
//! other; a gateway connects to all.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::Token;
use syros_net::{Connection, DialSchedule, Dialing, Limits, Lookup, Progress, TlsSession};
use syros_node::front_end::MessagePeer;
use syros_protocol::{client, replica};
use syros_types::{Incarnation, Instant, NodeId, ReplicaId};
use syros_wire::{Channel, VERSION, put_frame};

use super::EventLoop;
use crate::config::GREETING_TIMEOUT;
use crate::connection::{ConnectionEntry, ConnectionKind, OpenConnection};
use crate::handshake::Greeting;
use crate::socket::configure_link;

/// Attempts to connect are this far apart at first, and at most: a replica that was restarted should be
/// back at once, one that is down should cost nothing.
const DIAL_FIRST: Duration = Duration::from_millis(50);
const DIAL_MAX: Duration = Duration::from_secs(1);

/// How a replica is connected to.
struct Dialer {
    /// Where it listens, as `host:port`.
    address: String,
    schedule: DialSchedule,
    /// Why the last attempt failed, which was logged.
    problem: Option<String>,
    /// The next attempt goes without TLS, if it may.
    is_plain: bool,
    /// The host name is being looked up for an attempt.
    lookup: Option<Lookup>,
    /// Attempts that have failed since the last one that did not: a name with several addresses has them tried in turn.
    failures: usize,
}

impl Dialer {
    fn new(address: String, seed: u64) -> Self {
        let schedule = DialSchedule::new(DIAL_FIRST, DIAL_MAX, seed);
        Self { address, schedule, problem: None, is_plain: false, lookup: None, failures: 0 }
    }

    /// The address to try, once the name has been looked up.
    fn take_found(&mut self) -> Option<Result<SocketAddr, String>> {
        let found = self.lookup.as_ref()?.take()?;
        self.lookup = None;
        // Twice each, because every other attempt goes without TLS where that is allowed.
        Some(found.map(|addresses| addresses[self.failures / 2 % addresses.len()]))
    }
}

/// The connection to one replica.
pub(crate) struct Link {
    /// `None` if it connects to us, or is us.
    dialer: Option<Dialer>,
    /// The connection, once both sides have said who they are.
    pub(crate) connection: Option<usize>,
    /// The node that is connected, or was last.
    pub(crate) node: Option<NodeId>,
    /// The process that is connected, or was last.
    process: Option<u64>,
    /// The latest life of this node that has been heard of, and its process: an earlier one is not counted.
    life: Option<(NodeId, Incarnation, u64)>,
    /// The version of the wire format to begin the next connection in.
    pub(crate) version: u16,
    /// The version that the other end of the connection speaks.
    pub(crate) spoken: u16,
    /// The last processes that another one has taken the place of.
    replaced: VecDeque<u64>,
    /// The node that is connected was to come into the group when it connected.
    pub(crate) is_learner: bool,
    /// The front end knows that it is connected.
    pub(crate) is_introduced: bool,
    /// A learner is not told before this why it has to wait.
    pub(crate) tell_at: Instant,
}

/// So many processes are remembered that another one has taken the place of: enough to see that two take turns.
const REPLACED_MAX: usize = 8;

impl Link {
    /// A link to the replica that listens there, as `host:port`; `None` if it connects to us, or is us.
    pub(crate) fn new(address: Option<String>, seed: u64) -> Self {
        Self {
            dialer: address.map(|address| Dialer::new(address, seed)),
            connection: None,
            node: None,
            process: None,
            life: None,
            version: VERSION,
            spoken: VERSION,
            replaced: VecDeque::new(),
            is_learner: false,
            is_introduced: false,
            tell_at: Instant(0),
        }
    }

    /// The replica listens there, as `host:port`.
    pub(crate) fn dial_to(&mut self, address: String, seed: u64) {
        self.dialer = Some(Dialer::new(address, seed));
    }

    /// Nobody is to be connected to any more.
    pub(crate) fn forget_place(&mut self) {
        self.dialer = None;
    }

    pub(crate) fn on_success(&mut self) {
        if let Some(dialer) = &mut self.dialer {
            dialer.schedule.on_success();
            dialer.problem = None;
            dialer.failures = 0;
        }
    }

    /// A process says that it is this member. False if another one has taken its place before: then both run, and
    /// neither may be counted.
    pub(crate) fn record_process(&mut self, process: u64) -> bool {
        if self.replaced.contains(&process) {
            if let Some(other) = self.process.take() {
                self.replace(other);
            }
            return false;
        }
        if let Some(older) = self.process.replace(process)
            && older != process
        {
            self.replace(older);
        }
        true
    }

    /// A process says which life of a node it is. False if a later one has been heard of, or another process of the same
    /// one: this life's directory is an old copy, or a copy of it has run since. A life of which neither process is counted,
    /// because both ran at once, refuses no other.
    pub(crate) fn record_life(&mut self, node: NodeId, incarnation: Incarnation, process: u64) -> bool {
        let is_old = |known: NodeId, latest: Incarnation, its_process: u64| {
            let is_another = process != its_process && !self.replaced.contains(&its_process);
            known == node && (incarnation < latest || (incarnation == latest && is_another))
        };
        match self.life {
            _ if incarnation == Incarnation::UNKNOWN => {}
            Some((known, latest, its_process)) if is_old(known, latest, its_process) => return false,
            _ => self.life = Some((node, incarnation, process)),
        }
        true
    }

    /// True if another process of the same node has taken the place of this one.
    pub(crate) fn was_replaced(&self, process: u64) -> bool {
        self.replaced.contains(&process)
    }

    /// Another node takes the place of the one that is or was connected.
    pub(crate) fn forget_node(&mut self) {
        (self.node, self.process, self.life) = (None, None, None);
        self.replaced.clear();
    }

    fn replace(&mut self, process: u64) {
        if self.replaced.len() == REPLACED_MAX {
            self.replaced.pop_front();
        }
        self.replaced.push_back(process);
    }

    fn try_later(&mut self, now: Instant) {
        if let Some(dialer) = &mut self.dialer {
            dialer.schedule.on_failure(now);
        }
    }
}

impl EventLoop {
    /// When the next attempt to connect is due.
    pub(super) fn dial_deadline(&self) -> Instant {
        let due = self.links.iter().filter_map(|link| Some(link.dialer.as_ref()?.schedule.due()));
        due.min().unwrap_or(Instant::NEVER).min(self.ask_for_nodes_at())
    }

    /// Starts the attempts that are due, and goes on with those whose host name has been looked up.
    pub(super) fn dial_due(&mut self) {
        for index in 0..self.links.len() {
            let Some(dialer) = &mut self.links[index].dialer else { continue };
            match dialer.take_found() {
                None => {}
                Some(Ok(address)) => self.dial(replica_at(index), address),
                Some(Err(problem)) => self.on_dial_failed(replica_at(index), &problem),
            }
        }
        if self.dial_deadline() > self.now.instant {
            return;
        }
        self.ask_for_nodes();
        for index in 0..self.links.len() {
            let Some(dialer) = &mut self.links[index].dialer else { continue };
            if !dialer.schedule.begin(self.now.instant) {
                continue;
            }
            if let Ok(address) = dialer.address.parse() {
                self.dial(replica_at(index), address);
                continue;
            }
            let waker = Arc::clone(&self.waker);
            // If the loop cannot be woken, its next turn finds the answer.
            match Lookup::start(dialer.address.clone(), move || drop(waker.wake())) {
                Ok(lookup) => dialer.lookup = Some(lookup),
                Err(error) => self.on_dial_failed(replica_at(index), &error.to_string()),
            }
        }
    }

    fn dial(&mut self, replica: ReplicaId, to: SocketAddr) {
        let (index, address) = self.table.reserve();
        match Dialing::start(to, self.poll.registry(), Token(index)) {
            Ok(dialing) => {
                self.table.fill(index, ConnectionEntry::Dialing { replica, dialing, address });
                self.greetings.push(self.now.instant.after(GREETING_TIMEOUT), address);
            }
            Err(error) => {
                self.table.release(index);
                self.on_dial_failed(replica, &error.to_string());
            }
        }
    }

    /// Something has happened to a connection that is being made.
    pub(super) fn continue_dialing(&mut self, index: usize) {
        let Some(ConnectionEntry::Dialing { replica, dialing, address }) = self.table.take(index) else {
            return;
        };
        let stream = match dialing.progress() {
            Progress::Pending(dialing) => {
                return self.table.fill(index, ConnectionEntry::Dialing { replica, dialing, address });
            }
            Progress::Connected(stream) => stream,
            Progress::Failed(error) => {
                self.table.release(index);
                return self.on_dial_failed(replica, &error.to_string());
            }
        };
        let peer = stream.peer_addr().ok();
        let session = self.link_session(replica);
        let adopted =
            configure_link(&stream).and(session).and_then(|tls| Connection::adopt(stream, Limits::NODE, tls));
        match adopted {
            Ok(mut net) => {
                let mut greeting = Greeting { dialed: Some(replica), ..Greeting::default() };
                match self.hello() {
                    Ok(hello) => hello.encode_as(self.links[replica.index()].version, &mut greeting.ours),
                    Err(error) => {
                        self.table.release(index);
                        return self.on_dial_failed(replica, &error.to_string());
                    }
                }
                put_frame(net.outbound(), Channel::Handshake, |out| out.extend_from_slice(&greeting.ours));
                let kind = ConnectionKind::Greeting(Box::new(greeting));
                self.table.fill(index, ConnectionEntry::Open(OpenConnection::new(net, kind, address, peer)));
                self.mark_dirty(index);
                self.queue(index);
            }
            Err(error) => {
                self.table.release(index);
                self.on_dial_failed(replica, &error.to_string());
            }
        }
    }

    /// The TLS session of a connection to a replica that is being made, if it has one.
    fn link_session(&self, replica: ReplicaId) -> std::io::Result<Option<TlsSession>> {
        let dialer = self.links[replica.index()].dialer.as_ref();
        let is_plain = dialer.is_some_and(|dialer| dialer.is_plain);
        let tls = self.links_tls.as_ref().filter(|tls| !(tls.is_optional && is_plain));
        let session = tls.map(|tls| tls.credentials.connect().map_err(std::io::Error::other));
        Ok(session.transpose()?.map(TlsSession::new))
    }

    /// Gives up an attempt that takes too long.
    pub(super) fn give_up_dialing(&mut self, index: usize, reason: &str) {
        if let Some(ConnectionEntry::Dialing { replica, .. }) = self.table.remove(index) {
            self.on_dial_failed(replica, reason);
        }
    }

    /// An attempt to connect has failed.
    pub(super) fn on_dial_failed(&mut self, replica: ReplicaId, reason: &str) {
        let node = self.node();
        let link = &mut self.links[replica.index()];
        // It may come back as one that speaks more.
        link.version = VERSION;
        let Some(dialer) = &mut link.dialer else { return };
        // Once for each cause.
        if dialer.problem.as_deref() != Some(reason) {
            dialer.problem = Some(reason.to_owned());
            tracing::warn!(
                node,
                member = replica.0,
                address = dialer.address,
                error = reason,
                "cannot connect to another node; this node keeps trying"
            );
        }
        dialer.schedule.on_failure(self.now.instant);
        dialer.failures = dialer.failures.wrapping_add(1);
        // It may be one of those that have no certificates yet, or one that has got them.
        dialer.is_plain = !dialer.is_plain;
    }

    /// The connection to a replica is gone.
    pub(super) fn on_link_lost(&mut self, replica: ReplicaId, index: usize, reason: &str) {
        let node = self.node();
        let link = &mut self.links[replica.index()];
        if link.connection != Some(index) {
            return;
        }
        link.connection = None;
        // It may come back as one that speaks more.
        link.version = VERSION;
        tracing::info!(node, member = replica.0, reason, "lost the connection to another node");
        link.try_later(self.now.instant);
        if link.is_learner
            && let Some(local) = &mut self.local
        {
            local.handle(self.now, replica::Event::LearnerGone(replica));
        }
        if let Some(forming) = &mut self.forming {
            return forming.formation.lost(replica);
        }
        self.tell_oldest_version();
        if std::mem::take(&mut self.links[replica.index()].is_introduced) {
            self.front_end.handle(self.now, client::Event::Disconnected(replica));
            self.front_end.on_peer_lost(self.now, MessagePeer::Member(replica));
        }
    }

    /// Tells the front end of the earliest build that a connected member has.
    pub(super) fn tell_oldest_version(&mut self) {
        let connected = self.links.iter().filter(|link| link.connection.is_some());
        let oldest = connected.map(|link| link.spoken).min().unwrap_or(VERSION);
        self.front_end.set_oldest_version(oldest);
    }
}

/// The replica whose link has this place.
pub(super) fn replica_at(index: usize) -> ReplicaId {
    ReplicaId(u8::try_from(index).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link::new(None, 1)
    }

    fn node(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    #[test]
    fn an_earlier_life_of_a_node_is_not_taken() {
        let mut link = link();
        assert!(link.record_life(node(7), Incarnation(2), 20));
        assert!(link.record_life(node(7), Incarnation(2), 20), "it has connected anew");
        assert!(link.record_life(node(7), Incarnation(4), 40));
        for (life, process) in [(1, 10), (2, 20), (3, 30)] {
            assert!(!link.record_life(node(7), Incarnation(life), process), "life {life}");
        }
        assert!(link.record_life(node(7), Incarnation(4), 40), "the latest one has not changed");
        assert!(link.record_life(node(8), Incarnation(1), 50), "another node begins at 1");
    }

    #[test]
    fn a_life_that_another_process_has_been_is_not_taken() {
        let mut link = link();
        // The node is started; then its directory is put back as it was before, and started.
        assert!(link.record_life(node(7), Incarnation(3), 30) && link.record_process(30));
        assert!(!link.record_life(node(7), Incarnation(3), 31));
        assert!(link.record_life(node(7), Incarnation(3), 30));
    }

    #[test]
    fn after_two_processes_ran_at_once_the_original_is_taken_when_it_starts_again() {
        let mut link = link();
        assert!(link.record_life(node(7), Incarnation(3), 30) && link.record_process(30));
        // A copy of the running node's directory is started, as life 4, and takes its place for a moment.
        assert!(link.record_life(node(7), Incarnation(4), 40) && link.record_process(40));
        assert!(link.was_replaced(30));
        assert!(!link.record_process(30), "neither is counted");
        assert!(link.was_replaced(40));
        assert!(link.record_life(node(7), Incarnation(4), 41) && link.record_process(41));
    }

    #[test]
    fn builds_that_count_no_lives_are_taken_and_change_nothing() {
        let mut link = link();
        assert!(link.record_life(node(7), Incarnation(3), 30));
        assert!(link.record_life(node(7), Incarnation::UNKNOWN, 31));
        assert!(!link.record_life(node(7), Incarnation(2), 32));
    }
}

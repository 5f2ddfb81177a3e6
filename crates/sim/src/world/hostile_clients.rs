//! Somebody who speaks the protocol and keeps to none of its rules: no client of the world, and no operation of the history.

use super::World;
use crate::clock::Clock;
use crate::workload::{ClientCommand, encode};
use syros_protocol::message::{Body, Message, Path, Peer, Refusal, Request};
use syros_protocol::replica;
use syros_types::{OperationId, ReplicaId, ReplicaSet, SessionId, View};

/// The address of the first stranger. Clients of the world have small ones.
const FIRST_ADDRESS: u64 = 1 << 32;

/// The stranger that takes over sessions of others.
const THIEF: u32 = 0;

/// The stranger that has a session of its own, and is broken.
const BROKEN: u32 = 1;

/// A client that sends two updates under one id. Neither changes anything, so that nobody sees which one was executed; but
/// all replicas must execute the same one, and none may vouch for both.
#[derive(Debug, Default)]
pub(crate) struct BrokenClient {
    nonce: u64,
    session: Option<SessionId>,
    /// The last update that it has sent.
    sequence: u64,
    /// Which replicas have accepted that one: it sends each update to each replica once.
    accepted_by: ReplicaSet,
}

impl World {
    /// Hands a message to a replica as stranger number `stranger` would, on a connection of its own. Nothing delays or loses
    /// it.
    pub fn intrude(&mut self, stranger: u32, replica: usize, message: Message) {
        let from = Peer::Client(FIRST_ADDRESS + u64::from(stranger));
        let life = self.replicas[replica].life;
        self.tell(replica, life, replica::Event::Message { from, message });
    }

    /// Somebody sends all replicas an update under an id that a client is about to use, or has just used. False if no client
    /// has a session yet.
    pub(crate) fn take_over_a_session(&mut self) -> bool {
        let recent = self.history.operations().iter().rev().filter_map(|operation| operation.id).take(8);
        let recent: Vec<OperationId> = recent.collect();
        if recent.is_empty() {
            return false;
        }
        let dice = &mut self.dice.nemesis;
        let known = recent[dice.below(recent.len() as u64) as usize];
        let id = OperationId { sequence: known.sequence + dice.below(3), ..known };
        let key = dice.below(self.swarm.workload.keys);
        let (claims, nonce) = (dice.chance(1, 2), dice.next_u64());
        let path = if dice.chance(3, 4) { Path::Durability } else { Path::Ordered };
        let body = encode(&[ClientCommand::Set(key, b"stolen".to_vec())]);
        let micros = self.clock_micros();
        for replica in 0..self.replicas.len() {
            let Some(view) = self.replica(replica).map(|process| process.core().view()) else { continue };
            if claims {
                self.intrude(THIEF, replica, Message::Attach { session: id.session, nonce });
            }
            let request = Request { id, micros, acked_below: id.sequence, body: body.clone().into() };
            let message = Message::Request { view, path, recipients: ReplicaSet::ALL, request };
            self.intrude(THIEF, replica, message);
        }
        true
    }

    /// A client that is broken sends replicas one or the other of two updates under one id, or both. False if it has no
    /// session yet, and asks for one.
    pub(crate) fn send_two_bodies(&mut self) -> bool {
        let views: Vec<Option<View>> = (0..self.replicas.len())
            .map(|replica| self.replica(replica).map(|process| process.core().view()))
            .collect();
        let to = || views.iter().enumerate().filter_map(|(replica, view)| Some((replica, (*view)?)));
        let Some(session) = self.broken_client.session else {
            let nonce = self.dice.nemesis.next_u64() | 1;
            self.broken_client.nonce = nonce;
            for (replica, view) in to() {
                self.intrude(BROKEN, replica, Message::Register { view, nonce });
            }
            return false;
        };
        let nonce = self.broken_client.nonce;
        self.broken_client.sequence += 1;
        self.broken_client.accepted_by = ReplicaSet::default();
        let id = OperationId { session, sequence: self.broken_client.sequence };
        // Keys that nobody has.
        const KEYS: u64 = 1 << 40;
        let bodies: [Body; 2] = [0, 1].map(|which| {
            let key = KEYS + 2 * id.sequence + which;
            encode(&[ClientCommand::Del { key, blind: true }]).into()
        });
        let micros = self.clock_micros();
        for (replica, view) in to() {
            let dice = &mut self.dice.nemesis;
            let first = dice.below(2) as usize;
            let sent = if dice.chance(1, 2) { vec![first, 1 - first] } else { vec![first] };
            self.intrude(BROKEN, replica, Message::Attach { session, nonce });
            for which in sent {
                let request = Request { id, micros, acked_below: id.sequence, body: bodies[which].clone() };
                let (path, recipients) = (Path::Durability, ReplicaSet::ALL);
                self.intrude(BROKEN, replica, Message::Request { view, path, recipients, request });
            }
        }
        true
    }

    /// What the broken client is told.
    fn tell_broken_client(&mut self, from: usize, message: &Message) {
        let client = &mut self.broken_client;
        match message {
            Message::Registered { nonce, session, .. } if *nonce == client.nonce => {
                client.session = Some(*session);
                client.sequence = 0;
            }
            Message::Refused { id, refusal: Refusal::UnknownSession, .. }
                if client.session == Some(id.session) =>
            {
                client.session = None;
            }
            Message::Ok { id, .. }
                if client.session == Some(id.session) && id.sequence == client.sequence =>
            {
                // What has been executed is known by its id alone: whoever asks hears that, and nobody vouches for anything.
                if self.invariants.position(*id).is_some() {
                    return;
                }
                let from = ReplicaId(from as u8);
                if client.accepted_by.contains(from) {
                    self.invariants.accepted_two(from, *id);
                }
                self.broken_client.accepted_by = self.broken_client.accepted_by.with(from);
            }
            _ => {}
        }
    }

    /// What a clock that is right says, in microseconds.
    fn clock_micros(&self) -> u64 {
        Clock::new(self.now(), 1, 0, 0).now(self.now()).wall.0
    }

    /// What strangers have been told since they were asked last: which one, by whom, and what.
    pub fn overheard(&mut self) -> Vec<(u32, usize, Message)> {
        std::mem::take(&mut self.overheard)
    }

    /// Keeps an answer if it is for a stranger.
    pub(super) fn overhear(&mut self, address: u64, from: usize, bytes: &[u8]) {
        // Whoever listens does so at once.
        const OVERHEARD_MAX: usize = 1 << 17;
        if let Some(stranger) =
            address.checked_sub(FIRST_ADDRESS).and_then(|number| u32::try_from(number).ok())
        {
            let message = crate::adapter::decode_message(bytes);
            if stranger == BROKEN {
                self.tell_broken_client(from, &message);
            }
            if self.overheard.len() < OVERHEARD_MAX {
                self.overheard.push((stranger, from, message));
            }
        }
    }
}

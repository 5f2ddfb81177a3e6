//! Somebody who speaks the protocol and keeps to none of its rules: no client of the world, and no operation of the history.

use super::World;
use crate::clock::Clock;
use crate::workload::{Step, encode};
use syros_protocol::message::{Message, Path, Peer, Request};
use syros_protocol::replica;
use syros_types::{OperationId, ReplicaSet};

/// The address of the first stranger. Clients of the world have small ones.
const FIRST_ADDRESS: u64 = 1 << 32;

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
        let body = encode(&[Step::Set(key, b"stolen".to_vec())]);
        let micros = self.clock_micros();
        for replica in 0..self.replicas.len() {
            let Some(view) = self.replica(replica).map(|process| process.core().view()) else { continue };
            if claims {
                self.intrude(0, replica, Message::Attach { session: id.session, nonce });
            }
            let request = Request { id, micros, acked_below: id.sequence, body: body.clone().into() };
            let message = Message::Request { view, path, recipients: ReplicaSet::ALL, request };
            self.intrude(0, replica, message);
        }
        true
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
            && self.overheard.len() < OVERHEARD_MAX
        {
            self.overheard.push((stranger, from, crate::adapter::decode_message(bytes)));
        }
    }
}

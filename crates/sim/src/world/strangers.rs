//! Somebody who speaks the protocol and keeps to none of its rules: no client of the world, and no operation of the history.

use super::World;
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica;

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

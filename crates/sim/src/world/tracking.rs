//! The Redis clients that keep copies of what they read: CLIENT TRACKING.
//!
//! They are clients of nodes, on connections of their own, and all of it has dice of its own. What they read is no part of the
//! history: their replies are compared with their copies, and when everything has been repaired and nothing changes any more,
//! their copies with the state.

use super::redis::SocketEvent;
use super::{SimEvent, World};
use crate::client::ClientProcess;
use crate::copies_ledger::{CopiesLedger, Question};
use crate::resp_client::command_of;
use crate::swarm::{MILLI, SECOND, Swarm};
use crate::tally::Occurrence;
use crate::workload::key_name;
use std::collections::BTreeMap;
use syros_types::Prng;

/// What clients ask of keys. Of a key of another type the answer is an error, and that is kept, too.
const QUESTIONS: [&[u8]; 5] = [b"GET", b"GET", b"LLEN", b"SCARD", b"EXISTS"];

/// Everything about clients that keep copies in a world.
#[derive(Debug)]
pub(crate) struct Tracking {
    dice: Prng,
    /// Connections of such clients at each node that has any.
    keepers: BTreeMap<usize, Vec<Option<u64>>>,
    ledger: CopiesLedger,
    /// They read no more.
    is_over: bool,
}

impl Tracking {
    pub(super) fn new(swarm: &Swarm) -> Self {
        Self {
            dice: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0050),
            keepers: BTreeMap::new(),
            ledger: CopiesLedger::default(),
            is_over: false,
        }
    }

    /// A process has ended, and with it its connections.
    pub(super) fn end(&mut self, slot: usize) {
        self.keepers.remove(&slot);
        self.ledger.process_gone(slot);
    }

    /// True if a connection is one of a client that keeps copies.
    pub(super) fn is_keeper(&self, slot: usize, address: u64) -> bool {
        self.keepers.get(&slot).is_some_and(|keepers| keepers.contains(&Some(address)))
    }

    /// The connection of a client is gone. False if it is one of another client.
    pub(super) fn forget(&mut self, slot: usize, address: u64) -> bool {
        let keepers = self.keepers.get_mut(&slot).into_iter().flatten();
        let mut of_this = keepers.filter(|keeper| **keeper == Some(address));
        let Some(keeper) = of_this.next() else { return false };
        *keeper = None;
        self.ledger.gone((slot, address));
        true
    }
}

impl World {
    /// Clients of each node that keep copies.
    pub(super) fn keepers(&self) -> usize {
        self.swarm.front_ends.map_or(0, |world| world.keepers)
    }

    /// A front end has started: clients come that keep copies.
    pub(super) fn begin_tracking(&mut self, slot: usize) {
        let count = self.keepers();
        if count == 0 || self.home_of(slot).is_none() {
            return;
        }
        self.tracking.keepers.insert(slot, vec![None; count]);
        (0..count).for_each(|place| self.schedule_track(slot, place));
    }

    fn schedule_track(&mut self, slot: usize, place: usize) {
        let speed = u64::from(self.swarm.protocol.speed);
        let pause = if self.tracking.dice.chance(1, 2) { MILLI } else { 20 * MILLI };
        let at = self.now() + 1 + self.tracking.dice.below(pause / speed);
        let life = self.clients[slot].life;
        self.scheduler.schedule(at, SimEvent::Track { slot, life, place });
    }

    /// Such a client reads something, or goes.
    pub(super) fn track(&mut self, slot: usize, life: u64, place: usize) {
        if self.clients[slot].life != life || self.clients[slot].process.is_none() || self.tracking.is_over {
            return;
        }
        self.schedule_track(slot, place);
        let keeper = self.tracking.keepers.get(&slot).and_then(|keepers| *keepers.get(place)?);
        let Some(address) = keeper else { return self.connect_keeper(slot, place) };
        // Who always had something under way would leave others nothing where few operations may be in flight; and so would
        // several that take turns.
        let is_scarce = self.swarm.protocol.in_flight_max <= self.keepers();
        let mut of_node = self.tracking.keepers.get(&slot).into_iter().flatten().flatten();
        let others_await = of_node.any(|keeper| self.tracking.ledger.awaits((slot, *keeper)));
        if self.tracking.ledger.awaits((slot, address)) || (is_scarce && others_await) {
            return;
        }
        if !self.is_healed && self.tracking.dice.chance(1, 200) {
            return self.socket_event(slot, life, address, SocketEvent::Closes);
        }
        let mut bytes = Vec::new();
        for _ in 0..=self.tracking.dice.below(3) {
            let question = self.question();
            command_of(&question.each_ref().map(Vec::as_slice), &mut bytes);
            self.tracking.ledger.ask((slot, address), question);
        }
        self.send_in_pieces(slot, address, &bytes);
    }

    fn question(&mut self) -> Question {
        let dice = &mut self.tracking.dice;
        let collections = self.workload.collection_keys();
        let of_strings = self.workload.expiring_keys().end;
        let of_collections = collections.end - collections.start;
        let key = if of_collections > 0 && dice.chance(1, 2) {
            collections.start + dice.below(of_collections)
        } else {
            dice.below(of_strings)
        };
        let question = QUESTIONS[dice.below(QUESTIONS.len() as u64) as usize];
        [question.to_vec(), key_name(key)]
    }

    /// A client connects that keeps copies, of all that it reads or of keys that begin in some way.
    fn connect_keeper(&mut self, slot: usize, place: usize) {
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        let Some(address) = process.host().and_then(|host| host.connect_talker(now)) else { return };
        if let Some(keeper) = self.tracking.keepers.get_mut(&slot).and_then(|keepers| keepers.get_mut(place))
        {
            *keeper = Some(address);
        }
        let prefix: Option<&[u8]> = match self.tracking.dice.below(6) {
            0 => Some(b""),
            1 => Some(b"k1"),
            _ => None,
        };
        self.tracking.ledger.begin((slot, address), prefix.map(<[u8]>::to_vec));
        let mut bytes = Vec::new();
        command_of(&[b"HELLO", b"3"], &mut bytes);
        match prefix {
            None => command_of(&[b"CLIENT", b"TRACKING", b"ON"], &mut bytes),
            Some(prefix) => {
                let words: [&[u8]; 6] = [b"CLIENT", b"TRACKING", b"ON", b"BCAST", b"PREFIX", prefix];
                command_of(&words, &mut bytes);
            }
        }
        self.send_in_pieces(slot, address, &bytes);
    }

    /// Hands bytes to a client if it is one that keeps copies. False if it is another one.
    pub(super) fn hears_as_keeper(&mut self, slot: usize, address: u64, bytes: &[u8]) -> bool {
        if !self.tracking.is_keeper(slot, address) {
            return false;
        }
        let now = self.now();
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let Some(what) = host.map(|host| host.hear(address, bytes)) else { return true };
        let heard = what.and_then(|replies| {
            replies.into_iter().try_for_each(|reply| {
                self.trace.line(now, format_args!("client {slot} {address:x} hears {reply:?}"));
                self.tracking.ledger.hear((slot, address), reply)
            })
        });
        if let Err(problem) = heard {
            _ = self.misanswered.get_or_insert(problem);
        }
        true
    }

    /// When everything has been repaired, clients read while others write, for a while; then nothing changes any more, and every
    /// copy must be right.
    ///
    /// # Errors
    /// What a client has not been told to drop.
    pub(crate) fn copies_phase(&mut self) -> Result<(), String> {
        if self.keepers() == 0 {
            return Ok(());
        }
        let speed = u64::from(self.swarm.protocol.speed);
        for _ in 0..20 {
            self.change_something();
            self.advance(5 * MILLI / speed)?;
        }
        // Some reads are under way while the last updates are.
        self.change_something();
        self.tracking.is_over = true;
        self.change_something();
        let deadline = self.now() + self.liveness_bound();
        while !self.history.all_finished() || self.tracking.ledger.is_busy() {
            if self.now() > deadline {
                return Err(format!("clients that keep copies are not answered; {}", self.statuses()));
            }
            self.advance(MILLI)?;
        }
        self.become_equal()?;
        // What has been said arrives, however slowly clients read.
        self.advance(2 * SECOND)?;
        self.tally.record_times(Occurrence::CopyCompared, self.tracking.ledger.compared);
        self.tally.record_times(Occurrence::CopyDropped, self.tracking.ledger.dropped);
        self.tracking.ledger.judge(|body| self.look_at_state(body))
    }

    /// Some client does what it would do.
    fn change_something(&mut self) {
        let slot = self.tracking.dice.below(self.clients.len() as u64) as usize;
        let steps = self.workload.next(slot);
        self.submit(slot, steps);
    }
}

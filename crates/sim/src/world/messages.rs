//! Front ends that send each other messages, and the Redis clients that publish and subscribe.
//!
//! Between two front ends there is a connection, as TCP gives it: what is sent arrives in order, or the connection breaks,
//! both ends hear of it, and it is made anew after a while. (It may arrive twice, which TCP does not do.) These
//! clients have connections of their own, and all of it has dice of its own, so that worlds without them are not changed.

use super::redis::SocketEvent;
use super::{SimEvent, World};
use crate::client::ClientProcess;
use crate::clock::VirtualTime;
use crate::message_ledger::{Channel, ConnectionName, MessageLedger, channel_name};
use crate::resp_client::{Received, command_of};
use crate::swarm::{MILLI, SECOND};
use crate::tally::Occurrence;
use std::collections::BTreeMap;
use std::rc::Rc;
use syros_node::front_end::MessagePeer;
use syros_types::{Prng, ReplicaId};
use syros_wire::FrontEndMessage;

/// Channels that clients use: few, so that they meet.
const CHANNELS: u64 = 3;

/// The script by which they publish.
const SCRIPT: &[u8] = b"return redis.call('publish', ARGV[1], ARGV[2])";

/// Clients of a front end that publish and subscribe.
const TALKERS: usize = 3;

/// A connection between two front ends.
#[derive(Clone, Copy, Debug)]
struct PeerLink {
    /// No other has this number.
    number: u64,
    /// When the last message in each direction arrives.
    busy_until: [VirtualTime; 2],
}

/// Everything about messages in a world.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// By the places of both, the smaller one first.
    links: BTreeMap<(usize, usize), PeerLink>,
    next_link: u64,
    pub(super) ledger: MessageLedger,
    dice: Prng,
    /// Connections of clients that publish and subscribe, if they are there; the first of a process publishes.
    talkers: BTreeMap<usize, [Option<u64>; TALKERS]>,
}

impl Conversation {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            links: BTreeMap::new(),
            next_link: 0,
            ledger: MessageLedger::default(),
            dice: Prng::new(seed ^ 0x5397_0a11_5eed_0040),
            talkers: BTreeMap::new(),
        }
    }

    /// True if a connection is one of a client that publishes and subscribes.
    pub(super) fn is_talker(&self, slot: usize, address: u64) -> bool {
        self.talkers.get(&slot).is_some_and(|talkers| talkers.contains(&Some(address)))
    }
}

/// True if a message tells of the execution of the log. All that comes of an entry has one number, so that a front end can
/// tell one node from another, and not one message from a copy. TCP makes no copies.
const fn is_of_log(message: &FrontEndMessage) -> bool {
    matches!(
        message,
        FrontEndMessage::Published { origin: FrontEndMessage::OF_KEYS | FrontEndMessage::OF_SCRIPTS, .. }
    )
}

/// A link's name, and the direction from one end.
fn link_of(from: usize, to: usize) -> ((usize, usize), usize) {
    if from < to { ((from, to), 0) } else { ((to, from), 1) }
}

impl World {
    /// True if clients of front ends publish and subscribe.
    pub(super) fn converses(&self) -> bool {
        self.swarm.front_ends.is_some_and(|world| world.converses)
    }

    /// The name that others have for a front end.
    fn peer_name(&self, slot: usize) -> MessagePeer {
        match self.home_of(slot) {
            Some(home) => MessagePeer::Member(ReplicaId(home as u8)),
            None => MessagePeer::Gateway(slot as u64),
        }
    }

    /// A front end has started: others connect to it, and its clients begin.
    pub(super) fn begin_conversation(&mut self, slot: usize) {
        if !self.converses() {
            return;
        }
        for other in 0..self.clients.len() {
            let is_one_a_node = self.home_of(slot).is_some() || self.home_of(other).is_some();
            if other != slot && self.is_front_end(other) && is_one_a_node {
                self.schedule_peers(slot, other);
            }
        }
        self.schedule_talk(slot);
    }

    /// A front end has ended, and with it its connections.
    pub(super) fn end_conversation(&mut self, slot: usize) {
        self.conversation.ledger.process_gone(slot);
        self.conversation.talkers.remove(&slot);
        let links: Vec<(usize, usize)> = self.conversation.links.keys().copied().collect();
        for (one, two) in links.into_iter().filter(|(one, two)| *one == slot || *two == slot) {
            self.conversation.links.remove(&(one, two));
            let other = if one == slot { two } else { one };
            let name = self.peer_name(slot);
            self.at_host(other, |host, now| host.front_end_mut().on_peer_lost(now, name));
        }
    }

    fn schedule_peers(&mut self, one: usize, two: usize) {
        let retry = self.swarm.protocol.client_reconnect.as_nanos() as u64;
        let at = self.now() + 1 + self.conversation.dice.below(retry + 1);
        let lives = (self.clients[one].life, self.clients[two].life);
        self.scheduler.schedule(at, SimEvent::PeersConnect { ends: (one, two), lives });
    }

    /// Has a front end do something, if it runs.
    fn at_host(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut crate::redis_host::RedisHost, syros_types::Now),
    ) {
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        if let Some(host) = process.host() {
            act(host, now);
            self.drain_client(slot);
        }
    }

    /// Two front ends connect, if they can.
    pub(super) fn connect_peers(&mut self, (one, two): (usize, usize), lives: (u64, u64)) {
        let is_current = (self.clients[one].life, self.clients[two].life) == lives;
        let run = self.clients[one].process.is_some() && self.clients[two].process.is_some();
        let (key, _) = link_of(one, two);
        if !is_current || !run || self.conversation.links.contains_key(&key) {
            return;
        }
        let (here, there) = (self.place_of(self.client_node(one)), self.place_of(self.client_node(two)));
        if self.network.is_cut(here, there) || self.network.is_cut(there, here) {
            return self.schedule_peers(one, two);
        }
        self.conversation.next_link += 1;
        let number = self.conversation.next_link;
        self.conversation.links.insert(key, PeerLink { number, busy_until: [0; 2] });
        for (slot, other) in [(one, two), (two, one)] {
            let name = self.peer_name(other);
            // A gateway makes itself known with its first message.
            if matches!(name, MessagePeer::Member(_)) {
                self.at_host(slot, |host, now| host.front_end_mut().on_peer_connected(now, name));
            }
        }
    }

    /// The connection between two front ends breaks: both find out.
    fn break_peers(&mut self, one: usize, two: usize) {
        if self.conversation.links.remove(&link_of(one, two).0).is_none() {
            return;
        }
        self.tally.record(Occurrence::PeersParted);
        for (slot, other) in [(one, two), (two, one)] {
            let name = self.peer_name(other);
            self.at_host(slot, |host, now| host.front_end_mut().on_peer_lost(now, name));
        }
        self.schedule_peers(one, two);
    }

    /// A front end sends a message to another one.
    pub(super) fn send_to_peer(&mut self, from: usize, to: MessagePeer, message: &FrontEndMessage) {
        let to = match to {
            MessagePeer::Member(replica) => replica.index(),
            MessagePeer::Gateway(slot) => slot as usize,
        };
        let (key, direction) = link_of(from, to);
        let (here, there) = (self.place_of(self.client_node(from)), self.place_of(self.client_node(to)));
        let faults = &self.swarm.network;
        let (loss, duplicates, jitter) = match self.is_healed {
            true => (0, 0, faults.jitter),
            false => (faults.loss_ppm + 2_000, faults.duplicate_ppm + 20_000, faults.jitter),
        };
        let dice = &mut self.conversation.dice;
        let is_lost = self.network.is_cut(here, there) || dice.chance(loss, 1_000_000);
        let is_twice = dice.chance(duplicates, 1_000_000) && !is_of_log(message);
        let delay = self.network.delay(here, there) + dice.below(jitter + 1);
        let now = self.scheduler.now();
        let Some(link) = self.conversation.links.get_mut(&key) else { return };
        let at = link.busy_until[direction].max(now + delay);
        link.busy_until[direction] = at;
        let number = link.number;
        if is_lost {
            let event = SimEvent::PeersPart { ends: (from, to), link: number };
            return self.scheduler.schedule(now + delay, event);
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let bytes: Rc<[u8]> = bytes.into();
        for _ in 0..=usize::from(is_twice) {
            let event = SimEvent::PeerMessage { ends: (from, to), link: number, bytes: bytes.clone() };
            self.scheduler.schedule(at, event);
        }
    }

    /// The connection of two front ends has lost something, and ends.
    pub(super) fn part_peers(&mut self, (from, to): (usize, usize), link: u64) {
        if self.conversation.links.get(&link_of(from, to).0).is_some_and(|it| it.number == link) {
            self.break_peers(from, to);
        }
    }

    /// A message of another front end arrives.
    pub(super) fn peer_message(&mut self, (from, to): (usize, usize), link: u64, bytes: &Rc<[u8]>) {
        if self.conversation.links.get(&link_of(from, to).0).is_none_or(|it| it.number != link) {
            return;
        }
        if let Some(until) = self.stands_still_until(to) {
            let event = SimEvent::PeerMessage { ends: (from, to), link, bytes: bytes.clone() };
            return self.scheduler.schedule(until, event);
        }
        self.trace.fold_bytes(bytes);
        let message = FrontEndMessage::decode(bytes).expect("what was encoded can be decoded");
        let now = self.now();
        self.trace.line(now, format_args!("front end {from} -> {to}: {message:?}"));
        let name = self.peer_name(from);
        self.at_host(to, |host, now| host.front_end_mut().on_peer_message(now, name, message));
    }

    // ---- The clients.

    fn schedule_talk(&mut self, slot: usize) {
        let speed = u64::from(self.swarm.protocol.speed);
        let at = self.now() + 1 + self.conversation.dice.below(40 * MILLI / speed);
        let life = self.clients[slot].life;
        self.scheduler.schedule(at, SimEvent::Talk { slot, life });
    }

    /// One of the clients that publish and subscribe does something.
    pub(super) fn talk(&mut self, slot: usize, life: u64) {
        if self.clients[slot].life != life || self.clients[slot].process.is_none() {
            return;
        }
        if self.swarm.front_ends.is_none_or(|world| !world.talks_on) {
            return;
        }
        self.schedule_talk(slot);
        // The publisher has the most to say.
        let place = (self.conversation.dice.below(TALKERS as u64 + 2) as usize).saturating_sub(2);
        let talkers = self.conversation.talkers.entry(slot).or_default();
        let Some(address) = talkers[place] else { return self.connect_talker(slot, place) };
        let channel = self.conversation.dice.below(CHANNELS) as Channel;
        let who: ConnectionName = (slot, life, address);
        if !self.is_healed && self.conversation.dice.chance(1, 60) {
            return self.socket_event(slot, life, address, SocketEvent::Closes);
        }
        let mut bytes = Vec::new();
        if place == 0 {
            for _ in 0..=self.conversation.dice.below(3) {
                // Between healing and the last second the log has to come to rest, which scripts are in.
                let is_time = !self.is_healed || self.conversation.ledger.is_quiet;
                let may_use_scripts =
                    is_time && self.swarm.front_ends.is_some_and(|world| world.scripts_publish);
                let by_script = may_use_scripts && self.conversation.dice.chance(1, 3);
                let (name, now) = (channel_name(channel), self.scheduler.now());
                let text = self.conversation.ledger.publish((who, by_script), channel, now);
                if by_script {
                    command_of(&[b"EVAL", SCRIPT, b"0", &name, &text], &mut bytes);
                } else {
                    command_of(&[b"PUBLISH", &name, &text], &mut bytes);
                }
            }
        } else if !self.is_healed && self.conversation.dice.chance(1, 4) {
            self.conversation.ledger.unsubscribe(who, channel);
            command_of(&[b"UNSUBSCRIBE", &channel_name(channel)], &mut bytes);
        } else {
            self.conversation.ledger.subscribe(who, channel);
            command_of(&[b"SUBSCRIBE", &channel_name(channel)], &mut bytes);
        }
        self.send_in_pieces(slot, address, &bytes);
    }

    /// A client connects that publishes, if it is the first one, or subscribes.
    fn connect_talker(&mut self, slot: usize, place: usize) {
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        let address = process.host().and_then(|host| host.connect_talker(now));
        self.conversation.talkers.entry(slot).or_default()[place] = address;
    }

    /// Such a client hears something.
    pub(super) fn hear(&mut self, slot: usize, address: u64, what: Result<Vec<Received>, String>) {
        let (now, who) = (self.now(), (slot, self.clients[slot].life, address));
        let heard = what.and_then(|replies| {
            replies.into_iter().try_for_each(|reply| self.conversation.ledger.hear(who, &reply, now))
        });
        if let Err(problem) = heard {
            _ = self.misanswered.get_or_insert(problem);
        }
    }

    /// The connection of such a client is gone.
    pub(super) fn forget_talker(&mut self, slot: usize, address: u64) {
        let who = (slot, self.clients[slot].life, address);
        self.conversation.ledger.gone(who);
        if let Some(talkers) = self.conversation.talkers.get_mut(&slot) {
            talkers.iter_mut().filter(|talker| **talker == Some(address)).for_each(|talker| *talker = None);
        }
    }

    /// When everything has been repaired, clients publish and subscribe for a while, and must hear everything.
    ///
    /// # Errors
    /// What they have not heard.
    pub(crate) fn conversation_phase(&mut self) -> Result<(), String> {
        if !self.converses() {
            return Ok(());
        }
        // Soon all subscribe to everything. What breaks last, breaks when nothing changes any more.
        self.run_until(self.now() + 3 * SECOND);
        let links: Vec<(usize, usize)> = self.conversation.links.keys().copied().collect();
        links.into_iter().for_each(|(one, two)| self.break_peers(one, two));
        // Peers that have not answered are told everything anew, as often as it takes.
        self.run_until(self.now() + 3 * SECOND);
        self.conversation.ledger.is_quiet = true;
        let snapshots = self.tally.count(Occurrence::SnapshotInstalled);
        self.run_until(self.now() + SECOND);
        self.swarm.front_ends = self.swarm.front_ends.map(|mut world| {
            world.talks_on = false;
            world
        });
        // Where a socket takes seven bytes at a time, clients have yet to read what was said long ago.
        let mut delivered = None;
        while delivered.replace(self.conversation.ledger.delivered)
            != Some(self.conversation.ledger.delivered)
        {
            self.run_until(self.now() + 3 * SECOND);
        }
        self.violation().map_or(Ok(()), Err)?;
        self.tally.record_times(Occurrence::Delivered, self.conversation.ledger.delivered);
        let owes_scripts = self.tally.count(Occurrence::SnapshotInstalled) == snapshots;
        self.conversation.ledger.judge(owes_scripts)
    }

    /// Hands bytes to a client if it is one that publishes and subscribes. False if it is another one.
    pub(super) fn hears_as_talker(&mut self, slot: usize, address: u64, bytes: &[u8]) -> bool {
        if !self.conversation.is_talker(slot, address) {
            return false;
        }
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        if let Some(what) = host.map(|host| host.hear(address, bytes)) {
            self.hear(slot, address, what);
        }
        true
    }
}

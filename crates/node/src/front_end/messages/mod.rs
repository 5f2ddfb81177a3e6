//! Messages between clients: who subscribes to what, at this process and behind others, and who gets what is published.
//!
//! A published message is in no log. It goes to the front ends that have said that they reach subscribers of its channel,
//! at most once, and in the order of each publisher.
//!
//! **Who tells whom.** Nodes tell each other how many subscribers of each name they reach: their own clients, and those of
//! gateways. A gateway tells one of the nodes it is connected to, its *home*, of its clients, and is told by all of them. A
//! publisher's front end sends a message to every node that reaches subscribers, and a node to its gateways. So
//! every message takes one way to every front end.
//!
//! **Nothing of it is lost.** What a peer is told is numbered, and answered. If an answer does not come in time, or a
//! connection has been made anew, the peer is told everything anew.
//!
//! **A SUBSCRIBE is answered** when all peers have answered that they know of it, those of a gateway's home included; no
//! later than [`SETTLE_MAX`]. So a message that is published anywhere after the answer is not missed. Who subscribes is
//! counted before that, and gets what is published meanwhile behind the answer.
//!
//! **Twice.** A message carries the number of its origin and its own. What is not newer than the last one of its origin is
//! dropped: so a gateway that has changed its home gets nothing twice.
//!
//! **Events of keys and messages of scripts** come from the execution of the log: `key_events`.

mod key_events;
mod peer;
mod registry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub use registry::{SUBSCRIPTION_BYTES_MAX, SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_PER_CONNECTION_MAX};

use peer::{Heard, Peer};
use registry::{EarlyMessage, Registry};
use syros_commands::glob_matches;
use syros_protocol::message::Body;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::{KeyspaceEvents, MessageAnswer, MessageRequest, PushedMessage, SubscriptionChange};
use syros_types::{Instant, ReplicaId, SubscriptionKind};
use syros_wire::{FrontEndMessage, Interest};

/// Another process with a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessagePeer {
    /// A node.
    Member(ReplicaId),
    /// A gateway that is connected to this node, by the address of its connection.
    Gateway(u64),
}

/// A SUBSCRIBE waits no longer than this for the answers of peers.
pub const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Names in one message to a peer, and about how many bytes they take: other messages get their turn between two of them.
const INTERESTS_PER_MESSAGE: usize = 4096;
const INTEREST_BYTES_PER_MESSAGE: usize = 256 * 1024;

/// Origins whose last number is remembered: far more than front ends that publish at a time.
const ORIGINS_MAX: usize = 4096;

/// Who waits until peers know of subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Awaiter {
    /// A connection that has subscribed to these names.
    Connection { address: u64, changes: Vec<SubscriptionChange>, names: Vec<(SubscriptionKind, Body)> },
    /// A peer that has said so in its message of this number.
    Peer { peer: MessagePeer, number: u64 },
}

/// Somebody who waits until peers know of subscribers.
#[derive(Debug)]
struct Confirmation {
    awaiter: Awaiter,
    /// The peers that have not answered, and the number of the message that tells them: `None` as long as none has.
    missing: BTreeMap<MessagePeer, Option<u64>>,
    until: Instant,
}

/// Names with subscribers among the clients of this process, for INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// Channels.
    pub channels: usize,
    /// Patterns.
    pub patterns: usize,
    /// Shard channels.
    pub shard_channels: usize,
}

/// What a request of a connection comes to.
#[derive(Debug)]
pub(super) enum Asked {
    /// This is the answer.
    Now(MessageAnswer),
    /// The answer comes with [`Messages::next_confirmed`].
    Later,
}

/// Subscriptions and messages of one process.
#[derive(Debug)]
pub(super) struct Messages {
    registry: Registry,
    peers: BTreeMap<MessagePeer, Peer>,
    /// True for a gateway: it tells its home of its subscribers.
    is_gateway: bool,
    home: Option<MessagePeer>,
    /// A number that no other front end has.
    origin: u64,
    /// The number of the last message that was published here.
    published: u64,
    /// The number of the last message of each origin, and when it came.
    heard: BTreeMap<u64, (u64, Instant)>,
    confirmations: Vec<Confirmation>,
    confirmed: VecDeque<(u64, MessageAnswer, Vec<EarlyMessage>)>,
    outbox: VecDeque<(MessagePeer, FrontEndMessage)>,
    /// Which events of keys clients are told of.
    key_events: KeyspaceEvents,
    /// The node that has told last of the execution of a log entry, and the entry: of a gateway.
    /// The node is `None` if its connection has ended since: it may start anew and execute the entry again.
    announced: Option<(Option<MessagePeer>, u64)>,
    /// Whether anybody listens to events of keys, as long as that is known.
    wants_key_events: Option<bool>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

/// Steps that a comparison of one message's channel with all patterns may take: some tenths of a second. Patterns can be
/// made so that each byte of a channel is compared with each of a pattern.
const STEPS_MAX: usize = 1 << 28;

/// Steps that the smallest request takes.
const STEPS_MIN: usize = 1 << 10;

/// Takes a message for the subscriber at an address.
pub(super) type Push<'a> = dyn FnMut(u64, &PushedMessage<'_>) + 'a;

impl Messages {
    /// No subscriptions and no peers. No other front end has this `origin`.
    pub(super) fn new(origin: u64, is_gateway: bool) -> Self {
        Self {
            registry: Registry::default(),
            peers: BTreeMap::new(),
            is_gateway,
            home: None,
            origin,
            published: 0,
            heard: BTreeMap::new(),
            confirmations: Vec::new(),
            confirmed: VecDeque::new(),
            outbox: VecDeque::new(),
            key_events: KeyspaceEvents::default(),
            announced: None,
            wants_key_events: None,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// A known-wrong variant.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn planted(self, planted: Option<PlantedBug>) -> Self {
        Self { planted, ..self }
    }

    // ---- Connections.

    /// Carries out what a connection asks.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        address: u64,
        request: MessageRequest,
        push: &mut Push<'_>,
    ) -> Asked {
        Asked::Now(match request {
            MessageRequest::Subscribe { kind, names } => return self.subscribe(now, address, kind, &names),
            MessageRequest::Unsubscribe { kind, names } => {
                self.wants_key_events = None;
                let (changes, ended) = self.registry.end(address, kind, &names);
                self.tell(ended.into_iter().map(|name| (kind, name)), None);
                MessageAnswer::Subscriptions { changes, held: self.registry.held(address) }
            }
            MessageRequest::UnsubscribeAll => {
                self.end_all(address);
                MessageAnswer::Subscriptions { changes: Vec::new(), held: [0; 3] }
            }
            MessageRequest::Publish { kind, channel, .. } if self.steps(kind, &channel) > STEPS_MAX => {
                let text =
                    "ERR this name of a channel is too long to be compared with all patterns of subscribers";
                MessageAnswer::Refused(text.to_owned())
            }
            MessageRequest::Publish { kind, channel, payload } => {
                MessageAnswer::Count(self.publish(kind, &channel, &payload, push))
            }
            MessageRequest::Names { kind, pattern } => self.matching_names(kind, pattern.as_deref()),
            MessageRequest::Counts { kind, names } => {
                let count = |name: Vec<u8>| {
                    let count = self.count(kind, &name);
                    (name, count)
                };
                MessageAnswer::Counts(names.into_iter().map(count).collect())
            }
            MessageRequest::Patterns => {
                MessageAnswer::Count(self.names(SubscriptionKind::Pattern).len() as u64)
            }
        })
    }

    /// How many steps a request may take: bytes of patterns that are looked at.
    pub(super) fn steps_of(&self, request: &MessageRequest) -> usize {
        match request {
            MessageRequest::Publish { kind, channel, .. } => self.steps(*kind, channel).min(STEPS_MAX),
            _ => STEPS_MIN,
        }
    }

    /// How many steps it may take to find the subscribers of a channel.
    fn steps(&self, kind: SubscriptionKind, channel: &[u8]) -> usize {
        if kind != SubscriptionKind::Channel {
            return STEPS_MIN;
        }
        let others = self.peers.values().map(Peer::pattern_bytes).sum::<usize>();
        let patterns = self.registry.pattern_bytes() + others;
        STEPS_MIN.saturating_add(patterns.saturating_mul(channel.len()))
    }

    fn subscribe(&mut self, now: Instant, address: u64, kind: SubscriptionKind, names: &[Vec<u8>]) -> Asked {
        self.wants_key_events = None;
        let (changes, new) = match self.registry.begin(address, kind, names) {
            Ok(begun) => begun,
            Err(text) => return Asked::Now(MessageAnswer::Refused(text)),
        };
        let names: Vec<(SubscriptionKind, Body)> = new.into_iter().map(|name| (kind, name)).collect();
        self.tell(names.iter().cloned(), None);
        let awaiter = Awaiter::Connection { address, changes, names };
        self.await_peers(now, awaiter, None);
        match self.confirmed.back() {
            // At once, so nothing has been published since.
            Some((confirmed, ..)) if *confirmed == address => {
                self.confirmed.pop_back().map_or(Asked::Later, |(_, answer, _)| Asked::Now(answer))
            }
            _ => Asked::Later,
        }
    }

    /// What a connection has subscribed to.
    pub(super) fn names_of(&self, address: u64) -> impl Iterator<Item = (SubscriptionKind, Body)> {
        self.registry.names_of(address)
    }

    /// A connection has ended.
    pub(super) fn end_all(&mut self, address: u64) {
        let ended = self.registry.end_all(address);
        self.wants_key_events = None;
        self.tell(ended.into_iter(), None);
        self.confirmations.retain(
            |it| !matches!(&it.awaiter, Awaiter::Connection { address: other, .. } if *other == address),
        );
    }

    /// The next SUBSCRIBE that is answered now: the connection, the answer, and the messages that follow it.
    pub(super) fn next_confirmed(&mut self) -> Option<(u64, MessageAnswer, Vec<EarlyMessage>)> {
        self.confirmed.pop_front()
    }

    /// Publishes a message of a client of this process; how many subscribers are known to get it.
    fn publish(
        &mut self,
        kind: SubscriptionKind,
        channel: &[u8],
        payload: &[u8],
        push: &mut Push<'_>,
    ) -> u64 {
        let mut receivers = self.registry.deliver(kind, channel, payload, push);
        let reached = self.peers.iter().map(|(name, peer)| (*name, peer.receivers(kind, channel)));
        let reached: Vec<(MessagePeer, u64)> = reached.filter(|(_, count)| *count > 0).collect();
        if !reached.is_empty() {
            self.published += 1;
            let message = FrontEndMessage::Published {
                origin: self.origin,
                number: self.published,
                kind,
                channel: channel.into(),
                payload: payload.into(),
            };
            for (peer, count) in reached {
                receivers += count;
                self.outbox.push_back((peer, message.clone()));
            }
        }
        receivers
    }

    /// How many clients of all processes subscribe to this name.
    fn count(&self, kind: SubscriptionKind, name: &[u8]) -> u64 {
        let others = self.peers.values().map(|peer| peer.count(kind, name)).sum::<u64>();
        self.registry.count(kind, name) + others
    }

    /// Answers with the names of a kind that clients of any process subscribe to: all, or those that a pattern matches.
    fn matching_names(&self, kind: SubscriptionKind, pattern: Option<&[u8]>) -> MessageAnswer {
        let mut names = self.names(kind);
        if let Some(pattern) = pattern {
            let bytes: usize = names.iter().map(|name| name.len()).sum();
            if bytes.saturating_mul(pattern.len()) > STEPS_MAX {
                let text = "ERR this pattern is too long to be compared with the names of all channels";
                return MessageAnswer::Refused(text.to_owned());
            }
            names.retain(|name| glob_matches(pattern, name));
        }
        MessageAnswer::Names(names.into_iter().map(|name| name.to_vec()).collect())
    }

    /// The names of a kind that clients of any process subscribe to.
    fn names(&self, kind: SubscriptionKind) -> BTreeSet<&Body> {
        let others = self.peers.values().flat_map(|peer| peer.names(kind));
        self.registry.names(kind).chain(others).collect()
    }

    /// Names with subscribers among the clients of this process.
    pub(super) fn counts(&self) -> SubscriptionCounts {
        let [channels, patterns, shard_channels] = self.registry.sizes();
        SubscriptionCounts { channels, patterns, shard_channels }
    }

    // ---- Peers.

    /// A peer is connected, and knows nothing.
    pub(super) fn on_connected(&mut self, now: Instant, peer: MessagePeer) {
        self.on_lost(now, peer);
        self.peers.insert(peer, Peer::new());
        self.choose_home();
    }

    /// The connection to a peer is gone, and with it all that the peer has said and been told.
    pub(super) fn on_lost(&mut self, now: Instant, peer: MessagePeer) {
        let Some(lost) = self.peers.remove(&peer) else { return };
        self.wants_key_events = None;
        if matches!(peer, MessagePeer::Gateway(_)) {
            for kind in SubscriptionKind::ALL {
                self.tell(lost.names(kind).map(|name| (kind, name.clone())), None);
            }
        }
        self.outbox.retain(|(to, _)| *to != peer);
        self.announced = self.announced.map(|(teller, last)| (teller.filter(|teller| *teller != peer), last));
        for confirmation in &mut self.confirmations {
            confirmation.missing.remove(&peer);
        }
        self.confirmations
            .retain(|it| !matches!(&it.awaiter, Awaiter::Peer { peer: other, .. } if *other == peer));
        if self.home == Some(peer) {
            self.home = None;
            self.choose_home();
        }
        self.settle(now);
    }

    /// A gateway chooses the node that it tells of its clients: not all gateways the same.
    fn choose_home(&mut self) {
        if !self.is_gateway || self.home.is_some() || self.peers.is_empty() {
            return;
        }
        let place = (self.origin % self.peers.len() as u64) as usize;
        self.home = self.peers.keys().nth(place).copied();
        if let Some(peer) = self.home.and_then(|home| self.peers.get_mut(&home)) {
            peer.needs_whole = true;
        }
    }

    /// Takes a message of a peer.
    pub(super) fn on_message(
        &mut self,
        now: Instant,
        from: MessagePeer,
        message: FrontEndMessage,
        push: &mut Push<'_>,
    ) {
        if matches!(from, MessagePeer::Gateway(_)) && !self.peers.contains_key(&from) {
            // It makes itself known with its first message.
            self.on_connected(now, from);
        }
        match message {
            FrontEndMessage::Interest { number, is_whole, entries } => {
                self.on_interest(now, from, (number, is_whole), entries);
            }
            FrontEndMessage::InterestKnown { number } => self.on_known(now, from, number),
            // Whoever owns the connections deals with them.
            FrontEndMessage::WantNodes | FrontEndMessage::Nodes { .. } => {}
            FrontEndMessage::Published {
                origin: origin @ (FrontEndMessage::OF_KEYS | FrontEndMessage::OF_SCRIPTS),
                number,
                kind,
                channel,
                payload,
            } => {
                if self.is_announced_first(from, number)
                    && (origin == FrontEndMessage::OF_SCRIPTS || self.tells_key_event(&channel, &payload))
                {
                    self.registry.deliver(kind, &channel, &payload, push);
                }
            }
            FrontEndMessage::Published { origin, number, kind, channel, payload } => {
                if !self.is_new(now, origin, number) {
                    return;
                }
                self.registry.deliver(kind, &channel, &payload, push);
                let message = FrontEndMessage::Published { origin, number, kind, channel, payload };
                self.forward(from, &message);
            }
        }
    }

    /// Hands a message that has come on to the gateways that reach subscribers.
    fn forward(&mut self, from: MessagePeer, message: &FrontEndMessage) {
        let FrontEndMessage::Published { kind, channel, .. } = message else { return };
        for (peer, state) in &self.peers {
            let is_gateway = matches!(peer, MessagePeer::Gateway(_));
            if is_gateway && *peer != from && state.receivers(*kind, channel) > 0 {
                self.outbox.push_back((*peer, message.clone()));
            }
        }
    }

    /// True if a message is newer than all of its origin that have come.
    fn is_new(&mut self, now: Instant, origin: u64, number: u64) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::MessageTwice) {
            return true;
        }
        let last = self.heard.get(&origin).map_or(0, |(last, _)| *last);
        if origin == self.origin || number <= last {
            return false;
        }
        self.heard.insert(origin, (number, now));
        if self.heard.len() > ORIGINS_MAX
            && let Some(quietest) =
                self.heard.iter().min_by_key(|(_, (_, at))| *at).map(|(origin, _)| *origin)
        {
            self.heard.remove(&quietest);
        }
        true
    }

    fn on_interest(
        &mut self,
        now: Instant,
        from: MessagePeer,
        (number, is_whole): (u64, bool),
        entries: Vec<Interest>,
    ) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        self.wants_key_events = None;
        match peer.on_interest(number, is_whole, entries) {
            Heard::Nothing => {}
            Heard::Known(number) => {
                let is_awaited =
                    |it: &Confirmation| matches!(&it.awaiter, Awaiter::Peer { peer, .. } if *peer == from);
                if !self.confirmations.iter().any(is_awaited) {
                    self.outbox.push_back((from, FrontEndMessage::InterestKnown { number }));
                }
            }
            Heard::Changed(number, changed) => {
                let awaiter = Awaiter::Peer { peer: from, number };
                if matches!(from, MessagePeer::Gateway(_)) {
                    self.tell(changed.into_iter(), Some(from));
                    self.await_peers(now, awaiter, Some(from));
                } else {
                    self.confirm(awaiter);
                }
            }
        }
    }

    fn on_known(&mut self, now: Instant, from: MessagePeer, number: u64) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        peer.on_known(now, number);
        for confirmation in &mut self.confirmations {
            if let Some(Some(needed)) = confirmation.missing.get(&from)
                && *needed <= number
            {
                confirmation.missing.remove(&from);
            }
        }
        self.settle(now);
    }

    /// Peers are to be told what has become of these names: all but one, from which it comes.
    fn tell(&mut self, names: impl Iterator<Item = (SubscriptionKind, Body)>, except: Option<MessagePeer>) {
        for (kind, name) in names {
            for (peer, state) in &mut self.peers {
                if Some(*peer) != except && (!self.is_gateway || self.home == Some(*peer)) {
                    state.mark_changed(kind, name.clone());
                }
            }
        }
    }

    /// Has somebody wait until all peers that usually answer know what they are to be told now.
    fn await_peers(&mut self, now: Instant, awaiter: Awaiter, except: Option<MessagePeer>) {
        let is_awaited = |(peer, state): &(&MessagePeer, &Peer)| {
            state.has_news() && state.answers() && Some(**peer) != except
        };
        let missing = self.peers.iter().filter(is_awaited).map(|(peer, _)| (*peer, None)).collect();
        self.confirmations.push(Confirmation { awaiter, missing, until: now.after(SETTLE_MAX) });
        self.settle(now);
    }

    /// Ends the waiting of those for whom all peers have answered, or that have waited long enough.
    fn settle(&mut self, now: Instant) {
        let is_settled = |it: &mut Confirmation| it.missing.is_empty() || it.until <= now;
        let settled: Vec<Confirmation> = self.confirmations.extract_if(.., is_settled).collect();
        for Confirmation { awaiter, .. } in settled {
            self.confirm(awaiter);
        }
    }

    fn confirm(&mut self, awaiter: Awaiter) {
        match awaiter {
            Awaiter::Connection { address, changes, names } => {
                let early = self.registry.confirm(address, &names);
                let held = self.registry.held(address);
                self.confirmed.push_back((address, MessageAnswer::Subscriptions { changes, held }, early));
            }
            Awaiter::Peer { peer, number } => {
                self.outbox.push_back((peer, FrontEndMessage::InterestKnown { number }));
            }
        }
    }

    /// The next message to a peer, if there is one.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(MessagePeer, FrontEndMessage)> {
        if self.outbox.is_empty() {
            self.put_news(now);
        }
        self.outbox.pop_front()
    }

    /// Tells peers what there is to tell.
    fn put_news(&mut self, now: Instant) {
        let with_news: Vec<MessagePeer> =
            self.peers.iter().filter(|(_, peer)| peer.has_news()).map(|(name, _)| *name).collect();
        for to in with_news {
            let Some(peer) = self.peers.get_mut(&to) else { continue };
            let is_whole = std::mem::take(&mut peer.needs_whole);
            let changed = peer.take_changed();
            #[cfg(feature = "planted-bugs")]
            let is_forgotten = is_whole && self.planted == Some(PlantedBug::SubscriptionsForgotten);
            #[cfg(not(feature = "planted-bugs"))]
            let is_forgotten = false;
            let names = if is_whole && !is_forgotten { self.names_for(to) } else { changed };
            let entries: Vec<Interest> = names
                .into_iter()
                .map(|(kind, name)| Interest { kind, subscribers: self.reached_for(to, kind, &name), name })
                .collect();
            self.put_interests(now, to, is_whole, entries);
        }
    }

    fn put_interests(&mut self, now: Instant, to: MessagePeer, is_whole: bool, entries: Vec<Interest>) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        let (mut last, mut is_first) = (0, is_whole);
        let mut rest = entries.into_iter().peekable();
        while rest.peek().is_some() || is_first {
            let (mut entries, mut bytes) = (Vec::new(), 0);
            while entries.len() < INTERESTS_PER_MESSAGE
                && bytes < INTEREST_BYTES_PER_MESSAGE
                && let Some(entry) = rest.next()
            {
                bytes += entry.name.len();
                entries.push(entry);
            }
            last = peer.next_number(now);
            let message = FrontEndMessage::Interest { number: last, is_whole: is_first, entries };
            self.outbox.push_back((to, message));
            is_first = false;
        }
        for confirmation in &mut self.confirmations {
            if let Some(number @ None) = confirmation.missing.get_mut(&to) {
                *number = Some(last);
            }
        }
    }

    /// All names that a peer is to be told of.
    fn names_for(&self, to: MessagePeer) -> BTreeSet<(SubscriptionKind, Body)> {
        let mut names = BTreeSet::new();
        for kind in SubscriptionKind::ALL {
            if !self.is_gateway || self.home == Some(to) {
                names.extend(self.registry.names(kind).map(|name| (kind, name.clone())));
            }
            for (_, gateway) in self.gateways_besides(to) {
                names.extend(gateway.names(kind).map(|name| (kind, name.clone())));
            }
        }
        names
    }

    /// How many subscribers of a name a peer reaches through this process.
    fn reached_for(&self, to: MessagePeer, kind: SubscriptionKind, name: &[u8]) -> u64 {
        let has_own = !self.is_gateway || self.home == Some(to);
        let own = if has_own { self.registry.count(kind, name) } else { 0 };
        own + self.gateways_besides(to).map(|(_, gateway)| gateway.count(kind, name)).sum::<u64>()
    }

    fn gateways_besides(&self, to: MessagePeer) -> impl Iterator<Item = (&MessagePeer, &Peer)> {
        self.peers.iter().filter(move |(peer, _)| matches!(peer, MessagePeer::Gateway(_)) && **peer != to)
    }

    /// When [`tick`](Self::tick) has something to do, at the earliest.
    pub(super) fn deadline(&self) -> Instant {
        let peers = self.peers.values().map(Peer::deadline);
        let waiting = self.confirmations.iter().map(|confirmation| confirmation.until);
        peers.chain(waiting).min().unwrap_or(Instant::NEVER)
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if now < self.deadline() {
            return;
        }
        for peer in self.peers.values_mut() {
            peer.tick(now);
        }
        self.settle(now);
    }
}

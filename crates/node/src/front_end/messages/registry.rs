//! The subscriptions of the Redis connections of this process.

use std::collections::{BTreeMap, BTreeSet};

use syros_commands::glob_matches;
use syros_protocol::message::Body;
use syros_resp::{PushedMessage, SubscriptionChange};
use syros_types::SubscriptionKind;

/// Most subscriptions of one connection. A process that has more of them to serve can have more connections.
pub const SUBSCRIPTIONS_PER_CONNECTION_MAX: usize = 1 << 17;

/// Most subscriptions of all connections of a process, and most bytes that their names take together: as many are told to
/// every node of the cluster, which keeps them in memory.
pub const SUBSCRIPTIONS_MAX: usize = 1 << 20;

/// See [`SUBSCRIPTIONS_MAX`].
pub const SUBSCRIPTION_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of messages that all connections of a process together may have [early](EarlyMessages): what one subscriber may leave
/// untaken. What comes beyond it is lost, as it is for a subscriber that is too slow.
pub(super) const EARLY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a message that came early takes besides its texts.
const EARLY_MESSAGE_BYTES: usize = 128;

/// A message that came early, for one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::front_end) struct EarlyMessage {
    kind: SubscriptionKind,
    pattern: Option<Body>,
    channel: Body,
    payload: Body,
}

impl EarlyMessage {
    fn new(message: &PushedMessage<'_>) -> Self {
        let PushedMessage { kind, pattern, channel, payload } = *message;
        Self { kind, pattern: pattern.map(Body::from), channel: channel.into(), payload: payload.into() }
    }

    /// What the subscriber is to get.
    pub(in crate::front_end) fn pushed(&self) -> PushedMessage<'_> {
        let Self { kind, pattern, channel, payload } = self;
        PushedMessage { kind: *kind, pattern: pattern.as_deref(), channel, payload }
    }

    fn bytes(&self) -> usize {
        let pattern = self.pattern.as_ref().map_or(0, |pattern| pattern.len());
        EARLY_MESSAGE_BYTES + pattern + self.channel.len() + self.payload.len()
    }
}

/// The messages for connections whose SUBSCRIBE is not answered yet: they count as subscribers already, so they get them, behind
/// that answer. Once a connection has one, all others that come for it wait behind it, so that none overtakes another.
#[derive(Debug, Default)]
struct EarlyMessages {
    of: BTreeMap<u64, Vec<EarlyMessage>>,
    bytes: usize,
}

impl EarlyMessages {
    fn keep(&mut self, address: u64, message: &PushedMessage<'_>) {
        let message = EarlyMessage::new(message);
        let messages = self.of.entry(address).or_default();
        if self.bytes + message.bytes() <= EARLY_BYTES_MAX {
            self.bytes += message.bytes();
            messages.push(message);
        }
    }

    fn take(&mut self, address: u64) -> Vec<EarlyMessage> {
        let messages = self.of.remove(&address).unwrap_or_default();
        self.bytes -= messages.iter().map(EarlyMessage::bytes).sum::<usize>();
        messages
    }
}

/// The subscribers of one name: addresses of connections, and whether their clients have been told that they subscribe.
type Subscribers = BTreeMap<u64, bool>;

/// Subscriptions by name, and by connection.
#[derive(Debug, Default)]
pub(super) struct Registry {
    subscribers: [BTreeMap<Body, Subscribers>; 3],
    held: BTreeMap<u64, [BTreeSet<Body>; 3]>,
    early: EarlyMessages,
    subscriptions: usize,
    /// Bytes that the names of each kind take.
    bytes: [usize; 3],
}

/// How many subscriptions of a connection are counted together with those of this kind.
fn counted(held: &[BTreeSet<Body>; 3], kind: SubscriptionKind) -> usize {
    let of = |kind: SubscriptionKind| held[kind.index()].len();
    match kind {
        SubscriptionKind::Shard => of(kind),
        SubscriptionKind::Channel | SubscriptionKind::Pattern => {
            of(SubscriptionKind::Channel) + of(SubscriptionKind::Pattern)
        }
    }
}

impl Registry {
    /// Begins subscriptions, which count at once and get what is published from now on when they are
    /// [confirmed](Self::confirm). What the client is to be told, and the names that it had not subscribed to.
    ///
    /// # Errors
    /// Which limit they would exceed; none of them has begun.
    pub(super) fn begin(
        &mut self,
        address: u64,
        kind: SubscriptionKind,
        names: &[Vec<u8>],
    ) -> Result<(Vec<SubscriptionChange>, Vec<Body>), String> {
        self.check(address, names)?;
        let held = self.held.entry(address).or_default();
        let (mut changes, mut new) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            if !held[kind.index()].contains(name.as_slice()) {
                let shared: Body = match self.subscribers[kind.index()].get_key_value(name.as_slice()) {
                    Some((known, _)) => known.clone(),
                    None => name.as_slice().into(),
                };
                held[kind.index()].insert(shared.clone());
                let subscribers = self.subscribers[kind.index()].entry(shared.clone()).or_default();
                subscribers.insert(address, false);
                self.subscriptions += 1;
                self.bytes[kind.index()] += name.len();
                new.push(shared);
            }
            changes.push(SubscriptionChange { name: Some(name.clone()), left: counted(held, kind) });
        }
        Ok((changes, new))
    }

    /// Which limit these subscriptions would exceed, if they were all new.
    fn check(&self, address: u64, names: &[Vec<u8>]) -> Result<(), String> {
        let held = self.held.get(&address).map_or(0, |held| held.iter().map(BTreeSet::len).sum());
        if held + names.len() > SUBSCRIPTIONS_PER_CONNECTION_MAX {
            return Err(format!(
                "ERR a connection has at most {SUBSCRIPTIONS_PER_CONNECTION_MAX} subscriptions"
            ));
        }
        if self.subscriptions + names.len() > SUBSCRIPTIONS_MAX {
            return Err(format!(
                "ERR the connections of a node have at most {SUBSCRIPTIONS_MAX} subscriptions"
            ));
        }
        if self.bytes.iter().sum::<usize>() + names.iter().map(Vec::len).sum::<usize>()
            > SUBSCRIPTION_BYTES_MAX
        {
            return Err(format!(
                "ERR the names that the clients of a node subscribe to take at most {SUBSCRIPTION_BYTES_MAX} bytes"
            ));
        }
        Ok(())
    }

    /// From now on the connection gets the messages of all that it has subscribed to. Those that have come early.
    pub(super) fn confirm(&mut self, address: u64, names: &[(SubscriptionKind, Body)]) -> Vec<EarlyMessage> {
        for (kind, name) in names {
            let subscribers = self.subscribers[kind.index()].get_mut(name);
            if let Some(is_confirmed) = subscribers.and_then(|subscribers| subscribers.get_mut(&address)) {
                *is_confirmed = true;
            }
        }
        self.early.take(address)
    }

    /// Ends subscriptions to these names, or to all of this kind if there are none. What the client is to be told, and the
    /// names that it had subscribed to.
    pub(super) fn end(
        &mut self,
        address: u64,
        kind: SubscriptionKind,
        names: &[Vec<u8>],
    ) -> (Vec<SubscriptionChange>, Vec<Body>) {
        let all = || -> Vec<Vec<u8>> {
            let held = self.held.get(&address);
            let names = held.into_iter().flat_map(|held| &held[kind.index()]);
            names.map(|name| name.to_vec()).collect()
        };
        let (all, names) = if names.is_empty() { (all(), None) } else { (Vec::new(), Some(names)) };
        let (mut changes, mut ended) = (Vec::new(), Vec::new());
        for name in names.unwrap_or(&all) {
            ended.extend(self.remove(address, kind, name));
            changes.push(SubscriptionChange { name: Some(name.clone()), left: self.left(address, kind) });
        }
        if changes.is_empty() {
            changes.push(SubscriptionChange { name: None, left: self.left(address, kind) });
        }
        if self.held(address) == [0; 3] {
            self.held.remove(&address);
        }
        (changes, ended)
    }

    fn left(&self, address: u64, kind: SubscriptionKind) -> usize {
        self.held.get(&address).map_or(0, |held| counted(held, kind))
    }

    fn remove(&mut self, address: u64, kind: SubscriptionKind, name: &[u8]) -> Option<Body> {
        let shared = self.held.get_mut(&address)?[kind.index()].take(name)?;
        let subscribers = self.subscribers[kind.index()].get_mut(name)?;
        subscribers.remove(&address);
        if subscribers.is_empty() {
            self.subscribers[kind.index()].remove(name);
        }
        self.subscriptions -= 1;
        self.bytes[kind.index()] -= name.len();
        Some(shared)
    }

    /// Ends all subscriptions of a connection; their names.
    pub(super) fn end_all(&mut self, address: u64) -> Vec<(SubscriptionKind, Body)> {
        let mut ended = Vec::new();
        for kind in SubscriptionKind::ALL {
            let names: Vec<Body> = self
                .held
                .get(&address)
                .map_or_else(Vec::new, |held| held[kind.index()].iter().cloned().collect());
            for name in names {
                self.remove(address, kind, &name);
                ended.push((kind, name));
            }
        }
        self.held.remove(&address);
        self.early.take(address);
        ended
    }

    /// What a connection has subscribed to.
    pub(super) fn names_of(&self, address: u64) -> impl Iterator<Item = (SubscriptionKind, Body)> {
        let of = move |kind: SubscriptionKind| {
            let names = self.held.get(&address).into_iter().flat_map(move |held| &held[kind.index()]);
            names.map(move |name| (kind, Body::clone(name)))
        };
        SubscriptionKind::ALL.into_iter().flat_map(of)
    }

    /// How many subscriptions a connection has, by kind.
    pub(super) fn held(&self, address: u64) -> [usize; 3] {
        self.held.get(&address).map_or([0; 3], |held| [held[0].len(), held[1].len(), held[2].len()])
    }

    /// How many connections subscribe to this name.
    pub(super) fn count(&self, kind: SubscriptionKind, name: &[u8]) -> u64 {
        self.subscribers[kind.index()].get(name).map_or(0, |subscribers| subscribers.len() as u64)
    }

    /// The names of a kind that have subscribers.
    pub(super) fn names(&self, kind: SubscriptionKind) -> impl Iterator<Item = &Body> {
        self.subscribers[kind.index()].keys()
    }

    /// How many names of each kind have subscribers.
    pub(super) fn sizes(&self) -> [usize; 3] {
        SubscriptionKind::ALL.map(|kind| self.subscribers[kind.index()].len())
    }

    /// Bytes of all patterns, one as often as it has subscribers.
    pub(super) const fn pattern_bytes(&self) -> usize {
        self.bytes[SubscriptionKind::Pattern.index()]
    }

    /// Hands a message to `push` for each of its subscribers, who are named by their addresses, or keeps it for one whose
    /// SUBSCRIBE is not answered yet; how many there were. As in Redis, one that subscribes to the channel and to patterns gets
    /// it more than once.
    pub(super) fn deliver(
        &mut self,
        kind: SubscriptionKind,
        channel: &[u8],
        payload: &[u8],
        push: &mut dyn FnMut(u64, &PushedMessage<'_>),
    ) -> u64 {
        let mut receivers = 0;
        let early = &mut self.early;
        let mut push_to = |subscribers: &Subscribers, pattern| {
            let message = PushedMessage { kind, pattern, channel, payload };
            for (address, is_confirmed) in subscribers {
                if *is_confirmed && !early.of.contains_key(address) {
                    push(*address, &message);
                } else {
                    early.keep(*address, &message);
                }
                receivers += 1;
            }
        };
        if let Some(subscribers) = self.subscribers[kind.index()].get(channel) {
            push_to(subscribers, None);
        }
        if kind == SubscriptionKind::Channel {
            for (pattern, subscribers) in &self.subscribers[SubscriptionKind::Pattern.index()] {
                if glob_matches(pattern, channel) {
                    push_to(subscribers, Some(pattern));
                }
            }
        }
        receivers
    }
}

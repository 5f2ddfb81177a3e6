//! Clients that keep copies of what they have read: CLIENT TRACKING.
//!
//! **The promise.** A client reads a key. If the key changes after the state that the reply is of, an invalidation of the key
//! follows the reply; and it comes before the reply to any later read of the same connection that can show the new value.
//!
//! **How.** A tracking connection has one command under way at a time. The keys of a read are *being read* from before it is
//! submitted until its reply is written, and *kept* by the client from then on. The node's own replica tells which keys the
//! entries change that it executes. Then
//!
//! - an invalidation of a key that is kept is sent at once, and the key is not kept any more;
//! - a key that is being read is noted, and its invalidation is sent behind the reply;
//! - before a reply whose state may be later than what this replica has told, an invalidation of those of its keys is sent
//!   that are kept.
//!
//! docs/PROTOCOL.md argues why that is enough ("Copies that clients keep").

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use syros_commands::access::{KeyEvent, Notification};
use syros_commands::operations;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::TrackingRequest;

/// The name of a key. As in Redis, databases do not count: of keys of one name, a change of one invalidates all.
type Name = Box<[u8]>;

/// What a client is to be told to drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invalidation {
    /// The connection that tracks.
    pub(super) address: u64,
    /// The keys; `None`: all.
    pub(super) keys: Option<Vec<Name>>,
}

/// The client that is told instead of another one: its number, and the address that its connection had.
pub(super) type Target = (u64, u64);

/// What a connection has under way.
#[derive(Debug, Default)]
struct Reading {
    /// What it reads that its client may keep.
    keys: Vec<Name>,
    /// What it writes.
    written: Vec<Name>,
    /// The state of the reply is not later than what the replica of this process has told; `None`: nothing has been answered.
    is_exact: Option<bool>,
    /// Those of the keys that have changed meanwhile.
    touched: BTreeSet<Name>,
    /// All of them may have.
    are_all_touched: bool,
}

#[derive(Debug)]
struct TrackingClient {
    request: TrackingRequest,
    target: Option<Target>,
    /// The keys that it keeps, unless it is told of all that begin with a prefix.
    kept: BTreeSet<Name>,
    reading: Option<Reading>,
}

impl TrackingClient {
    /// True if the client is told of this key without having read it.
    fn has_prefix_of(&self, key: &[u8]) -> bool {
        let prefixes = &self.request.prefixes;
        self.request.is_broadcast
            && (prefixes.is_empty() || prefixes.iter().any(|prefix| key.starts_with(prefix)))
    }
}

/// How an operation of a tracking connection is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// With a state that is not older than when it was submitted.
    Current,
    /// A read whose state may be older than that.
    Stale,
}

/// The connections that track, and which keys their clients keep.
#[derive(Debug)]
pub(super) struct Tracking {
    clients: BTreeMap<u64, TrackingClient>,
    /// The connections whose clients keep a key.
    keepers: BTreeMap<Name, BTreeSet<u64>>,
    /// Keys in that table at most.
    keys_max: usize,
    /// The replica of this process tells of all that it executes from now on.
    is_told: bool,
    /// What this replica answers is not later than what it has told.
    is_exact: bool,
    invalidations: Vec<Invalidation>,
    /// A known-wrong variant, for tests of tests.
    #[cfg(any(test, feature = "planted-bugs"))]
    planted: Option<Planted>,
}

/// Known-wrong variants.
#[cfg(any(test, feature = "planted-bugs"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// The reply of another replica is not preceded by an invalidation.
    ForeignReplyFirst,
    /// What changes while it is being read is not invalidated behind the reply.
    ReadingForgotten,
    /// A state that is replaced invalidates nothing.
    StateReplacedSilently,
    /// It is taken for granted that the replica of this process tells of what it executes.
    #[cfg(test)]
    TakenForTold,
}

impl Tracking {
    /// No connection tracks; the table may have so many keys.
    pub(super) const fn new(keys_max: usize) -> Self {
        Self {
            clients: BTreeMap::new(),
            keepers: BTreeMap::new(),
            keys_max,
            is_told: false,
            is_exact: false,
            invalidations: Vec::new(),
            #[cfg(any(test, feature = "planted-bugs"))]
            planted: None,
        }
    }

    /// Makes it wrong in a known way, if the bug is one of this module.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn planted(mut self, bug: Option<PlantedBug>) -> Self {
        self.planted = bug.and_then(|bug| match bug {
            PlantedBug::InvalidationLate => Some(Planted::ForeignReplyFirst),
            PlantedBug::InvalidationForgotten => Some(Planted::ReadingForgotten),
            PlantedBug::CopiesOutliveState => Some(Planted::StateReplacedSilently),
            _ => None,
        });
        self
    }

    /// True if this is that known-wrong variant.
    #[cfg(any(test, feature = "planted-bugs"))]
    fn is_planted(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    /// True if no connection tracks.
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// How many connections track.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// How many keys are known to be kept.
    pub(super) fn keys(&self) -> usize {
        self.keepers.len()
    }

    /// Number and address of the client that is told instead of this one, if there is one.
    pub(super) fn target(&self, address: u64) -> Option<Target> {
        self.clients.get(&address)?.target
    }

    /// True if this connection tracks.
    pub(super) fn has(&self, address: u64) -> bool {
        self.clients.contains_key(&address)
    }

    /// The connection tracks from now on, or in another way, and has that client told.
    pub(super) fn begin(&mut self, address: u64, request: TrackingRequest, target: Option<Target>) {
        if let Some(client) = self.clients.get_mut(&address) {
            (client.request, client.target) = (request, target);
        } else {
            let client = TrackingClient { request, target, kept: BTreeSet::new(), reading: None };
            self.clients.insert(address, client);
        }
    }

    /// The connection tracks no more.
    pub(super) fn end(&mut self, address: u64) {
        let Some(client) = self.clients.remove(&address) else { return };
        for key in client.kept {
            self.remove_keeper(&key, address);
        }
        self.invalidations.retain(|invalidation| invalidation.address != address);
    }

    fn remove_keeper(&mut self, key: &Name, address: u64) {
        if let Some(keepers) = self.keepers.get_mut(key) {
            keepers.remove(&address);
            if keepers.is_empty() {
                self.keepers.remove(key);
            }
        }
    }

    /// The replica of this process tells of what it executes, or does not. If it is exact, what it answers is never later
    /// than what it has told.
    pub(super) const fn set_told(&mut self, is_told: bool, is_exact: bool) {
        (self.is_told, self.is_exact) = (is_told, is_exact);
    }

    /// From now on the table has so many keys at most.
    pub(super) fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
        self.evict();
    }

    /// What clients are to be told, in this order.
    pub(super) fn take(&mut self) -> Vec<Invalidation> {
        std::mem::take(&mut self.invalidations)
    }

    // ---- Operations.

    /// The connection is about to submit this body. `keeps`: its client keeps what it reads.
    pub(super) fn on_submit(&mut self, address: u64, body: &[u8], freshness: Freshness, keeps: bool) {
        let is_told = self.is_told;
        #[cfg(test)]
        let is_told = is_told || self.is_planted(Planted::TakenForTold);
        let are_all_touched = !is_told || freshness == Freshness::Stale;
        let Some(client) = self.clients.get_mut(&address) else { return };
        let (mut keys, mut written) = (Vec::new(), Vec::new());
        for operation in operations(body).flatten() {
            let is_read = operation.command.is_read();
            operation.each_key(|key| match is_read {
                true if keeps && (!client.request.is_broadcast || client.has_prefix_of(key.name)) => {
                    keys.push(Name::from(key.name));
                }
                true => {}
                false => written.push(Name::from(key.name)),
            });
        }
        let touched = BTreeSet::new();
        client.reading = Some(Reading { keys, written, is_exact: None, touched, are_all_touched });
    }

    /// A part of the answer to what the connection has under way has come from the replica of this process, or from another.
    pub(super) fn on_answer(&mut self, address: u64, is_own: bool) {
        if let Some(reading) = self.clients.get_mut(&address).and_then(|client| client.reading.as_mut()) {
            reading.is_exact = Some(reading.is_exact.unwrap_or(true) && is_own && self.is_exact);
        }
    }

    /// The reply is about to be written.
    pub(super) fn before_reply(&mut self, address: u64) {
        #[cfg(any(test, feature = "planted-bugs"))]
        if self.is_planted(Planted::ForeignReplyFirst) {
            return;
        }
        let Some(client) = self.clients.get_mut(&address) else { return };
        let Some(reading) = &client.reading else { return };
        let mut keys: BTreeSet<Name> = BTreeSet::new();
        if reading.is_exact != Some(true) {
            let is_kept = |key: &&Name| client.request.is_broadcast || client.kept.contains(*key);
            keys.extend(reading.keys.iter().filter(is_kept).cloned());
        }
        if !client.request.no_loop {
            keys.extend(reading.written.iter().filter(|key| client.kept.contains(*key)).cloned());
        }
        self.invalidate(address, keys);
    }

    /// The reply has been written, or there is none: then the client keeps nothing of it.
    pub(super) fn after_reply(&mut self, address: u64, is_answered: bool) {
        #[cfg(any(test, feature = "planted-bugs"))]
        let forgets = self.is_planted(Planted::ReadingForgotten);
        let Some(client) = self.clients.get_mut(&address) else { return };
        #[cfg_attr(not(any(test, feature = "planted-bugs")), expect(unused_mut))]
        let Some(mut reading) = client.reading.take() else { return };
        #[cfg(any(test, feature = "planted-bugs"))]
        if forgets {
            (reading.touched, reading.are_all_touched) = (BTreeSet::new(), false);
        }
        if !is_answered {
            return;
        }
        let is_touched = |key: &Name| reading.are_all_touched || reading.touched.contains(key);
        let (touched, kept): (BTreeSet<Name>, BTreeSet<Name>) =
            reading.keys.iter().cloned().partition(|key| is_touched(key));
        if !client.request.is_broadcast {
            for key in kept {
                self.keepers.entry(key.clone()).or_default().insert(address);
                client.kept.insert(key);
            }
        }
        self.invalidate(address, touched);
        self.evict();
    }

    /// Tells a client to drop keys, each in a message of its own, as Redis does.
    fn invalidate(&mut self, address: u64, keys: BTreeSet<Name>) {
        for key in keys {
            if let Some(client) = self.clients.get_mut(&address) {
                client.kept.remove(&key);
            }
            self.remove_keeper(&key, address);
            self.invalidations.push(Invalidation { address, keys: Some(vec![key]) });
        }
    }

    /// Has clients drop keys until the table is small enough.
    fn evict(&mut self) {
        while self.keepers.len() > self.keys_max {
            let Some((key, keepers)) = self.keepers.pop_first() else { return };
            for address in keepers {
                if let Some(client) = self.clients.get_mut(&address) {
                    client.kept.remove(&key);
                }
                self.invalidations.push(Invalidation { address, keys: Some(vec![key.clone()]) });
            }
        }
    }

    // ---- Changes.

    /// The replica of this process has executed entries that have done this.
    pub(super) fn on_changes(&mut self, happened: &[Notification]) {
        if self.clients.is_empty() {
            return;
        }
        let mut told: BTreeMap<u64, BTreeSet<Name>> = BTreeMap::new();
        for Notification { key, event, .. } in happened {
            if *event == KeyEvent::Flushed {
                told.clear();
                self.flush();
            } else {
                self.on_change(key, &mut told);
            }
        }
        for (address, keys) in told {
            self.invalidations.push(Invalidation { address, keys: Some(keys.into_iter().collect()) });
        }
    }

    /// A key has changed. `told`: what clients are told of that have asked for prefixes.
    fn on_change(&mut self, key: &Name, told: &mut BTreeMap<u64, BTreeSet<Name>>) {
        for address in self.keepers.remove(key).unwrap_or_default() {
            if let Some(client) = self.clients.get_mut(&address) {
                client.kept.remove(key);
            }
            self.invalidations.push(Invalidation { address, keys: Some(vec![key.clone()]) });
        }
        for (address, client) in &mut self.clients {
            if client.has_prefix_of(key) {
                told.entry(*address).or_default().insert(key.clone());
            }
            if let Some(reading) = &mut client.reading
                && reading.keys.contains(key)
            {
                reading.touched.insert(key.clone());
            }
        }
    }

    /// The state of the replica of this process is another one.
    pub(super) fn on_state_replaced(&mut self) {
        #[cfg(any(test, feature = "planted-bugs"))]
        if self.is_planted(Planted::StateReplacedSilently) {
            return;
        }
        self.flush();
    }

    /// Any key may have changed.
    fn flush(&mut self) {
        self.keepers.clear();
        for (address, client) in &mut self.clients {
            client.kept.clear();
            if let Some(reading) = &mut client.reading {
                reading.are_all_touched = true;
            }
            self.invalidations.push(Invalidation { address: *address, keys: None });
        }
    }
}

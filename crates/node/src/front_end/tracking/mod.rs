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

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use syros_commands::access::{Announcement, KeyEvent, KeyEventClass, Notification};
use syros_commands::operations;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::{TrackingCounts, TrackingRequest};
use syros_types::OperationId;

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

/// The keys that clients are told of, by connection and the place of the prefix.
type Told = BTreeMap<(u64, usize), BTreeSet<Name>>;

/// The client that is told instead of another one: its number, and the address that its connection had.
pub(super) type Target = (u64, u64);

/// What a connection has under way.
#[derive(Debug, Default)]
struct Reading {
    /// What it reads that its client may keep.
    keys: Vec<Name>,
    /// What it writes. The client is told of that directly behind the reply.
    written: Vec<Name>,
    /// It may write any key.
    writes_all: bool,
    /// Of what it reads nobody knows whether it writes that.
    runs_script: bool,
    /// It may wait for long: then the client is told meanwhile of what others do.
    waits: bool,
    /// What has changed meanwhile, and the client is told of behind the reply.
    held: BTreeSet<Name>,
    /// The same of all keys.
    holds_all: bool,
    /// The state of the reply is not later than what the replica of this process has told; `None`: nothing has been answered.
    is_exact: Option<bool>,
    /// Those of the keys that have changed meanwhile.
    touched: BTreeSet<Name>,
    /// All of them may have.
    are_all_touched: bool,
}

impl Reading {
    fn writes(&self, key: &Name) -> bool {
        self.writes_all || self.written.contains(key)
    }
}

#[derive(Debug)]
struct TrackingClient {
    request: TrackingRequest,
    target: Option<Target>,
    /// The keys that it keeps.
    kept: BTreeSet<Name>,
    reading: Option<Reading>,
    /// Updates of the client's own that the replica of this process may not have executed, and the keys that they write: the
    /// client is not told of them, if it has asked for that (NOLOOP).
    own: VecDeque<OwnUpdate>,
}

/// An update of a client, and what it writes.
#[derive(Debug)]
struct OwnUpdate {
    id: OperationId,
    written: Vec<Name>,
    writes_all: bool,
    /// What the names take.
    bytes: usize,
}

/// Bytes that the table of keepers may take, with what is known of each client.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// About how many bytes it takes to know that a client keeps a key. The table and the client have its name each.
const fn copy_bytes(key: &Name) -> usize {
    2 * key.len() + 128
}

/// Prefixes of all clients of a node, at most. A client that is told of all keys has one.
const PREFIXES_MAX: usize = 16_384;

/// Of so many changes, multiplied by the clients that have asked for prefixes, such clients are told one by one at most: a
/// MSET for thousands of clients would stop the node for seconds. Of more they are told at once, that anything may have
/// changed.
const BROADCAST_MAX: usize = 1 << 20;

/// Updates of its own that are remembered of a client, at most. Of an older one the client is told.
const OWN_MAX: usize = 64;

/// What the names of keys take that such updates write, with [`OWN_NAME_BYTES`] each: a client that writes many long names is
/// told of its own changes.
const OWN_BYTES_MAX: usize = 256 * 1024;
const OWN_NAME_BYTES: usize = 64;

impl TrackingClient {
    /// True if the client is not to be told of this change, because it is one of its own.
    fn is_own(&self, key: &Name, event: KeyEvent, update: Option<OperationId>) -> bool {
        // Keys expire, and are evicted, beside what the update of the entry does.
        let is_by_the_way =
            matches!(event.class(), KeyEventClass::Silent | KeyEventClass::Expired | KeyEventClass::Evicted);
        let is_this =
            |own: &OwnUpdate| Some(own.id) == update && (own.writes_all || own.written.contains(key));
        self.request.no_loop && !is_by_the_way && self.own.iter().any(is_this)
    }

    /// The place of the prefix of this key among those of which the client is told without having read the key.
    fn prefix_of(&self, key: &[u8]) -> Option<usize> {
        let prefixes = &self.request.prefixes;
        match self.request.is_broadcast {
            true if prefixes.is_empty() => Some(0),
            true => {
                // They are in order, and none begins with another: what is between a prefix and the key begins with it, too.
                let place = prefixes.partition_point(|prefix| **prefix <= *key).checked_sub(1)?;
                key.starts_with(&prefixes[place]).then_some(place)
            }
            false => None,
        }
    }

    /// What is told behind the reply of what the client has under way, if this is written by that.
    fn held_for(&mut self, key: &Name) -> Option<&mut BTreeSet<Name>> {
        let reading = self.reading.as_mut()?;
        (!reading.waits && reading.writes(key)).then_some(&mut reading.held)
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
    /// Pairs of a key and a connection in that table, and about how many bytes they take.
    items: usize,
    bytes: usize,
    /// Different prefixes of which clients are told; an empty one is all keys.
    prefixes: usize,
    /// The connections that are reading a key.
    readers: BTreeMap<Name, BTreeSet<u64>>,
    /// The connections whose clients are told of all keys that begin with a prefix.
    broadcasts: BTreeSet<u64>,
    /// Keys in the table of keepers at most.
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
            items: 0,
            bytes: 0,
            prefixes: 0,
            readers: BTreeMap::new(),
            broadcasts: BTreeSet::new(),
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

    /// How much is known to be kept.
    pub(super) fn counts(&self) -> TrackingCounts {
        TrackingCounts {
            clients: self.clients.len() as u64,
            keys: self.keepers.len() as u64,
            items: self.items as u64,
            prefixes: self.prefixes as u64,
        }
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
    pub(super) fn begin(&mut self, address: u64, mut request: TrackingRequest, target: Option<Target>) {
        request.prefixes.sort_unstable();
        request.prefixes.dedup_by(|longer, prefix| longer.starts_with(prefix));
        if request.is_broadcast {
            self.broadcasts.insert(address);
        }
        if let Some(client) = self.clients.get_mut(&address) {
            (client.request, client.target) = (request, target);
        } else {
            let client = TrackingClient {
                request,
                target,
                kept: BTreeSet::new(),
                reading: None,
                own: VecDeque::new(),
            };
            self.clients.insert(address, client);
        }
        self.count_prefixes();
    }

    /// True if the connection may track so: of all clients there are not too many prefixes.
    pub(super) fn has_room(&self, address: u64, request: &TrackingRequest) -> bool {
        let of_one = |request: &TrackingRequest| request.prefixes.len().max(1);
        let others = self.broadcasts.iter().filter(|other| **other != address);
        let others = others.filter_map(|other| Some(of_one(&self.clients.get(other)?.request)));
        !request.is_broadcast || others.sum::<usize>() + of_one(request) <= PREFIXES_MAX
    }

    fn count_prefixes(&mut self) {
        let requests = self.broadcasts.iter().filter_map(|address| Some(&self.clients.get(address)?.request));
        let of_one = |request: &TrackingRequest| match &*request.prefixes {
            [] => vec![Vec::new()],
            prefixes => prefixes.to_vec(),
        };
        self.prefixes = requests.flat_map(of_one).collect::<BTreeSet<_>>().len();
    }

    /// The connection tracks no more.
    pub(super) fn end(&mut self, address: u64) {
        self.end_reading(address);
        let Some(client) = self.clients.remove(&address) else { return };
        client.kept.iter().for_each(|key| self.uncount(key, 1));
        client.kept.iter().for_each(|key| remove(&mut self.keepers, key, address));
        self.invalidations.retain(|invalidation| invalidation.address != address);
        if self.broadcasts.remove(&address) {
            self.count_prefixes();
        }
    }

    /// So many clients do not keep a key any more.
    const fn uncount(&mut self, key: &Name, times: usize) {
        self.items -= times;
        self.bytes -= times * copy_bytes(key);
    }

    /// The connection has nothing under way any more. What it had.
    fn end_reading(&mut self, address: u64) -> Option<Reading> {
        let reading = self.clients.get_mut(&address)?.reading.take()?;
        reading.keys.iter().for_each(|key| remove(&mut self.readers, key, address));
        Some(reading)
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

    /// The connection is about to submit this body. `keeps`: its client keeps what it reads. `waits`: the reply may take long.
    pub(super) fn on_submit(
        &mut self,
        address: u64,
        body: &[u8],
        freshness: Freshness,
        (keeps, waits): (bool, bool),
    ) {
        let is_told = self.is_told;
        #[cfg(test)]
        let is_told = is_told || self.is_planted(Planted::TakenForTold);
        self.end_reading(address);
        let Some(client) = self.clients.get_mut(&address) else { return };
        let are_all_touched = !is_told || freshness == Freshness::Stale;
        let mut reading = Reading { waits, are_all_touched, ..Reading::default() };
        for operation in operations(body).flatten() {
            let is_read = operation.command.is_read();
            let mut read = |name: &[u8]| {
                let is_of_interest = !client.request.is_broadcast || client.prefix_of(name).is_some();
                if keeps && is_of_interest {
                    reading.keys.push(Name::from(name));
                }
            };
            // What a script reads of the keys that it declares is known only when it has run.
            let is_script = operation.each_declared_key(|key| read(key.name));
            let names_keys = operation.each_key(|key| {
                if !is_read {
                    reading.written.push(Name::from(key.name));
                } else if !is_script {
                    read(key.name);
                }
            });
            reading.runs_script |= is_script;
            reading.writes_all |= !is_read && !names_keys;
        }
        for key in &reading.keys {
            self.readers.entry(key.clone()).or_default().insert(address);
        }
        client.reading = Some(reading);
    }

    /// True if there are clients that are not told of their own updates.
    pub(super) fn spares_own(&self) -> bool {
        self.clients.values().any(|client| client.request.no_loop)
    }

    /// What the connection has under way is the update with this id.
    pub(super) fn on_sent(&mut self, address: u64, id: OperationId) {
        let Some(client) = self.clients.get_mut(&address).filter(|client| client.request.no_loop) else {
            return;
        };
        let Some(reading) = &client.reading else { return };
        if client.own.iter().any(|own| own.id == id) {
            return;
        }
        let bytes: usize = reading.written.iter().map(|name| name.len() + OWN_NAME_BYTES).sum();
        if bytes > OWN_BYTES_MAX {
            return;
        }
        let (written, writes_all) = (reading.written.clone(), reading.writes_all);
        client.own.push_back(OwnUpdate { id, written, writes_all, bytes });
        while client.own.len() > OWN_MAX
            || client.own.iter().map(|own| own.bytes).sum::<usize>() > OWN_BYTES_MAX
        {
            client.own.pop_front();
        }
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
        let Some(client) = self.clients.get(&address) else { return };
        let Some(reading) = client.reading.as_ref().filter(|reading| reading.is_exact != Some(true)) else {
            return;
        };
        let is_old =
            |key: &&Name| client.kept.contains(*key) && (reading.runs_script || !reading.writes(key));
        let keys = reading.keys.iter().filter(is_old).cloned().collect();
        self.invalidate(address, keys);
    }

    /// The reply has been written, or there is none: then the client keeps nothing of it.
    pub(super) fn after_reply(&mut self, address: u64, is_answered: bool) {
        #[cfg(any(test, feature = "planted-bugs"))]
        let forgets = self.is_planted(Planted::ReadingForgotten);
        #[cfg_attr(
            not(any(test, feature = "planted-bugs")),
            expect(unused_mut, reason = "planted bugs change it")
        )]
        let Some(mut reading) = self.end_reading(address) else { return };
        #[cfg(any(test, feature = "planted-bugs"))]
        if forgets {
            (reading.touched, reading.are_all_touched) = (BTreeSet::new(), false);
        }
        let Some(client) = self.clients.get_mut(&address) else { return };
        let mut changed = reading.held;
        if is_answered {
            if !client.request.no_loop {
                changed.extend(reading.written.into_iter().filter(|key| client.kept.contains(key)));
            }
            let is_touched = |key: &Name| reading.are_all_touched || reading.touched.contains(key);
            let (touched, kept): (Vec<Name>, Vec<Name>) = reading.keys.into_iter().partition(is_touched);
            changed.extend(touched);
            for key in kept {
                if client.kept.insert(key.clone()) {
                    (self.items, self.bytes) = (self.items + 1, self.bytes + copy_bytes(&key));
                    self.keepers.entry(key).or_default().insert(address);
                }
            }
        }
        if reading.holds_all {
            self.invalidations.push(Invalidation { address, keys: None });
        }
        self.invalidate(address, changed);
        self.evict();
    }

    /// Tells a client to drop keys, each in a message of its own, as Redis does.
    fn invalidate(&mut self, address: u64, keys: BTreeSet<Name>) {
        for key in keys {
            if let Some(client) = self.clients.get_mut(&address)
                && client.kept.remove(&key)
            {
                remove(&mut self.keepers, &key, address);
                self.uncount(&key, 1);
            }
            self.invalidations.push(Invalidation { address, keys: Some(vec![key]) });
        }
    }

    /// Has clients drop keys until the table is small enough.
    fn evict(&mut self) {
        while self.keepers.len() > self.keys_max || self.bytes > BYTES_MAX {
            let Some((key, keepers)) = self.keepers.pop_first() else { return };
            self.uncount(&key, keepers.len());
            for address in keepers {
                if let Some(client) = self.clients.get_mut(&address) {
                    client.kept.remove(&key);
                }
                self.invalidations.push(Invalidation { address, keys: Some(vec![key.clone()]) });
            }
        }
    }

    // ---- Changes.

    /// The replica of this process has executed entries that have done this. `updates`: which these are, as far as it is known.
    pub(super) fn on_changes(&mut self, happened: &[Announcement], updates: &BTreeMap<u64, OperationId>) {
        if self.clients.is_empty() {
            return;
        }
        let mut told = Told::new();
        let events = happened.iter().filter_map(|announcement| match announcement {
            Announcement::KeyEvent(notification) => Some(notification),
            Announcement::Message(_) => None,
        });
        let is_one_by_one = happened.len().saturating_mul(self.broadcasts.len()) <= BROADCAST_MAX;
        if !is_one_by_one {
            let all = self.broadcasts.iter().map(|address| Invalidation { address: *address, keys: None });
            self.invalidations.extend(all);
        }
        for Notification { key, event, entry, .. } in events {
            if *event == KeyEvent::Flushed {
                told.clear();
                self.flush();
            } else if *event != KeyEvent::Expired {
                // That a key changes by expiring has been told when it did, before its record goes.
                let told = is_one_by_one.then_some(&mut told);
                self.on_change((key, *event, updates.get(entry).copied()), told);
            }
        }
        for client in self.clients.values_mut().filter(|client| !client.own.is_empty()) {
            client.own.retain(|own| !updates.values().any(|executed| *executed == own.id));
        }
        for ((address, _), keys) in told {
            self.invalidations.push(Invalidation { address, keys: Some(keys.into_iter().collect()) });
        }
    }

    /// A key has changed, by this update if it is known. `told`: what clients are told of that have asked for prefixes, unless
    /// they have been told to drop everything.
    fn on_change(
        &mut self,
        (key, event, update): (&Name, KeyEvent, Option<OperationId>),
        told: Option<&mut Told>,
    ) {
        let mut keepers = self.keepers.remove(key).unwrap_or_default();
        let before = keepers.len();
        keepers.retain(|address| {
            let Some(client) = self.clients.get_mut(address) else { return false };
            if client.is_own(key, event, update) {
                return true;
            }
            client.kept.remove(key);
            // Those who have prefixes are told below.
            if client.prefix_of(key).is_none() {
                match client.held_for(key) {
                    Some(held) => drop(held.insert(key.clone())),
                    None => self
                        .invalidations
                        .push(Invalidation { address: *address, keys: Some(vec![key.clone()]) }),
                }
            }
            false
        });
        self.uncount(key, before - keepers.len());
        if !keepers.is_empty() {
            self.keepers.insert(key.clone(), keepers);
        }
        if let Some(told) = told {
            for address in &self.broadcasts {
                let Some(client) = self.clients.get(address) else { continue };
                if let Some(prefix) = client.prefix_of(key).filter(|_| !client.is_own(key, event, update)) {
                    told.entry((*address, prefix)).or_default().insert(key.clone());
                }
            }
        }
        for address in self.readers.get(key).into_iter().flatten() {
            let Some(client) = self.clients.get_mut(address) else { continue };
            if client.is_own(key, event, update) {
                continue;
            }
            if let Some(reading) = &mut client.reading {
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
        (self.items, self.bytes) = (0, 0);
        for (address, client) in &mut self.clients {
            client.kept.clear();
            if let Some(reading) = &mut client.reading {
                reading.are_all_touched = true;
                if reading.writes_all && !reading.waits {
                    reading.holds_all = true;
                    continue;
                }
            }
            self.invalidations.push(Invalidation { address: *address, keys: None });
        }
    }
}

/// Takes a connection from those of a key.
fn remove(table: &mut BTreeMap<Name, BTreeSet<u64>>, key: &Name, address: u64) {
    if let Some(connections) = table.get_mut(key) {
        connections.remove(&address);
        if connections.is_empty() {
            table.remove(key);
        }
    }
}

//! The databases of the in-memory engine: one [`Keyspace`] for each.

use crate::events::without_turns;
use crate::keyspace::{Keyspace, RemovalPace};
use crate::listing::Listing;
use crate::removals::Recorded;
use crate::snapshot::put_database;
use syros_commands::access::{Announcement, Databases, DatabasesMut, Expiry, Keys, KeysMut};
use syros_commands::{Effects, Programs};
use syros_types::{Database, EvictionPolicy, EvictionSettings, WallTime};

/// How many databases there are beside the first.
const OTHERS: usize = Database::COUNT - 1;

/// All databases. Most often only the first one is in use.
#[derive(Clone, Debug)]
pub(crate) struct MemoryDatabases {
    first: Keyspace,
    /// What others are as long as none is in use.
    empty: Box<Keyspace>,
    /// The others, since one of them was in use.
    others: Option<Box<[Keyspace; OTHERS]>>,
    /// The scripts and libraries that are loaded.
    programs: Programs,
    /// It is asked what happens to keys. Each database collects that, and may undo it.
    notifies: bool,
    /// The database in which something may happen now, and how often that has been another one: the order of what has
    /// happened in several.
    changing: (Database, u64),
    /// What the updates since [`Self::take_effects`] have done.
    effects: Effects,
}

impl MemoryDatabases {
    pub(crate) fn new(hash_seed: u64, pace: RemovalPace) -> Self {
        Self::of_first(Keyspace::new(hash_seed, pace))
    }

    /// Databases of which only the first has keys.
    pub(crate) fn of_first(first: Keyspace) -> Self {
        let empty = Box::new(first.sibling(Database::FIRST));
        Self {
            first,
            empty,
            others: None,
            programs: Programs::NONE,
            notifies: false,
            changing: (Database::FIRST, 0),
            effects: Effects::default(),
        }
    }

    /// The first database.
    pub(crate) const fn first(&self) -> &Keyspace {
        &self.first
    }

    /// Those that are in use, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Database, &Keyspace)> {
        Database::all().zip(self.in_use())
    }

    /// Those that are in use, in the order of their numbers.
    fn in_use(&self) -> impl Iterator<Item = &Keyspace> {
        core::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// Those that are in use, in the order of their numbers.
    fn in_use_mut(&mut self) -> impl Iterator<Item = &mut Keyspace> {
        core::iter::once(&mut self.first).chain(self.others.iter_mut().flat_map(|others| others.iter_mut()))
    }

    /// The others, which are in use from now on.
    fn others_mut(&mut self) -> &mut [Keyspace; OTHERS] {
        let first = &self.first;
        self.others.get_or_insert_with(|| {
            let number = |place: usize| Database::all().nth(place + 1).unwrap_or_default();
            Box::new(core::array::from_fn(|place| first.sibling(number(place))))
        })
    }

    /// Gives another database than the first these keys, and what is recorded of versions in it.
    pub(crate) fn set(&mut self, database: Database, keys: Keyspace, recorded: Option<Recorded>) {
        let place = self.database_mut(database);
        *place = keys;
        place.set_recorded(recorded);
    }

    /// Moves log time on to `time`, and removes nothing.
    pub(crate) fn set_time(&mut self, time: WallTime) {
        for keys in self.in_use_mut() {
            keys.set_time(time);
        }
    }

    /// Versions are recorded from this entry on, if from any, in the databases of which nothing else is known.
    pub(crate) fn set_recorded(&mut self, recorded: Option<Recorded>) {
        let from = recorded.as_ref().map(|recorded| recorded.from);
        self.first.set_recorded(recorded);
        self.empty.record_from(from);
        for keys in self.others.iter_mut().flat_map(|others| others.iter_mut()) {
            if keys.recorded().is_none() {
                keys.record_from(from);
            }
        }
    }

    /// Log time.
    pub(crate) const fn time(&self) -> WallTime {
        self.first.time()
    }

    /// See [`Keyspace::begin_entry`].
    pub(crate) fn begin_entry(&mut self, number: u64) {
        self.in_use_mut().for_each(|keys| keys.begin_entry(number));
    }

    /// See [`Keyspace::advance`].
    pub(crate) fn advance(&mut self, time: WallTime, updates: impl Fn() -> usize) {
        let count = self.in_use().count();
        for database in Database::all().take(count) {
            self.database_mut(database).advance(time, &updates);
        }
    }

    /// See [`Engine::set_notifying`](crate::Engine::set_notifying).
    pub(crate) fn set_notifying(&mut self, is_on: bool) {
        self.notifies = is_on;
        self.empty.events_mut().set(is_on);
        self.in_use_mut().for_each(|keys| keys.events_mut().set(is_on));
    }

    /// See [`Engine::take_announcements`](crate::Engine::take_announcements).
    pub(crate) fn take_announcements(&mut self) -> Vec<Announcement> {
        let mut events: Vec<_> = self.in_use_mut().flat_map(|keys| keys.events_mut().take()).collect();
        events.sort_by_key(|(turn, _)| *turn);
        without_turns(events)
    }

    /// See [`Engine::take_effects`](crate::Engine::take_effects).
    pub(crate) const fn take_effects(&mut self) -> u64 {
        self.effects.take()
    }

    /// From now on this policy of eviction counts.
    pub(crate) fn set_eviction(&mut self, settings: EvictionSettings) {
        self.empty.set_eviction(settings);
        self.in_use_mut().for_each(|keys| keys.set_eviction(settings));
    }

    /// The keys of a database.
    pub(crate) fn database_of(&self, database: Database) -> &Keyspace {
        self.database(database)
    }

    /// True if the policy may find keys that go.
    pub(crate) fn has_victims(&self, policy: EvictionPolicy) -> bool {
        let mut in_use = self.in_use();
        match policy {
            EvictionPolicy::NoEviction => false,
            policy if policy.is_of_expiring() => in_use.any(|keys| keys.expiring_len() > 0),
            _ => in_use.any(|keys| keys.len() > 0),
        }
    }

    /// Keys that have gone because memory was short.
    pub(crate) fn evicted(&self) -> u64 {
        self.in_use().map(Keyspace::evicted).sum()
    }

    /// See [`Keyspace::next_advance`].
    pub(crate) fn next_advance(&self) -> Option<WallTime> {
        self.in_use().filter_map(Keyspace::next_advance).min()
    }

    /// See [`Keyspace::first_expiry`].
    pub(crate) fn first_expiry(&self) -> Expiry {
        self.in_use().filter_map(Keyspace::first_expiry).min()
    }

    /// See [`Keyspace::first_field_expiry`].
    pub(crate) fn first_field_expiry(&self) -> Expiry {
        self.in_use().filter_map(Keyspace::first_field_expiry).min()
    }

    /// Number of keys in all databases.
    pub(crate) fn count(&self) -> usize {
        self.in_use().map(Keys::count).sum()
    }

    /// Keys of all databases that have expired and whose records have gone.
    pub(crate) fn expired(&self) -> u64 {
        self.in_use().map(Keyspace::expired).sum()
    }

    /// See [`Keyspace::memory_bytes`].
    pub(crate) fn memory_bytes(&self) -> usize {
        self.in_use().map(Keyspace::memory_bytes).sum()
    }

    /// See [`Keyspace::garbage_bytes`].
    pub(crate) fn garbage_bytes(&self) -> u64 {
        self.in_use().map(Keyspace::garbage_bytes).sum()
    }

    /// Gives back so many nodes of one database. False if none are left in any.
    pub(crate) fn give_back(&mut self, nodes: usize) -> bool {
        if let Some(keys) = self.in_use_mut().find(|keys| keys.garbage_bytes() > 0) {
            keys.give_back(nodes);
        }
        self.garbage_bytes() > 0
    }

    /// See [`Keyspace::take_leftover`].
    pub(crate) fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        self.in_use_mut().find_map(Keyspace::take_leftover)
    }

    /// Begins a listing in a database. One that is under way is abandoned.
    pub(crate) fn begin_listing(&mut self, database: Database, pattern: &[u8]) {
        self.in_use_mut().for_each(Keyspace::end_listing);
        self.database_mut(database).begin_listing(pattern);
    }

    /// See [`Keyspace::go_on_listing`].
    pub(crate) fn go_on_listing(&mut self, steps: usize) -> Option<Listing> {
        self.in_use_mut().find(|keys| keys.is_listing())?.go_on_listing(steps)
    }

    /// Begins a snapshot of all databases as they are.
    pub(crate) fn begin_snapshot(&mut self) {
        self.end_snapshot();
        let has_state = self.iter().skip(1).filter(|(_, keys)| keys.has_state());
        let others = has_state.fold(0, |bits, (database, _)| bits | 1 << database.number());
        let programs = self.programs.clone();
        for (database, keys) in Database::all().zip(self.in_use_mut()) {
            if database.is_first() || others >> database.number() & 1 == 1 {
                let (others, programs) =
                    if database.is_first() { (others, &programs) } else { (0, &Programs::NONE) };
                keys.begin_snapshot(others, programs);
            }
        }
    }

    /// See [`Engine::snapshot_block`](crate::Engine::snapshot_block). The databases come one after the other, each with the
    /// number that it had when the snapshot began.
    pub(crate) fn snapshot_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> bool {
        let end = block.len().saturating_add(bytes);
        loop {
            let under_way = self.in_use_mut().filter_map(|keys| Some((keys.captured()?, keys)));
            let Some((database, keys)) = under_way.min_by_key(|(database, _)| *database) else {
                return false;
            };
            if !database.is_first() {
                put_database(block, database);
            }
            if keys.snapshot_block(end.saturating_sub(block.len()), block) {
                return true;
            }
            if block.len() >= end {
                return self.in_use().any(|keys| keys.captured().is_some());
            }
        }
    }

    /// See [`Engine::snapshot_waiting_bytes`](crate::Engine::snapshot_waiting_bytes).
    pub(crate) fn snapshot_waiting_bytes(&self) -> usize {
        self.in_use().map(Keyspace::snapshot_waiting_bytes).sum()
    }

    /// Checks what the fields promise of each other, in time proportional to the data.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert!(self.empty.len() == 0, "nothing is written where no database is");
        self.in_use().for_each(Keyspace::check);
    }

    /// Ends the snapshot under way, if there is one.
    pub(crate) fn end_snapshot(&mut self) {
        self.in_use_mut().for_each(Keyspace::end_snapshot);
    }
}

impl Databases for MemoryDatabases {
    type Keys = Keyspace;

    #[inline]
    fn database(&self, database: Database) -> &Keyspace {
        match (database.index().checked_sub(1), &self.others) {
            (None, _) => &self.first,
            (Some(place), Some(others)) => &others[place],
            (Some(_), None) => &self.empty,
        }
    }

    fn programs(&self) -> Programs {
        self.programs.clone()
    }
}

impl DatabasesMut for MemoryDatabases {
    #[inline]
    fn database_mut(&mut self, database: Database) -> &mut Keyspace {
        if self.notifies && self.changing.0 != database {
            self.changing = (database, self.changing.1 + 1);
        }
        let turn = self.changing.1;
        let keys = match database.index().checked_sub(1) {
            None => &mut self.first,
            Some(place) => &mut self.others_mut()[place],
        };
        keys.events_mut().begin_turn(turn);
        keys
    }

    fn effects_mut(&mut self) -> Option<&mut Effects> {
        Some(&mut self.effects)
    }

    fn set_programs(&mut self, programs: Programs) {
        self.programs = programs;
    }

    fn move_key(&mut self, name: &[u8], from: Database, to: Database) {
        if let Some(entry) = self.database_mut(from).give(name) {
            self.database_mut(to).receive(name, entry);
        }
    }

    fn swap(&mut self, first: Database, second: Database) {
        let (low, high) = (first.min(second), first.max(second));
        if low == high {
            return;
        }
        self.others_mut();
        // What has happened goes with the keys, and what happens now comes after it.
        self.changing.1 += 1;
        let mut low_keys = None;
        for (database, keys) in Database::all().zip(self.in_use_mut()) {
            if database == low {
                low_keys = Some(keys);
            } else if database == high
                && let Some(low_keys) = low_keys.take()
            {
                low_keys.swap(keys);
            }
        }
    }

    fn clear_all(&mut self) {
        self.first.clear();
        // What has no keys stays as it is, like what has never been in use.
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        others.filter(|keys| keys.count() > 0).for_each(KeysMut::clear);
    }

    fn record_versions(&mut self) {
        self.in_use_mut().for_each(Keyspace::record_versions);
        self.empty.record_from(self.first.recorded().map(|recorded| recorded.from));
    }
}

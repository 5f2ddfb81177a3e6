//! Keys that are to go because the data takes more memory than it may.
//!
//! The leader's driver chooses them, and the front end of the same process submits their removal as an update of its own
//! session. So the log carries it, and every member removes the same keys. A leader that has been deposed meanwhile has
//! asked for nothing worse than any client may ask for.

use std::collections::VecDeque;

use syros_commands::families::{Evict, RecordVersions};
use syros_commands::{Arguments, Operation, describe};
use syros_protocol::message::Body;
use syros_storage::Victim;
use syros_types::{Class, Database, EvictionSettings, Footprint, OpNumber, mix};

use crate::in_memory::InMemory;
#[cfg(feature = "planted-bugs")]
use crate::memory_executor::MemoryExecutor;
#[cfg(feature = "planted-bugs")]
use syros_types::WallTime;

/// So many removals are under way at a time, of up to [`Evict::KEYS_MAX`] keys each.
const IN_FLIGHT_MAX: usize = 16;

/// Of the limit, this part is above what evictions leave, and another one is what the leader takes beyond it; both are
/// bounded by [`MARGIN_BYTES_MAX`].
const MARGIN_PART: u64 = 64;

/// What a node has to spare, and followers may be behind by.
const MARGIN_BYTES_MAX: u64 = 16 << 20;

/// While there are keys to be evicted, the data may exceed the limit by this part of it: what is under way takes a round trip.
const OVERSHOOT_PART: u64 = 8;

/// How much memory the data may take, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes that the data may take.
    pub bytes: u64,
    /// A leader takes updates until the data has so many bytes more than followers take it to, so that these refuse first.
    pub leader_margin: u64,
    /// Which keys go.
    pub eviction: EvictionSettings,
}

impl MemoryLimit {
    /// The limit of a server.
    #[must_use]
    pub fn new(bytes: u64, eviction: EvictionSettings) -> Self {
        Self { bytes, leader_margin: (bytes / MARGIN_PART).min(MARGIN_BYTES_MAX), eviction }
    }

    /// Evictions leave no more than this.
    fn low_bytes(&self) -> u64 {
        self.bytes - (self.bytes / MARGIN_PART).min(MARGIN_BYTES_MAX)
    }

    /// So many bytes the data may take for now.
    pub(crate) fn bytes_for_now(&self, engine: &impl InMemory) -> u64 {
        let has_victims = engine.has_victims(self.eviction.policy);
        self.bytes.saturating_add(if has_victims { self.bytes / OVERSHOOT_PART } else { 0 })
    }
}

/// An update that the front end of this process submits.
#[derive(Clone, Debug)]
pub(crate) struct Eviction {
    pub(crate) body: Body,
    pub(crate) class: Class,
    pub(crate) footprint: Footprint,
}

/// Removals that are to be submitted, or under way.
#[derive(Debug, Default)]
pub struct Evictions {
    wanted: VecDeque<Eviction>,
    in_flight: usize,
    /// How often keys have been chosen.
    rounds: u64,
}

impl Evictions {
    /// The next one that is to be submitted, which is under way from now on.
    pub(crate) fn next(&mut self) -> Option<Eviction> {
        let next = self.wanted.pop_front()?;
        self.in_flight += 1;
        Some(next)
    }

    /// So many have ended, perhaps some that an earlier replica of this process had wanted.
    pub(crate) const fn end(&mut self, count: usize) {
        self.in_flight = self.in_flight.saturating_sub(count);
    }

    /// Chooses keys of an engine that has executed all up to this entry, if its data takes too much memory and nothing is under
    /// way: what is, may be enough.
    pub(crate) fn choose(&mut self, engine: &impl InMemory, executed: OpNumber, limit: &MemoryLimit) {
        let data = engine.data_bytes().unwrap_or(0) as u64;
        let excess = data.saturating_sub(limit.low_bytes());
        let is_off = limit.eviction.policy.order().is_none();
        if is_off || excess == 0 || self.in_flight > 0 || !self.wanted.is_empty() {
            return;
        }
        self.rounds += 1;
        let seed = mix(executed.0 ^ mix(self.rounds));
        let victims = engine.victims(&limit.eviction, excess, IN_FLIGHT_MAX * Evict::KEYS_MAX, seed);
        if victims.is_empty() {
            return;
        }
        if !engine.records_versions() {
            // Otherwise a key that is changed after it was chosen could not be told from one that is not.
            return self.want(&Operation::new(RecordVersions));
        }
        let of_expiring = limit.eviction.policy.is_of_expiring();
        for database in Database::all() {
            let keys: Vec<&[u8]> = of_database(&victims, database).collect();
            for keys in keys.chunks(Evict::KEYS_MAX) {
                let evict = Evict { chosen_after: executed.0, of_expiring, keys: Arguments::new(keys) };
                self.want(&Operation::new(evict).in_database(database));
            }
        }
    }

    /// Known to be wrong: what this engine has too much of goes without the log.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn evict_at_once<E: InMemory>(&mut self, memory: &mut MemoryExecutor<E>, limit: &MemoryLimit) {
        self.choose(memory.engine(), memory.executed(), limit);
        for eviction in self.wanted.drain(..) {
            memory.engine_mut().apply(WallTime(0), &eviction.body, &mut Vec::new());
        }
    }

    fn want(&mut self, operation: &Operation<'_>) {
        let mut body = Vec::new();
        operation.encode(&mut body);
        if let Ok(description) = describe(&body) {
            let (class, footprint) = (description.class, description.footprint);
            self.wanted.push_back(Eviction { body: Body::from(body), class, footprint });
        }
    }
}

fn of_database(victims: &[Victim], database: Database) -> impl Iterator<Item = &[u8]> {
    victims.iter().filter(move |victim| victim.database == database).map(|victim| &*victim.key)
}

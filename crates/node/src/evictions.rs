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
use syros_types::{Class, Database, EvictionSettings, OpNumber, mix};

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

/// What a limit of so many bytes leaves to either side.
fn margin_of(bytes: u64) -> u64 {
    (bytes / MARGIN_PART).min(MARGIN_BYTES_MAX)
}

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
        Self { bytes, leader_margin: margin_of(bytes), eviction }
    }

    /// Evictions leave no more than this.
    fn low_bytes(&self) -> u64 {
        self.bytes - margin_of(self.bytes)
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
}

/// Removals that are to be submitted, or under way.
#[derive(Debug, Default)]
pub struct Evictions {
    wanted: VecDeque<Eviction>,
    in_flight: usize,
    /// What was under way has ended, and nobody has looked whether there is more to choose.
    has_ended: bool,
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
        self.has_ended |= count > 0 && self.in_flight == 0;
    }

    /// True once when what was under way has ended: there may be more to choose.
    pub(crate) const fn take_ended(&mut self) -> bool {
        std::mem::replace(&mut self.has_ended, false)
    }

    /// Chooses keys of an engine that has executed all up to this entry, if its data takes too much memory and nothing is under
    /// way: what is, may be enough.
    pub(crate) fn choose(&mut self, engine: &impl InMemory, executed: OpNumber, limit: &MemoryLimit) {
        if limit.eviction.policy.order().is_none() || self.in_flight > 0 || !self.wanted.is_empty() {
            return;
        }
        let data = engine.data_bytes().unwrap_or(0) as u64;
        let excess = data.saturating_sub(limit.low_bytes());
        if excess == 0 {
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
            self.wanted.push_back(Eviction { body: Body::from(body), class: description.class });
        }
    }
}

fn of_database(victims: &[Victim], database: Database) -> impl Iterator<Item = &[u8]> {
    victims.iter().filter(move |victim| victim.database == database).map(|victim| &*victim.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::operations;
    use syros_storage::conformance::body_of;
    use syros_storage::{Engine, MemoryEngine};
    use syros_types::{EvictionPolicy, WallTime};

    fn limit(bytes: u64, policy: EvictionPolicy) -> MemoryLimit {
        MemoryLimit::new(bytes, EvictionSettings { policy, ..EvictionSettings::DEFAULT })
    }

    fn apply(engine: &mut MemoryEngine, number: u64, body: &[u8]) {
        Engine::begin_entry(engine, OpNumber(number));
        Engine::apply(engine, WallTime(number * 1_000_000), body, &mut Vec::new());
    }

    /// An engine with 2,000 keys, as many in another database, and an entry that has set the last of them.
    fn engine() -> (MemoryEngine, u64) {
        let mut engine = MemoryEngine::new();
        for number in 1..=4_000_u64 {
            let mut body = Vec::new();
            let set = body_of(&[b"SET", number.to_string().as_bytes(), b"value"]);
            let Some(Ok(operation)) = operations(&set).next() else { panic!("a SET") };
            let database = Database::new((number % 2) as u8).expect("a database");
            operation.in_database(database).encode(&mut body);
            apply(&mut engine, number, &body);
        }
        (engine, 4_000)
    }

    #[test]
    fn keys_go_until_there_is_room_and_no_more() {
        let (mut engine, mut last) = engine();
        let limit = limit(engine.memory_bytes() as u64 / 2, EvictionPolicy::AllKeysLru);
        engine.set_eviction(limit.eviction);
        let (mut evictions, mut rounds) = (Evictions::default(), 0);
        loop {
            evictions.choose(&engine, OpNumber(last), &limit);
            // What is under way may be enough.
            evictions.choose(&engine, OpNumber(last), &limit);
            let bodies: Vec<Body> = std::iter::from_fn(|| Some(evictions.next()?.body)).collect();
            if bodies.is_empty() {
                break;
            }
            rounds += 1;
            assert!(
                bodies.len() <= IN_FLIGHT_MAX + 1 && (rounds > 1 || bodies.len() == 1),
                "{}",
                bodies.len()
            );
            for body in &bodies {
                last += 1;
                apply(&mut engine, last, body);
            }
            evictions.end(bodies.len());
        }
        let (left, evicted) = (engine.len() as u64, engine.evicted());
        assert_eq!(left + evicted, 4_000);
        assert!((1_800..2_000).contains(&left) && rounds <= 4, "{left} {rounds}");
        assert!(engine.memory_bytes() as u64 <= limit.low_bytes());
    }

    #[test]
    fn nothing_goes_where_the_policy_finds_nothing() {
        let (engine, last) = engine();
        let mut evictions = Evictions::default();
        for policy in [EvictionPolicy::NoEviction, EvictionPolicy::VolatileTtl, EvictionPolicy::VolatileLfu] {
            let limit = limit(1, policy);
            evictions.choose(&engine, OpNumber(last), &limit);
            assert!(evictions.next().is_none(), "{policy}");
            assert_eq!(limit.bytes_for_now(&engine), 1, "{policy}");
        }
        let limit = limit(1_000, EvictionPolicy::AllKeysRandom);
        assert_eq!(limit.bytes_for_now(&engine), 1_125);
        assert_eq!(limit.bytes_for_now(&MemoryEngine::new()), 1_000);
    }
}

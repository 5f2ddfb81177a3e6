//! Which keys go when the data takes more memory than it may.
//!
//! As in Redis, some keys are drawn for each that is to go, and the best of them are kept for the next ones: nothing orders
//! all keys. Where those that expire first are to go, an index has them in order.

use crate::databases::MemoryDatabases;
use crate::keyspace::Keyspace;
use std::collections::BTreeSet;
use syros_types::{Database, EvictionOrder, EvictionSettings, Prng};

/// Most keys that are kept in mind besides those that have been chosen.
const POOL_MAX: usize = 16;

/// So many keys are drawn for one that may go, before the index of those that expire is asked.
const DRAWS_MAX: u32 = 16;

/// So often in a row nothing is found, and there is nothing.
const FAILURES_MAX: u32 = 4;

/// A key that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its database.
    pub database: Database,
    /// Its name.
    pub key: Box<[u8]>,
}

/// A key that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The higher, the sooner it goes.
    score: u64,
    database: Database,
    position: usize,
}

/// Keys whose removal gives back so many bytes, about, or `keys_max` of them, or as many as the policy finds.
pub(crate) fn choose(
    databases: &MemoryDatabases,
    settings: &EvictionSettings,
    (bytes, keys_max): (u64, usize),
    prng: &mut Prng,
) -> Vec<Victim> {
    let Some(order) = settings.policy.order() else { return Vec::new() };
    let mut choice = Choice { databases, settings, bytes, keys_max, victims: Vec::new(), chosen: BTreeSet::new() };
    match order {
        EvictionOrder::Expiry => choice.first_to_expire(),
        order => choice.by_samples(order, prng),
    }
    choice.victims
}

struct Choice<'a> {
    databases: &'a MemoryDatabases,
    settings: &'a EvictionSettings,
    /// So many bytes are still to be given back.
    bytes: u64,
    keys_max: usize,
    victims: Vec<Victim>,
    chosen: BTreeSet<(Database, usize)>,
}

impl Choice<'_> {
    fn is_done(&self) -> bool {
        self.bytes == 0 || self.victims.len() >= self.keys_max
    }

    /// Lets a key go.
    fn take(&mut self, database: Database, keys: &Keyspace, position: usize) {
        if let Some((key, freed)) = keys.removal_of(position)
            && self.chosen.insert((database, position))
        {
            self.bytes = self.bytes.saturating_sub(freed as u64);
            self.victims.push(Victim { database, key: key.into() });
        }
    }

    fn first_to_expire(&mut self) {
        let mut first: Vec<_> = self
            .databases
            .iter()
            .flat_map(|(database, keys)| keys.next_to_expire().take(self.keys_max).map(move |it| (it, database, keys)))
            .collect();
        first.sort_by_key(|((expiry, position), database, _)| (*expiry, *database, *position));
        for ((_, position), database, keys) in first {
            if self.is_done() {
                return;
            }
            self.take(database, keys, position);
        }
    }

    fn by_samples(&mut self, order: EvictionOrder, prng: &mut Prng) {
        let samples = if order == EvictionOrder::Chance { 1 } else { self.settings.samples.max(1) };
        let mut pool: Vec<Candidate> = Vec::new();
        let mut failures = 0;
        while !self.is_done() && failures < FAILURES_MAX {
            for _ in 0..samples {
                let Some((database, position)) = self.draw(prng) else { break };
                let score = self.databases.database_of(database).eviction_score(position, order);
                let candidate = Candidate { score, database, position };
                let is_new = !self.chosen.contains(&(database, position)) && !pool.contains(&candidate);
                if is_new {
                    let place = pool.partition_point(|other| *other < candidate);
                    pool.insert(place, candidate);
                }
                if pool.len() > POOL_MAX {
                    pool.remove(0);
                }
            }
            match pool.pop() {
                Some(Candidate { database, position, .. }) => {
                    failures = 0;
                    self.take(database, self.databases.database_of(database), position);
                }
                None => failures += 1,
            }
        }
    }

    /// Draws a key that may go.
    fn draw(&self, prng: &mut Prng) -> Option<(Database, usize)> {
        let of_expiring = self.settings.policy.is_of_expiring();
        let keys: usize = self.databases.iter().map(|(_, keys)| keys.len()).sum();
        let at = |mut number: usize| {
            self.databases.iter().find_map(|(database, keys)| {
                let place = (number < keys.len()).then_some((database, keys, number));
                number = number.wrapping_sub(keys.len());
                place
            })
        };
        let mut draws = (0..DRAWS_MAX).filter(|_| keys > 0).filter_map(|_| at(prng.below(keys as u64) as usize));
        let drawn = draws.find(|(_, keys, position)| keys.may_go(*position, of_expiring));
        if let Some((database, _, position)) = drawn {
            return Some((database, position));
        }
        // Where few keys expire, they are found by when they do.
        let expiring = || self.databases.iter().filter(|(_, keys)| of_expiring && keys.expiring_len() > 0);
        let place = prng.below(expiring().count().max(1) as u64) as usize;
        let (database, keys) = expiring().nth(place)?;
        Some((database, keys.draw_expiring(prng)?))
    }
}

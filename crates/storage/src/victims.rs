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
const FAILURES_MAX: u32 = 16;

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
    let order = settings.policy.order().filter(|_| databases.has_victims(settings.policy));
    let Some(order) = order else { return Vec::new() };
    let mut choice =
        Choice { databases, settings, bytes, keys_max, victims: Vec::new(), chosen: BTreeSet::new() };
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
            .flat_map(|(database, keys)| {
                keys.next_to_expire().take(self.keys_max).map(move |it| (it, database, keys))
            })
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
        let mut draws =
            (0..DRAWS_MAX).filter(|_| keys > 0).filter_map(|_| at(prng.below(keys as u64) as usize));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::body_of;
    use crate::{Engine as _, MemoryEngine};
    use syros_types::{EvictionPolicy, WallTime};

    fn apply(engine: &mut MemoryEngine, second: u64, command: &str) {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        engine.apply(WallTime(second * 1_000_000), &body_of(&words), &mut Vec::new());
    }

    /// An engine with a hundred keys. The first 50 expire, those with higher numbers earlier; the even ones were used again
    /// after an hour, the higher the more often.
    fn engine(policy: EvictionPolicy) -> (MemoryEngine, EvictionSettings) {
        let settings = EvictionSettings { policy, samples: 10, ..EvictionSettings::DEFAULT };
        let mut engine = MemoryEngine::new();
        engine.set_eviction(settings);
        for number in 0..100 {
            let expiry = if number < 50 { format!(" EX {}", 100_000 - number) } else { String::new() };
            apply(&mut engine, 0, &format!("SET {number} v{expiry}"));
        }
        for number in (0..100).step_by(2) {
            (0..=number).for_each(|_| apply(&mut engine, 3_600, &format!("GET {number}")));
        }
        (engine, settings)
    }

    fn victims(policy: EvictionPolicy, keys_max: usize) -> Vec<usize> {
        let (engine, settings) = engine(policy);
        let victims = engine.victims(&settings, u64::MAX, keys_max, 7);
        let number =
            |victim: &Victim| std::str::from_utf8(&victim.key).expect("digits").parse().expect("a number");
        let numbers: Vec<usize> = victims.iter().map(number).collect();
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "none goes twice");
        numbers
    }

    #[test]
    fn policies_choose_what_they_say() {
        assert_eq!(victims(EvictionPolicy::NoEviction, 9), []);
        assert_eq!(victims(EvictionPolicy::VolatileTtl, 3), [49, 48, 47]);
        let odd = |numbers: &[usize]| numbers.iter().filter(|number| *number % 2 == 1).count();
        for policy in [EvictionPolicy::AllKeysLru, EvictionPolicy::AllKeysLfu] {
            let chosen = victims(policy, 40);
            assert!(odd(&chosen) >= 38, "{policy}: {chosen:?}");
        }
        let chosen = victims(EvictionPolicy::VolatileLru, 20);
        assert!(odd(&chosen) >= 18 && chosen.iter().all(|number| *number < 50), "{chosen:?}");
        let chosen = victims(EvictionPolicy::AllKeysRandom, 60);
        assert!((15..45).contains(&odd(&chosen)) && chosen.len() == 60, "{chosen:?}");
        assert!(victims(EvictionPolicy::VolatileRandom, 30).iter().all(|number| *number < 50));
    }

    #[test]
    fn all_that_may_go_is_found_in_the_end() {
        for policy in EvictionPolicy::ALL {
            let (mut engine, settings) = engine(policy);
            let (mut gone, mut rounds) = (0, 0);
            loop {
                let victims = engine.victims(&settings, u64::MAX, 16, rounds);
                if victims.is_empty() {
                    break;
                }
                (gone, rounds) = (gone + victims.len(), rounds + 1);
                for victim in victims {
                    engine.apply(WallTime(0), &body_of(&[b"DEL", &victim.key]), &mut Vec::new());
                }
            }
            let left = if policy.is_of_expiring() { 50 } else { 0 };
            let left = if policy == EvictionPolicy::NoEviction { 100 } else { left };
            assert_eq!((engine.len(), gone), (left, 100 - left), "{policy}");
        }
    }

    #[test]
    fn no_more_go_than_give_back_what_is_wanted() {
        let (engine, settings) = engine(EvictionPolicy::AllKeysRandom);
        assert_eq!(engine.victims(&settings, 1, 64, 1).len(), 1);
        let bytes = engine.memory_bytes() as u64 / 4;
        assert!((15..40).contains(&engine.victims(&settings, bytes, 64, 1).len()));
    }
}

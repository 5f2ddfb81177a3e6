//! What clients ask for: operations on few keys, so that they meet; values that tell who wrote them.

mod collection_steps;
pub(crate) mod collections;
mod command;
mod waiting;
mod watching;

pub use collection_steps::CollectionSettings;
pub(crate) use command::put_parsed;
pub use command::{ClientCommand, encode, key_name, key_of};
pub use waiting::{WaitAction, WaitCommand};
pub use watching::WatchSettings;
pub(crate) use watching::Watching;

use syros_types::{Prng, ReadPolicy, WritePolicy};

/// Kinds of operation the workload mixes, the length of [`WorkloadSettings::weights`].
pub const KINDS: usize = 12;

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// Clients at a time.
    pub clients: usize,
    /// Operations each client keeps in flight at most.
    pub in_flight: usize,
    /// Operations of the safety phase, over all clients.
    pub operations: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Mean pause of a client between operations.
    pub think: u64,
    /// Operations of a hundred that go to the first key.
    pub hot_key_percent: u64,
    /// Relative weight of each kind of operation, in the order of [`KINDS`].
    pub weights: [u64; KINDS],
    /// Operations of a hundred that are packed with others on the same key into one body.
    pub packed_percent: u64,
    /// Operations of a hundred that are transactions: several commands on any keys in one body.
    pub transaction_percent: u64,
    /// Operations of a hundred that set a key which expires.
    pub expiring_percent: u64,
    /// Longest lifetime of such a key, in milliseconds.
    pub lifetime_max: u64,
    /// As many operations read such keys, too.
    pub expiring_read: bool,
    /// What clients ask for of collections, if anything.
    pub collections: Option<CollectionSettings>,
    /// What clients ask for that watch keys, if any do.
    pub watches: Option<WatchSettings>,
    /// Operations of a hundred that concern all keys: FLUSHALL, DBSIZE, KEYS.
    pub all_keys_percent: u64,
    /// Reads of a hundred that any replica may answer as it is. They are judged apart.
    pub stale_percent: u64,
    /// Texts that are written are at least so long.
    pub value_bytes: usize,
    /// So many of the clients, the first ones, only read. A client that writes hears of a new view from
    /// whoever refuses its requests; one that only reads believes its leader for as long as it answers.
    pub readers: usize,
    /// How clients read; `None`: each in another of the linearizable ways.
    pub read_policy: Option<ReadPolicy>,
    /// How updates of clients go that may be fast; `None`: each client's in another way.
    pub write_policy: Option<WritePolicy>,
}

impl WorkloadSettings {
    /// How a client reads.
    pub(crate) fn read_policy_of(&self, client: usize) -> ReadPolicy {
        const LINEARIZABLE: [ReadPolicy; 4] =
            [ReadPolicy::Quorum, ReadPolicy::Meta, ReadPolicy::Leader, ReadPolicy::Auto];
        self.read_policy.unwrap_or(LINEARIZABLE[client % LINEARIZABLE.len()])
    }

    /// How a client's updates go.
    pub(crate) fn write_policy_of(&self, client: usize) -> WritePolicy {
        self.write_policy.unwrap_or(WritePolicy::ALL[client % WritePolicy::ALL.len()])
    }
}

/// Most keys of a world with operations over all of them, those that expire left aside. Such an operation joins the
/// histories of all keys, and the search for a linearization is exponential in what is joined.
pub const ALL_KEYS_MAX: u64 = 6;

/// Most operations of such a world's safety phase.
pub const ALL_KEYS_OPERATIONS_MAX: u64 = 160;

/// Makes up operations. Every value written is new, so that a read tells which write it saw. Even keys
/// mostly hold integers and odd ones text: INCRBY and APPEND then have something to add to.
#[derive(Clone, Debug)]
pub struct Workload {
    settings: WorkloadSettings,
    prng: Prng,
    made: u64,
}

impl Workload {
    /// A workload whose operations are determined by the settings and the generator.
    #[must_use]
    pub const fn new(settings: WorkloadSettings, prng: Prng) -> Self {
        Self { settings, prng, made: 0 }
    }

    /// What clients do.
    pub(crate) const fn settings(&self) -> &WorkloadSettings {
        &self.settings
    }

    /// The next operation of the client in this slot.
    pub fn next(&mut self, slot: usize) -> Vec<ClientCommand> {
        if let Some(steps) = self.of_collections(slot) {
            return steps;
        }
        if slot >= self.settings.readers
            && let Some(steps) = self.of_shared_part()
        {
            return steps;
        }
        if slot < self.settings.readers {
            let key = self.key();
            if self.settings.all_keys_percent > 0 && self.prng.chance(1, 8) {
                return vec![if self.prng.chance(1, 2) {
                    ClientCommand::DbSize
                } else {
                    ClientCommand::Keys
                }];
            }
            let several = self.prng.chance(1, 8);
            return vec![if several { ClientCommand::MGet(self.keys(key)) } else { ClientCommand::Get(key) }];
        }
        let all_keys = self.settings.all_keys_percent;
        if all_keys > 0 && self.prng.chance(all_keys, 100) {
            return vec![match self.prng.below(5) {
                0 | 1 => ClientCommand::FlushAll,
                2 | 3 => ClientCommand::DbSize,
                _ => ClientCommand::Keys,
            }];
        }
        let expiring = self.settings.expiring_percent;
        if expiring > 0 && self.prng.chance(expiring, 100) {
            let keys = self.expiring_keys();
            let key = keys.start + self.prng.below(keys.end - keys.start);
            if self.settings.expiring_read && self.prng.chance(1, 2) {
                return vec![match self.prng.below(8) {
                    0 => ClientCommand::Del { key, blind: false },
                    1 => ClientCommand::GetSet(key, self.value(key)),
                    _ => ClientCommand::Get(key),
                }];
            }
            let millis = 1 + self.prng.below(self.settings.lifetime_max);
            return vec![ClientCommand::SetFor(key, self.value(key), millis)];
        }
        let kind = self.kind();
        let key = self.key();
        let mut steps = vec![self.step(kind, key)];
        if self.prng.chance(self.settings.packed_percent, 100) {
            for _ in 0..=self.prng.below(2) {
                let kind = self.kind();
                steps.push(self.step(kind, key));
            }
        }
        let transactions = self.settings.transaction_percent;
        if transactions > 0 && self.prng.chance(transactions, 100) {
            for _ in 0..=self.prng.below(3) {
                let (kind, key) = (self.kind(), self.key());
                steps.push(self.step(kind, key));
            }
        }
        steps
    }

    /// Whether a read is a stale one. KEYS never is: every replica has an order of its own.
    pub fn is_stale(&mut self, steps: &[ClientCommand]) -> bool {
        let percent = self.settings.stale_percent;
        let may_be = |step: &ClientCommand| step.is_read() && *step != ClientCommand::Keys;
        percent > 0 && steps.iter().all(may_be) && self.prng.chance(percent, 100)
    }

    /// Keys that expire. Where nobody reads them, the replicas have to agree about them all the same.
    pub(crate) const fn expiring_keys(&self) -> core::ops::Range<u64> {
        self.settings.keys..self.settings.keys + 3
    }

    fn kind(&mut self) -> usize {
        let total: u64 = self.settings.weights.iter().sum();
        let mut at = self.prng.below(total);
        for (kind, weight) in self.settings.weights.iter().enumerate() {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return kind,
            }
        }
        0
    }

    fn key(&mut self) -> u64 {
        if self.prng.chance(self.settings.hot_key_percent, 100) {
            0
        } else {
            self.prng.below(self.settings.keys)
        }
    }

    /// A value nobody has written before: an integer for even keys, text for odd ones.
    fn value(&mut self, key: u64) -> Vec<u8> {
        self.made += 1;
        if key.is_multiple_of(2) {
            (self.made * 1_000).to_string().into_bytes()
        } else {
            let mut text = format!("v{}.", self.made).into_bytes();
            text.resize(text.len().max(self.settings.value_bytes), b'.');
            text
        }
    }

    /// `key`, or mostly its neighbour if that is of the wanted parity.
    fn of_parity(&mut self, key: u64, parity: u64) -> u64 {
        let fits = key % 2 == parity || self.settings.keys < 2 || self.prng.chance(1, 8);
        if fits { key } else { key ^ 1 }.min(self.settings.keys - 1)
    }

    fn keys(&mut self, first: u64) -> Vec<u64> {
        let more = 1 + self.prng.below(2);
        let mut keys = vec![first];
        for _ in 0..more {
            let key = self.prng.below(self.settings.keys);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn step(&mut self, kind: usize, key: u64) -> ClientCommand {
        let delta = 1 + self.prng.below(3) as i64;
        match kind {
            0 => ClientCommand::Set(key, self.value(key)),
            1 | 2 => ClientCommand::IncrBy { key: self.of_parity(key, 0), delta, blind: kind == 1 },
            3 | 4 => {
                let key = self.of_parity(key, 1);
                self.made += 1;
                let value = format!("a{}.", self.made).into_bytes();
                ClientCommand::Append { key, value, blind: kind == 3 }
            }
            5 => ClientCommand::GetSet(key, self.value(key)),
            6 => ClientCommand::SetNx(key, self.value(key)),
            7 => {
                let keys = self.keys(key);
                ClientCommand::MSet(keys.into_iter().map(|key| (key, self.value(key))).collect())
            }
            8 => ClientCommand::MGet(self.keys(key)),
            9 | 10 => ClientCommand::Del { key, blind: kind == 9 },
            _ => ClientCommand::Get(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::Swarm;
    use syros_types::Class;

    #[test]
    fn every_operation_is_well_formed() {
        let mut classes = Vec::new();
        for seed in 0..40 {
            let settings = Swarm::draw(seed).workload;
            let mut workload = Workload::new(settings, Prng::new(seed));
            for _ in 0..50 {
                let steps = workload.next(9);
                let description = syros_commands::describe(&encode(&steps)).unwrap();
                classes.push(description.class);
            }
        }
        for class in [Class::Read, Class::Overwrite, Class::Merge, Class::Update] {
            assert!(classes.iter().filter(|c| **c == class).count() > 100, "{class:?}");
        }
    }

    #[test]
    fn the_same_seed_asks_for_the_same() {
        let make = || {
            let mut workload = Workload::new(Swarm::draw(3).workload, Prng::new(3));
            (0..50).map(|_| workload.next(9)).collect::<Vec<_>>()
        };
        assert_eq!(make(), make());
    }
}

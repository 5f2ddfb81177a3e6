//! The in-memory engine.

mod loader;

pub use loader::Loader;

use crate::databases::MemoryDatabases;
use crate::detached::DetachedRead;
use crate::entry::earlier;
use crate::evaluate::evaluate;
pub(crate) use crate::keyspace::moment;
use crate::keyspace::{Keyspace, RemovalPace};
use crate::listing::Listing;
use crate::removals::Recorded;
use crate::victims::{self, Victim};
use crate::{Digest, Engine};
use core::hint::black_box;
use smallvec::SmallVec;
use syros_commands::access::{Announcement, Databases as _, DatabasesMut as _, Keys as _};
use syros_commands::execution;
use syros_commands::families::Keys;
use syros_commands::{Command, DatabaseKey, Operation, Programs, looks_at_little, operations, put_error};
use syros_types::{Database, EvictionPolicy, EvictionSettings, OpNumber, Prng, WallTime};

/// An [`Engine`] that keeps everything in memory.
///
/// A clone is independent of the original and gives the same answers; a snapshot under way goes on in
/// both. However many keys expire at one time, the next body takes no longer: they are gone at once for everybody, and
/// their memory is given back within seconds.
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    databases: MemoryDatabases,
    /// The policy of eviction asks how keys are used.
    notes_uses: bool,
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryEngine {
    /// An empty engine at time 0, for simulations and tests: whoever chooses keys can make them
    /// collide in its tables.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hash_seed(0)
    }

    /// An empty engine at time 0 whose tables cannot be attacked with colliding keys by anybody who
    /// does not know the seed. Engines with different seeds give the same answers.
    #[must_use]
    pub fn with_hash_seed(seed: u64) -> Self {
        Self::with_pace(seed, RemovalPace::STANDARD)
    }

    /// The same, with another pace at which the records of expired keys go.
    #[must_use]
    pub fn with_pace(seed: u64, pace: RemovalPace) -> Self {
        Self { databases: MemoryDatabases::new(seed, pace), notes_uses: false }
    }

    /// Begins to restore an engine from the blocks of a snapshot of any engine of this type. The seed of
    /// its tables need not be that of the captured engine; see [`MemoryEngine::with_hash_seed`].
    #[must_use]
    pub fn loader(hash_seed: u64) -> Loader {
        Self::loader_with_pace(hash_seed, RemovalPace::STANDARD)
    }

    /// The same, of an engine with this pace.
    #[must_use]
    pub fn loader_with_pace(hash_seed: u64, pace: RemovalPace) -> Loader {
        Loader::new(hash_seed, pace)
    }

    /// Bodies that [`MemoryEngine::touch`] looks at: more than a processor has requests to memory under way, and few
    /// enough that nothing it has fetched is displaced before it is used.
    pub const TOUCHED_AT_ONCE: usize = 32;

    /// Has the processor fetch what the first [`MemoryEngine::TOUCHED_AT_ONCE`] of these bodies need when they are
    /// applied. Changes nothing, and no answer; bodies may be malformed.
    ///
    /// An update by itself waits for memory several times, once after the other: for its body, the place of its key in
    /// the table, the key there, the old value. Here each step is taken for many before the next one, and the processor
    /// waits for all of them together. Nothing else belongs into these loops: what has to wait for
    /// an earlier instruction to be done with makes everything behind it wait.
    pub fn touch<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) {
        type Few<T> = SmallVec<[T; MemoryEngine::TOUCHED_AT_ONCE]>;
        let bodies: Few<&[u8]> = bodies.take(Self::TOUCHED_AT_ONCE).collect();
        bodies.iter().for_each(|body| fetch(body));
        let keys: Few<DatabaseKey<'_>> =
            bodies.iter().filter_map(|body| operations(body).next()?.ok()?.single_key()).collect();
        let position = |key: &DatabaseKey<'_>| {
            Some((key.database, self.databases.database(key.database).likely_position(key.name)?))
        };
        let positions: Few<(Database, usize)> = keys.iter().filter_map(position).collect();
        let places = || {
            let at =
                |(database, position): &(Database, usize)| self.databases.database(*database).at(*position);
            positions.iter().filter_map(at)
        };
        places().for_each(|(key, entry)| {
            black_box((key.first().copied(), entry.expiry()));
        });
        places().filter_map(|(_, entry)| entry.value().string().ok()).for_each(fetch);
    }

    /// Keys beyond which KEYS is executed in steps: as many as are listed in about a millisecond.
    pub const LISTED_AT_ONCE: usize = 16_384;

    /// The [work](syros_commands::Operation::work_on) of a body of reads beyond which it is executed apart: as much as is
    /// done in about a millisecond.
    pub const WORK_AT_ONCE: usize = 512 << 10;

    /// The work of a body of reads beyond which it is refused: as much as a processor does in some seconds. What would take
    /// minutes would be of no use to its client, who has given up by then, and would keep those of others waiting.
    pub const READ_WORK_MAX: usize = 1 << 30;

    /// The [work](syros_commands::Operation::work_from_log) of a body of updates on the data as it is now. What its operations
    /// add to the values that later ones go through is not counted.
    #[must_use]
    pub fn work_from_log(&self, body: &[u8]) -> usize {
        let works = operations(body).flatten().map(|operation| operation.work_from_log(&self.databases));
        works.fold(0, usize::saturating_add)
    }

    /// How these reads are to be executed, if that takes long.
    #[must_use]
    pub fn long_read(&self, body: &[u8]) -> Option<LongRead> {
        if !body.is_empty() && looks_at_little(body) {
            return None;
        }
        if let Some((database, _)) = keys_pattern(body) {
            let keys = self.databases.database(database);
            return (keys.len() > Self::LISTED_AT_ONCE).then_some(LongRead::InSteps);
        }
        let mut work = 0;
        for operation in operations(body) {
            // It is answered with an error.
            let operation = operation.ok()?;
            // It may look at any key, and a read apart has those that are named.
            if operation.concerns_all_keys() {
                return None;
            }
            work = operation.work_on(&self.databases).saturating_add(work);
        }
        if work > Self::READ_WORK_MAX {
            return Some(LongRead::TooLong { work });
        }
        (work > Self::WORK_AT_ONCE).then_some(LongRead::Detached { work })
    }

    /// These reads with the values of their keys as they are now, to be executed by any thread. `now` is that of
    /// [`Engine::read`].
    #[must_use]
    pub fn detach(&self, now: WallTime, body: &[u8]) -> DetachedRead {
        if self.notes_uses {
            self.note_uses(now.max(self.databases.time()), body);
        }
        DetachedRead::new(now.max(self.databases.time()), body, &self.databases)
    }

    /// Bytes of memory of large collections that no key has any more, and that wait for [`MemoryEngine::give_back`].
    /// [`Engine::memory_bytes`] does not count them: with each update some of them go, at least as much as it adds.
    #[must_use]
    pub fn garbage_bytes(&self) -> u64 {
        self.databases.garbage_bytes()
    }

    /// Gives back at most so many nodes of large collections that no key has any more, of about 1 KiB each. False if none
    /// are left. No answer, and nothing in a snapshot, depends on it.
    pub fn give_back(&mut self, nodes: usize) -> bool {
        self.databases.give_back(nodes)
    }

    /// Something that no key needs any more and that takes long to drop, such as the table that FLUSHALL has emptied:
    /// better dropped by another thread.
    pub fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        self.databases.take_leftover()
    }

    /// Begins to execute this body, a KEYS, on the keys as they are, while others are executed. If another is under way,
    /// it is abandoned.
    pub fn begin_keys(&mut self, body: &[u8]) {
        let (database, pattern) = keys_pattern(body).unwrap_or_default();
        self.databases.begin_listing(database, pattern);
    }

    /// Looks at [`MemoryEngine::LISTED_AT_ONCE`] more keys for the KEYS under way; what it has found, when it is complete
    /// or if none is under way.
    pub fn go_on_keys(&mut self) -> Option<ListedKeys> {
        self.databases.go_on_listing(Self::LISTED_AT_ONCE).map(ListedKeys)
    }

    /// Appends to `reply` what [`Engine::apply`] would append if the body were applied now, if that changed nothing but log
    /// time; false, and nothing is appended, if it would change something, or if that cannot be said without changing it.
    /// `now` is the log time that it would be applied at. A key that has expired by then must not be among its own: see
    /// [`Engine::first_expiry`].
    pub fn answer_no_op(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) -> bool {
        // Lifetimes count from then.
        let time = now.max(self.databases.time());
        let is_no_op = crate::evaluate::answer_no_op(&self.databases, time, body, reply);
        if is_no_op && self.notes_uses {
            self.note_uses(time, body);
        }
        is_no_op
    }

    /// [`Engine::evaluate`], known to be wrong: as if no key expired before the update is executed.
    #[cfg(feature = "planted-bugs")]
    pub fn evaluate_as_lasting(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        crate::evaluate::evaluate_as_lasting(&self.databases, self.databases.time(), body, reply)
    }

    /// How many keys a database has.
    #[must_use]
    pub fn database_len(&self, database: Database) -> usize {
        self.databases.database(database).count()
    }

    /// How many keys of a database have an expiry.
    #[must_use]
    pub fn expiring_len(&self, database: Database) -> usize {
        self.databases.database(database).expiring_len()
    }

    /// How many keys have expired since this engine was made.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.databases.expired()
    }

    /// From now on this policy decides which keys go when memory is short, and the engine takes note of how keys are used if
    /// the policy asks for that. Changes no answer but those of OBJECT.
    pub fn set_eviction(&mut self, settings: EvictionSettings) {
        self.notes_uses = settings.policy.needs_uses();
        self.databases.set_eviction(settings);
    }

    /// True if a policy may find keys that go.
    #[must_use]
    pub fn has_victims(&self, policy: EvictionPolicy) -> bool {
        self.databases.has_victims(policy)
    }

    /// Keys whose removal gives back so many bytes, about: `keys_max` of them at most, and none if there are none that the
    /// policy lets go. Different seeds draw different keys.
    #[must_use]
    pub fn victims(
        &self,
        settings: &EvictionSettings,
        bytes: u64,
        keys_max: usize,
        seed: u64,
    ) -> Vec<Victim> {
        victims::choose(&self.databases, settings, (bytes, keys_max), &mut Prng::new(seed))
    }

    /// True if it is recorded which log entry has changed a key.
    #[must_use]
    pub fn records_versions(&self) -> bool {
        self.databases.first().recorded().is_some()
    }

    /// How many keys have gone because memory was short, since this engine was made.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.databases.evicted()
    }

    /// Takes note that the keys of a body are used, if the policy of eviction asks for that. The body may be malformed.
    pub fn note_uses(&self, now: WallTime, body: &[u8]) {
        for operation in operations(body).flatten().filter(Operation::uses_keys) {
            operation.each_key(|key| self.databases.database(key.database).touch(key.name, now.as_millis()));
        }
    }

    /// An engine with these keys of the first database, and of others, at this time.
    pub(crate) fn restored(
        first: Keyspace,
        others: impl Iterator<Item = (Database, Keyspace, Option<Recorded>)>,
        time: WallTime,
        recorded: Option<Recorded>,
        programs: Programs,
    ) -> Self {
        let mut databases = MemoryDatabases::of_first(first);
        databases.set_programs(programs);
        for (database, keys, recorded) in others {
            databases.set(database, keys, recorded);
        }
        databases.set_recorded(recorded);
        databases.set_time(time);
        Self { databases, notes_uses: false }
    }
}

/// How a read that takes long is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongRead {
    /// In steps, with [`MemoryEngine::begin_keys`]: it is a KEYS.
    InSteps,
    /// Apart from the engine, with [`MemoryEngine::detach`].
    Detached {
        /// Its [work](syros_commands::Operation::work_on).
        work: usize,
    },
    /// Not at all: it is more than [`MemoryEngine::READ_WORK_MAX`].
    TooLong {
        /// Its work.
        work: usize,
    },
}

/// What a KEYS has found.
#[derive(Debug)]
pub struct ListedKeys(Listing);

impl ListedKeys {
    /// Appends the encoded reply; takes time in proportion to its length.
    pub fn put(self, reply: &mut Vec<u8>) {
        match self.0.finish() {
            Ok(names) => names.put(reply),
            Err(error) => put_error(reply, error.text().as_bytes()),
        }
    }
}

/// The database and the pattern, if this body is one KEYS and nothing else.
fn keys_pattern(body: &[u8]) -> Option<(Database, &[u8])> {
    let mut all = operations(body);
    let first = all.next()?.ok()?;
    match (first.command, all.next()) {
        (Command::Keys(Keys { pattern }), None) => Some((first.database, pattern)),
        _ => None,
    }
}

/// How many nodes of large collections executing this body may add, about.
const fn nodes_added(body: &[u8]) -> usize {
    const NODE_BYTES: usize = 512;
    // A node that is split, in two trees, whatever the length.
    2 + body.len() / NODE_BYTES
}

/// Reads a byte of each of the first cache lines; those behind, the processor foresees.
fn fetch(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    const LINES: usize = 4;
    for line in bytes.chunks(LINE_BYTES).take(LINES) {
        // The byte itself: a reference to it would not be followed.
        black_box((line.first().copied(), line.last().copied()));
    }
}

impl Engine for MemoryEngine {
    fn begin_entry(&mut self, number: OpNumber) {
        self.databases.begin_entry(number.0);
    }

    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.databases.advance(time, || operations(body).count());
        if self.databases.garbage_bytes() > 0 {
            self.databases.give_back(nodes_added(body));
        }
        let time = self.databases.time();
        if self.notes_uses {
            self.note_uses(time, body);
        }
        execution::apply(&mut self.databases, time, body, reply);
    }

    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        execution::read(&self.databases, now.max(self.databases.time()), body, reply);
        if self.notes_uses {
            self.note_uses(now.max(self.databases.time()), body);
        }
    }

    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        evaluate(&self.databases, self.databases.time(), body, reply)
    }

    fn first_expiry(&self, body: &[u8]) -> Option<WallTime> {
        // Of any key there is: most often there is none, and nothing to look up.
        let any = earlier(self.databases.first_expiry(), self.databases.first_field_expiry());
        let any = any.map(moment)?;
        let now_ms = self.databases.time().as_millis();
        let mut first = None;
        for operation in operations(body).flatten() {
            let mut sooner =
                |moment: WallTime| first = Some(first.map_or(moment, |first: WallTime| first.min(moment)));
            let names_keys = operation.each_key(|key| {
                let found = self.databases.database(key.database).get(key.name);
                if let Some(expiry) = found.and_then(|found| found.next_change(now_ms)) {
                    sooner(moment(expiry));
                }
            });
            if !names_keys {
                sooner(any);
            }
        }
        first
    }

    fn advance(&mut self, time: WallTime) {
        self.databases.advance(time, || 0);
    }

    fn set_notifying(&mut self, is_on: bool) {
        self.databases.set_notifying(is_on);
    }

    fn take_announcements(&mut self) -> Vec<Announcement> {
        self.databases.take_announcements()
    }

    fn take_effects(&mut self) -> u64 {
        self.databases.take_effects()
    }

    fn time(&self) -> WallTime {
        self.databases.time()
    }

    fn next_expiry(&self) -> Option<WallTime> {
        self.databases.next_advance()
    }

    fn len(&self) -> usize {
        self.databases.count()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.databases.memory_bytes()
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new(self.databases.time());
        digest.add_recorded(self.databases.first().recorded().map_or(0, |recorded| recorded.from));
        self.databases.programs().records().for_each(|record| digest.add_program(&record));
        for (database, keys) in self.databases.iter() {
            digest.enter(database);
            let now_ms = keys.time().as_millis();
            for (key, entry) in keys.iter() {
                digest.add_stamped(key, entry.value().fingerprint_at(now_ms), entry.stamp());
            }
            if let Some(recorded) = keys.recorded() {
                recorded.removals.iter().for_each(|(place, entry)| digest.add_removal(place, entry));
            }
        }
        digest.finish()
    }

    fn begin_snapshot(&mut self) {
        self.databases.begin_snapshot();
    }

    fn snapshot_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> bool {
        self.databases.snapshot_block(bytes, block)
    }

    fn snapshot_waiting_bytes(&self) -> usize {
        self.databases.snapshot_waiting_bytes()
    }

    fn end_snapshot(&mut self) {
        self.databases.end_snapshot();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Generator;
    use crate::stamp::Stamp;
    use core::num::NonZeroU64;
    use syros_commands::families::{FlushAll, GetDel, SetNx};
    use syros_values::Value;

    /// Whatever is executed while a KEYS is under way, it answers what it would have answered at once when it began.
    #[test]
    fn keys_in_steps_are_those_of_one_moment() {
        use syros_commands::Reply;
        let names = |reply: &[u8]| {
            let Ok([Reply::Array(names)]) = Reply::decode_all(reply)
                .as_deref()
                .map(|replies| <[Reply; 1]>::try_from(replies.to_vec()).expect("one reply"))
            else {
                panic!("no array")
            };
            let mut names = names.into_iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
            names.sort_unstable();
            names
        };
        let mut changed = 0;
        for seed in 0..300 {
            let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
            let pace = if seed % 4 < 2 { RemovalPace::SLOW } else { RemovalPace::STANDARD };
            let mut engine = MemoryEngine::with_pace(0, pace);
            for number in 0..200 {
                let expiry = NonZeroU64::new(if number % 3 == 0 { 1 + number * 20 } else { 0 });
                engine.databases.database_mut(Database::FIRST).append(
                    format!("k{number}").as_bytes(),
                    Value::String(vec![1]),
                    Stamp { expiry, entry: 0 },
                );
            }
            let pattern = if seed % 2 == 0 { "*" } else { "*[0-4]" };
            let mut body = Vec::new();
            Operation::new(Keys { pattern: pattern.as_bytes() }).encode(&mut body);
            let mut expected = Vec::new();
            engine.read(WallTime(0), &body, &mut expected);
            engine.begin_keys(&body);
            if seed % 5 == 0 {
                engine.begin_snapshot();
            }
            let mut step = 0;
            let listed = loop {
                if let Some(listed) = engine.databases.go_on_listing(1 + seed as usize % 7) {
                    break listed;
                }
                step += 1;
                let key = format!("k{}", (step * 7919) % 230);
                let mut body = Vec::new();
                match (seed + step) % 4 {
                    0 => Operation::new(GetDel { key: key.as_bytes() }).encode(&mut body),
                    1 => {
                        Operation::new(SetNx { key: key.as_bytes(), value: b"v" }).encode(&mut body);
                    }
                    2 if step > 20 && seed % 3 == 0 => {
                        Operation::new(FlushAll).encode(&mut body);
                    }
                    _ => body = generator.body().unwrap_or_default(),
                }
                engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
            };
            let mut reply = Vec::new();
            ListedKeys(listed).put(&mut reply);
            let mut now = Vec::new();
            engine.read(WallTime(0), &body, &mut now);
            changed += u32::from(names(&now) != names(&expected));
            assert_eq!(names(&reply), names(&expected), "seed {seed}");
        }
        assert!(changed > 200, "{changed} of 300: something has changed meanwhile");
    }

    /// However many keys there are: only a KEYS that stands alone is executed in steps.
    #[test]
    fn keys_among_other_reads_is_executed_with_them() {
        use syros_commands::Reply;
        use syros_commands::families::Get;
        let mut engine = MemoryEngine::new();
        for number in 0..=MemoryEngine::LISTED_AT_ONCE {
            let key = format!("k{number}");
            let stamp = Stamp { expiry: None, entry: 0 };
            engine.databases.database_mut(Database::FIRST).append(
                key.as_bytes(),
                Value::String(vec![1]),
                stamp,
            );
        }
        let (get, keys) = (Operation::new(Get { key: b"k7" }), Operation::new(Keys { pattern: b"k7" }));
        for (operations, expected) in [(vec![&keys], Some(LongRead::InSteps)), (vec![&get], None)] {
            let mut body = Vec::new();
            operations.iter().for_each(|operation| operation.encode(&mut body));
            assert_eq!(engine.long_read(&body), expected);
        }
        for first in [&get, &keys] {
            let (mut body, mut reply) = (Vec::new(), Vec::new());
            first.encode(&mut body);
            keys.encode(&mut body);
            assert_eq!(engine.long_read(&body), None);
            engine.read(WallTime(0), &body, &mut reply);
            let replies = Reply::decode_all(&reply).expect("whole replies");
            let names = Reply::Array(vec![Reply::Bulk(b"k7".to_vec())]);
            let expected = if first.concerns_all_keys() { names.clone() } else { Reply::Bulk(vec![1]) };
            assert_eq!(replies, [expected, names]);
        }
    }

    #[test]
    fn touching_changes_nothing() {
        let mut generator = Generator::new(7, 1..400, 1..2_000_000);
        let mut engine = MemoryEngine::new();
        let mut bodies = vec![vec![], vec![0xff; 300], vec![2, 0x80]];
        let mut most = 0;
        for step in 0..5_000 {
            let Some(body) = generator.body() else { continue };
            engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
            bodies.push(body);
            if bodies.len() == 2 * MemoryEngine::TOUCHED_AT_ONCE {
                let before = (engine.digest(), engine.databases.first().len());
                engine.touch(bodies.iter().map(Vec::as_slice));
                engine.touch(bodies.drain(..).rev().collect::<Vec<_>>().iter().map(Vec::as_slice));
                assert_eq!((engine.digest(), engine.databases.first().len()), before);
                engine.databases.check();
                most = most.max(engine.databases.first().len());
            }
        }
        assert!(most > 5, "there was something to touch");
    }

    #[test]
    fn what_is_touched_is_most_often_what_is_needed() {
        const KEYS: usize = 10_000;
        let name = |number: usize| format!("key:{number:012}").into_bytes();
        let mut engine = MemoryEngine::new();
        for number in 0..KEYS {
            assert!(engine.databases.database_mut(Database::FIRST).append(
                &name(number),
                Value::String(vec![1]),
                Stamp::default()
            ));
        }
        let found = |number| engine.databases.first().likely_position(&name(number));
        let right = (0..KEYS).filter(|number| found(*number) == Some(*number)).count();
        let wrong = (KEYS..2 * KEYS).filter(|number| found(*number).is_some()).count();
        assert!(right > KEYS * 9 / 10 && wrong < KEYS / 10, "{right} and {wrong} of {KEYS}");
    }

    #[test]
    fn the_tables_agree_after_every_change() {
        let mut generator = Generator::new(3, 1..4000, 1..2_000_000);
        let mut engine = MemoryEngine::with_pace(0, RemovalPace::SLOW);
        let policy = EvictionPolicy::AllKeysLfu;
        engine.set_eviction(EvictionSettings { policy, ..EvictionSettings::DEFAULT });
        for step in 0..20_000 {
            let Some(body) = generator.body() else { continue };
            engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
            engine.databases.check();
        }
        for _ in 0..100 {
            engine.advance(engine.next_expiry().unwrap_or_default());
            engine.databases.check();
        }
        assert_eq!(engine.next_expiry(), None);
    }
}

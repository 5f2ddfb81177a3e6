//! The way back from the blocks of a snapshot to an engine.

use super::MemoryEngine;
use crate::Digest;
use crate::assembly::Assembly;
use crate::keyspace::{Keyspace, RemovalPace};
use crate::removals::{Recorded, Removals};
use crate::snapshot::{DamagedSnapshot, Record};
use crate::stamp::Stamp;
use std::collections::BTreeMap;
use syros_commands::Programs;
use syros_types::{Database, WallTime};
use syros_values::Value;

/// A key, its value and what else is kept of it.
type WaitingKey = (Box<[u8]>, Value, Stamp);

/// Makes a [`MemoryEngine`] of the blocks of a snapshot.
///
/// Blocks may come in any order, each exactly once. In the order in which they were taken they cost the
/// least memory: a key's record waits, outside the tables, until all positions before its own are there.
///
/// The blocks need not be trustworthy: whatever they are, memory stays proportional to their length, and
/// nothing panics. Blocks that were damaged by chance are found out by the digest at the latest; what was
/// forged on purpose, digest included, is found out only where no engine could be in such a state.
pub struct Loader {
    first: DatabaseLoader,
    /// Other databases that have been read of.
    others: BTreeMap<Database, DatabaseLoader>,
    /// Which other databases there are, a bit for each.
    named_others: Option<u16>,
    hash_seed: u64,
    pace: RemovalPace,
    /// The first error: after it, what has been read may be incomplete.
    damage: Option<DamagedSnapshot>,
}

/// What has been read of one database.
struct DatabaseLoader {
    /// The keys at all positions before the first one that is missing.
    keys: Keyspace,
    /// What is behind the first missing position.
    waiting: BTreeMap<u64, WaitingKey>,
    /// The large collections that are not complete, by the positions of their keys.
    assemblies: BTreeMap<u64, Assembly>,
    /// Number of keys and log time.
    header: Option<(u64, WallTime)>,
    /// The entry that versions are recorded from; 0 if they are not.
    recorded_from: u64,
    /// The entries that have removed keys.
    removals: Removals,
    /// What is loaded.
    programs: Programs,
    /// The digest of what was captured.
    end: Option<u64>,
    /// The digest of what has been read, at time 0.
    digest: Digest,
}

impl DatabaseLoader {
    fn new(hash_seed: u64, pace: RemovalPace, database: Database) -> Self {
        let mut digest = Digest::new(WallTime(0));
        digest.enter(database);
        Self {
            keys: Keyspace::new(hash_seed, pace).sibling(database),
            waiting: BTreeMap::new(),
            assemblies: BTreeMap::new(),
            header: None,
            recorded_from: 0,
            removals: Removals::EMPTY,
            programs: Programs::NONE,
            end: None,
            digest,
        }
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), DamagedSnapshot> {
        match record {
            Record::Header { count, time } => match self.header.replace((count, time)) {
                None => Ok(()),
                Some(_) => Err(DamagedSnapshot::SecondHeader),
            },
            Record::End { digest } => match self.end.replace(digest) {
                None => Ok(()),
                Some(_) => Err(DamagedSnapshot::SecondEnd),
            },
            Record::Key { position, key, value, stamp } => {
                self.key(position, key, Value::String(value.to_vec()), stamp)
            }
            Record::Collection { position, key, value, stamp } => self.key(position, key, value, stamp),
            Record::CollectionHead { position, key, builder, stamp } => {
                self.assembly(position)?.head(position, (key, stamp), builder)?;
                self.complete(position)
            }
            Record::CollectionPart { position, rank, elements } => {
                self.assembly(position)?.part(position, rank, elements)?;
                self.complete(position)
            }
            Record::Recorded { from } => {
                self.digest.add_recorded(from);
                match core::mem::replace(&mut self.recorded_from, from) {
                    0 => Ok(()),
                    _ => Err(DamagedSnapshot::SecondRecorded),
                }
            }
            Record::Removal { part, entry } => {
                self.digest.add_removal(part, entry);
                if self.removals.has(part) {
                    return Err(DamagedSnapshot::Removal(part as u64));
                }
                self.removals.record(part, entry);
                Ok(())
            }
            Record::Program { record } => {
                self.digest.add_program(record);
                self.programs.add_record(record).map_err(|_| DamagedSnapshot::Program)
            }
            Record::OpenHeader { .. }
            | Record::CountedEnd { .. }
            | Record::Database { .. }
            | Record::OtherDatabases { .. } => Err(DamagedSnapshot::OtherEngine),
        }
    }

    /// The large collection of the key at this position, which is not complete.
    fn assembly(&mut self, position: u64) -> Result<&mut Assembly, DamagedSnapshot> {
        self.check_position(position)?;
        Ok(self.assemblies.entry(position).or_default())
    }

    /// Fails if no key that has not been there yet can have this position.
    fn check_position(&self, position: u64) -> Result<(), DamagedSnapshot> {
        if let Some((count, _)) = self.header
            && position >= count
        {
            return Err(DamagedSnapshot::Position { position, count });
        }
        if position < self.keys.len() as u64 || self.waiting.contains_key(&position) {
            return Err(DamagedSnapshot::DuplicatePosition(position));
        }
        Ok(())
    }

    /// Puts the key at this position in its place if its collection has become complete.
    fn complete(&mut self, position: u64) -> Result<(), DamagedSnapshot> {
        if !self.assemblies.get(&position).is_some_and(Assembly::is_complete) {
            return Ok(());
        }
        let complete = self.assemblies.remove(&position).map(|assembly| assembly.finish(position));
        let (key, stamp, value) = complete.unwrap_or(Err(DamagedSnapshot::DuplicatePart(position)))?;
        self.key(position, &key, value, stamp)
    }

    fn key(&mut self, position: u64, key: &[u8], value: Value, stamp: Stamp) -> Result<(), DamagedSnapshot> {
        self.check_position(position)?;
        let next = self.keys.len() as u64;
        self.digest.add_stamped(key, value.fingerprint(), stamp);
        if position > next {
            self.waiting.insert(position, (key.into(), value, stamp));
            return Ok(());
        }
        self.append(key, value, stamp)?;
        // That may have been what others waited for.
        while let Some(first) = self.waiting.first_entry()
            && *first.key() == self.keys.len() as u64
        {
            let (key, value, stamp) = first.remove();
            self.append(&key, value, stamp)?;
        }
        Ok(())
    }

    /// Puts a key at the first position that is missing.
    fn append(&mut self, key: &[u8], value: Value, stamp: Stamp) -> Result<(), DamagedSnapshot> {
        let position = self.keys.len() as u64;
        if self.keys.append(key, value, stamp) {
            Ok(())
        } else {
            Err(DamagedSnapshot::DuplicateKey(position))
        }
    }

    /// The keys, log time, what is recorded of versions, and what is loaded.
    ///
    /// # Errors
    /// If the blocks do not have all of the database.
    fn finish(self) -> Result<(Keyspace, WallTime, Option<Recorded>, Programs), DamagedSnapshot> {
        let (count, time) = self.header.ok_or(DamagedSnapshot::NoHeader)?;
        if let Some(position) = self.assemblies.keys().next() {
            return Err(DamagedSnapshot::MissingPart(*position));
        }
        let found = self.keys.len() as u64;
        if found < count {
            return Err(DamagedSnapshot::MissingPosition(found));
        }
        // These came before the header, or they would have been refused.
        let beyond = if found > count { Some(count) } else { self.waiting.keys().next().copied() };
        if let Some(position) = beyond {
            return Err(DamagedSnapshot::Position { position, count });
        }
        let expected = self.end.ok_or(DamagedSnapshot::NoEnd)?;
        let found = self.digest.at(time).finish();
        if found != expected {
            return Err(DamagedSnapshot::Digest { found, expected });
        }
        let recorded = Recorded { from: self.recorded_from, removals: self.removals };
        Ok((self.keys, time, (recorded.from > 0).then_some(recorded), self.programs))
    }
}

impl Loader {
    pub(crate) fn new(hash_seed: u64, pace: RemovalPace) -> Self {
        Self {
            first: DatabaseLoader::new(hash_seed, pace, Database::FIRST),
            others: BTreeMap::new(),
            named_others: None,
            hash_seed,
            pace,
            damage: None,
        }
    }

    /// Takes in one block. Takes time proportional to its length, and to that of records which waited
    /// for those in it.
    ///
    /// # Errors
    /// If it is no block of a snapshot, or contradicts those before it. Every later call then fails with
    /// the same error.
    pub fn block(&mut self, block: &[u8]) -> Result<(), DamagedSnapshot> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        self.take(block).inspect_err(|damage| self.damage = Some(*damage))
    }

    fn take(&mut self, block: &[u8]) -> Result<(), DamagedSnapshot> {
        let mut database = Database::FIRST;
        let mut rest = block;
        while !rest.is_empty() {
            match Record::take(&mut rest)? {
                Record::Database { database: next } => database = next,
                Record::OtherDatabases { others } => {
                    if !database.is_first() || self.named_others.replace(others).is_some() {
                        return Err(DamagedSnapshot::OtherDatabases);
                    }
                }
                record => self.of(database).record(record)?,
            }
        }
        Ok(())
    }

    /// What has been read of this database.
    fn of(&mut self, database: Database) -> &mut DatabaseLoader {
        if database.is_first() {
            return &mut self.first;
        }
        let (hash_seed, pace) = (self.hash_seed, self.pace);
        let begin = || DatabaseLoader::new(hash_seed, pace, database);
        self.others.entry(database).or_insert_with(begin)
    }

    /// The engine that was captured. It is in the same state, with the same positions, log time and next
    /// expiry: from here on the two give equal answers to equal bodies. It has no snapshot under way.
    ///
    /// # Errors
    /// If the blocks are not all of one snapshot, or one of them was refused.
    pub fn finish(self) -> Result<MemoryEngine, DamagedSnapshot> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        let (keys, time, recorded, programs) = self.first.finish()?;
        let found = self.others.keys().fold(0, |bits, database| bits | 1 << database.number());
        if found != self.named_others.unwrap_or(0) {
            return Err(DamagedSnapshot::OtherDatabases);
        }
        let from = |recorded: &Option<Recorded>| recorded.as_ref().map(|recorded| recorded.from);
        let mut others = Vec::with_capacity(self.others.len());
        for (database, other) in self.others {
            let (keys, other_time, other_recorded, other_programs) = other.finish()?;
            if !other_programs.is_empty() {
                return Err(DamagedSnapshot::Program);
            }
            if (other_time, from(&other_recorded)) != (time, from(&recorded)) {
                return Err(DamagedSnapshot::OtherDatabases);
            }
            others.push((database, keys, other_recorded));
        }
        Ok(MemoryEngine::restored(keys, others.into_iter(), time, recorded, programs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::conformance::body_of;
    use crate::snapshot::{put_collection_key, put_collection_part, put_end, put_header, put_key, tag};
    use core::num::NonZeroU64;
    use syros_commands::Operation;
    use syros_commands::families::RecordVersions;
    use syros_commands::limits::EXPIRY_MS_MAX;
    use syros_types::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
    use syros_types::{OpNumber, Prng};
    use syros_values::InvalidValue;

    fn stamp(expiry: Option<u64>) -> Stamp {
        Stamp { expiry: expiry.and_then(NonZeroU64::new), entry: 0 }
    }

    fn apply(engine: &mut MemoryEngine, command: &str) {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        engine.begin_entry(OpNumber(300));
        engine.apply(WallTime(2_000_000), &body_of(&words), &mut Vec::new());
    }

    /// A small engine with everything in it, and its snapshot, partly of keys changed meanwhile.
    fn example() -> (MemoryEngine, Vec<Vec<u8>>) {
        let mut engine = MemoryEngine::new();
        let mut record = Vec::new();
        Operation::new(RecordVersions).encode(&mut record);
        engine.begin_entry(OpNumber(200));
        engine.apply(WallTime(0), &record, &mut Vec::new());
        apply(&mut engine, "SET long:key:that:does:not:fit:into:the:table 200");
        for number in 0..10 {
            apply(&mut engine, &format!("SET key:{number} {number}"));
            apply(&mut engine, &format!("SET e:{number} {number} PX {}", 1 + number * 100));
        }
        apply(&mut engine, "HSET small f v g w");
        apply(&mut engine, "HSET small:2 f v");
        apply(&mut engine, "PEXPIRE small:2 5000");
        let long = "long:".repeat(13);
        for key in ["large", "large:2"] {
            apply(&mut engine, &format!("HSET {key} a {long} b 2 c 3 d 4 {long} 5"));
        }
        let captured = engine.clone();
        engine.begin_snapshot();
        let mut blocks = Vec::new();
        for command in
            ["SET key:3 changed", "DEL key:4 small", "PERSIST e:5", "HSET large f changed", "FLUSHALL"]
        {
            apply(&mut engine, command);
            let mut block = Vec::new();
            assert!(engine.snapshot_block(20, &mut block));
            blocks.push(block);
        }
        blocks.push(Vec::new());
        assert!(!engine.snapshot_block(usize::MAX, &mut blocks[5]));
        (captured, blocks)
    }

    fn load<B: AsRef<[u8]>>(blocks: &[B]) -> Result<MemoryEngine, DamagedSnapshot> {
        let mut loader = MemoryEngine::loader(0);
        let result = blocks.iter().try_for_each(|block| loader.block(block.as_ref()));
        let finished = loader.finish();
        if let Err(damage) = result {
            assert_eq!(finished.err(), Some(damage), "a loader forgot what is wrong");
            return Err(damage);
        }
        finished
    }

    fn positions(engine: &MemoryEngine) -> Vec<u8> {
        let mut reply = Vec::new();
        engine.read(WallTime(0), &body_of(&[b"KEYS", b"*"]), &mut reply);
        reply
    }

    /// If the blocks make an engine after all, it is the right one.
    fn error_or_equal(blocks: &[Vec<u8>], captured: &MemoryEngine) -> bool {
        match load(blocks) {
            Ok(engine) => {
                assert_eq!(engine.digest(), captured.digest());
                assert_eq!(positions(&engine), positions(captured));
                false
            }
            Err(_) => true,
        }
    }

    #[test]
    fn whole_snapshots_load() {
        let (captured, mut blocks) = example();
        assert!(!error_or_equal(&blocks, &captured));
        assert!(!error_or_equal(&[blocks.concat()], &captured));
        blocks.reverse();
        assert!(!error_or_equal(&blocks, &captured));
    }

    #[test]
    fn truncated_blocks_are_refused() {
        let (captured, blocks) = example();
        for number in 0..blocks.len() {
            for length in 0..blocks[number].len() {
                let mut blocks = blocks.clone();
                blocks[number].truncate(length);
                assert!(error_or_equal(&blocks, &captured), "block {number} cut to {length} bytes");
            }
        }
    }

    #[test]
    fn flipped_bits_are_found() {
        let (captured, blocks) = example();
        let mut found = 0;
        for number in 0..blocks.len() {
            for bit in 0..blocks[number].len() * 8 {
                let mut blocks = blocks.clone();
                blocks[number][bit / 8] ^= 1 << (bit % 8);
                found += usize::from(error_or_equal(&blocks, &captured));
            }
        }
        assert_eq!(found, blocks.concat().len() * 8);
    }

    #[test]
    fn bytes_at_random_never_panic() {
        let (captured, blocks) = example();
        let mut prng = Prng::new(4);
        for _ in 0..20_000 {
            let mut blocks = blocks.clone();
            for _ in 0..1 + prng.below(4) {
                let number = prng.below(blocks.len() as u64) as usize;
                let other = blocks[prng.below(6) as usize].clone();
                let block = &mut blocks[number];
                let at = prng.below(block.len() as u64 + 1) as usize;
                match prng.below(5) {
                    0 => block.truncate(at),
                    1 => block.insert(at, prng.next_u64() as u8),
                    2 => block.extend_from_slice(&other[other.len().min(at)..]),
                    3 => drop(block.splice(at.., core::iter::repeat_with(|| prng.next_u64() as u8).take(30))),
                    _ => block[at..].iter_mut().take(1).for_each(|byte| *byte = prng.next_u64() as u8),
                }
            }
            error_or_equal(&blocks, &captured);
        }
    }

    #[test]
    fn lost_and_repeated_blocks_are_found() {
        let (_, blocks) = example();
        for number in 0..blocks.len() {
            let mut lost = blocks.clone();
            let block = lost.remove(number);
            let damage = load(&lost).unwrap_err();
            match number {
                0 => assert_eq!(damage, DamagedSnapshot::NoHeader),
                _ => assert!(
                    matches!(damage, DamagedSnapshot::MissingPosition(_) | DamagedSnapshot::MissingPart(_)),
                    "{damage}"
                ),
            }
            let mut repeated = blocks.clone();
            repeated.push(block);
            let damage = load(&repeated).unwrap_err();
            match number {
                0 => assert_eq!(damage, DamagedSnapshot::SecondHeader),
                _ => assert!(
                    matches!(
                        damage,
                        DamagedSnapshot::DuplicatePosition(_) | DamagedSnapshot::DuplicatePart(_)
                    ),
                    "{damage}"
                ),
            }
        }
    }

    /// A snapshot of these keys, with the digest that they have.
    fn forged(count: u64, time: u64, keys: &[(u64, &str, Option<u64>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(&mut bytes, count, WallTime(time));
        let mut digest = Digest::new(WallTime(time));
        for (position, key, expiry) in keys {
            digest.add(key.as_bytes(), b"v", *expiry);
            put_key(&mut bytes, *position, key.as_bytes(), b"v", stamp(*expiry));
        }
        put_end(&mut bytes, digest.finish());
        bytes
    }

    #[test]
    fn every_error_says_what_is_wrong() {
        use DamagedSnapshot as D;
        let fine = forged(2, 5000, &[(1, "b", Some(6)), (0, "a", None)]);
        assert_eq!(load(&[&fine]).map(|engine| engine.len()), Ok(2));
        // A key may be due whose record has not gone yet.
        let due = forged(2, 5000, &[(0, "a", Some(5)), (1, "b", Some(6))]);
        assert_eq!(load(&[&due]).map(|engine| engine.len()), Ok(1));
        let bytes = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            bytes
        };
        let end = forged(0, 0, &[])[3..].to_vec();
        let long_number = [&[tag::END][..], &[0xff; 9], &[2]].concat();
        let endless_number = [&[tag::END][..], &[0x80; 20]].concat();
        let long_key = bytes(&|out| put_key(out, 0, &[0; KEY_BYTES_MAX + 1], b"", Stamp::default()));
        let key_length = KEY_BYTES_MAX as u64 + 1;
        let huge_value = [tag::KEY, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f].to_vec();
        let collection = |encoding: &[u8]| {
            let key = bytes(&|out| put_collection_key(out, tag::COLLECTION, 0, b"k", Stamp::default()));
            [&key, encoding].concat()
        };
        let head = |position, count| {
            let key =
                bytes(&|out| put_collection_key(out, tag::COLLECTION_HEAD, position, b"k", Stamp::default()));
            [&key[..], &[1, 2, count]].concat()
        };
        let part = |position, rank, field: &[u8]| {
            let element = [&[1][..], field, &[0]].concat();
            bytes(&|out| put_collection_part(out, position, rank, &element))
        };
        let at = |ms| bytes(&|out| put_key(out, 0, b"k", b"v", stamp(Some(ms))));
        let key_zero_expiry = [tag::KEY_WITH_EXPIRY, 0, 0, 0, 0].to_vec();
        let late_header = |position| {
            [bytes(&|out| put_key(out, position, b"k", b"v", Stamp::default())), forged(position, 0, &[])]
                .concat()
        };
        for (bytes, expected) in [
            (fine[..fine.len() - 1].to_vec(), D::Truncated),
            (vec![13], D::Tag(13)),
            (vec![tag::CHANGED, 1, tag::END, 0], D::Tag(tag::END)),
            (vec![tag::CHANGED, 1, tag::CHANGED, 1], D::Tag(tag::CHANGED)),
            (vec![tag::CHANGED, 0], D::Number),
            (vec![tag::REMOVAL, 0, 0], D::Number),
            (vec![tag::RECORDED, 0], D::Number),
            (vec![tag::RECORDED, 1, tag::RECORDED, 1], D::SecondRecorded),
            (vec![tag::REMOVAL, 0x82, 0x20, 1], D::Removal(4098)),
            (vec![tag::DATABASE, 16], D::Database(16)),
            (vec![tag::OTHER_DATABASES, 0], D::OtherDatabases),
            (vec![tag::OTHER_DATABASES, 3], D::OtherDatabases),
            (vec![tag::OTHER_DATABASES, 2, tag::OTHER_DATABASES, 2], D::OtherDatabases),
            ([&[tag::OTHER_DATABASES, 2][..], &fine].concat(), D::OtherDatabases),
            ([&fine[..], &[tag::DATABASE, 2], &fine].concat(), D::OtherDatabases),
            (vec![tag::REMOVAL, 0x80, 0x20, 1, tag::REMOVAL, 0x80, 0x20, 2], D::Removal(4096)),
            (collection(&[1, 1, 0]), D::Value(InvalidValue::Count(0))),
            (collection(&[0, 1, b'v']), D::Value(InvalidValue::Kind(0))),
            ([head(0, 2), part(0, 0, b"a")].concat(), D::NoHeader),
            ([head(0, 2), part(0, 0, b"a"), forged(1, 0, &[])].concat(), D::MissingPart(0)),
            (part(0, 0, b"a"), D::NoHeader),
            ([part(0, 0, b"a"), forged(1, 0, &[])].concat(), D::MissingPart(0)),
            ([part(0, 0, b"a"), part(0, 0, b"a")].concat(), D::DuplicatePart(0)),
            ([head(0, 3), part(0, 0, b"a"), part(0, 0, b"a")].concat(), D::DuplicatePart(0)),
            ([part(0, 1, b"b"), head(0, 1), part(0, 0, b"a")].concat(), D::Value(InvalidValue::Count(2))),
            ([head(0, 1), part(0, 0, b"a"), head(0, 1)].concat(), D::DuplicatePosition(0)),
            ([head(0, 2), head(0, 2)].concat(), D::DuplicatePosition(0)),
            ([forged(0, 0, &[]), head(0, 2)].concat(), D::Position { position: 0, count: 0 }),
            (long_number, D::Number),
            (endless_number, D::Number),
            (long_key, D::TooLong { length: key_length, limit: KEY_BYTES_MAX }),
            (huge_value, D::TooLong { length: u64::from(u32::MAX), limit: VALUE_BYTES_MAX }),
            (key_zero_expiry, D::Expiry(0)),
            (at(EXPIRY_MS_MAX + 1), D::Expiry(EXPIRY_MS_MAX + 1)),
            (at(EXPIRY_MS_MAX), D::NoHeader),
            (Vec::new(), D::NoHeader),
            ([&fine[..], &fine].concat(), D::SecondHeader),
            (forged(0, 0, &[])[..3].to_vec(), D::NoEnd),
            ([&end[..], &end].concat(), D::SecondEnd),
            (forged(1, 0, &[(0, "a", None), (1, "b", None)]), D::Position { position: 1, count: 1 }),
            (late_header(0), D::Position { position: 0, count: 0 }),
            (late_header(1), D::MissingPosition(0)),
            (forged(3, 0, &[(0, "a", None), (2, "b", None)]), D::MissingPosition(1)),
            (forged(u64::MAX, 0, &[(u64::MAX - 1, "a", None)]), D::MissingPosition(0)),
            (forged(2, 0, &[(0, "a", None), (0, "b", None)]), D::DuplicatePosition(0)),
            (forged(2, 0, &[(1, "a", None), (1, "b", None)]), D::DuplicatePosition(1)),
            (forged(2, 0, &[(0, "a", None), (1, "a", None)]), D::DuplicateKey(1)),
            (forged(2, 0, &[(1, "a", None), (0, "a", None)]), D::DuplicateKey(1)),
        ] {
            assert_eq!(load(&[&bytes]).map(|engine| engine.len()), Err(expected), "{bytes:?}");
            assert!(!expected.to_string().is_empty());
        }
        let other: Vec<u8> = fine.iter().map(|&byte| if byte == b'v' { b'w' } else { byte }).collect();
        assert!(matches!(load(&[&other]), Err(D::Digest { .. })));
    }
}

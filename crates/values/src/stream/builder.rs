//! Streams in elements: for whoever writes or reads one a part at a time.
//!
//! The first element of a stream is its numbers, the next ones are its entries, each an id and the packed fields, and then
//! come the records of its groups.

use super::fields::Fields;
use super::record::{Consumer, Group, Pending, Record as _, RecordKey, name_key, owned_key, take_id};
use super::{State, Stream, StreamId};
use crate::primitive::{InvalidValue, take_string};
use core::ops::ControlFlow;
use std::collections::BTreeSet;
use syros_tree::{Builder, ById, Dictionary, Log};
use syros_types::limits::{BODY_BYTES_MAX, VALUE_BYTES_MAX};
use syros_types::varint::{put_varint, take_varint};

/// Longest string of an element: an entry has the bytes of the command that added it, and not more.
const STRING_BYTES_MAX: usize = BODY_BYTES_MAX;

/// Longest key of a record: the name of a consumer behind the number of its group.
const KEY_BYTES_MAX: usize = VALUE_BYTES_MAX + 16;

impl Stream {
    /// How many elements it has.
    pub(crate) const fn elements_len(&self) -> u64 {
        1 + self.0.entries.len() + self.0.records.len()
    }

    /// Visits the strings of each element from a rank on, until `visit` breaks off.
    pub(crate) fn each_element_from(
        &self,
        rank: u64,
        mut visit: impl FnMut(&[&[u8]]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let State { entries, records, .. } = &*self.0;
        if rank == 0 {
            visit(&[&self.0.numbers_encoded()])?;
        }
        let rank = rank.saturating_sub(1);
        for (id, fields) in entries.range(rank..) {
            visit(&[&StreamId::of_number(id).to_bytes(), fields])?;
        }
        let rank = rank.saturating_sub(entries.len());
        records.range(rank..).try_for_each(|(key, value)| visit(&[key, value]))
    }
}

impl State {
    /// The first element: the last id, the greatest one that was removed, how many entries were added, which number was
    /// given last, and how many entries there are.
    pub(crate) fn numbers_encoded(&self) -> Vec<u8> {
        let mut out = [self.last.to_bytes(), self.max_deleted.to_bytes()].concat();
        [self.added, self.numbers, self.entries.len()]
            .iter()
            .for_each(|number| put_varint(&mut out, *number));
        out
    }
}

impl Stream {
    /// The stream of these [numbers](State::numbers_encoded), entries and records, and what follows from the records.
    pub(crate) fn of_trees(
        mut numbers: &[u8],
        entries: Log,
        (records, index): (Dictionary, Dictionary),
    ) -> Result<Self, InvalidValue> {
        let (last, max_deleted) = (take_id(&mut numbers)?, take_id(&mut numbers)?);
        let (added, given) = (take_varint(&mut numbers)?, take_varint(&mut numbers)?);
        if take_varint(&mut numbers)? != entries.len() || !numbers.is_empty() {
            return Err(InvalidValue::Record);
        }
        let exists = true;
        Ok(Self(Box::new(State {
            entries,
            records,
            index,
            last,
            max_deleted,
            added,
            numbers: given,
            exists,
        })))
    }
}

/// A stream that is being read.
#[derive(Default)]
pub(crate) struct StreamBuilder {
    entries: Builder<ById>,
    /// How many entries it will have.
    entries_len: u64,
    /// All but the entries. Each record is inserted where it belongs, so that no step takes long, not even the last one.
    state: State,
    /// The key of the last record.
    last_key: Vec<u8>,
    /// The numbers of the groups.
    groups: BTreeSet<u64>,
    has_numbers: bool,
}

impl StreamBuilder {
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.has_numbers) + self.entries.len() + self.state.records.len()
    }

    /// Takes the next element of so many off the front of `input`.
    pub(crate) fn element(&mut self, count: u64, input: &mut &[u8]) -> Result<(), InvalidValue> {
        if !self.has_numbers {
            self.has_numbers = true;
            return self.numbers(count, take_string(input, STRING_BYTES_MAX)?);
        }
        if self.entries.len() < self.entries_len {
            let id = take_string(input, size_of::<StreamId>())?;
            return self.entry(id, take_string(input, STRING_BYTES_MAX)?);
        }
        let key = take_string(input, KEY_BYTES_MAX)?;
        self.record(key, take_string(input, STRING_BYTES_MAX)?)
    }

    pub(crate) fn finish(self) -> Stream {
        Stream(Box::new(State { entries: self.entries.finish(), exists: true, ..self.state }))
    }

    fn numbers(&mut self, count: u64, mut bytes: &[u8]) -> Result<(), InvalidValue> {
        let state = &mut self.state;
        state.last = take_id(&mut bytes)?;
        state.max_deleted = take_id(&mut bytes)?;
        state.added = take_varint(&mut bytes)?;
        state.numbers = take_varint(&mut bytes)?;
        self.entries_len = take_varint(&mut bytes)?;
        if !bytes.is_empty() {
            return Err(InvalidValue::Record);
        }
        if self.entries_len >= count { Err(InvalidValue::Count(self.entries_len)) } else { Ok(()) }
    }

    fn entry(&mut self, id: &[u8], fields: &[u8]) -> Result<(), InvalidValue> {
        Fields::check(fields)?;
        let id = StreamId::from_bytes(id.try_into().map_err(|_| InvalidValue::Record)?);
        if id == StreamId::MIN || id > self.state.last {
            return Err(InvalidValue::Order);
        }
        self.entries.push(&Log::draft(id.number(), fields)).map_err(|_| InvalidValue::Order)
    }

    /// Groups come before consumers, and the consumers of a group before what is pending in it.
    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), InvalidValue> {
        if key <= &self.last_key[..] {
            return Err(InvalidValue::Order);
        }
        let Self { state, groups, .. } = self;
        match RecordKey::parse(key).ok_or(InvalidValue::Record)? {
            RecordKey::Group => {
                let number = Group::parse(value)?.number;
                if number > state.numbers || !groups.insert(number) {
                    return Err(InvalidValue::Record);
                }
            }
            RecordKey::Consumer { group, name } => {
                let number = Consumer::parse(value)?.number;
                let is_new = groups.contains(&group) && number <= state.numbers;
                if !is_new || !state.index.insert(&name_key(group, number), name) {
                    return Err(InvalidValue::Record);
                }
            }
            RecordKey::Pending { group, id } => {
                let consumer = Pending::parse(value)?.consumer;
                if state.index.get(&name_key(group, consumer)).is_none() {
                    return Err(InvalidValue::Record);
                }
                state.index.insert(&owned_key(group, consumer, id), b"");
            }
        }
        state.records.insert(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }
}

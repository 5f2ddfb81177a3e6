//! Streams of the twin.

use super::{Content, Twin, error, one_if};
use std::collections::BTreeMap;
use syros_commands::families::{
    Delivered, GroupAction, NewId, PendingRange, StreamSubject, Trim, TrimUntil, XAckParts, XAddParts,
    XAutoClaimParts, XClaimParts, XDel, XGroupParts, XInfo, XLen, XPendingParts, XRangeParts,
    XReadGroupParts, XReadParts, XSetIdParts, XTrimParts,
};
use syros_commands::{Arguments, Command, Reply};
use syros_types::WallTime;
use syros_types::varint::put_varint;
use syros_values::{StreamId, Value};

/// An id: milliseconds, and a number.
type Id = (u64, u64);

/// A stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    entries: BTreeMap<Id, Vec<Vec<u8>>>,
    groups: BTreeMap<Vec<u8>, Group>,
    last: Id,
    deleted: Id,
    added: u64,
    numbers: u64,
}

#[derive(Clone, Debug)]
struct Group {
    number: u64,
    last: Id,
    read: Option<u64>,
    consumers: BTreeMap<Vec<u8>, Consumer>,
    pending: BTreeMap<Id, Pending>,
}

#[derive(Clone, Debug)]
struct Consumer {
    number: u64,
    seen: u64,
    active: Option<u64>,
}

#[derive(Clone, Debug)]
struct Pending {
    consumer: Vec<u8>,
    time: u64,
    count: u64,
}

const LEAST: Id = (0, 0);
const GREATEST: Id = (u64::MAX, u64::MAX);

const fn plain(id: StreamId) -> Id {
    (id.ms(), id.sequence())
}

fn next(id: Id) -> Option<Id> {
    match id {
        GREATEST => None,
        (ms, u64::MAX) => Some((ms + 1, 0)),
        (ms, sequence) => Some((ms, sequence + 1)),
    }
}

fn show(id: Id) -> Reply {
    Reply::Bulk(format!("{}-{}", id.0, id.1).into_bytes())
}

fn number(value: u64) -> Reply {
    Reply::Integer(value as i64)
}

fn text(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

/// The id that a word is.
fn id_of(word: &[u8]) -> Option<Id> {
    let word = str::from_utf8(word).ok()?;
    let (ms, sequence) = word.split_once('-').unwrap_or((word, "0"));
    let part =
        |part: &str| part.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']).parse::<u64>().ok();
    Some((part(ms)?, part(sequence)?))
}

fn ids_of(words: Arguments<'_>) -> Option<Vec<Id>> {
    words.iter().map(id_of).collect()
}

fn invalid_id() -> Reply {
    error("ERR Invalid stream ID specified as stream command argument")
}

/// The streams that a command needs to be streams before it looks at anything else.
pub(super) fn keys_of_streams<'a>(command: &Command<'a>) -> Vec<&'a [u8]> {
    match *command {
        Command::XLen(XLen { key }) | Command::XDel(XDel { key, .. }) | Command::XInfo(XInfo { key, .. }) => {
            vec![key]
        }
        Command::XAdd(operation) => vec![operation.get().key],
        Command::XRange(operation) => vec![operation.get().key],
        Command::XTrim(operation) => vec![operation.get().key],
        Command::XSetId(operation) => vec![operation.get().key],
        Command::XGroup(operation) => vec![operation.get().key],
        Command::XAck(operation) => vec![operation.get().key],
        Command::XClaim(operation) => vec![operation.get().key],
        Command::XAutoClaim(operation) => vec![operation.get().key],
        Command::XPending(operation) => vec![operation.get().key],
        Command::XRead(operation) => operation.get().keys.iter().collect(),
        _ => Vec::new(),
    }
}

fn fields_of(fields: &[Vec<u8>]) -> Reply {
    Reply::Array(fields.iter().cloned().map(Reply::Bulk).collect())
}

fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

fn bytes_of(id: Id) -> Vec<u8> {
    [id.0.to_be_bytes(), id.1.to_be_bytes()].concat()
}

fn optional(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number + 1)
}

fn varints(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|number| put_varint(&mut out, *number));
    out
}

impl Stream {
    /// Writes the stream, which has it read again: its fingerprint is that of these bytes.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut elements = vec![
            [
                [bytes_of(self.last), bytes_of(self.deleted)].concat(),
                varints(&[self.added, self.numbers, self.entries.len() as u64]),
            ]
            .concat(),
        ];
        let mut out = vec![5, 2];
        let count = self.entries.len() + self.groups.len();
        let in_groups: usize =
            self.groups.values().map(|group| group.consumers.len() + group.pending.len()).sum();
        put_varint(&mut out, (1 + count + in_groups) as u64);
        for (id, fields) in &self.entries {
            let mut packed = varints(&[fields.len() as u64]);
            fields.iter().for_each(|string| put_string(&mut packed, string));
            elements.extend([bytes_of(*id), packed]);
        }
        for (name, group) in &self.groups {
            let value = [varints(&[group.number]), bytes_of(group.last), varints(&[optional(group.read)])];
            elements.extend([[&[0], &name[..]].concat(), value.concat()]);
        }
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| group.number);
        for group in groups {
            let bytes = group.number.to_be_bytes();
            let significant = &bytes[group.number.leading_zeros() as usize / 8..];
            let key =
                |sort: u8, rest: &[u8]| [&[significant.len() as u8], significant, &[sort], rest].concat();
            for (name, consumer) in &group.consumers {
                let value = varints(&[consumer.number, consumer.seen, optional(consumer.active)]);
                elements.extend([key(1, name), value]);
            }
            for (id, pending) in &group.pending {
                let consumer = group.consumers[&pending.consumer].number;
                elements.extend([key(2, &bytes_of(*id)), varints(&[consumer, pending.time, pending.count])]);
            }
        }
        elements.iter().for_each(|string| put_string(&mut out, string));
        Value::take(&mut &out[..]).expect("the twin's streams are streams").fingerprint()
    }

    fn first(&self) -> Id {
        self.entries.keys().next().copied().unwrap_or(LEAST)
    }

    fn entry(&self, id: Id) -> Reply {
        let fields = self.entries.get(&id).map_or(Reply::NilArray, |fields| fields_of(fields));
        Reply::Array(vec![show(id), fields])
    }

    /// How many entries that were ever added are not behind this one.
    fn distance(&self, id: Id) -> Option<u64> {
        let length = self.entries.len() as u64;
        if self.added == 0 {
            return Some(0);
        }
        if id == self.last || (length == 0 && id < self.last) {
            return Some(self.added);
        }
        let intact = self.deleted == LEAST || self.deleted < self.first();
        match id.cmp(&self.first()) {
            _ if id > self.last || !intact => None,
            core::cmp::Ordering::Less => Some(self.added - length),
            core::cmp::Ordering::Equal => Some(self.added - length + 1),
            core::cmp::Ordering::Greater => None,
        }
    }

    fn is_intact_from(&self, id: Id) -> bool {
        self.entries.is_empty() || self.deleted == LEAST || self.first() > self.deleted || id > self.deleted
    }

    fn lag(&self, group: &Group) -> Reply {
        if self.added == 0 {
            return Reply::Integer(0);
        }
        let known = group.read.filter(|_| self.is_intact_from(group.last));
        let read = known.or_else(|| self.distance(group.last));
        read.map_or(Reply::Nil, |read| Reply::Integer(self.added as i64 - read as i64))
    }

    fn trim(&mut self, trim: Trim) -> u64 {
        let excess = match trim.until {
            TrimUntil::Length(length) => (self.entries.len() as u64).saturating_sub(length),
            TrimUntil::Id(id) => self.entries.range(..plain(id)).count() as u64,
        };
        let count = match trim.approximately {
            Some(_) if excess <= 100 => 0,
            Some(limit) if limit > 0 => excess.min(limit),
            _ => excess,
        };
        (0..count).for_each(|_| drop(self.entries.pop_first()));
        count
    }

    /// The consumer is there, and has been seen.
    fn see(&mut self, group: &[u8], consumer: &[u8], now: u64) {
        let Some(group) = self.groups.get_mut(group) else { return };
        let numbers = &mut self.numbers;
        group.consumers.entry(consumer.to_vec()).or_insert_with(|| {
            *numbers += 1;
            Consumer { number: *numbers, seen: now, active: None }
        });
        if let Some(consumer) = group.consumers.get_mut(consumer) {
            consumer.seen = now;
        }
    }

    fn progress(&self, group: &Group) -> Vec<(Reply, Reply)> {
        vec![
            (text("last-delivered-id"), show(group.last)),
            (text("entries-read"), group.read.map_or(Reply::Nil, number)),
            (text("lag"), self.lag(group)),
        ]
    }

    fn counters(&self) -> Vec<(Reply, Reply)> {
        let nodes = (self.entries.len() as u64).div_ceil(100);
        vec![
            (text("length"), number(self.entries.len() as u64)),
            (text("radix-tree-keys"), number(nodes)),
            (text("radix-tree-nodes"), number(nodes + 1)),
            (text("last-generated-id"), show(self.last)),
            (text("max-deleted-entry-id"), show(self.deleted)),
            (text("entries-added"), number(self.added)),
            (text("recorded-first-entry-id"), show(self.first())),
        ]
    }

    fn info(&self, subject: StreamSubject<'_>, key: &[u8], now: u64) -> Reply {
        match subject {
            StreamSubject::Stream => {
                let edge = |id: Option<&Id>| id.map_or(Reply::Nil, |id| self.entry(*id));
                let mut info = self.counters();
                info.push((text("groups"), number(self.groups.len() as u64)));
                info.push((text("first-entry"), edge(self.entries.keys().next())));
                info.push((text("last-entry"), edge(self.entries.keys().next_back())));
                Reply::Map(info)
            }
            StreamSubject::Groups => Reply::Array(
                self.groups
                    .iter()
                    .map(|(name, group)| {
                        let mut info = vec![
                            (text("name"), Reply::Bulk(name.clone())),
                            (text("consumers"), number(group.consumers.len() as u64)),
                            (text("pending"), number(group.pending.len() as u64)),
                        ];
                        info.extend(self.progress(group));
                        Reply::Map(info)
                    })
                    .collect(),
            ),
            StreamSubject::Consumers { group: name } => match self.groups.get(name) {
                None => no_group(key, name),
                Some(group) => Reply::Array(
                    group
                        .consumers
                        .iter()
                        .map(|(name, consumer)| {
                            let ago = |time: u64| Reply::Integer(now.saturating_sub(time) as i64);
                            Reply::Map(vec![
                                (text("name"), Reply::Bulk(name.clone())),
                                (text("pending"), number(group.owned(name).len() as u64)),
                                (text("idle"), ago(consumer.seen)),
                                (text("inactive"), consumer.active.map_or(Reply::Integer(-1), ago)),
                            ])
                        })
                        .collect(),
                ),
            },
            StreamSubject::Full { count } => self.full(if count == 0 { usize::MAX } else { count as usize }),
        }
    }

    fn full(&self, count: usize) -> Reply {
        let mut info = self.counters();
        let entries = self.entries.keys().take(count).map(|id| self.entry(*id)).collect();
        info.push((text("entries"), Reply::Array(entries)));
        let groups = self.groups.iter().map(|(name, group)| {
            let mut info = vec![(text("name"), Reply::Bulk(name.clone()))];
            info.extend(self.progress(group));
            info.push((text("pel-count"), number(group.pending.len() as u64)));
            let pending = group.pending.iter().take(count).map(|(id, pending)| {
                let consumer = Reply::Bulk(pending.consumer.clone());
                Reply::Array(vec![show(*id), consumer, number(pending.time), number(pending.count)])
            });
            info.push((text("pending"), Reply::Array(pending.collect())));
            let consumers = group.consumers.iter().map(|(name, consumer)| {
                let owned = group.owned(name);
                let shown = owned.iter().take(count).map(|id| {
                    let pending = &group.pending[id];
                    Reply::Array(vec![show(*id), number(pending.time), number(pending.count)])
                });
                Reply::Map(vec![
                    (text("name"), Reply::Bulk(name.clone())),
                    (text("seen-time"), number(consumer.seen)),
                    (text("active-time"), consumer.active.map_or(Reply::Integer(-1), number)),
                    (text("pel-count"), number(owned.len() as u64)),
                    (text("pending"), Reply::Array(shown.collect())),
                ])
            });
            info.push((text("consumers"), Reply::Array(consumers.collect())));
            Reply::Map(info)
        });
        info.push((text("groups"), Reply::Array(groups.collect())));
        Reply::Map(info)
    }
}

impl Group {
    fn owned(&self, consumer: &[u8]) -> Vec<Id> {
        let owned = self.pending.iter().filter(|(_, pending)| pending.consumer == consumer);
        owned.map(|(id, _)| *id).collect()
    }
}

/// What Redis prints of a name.
fn printed(name: &[u8]) -> Vec<u8> {
    name.iter().copied().take_while(|byte| *byte != 0).collect()
}

fn no_group(key: &[u8], group: &[u8]) -> Reply {
    let parts: [&[u8]; 5] =
        [b"NOGROUP No such consumer group '", &printed(group), b"' for key name '", &printed(key), b"'"];
    Reply::Error(parts.concat())
}

fn no_key_or_group(key: &[u8], group: &[u8], end: &str) -> Reply {
    let parts: [&[u8]; 6] = [
        b"NOGROUP No such key '",
        &printed(key),
        b"' or consumer group '",
        &printed(group),
        b"'",
        end.as_bytes(),
    ];
    Reply::Error(parts.concat())
}

impl Twin {
    fn stream(&self, key: &[u8]) -> Option<&Stream> {
        match self.keys.get(key) {
            Some((Content::Stream(stream), _)) => Some(stream),
            _ => None,
        }
    }

    fn stream_mut(&mut self, key: &[u8]) -> &mut Stream {
        let new = || (Content::Stream(Stream::default()), None);
        match self.keys.entry(key.to_vec()).or_insert_with(new) {
            (Content::Stream(stream), _) => stream,
            other => panic!("{other:?} is no stream"),
        }
    }

    pub(super) fn read_stream(&self, now: WallTime, command: &Command<'_>) -> Option<Reply> {
        let now = self.time.max(now).as_millis();
        Some(match *command {
            Command::XLen(XLen { key }) => {
                number(self.stream(key).map_or(0, |stream| stream.entries.len() as u64))
            }
            Command::XRange(operation) => {
                let XRangeParts { key, from, to, count, is_reversed } = operation.get();
                match (self.stream(key), count) {
                    (None, _) => Reply::Array(Vec::new()),
                    (Some(_), Some(0)) => Reply::NilArray,
                    (Some(stream), count) => {
                        let inside = |id: &&Id| plain(from) <= **id && **id <= plain(to);
                        let mut ids: Vec<&Id> = stream.entries.keys().filter(inside).collect();
                        if is_reversed {
                            ids.reverse();
                        }
                        let count = count.unwrap_or(u64::MAX) as usize;
                        Reply::Array(ids.into_iter().take(count).map(|id| stream.entry(*id)).collect())
                    }
                }
            }
            Command::XRead(operation) => {
                let XReadParts { keys, starts, count, .. } = operation.get();
                let mut read = Vec::new();
                for (key, start) in keys.iter().zip(starts) {
                    let Some(stream) = self.stream(key) else { continue };
                    let is_wanted = |id: &&Id| match start {
                        b"$" => false,
                        b"+" => stream.entries.keys().next_back() == Some(*id),
                        other => id_of(other).is_some_and(|start| **id > start),
                    };
                    let most = if count == 0 { usize::MAX } else { count as usize };
                    let ids: Vec<&Id> = stream.entries.keys().filter(is_wanted).take(most).collect();
                    if !ids.is_empty() {
                        let entries = ids.into_iter().map(|id| stream.entry(*id)).collect();
                        read.push((Reply::Bulk(key.to_vec()), Reply::Array(entries)));
                    }
                }
                if read.is_empty() { Reply::NilArray } else { Reply::Keyed(read) }
            }
            Command::XPending(operation) => {
                let XPendingParts { key, group: name, range } = operation.get();
                let group = self.stream(key).and_then(|stream| stream.groups.get(name));
                match group {
                    None => no_key_or_group(key, name, ""),
                    Some(group) => pending(group, range, now),
                }
            }
            Command::XInfo(XInfo { key, subject }) => match self.stream(key) {
                None => error("ERR no such key"),
                Some(stream) => stream.info(subject, key, now),
            },
            _ => return None,
        })
    }

    pub(super) fn update_stream(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::XAdd(operation) => self.add_to_stream(operation.get()),
            Command::XDel(XDel { key, ids }) => match (self.stream(key).is_some(), ids_of(ids)) {
                (false, _) => Reply::Integer(0),
                (true, None) => invalid_id(),
                (true, Some(ids)) => {
                    let stream = self.stream_mut(key);
                    let mut removed = 0;
                    for id in ids {
                        if stream.entries.remove(&id).is_some() {
                            removed += 1;
                            stream.deleted = stream.deleted.max(id);
                        }
                    }
                    Reply::Integer(removed)
                }
            },
            Command::XTrim(operation) => {
                let XTrimParts { key, trim } = operation.get();
                match self.stream(key) {
                    None => Reply::Integer(0),
                    Some(_) => number(self.stream_mut(key).trim(trim)),
                }
            }
            Command::XSetId(operation) => self.set_stream_id(operation.get()),
            Command::XGroup(operation) => self.group_of_stream(operation.get()),
            Command::XReadGroup(operation) => self.read_group(operation.get()),
            Command::XAck(operation) => {
                let XAckParts { key, group, ids } = operation.get();
                let exists = self.stream(key).is_some_and(|stream| stream.groups.contains_key(group));
                match ids_of(ids) {
                    _ if !exists => Reply::Integer(0),
                    None => invalid_id(),
                    Some(ids) => {
                        let group = self.stream_mut(key).groups.get_mut(group).expect("it exists");
                        number(ids.iter().filter(|id| group.pending.remove(id).is_some()).count() as u64)
                    }
                }
            }
            Command::XClaim(operation) => self.claim(operation.get()),
            Command::XAutoClaim(operation) => self.claim_idle(operation.get()),
            _ => return None,
        })
    }

    fn add_to_stream(&mut self, XAddParts { key, id, fields, only_if_exists, trim }: XAddParts<'_>) -> Reply {
        let last = match self.stream(key) {
            None if only_if_exists => return Reply::Nil,
            stream => stream.map_or(LEAST, |stream| stream.last),
        };
        let Some(next) = next(last) else {
            return error("ERR The stream has exhausted the last possible ID, unable to add more items");
        };
        let id = match id {
            NewId::Now { now_ms } => next.max((now_ms, 0)),
            NewId::Next { ms } if ms == last.0 && last.1 < u64::MAX => (ms, last.1 + 1),
            NewId::Next { ms } => (ms, 0),
            NewId::Exactly(id) => plain(id),
        };
        if id <= last {
            return error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
        }
        let stream = self.stream_mut(key);
        stream.entries.insert(id, fields.iter().map(<[u8]>::to_vec).collect());
        stream.last = id;
        stream.added += 1;
        if let Some(trim) = trim {
            stream.trim(trim);
        }
        show(id)
    }

    fn set_stream_id(
        &mut self,
        XSetIdParts { key, last, entries_added, max_deleted }: XSetIdParts<'_>,
    ) -> Reply {
        let Some(stream) = self.stream(key) else { return error("ERR no such key") };
        let (last, length) = (plain(last), stream.entries.len() as u64);
        if last < stream.deleted {
            return error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
        }
        if stream.entries.keys().next_back().is_some_and(|top| last < *top) {
            return error("ERR The ID specified in XSETID is smaller than the target stream top item");
        }
        if length > 0 && entries_added.is_some_and(|added| added < length) {
            return error(
                "ERR The entries_added specified in XSETID is smaller than the target stream length",
            );
        }
        let stream = self.stream_mut(key);
        stream.last = last;
        stream.added = entries_added.unwrap_or(stream.added);
        if max_deleted != StreamId::MIN {
            stream.deleted = plain(max_deleted);
        }
        Reply::Ok
    }

    fn group_of_stream(&mut self, XGroupParts { key, group: name, action }: XGroupParts<'_>) -> Reply {
        let exists = self.stream(key).is_some();
        let has_group = self.stream(key).is_some_and(|stream| stream.groups.contains_key(name));
        let makes_stream = matches!(action, GroupAction::Create { makes_stream: true, .. });
        if !exists && !makes_stream {
            return error(
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                 MKSTREAM option to create an empty stream automatically.",
            );
        }
        let needs_group = !matches!(action, GroupAction::Create { .. } | GroupAction::Destroy);
        if needs_group && !has_group {
            return no_group(key, name);
        }
        let stream = self.stream_mut(key);
        match action {
            GroupAction::Create { .. } if has_group => error("BUSYGROUP Consumer Group name already exists"),
            GroupAction::Create { last, entries_read: read, .. } => {
                stream.numbers += 1;
                let last = last.map_or(stream.last, plain);
                let (number, consumers, pending) = (stream.numbers, BTreeMap::new(), BTreeMap::new());
                stream.groups.insert(name.to_vec(), Group { number, last, read, consumers, pending });
                Reply::Ok
            }
            GroupAction::SetId { last, entries_read } => {
                let last = last.map_or(stream.last, plain);
                let group = stream.groups.get_mut(name).expect("it exists");
                (group.last, group.read) = (last, entries_read);
                Reply::Ok
            }
            GroupAction::Destroy => one_if(stream.groups.remove(name).is_some()),
            GroupAction::CreateConsumer { consumer, now_ms } => {
                let is_new = !stream.groups[name].consumers.contains_key(consumer);
                if is_new {
                    stream.see(name, consumer, now_ms);
                }
                one_if(is_new)
            }
            GroupAction::DeleteConsumer { consumer } => {
                let group = stream.groups.get_mut(name).expect("it exists");
                let owned = group.owned(consumer);
                group.consumers.remove(consumer);
                group.pending.retain(|_, pending| pending.consumer != consumer);
                number(owned.len() as u64)
            }
        }
    }

    fn read_group(&mut self, operation: XReadGroupParts<'_>) -> Reply {
        let XReadGroupParts { group: name, consumer, keys, starts, count, no_ack, now_ms: now, .. } =
            operation;
        for key in keys {
            match self.stream(key) {
                None if self.keys.contains_key(key) => {
                    return error("WRONGTYPE Operation against a key holding the wrong kind of value");
                }
                Some(stream) if stream.groups.contains_key(name) => {}
                _ => return no_key_or_group(key, name, " in XREADGROUP with GROUP option"),
            }
        }
        let most = if count == 0 { usize::MAX } else { count as usize };
        let mut read = Vec::new();
        for (key, start) in keys.iter().zip(starts) {
            let stream = self.stream_mut(key);
            stream.see(name, consumer, now);
            let group = stream.groups[name].clone();
            let mut entries = Vec::new();
            if start == b">" {
                let ids: Vec<Id> =
                    stream.entries.keys().copied().filter(|id| *id > group.last).take(most).collect();
                for id in ids {
                    let read = match stream.groups[name].read {
                        Some(read) if stream.is_intact_from(id) => Some(read + 1),
                        _ => stream.distance(id),
                    };
                    entries.push(stream.entry(id));
                    let group = stream.groups.get_mut(name).expect("it exists");
                    (group.last, group.read) = (id, read);
                    if !no_ack {
                        group
                            .pending
                            .insert(id, Pending { consumer: consumer.to_vec(), time: now, count: 1 });
                        group.consumers.get_mut(consumer).expect("it was seen").active = Some(now);
                    }
                }
            } else {
                let start = id_of(start).expect("an id");
                for id in group.owned(consumer).into_iter().filter(|id| *id > start).take(most) {
                    entries.push(stream.entry(id));
                    if stream.entries.contains_key(&id) {
                        let group = stream.groups.get_mut(name).expect("it exists");
                        let pending = group.pending.get_mut(&id).expect("it is pending");
                        (pending.time, pending.count) = (now, pending.count + 1);
                    }
                }
            }
            if start != b">" || !entries.is_empty() {
                read.push((Reply::Bulk(key.to_vec()), Reply::Array(entries)));
            }
        }
        if read.is_empty() { Reply::NilArray } else { Reply::Keyed(read) }
    }

    fn claim(&mut self, operation: XClaimParts<'_>) -> Reply {
        let XClaimParts { key, group: name, consumer, min_idle_ms, ids, now_ms: now, just_id, .. } =
            operation;
        if !self.stream(key).is_some_and(|stream| stream.groups.contains_key(name)) {
            return no_key_or_group(key, name, "");
        }
        let stream = self.stream_mut(key);
        if let Some(group) = stream.groups.get_mut(name)
            && let Some(last) = operation.last_id
        {
            group.last = group.last.max(plain(last));
        }
        stream.see(name, consumer, now);
        let time = match operation.delivered {
            Delivered::Ago(ms) if ms <= now => now - ms,
            Delivered::At(ms) if ms <= now => ms,
            _ => now,
        };
        let mut claimed = Vec::new();
        for id in ids_of(ids).expect("only ids are parsed as such") {
            let exists = stream.entries.contains_key(&id);
            let entry = stream.entry(id);
            let group = stream.groups.get_mut(name).expect("it exists");
            let old = group.pending.get(&id).cloned();
            if !exists {
                group.pending.remove(&id);
                continue;
            }
            let before = match old {
                Some(old) if min_idle_ms == 0 || old.time + min_idle_ms <= now => old.count,
                None if operation.force => 1,
                _ => continue,
            };
            let count = operation.deliveries.unwrap_or(before + u64::from(!just_id));
            group.pending.insert(id, Pending { consumer: consumer.to_vec(), time, count });
            group.consumers.get_mut(consumer).expect("it was seen").active = Some(now);
            claimed.push(if just_id { show(id) } else { entry });
        }
        Reply::Array(claimed)
    }

    fn claim_idle(&mut self, operation: XAutoClaimParts<'_>) -> Reply {
        let XAutoClaimParts { key, group: name, consumer, min_idle_ms, from, count, just_id, now_ms: now } =
            operation;
        if !self.stream(key).is_some_and(|stream| stream.groups.contains_key(name)) {
            return no_key_or_group(key, name, "");
        }
        let stream = self.stream_mut(key);
        stream.see(name, consumer, now);
        let (mut left, mut attempts) = (count, count.saturating_mul(10));
        let (mut claimed, mut deleted, mut next) = (Vec::new(), Vec::new(), LEAST);
        for (id, pending) in
            stream.groups[name].pending.clone().into_iter().filter(|(id, _)| *id >= plain(from))
        {
            if attempts == 0 || left == 0 {
                next = id;
                break;
            }
            attempts -= 1;
            let exists = stream.entries.contains_key(&id);
            let entry = stream.entry(id);
            let group = stream.groups.get_mut(name).expect("it exists");
            if !exists {
                group.pending.remove(&id);
                deleted.push(show(id));
                left -= 1;
            } else if min_idle_ms == 0 || pending.time + min_idle_ms <= now {
                let count = pending.count + u64::from(!just_id);
                group.pending.insert(id, Pending { consumer: consumer.to_vec(), time: now, count });
                group.consumers.get_mut(consumer).expect("it was seen").active = Some(now);
                claimed.push(if just_id { show(id) } else { entry });
                left -= 1;
            }
        }
        Reply::Array(vec![show(next), Reply::Array(claimed), Reply::Array(deleted)])
    }
}

/// What XPENDING answers.
fn pending(group: &Group, range: Option<PendingRange<'_>>, now: u64) -> Reply {
    let Some(PendingRange { min_idle_ms, from, to, count, consumer }) = range else {
        let edges = (group.pending.keys().next(), group.pending.keys().next_back());
        let (Some(first), Some(last)) = edges else {
            return Reply::Array(vec![Reply::Integer(0), Reply::Nil, Reply::Nil, Reply::NilArray]);
        };
        let counts = group.consumers.keys().map(|name| (name, group.owned(name).len()));
        let counts = counts.filter(|(_, count)| *count > 0).map(|(name, count)| {
            Reply::Array(vec![Reply::Bulk(name.clone()), Reply::Bulk(count.to_string().into_bytes())])
        });
        let counts = Reply::Array(counts.collect());
        return Reply::Array(vec![number(group.pending.len() as u64), show(*first), show(*last), counts]);
    };
    let is_wanted = |(id, pending): &(&Id, &Pending)| {
        let is_inside = plain(from) <= **id && **id <= plain(to);
        let is_idle = min_idle_ms == 0 || pending.time.saturating_add(min_idle_ms) <= now;
        is_inside && is_idle && consumer.is_none_or(|consumer| consumer == pending.consumer)
    };
    let found = group.pending.iter().filter(is_wanted).take(count as usize).map(|(id, pending)| {
        let idle = number(now.saturating_sub(pending.time));
        Reply::Array(vec![show(*id), Reply::Bulk(pending.consumer.clone()), idle, number(pending.count)])
    });
    Reply::Array(found.collect())
}

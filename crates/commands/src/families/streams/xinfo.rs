//! XINFO.

use super::xgroup::subcommand;
use super::xhelp::XHelp;
use super::{SLOW_READ, put_entry, put_id, put_no_group, stream_of};
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Key, Opcode, Unsigned, Value};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::specification::{CommandSpec, KeyPositions, SubcommandSpec};
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_bulk, put_integer, put_map, put_nil};
use crate::words::{Words, integer, is};
use syros_values::{Consumer, Fields, Group, Stream, StreamId};

/// XINFO: answers what a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XInfo<'a> {
    /// The key, which has to exist.
    pub key: &'a [u8],
    /// What is asked for.
    pub subject: StreamSubject<'a>,
}

/// What XINFO tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSubject<'a> {
    /// STREAM: its counters, and its first and its last entry.
    Stream,
    /// STREAM .. FULL: its counters, entries and groups.
    Full {
        /// Of entries, and of what is pending, at most so many; 0 is no limit.
        count: u64,
    },
    /// GROUPS.
    Groups,
    /// CONSUMERS of a group.
    Consumers {
        /// Its name.
        group: &'a [u8],
    },
}

mod subject {
    pub(super) const STREAM: u8 = 0;
    pub(super) const FULL: u8 = 1;
    pub(super) const GROUPS: u8 = 2;
    pub(super) const CONSUMERS: u8 = 3;
}

/// How many entries FULL answers if COUNT does not say it, as in Redis.
const COUNT_DEFAULT: u64 = 10;

/// Entries of a node of Redis's tree, of which it tells how many there are.
const NODE_ENTRIES: u64 = 100;

impl<'a> Encoding<'a> for XInfo<'a> {
    const OPCODE: Opcode = 350;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        match self.subject {
            StreamSubject::Stream => out.push(subject::STREAM),
            StreamSubject::Full { count } => {
                out.push(subject::FULL);
                Unsigned::put(out, count);
            }
            StreamSubject::Groups => out.push(subject::GROUPS),
            StreamSubject::Consumers { group } => {
                out.push(subject::CONSUMERS);
                Value::put(out, group);
            }
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let key = Key::take(input)?;
        let subject = match take_u8(input)? {
            subject::STREAM => StreamSubject::Stream,
            subject::FULL => StreamSubject::Full { count: Unsigned::take(input)? },
            subject::GROUPS => StreamSubject::Groups,
            subject::CONSUMERS => StreamSubject::Consumers { group: Value::take(input)? },
            other => return Err(Malformed::Options(other)),
        };
        Ok(Self { key, subject })
    }
}

impl<'a> Definition<'a> for XInfo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xinfo",
        arity: -2,
        keys: KeyPositions::NONE,
        key_flags: &[],
        flags: &[],
        categories: &["@slow"],
        summary: "Returns information about a stream, its groups, or the consumers of one.",
        subcommands: SUBCOMMANDS,
        subcommand_keys: &[&["RO", "access"], &["RO", "access"], &[], &["RO", "access"]],
        parser: parse,
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

/// What the rows of all subcommands but HELP have in common.
const SUBCOMMAND: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 3,
    flags: &["readonly"],
    categories: &["@read", "@stream", "@slow"],
    tips: &[],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "xinfo|consumers", arity: 4, tips: &["nondeterministic_output"], ..SUBCOMMAND },
    SubcommandSpec { name: "xinfo|groups", ..SUBCOMMAND },
    SubcommandSpec {
        name: "xinfo|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@stream", "@slow"],
        tips: &[],
    },
    SubcommandSpec { name: "xinfo|stream", arity: -3, ..SUBCOMMAND },
];

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let found = subcommand(name, SUBCOMMANDS, words)?;
    let [_, _, key, rest @ ..] = words else { return Ok(XHelp { of_groups: false }.into()) };
    let subject = match (found, rest) {
        ("groups", _) => StreamSubject::Groups,
        ("consumers", [group]) => StreamSubject::Consumers { group },
        (_, []) => StreamSubject::Stream,
        (_, [full]) if is(full, "full") => StreamSubject::Full { count: COUNT_DEFAULT },
        (_, [full, option, count]) if is(full, "full") && is(option, "count") => {
            StreamSubject::Full { count: u64::try_from(integer(count)?).unwrap_or(COUNT_DEFAULT) }
        }
        _ => return Err(CommandError::SubcommandSyntax { command: name, name: words[1].to_vec() }),
    };
    Ok(XInfo { key, subject }.into())
}

impl ReadCommand for XInfo<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?.ok_or(ExecutionError::NoSuchKey)?;
        match self.subject {
            StreamSubject::Stream => {
                put_counters(stream, 10, reply);
                put_number(reply, "groups", stream.groups_len());
                let mut entries = stream.range(StreamId::MIN, StreamId::MAX);
                let first = entries.next();
                put_name(reply, "first-entry");
                put_optional_entry(reply, first);
                put_name(reply, "last-entry");
                put_optional_entry(reply, entries.next_back().or(first));
                Ok(())
            }
            StreamSubject::Full { count } => {
                put_full(stream, if count == 0 { u64::MAX } else { count }, view, reply)
            }
            StreamSubject::Groups => {
                put_array(reply, usize::try_from(stream.groups_len()).unwrap_or(usize::MAX));
                for (name, group) in stream.groups() {
                    put_map(reply, 6);
                    put_name(reply, "name");
                    put_bulk(reply, name);
                    put_number(reply, "consumers", stream.consumers_len(&group));
                    put_number(reply, "pending", stream.pending_len(&group));
                    put_progress(stream, &group, reply);
                    check_room(view, reply)?;
                }
                Ok(())
            }
            StreamSubject::Consumers { group: name } => match stream.group(name) {
                Some(group) => {
                    // How long a consumer has been idle depends on the time of execution.
                    keys.before_draw();
                    put_consumers(stream, &group, view, reply)
                }
                None => put_no_group(reply, self.key, name),
            },
        }
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(stream)) = stream_of(found.as_ref()) else { return 0 };
        match self.subject {
            StreamSubject::Stream => 0,
            StreamSubject::Full { count: 0 } => stream.element_bytes(),
            StreamSubject::Full { count } => {
                // As many entries, and of what is pending at each consumer.
                let some = work_of_some(count, stream.len(), stream.element_bytes());
                some.saturating_add(stream.groups().map(|(_, group)| consumers_work(stream, &group)).sum())
            }
            StreamSubject::Groups => {
                usize::try_from(stream.groups_len()).unwrap_or(usize::MAX).saturating_mul(ITEM_WORK)
            }
            StreamSubject::Consumers { group } => {
                stream.group(group).map_or(0, |group| consumers_work(stream, &group))
            }
        }
    }
}

/// The work of looking up some ranks.
const ITEM_WORK: usize = 1024;

fn consumers_work(stream: &Stream, group: &Group) -> usize {
    usize::try_from(stream.consumers_len(group)).unwrap_or(usize::MAX).saturating_mul(ITEM_WORK)
}

fn check_room(view: View, reply: &[u8]) -> ExecutionResult {
    if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
}

fn put_name(reply: &mut Vec<u8>, name: &str) {
    put_bulk(reply, name.as_bytes());
}

/// Appends a name and a number.
fn put_number(reply: &mut Vec<u8>, name: &str, number: u64) {
    put_name(reply, name);
    put_integer(reply, number.cast_signed());
}

/// Appends a name and an id.
fn put_named_id(reply: &mut Vec<u8>, name: &str, id: StreamId) {
    put_name(reply, name);
    put_id(reply, id);
}

fn put_optional_entry(reply: &mut Vec<u8>, entry: Option<(StreamId, Fields<'_>)>) {
    match entry {
        Some((id, fields)) => put_entry(reply, id, Some(fields)),
        None => put_nil(reply),
    }
}

/// Appends the head of a map of so many names, and the first seven of them. Of Redis's tree it tells how large it would be if
/// its nodes were full.
fn put_counters(stream: &Stream, names: usize, reply: &mut Vec<u8>) {
    put_map(reply, names);
    put_number(reply, "length", stream.len());
    let nodes = stream.len().div_ceil(NODE_ENTRIES);
    put_number(reply, "radix-tree-keys", nodes);
    put_number(reply, "radix-tree-nodes", nodes + 1);
    put_named_id(reply, "last-generated-id", stream.last_id());
    put_named_id(reply, "max-deleted-entry-id", stream.max_deleted_id());
    put_number(reply, "entries-added", stream.entries_added());
    put_named_id(reply, "recorded-first-entry-id", stream.first_id());
}

/// What a group has read, and what it has not.
fn put_progress(stream: &Stream, group: &Group, reply: &mut Vec<u8>) {
    put_named_id(reply, "last-delivered-id", group.last);
    put_name(reply, "entries-read");
    match group.entries_read {
        Some(read) => put_integer(reply, read.cast_signed()),
        None => put_nil(reply),
    }
    put_name(reply, "lag");
    match stream.lag(group) {
        Some(lag) => put_integer(reply, lag),
        None => put_nil(reply),
    }
}

fn put_consumers(stream: &Stream, group: &Group, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
    let now_ms = view.now.as_millis();
    put_array(reply, usize::try_from(stream.consumers_len(group)).unwrap_or(usize::MAX));
    for (name, consumer) in stream.consumers(group) {
        put_map(reply, 4);
        put_name(reply, "name");
        put_bulk(reply, name);
        put_number(reply, "pending", stream.owned_len(group, &consumer));
        put_number(reply, "idle", now_ms.saturating_sub(consumer.seen_ms));
        put_name(reply, "inactive");
        put_integer(
            reply,
            consumer.active_ms.map_or(-1, |active| now_ms.saturating_sub(active).cast_signed()),
        );
        check_room(view, reply)?;
    }
    Ok(())
}

fn put_full(stream: &Stream, count: u64, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
    put_counters(stream, 9, reply);
    put_name(reply, "entries");
    let entries = stream.range(StreamId::MIN, StreamId::MAX);
    let shown = entries.len().min(usize::try_from(count).unwrap_or(usize::MAX));
    put_array(reply, shown);
    for (id, fields) in entries.take(shown) {
        put_entry(reply, id, Some(fields));
        check_room(view, reply)?;
    }
    put_name(reply, "groups");
    put_array(reply, usize::try_from(stream.groups_len()).unwrap_or(usize::MAX));
    for (name, group) in stream.groups() {
        put_map(reply, 7);
        put_name(reply, "name");
        put_bulk(reply, name);
        put_progress(stream, &group, reply);
        put_number(reply, "pel-count", stream.pending_len(&group));
        put_name(reply, "pending");
        let pending = stream.pending_from(&group, StreamId::MIN, StreamId::MAX);
        let shown = pending.len().min(usize::try_from(count).unwrap_or(usize::MAX));
        put_array(reply, shown);
        for (id, pending) in pending.take(shown) {
            put_array(reply, 4);
            put_id(reply, id);
            put_bulk(reply, stream.owner(&group, &pending));
            put_integer(reply, pending.delivered_ms.cast_signed());
            put_integer(reply, pending.deliveries.cast_signed());
            check_room(view, reply)?;
        }
        put_name(reply, "consumers");
        put_array(reply, usize::try_from(stream.consumers_len(&group)).unwrap_or(usize::MAX));
        for (name, consumer) in stream.consumers(&group) {
            put_full_consumer(stream, &group, (name, &consumer), count, reply);
            check_room(view, reply)?;
        }
    }
    Ok(())
}

fn put_full_consumer(
    stream: &Stream,
    group: &Group,
    (name, consumer): (&[u8], &Consumer),
    count: u64,
    reply: &mut Vec<u8>,
) {
    put_map(reply, 5);
    put_name(reply, "name");
    put_bulk(reply, name);
    put_number(reply, "seen-time", consumer.seen_ms);
    put_name(reply, "active-time");
    put_integer(reply, consumer.active_ms.map_or(-1, u64::cast_signed));
    put_number(reply, "pel-count", stream.owned_len(group, consumer));
    put_name(reply, "pending");
    let owned = stream.owned(group, consumer, StreamId::MIN);
    let shown = owned.len().min(usize::try_from(count).unwrap_or(usize::MAX));
    put_array(reply, shown);
    for id in owned.take(shown) {
        put_array(reply, 3);
        put_id(reply, id);
        let pending = stream.pending(group, id);
        put_integer(reply, pending.map_or(0, |pending| pending.delivered_ms.cast_signed()));
        put_integer(reply, pending.map_or(0, |pending| pending.deliveries.cast_signed()));
    }
}

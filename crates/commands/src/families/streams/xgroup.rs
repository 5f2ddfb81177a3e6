//! XGROUP.

use super::ids::{Id, parse_id, parse_id_or_end};
use super::now::Now;
use super::xhelp::XHelp;
use super::{FAST_UPDATE, put_no_group, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Encoding, Field as _, Flag, Key, Opcode, Value};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::OptionalCount;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::{CommandSpec, KeyPositions, SubcommandSpec};
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_integer, put_ok};
use crate::stream_error::StreamError;
use crate::words::{Words, integer, is};
use syros_values::{Stream, StreamId};

/// XGROUP: does something to a group of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XGroupParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The name of the group.
    pub group: &'a [u8],
    /// What is done.
    pub action: GroupAction<'a>,
}

/// The same, read again where it is needed.
pub type XGroup<'a> = Indirect<'a, XGroupParts<'a>>;

/// What XGROUP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAction<'a> {
    /// CREATE: answers OK.
    Create {
        /// The last entry that counts as delivered; the last of the stream if none is named.
        last: Option<StreamId>,
        /// How many entries count as read, if this is known.
        entries_read: Option<u64>,
        /// MKSTREAM: creates the key if it does not exist.
        makes_stream: bool,
    },
    /// SETID: answers OK.
    SetId {
        /// As of CREATE.
        last: Option<StreamId>,
        /// As of CREATE.
        entries_read: Option<u64>,
    },
    /// DESTROY: answers whether there was one.
    Destroy,
    /// CREATECONSUMER: answers whether there was none.
    CreateConsumer {
        /// The name of the consumer.
        consumer: &'a [u8],
        /// See [`Operation::now_mut`](crate::Operation::now_mut).
        now_ms: u64,
    },
    /// DELCONSUMER: answers how many entries were pending at it, and are not pending any more.
    DeleteConsumer {
        /// The name of the consumer.
        consumer: &'a [u8],
    },
}

mod action {
    pub(super) const CREATE: u8 = 0;
    pub(super) const SET_ID: u8 = 1;
    pub(super) const DESTROY: u8 = 2;
    pub(super) const CREATE_CONSUMER: u8 = 3;
    pub(super) const DELETE_CONSUMER: u8 = 4;
}

/// Appends an id that may be none.
fn put_last(out: &mut Vec<u8>, last: Option<StreamId>) {
    Flag::put(out, last.is_some());
    last.into_iter().for_each(|id| Id::put(out, id));
}

fn take_last(input: &mut &[u8]) -> Result<Option<StreamId>, Malformed> {
    Flag::take(input)?.then(|| Id::take(input)).transpose()
}

impl<'a> Encoding<'a> for XGroupParts<'a> {
    const OPCODE: Opcode = 346;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Value::put(out, self.group);
        match self.action {
            GroupAction::Create { last, entries_read, makes_stream } => {
                out.push(action::CREATE);
                put_last(out, last);
                OptionalCount::put(out, entries_read);
                Flag::put(out, makes_stream);
            }
            GroupAction::SetId { last, entries_read } => {
                out.push(action::SET_ID);
                put_last(out, last);
                OptionalCount::put(out, entries_read);
            }
            GroupAction::Destroy => out.push(action::DESTROY),
            GroupAction::CreateConsumer { consumer, now_ms } => {
                out.push(action::CREATE_CONSUMER);
                Value::put(out, consumer);
                Now::put(out, now_ms);
            }
            GroupAction::DeleteConsumer { consumer } => {
                out.push(action::DELETE_CONSUMER);
                Value::put(out, consumer);
            }
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, group) = (Key::take(input)?, Value::take(input)?);
        let action = match take_u8(input)? {
            action::CREATE => {
                let (last, entries_read) = (take_last(input)?, OptionalCount::take(input)?);
                GroupAction::Create { last, entries_read, makes_stream: Flag::take(input)? }
            }
            action::SET_ID => {
                let last = take_last(input)?;
                GroupAction::SetId { last, entries_read: OptionalCount::take(input)? }
            }
            action::DESTROY => GroupAction::Destroy,
            action::CREATE_CONSUMER => {
                let consumer = Value::take(input)?;
                GroupAction::CreateConsumer { consumer, now_ms: Now::take(input)? }
            }
            action::DELETE_CONSUMER => GroupAction::DeleteConsumer { consumer: Value::take(input)? },
            other => return Err(Malformed::Options(other)),
        };
        Ok(Self { key, group, action })
    }
}

/// What the command is called.
const NAME: &str = "xgroup";

impl<'a> Definition<'a> for XGroupParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: NAME,
        arity: -2,
        keys: KeyPositions::NONE,
        flags: &[],
        categories: &["@slow"],
        summary: "Creates, changes and removes groups of a stream and their consumers.",
        subcommands: SUBCOMMANDS,
        subcommand_keys: &[
            &["RW", "insert"],
            &["RW", "insert"],
            &["RW", "delete"],
            &["RW", "delete"],
            &[],
            &["RW", "update"],
        ],
        parser: parse_or_help,
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn now_mut(&mut self) -> Option<&mut u64> {
        match &mut self.action {
            GroupAction::CreateConsumer { now_ms, .. } => Some(now_ms),
            GroupAction::Create { .. }
            | GroupAction::SetId { .. }
            | GroupAction::Destroy
            | GroupAction::DeleteConsumer { .. } => None,
        }
    }
}

/// What the rows of all subcommands but HELP have in common.
const SUBCOMMAND: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 5,
    flags: &["write"],
    categories: &["@write", "@stream", "@slow"],
    tips: &[],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "xgroup|create", arity: -5, flags: &["write", "denyoom"], ..SUBCOMMAND },
    SubcommandSpec { name: "xgroup|createconsumer", flags: &["write", "denyoom"], ..SUBCOMMAND },
    SubcommandSpec { name: "xgroup|delconsumer", ..SUBCOMMAND },
    SubcommandSpec { name: "xgroup|destroy", arity: 4, ..SUBCOMMAND },
    SubcommandSpec {
        name: "xgroup|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@stream", "@slow"],
        tips: &[],
    },
    SubcommandSpec { name: "xgroup|setid", arity: -5, ..SUBCOMMAND },
];

/// The subcommand that the word behind the name is, if there are enough words and not too many.
pub(super) fn subcommand(
    command: &'static str,
    all: &'static [SubcommandSpec],
    words: Words<'_>,
) -> Result<&'static str, CommandError> {
    for found in all {
        if let Some((_, name)) = found.name.split_once('|')
            && is(words[1], name)
        {
            return if found.accepts(words.len()) { Ok(name) } else { Err(CommandError::Arity(found.name)) };
        }
    }
    Err(CommandError::unknown_subcommand(command, words[1]))
}

fn parse_or_help<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    match subcommand(NAME, SUBCOMMANDS, words)? {
        "help" => Ok(XHelp { of_groups: true }.into()),
        _ => Indirect::parse(words, parse),
    }
}

/// The words of all subcommands but HELP.
fn parse(words: Words<'_>) -> Result<XGroupParts<'_>, CommandError> {
    let found = subcommand(NAME, SUBCOMMANDS, words)?;
    let [_, _, key, group, rest @ ..] = words else { return Err(CommandError::Arity(NAME)) };
    let action = match (found, rest) {
        ("create" | "setid", [last, options @ ..]) => {
            let is_create = found == "create";
            let (entries_read, makes_stream) =
                options_of(options, is_create).transpose().unwrap_or_else(|| {
                    Err(CommandError::SubcommandSyntax { command: NAME, name: words[1].to_vec() })
                })?;
            if words.len() > 8 {
                return Err(CommandError::SubcommandSyntax { command: NAME, name: words[1].to_vec() });
            }
            let last = match *last {
                b"$" => None,
                id if is_create => Some(parse_id(id)?),
                id => Some(parse_id_or_end(id)?),
            };
            if is_create {
                GroupAction::Create { last, entries_read, makes_stream }
            } else {
                GroupAction::SetId { last, entries_read }
            }
        }
        ("createconsumer", [consumer]) => GroupAction::CreateConsumer { consumer, now_ms: 0 },
        ("delconsumer", [consumer]) => GroupAction::DeleteConsumer { consumer },
        _ => GroupAction::Destroy,
    };
    Ok(XGroupParts { key, group, action })
}

/// ENTRIESREAD, and whether MKSTREAM is there; none if there is another word.
fn options_of(mut words: Words<'_>, is_create: bool) -> Result<Option<(Option<u64>, bool)>, CommandError> {
    let (mut entries_read, mut makes_stream) = (None, false);
    while !words.is_empty() {
        words = match words {
            [option, rest @ ..] if is_create && is(option, "mkstream") => {
                makes_stream = true;
                rest
            }
            [option, number, rest @ ..] if is(option, "entriesread") => {
                entries_read = match integer(number)? {
                    -1 => None,
                    read => Some(u64::try_from(read).map_err(|_| StreamError::NegativeEntriesRead)?),
                };
                rest
            }
            _ => return Ok(None),
        };
    }
    Ok(Some((entries_read, makes_stream)))
}

impl<'a> UpdateCommand<'a> for XGroupParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        match self.action {
            GroupAction::Create { .. } => encoded + KEY_BYTES + ELEMENT_BYTES,
            // Its name is there twice.
            GroupAction::CreateConsumer { .. } => 2 * (encoded + ELEMENT_BYTES),
            GroupAction::SetId { .. } | GroupAction::Destroy | GroupAction::DeleteConsumer { .. } => 0,
        }
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?;
        let exists = stream.is_some();
        let has_group = stream.is_some_and(|stream| stream.group(self.group).is_some());
        drop(found);
        let makes_stream = matches!(self.action, GroupAction::Create { makes_stream: true, .. });
        if !exists && !makes_stream {
            return Err(StreamError::NoKeyOfGroup.into());
        }
        match self.action {
            GroupAction::Create { .. } if has_group => return Err(StreamError::GroupExists.into()),
            // It would count as a change.
            GroupAction::Destroy if !has_group => {
                put_integer(reply, 0);
                return Ok(());
            }
            GroupAction::Create { .. } | GroupAction::Destroy => {}
            GroupAction::SetId { .. }
            | GroupAction::CreateConsumer { .. }
            | GroupAction::DeleteConsumer { .. } => {
                if !has_group {
                    return put_no_group(reply, self.key, self.group);
                }
            }
        }
        let event = keys.edit_collection(self.key, |stream: &mut Stream| self.act(stream, reply))?;
        event.into_iter().for_each(|event| keys.notify(event, self.key));
        Ok(())
    }
}

impl XGroupParts<'_> {
    /// Carries it out, and appends its reply; the event that this is.
    fn act(&self, stream: &mut Stream, reply: &mut Vec<u8>) -> Option<KeyEvent> {
        match self.action {
            GroupAction::Create { last, entries_read, .. } => {
                stream.create_group(self.group, last.unwrap_or(stream.last_id()), entries_read);
                put_ok(reply);
                Some(KeyEvent::XGroupCreate)
            }
            GroupAction::SetId { last, entries_read } => {
                if let Some(mut group) = stream.group(self.group) {
                    group.last = last.unwrap_or(stream.last_id());
                    group.entries_read = entries_read;
                    stream.set_group(self.group, &group);
                }
                put_ok(reply);
                Some(KeyEvent::XGroupSetId)
            }
            GroupAction::Destroy => {
                let existed = stream.destroy_group(self.group);
                put_integer(reply, i64::from(existed));
                existed.then_some(KeyEvent::XGroupDestroy)
            }
            GroupAction::CreateConsumer { consumer, now_ms } => {
                let group = stream.group(self.group);
                let new = group.filter(|group| stream.consumer(group, consumer).is_none());
                if let Some(group) = new {
                    stream.see_consumer(&group, consumer, now_ms);
                }
                put_integer(reply, i64::from(new.is_some()));
                new.map(|_| KeyEvent::XGroupCreateConsumer)
            }
            GroupAction::DeleteConsumer { consumer } => {
                let pending =
                    stream.group(self.group).and_then(|group| stream.delete_consumer(&group, consumer));
                put_integer(reply, pending.unwrap_or(0) as i64);
                pending.map(|_| KeyEvent::XGroupDelConsumer)
            }
        }
    }
}

//! XADD.

use super::ids::{Id, parse_number, parts};
use super::now::Now;
use super::trim::{OptionalTrim, Trim, TrimOptions};
use super::{FAST_UPDATE, put_id, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Encoding, Field, Flag, Key, Opcode, Unsigned};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_nil;
use crate::stream_error::StreamError;
use crate::words::{Words, is};
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Stream, StreamId};

/// XADD: answers the id of the entry that it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAddParts<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The id of the entry.
    pub id: NewId,
    /// Fields and their values in turn.
    pub fields: Arguments<'a>,
    /// NOMKSTREAM: nothing happens, and nil is answered, if the key does not exist.
    pub only_if_exists: bool,
    /// What is removed afterwards.
    pub trim: Option<Trim>,
}

/// The same, read again where it is needed.
pub type XAdd<'a> = Indirect<'a, XAddParts<'a>>;

/// Which id an entry gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// `*`: the first one of the present millisecond, or the one behind the last if that is greater.
    Now {
        /// See [`Operation::now_mut`](crate::Operation::now_mut).
        now_ms: u64,
    },
    /// The next one of this millisecond.
    Next {
        /// Since the Unix epoch, mostly.
        ms: u64,
    },
    /// This one.
    Exactly(StreamId),
}

impl NewId {
    /// The id that an entry gets behind another one, which is not the greatest.
    fn behind(self, last: StreamId) -> Option<StreamId> {
        match self {
            Self::Now { now_ms } => last.next().map(|next| next.max(StreamId::new(now_ms, 0))),
            Self::Next { ms } if ms == last.ms() => Some(StreamId::new(ms, last.sequence().checked_add(1)?)),
            Self::Next { ms } => Some(StreamId::new(ms, 0)).filter(|id| *id > last),
            Self::Exactly(id) => Some(id).filter(|id| *id > last),
        }
    }

    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        let (ms, sequence) = parts(word).ok_or(StreamError::InvalidId)?;
        match sequence {
            Some(b"*") => Ok(Self::Next { ms }),
            Some(sequence) => {
                let sequence = parse_number(sequence).ok_or(StreamError::InvalidId)?;
                Ok(Self::Exactly(StreamId::new(ms, sequence)))
            }
            None => Ok(Self::Exactly(StreamId::new(ms, 0))),
        }
    }
}

mod id_kind {
    pub(super) const NOW: u8 = 0;
    pub(super) const NEXT: u8 = 1;
    pub(super) const EXACTLY: u8 = 2;
}

impl Field<'_> for NewId {
    type Content = Self;

    fn put(out: &mut Vec<u8>, id: Self) {
        match id {
            NewId::Now { now_ms } => {
                out.push(id_kind::NOW);
                Now::put(out, now_ms);
            }
            NewId::Next { ms } => {
                out.push(id_kind::NEXT);
                Unsigned::put(out, ms);
            }
            NewId::Exactly(id) => {
                out.push(id_kind::EXACTLY);
                Id::put(out, id);
            }
        }
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        match take_u8(input)? {
            id_kind::NOW => Ok(NewId::Now { now_ms: Now::take(input)? }),
            id_kind::NEXT => Ok(NewId::Next { ms: Unsigned::take(input)? }),
            id_kind::EXACTLY => Ok(NewId::Exactly(Id::take(input)?)),
            other => Err(Malformed::Options(other)),
        }
    }
}

impl XAdd<'_> {
    /// The opcode of one with options.
    pub(crate) const OPCODE_WITH_OPTIONS: Opcode = 340;
}

impl<'a> Encoding<'a> for XAddParts<'a> {
    const OPCODE: Opcode = 86;

    fn opcode(&self) -> Opcode {
        if self.only_if_exists || self.trim.is_some() { XAdd::OPCODE_WITH_OPTIONS } else { Self::OPCODE }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        NewId::put(out, self.id);
        if self.opcode() == XAdd::OPCODE_WITH_OPTIONS {
            Flag::put(out, self.only_if_exists);
            OptionalTrim::put(out, self.trim);
        }
        Elements::<2>::put(out, self.fields);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, id) = (Key::take(input)?, NewId::take(input)?);
        let (mut only_if_exists, mut trim) = (false, None);
        if opcode == XAdd::OPCODE_WITH_OPTIONS {
            only_if_exists = Flag::take(input)?;
            trim = OptionalTrim::take(input)?;
            if !only_if_exists && trim.is_none() {
                return Err(Malformed::Options(0));
            }
        }
        Ok(Self { key, id, fields: Elements::<2>::take(input)?, only_if_exists, trim })
    }
}

impl<'a> Definition<'a> for XAddParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xadd",
        arity: -5,
        key_flags: &[&["RW", "update"]],
        key_notes: "UPDATE instead of INSERT because of the optional trimming feature",
        flags: &["write", "denyoom", "fast"],
        tips: &["nondeterministic_output"],
        summary: "Adds an entry to a stream; creates the key if it does not exist.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn now_mut(&mut self) -> Option<&mut u64> {
        match &mut self.id {
            NewId::Now { now_ms } => Some(now_ms),
            NewId::Next { .. } | NewId::Exactly(_) => None,
        }
    }
}

fn parse(words: Words<'_>) -> Result<XAddParts<'_>, CommandError> {
    let mut rest = &words[2..];
    let (mut options, mut only_if_exists, mut id) = (TrimOptions::default(), false, None);
    while let Some((first, behind)) = rest.split_first() {
        if *first == b"*" {
            id = Some(NewId::Now { now_ms: 0 });
            rest = behind;
            break;
        }
        if options.take(&mut rest)? {
            continue;
        }
        if is(first, "nomkstream") {
            only_if_exists = true;
            rest = behind;
            continue;
        }
        id = Some(NewId::parse(first)?);
        rest = behind;
        break;
    }
    let trim = options.finish()?;
    let Some(id) = id.filter(|_| !rest.is_empty() && rest.len().is_multiple_of(2)) else {
        return Err(CommandError::Arity("xadd"));
    };
    if id == NewId::Exactly(StreamId::MIN) {
        return Err(StreamError::ZeroId.into());
    }
    if rest.len() / 2 > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(rest.len() / 2));
    }
    Ok(XAddParts { key: words[1], id, fields: Arguments::new(rest), only_if_exists, trim })
}

impl<'a> UpdateCommand<'a> for XAddParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?;
        if stream.is_none() && self.only_if_exists {
            put_nil(reply);
            return Ok(());
        }
        let last = stream.map_or(StreamId::MIN, Stream::last_id);
        drop(found);
        if last == StreamId::MAX {
            return Err(StreamError::Exhausted.into());
        }
        let id = self.id.behind(last).ok_or(StreamError::IdNotGreater)?;
        let trimmed = keys.edit_collection(self.key, |stream: &mut Stream| {
            stream.append(id, self.fields.len(), self.fields.iter());
            let trimmed = self.trim.map_or(0, |trim| trim.count(stream));
            stream.trim(trimmed);
            trimmed
        })?;
        keys.notify(KeyEvent::XAdd, self.key);
        if trimmed > 0 {
            keys.notify(KeyEvent::XTrim, self.key);
        }
        put_id(reply, id);
        Ok(())
    }
}

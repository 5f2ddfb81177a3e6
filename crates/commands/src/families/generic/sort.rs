//! SORT and SORT_RO.
//!
//! A SORT without STORE is a read, as SORT_RO is. If BY or GET names keys by a pattern, nobody knows from the words which
//! keys these are: it concerns all keys there are.

use super::ROW;
use super::sort_options::SortOptions;
use crate::access::{KeyEvent, Keys, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, Key, Opcode, OptionalElements};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, RESULT_WORK, ReadCommand, UpdateCommand, View,
};
use crate::families::elements::{elements, work_of_all};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, KeyWord, KeysBehind};
use crate::limits::SOURCE_BYTES_MAX;
use crate::primitive::Malformed;
use crate::reply::{put_array, put_bulk, put_integer, put_nil};
use crate::words::Words;
use syros_types::limits::KEY_BYTES_MAX;
use syros_values::{List, ListEnd};

/// SORT without STORE, and SORT_RO: answers elements of a list, a set or a sorted set in an order, or what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort<'a> {
    /// The key.
    pub key: &'a [u8],
    /// BY, LIMIT, GET, ASC, DESC and ALPHA, as a client writes them.
    pub options: Arguments<'a>,
}

/// SORT with STORE: a key becomes a list of what SORT answers. Answers how many elements it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortStore<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The same, and STORE, as a client writes them.
    pub options: Arguments<'a>,
}

/// Takes the key and the options, of which those with STORE are valid if `stores` is true.
fn take<'a>(input: &mut &'a [u8], stores: bool) -> Result<(&'a [u8], Arguments<'a>), Malformed> {
    let (key, options) = (Key::take(input)?, OptionalElements::take(input)?);
    let parsed = SortOptions::parse(options, stores).map_err(|_| Malformed::Options(0))?;
    if parsed.target.is_some() == stores { Ok((key, options)) } else { Err(Malformed::Options(0)) }
}

impl<'a> Encoding<'a> for Sort<'a> {
    const OPCODE: Opcode = 320;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        OptionalElements::put(out, self.options);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        take(input, false).map(|(key, options)| Self { key, options })
    }
}

impl<'a> Encoding<'a> for SortStore<'a> {
    const OPCODE: Opcode = 321;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        OptionalElements::put(out, self.options);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        take(input, true).map(|(key, options)| Self { key, options })
    }
}

impl<'a> Sort<'a> {
    fn parsed(&self) -> SortOptions<'a> {
        SortOptions::parse(self.options, false).unwrap_or_default()
    }
}

impl<'a> SortStore<'a> {
    /// The options, and the key that becomes a list.
    fn parsed(&self) -> (SortOptions<'a>, &'a [u8]) {
        let options = SortOptions::parse(self.options, true).unwrap_or_default();
        let target = options.target.unwrap_or_default();
        (options, target)
    }
}

/// Keys that are looked up, by names that follow from the elements.
const PATTERNS: KeyWord = KeyWord {
    word: "BY",
    from: 2,
    keys: KeysBehind::Pattern(
        "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key \
         we sort",
    ),
};

/// The key that is stored to.
const STORE: KeyWord = KeyWord {
    word: "STORE",
    from: 2,
    keys: KeysBehind::Untold(
        "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument \
         array",
    ),
};

impl<'a> Definition<'a> for Sort<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sort_ro",
        kind: CommandKind::READ,
        arity: -2,
        keys: KeyPositions::ONE,
        key_words: &[PATTERNS],
        key_flags: &[&["RO", "access"], &["RO", "access"]],
        flags: &["readonly", "movablekeys"],
        categories: &["@read", "@set", "@sortedset", "@list", "@slow", "@dangerous"],
        since: "7.0.0",
        summary: "Returns the elements of a list, a set or a sorted set in an order.",
        parser: |_, words| parse(words, false),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        if self.parsed().looks_up() { KeyNames::All } else { KeyNames::One(self.key) }
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl<'a> Definition<'a> for SortStore<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sort",
        kind: CommandKind::UPDATE,
        arity: -2,
        keys: KeyPositions::ONE,
        key_words: &[PATTERNS, STORE],
        key_flags: &[&["RO", "access"], &["RO", "access"], &["OW", "update"]],
        flags: &["write", "denyoom", "movablekeys"],
        categories: &["@write", "@set", "@sortedset", "@list", "@slow", "@dangerous"],
        since: "1.0.0",
        summary: "Returns the elements of a list, a set or a sorted set in an order, or stores them as a list.",
        parser: |_, words| parse(words, true),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        let (options, target) = self.parsed();
        if options.looks_up() { KeyNames::All } else { KeyNames::Two(self.key, target) }
    }
}

fn parse(words: Words<'_>, stores: bool) -> Result<Command<'_>, CommandError> {
    let (key, options) = (words[1], elements(words, 1)?);
    let parsed = SortOptions::parse(options, stores)?;
    // What concerns all keys names none whose length could be checked.
    if key.len() > KEY_BYTES_MAX {
        return Err(CommandError::KeyTooLong(key.len()));
    }
    Ok(match parsed.target {
        None => Sort { key, options }.into(),
        Some(_) => SortStore { key, options }.into(),
    })
}

/// How much longer it takes to sort elements than to read them, about.
const SORTING: usize = 8;

impl ReadCommand for Sort<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut answers = Vec::new();
        let (mut count, start) = (0, reply.len());
        self.parsed().run(
            keys,
            self.key,
            |answer_count| count = answer_count,
            |answer| {
                match answer {
                    Some(value) => put_bulk(&mut answers, value),
                    None => put_nil(&mut answers),
                }
                if start + answers.len() > view.reply_end {
                    Err(ExecutionError::ReplyTooLong)
                } else {
                    Ok(())
                }
            },
        )?;
        put_array(reply, count);
        reply.extend_from_slice(&answers);
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_all(keys, core::iter::once(self.key)).saturating_mul(SORTING)
    }
}

impl<'a> UpdateCommand<'a> for SortStore<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        RESULT_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let (options, target) = self.parsed();
        let (mut list, mut bytes) = (List::default(), 0);
        options.run(
            keys,
            self.key,
            |_| (),
            |answer| {
                let element = answer.unwrap_or_default();
                bytes += element.len();
                list.push(ListEnd::Right, element);
                if bytes > SOURCE_BYTES_MAX { Err(ExecutionError::SourcesTooLong) } else { Ok(()) }
            },
        )?;
        put_integer(reply, list.len() as i64);
        // Whether there is a target is looked at in any case: what the answer depends on must not depend on the state.
        if !list.is_empty() {
            keys.set_collection(target, list);
            keys.notify(KeyEvent::SortStore, target);
        } else if keys.get(target).is_some() {
            keys.delete(target);
        }
        Ok(())
    }
}

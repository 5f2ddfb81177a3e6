//! ZADD.

use super::condition::{ScoreCondition, parse_options};
use super::score::{check_scores, scored};
use super::zincrby::parse_increment;
use super::{FAST_UPDATE, MEMBER_BYTES};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Encoding, Field as _, Key, Opcode};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_integer;
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Score, SortedSet};

/// ZADD without INCR: answers how many of the members are new or, with CH, have another score now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZAdd<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// When a member gets its score.
    pub condition: ScoreCondition,
    /// CH: members that get another score count, too.
    pub counts_changes: bool,
    /// Scores and their members in turn. Of a member that is named twice the last score counts.
    pub members: Arguments<'a>,
}

impl ZAdd<'_> {
    /// The opcode with a condition, or with CH.
    pub(crate) const OPCODE_WITH_OPTIONS: Opcode = 67;

    fn has_options(&self) -> bool {
        self.counts_changes || self.condition != ScoreCondition::Always
    }
}

/// The bit of the condition's byte that stands for CH.
const COUNTS_CHANGES: u8 = 0x10;

impl<'a> Encoding<'a> for ZAdd<'a> {
    const OPCODE: Opcode = 64;

    fn opcode(&self) -> Opcode {
        if self.has_options() { Self::OPCODE_WITH_OPTIONS } else { Self::OPCODE }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if self.has_options() {
            out.push(self.condition as u8 | if self.counts_changes { COUNTS_CHANGES } else { 0 });
        }
        Key::put(out, self.key);
        Elements::<2>::put(out, self.members);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = if opcode == Self::OPCODE { 0 } else { take_u8(input)? };
        let condition = ScoreCondition::take(&mut &[options & !COUNTS_CHANGES][..])?;
        let counts_changes = options & COUNTS_CHANGES != 0;
        let (key, members) = (Key::take(input)?, Elements::<2>::take(input)?);
        let operation = Self { key, condition, counts_changes, members };
        if operation.opcode() == opcode { Ok(operation) } else { Err(Malformed::Options(options)) }
    }
}

impl<'a> Definition<'a> for ZAdd<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zadd",
        arity: -4,
        key_flags: &[&["RW", "update"]],
        flags: &["write", "denyoom", "fast"],
        summary: "Gives members of a sorted set their scores; creates the key if it does not exist.",
        parser: |_, words| parse(words),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let (options, members) = parse_options(&words[2..], 2)?;
    if options.increments {
        return parse_increment(words[1], options.condition, members);
    }
    let count = members.len() / 2;
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(count));
    }
    let members = Arguments::new(members);
    check_scores(members)?;
    Ok(ZAdd { key: words[1], condition: options.condition, counts_changes: options.counts_changes, members }
        .into())
}

impl<'a> UpdateCommand<'a> for ZAdd<'a> {
    fn counts(&self) -> bool {
        !self.has_options()
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.members.len() / 2 * MEMBER_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let members = scored(self.members)?;
        let (added, changed) =
            keys.edit_collection(self.key, |set: &mut SortedSet| add(set, &members, self.condition))?;
        if added + changed > 0 {
            keys.notify(KeyEvent::ZAdd, self.key);
        }
        put_integer(reply, if self.counts_changes { added + changed } else { added });
        Ok(())
    }
}

/// Gives members their scores, those of which the condition is true. How many are new, and how many have another score.
pub(in crate::families) fn add(
    set: &mut SortedSet,
    members: &[(&[u8], Score)],
    condition: ScoreCondition,
) -> (i64, i64) {
    let (mut added, mut changed) = (0, 0);
    for (member, score) in members {
        match set.score(member) {
            Some(old) if old == *score || !condition.allows_change(old, *score) => continue,
            Some(_) => changed += 1,
            None if !condition.allows_new() => continue,
            None => added += 1,
        }
        set.set(member, *score);
    }
    (added, changed)
}

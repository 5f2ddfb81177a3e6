//! ZINCRBY, and ZADD with INCR.

use super::condition::{ScoreCondition, parse_options};
use super::score::{parse_score, put_optional_score};
use super::{FAST_UPDATE, MEMBER_BYTES};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Encoding, Field as _, Key, Opcode, Value};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::words::Words;
use syros_values::{Score, SortedSet};

/// ZINCRBY, and ZADD with INCR: answers the member's new score, or nil if the condition is not true of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZIncrBy<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// When the member gets the sum as its score.
    pub condition: ScoreCondition,
    /// What is added.
    pub increment: Score,
    /// The member, whose score counts as 0 if it has none.
    pub member: &'a [u8],
}

impl ZIncrBy<'_> {
    /// The opcode with a condition.
    pub(crate) const OPCODE_IF: Opcode = 68;
}

impl<'a> Encoding<'a> for ZIncrBy<'a> {
    const OPCODE: Opcode = 66;

    fn opcode(&self) -> Opcode {
        if self.condition == ScoreCondition::Always { Self::OPCODE } else { Self::OPCODE_IF }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if self.condition != ScoreCondition::Always {
            ScoreCondition::put(out, self.condition);
        }
        Key::put(out, self.key);
        Score::put(out, self.increment);
        Value::put(out, self.member);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let condition = match opcode {
            Self::OPCODE_IF => ScoreCondition::take(input)?,
            _ => ScoreCondition::Always,
        };
        if opcode == Self::OPCODE_IF && condition == ScoreCondition::Always {
            return Err(Malformed::Options(condition as u8));
        }
        let (key, increment) = (Key::take(input)?, Score::take(input)?);
        Ok(Self { key, condition, increment, member: Value::take(input)? })
    }
}

impl<'a> Definition<'a> for ZIncrBy<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zincrby",
        arity: 4,
        key_flags: &[&["RW", "access", "update"]],
        flags: &["write", "denyoom", "fast"],
        summary: "Increments the score of a member of a sorted set.",
        // Redis takes options of ZADD for such here, too, though there is no room for what has to follow them.
        parser: |_, words| {
            let (options, words_behind) = parse_options(&words[2..], 2)?;
            parse_increment(words[1], options.condition, words_behind)
        },
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

/// ZADD with INCR, and ZINCRBY: an increment and a member.
pub(super) fn parse_increment<'a>(
    key: &'a [u8],
    condition: ScoreCondition,
    words: Words<'a>,
) -> Result<Command<'a>, CommandError> {
    let [increment, member] = *words else { return Err(CommandError::SeveralIncrements) };
    Ok(ZIncrBy { key, condition, increment: parse_score(increment)?, member }.into())
}

impl<'a> UpdateCommand<'a> for ZIncrBy<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + MEMBER_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let (sum, is_change) = keys.edit_collection(self.key, |set: &mut SortedSet| {
            let sum = self.sum(set.score(self.member))?;
            let is_change = sum.is_some() && sum != set.score(self.member);
            if let Some(sum) = sum {
                set.set(self.member, sum);
            }
            Ok::<_, ExecutionError>((sum, is_change))
        })??;
        if is_change {
            keys.notify(KeyEvent::ZIncr, self.key);
        }
        put_optional_score(reply, sum);
        Ok(())
    }
}

impl ZIncrBy<'_> {
    /// The new score of a member that has an old one or none; `None` if it does not get one.
    fn sum(&self, old: Option<Score>) -> Result<Option<Score>, ExecutionError> {
        let Some(old) = old else {
            return Ok(self.condition.allows_new().then_some(self.increment));
        };
        if self.condition == ScoreCondition::IfNew {
            return Ok(None);
        }
        let sum = Score::new(old.value() + self.increment.value()).ok_or(ExecutionError::NotANumber)?;
        Ok(self.condition.allows_change(old, sum).then_some(sum))
    }
}

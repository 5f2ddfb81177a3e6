//! ZRANK and ZREVRANK.

use super::score::put_score;
use super::{FAST_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Flag, Key, Value, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer, put_nil, put_nil_array};
use crate::words::{Words, is};

/// ZRANK, ZREVRANK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZRank<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The member whose rank is answered.
    pub member: &'a [u8],
    /// True if ranks count from the last member.
    pub is_reversed: bool,
    /// WITHSCORE: the score is answered, too, as in Redis 7.2.
    pub with_score: bool,
}

fields!(ZRank<'a> = 25 { key: Key, member: Value, is_reversed: Flag, with_score: Flag });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: -3, since: "2.0.0", ..FAST_READ };

impl<'a> Definition<'a> for ZRank<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zrank",
            summary: "Returns the rank of a member of a sorted set.",
            parser: |name, words| parse(name, words, false),
            ..ROW
        },
        CommandSpec {
            name: "zrevrank",
            summary: "Returns the rank of a member of a sorted set, counted from the last one.",
            parser: |name, words| parse(name, words, true),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>, is_reversed: bool) -> Result<Command<'a>, CommandError> {
    let with_score = match words[3..] {
        [] => false,
        [option] if is(option, "withscore") => true,
        [_] => return Err(CommandError::Syntax),
        _ => return Err(CommandError::Arity(name)),
    };
    Ok(ZRank { key: words[1], member: words[2], is_reversed, with_score }.into())
}

impl ReadCommand for ZRank<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = sorted_set_of(found.as_ref())?;
        let ranked = set.and_then(|set| Some((set, set.rank(self.member)?)));
        let Some((set, rank)) = ranked else {
            let put_nothing = if self.with_score { put_nil_array } else { put_nil };
            put_nothing(reply);
            return Ok(());
        };
        if self.with_score {
            put_array(reply, 2);
        }
        put_integer(reply, if self.is_reversed { set.len() - 1 - rank } else { rank } as i64);
        if self.with_score
            && let Some(score) = set.score(self.member)
        {
            put_score(reply, score);
        }
        Ok(())
    }
}

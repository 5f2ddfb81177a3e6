//! ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX.

use super::SLOW_UPDATE;
use super::interval::{Interval, IntervalKind};
use crate::access::KeysMut;
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::definition::{COLLECTION_WORK, Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::words::Words;
use syros_values::SortedSet;

/// ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX: answers how many members there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZRemRangeParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which members are removed.
    pub interval: Interval<'a>,
}

/// The same, read again where it is needed.
pub type ZRemRange<'a> = Indirect<'a, ZRemRangeParts<'a>>;

fields!(ZRemRangeParts<'a> = 240 { key: Key, interval: Interval<'a> });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: 4, key_flags: &[&["RW", "delete"]], ..SLOW_UPDATE };

impl<'a> Definition<'a> for ZRemRangeParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zremrangebylex",
            since: "2.8.9",
            summary: "Removes the members of a sorted set between two members, if all have one score.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, IntervalKind::Members)),
            ..ROW
        },
        CommandSpec {
            name: "zremrangebyrank",
            since: "2.0.0",
            summary: "Removes the members of a sorted set from one rank to another.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, IntervalKind::Ranks)),
            ..ROW
        },
        CommandSpec {
            name: "zremrangebyscore",
            summary: "Removes the members of a sorted set between two scores.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, IntervalKind::Scores)),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>, kind: IntervalKind) -> Result<ZRemRangeParts<'_>, CommandError> {
    Ok(ZRemRangeParts { key: words[1], interval: Interval::parse(kind, words[2], words[3])? })
}

impl<'a> UpdateCommand<'a> for ZRemRangeParts<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn work(&self) -> usize {
        COLLECTION_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let removed = keys.edit_collection(self.key, |set: &mut SortedSet| {
            let ranks = self.interval.ranks(set, false);
            set.remove_range(ranks.clone());
            ranks.end - ranks.start
        })?;
        if removed > 0 {
            keys.notify_removal(self.interval.removed(), self.key);
        }
        put_integer(reply, removed as i64);
        Ok(())
    }
}

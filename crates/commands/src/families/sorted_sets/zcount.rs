//! ZCOUNT and ZLEXCOUNT.

use super::interval::{Interval, IntervalKind};
use super::{FAST_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::words::Words;

/// ZCOUNT, ZLEXCOUNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZCountParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which members are counted.
    pub interval: Interval<'a>,
}

/// The same, read again where it is needed.
pub type ZCount<'a> = Indirect<'a, ZCountParts<'a>>;

fields!(ZCountParts<'a> = 220 { key: Key, interval: Interval<'a> });

impl<'a> Definition<'a> for ZCountParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zcount",
            arity: 4,
            since: "2.0.0",
            summary: "Counts the members of a sorted set between two scores.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, IntervalKind::Scores)),
            ..FAST_READ
        },
        CommandSpec {
            name: "zlexcount",
            arity: 4,
            since: "2.8.9",
            summary: "Counts the members of a sorted set between two members, if all have one score.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, IntervalKind::Members)),
            ..FAST_READ
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>, kind: IntervalKind) -> Result<ZCountParts<'_>, CommandError> {
    Ok(ZCountParts { key: words[1], interval: Interval::parse(kind, words[2], words[3])? })
}

impl ReadCommand for ZCountParts<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let ranks = sorted_set_of(found.as_ref())?.map(|set| self.interval.ranks(set, false));
        put_integer(reply, ranks.map_or(0, |ranks| ranks.end - ranks.start) as i64);
        Ok(())
    }
}

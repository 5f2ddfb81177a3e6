//! GEODIST.

use super::READ;
use super::place::Place;
use super::unit::DistanceUnit;
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::CommandSpec;
use crate::reply::put_nil;
use crate::words::Words;

/// GEODIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoDist<'a> {
    /// The key.
    pub key: &'a [u8],
    /// A member.
    pub first: &'a [u8],
    /// Another one.
    pub second: &'a [u8],
    /// The unit of the answer.
    pub unit: DistanceUnit,
}

fields!(GeoDist<'a> = 301 { key: Key, first: Value, second: Value, unit: DistanceUnit });

impl<'a> Definition<'a> for GeoDist<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geodist",
        arity: -4,
        summary: "Returns the distance between two members of a sorted set.",
        parser: |_, words| parse(words),
        ..READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let unit = match words[4..] {
        [] => DistanceUnit::Metre,
        [unit] => DistanceUnit::parse(unit)?,
        _ => return Err(CommandError::Syntax),
    };
    Ok(GeoDist { key: words[1], first: words[2], second: words[3], unit }.into())
}

impl ReadCommand for GeoDist<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = sorted_set_of(found.as_ref())?;
        let place = |member| set.and_then(|set| set.score(member)).map(Place::of_score);
        match (place(self.first), place(self.second)) {
            (Some(first), Some(second)) => self.unit.put_distance(reply, first.distance(second)),
            _ => put_nil(reply),
        }
        Ok(())
    }
}

//! GEODIST.

use super::READ;
use super::place::Place;
use super::unit::DistanceUnit;
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::indirect::Indirect;
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::CommandSpec;
use crate::reply::put_nil;
use crate::words::Words;

/// GEODIST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoDistParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// A member.
    pub first: &'a [u8],
    /// Another one.
    pub second: &'a [u8],
    /// The unit of the answer.
    pub unit: DistanceUnit,
}

/// The same, read again where it is needed.
pub type GeoDist<'a> = Indirect<'a, GeoDistParts<'a>>;

fields!(GeoDistParts<'a> = 301 { key: Key, first: Value, second: Value, unit: DistanceUnit });

impl<'a> Definition<'a> for GeoDistParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geodist",
        arity: -4,
        summary: "Returns the distance between two members of a sorted set.",
        parser: |_, words| Indirect::parse(words, parse),
        ..READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<GeoDistParts<'_>, CommandError> {
    let unit = match words[4..] {
        [] => DistanceUnit::Metre,
        [unit] => DistanceUnit::parse(unit)?,
        _ => return Err(CommandError::Syntax),
    };
    Ok(GeoDistParts { key: words[1], first: words[2], second: words[3], unit })
}

impl ReadCommand for GeoDistParts<'_> {
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

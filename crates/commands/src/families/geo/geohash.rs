//! GEOHASH.

use super::READ;
use super::place::Place;
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Key, OptionalElements, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::{elements, put_optional};
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::CommandSpec;
use crate::reply::put_array;

/// GEOHASH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoHash<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The members whose geohashes are answered.
    pub members: Arguments<'a>,
}

fields!(GeoHash<'a> = 302 { key: Key, members: OptionalElements });

impl<'a> Definition<'a> for GeoHash<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geohash",
        arity: -2,
        summary: "Returns the geohashes of members of a sorted set.",
        parser: |_, words| Ok(GeoHash { key: words[1], members: elements(words, 1)? }.into()),
        ..READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for GeoHash<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = sorted_set_of(found.as_ref())?;
        put_array(reply, self.members.len());
        for member in self.members {
            let score = set.and_then(|set| set.score(member));
            put_optional(reply, score.map(|score| Place::of_score(score).geohash()).as_deref());
        }
        Ok(())
    }
}

//! GEOPOS.

use super::READ;
use super::place::Place;
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Key, OptionalElements, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::elements;
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_nil_array};

/// GEOPOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoPos<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The members whose places are answered.
    pub members: Arguments<'a>,
}

fields!(GeoPos<'a> = 300 { key: Key, members: OptionalElements });

impl<'a> Definition<'a> for GeoPos<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geopos",
        arity: -2,
        summary: "Returns the places of members of a sorted set.",
        parser: |_, words| Ok(GeoPos { key: words[1], members: elements(words, 1)? }.into()),
        ..READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for GeoPos<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = sorted_set_of(found.as_ref())?;
        put_array(reply, self.members.len());
        for member in self.members {
            match set.and_then(|set| set.score(member)) {
                Some(score) => Place::of_score(score).put_reply(reply),
                None => put_nil_array(reply),
            }
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        Ok(())
    }
}

//! GEOSEARCHSTORE, which GEORADIUS with STORE is, too.

use super::UPDATE;
use super::search::{GeoSearch, Parts};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Flag, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, RESULT_WORK, UpdateCommand,
};
use crate::families::indirect::Indirect;
use crate::families::sorted_sets::{MEMBER_BYTES, sorted_set_of, store};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_values::{Score, SortedSet};

/// GEOSEARCHSTORE: answers how many members the target has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoSearchStoreParts<'a> {
    /// The key that becomes a sorted set, whatever it was.
    pub target: &'a [u8],
    /// The key of the sorted set that members are taken from.
    pub source: &'a [u8],
    /// Which members are taken.
    pub search: GeoSearch<'a>,
    /// STOREDIST: scores are distances from the centre.
    pub stores_distances: bool,
}

/// The same, read again where it is needed.
pub type GeoSearchStore<'a> = Indirect<'a, GeoSearchStoreParts<'a>>;

fields!(GeoSearchStoreParts<'a> = 311 {
    target: Key,
    source: Key,
    search: GeoSearch<'a>,
    stores_distances: Flag
});

impl<'a> Definition<'a> for GeoSearchStoreParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geosearchstore",
        arity: -8,
        keys: KeyPositions::TWO,
        key_flags: &[&["OW", "update"], &["RO", "access"]],
        since: "6.2.0",
        summary: "Stores the members of a sorted set that are within a circle or a rectangle.",
        parser: |_, words| Indirect::parse(words, parse),
        ..UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.target, self.source)
    }
}

fn parse(words: Words<'_>) -> Result<GeoSearchStoreParts<'_>, CommandError> {
    let (mut parts, mut stores_distances, mut answers_more) = (Parts::default(), false, false);
    let mut rest = &words[3..];
    while let [option, behind @ ..] = rest {
        let flag = match option {
            option if is(option, "storedist") => &mut stores_distances,
            option if ["withdist", "withhash", "withcoord"].iter().any(|name| is(option, name)) => {
                &mut answers_more
            }
            _ if parts.take(&mut rest, true)? => continue,
            _ => return Err(CommandError::Syntax),
        };
        *flag = true;
        rest = behind;
    }
    if answers_more {
        return Err(CommandError::GeoStoreAnswersNothing);
    }
    let search = parts.finish(words[0])?;
    Ok(GeoSearchStoreParts { target: words[1], source: words[2], search, stores_distances })
}

impl<'a> UpdateCommand<'a> for GeoSearchStoreParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + MEMBER_BYTES
    }

    fn work(&self) -> usize {
        RESULT_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let source: Option<SortedSet> = sorted_set_of(keys.get(self.source).as_ref())?.cloned();
        let found = source.as_ref().map(|set| self.search.run(set)).transpose()?.unwrap_or_default();
        let distance =
            |metres: f64| Score::new(metres / self.search.unit.metres()).unwrap_or(Score::GREATEST);
        let mut members: Vec<(&[u8], Score)> = found
            .iter()
            .map(|found| {
                (found.member, if self.stores_distances { distance(found.distance) } else { found.score })
            })
            .collect();
        members.sort_unstable_by_key(|(member, score)| (*score, *member));
        put_integer(reply, store(keys, self.target, &members, KeyEvent::GeoSearchStore));
        Ok(())
    }
}

//! GEOADD.

use super::UPDATE;
use super::place::Place;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Encoding, Field as _, Key, Opcode};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::sorted_sets::MEMBER_BYTES;
use crate::families::sorted_sets::condition::ScoreCondition;
use crate::families::sorted_sets::zadd::add;
use crate::families::specification::CommandSpec;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Score, SortedSet};

/// GEOADD: answers how many of the members are new or, with CH, are at another place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoAdd<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// When a member gets its place: always, if it is new, or if it is not.
    pub condition: ScoreCondition,
    /// CH: members that get another place count, too.
    pub counts_changes: bool,
    /// Longitudes, latitudes and members in turn.
    pub places: Arguments<'a>,
}

/// The bit of the condition's byte that stands for CH.
const COUNTS_CHANGES: u8 = 0x10;

impl<'a> Encoding<'a> for GeoAdd<'a> {
    const OPCODE: Opcode = 310;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.condition as u8 | if self.counts_changes { COUNTS_CHANGES } else { 0 });
        Key::put(out, self.key);
        Elements::<3>::put(out, self.places);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = take_u8(input)?;
        let condition = ScoreCondition::take(&mut &[options & !COUNTS_CHANGES][..])?;
        if !matches!(condition, ScoreCondition::Always | ScoreCondition::IfNew | ScoreCondition::IfOld) {
            return Err(Malformed::Options(options));
        }
        let counts_changes = options & COUNTS_CHANGES != 0;
        Ok(Self { key: Key::take(input)?, condition, counts_changes, places: Elements::<3>::take(input)? })
    }
}

impl<'a> Definition<'a> for GeoAdd<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "geoadd",
        arity: -5,
        summary: "Gives members of a sorted set places; creates the key if it does not exist.",
        parser: |_, words| parse(words),
        ..UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let is_option = |word: &&&[u8]| is(word, "nx") || is(word, "xx") || is(word, "ch");
    let options = words[2..].iter().take_while(is_option).count();
    let (options, places) = words[2..].split_at(options);
    let has = |name| options.iter().any(|word| is(word, name));
    let condition = match (has("nx"), has("xx")) {
        (true, true) => return Err(CommandError::Syntax),
        (true, _) => ScoreCondition::IfNew,
        (_, true) => ScoreCondition::IfOld,
        _ => ScoreCondition::Always,
    };
    if places.is_empty() || !places.len().is_multiple_of(3) {
        return Err(CommandError::Syntax);
    }
    let count = places.len() / 3;
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(count));
    }
    places.chunks_exact(3).try_for_each(|place| Place::parse(place[0], place[1]).map(drop))?;
    Ok(GeoAdd { key: words[1], condition, counts_changes: has("ch"), places: Arguments::new(places) }.into())
}

impl<'a> UpdateCommand<'a> for GeoAdd<'a> {
    fn counts(&self) -> bool {
        self.condition == ScoreCondition::Always && !self.counts_changes
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.places.len() / 3 * MEMBER_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let members = self.members()?;
        let (added, changed) =
            keys.edit_collection(self.key, |set: &mut SortedSet| add(set, &members, self.condition))?;
        if added + changed > 0 {
            keys.notify(KeyEvent::ZAdd, self.key);
        }
        put_integer(reply, if self.counts_changes { added + changed } else { added });
        Ok(())
    }
}

impl<'a> GeoAdd<'a> {
    /// The members with their scores. Who made the body has checked them.
    fn members(&self) -> Result<Vec<(&'a [u8], Score)>, ExecutionError> {
        let mut words = self.places.iter();
        let mut members = Vec::with_capacity(words.len() / 3);
        while let (Some(longitude), Some(latitude), Some(member)) = (words.next(), words.next(), words.next())
        {
            let place = Place::parse(longitude, latitude).map_err(|_| ExecutionError::NotFloat)?;
            members.push((member, place.score()));
        }
        Ok(members)
    }
}

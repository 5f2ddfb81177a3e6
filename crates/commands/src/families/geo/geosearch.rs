//! GEOSEARCH, and its older relatives that only read.

use super::READ;
use super::place::Place;
use super::search::{Centre, Found, GeoSearch, Parts, parse_circle};
use crate::access::Keys;
use crate::encoding::{Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_bulk, put_integer};
use crate::words::{Words, is};

/// GEOSEARCH, GEORADIUS_RO, GEORADIUSBYMEMBER_RO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoSearchRead<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which members are answered.
    pub search: GeoSearch<'a>,
    /// WITHDIST: their distances from the centre, too.
    pub with_distance: bool,
    /// WITHHASH: their scores, too.
    pub with_score: bool,
    /// WITHCOORD: their places, too.
    pub with_place: bool,
}

fields!(GeoSearchRead<'a> = 303 {
    key: Key,
    search: GeoSearch<'a>,
    with_distance: Flag,
    with_score: Flag,
    with_place: Flag
});

impl<'a> Definition<'a> for GeoSearchRead<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "georadius_ro",
            arity: -6,
            since: "3.2.10",
            summary: "Returns the members of a sorted set that are near a place.",
            parser: |_, words| {
                let centre = Some(Centre::At(Place::parse(words[2], words[3])?));
                let shape = Some(parse_circle(words[4], words[5])?);
                parse(words, &words[6..], Parts { centre, shape, ..Parts::default() })
            },
            ..READ
        },
        CommandSpec {
            name: "georadiusbymember_ro",
            arity: -5,
            since: "3.2.10",
            summary: "Returns the members of a sorted set that are near one of them.",
            parser: |_, words| {
                let shape = Some(parse_circle(words[3], words[4])?);
                let parts = Parts { centre: Some(Centre::Member(words[2])), shape, ..Parts::default() };
                parse(words, &words[5..], parts)
            },
            ..READ
        },
        CommandSpec {
            name: "geosearch",
            arity: -7,
            since: "6.2.0",
            summary: "Returns the members of a sorted set that are within a circle or a rectangle.",
            parser: |_, words| parse(words, &words[2..], Parts::default()),
            ..READ
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

/// The options of a command; it names centre and shape by options if it has not named them before.
fn parse<'a>(
    words: Words<'a>,
    options: Words<'a>,
    mut parts: Parts<'a>,
) -> Result<Command<'a>, CommandError> {
    let is_named = parts.centre.is_none();
    let (mut with_distance, mut with_score, mut with_place) = (false, false, false);
    let mut rest = options;
    while let [option, behind @ ..] = rest {
        let flag = match option {
            option if is(option, "withdist") => &mut with_distance,
            option if is(option, "withhash") => &mut with_score,
            option if is(option, "withcoord") => &mut with_place,
            _ if parts.take(&mut rest, is_named)? => continue,
            _ => return Err(CommandError::Syntax),
        };
        *flag = true;
        rest = behind;
    }
    let search = parts.finish(words[0])?;
    Ok(GeoSearchRead { key: words[1], search, with_distance, with_score, with_place }.into())
}

/// The work of finding out how far a member is from the centre: as long as to read so many bytes in a row.
const COMPARE_WORK: usize = 128;

impl ReadCommand for GeoSearchRead<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = sorted_set_of(found.as_ref())? else {
            put_array(reply, 0);
            return Ok(());
        };
        let found = self.search.run(set)?;
        put_array(reply, found.len());
        found.iter().try_for_each(|found| {
            self.put(reply, found);
            if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
        })
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(set)) = sorted_set_of(found.as_ref()) else { return 0 };
        usize::try_from(self.search.compared(set)).unwrap_or(usize::MAX).saturating_mul(COMPARE_WORK)
    }
}

impl GeoSearchRead<'_> {
    fn put(&self, reply: &mut Vec<u8>, found: &Found<'_>) {
        let parts =
            [self.with_distance, self.with_score, self.with_place].iter().filter(|part| **part).count();
        if parts > 0 {
            put_array(reply, 1 + parts);
        }
        put_bulk(reply, found.member);
        if self.with_distance {
            self.search.unit.put_distance(reply, found.distance);
        }
        if self.with_score {
            put_integer(reply, found.score.value() as i64);
        }
        if self.with_place {
            found.place.put_reply(reply);
        }
    }
}

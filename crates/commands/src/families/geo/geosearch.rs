//! GEOSEARCH, and its older relatives, of which two store what they find if they are told to.

use super::geosearchstore::GeoSearchStoreParts;
use super::place::Place;
use super::search::{Centre, Found, GeoSearch, Parts, parse_circle};
use super::{READ, UPDATE};
use crate::access::Keys;
use crate::encoding::{Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::indirect::Indirect;
use crate::families::sorted_sets::sorted_set_of;
use crate::families::specification::{CommandSpec, KeyWord, KeysBehind};
use crate::reply::{put_array, put_bulk, put_integer};
use crate::words::{Words, is};

/// GEOSEARCH, GEORADIUS_RO, GEORADIUSBYMEMBER_RO; and GEORADIUS and GEORADIUSBYMEMBER, unless they store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoSearchReadParts<'a> {
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

/// The same, read again where it is needed.
pub type GeoSearchRead<'a> = Indirect<'a, GeoSearchReadParts<'a>>;

fields!(GeoSearchReadParts<'a> = 303 {
    key: Key,
    search: GeoSearch<'a>,
    with_distance: Flag,
    with_score: Flag,
    with_place: Flag
});

/// What the rows of those that may store have in common.
const STORING: CommandSpec = CommandSpec {
    flags: &["write", "denyoom", "movablekeys"],
    key_flags: &[&["RO", "access"], &["OW", "update"], &["OW", "update"]],
    ..UPDATE
};

/// The words behind which they name the key that they store to, looked for from a position on.
const fn store_words(from: u8) -> [KeyWord; 2] {
    let keys = KeysBehind::One;
    [KeyWord { word: "STORE", from, keys }, KeyWord { word: "STOREDIST", from, keys }]
}

impl<'a> Definition<'a> for GeoSearchReadParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "georadius",
            arity: -6,
            key_words: &store_words(6),
            parser: |_, words| match georadius_around_place(words)? {
                Search::Read(_) => Indirect::parse(words, |words| georadius_around_place(words)?.read()),
                Search::Store(_) => Indirect::parse(words, |words| georadius_around_place(words)?.store()),
            },
            summary: "Returns the members of a sorted set that are near a place, or stores them.",
            ..STORING
        },
        CommandSpec {
            name: "georadius_ro",
            arity: -6,
            since: "3.2.10",
            summary: "Returns the members of a sorted set that are near a place.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, &words[6..], around_place(words)?, false)?.read())
            },
            ..READ
        },
        CommandSpec {
            name: "georadiusbymember",
            arity: -5,
            key_words: &store_words(5),
            parser: |_, words| match georadius_around_member(words)? {
                Search::Read(_) => Indirect::parse(words, |words| georadius_around_member(words)?.read()),
                Search::Store(_) => Indirect::parse(words, |words| georadius_around_member(words)?.store()),
            },
            summary: "Returns the members of a sorted set that are near one of them, or stores them.",
            ..STORING
        },
        CommandSpec {
            name: "georadiusbymember_ro",
            arity: -5,
            since: "3.2.10",
            summary: "Returns the members of a sorted set that are near one of them.",
            parser: |_, words| {
                Indirect::parse(words, |words| {
                    parse(words, &words[5..], around_member(words)?, false)?.read()
                })
            },
            ..READ
        },
        CommandSpec {
            name: "geosearch",
            arity: -7,
            since: "6.2.0",
            summary: "Returns the members of a sorted set that are within a circle or a rectangle.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, &words[2..], Parts::default(), false)?.read())
            },
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

/// What a command is that may store what it finds.
enum Search<'a> {
    Read(GeoSearchReadParts<'a>),
    Store(GeoSearchStoreParts<'a>),
}

impl<'a> Search<'a> {
    fn read(self) -> Result<GeoSearchReadParts<'a>, CommandError> {
        if let Self::Read(read) = self { Ok(read) } else { Err(CommandError::Syntax) }
    }

    fn store(self) -> Result<GeoSearchStoreParts<'a>, CommandError> {
        if let Self::Store(store) = self { Ok(store) } else { Err(CommandError::Syntax) }
    }
}

fn georadius_around_place(words: Words<'_>) -> Result<Search<'_>, CommandError> {
    parse(words, &words[6..], around_place(words)?, true)
}

fn georadius_around_member(words: Words<'_>) -> Result<Search<'_>, CommandError> {
    parse(words, &words[5..], around_member(words)?, true)
}

/// The circle around a place, of GEORADIUS.
fn around_place<'a>(words: Words<'a>) -> Result<Parts<'a>, CommandError> {
    let centre = Some(Centre::At(Place::parse(words[2], words[3])?));
    Ok(Parts { centre, shape: Some(parse_circle(words[4], words[5])?), ..Parts::default() })
}

/// The circle around a member, of GEORADIUSBYMEMBER.
fn around_member<'a>(words: Words<'a>) -> Result<Parts<'a>, CommandError> {
    let shape = Some(parse_circle(words[3], words[4])?);
    Ok(Parts { centre: Some(Centre::Member(words[2])), shape, ..Parts::default() })
}

/// The options of a command; it names centre and shape by options if it has not named them before. One that may store has
/// STORE and STOREDIST, of which the last counts.
fn parse<'a>(
    words: Words<'a>,
    options: Words<'a>,
    mut parts: Parts<'a>,
    may_store: bool,
) -> Result<Search<'a>, CommandError> {
    let is_named = parts.centre.is_none();
    let (mut with_distance, mut with_score, mut with_place) = (false, false, false);
    let mut target = None;
    let mut rest = options;
    while let [option, behind @ ..] = rest {
        let flag = match (option, behind) {
            (option, _) if is(option, "withdist") => &mut with_distance,
            (option, _) if is(option, "withhash") => &mut with_score,
            (option, _) if is(option, "withcoord") => &mut with_place,
            (option, [key, behind @ ..]) if may_store && (is(option, "store") || is(option, "storedist")) => {
                target = Some((*key, is(option, "storedist")));
                rest = behind;
                continue;
            }
            _ if parts.take(&mut rest, is_named)? => continue,
            _ => return Err(CommandError::Syntax),
        };
        *flag = true;
        rest = behind;
    }
    let answers_more = with_distance || with_score || with_place;
    if target.is_some() && answers_more {
        return Err(CommandError::GeoRadiusStoreAnswersNothing);
    }
    let (key, search) = (words[1], parts.finish(words[0])?);
    Ok(match target {
        None => Search::Read(GeoSearchReadParts { key, search, with_distance, with_score, with_place }),
        Some((target, stores_distances)) => {
            Search::Store(GeoSearchStoreParts { target, source: key, search, stores_distances })
        }
    })
}

/// The work of finding out how far a member is from the centre: as long as to read so many bytes in a row.
const COMPARE_WORK: usize = 128;

impl ReadCommand for GeoSearchReadParts<'_> {
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

impl GeoSearchReadParts<'_> {
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

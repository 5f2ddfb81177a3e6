//! LPOS.

use super::{SLOW_READ, list_of};
use crate::access::Keys;
use crate::encoding::{Key, Signed, Unsigned, Value, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::counts::{OptionalCount, parse_count};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer, put_nil};
use crate::words::{Words, integer, is};
use syros_values::{List, ListEnd};

/// LPOS: answers the index of an element, or, with a count, an array of indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LPosParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The element that is looked for.
    pub element: &'a [u8],
    /// Which of the equal elements is the first that is wanted: 1 for the first, -1 for the last. 0 is as 1.
    pub rank: i64,
    /// How many are wanted at most; 0 for all.
    pub count: Option<u64>,
    /// How many elements are compared at most; 0 for all.
    pub compared_max: u64,
}

/// The same, read again where it is needed.
pub type LPos<'a> = Indirect<'a, LPosParts<'a>>;

fields!(LPosParts<'a> = 265 {
    key: Key,
    element: Value,
    rank: Signed,
    count: OptionalCount,
    compared_max: Unsigned
});

impl<'a> Definition<'a> for LPosParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lpos",
        arity: -3,
        since: "6.0.6",
        summary: "Returns the indexes of the elements of a list that are equal to one.",
        parser: |_, words| Indirect::parse(words, parse),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Indexes, not values, but any number of them.
    fn values(&self) -> u32 {
        u32::from(self.count.is_some())
    }
}

fn parse(words: Words<'_>) -> Result<LPosParts<'_>, CommandError> {
    let mut found = LPosParts { key: words[1], element: words[2], rank: 1, count: None, compared_max: 0 };
    let mut options = words[3..].iter().copied();
    while let Some(option) = options.next() {
        let argument = options.next().ok_or(CommandError::Syntax)?;
        if is(option, "rank") {
            found.rank = parse_rank(argument)?;
        } else if is(option, "count") {
            found.count = Some(parse_count(argument).ok_or(CommandError::Negative("COUNT"))?);
        } else if is(option, "maxlen") {
            found.compared_max = parse_count(argument).ok_or(CommandError::Negative("MAXLEN"))?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(found)
}

fn parse_rank(word: &[u8]) -> Result<i64, CommandError> {
    match integer(word)? {
        0 => Err(CommandError::RankZero),
        // It cannot be negated.
        i64::MIN => Err(CommandError::CountOutOfRange),
        rank => Ok(rank),
    }
}

impl LPosParts<'_> {
    /// The indexes of all that is wanted but for its number.
    fn indexes<'a>(&'a self, list: &'a List) -> impl Iterator<Item = u64> + 'a {
        let end = if self.rank < 0 { ListEnd::Right } else { ListEnd::Left };
        let compared_max = if self.compared_max == 0 { u64::MAX } else { self.compared_max };
        let compared = list.ranked_from(end).zip(0..compared_max).map(|(ranked, _)| ranked);
        let equal = compared.filter(|(_, element)| *element == self.element).map(|(index, _)| index);
        let passed_over = self.rank.unsigned_abs().saturating_sub(1);
        equal.skip(usize::try_from(passed_over).unwrap_or(usize::MAX))
    }
}

impl ReadCommand for LPosParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let list = list_of(found.as_ref())?;
        let mut indexes = list.into_iter().flat_map(|list| self.indexes(list));
        let Some(count) = self.count else {
            match indexes.next() {
                Some(index) => put_integer(reply, index as i64),
                None => put_nil(reply),
            }
            return Ok(());
        };
        let count_max = if count == 0 { u64::MAX } else { count };
        let (mut count, mut encoded) = (0, Vec::new());
        for (index, _) in indexes.zip(0..count_max) {
            put_integer(&mut encoded, index as i64);
            count += 1;
            if reply.len() + encoded.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        put_array(reply, count);
        reply.extend_from_slice(&encoded);
        Ok(())
    }

    /// That of a search that finds nothing.
    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(list)) = list_of(found.as_ref()) else { return 0 };
        let compared_max = if self.compared_max == 0 { u64::MAX } else { self.compared_max };
        work_of_some(compared_max, list.len(), list.element_bytes())
    }
}

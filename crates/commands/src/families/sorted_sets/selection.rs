//! What ZRANGE and its relatives select: an interval, from one of its ends, and a part of it.

use super::interval::{Interval, IntervalKind};
use crate::encoding::{Field, Signed};
use crate::error::CommandError;
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, integer, is};
use core::ops::Range;
use syros_values::{Score, SortedSet};

/// Members of a sorted set in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection<'a> {
    /// Which members; indexes count from the front of the order.
    pub interval: Interval<'a>,
    /// REV: the order is that from the last member to the first.
    pub is_reversed: bool,
    /// LIMIT: how many of these are left out at the front, all of them if it is negative; and how many are taken from there
    /// on, all that are left if it is negative. No interval of ranks has it.
    pub limit: Option<(i64, i64)>,
}

/// What the name of a command says of its options.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    /// What it goes by; `None` if options say so.
    pub(super) kind: Option<IntervalKind>,
    /// The order; `None` if an option says so.
    pub(super) is_reversed: Option<bool>,
    /// True if it may be asked for scores.
    pub(super) answers: bool,
}

impl<'a> Selection<'a> {
    /// What the two bounds and the options behind the key select, and whether scores are asked for.
    pub(super) fn parse(words: Words<'a>, dialect: Dialect) -> Result<(Self, bool), CommandError> {
        let [mut min, mut max, ref options @ ..] = *words else { return Err(CommandError::Syntax) };
        let Dialect { mut kind, mut is_reversed, answers } = dialect;
        let (mut limit, mut with_scores) = (None, false);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match options.as_slice() {
                _ if answers && is(option, "withscores") => with_scores = true,
                [offset, count, rest @ ..] if is(option, "limit") => {
                    limit = Some((integer(offset)?, integer(count)?));
                    options = rest.iter();
                }
                _ if dialect.is_reversed.is_none() && is_reversed.is_none() && is(option, "rev") => {
                    is_reversed = Some(true);
                }
                _ if kind.is_none() && is(option, "bylex") => kind = Some(IntervalKind::Members),
                _ if kind.is_none() && is(option, "byscore") => kind = Some(IntervalKind::Scores),
                _ => return Err(CommandError::Syntax),
            }
        }
        let (kind, is_reversed) = (kind.unwrap_or(IntervalKind::Ranks), is_reversed.unwrap_or(false));
        if kind == IntervalKind::Ranks {
            if limit.is_some_and(|(_, count)| count != -1) {
                return Err(CommandError::LimitOfRanks);
            }
            limit = None;
        } else if is_reversed {
            (min, max) = (max, min);
        }
        if with_scores && kind == IntervalKind::Members {
            return Err(CommandError::ScoresOfMembers);
        }
        Ok((Self { interval: Interval::parse(kind, min, max)?, is_reversed, limit }, with_scores))
    }

    /// The ranks of what it selects in a sorted set.
    pub(super) fn ranks(self, set: &SortedSet) -> Range<u64> {
        let Range { start, end } = self.interval.ranks(set, self.is_reversed);
        let Some((offset, count)) = self.limit else { return start..end };
        let skipped = u64::try_from(offset).unwrap_or(u64::MAX).min(end - start);
        let taken = u64::try_from(count).unwrap_or(u64::MAX).min(end - start - skipped);
        if self.is_reversed {
            end - skipped - taken..end - skipped
        } else {
            start + skipped..start + skipped + taken
        }
    }

    /// Visits what it selects in a sorted set, in its order.
    pub(super) fn try_each<'s, E>(
        self,
        set: &'s SortedSet,
        mut visit: impl FnMut((&'s [u8], Score)) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut members = set.range(self.ranks(set));
        if self.is_reversed { members.rev().try_for_each(visit) } else { members.try_for_each(&mut visit) }
    }
}

/// The bits of the options' byte.
mod option_bit {
    pub(super) const REVERSED: u8 = 1;
    pub(super) const LIMIT: u8 = 2;
}

impl<'a> Field<'a> for Selection<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, selection: Self) {
        let reversed = if selection.is_reversed { option_bit::REVERSED } else { 0 };
        let limit = if selection.limit.is_some() { option_bit::LIMIT } else { 0 };
        out.push(reversed | limit);
        Interval::put(out, selection.interval);
        if let Some((offset, count)) = selection.limit {
            Signed::put(out, offset);
            Signed::put(out, count);
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = take_u8(input)?;
        if options & !(option_bit::REVERSED | option_bit::LIMIT) != 0 {
            return Err(Malformed::Options(options));
        }
        let interval = Interval::take(input)?;
        let has_limit = options & option_bit::LIMIT != 0;
        if has_limit && interval.kind() == IntervalKind::Ranks {
            return Err(Malformed::Options(options));
        }
        let limit = if has_limit { Some((Signed::take(input)?, Signed::take(input)?)) } else { None };
        Ok(Self { interval, is_reversed: options & option_bit::REVERSED != 0, limit })
    }
}

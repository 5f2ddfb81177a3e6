//! Which members a command means: those of some ranks, of some scores, or between two members.

use crate::access::KeyEvent;
use crate::double::parse_bound;
use crate::encoding::{Field, Flag, Signed, Value};
use crate::error::CommandError;
use crate::families::ranks::ranks_of;
use crate::primitive::{Malformed, take_u8};
use crate::words::integer;
use core::ops::Range;
use syros_values::{Edge, Score, SortedSet};

/// Members that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval<'a> {
    /// Those from one index to another one, which is included; negative ones count from the end.
    Ranks {
        /// The first index.
        start: i64,
        /// The last index.
        stop: i64,
    },
    /// Those whose scores are not outside of two bounds.
    Scores {
        /// The lower bound.
        min: ScoreBound,
        /// The upper bound.
        max: ScoreBound,
    },
    /// Those that are not outside of two bounds. What it means is defined for sets of members that all have the same score;
    /// of others these are taken whose score is the lowest.
    Members {
        /// The lower bound.
        min: MemberBound<'a>,
        /// The upper bound.
        max: MemberBound<'a>,
    },
}

/// A bound of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreBound {
    /// The bound.
    pub score: Score,
    /// True if it lies outside itself.
    pub is_excluded: bool,
}

/// A bound of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberBound<'a> {
    /// `-`: below all members.
    Least,
    /// `+`: above all members.
    Greatest,
    /// `[`: the bound lies within.
    Included(&'a [u8]),
    /// `(`: the bound lies outside.
    Excluded(&'a [u8]),
}

/// How an interval is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntervalKind {
    Ranks,
    Scores,
    Members,
}

impl<'a> Interval<'a> {
    /// The event that its members have been removed.
    pub(super) const fn removed(&self) -> KeyEvent {
        match self {
            Self::Ranks { .. } => KeyEvent::ZRemRangeByRank,
            Self::Scores { .. } => KeyEvent::ZRemRangeByScore,
            Self::Members { .. } => KeyEvent::ZRemRangeByLex,
        }
    }

    pub(super) fn parse(kind: IntervalKind, min: &'a [u8], max: &'a [u8]) -> Result<Self, CommandError> {
        Ok(match kind {
            IntervalKind::Ranks => Self::Ranks { start: integer(min)?, stop: integer(max)? },
            IntervalKind::Scores => {
                Self::Scores { min: ScoreBound::parse(min)?, max: ScoreBound::parse(max)? }
            }
            IntervalKind::Members => {
                Self::Members { min: MemberBound::parse(min)?, max: MemberBound::parse(max)? }
            }
        })
    }

    pub(super) const fn kind(self) -> IntervalKind {
        match self {
            Self::Ranks { .. } => IntervalKind::Ranks,
            Self::Scores { .. } => IntervalKind::Scores,
            Self::Members { .. } => IntervalKind::Members,
        }
    }

    /// The ranks of its members in a sorted set. If `is_reversed`, indexes count from the other end.
    pub(super) fn ranks(self, set: &SortedSet, is_reversed: bool) -> Range<u64> {
        let (start, end) = match self {
            Self::Ranks { start, stop } => {
                let ranks = ranks_of(start, stop, set.len());
                return if is_reversed { set.len() - ranks.end..set.len() - ranks.start } else { ranks };
            }
            Self::Scores { min, max } => (
                set.count_before(if min.is_excluded {
                    Edge::After(min.score)
                } else {
                    Edge::Before(min.score)
                }),
                set.count_before(if max.is_excluded {
                    Edge::Before(max.score)
                } else {
                    Edge::After(max.score)
                }),
            ),
            Self::Members { min, max } => {
                let Some((_, score)) = set.nth(0) else { return 0..0 };
                (min.count_before(set, score, false), max.count_before(set, score, true))
            }
        };
        start.min(end)..end
    }
}

impl ScoreBound {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        let (number, is_excluded) = match word {
            [b'(', number @ ..] => (number, true),
            _ => (word, false),
        };
        let score = parse_bound(number).and_then(Score::new).ok_or(CommandError::BoundNotFloat)?;
        Ok(Self { score, is_excluded })
    }
}

impl<'a> MemberBound<'a> {
    fn parse(word: &'a [u8]) -> Result<Self, CommandError> {
        match word {
            b"-" => Ok(Self::Least),
            b"+" => Ok(Self::Greatest),
            [b'[', member @ ..] => Ok(Self::Included(member)),
            [b'(', member @ ..] => Ok(Self::Excluded(member)),
            _ => Err(CommandError::BoundNotMember),
        }
    }

    /// How many members of a score, and of lower ones, are below it; as an upper bound it is above itself if it lies within.
    fn count_before(self, set: &SortedSet, score: Score, is_upper: bool) -> u64 {
        match self {
            Self::Least => 0,
            Self::Greatest => set.len(),
            Self::Included(member) if is_upper => set.count_before(Edge::Behind(score, member)),
            Self::Included(member) => set.count_before(Edge::At(score, member)),
            Self::Excluded(member) if is_upper => set.count_before(Edge::At(score, member)),
            Self::Excluded(member) => set.count_before(Edge::Behind(score, member)),
        }
    }
}

/// What the first byte of an interval, and of a bound of members, says.
mod tag {
    pub(super) const RANKS: u8 = 0;
    pub(super) const SCORES: u8 = 1;
    pub(super) const MEMBERS: u8 = 2;

    pub(super) const LEAST: u8 = 0;
    pub(super) const GREATEST: u8 = 1;
    pub(super) const INCLUDED: u8 = 2;
    pub(super) const EXCLUDED: u8 = 3;
}

impl<'a> Field<'a> for Interval<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, interval: Self) {
        match interval {
            Interval::Ranks { start, stop } => {
                out.push(tag::RANKS);
                Signed::put(out, start);
                Signed::put(out, stop);
            }
            Interval::Scores { min, max } => {
                out.push(tag::SCORES);
                ScoreBound::put(out, min);
                ScoreBound::put(out, max);
            }
            Interval::Members { min, max } => {
                out.push(tag::MEMBERS);
                MemberBound::put(out, min);
                MemberBound::put(out, max);
            }
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            tag::RANKS => Self::Ranks { start: Signed::take(input)?, stop: Signed::take(input)? },
            tag::SCORES => Self::Scores { min: ScoreBound::take(input)?, max: ScoreBound::take(input)? },
            tag::MEMBERS => Self::Members { min: MemberBound::take(input)?, max: MemberBound::take(input)? },
            other => return Err(Malformed::Options(other)),
        })
    }
}

impl<'a> Field<'a> for ScoreBound {
    type Content = Self;

    fn put(out: &mut Vec<u8>, bound: Self) {
        Flag::put(out, bound.is_excluded);
        Score::put(out, bound.score);
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let is_excluded = Flag::take(input)?;
        Ok(Self { score: Score::take(input)?, is_excluded })
    }
}

impl<'a> Field<'a> for MemberBound<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, bound: Self) {
        match bound {
            MemberBound::Least => out.push(tag::LEAST),
            MemberBound::Greatest => out.push(tag::GREATEST),
            MemberBound::Included(member) => {
                out.push(tag::INCLUDED);
                Value::put(out, member);
            }
            MemberBound::Excluded(member) => {
                out.push(tag::EXCLUDED);
                Value::put(out, member);
            }
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            tag::LEAST => Self::Least,
            tag::GREATEST => Self::Greatest,
            tag::INCLUDED => Self::Included(Value::take(input)?),
            tag::EXCLUDED => Self::Excluded(Value::take(input)?),
            other => return Err(Malformed::Options(other)),
        })
    }
}

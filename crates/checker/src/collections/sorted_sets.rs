//! Sorted sets: members with scores, which are integers here.

use super::{Elements, Operation};
pub use crate::output::Scores;
use crate::output::{Output, Text, count};
use crate::value::Content;
use std::fmt;

impl From<Scores> for Content {
    fn from(scores: Scores) -> Self {
        Self::SortedSet(scores)
    }
}

impl Elements for Scores {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::SortedSet(scores) = content { Some(scores) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An operation on a sorted set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SortedSetOperation {
    /// Reads all members with their scores, the lowest first (ZRANGE 0 -1 WITHSCORES). Answer: [`Output::Values`], in which
    /// members and scores alternate.
    All,
    /// Counts the members (ZCARD). Answer: [`Output::Number`].
    Length,
    /// Reads the score of a member (ZSCORE). Answer: [`Output::Value`].
    Score(Vec<u8>),
    /// Gives members scores (ZADD). Answer: [`Output::Number`], how many of the members are new.
    Add(Vec<(i64, Vec<u8>)>),
    /// Adds to the score of a member (ZINCRBY). Answer: [`Output::Value`], the sum.
    Increment(i64, Vec<u8>),
    /// Removes members (ZREM). Answer: [`Output::Number`], how many there were.
    Remove(Vec<Vec<u8>>),
    /// Removes the member with the lowest score (ZPOPMIN). Answer: [`Output::Values`], the member and its score, if there is
    /// one.
    PopMin,
}

impl Operation for SortedSetOperation {
    type Elements = Scores;

    fn is_read(&self) -> bool {
        matches!(self, Self::All | Self::Length | Self::Score(_))
    }

    fn admits(&self, output: &Output) -> bool {
        matches!(
            (self, output),
            (Self::All | Self::PopMin, Output::Values(_))
                | (Self::Length | Self::Add(_) | Self::Remove(_), Output::Number(_))
                | (Self::Score(_) | Self::Increment(..), Output::Value(_))
        )
    }

    fn is_inert(&self, told: &Output) -> bool {
        match (self, told) {
            (Self::Remove(_), Output::Number(number)) => *number == 0,
            (Self::PopMin, Output::Values(values)) => values.is_empty(),
            _ => false,
        }
    }

    fn may_remove(&self) -> bool {
        matches!(self, Self::Remove(_) | Self::PopMin)
    }

    fn apply(&self, Scores(scores): &mut Scores) -> Output {
        let text = |score: i64| Some(score.to_string().into_bytes());
        match self {
            Self::All => {
                let mut members: Vec<(&i64, &Vec<u8>)> =
                    scores.iter().map(|(member, score)| (score, member)).collect();
                members.sort_unstable();
                let pairs =
                    members.into_iter().flat_map(|(score, member)| [Some(member.clone()), text(*score)]);
                Output::Values(pairs.collect())
            }
            Self::Length => count(scores.len()),
            Self::Score(member) => Output::Value(scores.get(member).copied().and_then(text)),
            Self::Add(pairs) => {
                let before = scores.len();
                scores.extend(pairs.iter().map(|(score, member)| (member.clone(), *score)));
                count(scores.len() - before)
            }
            Self::Increment(delta, member) => {
                let score = scores.entry(member.clone()).or_default();
                *score += delta;
                Output::Value(text(*score))
            }
            Self::Remove(members) => {
                count(members.iter().filter(|member| scores.remove(*member).is_some()).count())
            }
            Self::PopMin => {
                let first = scores.iter().map(|(member, score)| (*score, member.clone())).min();
                let Some((score, member)) = first else { return Output::Values(Vec::new()) };
                scores.remove(&member);
                Output::Values(vec![Some(member), text(score)])
            }
        }
    }
}

impl fmt::Display for SortedSetOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("get all members with scores"),
            Self::Length => f.write_str("count members"),
            Self::Score(member) => write!(f, "get score of {}", Text(member)),
            Self::Add(pairs) => {
                f.write_str("set scores")?;
                pairs.iter().try_for_each(|(score, member)| write!(f, " {} {score}", Text(member)))
            }
            Self::Increment(delta, member) => write!(f, "increment score of {} {delta}", Text(member)),
            Self::Remove(members) => {
                f.write_str("remove members")?;
                members.iter().try_for_each(|member| write!(f, " {}", Text(member)))
            }
            Self::PopMin => f.write_str("pop the lowest score"),
        }
    }
}

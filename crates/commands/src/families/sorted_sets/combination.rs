//! What several sorted sets are together: their union, what they have in common, and what only the first of them has.

use super::score::parse_score;
use crate::access::{EntryRef, KeyEvent, Keys};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Field, List};
use crate::error::{CommandError, ExecutionError};
use crate::families::counts::take_keys;
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, integer, is};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use syros_values::{Score, Set, SortedSet};

/// What is made of several sorted sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination<'a> {
    /// How they are combined.
    pub operation: SetOperation,
    /// Their keys. A set is a sorted set whose members have score 1.
    pub keys: Arguments<'a>,
    /// WEIGHTS: what the scores of each are multiplied by; as many as there are keys.
    pub weights: Option<Arguments<'a>>,
    /// AGGREGATE: what becomes of the scores of a member that several of them have.
    pub aggregate: Aggregate,
}

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// Members that any of them has.
    Union = 0,
    /// Members that all of them have.
    Intersection = 1,
    /// Members that the first of them has, and no other one.
    Difference = 2,
}

/// What becomes of several scores of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum; 0 if that is no number.
    Sum = 0,
    /// The lowest.
    Min = 1,
    /// The highest.
    Max = 2,
}

/// The bits of the options' byte.
mod option_bit {
    pub(super) const OPERATION: u8 = 3;
    pub(super) const AGGREGATE: u8 = 3 << AGGREGATE_SHIFT;
    pub(super) const AGGREGATE_SHIFT: u8 = 2;
    pub(super) const WEIGHTS: u8 = 1 << 4;
}

impl<'a> Combination<'a> {
    /// The event that what comes of it has been stored.
    pub(super) const fn stored(&self) -> KeyEvent {
        match self.operation {
            SetOperation::Union => KeyEvent::ZUnionStore,
            SetOperation::Intersection => KeyEvent::ZInterStore,
            SetOperation::Difference => KeyEvent::ZDiffStore,
        }
    }

    /// What the words from the number of keys on combine by this operation. `takes_other` knows options that stand alone, and
    /// takes those that it knows.
    pub(super) fn parse(
        operation: SetOperation,
        name: &'static str,
        words: Words<'a>,
        mut takes_other: impl FnMut(&[u8]) -> bool,
    ) -> Result<Self, CommandError> {
        let (keys, mut options) = parse_keys(name, words)?;
        let mut combination = Self { operation, keys, weights: None, aggregate: Aggregate::Sum };
        let has_scores = operation != SetOperation::Difference;
        while let [option, rest @ ..] = options {
            options = match rest {
                _ if has_scores && is(option, "weights") && rest.len() >= keys.len() => {
                    let (weights, rest) = rest.split_at(keys.len());
                    check_weights(weights)?;
                    combination.weights = Some(Arguments::new(weights));
                    rest
                }
                [aggregate, rest @ ..] if has_scores && is(option, "aggregate") => {
                    combination.aggregate = Aggregate::parse(aggregate)?;
                    rest
                }
                _ if takes_other(option) => rest,
                _ => return Err(CommandError::Syntax),
            };
        }
        Ok(combination)
    }

    /// The members that the combination of these sources has, in the order of a sorted set.
    pub(super) fn members<'s>(&self, sources: &'s Sources) -> Result<Vec<(&'s [u8], Score)>, ExecutionError> {
        let weighted = self.weighted(sources)?;
        let mut members: Vec<(&[u8], Score)> = match self.operation {
            SetOperation::Union => self.union(&weighted),
            SetOperation::Intersection => self.intersection(&weighted),
            SetOperation::Difference => sources.difference().collect(),
        };
        members.sort_unstable_by_key(|(member, score)| (*score, *member));
        Ok(members)
    }

    /// The sources with their weights, those with few members first: sums of floating point depend on the order.
    fn weighted<'s>(&self, sources: &'s Sources) -> Result<Vec<(&'s Source, f64)>, ExecutionError> {
        let mut weighted: Vec<(&Source, f64)> = sources.0.iter().map(|source| (source, 1.0)).collect();
        let weights = self.weights.iter().flat_map(Arguments::iter);
        for ((_, weight), word) in weighted.iter_mut().zip(weights) {
            *weight = parse_score(word).map_err(|_| ExecutionError::NotFloat)?.value();
        }
        weighted.sort_by_key(|(source, _)| source.len());
        Ok(weighted)
    }

    fn union<'s>(&self, sources: &[(&'s Source, f64)]) -> Vec<(&'s [u8], Score)> {
        let mut totals: HashMap<&[u8], f64> = HashMap::new();
        for (source, weight) in sources {
            for (member, score) in source.iter() {
                let score = or_zero(score.value() * weight);
                match totals.entry(member) {
                    Entry::Vacant(entry) => drop(entry.insert(score)),
                    Entry::Occupied(mut entry) => *entry.get_mut() = self.aggregate.of(*entry.get(), score),
                }
            }
        }
        totals.into_iter().map(|(member, total)| (member, score_of(total))).collect()
    }

    fn intersection<'s>(&self, sources: &[(&'s Source, f64)]) -> Vec<(&'s [u8], Score)> {
        let Some(((first, weight), others)) = sources.split_first() else { return Vec::new() };
        let in_all = first.iter().filter_map(|(member, score)| {
            let total = or_zero(score.value() * weight);
            let total = others.iter().try_fold(total, |total, (source, weight)| {
                Some(self.aggregate.of(total, source.score(member)?.value() * weight))
            });
            total.map(|total| (member, score_of(total)))
        });
        in_all.collect()
    }
}

fn check_weights(weights: Words<'_>) -> Result<(), CommandError> {
    let is_number = |weight: &&[u8]| parse_score(weight).is_ok();
    if weights.iter().all(is_number) { Ok(()) } else { Err(CommandError::WeightNotFloat) }
}

/// The number of keys and the keys, and the words behind them.
pub(super) fn parse_keys<'a>(
    name: &'static str,
    words: Words<'a>,
) -> Result<(Arguments<'a>, Words<'a>), CommandError> {
    let (count, rest) = words.split_first().ok_or(CommandError::Syntax)?;
    let count = u64::try_from(integer(count)?).unwrap_or(0);
    if count == 0 {
        return Err(CommandError::NoSource(name));
    }
    take_keys(rest, count)
}

/// The collections of several keys, in the order of the keys.
pub(super) struct Sources(Vec<Source>);

/// The value of a key, if it is one that has members.
enum Source {
    SortedSet(SortedSet),
    /// All members have this score.
    Set(Set),
}

/// The score of the members of sets.
const SET_SCORE: Score = score_of(1.0);

impl Sources {
    /// The collections of these keys.
    pub(super) fn of<K: Keys>(keys: &K, names: Arguments<'_>) -> Result<Self, ExecutionError> {
        let sources = names.iter().map(|name| match keys.get(name) {
            None => Ok(Source::SortedSet(SortedSet::default())),
            Some(found) => Ok(match found.collection::<SortedSet>() {
                Ok(set) => Source::SortedSet(set.clone()),
                Err(_) => Source::Set(found.collection::<Set>()?.clone()),
            }),
        });
        sources.collect::<Result<_, _>>().map(Self)
    }

    /// The members that all have.
    pub(super) fn common(&self) -> impl Iterator<Item = &[u8]> {
        let smallest = self.0.iter().min_by_key(|source| source.len());
        let members = smallest.into_iter().flat_map(Source::iter).map(|(member, _)| member);
        members.filter(|member| self.0.iter().all(|source| source.score(member).is_some()))
    }

    /// The members that the first one has, and no other.
    fn difference(&self) -> impl Iterator<Item = (&[u8], Score)> {
        let (first, others) = self.0.split_at(1.min(self.0.len()));
        let members = first.iter().flat_map(Source::iter);
        members.filter(|(member, _)| others.iter().all(|source| source.score(member).is_none()))
    }
}

impl Source {
    fn len(&self) -> u64 {
        match self {
            Self::SortedSet(set) => set.len(),
            Self::Set(set) => set.len(),
        }
    }

    fn score(&self, member: &[u8]) -> Option<Score> {
        match self {
            Self::SortedSet(set) => set.score(member),
            Self::Set(set) => set.contains(member).then_some(SET_SCORE),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Score)> {
        let (sorted, plain) = match self {
            Self::SortedSet(set) => (Some(set), None),
            Self::Set(set) => (None, Some(set)),
        };
        let plain = plain.into_iter().flat_map(Set::iter).map(|member| (member, SET_SCORE));
        sorted.into_iter().flat_map(SortedSet::iter).chain(plain)
    }
}

impl Aggregate {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        match word {
            word if is(word, "sum") => Ok(Self::Sum),
            word if is(word, "min") => Ok(Self::Min),
            word if is(word, "max") => Ok(Self::Max),
            _ => Err(CommandError::Syntax),
        }
    }

    fn of(self, total: f64, score: f64) -> f64 {
        match self {
            Self::Sum => or_zero(total + score),
            Self::Min if score < total => score,
            Self::Max if score > total => score,
            Self::Min | Self::Max => total,
        }
    }
}

/// What is no number counts as zero.
const fn or_zero(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

/// The score of this value.
const fn score_of(number: f64) -> Score {
    match Score::new(number) {
        Some(score) => score,
        None => panic!("or_zero leaves numbers only"),
    }
}

impl<'a> Field<'a> for Combination<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, combination: Self) {
        let weights = if combination.weights.is_some() { option_bit::WEIGHTS } else { 0 };
        let aggregate = (combination.aggregate as u8) << option_bit::AGGREGATE_SHIFT;
        out.push(combination.operation as u8 | aggregate | weights);
        List::<1>::put(out, combination.keys);
        combination.weights.into_iter().for_each(|weights| Elements::<1>::put(out, weights));
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = take_u8(input)?;
        let has_scores = options & option_bit::OPERATION != SetOperation::Difference as u8;
        let operation = match options & option_bit::OPERATION {
            0 => SetOperation::Union,
            1 => SetOperation::Intersection,
            2 => SetOperation::Difference,
            _ => return Err(Malformed::Options(options)),
        };
        let aggregate = match (options & option_bit::AGGREGATE) >> option_bit::AGGREGATE_SHIFT {
            0 => Aggregate::Sum,
            1 => Aggregate::Min,
            2 => Aggregate::Max,
            _ => return Err(Malformed::Options(options)),
        };
        if options >= option_bit::WEIGHTS << 1 || (!has_scores && options > option_bit::OPERATION) {
            return Err(Malformed::Options(options));
        }
        let keys = List::<1>::take(input)?;
        if options & option_bit::WEIGHTS == 0 {
            return Ok(Self { operation, keys, weights: None, aggregate });
        }
        let weights = Elements::<1>::take(input)?;
        let count = weights.len();
        if count == keys.len() {
            Ok(Self { operation, keys, weights: Some(weights), aggregate })
        } else {
            Err(Malformed::Count(count as u64))
        }
    }
}

//! Sorted sets of the twin.

use super::{Content, Twin, error};
use std::collections::BTreeMap;
use syros_commands::families::{
    Aggregate, Combination, Draws, Interval, MemberBound, ScanOptions, ScoreCondition, ScoreEnd, Selection,
    SetOperation, ZAdd, ZCard, ZCombineParts, ZCombineStoreParts, ZCountParts, ZIncrBy, ZInterCard, ZMPop,
    ZMScore, ZPop, ZRandMember, ZRangeParts, ZRangeStoreParts, ZRank, ZRem, ZRemRangeParts, ZScan, ZScore,
};
use syros_commands::{Command, Double, Reply, glob_matches, parse_double, write_double};
use syros_types::{key_hash, mix};

/// Scores and members in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    elements: Vec<(f64, Vec<u8>)>,
    /// It has once had more or longer members than a small one may.
    is_large: bool,
}

impl Members {
    pub(super) const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        self.elements.iter().map(|(_, member)| member.clone()).collect()
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.elements.iter().find(|(_, other)| other == member).map(|(score, _)| *score)
    }

    fn set(&mut self, member: &[u8], score: f64) {
        if self.score(member) == Some(score) {
            return;
        }
        self.elements.retain(|(_, other)| other != member);
        self.is_large |= self.elements.len() >= 128 || member.len() > 64;
        // A small one makes zero of minus zero.
        let score = if self.is_large { score } else { score + 0.0 };
        self.elements.push((score, member.to_vec()));
        self.elements.sort_by(|left, right| left.partial_cmp(right).expect("scores are numbers"));
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x402 } else { 0x401 });
        for (score, member) in &self.elements {
            hash = mix(hash ^ mix(key_hash(member) ^ mix(key_hash(&score.to_le_bytes()))));
        }
        mix(hash ^ self.elements.len() as u64)
    }

    /// The elements of an interval, from the front or from the back.
    fn within(&self, interval: Interval<'_>, is_reversed: bool) -> Vec<(f64, Vec<u8>)> {
        let lowest = self.elements.first().map_or(0.0, |(score, _)| *score);
        let length = self.elements.len() as i128;
        let place = |index: i64| if index < 0 { length + i128::from(index) } else { i128::from(index) };
        let is_inside = |rank: i128, (score, member): &(f64, Vec<u8>)| match interval {
            Interval::Ranks { start, stop } => place(start) <= rank && rank <= place(stop),
            Interval::Scores { min, max } => {
                let (low, high) = (min.score.value(), max.score.value());
                (low < *score || (low == *score && !min.is_excluded))
                    && (*score < high || (high == *score && !max.is_excluded))
            }
            Interval::Members { min, max } => {
                let own = (*score, &member[..]);
                let is_above = match min {
                    MemberBound::Least => true,
                    MemberBound::Greatest => false,
                    MemberBound::Included(bound) => own >= (lowest, bound),
                    MemberBound::Excluded(bound) => own > (lowest, bound),
                };
                is_above
                    && match max {
                        MemberBound::Least => false,
                        MemberBound::Greatest => true,
                        MemberBound::Included(bound) => own <= (lowest, bound),
                        MemberBound::Excluded(bound) => own < (lowest, bound),
                    }
            }
        };
        let mut elements = self.elements.clone();
        if is_reversed {
            elements.reverse();
        }
        let ranked = (0..).zip(elements).filter(|(rank, element)| is_inside(*rank, element));
        ranked.map(|(_, element)| element).collect()
    }

    fn selected(&self, selection: Selection<'_>) -> Vec<(f64, Vec<u8>)> {
        let mut elements = self.within(selection.interval, selection.is_reversed);
        if let Some((offset, count)) = selection.limit {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            elements = elements.into_iter().skip(offset).take(count).collect();
        }
        elements
    }
}

/// The keys that have to be sorted sets, or not to exist.
pub(super) fn keys_of_sorted_sets<'a>(command: &Command<'a>) -> Vec<&'a [u8]> {
    match *command {
        Command::ZScore(ZScore { key, .. })
        | Command::ZMScore(ZMScore { key, .. })
        | Command::ZCard(ZCard { key })
        | Command::ZRank(ZRank { key, .. })
        | Command::ZRandMember(ZRandMember { key, .. })
        | Command::ZScan(ZScan { key, .. })
        | Command::ZAdd(ZAdd { key, .. })
        | Command::ZIncrBy(ZIncrBy { key, .. })
        | Command::ZRem(ZRem { key, .. })
        | Command::ZPop(ZPop { key, .. }) => vec![key],
        Command::ZCount(count) => vec![count.get().key],
        Command::ZRange(range) => vec![range.get().key],
        Command::ZRemRange(range) => vec![range.get().key],
        Command::ZRangeStore(range) => vec![range.get().source],
        Command::ZCombine(combination) => combination.get().combination.keys.iter().collect(),
        Command::ZCombineStore(combination) => combination.get().combination.keys.iter().collect(),
        Command::ZInterCard(ZInterCard { keys, .. }) => keys.iter().collect(),
        _ => Vec::new(),
    }
}

fn double(value: f64) -> Reply {
    Reply::Double(Double::new(value))
}

/// Members, and their scores if they are asked for.
fn shown(elements: Vec<(f64, Vec<u8>)>, with_scores: bool) -> Reply {
    if with_scores {
        Reply::Pairs(
            elements.into_iter().map(|(score, member)| (Reply::Bulk(member), double(score))).collect(),
        )
    } else {
        Reply::Array(elements.into_iter().map(|(_, member)| Reply::Bulk(member)).collect())
    }
}

/// Zero for what is no number.
const fn number(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

impl Twin {
    /// Reads of sorted sets. ZRANDMEMBER and ZSCAN answer what HRANDFIELD and HSCAN do.
    pub(super) fn read_sorted_set(&self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::ZScore(ZScore { key, member }) => self.score(key, member),
            Command::ZMScore(ZMScore { key, members }) => {
                Reply::Array(members.iter().map(|member| self.score(key, member)).collect())
            }
            Command::ZCard(ZCard { key }) => Reply::Integer(self.sorted_members(key).elements.len() as i64),
            Command::ZCount(count) => {
                let ZCountParts { key, interval } = count.get();
                Reply::Integer(self.sorted_members(key).within(interval, false).len() as i64)
            }
            Command::ZRank(ZRank { key, member, is_reversed, with_score }) => {
                let mut elements = self.sorted_members(key).elements;
                if is_reversed {
                    elements.reverse();
                }
                let rank = elements.iter().position(|(_, other)| other == member);
                match rank {
                    Some(rank) if with_score => {
                        Reply::Array(vec![Reply::Integer(rank as i64), double(elements[rank].0)])
                    }
                    Some(rank) => Reply::Integer(rank as i64),
                    None if with_score => Reply::NilArray,
                    None => Reply::Nil,
                }
            }
            Command::ZRange(range) => {
                let ZRangeParts { key, selection, with_scores } = range.get();
                let exists = self.keys.contains_key(key);
                shown(self.sorted_members(key).selected(selection), with_scores && exists)
            }
            Command::ZCombine(combination) => {
                let ZCombineParts { combination, with_scores } = combination.get();
                shown(self.combined_by_score(combination), with_scores)
            }
            Command::ZInterCard(ZInterCard { keys, limit }) => {
                let combination = Combination {
                    operation: SetOperation::Intersection,
                    keys,
                    weights: None,
                    aggregate: Aggregate::Sum,
                };
                let count = self.combined_by_score(combination).len() as u64;
                Reply::Integer(if limit == 0 { count } else { count.min(limit) } as i64)
            }
            Command::ZRandMember(ZRandMember { key, draws }) => {
                let length = self.sorted_members(key).elements.len() as i64;
                match draws {
                    Draws::One if length == 0 => Reply::Nil,
                    Draws::One => Reply::Integer(1),
                    Draws::Many { .. } if length == 0 => Reply::Integer(0),
                    Draws::Many { count, .. } => {
                        Reply::Integer(if count < 0 { -count } else { count.min(length) })
                    }
                }
            }
            Command::ZScan(ZScan { key, cursor, options }) => self.scan_members(key, cursor, options),
            _ => return None,
        })
    }

    fn scan_members(&self, key: &[u8], cursor: u64, options: ScanOptions<'_>) -> Reply {
        let Members { mut elements, is_large } = self.sorted_members(key);
        let pattern = match options {
            _ if elements.is_empty() => b"*",
            ScanOptions::Syntax => return error("ERR syntax error"),
            ScanOptions::NotInteger => return error("ERR value is not an integer or out of range"),
            ScanOptions::Valid { count, .. } if is_large && (cursor > 0 || count <= 1000) => {
                return Reply::Nil;
            }
            ScanOptions::Valid { pattern, .. } => pattern.unwrap_or(b"*"),
        };
        if is_large {
            elements.sort_by_key(|(_, member)| (key_hash(member), member.clone()));
        }
        let matching = elements.into_iter().filter(|(_, member)| glob_matches(pattern, member));
        let found = matching.flat_map(|(score, member)| {
            let mut text = Vec::new();
            let is_integer = !is_large && score.abs() <= 2_f64.powi(62) && score.fract() == 0.0;
            if is_integer {
                text = (score as i64).to_string().into_bytes();
            } else {
                write_double(&mut text, score);
            }
            [Reply::Bulk(member), Reply::Bulk(text)]
        });
        Reply::Array(vec![Reply::Bulk(b"0".to_vec()), Reply::Array(found.collect())])
    }

    /// Updates of sorted sets.
    pub(super) fn update_sorted_set(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::ZAdd(ZAdd { key, condition, counts_changes, members }) => {
                let (mut added, mut changed) = (0, 0);
                for (score, member) in members.pairs() {
                    let score = parse_double(score).expect("it has been checked");
                    let old = self.sorted_members(key).score(member);
                    if self.add_if(key, condition, member, score) {
                        added += i64::from(old.is_none());
                        changed += i64::from(old.is_some_and(|old| old != score));
                    }
                }
                Reply::Integer(if counts_changes { added + changed } else { added })
            }
            Command::ZIncrBy(ZIncrBy { key, condition, increment, member }) => {
                let old = self.sorted_members(key).score(member);
                if condition == ScoreCondition::IfNew && old.is_some() {
                    return Some(Reply::Nil);
                }
                let sum = old.map_or(increment.value(), |old| old + increment.value());
                if sum.is_nan() {
                    return Some(error("ERR resulting score is not a number (NaN)"));
                }
                if self.add_if(key, condition, member, sum) { double(sum) } else { Reply::Nil }
            }
            Command::ZRem(ZRem { key, members: names }) => {
                self.retain_members(key, |member| names.iter().all(|name| name != member))
            }
            Command::ZRemRange(range) => {
                let ZRemRangeParts { key, interval } = range.get();
                let removed = self.sorted_members(key).within(interval, false);
                self.retain_members(key, |member| removed.iter().all(|(_, other)| other != member))
            }
            Command::ZPop(ZPop { key, end, count }) => {
                let popped = self.pop_members(key, end, count.unwrap_or(1));
                match (count, &popped[..]) {
                    (None, [(score, member)]) => {
                        Reply::Array(vec![Reply::Bulk(member.clone()), double(*score)])
                    }
                    (None, _) => Reply::Array(Vec::new()),
                    _ => shown(popped, true),
                }
            }
            Command::ZMPop(ZMPop { keys, end, count }) => self.pop_first_of(keys.iter(), end, count),
            Command::ZRangeStore(range) => {
                let ZRangeStoreParts { target, source, selection } = range.get();
                self.store_members(target, &self.sorted_members(source).selected(selection))
            }
            Command::ZCombineStore(combination) => {
                let ZCombineStoreParts { target, combination } = combination.get();
                self.store_members(target, &self.combined_by_score(combination))
            }
            _ => return None,
        })
    }

    fn sorted_members(&self, key: &[u8]) -> Members {
        match self.keys.get(key) {
            Some((Content::SortedSet(members), _)) => members.clone(),
            _ => Members::default(),
        }
    }

    /// A source of ZUNION and its like: the members of a plain set have score 1.
    fn source(&self, key: &[u8]) -> Members {
        match self.keys.get(key) {
            Some((Content::Set(set), _)) => Members {
                elements: set.members.iter().map(|member| (1.0, member.clone())).collect(),
                is_large: false,
            },
            _ => self.sorted_members(key),
        }
    }

    fn score(&self, key: &[u8], member: &[u8]) -> Reply {
        self.sorted_members(key).score(member).map_or(Reply::Nil, double)
    }

    fn insert_sorted_members(&mut self, key: &[u8], members: Members) {
        let expiry = self.expiry(key);
        self.keys.insert(key.to_vec(), (Content::SortedSet(members), expiry));
    }

    /// True unless the condition forbids it.
    fn add_if(&mut self, key: &[u8], condition: ScoreCondition, member: &[u8], score: f64) -> bool {
        use ScoreCondition as C;
        let mut members = self.sorted_members(key);
        let is_allowed = match (condition, members.score(member)) {
            (C::Always, _) | (C::IfNew | C::IfGreater | C::IfLess, None) | (C::IfOld, Some(_)) => true,
            (C::IfOld | C::IfOldAndGreater | C::IfOldAndLess, None) | (C::IfNew, Some(_)) => false,
            (C::IfGreater | C::IfOldAndGreater, Some(old)) => score > old,
            (C::IfLess | C::IfOldAndLess, Some(old)) => score < old,
        };
        if is_allowed {
            members.set(member, score);
            self.insert_sorted_members(key, members);
        }
        is_allowed
    }

    /// Keeps members, and answers how many it does not keep.
    fn retain_members(&mut self, key: &[u8], keep: impl Fn(&[u8]) -> bool) -> Reply {
        let mut members = self.sorted_members(key);
        let before = members.elements.len();
        members.elements.retain(|(_, member)| keep(member));
        let removed = before - members.elements.len();
        self.insert_sorted_members(key, members);
        Reply::Integer(removed as i64)
    }

    fn pop_members(&mut self, key: &[u8], end: ScoreEnd, count: u64) -> Vec<(f64, Vec<u8>)> {
        let mut popped = self.sorted_members(key).elements;
        if end == ScoreEnd::Max {
            popped.reverse();
        }
        popped.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        self.retain_members(key, |member| popped.iter().all(|(_, other)| other != member));
        popped
    }

    fn pop_first_of<'a>(
        &mut self,
        mut keys: impl Iterator<Item = &'a [u8]>,
        end: ScoreEnd,
        count: u64,
    ) -> Reply {
        let Some(key) = keys.find(|key| self.keys.contains_key(*key)) else { return Reply::NilArray };
        if self.type_of(key) != "zset" {
            return error("WRONGTYPE Operation against a key holding the wrong kind of value");
        }
        let popped = self.pop_members(key, end, count).into_iter();
        let popped = popped.map(|(score, member)| Reply::Array(vec![Reply::Bulk(member), double(score)]));
        Reply::Array(vec![Reply::Bulk(key.to_vec()), Reply::Array(popped.collect())])
    }

    fn store_members(&mut self, key: &[u8], elements: &[(f64, Vec<u8>)]) -> Reply {
        let is_large = elements.len() > 128 || elements.iter().any(|(_, member)| member.len() > 64);
        let mut members = Members { elements: Vec::new(), is_large };
        elements.iter().for_each(|(score, member)| members.set(member, *score));
        self.keys.insert(key.to_vec(), (Content::SortedSet(members), None));
        Reply::Integer(elements.len() as i64)
    }

    /// What a combination has, in order.
    fn combined_by_score(&self, combination: Combination<'_>) -> Vec<(f64, Vec<u8>)> {
        let Combination { operation, keys, weights, aggregate } = combination;
        let mut sources: Vec<(Members, f64)> = keys.iter().map(|key| (self.source(key), 1.0)).collect();
        for (source, weight) in sources.iter_mut().zip(weights.into_iter().flatten()) {
            source.1 = parse_double(weight).expect("it has been checked");
        }
        if operation == SetOperation::Difference {
            let (mut first, others) = (sources[0].0.elements.clone(), &sources[1..]);
            first.retain(|(_, member)| others.iter().all(|(other, _)| other.score(member).is_none()));
            // Those of a plain set are in no order.
            first.sort_by(|left, right| left.partial_cmp(right).expect("scores are numbers"));
            return first;
        }
        sources.sort_by_key(|(members, _)| members.elements.len());
        // Scores of each member in the order of the sources.
        let mut scores: BTreeMap<Vec<u8>, Vec<f64>> = BTreeMap::new();
        for (members, weight) in &sources {
            for (score, member) in &members.elements {
                scores.entry(member.clone()).or_default().push(score * weight);
            }
        }
        if operation == SetOperation::Intersection {
            scores.retain(|_, scores| scores.len() == sources.len());
        }
        let totals =
            scores.into_iter().map(|(member, scores)| (total(&scores, operation, aggregate), member));
        let mut totals: Vec<(f64, Vec<u8>)> = totals.collect();
        totals.sort_by(|left, right| left.partial_cmp(right).expect("totals are numbers"));
        totals
    }
}

/// What becomes of the scores of a member. In an intersection only the first of them is made a number, and comparisons
/// pass over the others that are none.
fn total(scores: &[f64], operation: SetOperation, aggregate: Aggregate) -> f64 {
    let mut total = number(scores[0]);
    for score in &scores[1..] {
        let score = if operation == SetOperation::Union { number(*score) } else { *score };
        total = match aggregate {
            Aggregate::Sum => number(total + score),
            Aggregate::Min => {
                if score < total {
                    score
                } else {
                    total
                }
            }
            Aggregate::Max => {
                if score > total {
                    score
                } else {
                    total
                }
            }
        };
    }
    total
}

//! Lists, sets and sorted sets the obvious way, and operations on them, made up.

use super::{small_input as small_text_input, string, transfers};
use syros_checker::collections::{CollectionOperation, End, ListOperation, SetOperation, SortedSetOperation};
use syros_checker::history::{Input, Output};
use syros_types::Prng;

/// A collection that is no hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Other {
    List(Vec<String>),
    Set(Vec<String>),
    SortedSet(Vec<(String, i64)>),
}

impl Other {
    /// What an operation finds where there is nothing; `None` if it is on a hash.
    pub(super) fn empty(operation: &CollectionOperation) -> Option<Self> {
        match operation {
            CollectionOperation::Hash(_) => None,
            CollectionOperation::List(_) => Some(Self::List(Vec::new())),
            CollectionOperation::Set(_) => Some(Self::Set(Vec::new())),
            CollectionOperation::SortedSet(_) => Some(Self::SortedSet(Vec::new())),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::List(all) | Self::Set(all) => all.is_empty(),
            Self::SortedSet(all) => all.is_empty(),
        }
    }

    pub(super) fn execute(&mut self, operation: &CollectionOperation) -> Output {
        match (self, operation) {
            (Self::List(list), CollectionOperation::List(operation)) => on_list(list, operation),
            (Self::Set(set), CollectionOperation::Set(operation)) => on_set(set, operation),
            (Self::SortedSet(set), CollectionOperation::SortedSet(operation)) => {
                on_sorted_set(set, operation)
            }
            _ => Output::WrongType,
        }
    }
}

fn bytes(text: &impl ToString) -> Option<Vec<u8>> {
    Some(text.to_string().into_bytes())
}

fn on_list(list: &mut Vec<String>, operation: &ListOperation) -> Output {
    match operation {
        ListOperation::All => Output::Values(list.iter().map(bytes).collect()),
        ListOperation::Length => Output::Number(list.len() as i64),
        ListOperation::Push(end, values) => {
            for value in values {
                match end {
                    End::Left => list.insert(0, string(value)),
                    End::Right => list.push(string(value)),
                }
            }
            Output::Number(list.len() as i64)
        }
        ListOperation::Pop(_) | ListOperation::Rotate(_) if list.is_empty() => Output::Value(None),
        ListOperation::PopSome(end, count) => {
            let count = (*count).min(list.len());
            let mut taken: Vec<String> = match end {
                End::Left => list.drain(..count).collect(),
                End::Right => list.drain(list.len() - count..).collect(),
            };
            if *end == End::Right {
                taken.reverse();
            }
            Output::Values(taken.iter().map(bytes).collect())
        }
        ListOperation::Pop(End::Left) => Output::Value(bytes(&list.remove(0))),
        ListOperation::Pop(End::Right) => Output::Value(bytes(&list.remove(list.len() - 1))),
        ListOperation::Rotate(End::Left) => {
            list.rotate_left(1);
            Output::Value(bytes(&list[list.len() - 1]))
        }
        ListOperation::Rotate(End::Right) => {
            list.rotate_right(1);
            Output::Value(bytes(&list[0]))
        }
    }
}

fn on_set(set: &mut Vec<String>, operation: &SetOperation) -> Output {
    match operation {
        SetOperation::All => Output::Values(set.iter().map(bytes).collect()),
        SetOperation::Length => Output::Number(set.len() as i64),
        SetOperation::Contains(member) => Output::Flag(set.contains(&string(member))),
        SetOperation::Add(members) => {
            let before = set.len();
            set.extend(members.iter().map(|member| string(member)));
            set.sort();
            set.dedup();
            Output::Number((set.len() - before) as i64)
        }
        SetOperation::Remove(members) => {
            let before = set.len();
            set.retain(|member| !members.iter().any(|removed| string(removed) == *member));
            Output::Number((before - set.len()) as i64)
        }
        SetOperation::Take => {
            let all = set.iter().map(bytes).collect();
            set.clear();
            Output::Values(all)
        }
    }
}

fn on_sorted_set(set: &mut Vec<(String, i64)>, operation: &SortedSetOperation) -> Output {
    set.sort_by_key(|(member, score)| (*score, member.clone()));
    let place = |set: &[(String, i64)], member: &[u8]| set.iter().position(|(it, _)| *it == string(member));
    match operation {
        SortedSetOperation::All => {
            Output::Values(set.iter().flat_map(|(member, score)| [bytes(member), bytes(score)]).collect())
        }
        SortedSetOperation::Length => Output::Number(set.len() as i64),
        SortedSetOperation::Score(member) => {
            Output::Value(place(set, member).and_then(|place| bytes(&set[place].1)))
        }
        SortedSetOperation::Add(pairs) => {
            let mut new = 0;
            for (score, member) in pairs {
                match place(set, member) {
                    Some(place) => set[place].1 = *score,
                    None => {
                        set.push((string(member), *score));
                        new += 1;
                    }
                }
            }
            Output::Number(new)
        }
        SortedSetOperation::Increment(delta, member) => {
            let place = place(set, member).unwrap_or_else(|| {
                set.push((string(member), 0));
                set.len() - 1
            });
            set[place].1 += delta;
            Output::Value(bytes(&set[place].1))
        }
        SortedSetOperation::Remove(members) => {
            let mut removed = 0;
            for member in members {
                if let Some(place) = place(set, member) {
                    set.remove(place);
                    removed += 1;
                }
            }
            Output::Number(removed)
        }
        SortedSetOperation::PopMin if set.is_empty() => Output::Values(Vec::new()),
        SortedSetOperation::PopMin => {
            let (member, score) = set.remove(0);
            Output::Values(vec![bytes(&member), bytes(&score)])
        }
    }
}

/// Of three operations, one is of text, or concerns names, lifetimes or a condition.
pub(super) fn small_input(prng: &mut Prng, keys: u64, distinct: Option<u64>) -> Input {
    let (key, other) = (prng.below(keys) as u32, prng.below(keys) as u32);
    match prng.below(16) {
        0..=9 => Input::Collection(key, operation(prng, distinct)),
        10 if prng.chance(1, 2) => Input::Rename(key, other),
        10 => Input::Transfer(key, other, transfers::draw(prng)),
        11 => {
            let mut part = || Input::Collection(key, operation(prng, distinct));
            Input::Batch(vec![part(), part()])
        }
        _ => small_text_input(prng, keys, distinct),
    }
}

fn operation(prng: &mut Prng, distinct: Option<u64>) -> CollectionOperation {
    let element = |prng: &mut Prng| match distinct {
        Some(number) if prng.chance(1, 2) => format!("v{number}.").into_bytes(),
        _ => [&b"e"[..], b"f"][prng.below(2) as usize].to_vec(),
    };
    let end = if prng.chance(1, 2) { End::Left } else { End::Right };
    match prng.below(21) {
        0 => CollectionOperation::List(ListOperation::All),
        1 => CollectionOperation::List(ListOperation::Length),
        2..=4 => CollectionOperation::List(ListOperation::Push(end, vec![element(prng), element(prng)])),
        5 if prng.chance(1, 3) => CollectionOperation::List(ListOperation::PopSome(end, 2)),
        5 => CollectionOperation::List(ListOperation::Pop(end)),
        6 => CollectionOperation::List(ListOperation::Rotate(end)),
        7 => CollectionOperation::Set(SetOperation::All),
        8 => CollectionOperation::Set(SetOperation::Length),
        9 => CollectionOperation::Set(SetOperation::Contains(element(prng))),
        10 | 11 => CollectionOperation::Set(SetOperation::Add(vec![element(prng), element(prng)])),
        12 => CollectionOperation::Set(SetOperation::Remove(vec![element(prng)])),
        13 => CollectionOperation::Set(SetOperation::Take),
        14 => CollectionOperation::SortedSet(SortedSetOperation::All),
        15 => CollectionOperation::SortedSet(SortedSetOperation::Length),
        16 => CollectionOperation::SortedSet(SortedSetOperation::Score(element(prng))),
        17 => {
            let pair = (prng.below(3) as i64, element(prng));
            CollectionOperation::SortedSet(SortedSetOperation::Add(vec![pair]))
        }
        18 => CollectionOperation::SortedSet(SortedSetOperation::Increment(1, element(prng))),
        19 => CollectionOperation::SortedSet(SortedSetOperation::Remove(vec![element(prng)])),
        _ => CollectionOperation::SortedSet(SortedSetOperation::PopMin),
    }
}

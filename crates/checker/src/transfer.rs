//! Operations that take something from one key and leave it at another.

use crate::collections::{End, Items, Members, Scores};
use crate::output::{Output, Text, count};
use crate::value::{Content, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Keys and values.
type KeyValues = BTreeMap<u32, Value>;

/// What goes from one key to another. A missing key counts as a collection without elements, and a key whose last element has
/// gone is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// The element at an end of a list goes to an end of a list (LMOVE). Answer: [`Output::Value`], the element.
    Element(End, End),
    /// A member of a set goes to a set (SMOVE). Answer: [`Output::Flag`], true if there was one.
    Member(Vec<u8>),
    /// Whatever the key holds is held by the other one, too, with its lifetime; if the other one holds something, only if this
    /// flag says so (COPY). Answer: [`Output::Flag`], true if there was something, and it is held now.
    Copy {
        /// What the other key holds is replaced.
        replace: bool,
    },
    /// Whatever the key holds goes to the other one with its lifetime, unless that holds something (MOVE). Answer:
    /// [`Output::Flag`], true if it went.
    Whole,
    /// The other key holds these members of two sets, its own among them, and nothing else (SUNIONSTORE). Answer:
    /// [`Output::Number`], how many.
    Union,
    /// The other key holds the members of a sorted set with their scores, and nothing else (ZRANGESTORE of all). Answer:
    /// [`Output::Number`], how many.
    Range,
    /// The other key holds the elements of a list, a set or a sorted set as a list in the order of their bytes, and nothing else
    /// (SORT with ALPHA and STORE). Answer: [`Output::Number`], how many.
    Sorted,
}

impl Transfer {
    /// True if `output` may be an answer, as far as its form goes.
    pub(crate) fn admits(&self, output: &Output) -> bool {
        match output {
            Output::Done => true,
            Output::WrongType => !matches!(self, Self::Copy { .. } | Self::Whole),
            Output::Value(_) => matches!(self, Self::Element(..)),
            Output::Flag(_) => matches!(self, Self::Member(_) | Self::Copy { .. } | Self::Whole),
            Output::Number(_) => matches!(self, Self::Union | Self::Range | Self::Sorted),
            _ => false,
        }
    }

    /// True if it changed nothing when it gave this answer.
    pub(crate) const fn is_inert(told: &Output) -> bool {
        matches!(told, Output::Value(None) | Output::Flag(false) | Output::WrongType)
    }

    /// True if it may leave text, which it has found at the other key.
    pub(crate) const fn may_be_of_text(&self) -> bool {
        matches!(self, Self::Copy { .. } | Self::Whole)
    }

    /// True if the key that it takes from may be missing afterwards.
    pub(crate) const fn may_empty_source(&self) -> bool {
        matches!(self, Self::Element(..) | Self::Member(_) | Self::Whole)
    }

    /// True if the key that it leaves something at may be missing afterwards, or hold no text any more.
    pub(crate) const fn may_empty_target(&self) -> bool {
        matches!(self, Self::Union | Self::Range | Self::Sorted)
    }

    /// Executes it, and gives the full answer.
    pub(crate) fn apply(&self, store: &mut KeyValues, from: u32, to: u32) -> Output {
        match self {
            Self::Element(from_end, to_end) => move_element(store, (from, *from_end), (to, *to_end)),
            Self::Member(member) => move_member(store, from, to, member),
            Self::Copy { replace } => {
                let Some(value) = store.get(&from).filter(|_| *replace || !store.contains_key(&to)) else {
                    return Output::Flag(false);
                };
                let value = value.clone();
                store.insert(to, value);
                Output::Flag(true)
            }
            Self::Whole => {
                if store.contains_key(&to) {
                    return Output::Flag(false);
                }
                let value = store.remove(&from);
                let was_there = value.is_some();
                store.extend(value.map(|value| (to, value)));
                Output::Flag(was_there)
            }
            Self::Union => {
                let (Some(ours), Some(theirs)) = (members(store, from), members(store, to)) else {
                    return Output::WrongType;
                };
                let all: BTreeSet<Vec<u8>> = ours.union(&theirs).cloned().collect();
                hold(store, to, all.len(), Content::Set(Members(all)))
            }
            Self::Range => match store.get(&from).map(|value| &value.content) {
                None => hold(store, to, 0, Content::SortedSet(Scores(BTreeMap::new()))),
                Some(Content::SortedSet(scores)) => {
                    let scores = scores.clone();
                    hold(store, to, scores.0.len(), Content::SortedSet(scores))
                }
                Some(_) => Output::WrongType,
            },
            Self::Sorted => {
                let mut elements = match store.get(&from).map(|value| &value.content) {
                    None => Vec::new(),
                    Some(Content::List(items)) => items.0.clone(),
                    Some(Content::Set(members)) => members.0.iter().cloned().collect(),
                    Some(Content::SortedSet(scores)) => scores.0.keys().cloned().collect(),
                    Some(Content::Text(_) | Content::Hash(_)) => return Output::WrongType,
                };
                elements.sort_unstable();
                hold(store, to, elements.len(), Content::List(Items(elements)))
            }
        }
    }
}

/// The key holds this and nothing else; if it is empty, nothing.
fn hold(store: &mut KeyValues, key: u32, length: usize, content: Content) -> Output {
    store.remove(&key);
    if length > 0 {
        store.insert(key, Value { content, lifetime: None });
    }
    count(length)
}

/// The elements of a list, or none; `None` if it is of another type.
fn elements(store: &KeyValues, key: u32) -> Option<Vec<Vec<u8>>> {
    match store.get(&key).map(|value| &value.content) {
        None => Some(Vec::new()),
        Some(Content::List(items)) => Some(items.0.clone()),
        Some(_) => None,
    }
}

/// The members of a set, or none; `None` if it is of another type.
fn members(store: &KeyValues, key: u32) -> Option<BTreeSet<Vec<u8>>> {
    match store.get(&key).map(|value| &value.content) {
        None => Some(BTreeSet::new()),
        Some(Content::Set(members)) => Some(members.0.clone()),
        Some(_) => None,
    }
}

/// Gives a key another collection; it keeps its lifetime.
fn change(store: &mut KeyValues, key: u32, is_empty: bool, content: Content) {
    let lifetime = store.remove(&key).and_then(|value| value.lifetime);
    if !is_empty {
        store.insert(key, Value { content, lifetime });
    }
}

fn move_element(store: &mut KeyValues, (from, from_end): (u32, End), (to, to_end): (u32, End)) -> Output {
    let Some(mut source) = elements(store, from) else { return Output::WrongType };
    if source.is_empty() {
        return Output::Value(None);
    }
    if elements(store, to).is_none() {
        return Output::WrongType;
    }
    let element = match from_end {
        End::Left => source.remove(0),
        End::Right => source.remove(source.len() - 1),
    };
    if from == to {
        // It stays the same list, with its lifetime, though it may have been empty for a moment.
        source.insert(if to_end == End::Left { 0 } else { source.len() }, element.clone());
        change(store, from, false, Content::List(Items(source)));
        return Output::Value(Some(element));
    }
    change(store, from, source.is_empty(), Content::List(Items(source)));
    let mut target = elements(store, to).unwrap_or_default();
    target.insert(if to_end == End::Left { 0 } else { target.len() }, element.clone());
    change(store, to, false, Content::List(Items(target)));
    Output::Value(Some(element))
}

fn move_member(store: &mut KeyValues, from: u32, to: u32, member: &[u8]) -> Output {
    let Some(mut source) = members(store, from) else { return Output::WrongType };
    if !store.contains_key(&from) {
        return Output::Flag(false);
    }
    let Some(mut target) = members(store, to) else { return Output::WrongType };
    if from == to || !source.contains(member) {
        return Output::Flag(source.contains(member));
    }
    source.remove(member);
    target.insert(member.to_vec());
    change(store, from, source.is_empty(), Content::Set(Members(source)));
    change(store, to, false, Content::Set(Members(target)));
    Output::Flag(true)
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(from, to) => write!(f, "element from {from} to {to}"),
            Self::Member(member) => write!(f, "member {}", Text(member)),
            Self::Copy { replace: false } => f.write_str("copy"),
            Self::Copy { replace: true } => f.write_str("copy that replaces"),
            Self::Whole => f.write_str("all, if there is nothing"),
            Self::Union => f.write_str("all members"),
            Self::Range => f.write_str("all members with scores, instead of what there is"),
            Self::Sorted => f.write_str("sorted elements, instead of what there is"),
        }
    }
}

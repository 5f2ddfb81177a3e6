//! What goes from one key to another, the obvious way, and such operations, made up.

use super::PlainStore;
use super::others::Other;
use super::string;
use syros_checker::collections::End;
use syros_checker::history::Output;
use syros_checker::transfer::Transfer;
use syros_types::Prng;

pub(super) fn draw(prng: &mut Prng) -> Transfer {
    let end = |prng: &mut Prng| if prng.chance(1, 2) { End::Left } else { End::Right };
    match prng.below(8) {
        0 | 1 => Transfer::Element(end(prng), end(prng)),
        2 => Transfer::Member([&b"e"[..], b"f"][prng.below(2) as usize].to_vec()),
        3 => Transfer::Copy { replace: prng.chance(1, 2) },
        4 => Transfer::Whole,
        5 => Transfer::Union,
        6 => Transfer::Range,
        _ => Transfer::Sorted,
    }
}

pub(super) fn execute(store: &mut PlainStore, (from, to): (u32, u32), transfer: &Transfer) -> Output {
    match transfer {
        Transfer::Element(from_end, to_end) => move_element(store, (from, *from_end), (to, *to_end)),
        Transfer::Member(member) => move_member(store, (from, to), &string(member)),
        Transfer::Copy { replace } => {
            let is_free = !store.exists(to) || *replace;
            if store.exists(from) && is_free && from != to {
                let copied = store.clone();
                store.rename(from, to);
                take_back(store, &copied, from);
            }
            Output::Flag(is_free && store.exists(from))
        }
        Transfer::Whole => {
            if store.exists(to) || !store.exists(from) {
                return Output::Flag(false);
            }
            store.rename(from, to);
            Output::Flag(true)
        }
        Transfer::Union => {
            let (Some(mut all), Some(theirs)) = (set_of(store, from), set_of(store, to)) else {
                return Output::WrongType;
            };
            all.extend(theirs);
            all.sort();
            all.dedup();
            hold(store, to, all.len(), Other::Set(all))
        }
        Transfer::Range => match store.others.get(&from).cloned() {
            Some(Other::SortedSet(pairs)) => hold(store, to, pairs.len(), Other::SortedSet(pairs)),
            None if !store.exists(from) => hold(store, to, 0, Other::SortedSet(Vec::new())),
            _ => Output::WrongType,
        },
        Transfer::Sorted => {
            let mut all: Vec<String> = match store.others.get(&from).cloned() {
                Some(Other::SortedSet(pairs)) => pairs.into_iter().map(|(member, _)| member).collect(),
                Some(Other::List(all) | Other::Set(all)) => all,
                None if !store.exists(from) => Vec::new(),
                None => return Output::WrongType,
            };
            all.sort();
            hold(store, to, all.len(), Other::List(all))
        }
    }
}

/// Gives a key again what it held before.
fn take_back(store: &mut PlainStore, before: &PlainStore, key: u32) {
    store.texts.extend(before.texts.get(&key).map(|text| (key, text.clone())));
    store.hashes.extend(before.hashes.get(&key).map(|hash| (key, hash.clone())));
    store.others.extend(before.others.get(&key).map(|other| (key, other.clone())));
    store.lifetimes.extend(before.lifetimes.get(&key).map(|lifetime| (key, *lifetime)));
}

fn hold(store: &mut PlainStore, key: u32, length: usize, other: Other) -> Output {
    store.remove(key);
    if length > 0 {
        store.others.insert(key, other);
    }
    Output::Number(length as i64)
}

fn set_of(store: &PlainStore, key: u32) -> Option<Vec<String>> {
    match store.others.get(&key) {
        Some(Other::Set(all)) => Some(all.clone()),
        Some(_) => None,
        None => (!store.exists(key)).then(Vec::new),
    }
}

fn list_of(store: &PlainStore, key: u32) -> Option<Vec<String>> {
    match store.others.get(&key) {
        Some(Other::List(all)) => Some(all.clone()),
        Some(_) => None,
        None => (!store.exists(key)).then(Vec::new),
    }
}

/// Changes a collection; the key keeps its lifetime, unless the last element goes.
fn change(store: &mut PlainStore, key: u32, length: usize, other: Other) {
    if length == 0 {
        store.remove(key);
    } else {
        store.others.insert(key, other);
    }
}

fn move_element(store: &mut PlainStore, (from, from_end): (u32, End), (to, to_end): (u32, End)) -> Output {
    let Some(mut source) = list_of(store, from) else { return Output::WrongType };
    if source.is_empty() {
        return Output::Value(None);
    }
    if list_of(store, to).is_none() {
        return Output::WrongType;
    }
    let element = source.remove(if from_end == End::Left { 0 } else { source.len() - 1 });
    if from != to {
        change(store, from, source.len(), Other::List(source));
        source = list_of(store, to).unwrap();
    }
    source.insert(if to_end == End::Left { 0 } else { source.len() }, element.clone());
    store.others.insert(to, Other::List(source));
    Output::Value(Some(element.into_bytes()))
}

fn move_member(store: &mut PlainStore, (from, to): (u32, u32), member: &str) -> Output {
    let Some(mut source) = set_of(store, from) else { return Output::WrongType };
    if source.is_empty() {
        return Output::Flag(false);
    }
    let Some(mut target) = set_of(store, to) else { return Output::WrongType };
    let Some(place) = source.iter().position(|other| other == member) else { return Output::Flag(false) };
    if from != to {
        target.push(source.remove(place));
        target.sort();
        target.dedup();
        change(store, from, source.len(), Other::Set(source));
        store.others.insert(to, Other::Set(target));
    }
    Output::Flag(true)
}

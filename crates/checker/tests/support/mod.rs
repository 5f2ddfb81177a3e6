//! Histories made up by a store with the bug of one's choice, and an obvious judge of small ones.
//! Nothing here is shared with the checker but the form of a history.

mod hashes;
mod others;

mod transfers;

use others::Other;
use std::collections::BTreeMap;
use syros_checker::collections::{CollectionOperation, HashOperation};
use syros_checker::history::{History, Input, Operation, OperationIndex, Outcome, Output};
use syros_types::Prng;

/// One copy of the data, the obvious way.
#[derive(Clone, Default)]
pub(crate) struct PlainStore {
    texts: BTreeMap<u32, String>,
    hashes: BTreeMap<u32, BTreeMap<String, String>>,
    others: BTreeMap<u32, Other>,
    lifetimes: BTreeMap<u32, u32>,
}

pub(crate) fn string(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl PlainStore {
    fn text(&self, key: u32) -> Option<Vec<u8>> {
        self.texts.get(&key).map(|text| text.clone().into_bytes())
    }

    fn exists(&self, key: u32) -> bool {
        self.texts.contains_key(&key) || self.holds_collection(key)
    }

    fn holds_collection(&self, key: u32) -> bool {
        self.hashes.contains_key(&key) || self.others.contains_key(&key)
    }

    fn remove(&mut self, key: u32) -> bool {
        let existed = self.exists(key);
        self.texts.remove(&key);
        self.hashes.remove(&key);
        self.others.remove(&key);
        self.lifetimes.remove(&key);
        existed
    }

    fn set(&mut self, key: u32, value: String) {
        self.remove(key);
        self.texts.insert(key, value);
    }

    pub(crate) fn execute(&mut self, input: &Input) -> Output {
        match input {
            Input::Get(key)
            | Input::Length(key)
            | Input::Exchange(key, _)
            | Input::Append(key, _)
            | Input::Increment(key, _)
                if self.holds_collection(*key) =>
            {
                Output::WrongType
            }
            Input::Get(key) => Output::Value(self.text(*key)),
            Input::GetMany(keys) => {
                let mut values = Vec::new();
                for key in keys {
                    values.push(self.text(*key));
                }
                Output::Values(values)
            }
            Input::Length(key) => Output::Number(self.texts.get(key).map_or("", String::as_str).len() as i64),
            Input::Set(key, value) => {
                self.set(*key, string(value));
                Output::Done
            }
            Input::SetMany(pairs) => {
                for (key, value) in pairs {
                    self.set(*key, string(value));
                }
                Output::Done
            }
            Input::SetIfAbsent(key, value) => {
                if self.exists(*key) {
                    return Output::Flag(false);
                }
                self.set(*key, string(value));
                Output::Flag(true)
            }
            Input::Exchange(key, value) => {
                let old = self.text(*key);
                self.set(*key, string(value));
                Output::Value(old)
            }
            Input::Append(key, value) => {
                let old = self.texts.get(key).cloned().unwrap_or_default();
                let new = old + &string(value);
                let length = new.len();
                self.texts.insert(*key, new);
                Output::Number(length as i64)
            }
            Input::Increment(key, delta) => {
                let old = self.texts.get(key).cloned().unwrap_or_else(|| "0".to_owned());
                match old.parse::<i64>() {
                    Ok(number) if number.to_string() == old => {
                        self.texts.insert(*key, (number + delta).to_string());
                        Output::Number(number + delta)
                    }
                    _ => Output::Error,
                }
            }
            Input::Count(keys) => Output::Number(keys.iter().filter(|key| self.exists(**key)).count() as i64),
            Input::List(keys) => {
                let mut found: Vec<u32> = keys.iter().copied().filter(|key| self.exists(*key)).collect();
                found.sort_unstable();
                Output::Keys(found)
            }
            Input::Clear(keys) => self.clear(keys),
            Input::Delete(key) => Output::Flag(self.remove(*key)),
            Input::Expire(key, value) => {
                if self.texts.get(key).is_some_and(|found| found.as_bytes() == value) {
                    self.remove(*key);
                }
                Output::Done
            }
            Input::Collection(key, CollectionOperation::Hash(operation)) => {
                self.execute_on_hash(*key, operation)
            }
            Input::Collection(key, operation) => self.execute_on_other(*key, operation),
            Input::Rename(from, to) => self.rename(*from, *to),
            Input::Transfer(from, to, transfer) => transfers::execute(self, (*from, *to), transfer),
            Input::Lifetime(key, lifetime) => {
                if self.exists(*key) {
                    self.lifetimes.insert(*key, *lifetime);
                }
                Output::Flag(self.exists(*key))
            }
            Input::Persist(key) => Output::Flag(self.lifetimes.remove(key).is_some()),
            Input::LifetimeEnds(keys, lifetime) => {
                for key in keys {
                    if self.lifetimes.get(key) == Some(lifetime) {
                        self.remove(*key);
                    }
                }
                Output::Done
            }
            Input::Batch(parts) => Output::Batch(parts.iter().map(|part| self.execute(part)).collect()),
            Input::Conditional(seen, parts) => self.execute_if(seen, parts),
        }
    }

    fn execute_if(&mut self, seen: &[(u32, Option<Vec<u8>>)], parts: &[Input]) -> Output {
        for (key, value) in seen {
            if self.holds_collection(*key) || self.text(*key) != *value {
                return Output::Flag(false);
            }
        }
        self.execute(&Input::Batch(parts.to_vec()))
    }

    fn clear(&mut self, keys: &[u32]) -> Output {
        for key in keys {
            self.remove(*key);
        }
        Output::Done
    }

    fn execute_on_other(&mut self, key: u32, operation: &CollectionOperation) -> Output {
        if self.texts.contains_key(&key) || self.hashes.contains_key(&key) {
            return Output::WrongType;
        }
        let mut other = self.others.get(&key).cloned().or_else(|| Other::empty(operation)).unwrap();
        let answer = other.execute(operation);
        if other.is_empty() {
            self.remove(key);
        } else {
            self.others.insert(key, other);
        }
        answer
    }

    fn execute_on_hash(&mut self, key: u32, operation: &HashOperation) -> Output {
        if self.texts.contains_key(&key) || self.others.contains_key(&key) {
            return Output::WrongType;
        }
        let mut hash = self.hashes.get(&key).cloned().unwrap_or_default();
        let answer = hashes::execute(&mut hash, operation);
        if hash.is_empty() {
            self.remove(key);
        } else {
            self.hashes.insert(key, hash);
        }
        answer
    }

    fn rename(&mut self, from: u32, to: u32) -> Output {
        if !self.exists(from) {
            return Output::Error;
        }
        if from != to {
            let (text, hash) = (self.texts.get(&from).cloned(), self.hashes.get(&from).cloned());
            let other = self.others.get(&from).cloned();
            let lifetime = self.lifetimes.get(&from).copied();
            self.remove(from);
            self.remove(to);
            self.texts.extend(text.map(|text| (to, text)));
            self.hashes.extend(hash.map(|hash| (to, hash)));
            self.others.extend(other.map(|other| (to, other)));
            self.lifetimes.extend(lifetime.map(|lifetime| (to, lifetime)));
        }
        Output::Flag(true)
    }
}

fn may_be_told(told: &Output, actual: &Output) -> bool {
    match (told, actual) {
        (Output::Done, _) => true,
        (Output::Batch(told), Output::Batch(actual)) => {
            told.iter().zip(actual).all(|(told, actual)| may_be_told(told, actual))
        }
        _ => told == actual,
    }
}

/// Tries every order of every choice of operations. For a handful of operations only.
pub(crate) fn has_an_order(history: &History) -> bool {
    let left: Vec<&Operation> =
        history.operations().iter().filter(|operation| operation.outcome != Outcome::Failed).collect();
    extends(&PlainStore::default(), history, &left)
}

fn extends(store: &PlainStore, history: &History, left: &[&Operation]) -> bool {
    if left.iter().all(|operation| operation.outcome == Outcome::Unknown) {
        return true;
    }
    for (at, operation) in left.iter().enumerate() {
        let preceded = left.iter().any(|other| match other.outcome {
            Outcome::Acknowledged { completed, .. } => {
                completed < operation.invoked || must_follow(history, operation, other)
            }
            _ => false,
        });
        if preceded {
            continue;
        }
        let mut store = store.clone();
        let actual = store.execute(&operation.input);
        if let Outcome::Acknowledged { output, .. } = &operation.outcome
            && !may_be_told(output, &actual)
        {
            continue;
        }
        let mut rest = left.to_vec();
        rest.remove(at);
        if extends(&store, history, &rest) {
            return true;
        }
    }
    false
}

/// True if an acknowledged operation is to follow another one, with which it shares a key.
fn must_follow(history: &History, operation: &Operation, other: &Operation) -> bool {
    let is_other = |first: &OperationIndex| std::ptr::eq(other, &history.operations()[first.0]);
    let mut shares = false;
    operation.input.for_each_key(&mut |key| other.input.for_each_key(&mut |theirs| shares |= key == theirs));
    shares
        && matches!(operation.outcome, Outcome::Acknowledged { .. })
        && operation.follows.iter().any(is_other)
}

/// What is wrong with the store that makes a history up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// Some reads return what the key held some updates ago.
    StaleRead,
    /// Some updates are acknowledged and not executed.
    LostUpdate,
    /// Some updates take effect just before the one that took effect before they were invoked.
    ReorderedWrites,
    /// Some increments are executed twice.
    DuplicateIncrement,
    /// The parts of a SetMany take effect at different times.
    SplitSetMany,
}

/// The shape of a made-up history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) operations: usize,
    pub(crate) clients: u64,
    pub(crate) keys: u64,
    /// Percentage of operations whose outcome nobody knows.
    pub(crate) unknown_percent: u64,
    /// Percentage of operations on key 0.
    pub(crate) hot_percent: u64,
    /// Operations on several keys occur.
    pub(crate) joined: bool,
    pub(crate) bug: Bug,
    /// One of how many operations the bug strikes.
    pub(crate) bug_rarity: u64,
}

struct Event {
    index: OperationIndex,
    at: u64,
    effect: u64,
    completed: u64,
    blind: bool,
    known: bool,
    happens: bool,
}

/// A history as clients in a closed loop see it, each with one operation at a time.
pub(crate) fn make_up(shape: Shape, seed: u64) -> History {
    let prng = &mut Prng::new(seed);
    let mut history = History::new();
    let mut free_at: Vec<u64> = (0..shape.clients).map(|client| client * 3).collect();
    let mut events = Vec::new();
    for made in 0..shape.operations {
        let client = (0..free_at.len()).min_by_key(|client| free_at[*client]).unwrap();
        let at = free_at[client] + prng.below(20);
        let latency = if prng.chance(1, 30) { 1000 } else { 100 };
        let effect = at + 1 + prng.below(latency);
        let completed = effect + 1 + prng.below(latency);
        let known = !prng.chance(shape.unknown_percent, 100);
        let happens = known || prng.chance(1, 2);
        let input = input(shape, prng, made);
        let index = history.invoke(client as u64, at, input).unwrap();
        free_at[client] = completed + 1;
        // An operation whose client gave up may take effect long after.
        let effect = if known { effect } else { effect + prng.below(2000) };
        events.push(Event { index, at, effect, completed, blind: prng.chance(1, 2), known, happens });
    }
    execute(&mut history, events, shape, prng);
    history
}

fn execute(history: &mut History, mut events: Vec<Event>, shape: Shape, prng: &mut Prng) {
    events.sort_by_key(|event| event.effect);
    if shape.bug == Bug::ReorderedWrites {
        reorder(history, &mut events, shape, prng);
    }
    let mut store = PlainStore::default();
    let mut past = vec![store.clone()];
    let mut late: Vec<(u64, Input)> = Vec::new();
    for event in &events {
        let input = history.operations()[event.index.0].input.clone();
        let (due, waiting) = late.into_iter().partition(|(at, _)| *at <= event.effect);
        late = waiting;
        let due: Vec<(u64, Input)> = due;
        for (_, part) in due {
            store.execute(&part);
        }
        if !event.happens {
            continue;
        }
        let struck = prng.chance(1, shape.bug_rarity);
        let actual = match (shape.bug, &input) {
            (Bug::StaleRead, Input::Get(_)) if struck && past.len() > 40 => {
                past[past.len() - 1 - prng.below(40) as usize].clone().execute(&input)
            }
            (Bug::LostUpdate, _) if struck => store.clone().execute(&input),
            (Bug::DuplicateIncrement, Input::Increment(..)) if struck => {
                store.execute(&input);
                store.execute(&input)
            }
            (Bug::SplitSetMany, Input::SetMany(pairs)) if struck => {
                for (number, pair) in pairs.iter().enumerate() {
                    let at =
                        event.completed - event.completed.saturating_sub(event.effect) * number as u64 / 3;
                    late.push((at, Input::Set(pair.0, pair.1.clone())));
                }
                Output::Done
            }
            _ => store.execute(&input),
        };
        past.push(store.clone());
        if event.known {
            let told = if event.blind && !input.is_read() { blinded(&input, actual) } else { actual };
            history.acknowledge(event.index, event.completed, told).unwrap();
        }
    }
}

/// Moves some updates of a key before an earlier one that had completed when they were invoked.
fn reorder(history: &History, events: &mut Vec<Event>, shape: Shape, prng: &mut Prng) {
    let key = |event: &Event| match history.operations()[event.index.0].input {
        Input::Set(key, _) => Some(key),
        _ => None,
    };
    for at in 0..events.len() {
        let Some(moved) = key(&events[at]) else { continue };
        let other = (0..at).rev().find(|other| key(&events[*other]) == Some(moved));
        if let Some(other) = other
            && events[other].completed < events[at].at
            && prng.chance(1, shape.bug_rarity)
        {
            let event = events.remove(at);
            events.insert(other, event);
        }
    }
}

fn blinded(input: &Input, actual: Output) -> Output {
    match (input, actual) {
        (Input::Batch(parts), Output::Batch(outputs)) => Output::Batch(
            parts
                .iter()
                .zip(outputs)
                .map(|(part, out)| if part.is_read() { out } else { Output::Done })
                .collect(),
        ),
        _ => Output::Done,
    }
}

fn input(shape: Shape, prng: &mut Prng, made: usize) -> Input {
    let key = if prng.chance(shape.hot_percent, 100) { 0 } else { prng.below(shape.keys) as u32 };
    // Keys divisible by 3 hold integers, the others text; sometimes an operation errs.
    let numeric = (key % 3 == 0) != prng.chance(1, 30);
    let fresh = |number: usize| {
        if numeric { (number * 1000).to_string().into_bytes() } else { format!("v{number}.").into_bytes() }
    };
    let kinds = if shape.joined { 14 } else { 10 };
    match prng.below(kinds) {
        0 | 1 => Input::Set(key, fresh(made)),
        2 | 3 => Input::Get(key),
        4 | 5 if numeric => Input::Increment(key, 1 + prng.below(3) as i64),
        4 | 5 => Input::Append(key, format!("a{made}.").into_bytes()),
        6 => Input::Exchange(key, fresh(made)),
        7 => Input::SetIfAbsent(key, fresh(made)),
        8 => Input::Delete(key),
        9 if prng.chance(1, 2) => Input::Length(key),
        9 => Input::Batch(vec![Input::Append(key, b"7".to_vec()), Input::Get(key)]),
        kind => {
            let mut keys = vec![key];
            for _ in 0..2 {
                let other = prng.below(shape.keys) as u32;
                if !keys.contains(&other) {
                    keys.push(other);
                }
            }
            if kind < 12 {
                return Input::GetMany(keys);
            }
            Input::SetMany(keys.into_iter().map(|key| (key, format!("m{made}.{key}").into_bytes())).collect())
        }
    }
}

/// A history of few operations with few values, often wrong. Some are dense, some have more operations
/// one after another, some write every value once.
pub(crate) fn make_up_small(prng: &mut Prng) -> History {
    make_up_with(prng, small_input)
}

/// The same, with hashes, keys that are renamed, and lifetimes.
pub(crate) fn make_up_small_with_hashes(prng: &mut Prng) -> History {
    make_up_with(prng, hashes::small_input)
}

/// The same, with lists, sets, sorted sets, and keys that are renamed.
pub(crate) fn make_up_small_with_other_collections(prng: &mut Prng) -> History {
    make_up_with(prng, others::small_input)
}

/// Makes up an operation on one of so many keys; of the process with a number, if every value is to be written once.
type MakeInput = fn(&mut Prng, u64, Option<u64>) -> Input;

fn make_up_with(prng: &mut Prng, make_input: MakeInput) -> History {
    let mut history = History::new();
    let mut store = PlainStore::default();
    let stretched = prng.chance(1, 2);
    let operations = if stretched { 4 + prng.below(6) } else { 2 + prng.below(6) };
    let keys = 1 + prng.below(3);
    let (span, honesty) = (2 + prng.below(if stretched { 6 } else { 12 }), prng.below(101));
    let distinct = prng.chance(1, 2);
    for process in 0..operations {
        let input = make_input(prng, keys, distinct.then_some(process));
        let start = if stretched { 2 * process } else { 0 };
        let (a, b) = (start + prng.below(span), start + prng.below(span));
        let index = history.invoke(process, a.min(b), input.clone()).unwrap();
        // The order of execution has little to do with the times: that alone is often a violation.
        let actual = store.execute(&input);
        match prng.below(10) {
            0 | 1 => {}
            2 => history.fail(index).unwrap(),
            _ => {
                let told = if prng.chance(honesty, 100) { actual } else { distort(prng, actual, operations) };
                let told = if !input.is_read() && prng.chance(1, 4) { blinded(&input, told) } else { told };
                // What is distorted may be no answer to this operation.
                if history.acknowledge(index, a.max(b), told).is_err() {
                    history.fail(index).unwrap();
                }
            }
        }
    }
    history
}

fn small_input(prng: &mut Prng, keys: u64, distinct: Option<u64>) -> Input {
    let key = prng.below(keys) as u32;
    let values = [&b"a"[..], b"b", b"1", b"ab", b""];
    let value = match distinct {
        Some(number) if prng.chance(1, 3) => (100 * number).to_string().into_bytes(),
        Some(number) => format!("v{number}.").into_bytes(),
        None => values[prng.below(5) as usize].to_vec(),
    };
    let all = || (0..keys as u32).collect();
    match prng.below(19) {
        18 => {
            let seen = match distinct {
                None => Some(value.clone()),
                Some(number) => Some(format!("v{}.", number.saturating_sub(1 + prng.below(3))).into_bytes()),
            };
            let seen = seen.filter(|_| !prng.chance(1, 4));
            let then =
                [Input::Set(key, [&value[..], b"c"].concat()), Input::Delete(key), Input::Append(key, value)];
            let other = Input::Increment(prng.below(keys) as u32, 1);
            Input::Conditional(vec![(key, seen)], vec![then[prng.below(3) as usize].clone(), other])
        }
        0..=2 => Input::Get(key),
        3 => Input::Length(key),
        15 => Input::Count(all()),
        16 => Input::List(all()),
        17 => Input::Clear(all()),
        4 | 5 => Input::Set(key, value),
        6 => Input::SetIfAbsent(key, value),
        7 => Input::Exchange(key, value),
        8 => Input::Append(key, value),
        9 => Input::Increment(key, 1 + prng.below(2) as i64),
        10 => Input::Delete(key),
        11 => Input::GetMany(vec![key, prng.below(keys) as u32]),
        // Of a value that an operation before this one may have written.
        13 => Input::Expire(
            key,
            match distinct {
                Some(number) => format!("v{}.", number.saturating_sub(1 + prng.below(3))).into_bytes(),
                None => value,
            },
        ),
        12 => Input::SetMany(vec![
            (key, value.clone()),
            (prng.below(keys) as u32, [value, b"b".to_vec()].concat()),
        ]),
        _ => {
            let mut part = || loop {
                let part = small_input(prng, keys, distinct);
                if !matches!(part, Input::Batch(_) | Input::Conditional(..) | Input::Expire(..)) {
                    return part;
                }
            };
            Input::Batch(vec![part(), part()])
        }
    }
}

fn distort(prng: &mut Prng, output: Output, operations: u64) -> Output {
    match output {
        Output::Value(_) => {
            let written = format!("v{}.", prng.below(operations)).into_bytes();
            let values = [None, Some(&b"a"[..]), Some(b"b"), Some(b"1"), Some(b"ab"), Some(&written)];
            Output::Value(values[prng.below(6) as usize].map(<[u8]>::to_vec))
        }
        Output::Number(number) => Output::Number(number + prng.below(2) as i64),
        Output::Flag(_) => Output::Flag(prng.chance(1, 2)),
        Output::Fields(fields) => hashes::distort(prng, fields),
        Output::WrongType if prng.chance(1, 2) => Output::Value(None),
        Output::Keys(keys) => Output::Keys(keys.into_iter().filter(|_| prng.chance(1, 2)).collect()),
        Output::Values(mut values) => {
            let places = values.len().min(1);
            values.rotate_left(places);
            Output::Values(values)
        }
        other => other,
    }
}

//! What the answers give away of the order before any search.
//!
//! If a client was shown a value that only one operation can have left, then that operation happened,
//! it happened before the observer, and nothing that changes the key happened between the two. For an
//! integer the same holds of the one operation that can have set what increments then made of it.
//! Each such fact narrows the time in which an operation can have taken effect, and narrow times make
//! a search short. Where values are written once this settles most of a history.

use super::placeable::{Lock, Placeable, bit, position};
use crate::history::{Input, Output};
use crate::sequential::may_become_integer;
use crate::value::integer;

/// Times that all facts are gone through. Each passes on what the one before found out; most is found
/// in three.
const ROUNDS_MAX: usize = 12;

/// Most pairs of a shown value and an operation that are looked at, for one key: about a second of
/// work. A key with more is left to the search alone.
const PAIRS_MAX: usize = 20_000_000;

/// An operation that was shown a value or that there is none, or must have found so.
struct Sighting {
    observer: usize,
    value: Option<Vec<u8>>,
}

/// `writer` made the last change before `observer`; the last one but increments, if `loose`.
struct Link {
    writer: usize,
    observer: usize,
    loose: bool,
}

/// One key, and who changes it.
struct KeyConstraints {
    key: u32,
    at: u32,
    changers: Vec<usize>,
    /// How far down and up all increments together may have moved an integer.
    reach: (i64, i64),
    /// Without a single cause so far.
    sightings: Vec<Sighting>,
    links: Vec<Link>,
}

/// Narrows the times of the operations, and marks those that must have happened though nobody was told.
/// Leaves the times as they were if the facts contradict each other: the search will explain why.
pub(super) fn narrow(operations: &mut [Placeable<'_>], keys: &[u32], has_collections: bool) {
    let mut constraints = gather(operations, keys, has_collections);
    constraints.retain(|key| key.sightings.len().saturating_mul(key.changers.len()) <= PAIRS_MAX);
    let before: Vec<(u64, u64)> =
        operations.iter().map(|operation| (operation.invoked, operation.completed)).collect();
    narrow_in_rounds(operations, &mut constraints);
    if operations.iter().any(|operation| operation.invoked > operation.completed) {
        for (operation, (invoked, completed)) in operations.iter_mut().zip(before) {
            operation.invoked = invoked;
            // An unknown operation that was seen keeps its deadline.
            operation.completed = if completed == u64::MAX { operation.completed } else { completed };
        }
    }
}

fn narrow_in_rounds(operations: &mut [Placeable<'_>], constraints: &mut [KeyConstraints]) {
    for _ in 0..ROUNDS_MAX {
        let mut news = false;
        for key in &mut *constraints {
            news |= key.link(operations);
            for link in &key.links {
                news |= narrow_around(operations, link, &key.changers);
            }
        }
        let contradiction = operations.iter().any(|operation| operation.invoked > operation.completed);
        if !news || contradiction {
            return;
        }
    }
}

fn gather(operations: &[Placeable<'_>], keys: &[u32], has_collections: bool) -> Vec<KeyConstraints> {
    let empty = |(key, at): (&u32, u32)| KeyConstraints {
        key: *key,
        at,
        changers: Vec::new(),
        reach: (0, 0),
        sightings: Vec::new(),
        links: Vec::new(),
    };
    let mut constraints: Vec<KeyConstraints> = keys.iter().zip(0..).map(empty).collect();
    for (index, operation) in operations.iter().enumerate() {
        if !operation.inert {
            for at in &operation.touched {
                let key = &mut constraints[*at as usize];
                key.changers.push(index);
                extend_reach(&operation.operation.input, key.key, &mut key.reach);
            }
        }
        if let Some(told) = operation.told {
            shown(&operation.operation.input, told, has_collections, &mut |key, value| {
                let sighting = Sighting { observer: index, value };
                constraints[position(keys, key) as usize].sightings.push(sighting);
            });
        }
    }
    constraints
}

impl KeyConstraints {
    /// Finds the sightings that have a single possible cause; true if there are any.
    fn link(&mut self, operations: &mut [Placeable<'_>]) -> bool {
        let mut unexplained = Vec::new();
        let known = self.links.len();
        while let Some(sighting) = self.sightings.pop() {
            let Some((writer, loose)) = self.cause(operations, &sighting) else {
                unexplained.push(sighting);
                continue;
            };
            let observer = sighting.observer;
            self.links.push(Link { writer, observer, loose });
            let lock = Lock { at: self.at, loose };
            operations[observer].closes.push(lock);
            let deadline = operations[observer].completed;
            let cause = &mut operations[writer];
            cause.opens.push(lock);
            if cause.told.is_none() {
                cause.told = Some(&Output::Done);
                cause.completed = deadline;
            }
            if cause.may_be_of_wrong_type {
                // That its effect was seen tells of what it found: no collection.
                cause.told_of |= cause.blurred;
            }
            // An append that left this value found the beginning of it. Nothing and empty text are not
            // told apart, and a second sighting of the same value says nothing new.
            if let (Input::Append(_, suffix), Some(value)) = (&cause.operation.input, sighting.value)
                && !loose
                && value.len() > suffix.len()
            {
                let found = value[..value.len() - suffix.len()].to_vec();
                if !cause.finds.contains(&found) {
                    cause.finds.push(found.clone());
                    // As good as if its client had been shown the value.
                    cause.blurred &= !bit(self.at);
                    cause.told_of &= !bit(self.at);
                    self.sightings.push(Sighting { observer: writer, value: Some(found) });
                }
            }
        }
        self.sightings = unexplained;
        self.links.len() > known
    }

    /// The only operation that can have made the last change before a sighting, if there is one, or
    /// the last change but increments.
    fn cause(&self, operations: &[Placeable<'_>], sighting: &Sighting) -> Option<(usize, bool)> {
        if let [writer] = self.causes(operations, sighting, false)[..] {
            return Some((writer, false));
        }
        match self.causes(operations, sighting, true)[..] {
            [writer] => Some((writer, true)),
            _ => None,
        }
    }

    /// The operations that can have made the last change before a sighting; if `loose`, the last but
    /// increments. None if it may be as in the beginning, or if looseness has nothing to add.
    fn causes(&self, operations: &[Placeable<'_>], sighting: &Sighting, loose: bool) -> Vec<usize> {
        let observer = sighting.observer;
        let (began, ended) = (operations[observer].invoked, operations[observer].completed);
        // Whatever completed before this operation began was changed by it.
        let preceding = self.changers.iter().map(|index| &operations[*index]);
        let last_change = preceding
            .filter(|other| other.completed < began && surely_changes(other, loose))
            .map(|other| other.invoked)
            .max();
        let may_be_initial = match &sighting.value {
            None => loose || last_change.is_none(),
            // Increments may have begun with nothing; and only integers come of increments.
            Some(value) => loose && integer(value).is_none_or(|sum| self.may_sum_up(0, sum)),
        };
        if may_be_initial {
            return Vec::new();
        }
        let candidates = self.changers.iter().copied().filter(|index| {
            let cause = &operations[*index];
            let in_time = cause.invoked <= ended && last_change.is_none_or(|last| cause.completed >= last);
            *index != observer && in_time && self.may_explain(cause, sighting, loose)
        });
        candidates.collect()
    }

    /// True if the key may have been as sighted right after this operation, or, if `loose`, after it
    /// and increments.
    fn may_explain(&self, cause: &Placeable<'_>, sighting: &Sighting, loose: bool) -> bool {
        let input = &cause.operation.input;
        let Some(value) = &sighting.value else { return may_remove(input, self.key) };
        may_leave(input, cause.told, self.key, &mut |left| match (left, loose) {
            (LeftValue::Whole(written), false) => written == value,
            (LeftValue::Suffix(suffix), false) => value.ends_with(suffix),
            (LeftValue::Sum(Some(sum)), false) => sum.to_string().as_bytes() == value,
            (LeftValue::Sum(None), false) => may_become_integer(value),
            (LeftValue::Whole(written), true) => match (integer(written), integer(value)) {
                (Some(base), Some(sum)) => self.may_sum_up(base, sum),
                _ => false,
            },
            (LeftValue::Suffix(suffix), true) => may_become_integer(suffix),
            (LeftValue::Sum(_), true) => false,
            (LeftValue::Anything, _) => true,
        })
    }

    /// True if increments may have made `sum` of `base`.
    fn may_sum_up(&self, base: i64, sum: i64) -> bool {
        let (down, up) = self.reach;
        (base.saturating_add(down)..=base.saturating_add(up)).contains(&sum)
    }
}

/// What an operation may leave of a key that it changes.
enum LeftValue<'v> {
    /// This value.
    Whole(&'v [u8]),
    /// Some value with this end.
    Suffix(&'v [u8]),
    /// This integer, or any if it is unknown.
    Sum(Option<i64>),
    /// What another key held.
    Anything,
}

/// True if one of the things that `operation` may leave at `key`, other than what was there before and
/// nothing, satisfies `test`.
fn may_leave(
    input: &Input,
    told: Option<&Output>,
    key: u32,
    test: &mut dyn FnMut(LeftValue<'_>) -> bool,
) -> bool {
    match (input, told) {
        (
            Input::Get(_)
            | Input::GetMany(_)
            | Input::Length(_)
            | Input::Count(_)
            | Input::List(_)
            | Input::Clear(_)
            | Input::Delete(_)
            | Input::Expire(..)
            | Input::Collection(..)
            | Input::Lifetime(..)
            | Input::Persist(_)
            | Input::LifetimeEnds(..),
            _,
        ) => false,
        (Input::Rename(_, to), _) => *to == key && test(LeftValue::Anything),
        (Input::Transfer(_, to, transfer), _) => {
            *to == key && transfer.may_be_of_text() && test(LeftValue::Anything)
        }
        (
            Input::Set(other, written) | Input::Exchange(other, written) | Input::SetIfAbsent(other, written),
            _,
        ) => *other == key && test(LeftValue::Whole(written)),
        (Input::SetMany(pairs), _) => pairs
            .iter()
            .rfind(|(other, _)| *other == key)
            .is_some_and(|(_, written)| test(LeftValue::Whole(written))),
        (Input::Append(other, suffix), _) => *other == key && test(LeftValue::Suffix(suffix)),
        (Input::Increment(other, _), told) => {
            let sum = match told {
                Some(Output::Number(sum)) => Some(*sum),
                _ => None,
            };
            *other == key && test(LeftValue::Sum(sum))
        }
        (Input::Batch(parts), told) => match last_sight(parts, told, key) {
            Some(value) => value.is_some_and(|value| test(LeftValue::Whole(value))),
            None => parts.iter().any(|part| may_leave(part, None, key, test)),
        },
        (Input::Conditional(_, parts), _) => parts.iter().any(|part| may_leave(part, None, key, test)),
    }
}

/// True if `operation` may leave nothing at `key` where there was something.
fn may_remove(input: &Input, key: u32) -> bool {
    match input {
        Input::Delete(other) | Input::Expire(other, _) => *other == key,
        Input::Clear(keys) | Input::LifetimeEnds(keys, _) => keys.contains(&key),
        Input::Collection(other, operation) => *other == key && operation.may_remove(),
        Input::Rename(from, _) => *from == key,
        Input::Transfer(from, to, transfer) => {
            (*from == key && transfer.may_empty_source()) || (*to == key && transfer.may_empty_target())
        }
        Input::Batch(parts) | Input::Conditional(_, parts) => parts.iter().any(|part| may_remove(part, key)),
        _ => false,
    }
}

/// What a batch showed of `key` at its end, if it did.
fn last_sight<'v>(parts: &[Input], told: Option<&'v Output>, key: u32) -> Option<Option<&'v [u8]>> {
    let Some(Output::Batch(told)) = told else { return None };
    match (parts.last()?, told.last()?) {
        (Input::Get(last), Output::Value(value)) if *last == key => Some(value.as_deref()),
        _ => None,
    }
}

/// True if after this operation the key holds another value than before, or the same only because
/// [`may_leave`] or [`may_remove`] counts it among the causes of that value.
fn surely_changes(operation: &Placeable<'_>, loose: bool) -> bool {
    let Some(told) = operation.told.filter(|_| !operation.may_be_of_wrong_type) else { return false };
    match (&operation.operation.input, told) {
        (_, Output::WrongType) => false,
        (
            Input::Set(..) | Input::SetMany(_) | Input::Exchange(..) | Input::Delete(_) | Input::Clear(_),
            _,
        )
        | (Input::SetIfAbsent(..), Output::Flag(true)) => !operation.inert,
        (Input::Append(_, suffix), _) => !suffix.is_empty(),
        (Input::Increment(_, delta), Output::Number(_)) => *delta != 0 && !loose,
        _ => false,
    }
}

/// Draws the conclusions from one link; true if there were any.
fn narrow_around(operations: &mut [Placeable<'_>], link: &Link, changers: &[usize]) -> bool {
    let Link { writer, observer, loose } = *link;
    let mut narrowed = precede(operations, writer, observer);
    for other in changers.iter().copied() {
        if other == writer || other == observer || !surely_changes(&operations[other], loose) {
            continue;
        }
        if operations[writer].completed < operations[other].invoked {
            narrowed |= precede(operations, observer, other);
        }
        if operations[other].completed < operations[observer].invoked {
            narrowed |= precede(operations, other, writer);
        }
    }
    narrowed
}

/// Notes that one operation took effect before another; true if that was news.
fn precede(operations: &mut [Placeable<'_>], first: usize, second: usize) -> bool {
    let (invoked, completed) = (operations[first].invoked, operations[second].completed);
    let news = operations[first].completed > completed || operations[second].invoked < invoked;
    operations[first].completed = operations[first].completed.min(completed);
    operations[second].invoked = operations[second].invoked.max(invoked);
    news
}

fn extend_reach(input: &Input, key: u32, (down, up): &mut (i64, i64)) {
    match input {
        Input::Increment(other, delta) if *other == key => {
            *down = down.saturating_add((*delta).min(0));
            *up = up.saturating_add((*delta).max(0));
        }
        Input::Batch(parts) | Input::Conditional(_, parts) => {
            for part in parts {
                let mut reach = (*down, *up);
                extend_reach(part, key, &mut reach);
                (*down, *up) = reach;
            }
        }
        _ => {}
    }
}

/// Visits what an operation must have found, given its answer.
fn shown(input: &Input, told: &Output, has_collections: bool, visit: &mut dyn FnMut(u32, Option<Vec<u8>>)) {
    match (input, told) {
        (Input::Get(key) | Input::Exchange(key, _), Output::Value(value)) => visit(*key, value.clone()),
        (Input::GetMany(keys), Output::Values(values)) => {
            // Of a collection nothing is shown.
            let tells = |(_, value): &(&u32, &Option<Vec<u8>>)| value.is_some() || !has_collections;
            keys.iter().zip(values).filter(tells).for_each(|(key, value)| visit(*key, value.clone()));
        }
        (Input::SetIfAbsent(key, _), Output::Flag(true)) | (Input::Delete(key), Output::Flag(false)) => {
            visit(*key, None);
        }
        (Input::Count(keys), Output::Number(0)) => keys.iter().for_each(|key| visit(*key, None)),
        (Input::List(keys), Output::Keys(present)) => {
            keys.iter().filter(|key| !present.contains(key)).for_each(|key| visit(*key, None));
        }
        // A sum equal to the increment may come from nothing.
        (Input::Increment(key, delta), Output::Number(sum)) if sum != delta => {
            visit(*key, Some((i128::from(*sum) - i128::from(*delta)).to_string().into_bytes()));
        }
        _ => {}
    }
}

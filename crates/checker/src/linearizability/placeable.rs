//! What a search must know of one operation.

use crate::history::{Input, Operation, Outcome, Output};
use crate::transfer::Transfer;

/// A set of keys as bits. With more than 64 keys in one component several share a bit: a mask then
/// stands for a larger set, which costs pruning and never correctness (see [`Placeable::erases`]).
pub(super) type KeyMask = u64;

/// A key that must not be changed between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    /// The position of the key.
    pub(super) at: u32,
    /// Increments are allowed.
    pub(super) loose: bool,
}

/// An operation that may have a place in the order.
pub(super) struct Placeable<'h> {
    /// Its position in the history.
    pub(super) number: usize,
    /// As recorded.
    pub(super) operation: &'h Operation,
    /// It took effect at this time or later.
    pub(super) invoked: u64,
    /// It took effect at this time or earlier; never, if nobody knows.
    pub(super) completed: u64,
    /// What the client was told; `None` if nobody knows whether it took effect. (One whose effect was
    /// seen counts as if its client had been told that it is done.)
    pub(super) told: Option<&'h Output>,
    /// Values that it must have found; only an operation on one key has any.
    pub(super) finds: Vec<Vec<u8>>,
    /// What others must find as this operation left it, once for each of them: until they have their
    /// places the key is locked.
    pub(super) opens: Vec<Lock>,
    /// What it must find as some one operation left it.
    pub(super) closes: Vec<Lock>,
    /// The keys that it increments, among other things perhaps.
    pub(super) increments: KeyMask,
    /// The keys it touches, as positions among the component's keys, sorted.
    pub(super) touched: Vec<u32>,
    /// The keys it touches.
    pub(super) keys: KeyMask,
    /// The keys whose old value decides what it does or whether the answer is right.
    pub(super) observes: KeyMask,
    /// Those of the observed keys whose old value the answer does not give away in full: it may find
    /// one there that nobody ever saw.
    pub(super) blurred: KeyMask,
    /// Those of the blurred keys that the answer still tells something about: a length, a flag.
    pub(super) told_of: KeyMask,
    /// The keys it overwrites without looking. Empty where masks are inexact.
    pub(super) erases: KeyMask,
    /// With this answer it changed nothing, wherever its place.
    pub(super) inert: bool,
    /// It may have changed nothing, because it found a value of another type.
    pub(super) may_be_of_wrong_type: bool,
    /// Acknowledged operations that must have their place before it, by their position in the component.
    pub(super) follows: Vec<u32>,
    /// For an unknown operation: the one before it with the same input. Of two that differ only in
    /// their invocation the earlier one may always stand for the later.
    pub(super) twin: Option<u32>,
}

impl<'h> Placeable<'h> {
    /// An operation on some of these keys; `has_collections` tells whether any of them may hold a collection.
    pub(super) fn new(number: usize, operation: &'h Operation, keys: &[u32], has_collections: bool) -> Self {
        let (completed, told) = match &operation.outcome {
            Outcome::Acknowledged { completed, output } => (*completed, Some(output)),
            Outcome::Failed | Outcome::Unknown => (u64::MAX, None),
        };
        let mut touched = Vec::new();
        operation.input.for_each_key(&mut |key| touched.push(position(keys, key)));
        touched.sort_unstable();
        touched.dedup();
        let (mut observes, mut blurred, mut told_of) = (0, 0, 0);
        observed(&operation.input, told, &mut |key, sight| {
            let key = bit(position(keys, key));
            observes |= key;
            blurred |= if sight == Sight::Whole { 0 } else { key };
            told_of |= if sight == Sight::Part { key } else { 0 };
        });
        let is_told = told.is_some_and(|told| !matches!(told, Output::Done | Output::Batch(_)));
        let may_be_of_wrong_type = has_collections && !is_told && is_about_text(&operation.input);
        if may_be_of_wrong_type {
            operation.input.for_each_key(&mut |key| {
                observes |= bit(position(keys, key));
                blurred |= bit(position(keys, key));
            });
        }
        let mut incremented = 0;
        increments(&operation.input, &mut |key| incremented |= bit(position(keys, key)));
        let all = touched.iter().fold(0, |mask, at| mask | bit(*at));
        Self {
            number,
            operation,
            invoked: operation.invoked,
            completed,
            told,
            finds: Vec::new(),
            opens: Vec::new(),
            closes: Vec::new(),
            increments: incremented,
            keys: all,
            observes,
            blurred,
            told_of,
            erases: if keys.len() <= 64 { all & !observes } else { 0 },
            inert: told.is_some_and(|told| is_inert(&operation.input, told)),
            may_be_of_wrong_type,
            touched,
            follows: Vec::new(),
            twin: None,
        }
    }
}

pub(super) const fn bit(position: u32) -> KeyMask {
    1 << (position % 64)
}

pub(super) fn position(keys: &[u32], key: u32) -> u32 {
    // Every key of the component's operations is in the list.
    keys.partition_point(|other| *other < key) as u32
}

/// What an answer shows of the value that an operation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// All of it.
    Whole,
    /// Something: a length, whether there was one.
    Part,
    /// Nothing; only the effect depends on it.
    Nothing,
}

/// Visits the keys whose old value matters to the effect or the answer.
fn observed(input: &Input, told: Option<&Output>, visit: &mut dyn FnMut(u32, Sight)) {
    let part = if told.is_none_or(|told| *told == Output::Done) { Sight::Nothing } else { Sight::Part };
    match (input, told) {
        // A sum tells the integer before it, so it was no text.
        (Input::Get(key), _)
        | (Input::Exchange(key, _), Some(Output::Value(_)))
        | (Input::Increment(key, _), Some(Output::Number(_))) => visit(*key, Sight::Whole),
        (Input::GetMany(keys), _) => keys.iter().for_each(|key| visit(*key, Sight::Whole)),
        (Input::Count(keys) | Input::List(keys), _) => keys.iter().for_each(|key| visit(*key, part)),
        (Input::Delete(key), Some(Output::Flag(_)))
        | (
            Input::Increment(key, _)
            | Input::Length(key)
            | Input::SetIfAbsent(key, _)
            | Input::Expire(key, _)
            | Input::Collection(key, _)
            | Input::Lifetime(key, _)
            | Input::Persist(key)
            | Input::Append(key, _),
            _,
        )
        | (Input::Exchange(key, _), Some(Output::WrongType)) => visit(*key, part),
        (Input::Rename(from, to), _) => {
            visit(*from, part);
            // If there is nothing to be moved, what was there stays.
            visit(*to, Sight::Nothing);
        }
        (Input::Transfer(from, to, _), _) => [from, to].into_iter().for_each(|key| visit(*key, part)),
        (Input::LifetimeEnds(keys, _), _) => keys.iter().for_each(|key| visit(*key, Sight::Nothing)),
        // If the condition does not hold, what was there stays.
        (conditional @ Input::Conditional(..), _) => {
            conditional.for_each_key(&mut |key| visit(key, part));
        }
        (
            Input::Set(..) | Input::SetMany(_) | Input::Exchange(..) | Input::Delete(_) | Input::Clear(_),
            _,
        ) => {}
        // What a part shows may be the work of the part before it.
        (Input::Batch(parts), told) => {
            for (index, part) in parts.iter().enumerate() {
                let told = match told {
                    Some(Output::Batch(outputs)) => outputs.get(index),
                    _ => None,
                };
                let dim = |sight| if sight == Sight::Nothing { sight } else { Sight::Part };
                observed(part, told, &mut |key, sight| visit(key, dim(sight)));
            }
        }
    }
}

/// True if it does nothing to a key that holds a collection, or if one of its parts does so.
fn is_about_text(input: &Input) -> bool {
    match input {
        Input::Exchange(..) | Input::Append(..) => true,
        Input::Batch(parts) | Input::Conditional(_, parts) => parts.iter().any(is_about_text),
        _ => false,
    }
}

fn increments(input: &Input, visit: &mut dyn FnMut(u32)) {
    match input {
        Input::Increment(key, _) => visit(*key),
        Input::Batch(parts) | Input::Conditional(_, parts) => {
            parts.iter().for_each(|part| increments(part, visit));
        }
        _ => {}
    }
}

/// True if an operation that gave this answer changed nothing.
fn is_inert(input: &Input, told: &Output) -> bool {
    match (input, told) {
        (Input::Get(_) | Input::GetMany(_) | Input::Length(_) | Input::Count(_) | Input::List(_), _)
        | (_, Output::WrongType)
        | (
            Input::SetIfAbsent(..)
            | Input::Delete(_)
            | Input::Lifetime(..)
            | Input::Persist(_)
            | Input::Conditional(..),
            Output::Flag(false),
        )
        | (Input::Increment(..) | Input::Rename(..), Output::Error) => true,
        (Input::Collection(_, operation), told) => operation.is_inert(told),
        (Input::Transfer(..), told) => Transfer::is_inert(told),
        (Input::Batch(parts) | Input::Conditional(_, parts), Output::Batch(outputs)) => {
            parts.iter().zip(outputs).all(|(part, told)| is_inert(part, told))
        }
        _ => false,
    }
}

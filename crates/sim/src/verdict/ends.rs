//! Where the ends of lifetimes belong in the order that the log suggests.
//!
//! The log ends a lifetime by log time. A read may go by the clock of a member, which can be ahead of
//! log time: such a read finds a key gone that the log still has. This module moves the end of that
//! lifetime before the first read that needs it, and moves a read that saw the value before the end.
//! The result is a suggestion like the one it began with: the checker judges it.

use super::{Told, Translated, keys_of};
use std::collections::BTreeSet;
use syros_checker::history::{Input, Output};
use syros_checker::sequential::{KeyValues, agrees, apply};
use syros_checker::value::Value;

/// The suggested order with the ends of lifetimes where the answers to reads need them.
pub(super) fn place_ends(operations: &[Translated], order: &[usize]) -> Vec<usize> {
    let is_end = |number: &usize| operations[*number].input.is_end();
    let mut pending: Vec<usize> = order.iter().copied().filter(is_end).collect();
    let in_order: BTreeSet<usize> = pending.iter().copied().collect();
    // The log does not say where these ends are.
    pending.extend((0..operations.len()).filter(|number| is_end(number) && !in_order.contains(number)));
    let mut walk =
        Walk { operations, order, pending, store: KeyValues::new(), placed: Vec::new(), removed: Vec::new() };
    for position in 0..order.len() {
        walk.visit(position);
    }
    walk.placed
}

/// A value that the end of its lifetime removed.
struct Removed {
    /// The place of the end in the new order.
    at: usize,
    key: u32,
    value: Value,
}

/// A walk through the suggested order, which executes every operation.
struct Walk<'a> {
    operations: &'a [Translated],
    order: &'a [usize],
    /// The ends of lifetimes that the walk has not placed yet: in the order of the log, then those that
    /// the log does not have.
    pending: Vec<usize>,
    /// The data after the operations placed so far.
    store: KeyValues,
    /// The new order.
    placed: Vec<usize>,
    /// The values that ends removed, in the new order.
    removed: Vec<Removed>,
}

impl Walk<'_> {
    fn visit(&mut self, position: usize) {
        let number = self.order[position];
        let operation = &self.operations[number];
        match (&operation.input, &operation.told) {
            (input, _) if input.is_end() => self.end(number),
            (input, Told::Answer { at, output }) if input.is_read() => {
                self.read(position, *at, output);
            }
            (input, _) => {
                apply(&mut self.store, input);
                self.placed.push(number);
            }
        }
    }

    /// Places the end of a lifetime, unless the walk has done so.
    fn end(&mut self, number: usize) {
        let Some(index) = self.pending.iter().position(|pending| *pending == number) else { return };
        self.pending.remove(index);
        if let Some((key, value)) = self.alive(number) {
            self.store.remove(&key);
            self.removed.push(Removed { at: self.placed.len(), key, value });
        }
        self.placed.push(number);
    }

    /// The key and the value of a lifetime, if the data has that value.
    fn alive(&self, end: usize) -> Option<(u32, Value)> {
        let found = |key: &u32| Some((*key, self.store.get(key)?.clone()));
        match &self.operations[end].input {
            Input::Expire(key, text) => found(key).filter(|(_, value)| value.as_text() == Some(text)),
            Input::LifetimeEnds(keys, lifetime) => {
                keys.iter().filter_map(found).find(|(_, value)| value.lifetime == Some(*lifetime))
            }
            _ => None,
        }
    }

    /// Places a read that got this answer at this moment.
    fn read(&mut self, position: usize, answered_at: u64, told: &Output) {
        let number = self.order[position];
        let input = &self.operations[number].input;
        if !agrees(told, &apply(&mut self.store, input)) {
            if let Some(ends) = self.ends_before(position, answered_at, told) {
                ends.into_iter().for_each(|end| self.end(end));
            } else if let Some(at) = self.place_before_end(input, told) {
                self.placed.insert(at, number);
                self.removed
                    .iter_mut()
                    .filter(|removed| removed.at >= at)
                    .for_each(|removed| removed.at += 1);
                return;
            }
        }
        self.placed.push(number);
    }

    /// The ends of lifetimes that explain the answer to a read if they come before that read.
    fn ends_before(&self, position: usize, answered_at: u64, told: &Output) -> Option<Vec<usize>> {
        let input = &self.operations[self.order[position]].input;
        let keys = keys_of(input);
        let mut data = self.store.clone();
        let mut chosen = Vec::new();
        let mut doubtful = Vec::new();
        for end in &self.pending {
            // No lifetime ends before true time allows it.
            let may_end = self.operations[*end].invoked <= answered_at;
            let Some((key, _)) = self.alive(*end).filter(|(key, _)| may_end && keys.contains(key)) else {
                continue;
            };
            match shows(input, told, key) {
                Some(true) => {}
                Some(false) => {
                    data.remove(&key);
                    chosen.push(*end);
                }
                None => doubtful.push((*end, key)),
            }
        }
        // A count does not say which keys are gone. The lifetimes that end first are likely, but no value
        // that a read saw which began later; and rather none that a concurrent read saw.
        let shown = |key: u32| self.last_shown_after(position, key);
        doubtful.retain(|(_, key)| shown(*key).is_none_or(|invoked| invoked <= answered_at));
        doubtful.sort_by_key(|(_, key)| shown(*key).is_some());
        let mut doubtful = doubtful.into_iter();
        while !agrees(told, &apply(&mut data, input)) {
            let (end, key) = doubtful.next()?;
            data.remove(&key);
            chosen.push(end);
        }
        Some(chosen)
    }

    /// When the last of the reads that follow in the suggested order and found the key was invoked. Only
    /// those count that no update of the key precedes.
    fn last_shown_after(&self, position: usize, key: u32) -> Option<u64> {
        let later = self.order[position + 1..].iter().map(|number| &self.operations[*number]);
        let until =
            later.take_while(|other| !(is_update(&other.input) && keys_of(&other.input).contains(&key)));
        let shown = until.filter(|other| match &other.told {
            Told::Answer { output, .. } => shows(&other.input, output, key) == Some(true),
            Told::Failed | Told::Nothing => false,
        });
        shown.map(|other| other.invoked).max()
    }

    /// The place in the new order of an end before which the read's answer is right.
    fn place_before_end(&self, input: &Input, told: &Output) -> Option<usize> {
        let keys = keys_of(input);
        let mut data = self.store.clone();
        let mut from = self.placed.len();
        for removed in self.removed.iter().rev() {
            let changes = |number: &usize| {
                let passed = &self.operations[*number].input;
                is_update(passed) && super::share_a_key(&keys_of(passed), &keys)
            };
            if self.placed[removed.at..from].iter().any(changes) {
                return None;
            }
            from = removed.at;
            data.insert(removed.key, removed.value.clone());
            if agrees(told, &apply(&mut data, input)) {
                return Some(removed.at);
            }
        }
        None
    }
}

/// True for an operation that a client asked for and that may change something.
fn is_update(input: &Input) -> bool {
    !input.is_read() && !input.is_end()
}

/// Whether the answer to a read shows that the key has a value, or that it has none; `None` if the
/// answer does not tell.
fn shows(input: &Input, told: &Output, key: u32) -> Option<bool> {
    match (input, told) {
        (Input::Get(read), Output::Value(value)) => (*read == key).then_some(value.is_some()),
        (Input::Get(read), Output::WrongType) => (*read == key).then_some(true),
        (Input::GetMany(keys), Output::Values(values)) => {
            let mut pairs = keys.iter().zip(values);
            // A key without text may hold a collection.
            pairs.find(|(read, _)| **read == key).and_then(|(_, value)| value.is_some().then_some(true))
        }
        (Input::List(_), Output::Keys(keys)) => Some(keys.contains(&key)),
        (Input::Collection(read, _), told) if *read == key => told.shows_a_collection(),
        (Input::Batch(parts), Output::Batch(outputs)) => {
            parts.iter().zip(outputs).find_map(|(part, output)| shows(part, output, key))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{decide, suggestion_holds};

    /// The keys of these histories.
    const ALL: [u32; 3] = [1, 2, 3];

    fn answered(invoked: u64, input: Input, at: u64, output: Output) -> Translated {
        let (is_look, told) = (input.is_read(), Told::Answer { at, output });
        Translated { client: 1, invoked, input, told, sent: None, ends_at: None, is_look }
    }

    fn set(invoked: u64, key: u32, value: &str, at: u64) -> Translated {
        answered(invoked, Input::Set(key, value.into()), at, Output::Done)
    }

    fn get(invoked: u64, key: u32, value: Option<&str>, at: u64) -> Translated {
        answered(invoked, Input::Get(key), at, Output::Value(value.map(Into::into)))
    }

    fn list(invoked: u64, keys: &[u32], at: u64) -> Translated {
        answered(invoked, Input::List(ALL.to_vec()), at, Output::Keys(keys.to_vec()))
    }

    fn count(invoked: u64, number: i64, at: u64) -> Translated {
        answered(invoked, Input::Count(ALL.to_vec()), at, Output::Number(number))
    }

    fn end(invoked: u64, key: u32, value: &str) -> Translated {
        Translated {
            client: u64::MAX,
            invoked,
            input: Input::Expire(key, value.into()),
            told: Told::Nothing,
            sent: None,
            ends_at: None,
            is_look: false,
        }
    }

    /// Values of keys 1 and 2 have a lifetime; key 3 keeps its value. A read by a clock that is ahead
    /// finds key 1 gone before log time ends the lifetime, at the end of the order.
    fn early_read() -> (Vec<Translated>, Vec<usize>) {
        let operations = vec![
            set(0, 1, "a", 2),
            set(4, 2, "b", 6),
            set(8, 3, "c", 10),
            // Both are under way at once; the log has them after the same entry.
            list(20, &[2, 3], 30),
            get(22, 1, Some("a"), 28),
            count(32, 2, 34),
            set(36, 3, "d", 38),
            get(40, 2, Some("b"), 42),
            get(44, 1, None, 46),
            end(15, 1, "a"),
            end(15, 2, "b"),
        ];
        (operations, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    }

    #[test]
    fn a_lifetime_ends_before_the_first_read_that_finds_the_key_gone() {
        let (operations, order) = early_read();
        assert!(suggestion_holds(&operations, &order).is_err());
        let repaired = place_ends(&operations, &order);
        assert_eq!(repaired, [0, 1, 2, 4, 9, 3, 5, 6, 7, 8, 10]);
        assert_eq!(suggestion_holds(&operations, &repaired), Ok(()));
    }

    #[test]
    fn an_end_that_the_log_does_not_have_is_placed_where_a_read_needs_it() {
        let (operations, mut order) = early_read();
        order.retain(|number| *number < 9);
        assert_eq!(suggestion_holds(&operations, &place_ends(&operations, &order)), Ok(()));
    }

    #[test]
    fn a_count_takes_the_end_of_the_value_that_no_later_read_saw() {
        let (mut operations, _) = early_read();
        // The log has the end of the other lifetime first.
        operations[3] = count(20, 2, 30);
        let order = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9];
        assert!(suggestion_holds(&operations, &order).is_err());
        assert_eq!(suggestion_holds(&operations, &place_ends(&operations, &order)), Ok(()));
    }

    #[test]
    fn a_key_that_is_gone_before_its_time_stays_a_violation() {
        let (mut operations, order) = early_read();
        operations[9] = end(31, 1, "a");
        assert!(suggestion_holds(&operations, &place_ends(&operations, &order)).is_err());
        assert!(decide(&operations, &order).is_err_and(|why| why.contains("not linearizable")));
    }

    #[test]
    fn a_key_that_comes_back_stays_a_violation() {
        let (mut operations, order) = early_read();
        operations[8] = get(44, 1, Some("a"), 46);
        assert!(suggestion_holds(&operations, &place_ends(&operations, &order)).is_err());
        assert!(decide(&operations, &order).is_err_and(|why| why.contains("not linearizable")));
    }
}

//! Values as small numbers, and what an operation makes of them, computed once.

use super::component::Component;
use super::placeable::Placeable;
use crate::history::{Input, Output};
use crate::sequential::{KeyValues, agrees, apply, may_become_integer};
use crate::value::integer;
use crate::value::{Content, Value};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A value of some key: a position in the table of values, or [`MISSING`].
pub(super) type ValueId = u32;

/// No value.
pub(super) const MISSING: ValueId = 0;

/// Stands in the table for "the answer would be another one".
const REFUSED: ValueId = ValueId::MAX;

/// Multiply and rotate, after Firefox's hash: the tables are probed a few times for every step, never
/// iterated, and nobody crafts their keys.
#[derive(Default)]
pub(super) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits select the bucket and the multiplication leaves the entropy in the high ones.
        self.0 ^ (self.0 >> 32)
    }
}

/// Builds [`QuickHasher`]s.
pub(super) type Quick = BuildHasherDefault<QuickHasher>;

/// The values met so far, and the transitions between them.
pub(super) struct Values {
    /// Values by id; the first stands for [`MISSING`].
    known: Vec<Value>,
    ids: HashMap<Value, ValueId, Quick>,
    /// For an operation on one key: (operation, value) to the new value or [`REFUSED`].
    single: HashMap<(u32, ValueId), ValueId, Quick>,
    /// For operations on several keys: operation and values to the new values; empty if refused.
    several: HashMap<Box<[u32]>, Box<[ValueId]>, Quick>,
    /// For every key, the byte that unseen values are made of. See [`Values::canonical`].
    filler: Vec<Option<u8>>,
    /// For every key, what its integers were.
    integers: Vec<Integers>,
    scratch: Vec<u32>,
}

impl Values {
    pub(super) fn new(component: &Component<'_>) -> Self {
        let filler = component.shown.iter().map(|shown| filler(shown)).collect();
        Self {
            known: vec![Value::text(Vec::new())],
            ids: HashMap::default(),
            single: HashMap::default(),
            several: HashMap::default(),
            filler,
            integers: (0..component.keys.len()).map(|at| Integers::of(component, at as u32)).collect(),
            scratch: Vec::new(),
        }
    }

    /// What `operation`, which is number `index`, makes of `state`: the new values of the keys it
    /// touches go into `new`. False, and nothing in `new`, if the answer would be another one than
    /// the client was told.
    pub(super) fn step(
        &mut self,
        component: &Component<'_>,
        index: u32,
        state: &[ValueId],
        new: &mut Vec<ValueId>,
    ) -> bool {
        new.clear();
        let operation = &component.operations[index as usize];
        if let [at] = operation.touched[..] {
            let old = state[at as usize];
            let value = match self.single.get(&(index, old)) {
                Some(value) => *value,
                None => {
                    let value = self.execute(component, operation, state).map_or(REFUSED, |new| new[0]);
                    self.single.insert((index, old), value);
                    value
                }
            };
            if value != REFUSED {
                new.push(value);
            }
            return value != REFUSED;
        }
        self.scratch.clear();
        self.scratch.push(index);
        self.scratch.extend(operation.touched.iter().map(|at| state[*at as usize]));
        if let Some(values) = self.several.get(self.scratch.as_slice()) {
            new.extend_from_slice(values);
        } else {
            let values = self.execute(component, operation, state).unwrap_or_default();
            new.extend_from_slice(&values);
            self.several.insert(self.scratch.as_slice().into(), values.into());
        }
        !new.is_empty()
    }

    fn execute(
        &mut self,
        component: &Component<'_>,
        operation: &Placeable<'_>,
        state: &[ValueId],
    ) -> Option<Vec<ValueId>> {
        let mut store = KeyValues::new();
        for at in &operation.touched {
            let old = state[*at as usize];
            if old != MISSING {
                store.insert(component.keys[*at as usize], self.known[old as usize].clone());
            }
        }
        if let [at] = operation.touched[..] {
            let found = store.get(&component.keys[at as usize]).and_then(Value::as_text);
            if operation.finds.iter().any(|value| Some(value) != found) {
                return None;
            }
        }
        let answer = apply(&mut store, &operation.operation.input);
        if operation.told.is_some_and(|told| !agrees(told, &answer)) {
            return None;
        }
        let new = |at: &u32| match store.remove(&component.keys[*at as usize]) {
            Some(value) => {
                let value = self.canonical(component, *at, value);
                self.id(value)
            }
            None => MISSING,
        };
        Some(operation.touched.iter().map(new).collect())
    }

    /// A value that no client was shown, with or without something appended, and that is no part of
    /// an integer either, is known only by its length: every operation treats all such values of a
    /// key alike. One of them stands for all, else the orders of appends would all be different.
    fn canonical(&self, component: &Component<'_>, at: u32, value: Value) -> Value {
        let (Some(filler), Some(text)) = (self.filler[at as usize], value.as_text()) else { return value };
        let shown = &component.shown[at as usize];
        let next = shown.partition_point(|other| **other < **text);
        let is_shown = shown.get(next).is_some_and(|other| other.starts_with(text));
        if is_shown || may_become_integer(text) {
            return value;
        }
        Value { content: Content::Text(vec![filler; text.len()]), ..value }
    }

    /// True if two values differ in their lifetimes at most.
    pub(super) fn have_same_content(&self, one: ValueId, other: ValueId) -> bool {
        let is_missing = |value| value == MISSING;
        one == other
            || (!is_missing(one)
                && !is_missing(other)
                && self.known[one as usize].content == self.known[other as usize].content)
    }

    /// True if `value` of the key at position `at` is one that no client was shown, nor a beginning
    /// of one.
    pub(super) fn is_unseen(&self, at: u32, value: ValueId) -> bool {
        let first = self.known[value as usize].as_text().and_then(|text| text.first());
        first.is_some() && first == self.filler[at as usize].as_ref()
    }

    /// True if it is unlikely that anybody was shown `value` of the key at position `at`, or something
    /// made of it. A guess where integers are appended to.
    pub(super) fn is_unlikely(&self, component: &Component<'_>, at: u32, value: ValueId) -> bool {
        // Nobody is shown all of a collection but by chance: any may be a step towards what somebody saw.
        let Some(bytes) = self.known[value as usize].as_text() else { return false };
        let Some(number) = integer(bytes) else { return self.is_unseen(at, value) };
        let shown = &component.shown[at as usize];
        let next = shown.partition_point(|other| **other < **bytes);
        let is_shown = shown.get(next).is_some_and(|other| other.starts_with(bytes));
        !is_shown && !self.integers[at as usize].may_come_of(number)
    }

    fn id(&mut self, value: Value) -> ValueId {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        let id = self.known.len() as ValueId;
        self.known.push(value.clone());
        self.ids.insert(value, id);
        id
    }
}

/// The integers that some client was shown of a key, and how far increments may have moved one.
struct Integers {
    shown: Vec<i64>,
    down: i64,
    up: i64,
}

impl Integers {
    fn of(component: &Component<'_>, at: u32) -> Self {
        let mut integers = Self { shown: Vec::new(), down: 0, up: 0 };
        integers.shown.extend(component.shown[at as usize].iter().filter_map(|value| integer(value)));
        for placeable in component.operations.iter().filter(|placeable| placeable.touched.contains(&at)) {
            integers.record(&placeable.operation.input, placeable.told, component.keys[at as usize]);
        }
        integers.shown.sort_unstable();
        integers
    }

    fn record(&mut self, input: &Input, told: Option<&Output>, key: u32) {
        match (input, told) {
            (Input::Increment(other, delta), told) if *other == key => {
                if let Some(Output::Number(sum)) = told {
                    self.shown.push(*sum);
                }
                self.up = self.up.saturating_add((*delta).max(0));
                self.down = self.down.saturating_add((*delta).min(0));
            }
            (Input::Batch(parts), Some(Output::Batch(told))) => {
                parts.iter().zip(told).for_each(|(part, told)| self.record(part, Some(told), key));
            }
            (Input::Batch(parts) | Input::Conditional(_, parts), _) => {
                parts.iter().for_each(|part| self.record(part, None, key));
            }
            _ => {}
        }
    }

    /// True if increments may have made a shown integer of this one.
    fn may_come_of(&self, number: i64) -> bool {
        let next = self.shown.partition_point(|shown| *shown < number.saturating_add(self.down));
        self.shown.get(next).is_some_and(|shown| *shown <= number.saturating_add(self.up))
    }
}

/// A byte that begins no shown value and no integer, if there is one.
fn filler(shown: &[&[u8]]) -> Option<u8> {
    (0..=u8::MAX)
        .find(|byte| !may_become_integer(&[*byte]) && !shown.iter().any(|value| value.first() == Some(byte)))
}

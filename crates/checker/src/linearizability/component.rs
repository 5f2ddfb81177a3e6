//! A history taken apart: the operations on one set of keys, and what a search must know of each.

use super::constraints;
use super::placeable::{KeyMask, Placeable, bit, position};
use crate::history::{History, Input, Operation, Outcome, Output};
use std::collections::{BTreeMap, HashMap};

/// The operations on one set of keys that no other operation joins to further keys.
pub(super) struct Component<'h> {
    /// The keys, sorted.
    pub(super) keys: Vec<u32>,
    /// Acknowledged operations by invocation, then unknown ones by invocation.
    pub(super) operations: Vec<Placeable<'h>>,
    /// How many are acknowledged.
    pub(super) acknowledged: usize,
    /// For every key, the values that some client was shown in full, sorted.
    pub(super) shown: Vec<Vec<&'h [u8]>>,
    /// Values are moved or have lifetimes: which of them were shown does not tell which of them matter.
    pub(super) is_intricate: bool,
    /// The keys that values are moved from and to, and those of conditional operations: what one of them holds may come from
    /// any other, or depend on it.
    pub(super) moved: KeyMask,
}

impl<'h> Component<'h> {
    /// Takes a history apart. Leaves out what has no place in any order or could have any place:
    /// refused operations, and reads without an answer.
    pub(super) fn split(history: &'h History) -> Vec<Self> {
        let relevant = |operation: &&Operation| match operation.outcome {
            Outcome::Acknowledged { .. } => true,
            Outcome::Unknown => !operation.input.is_read(),
            Outcome::Failed => false,
        };
        let mut joined = DisjointKeySets::default();
        for operation in history.operations().iter().filter(relevant) {
            let mut first = None;
            operation.input.for_each_key(&mut |key| {
                let representative = *first.get_or_insert(key);
                joined.join(representative, key);
            });
        }
        let mut members: BTreeMap<u32, Vec<(usize, &'h Operation)>> = BTreeMap::new();
        for (number, operation) in history.operations().iter().enumerate().filter(|(_, it)| relevant(it)) {
            let mut root = None;
            operation.input.for_each_key(&mut |key| root = Some(joined.root(key)));
            // An operation without keys constrains nothing.
            if let Some(root) = root {
                members.entry(root).or_default().push((number, operation));
            }
        }
        members.into_values().map(Self::of).collect()
    }

    fn of(members: Vec<(usize, &'h Operation)>) -> Self {
        let mut keys = Vec::new();
        for (_, operation) in &members {
            operation.input.for_each_key(&mut |key| keys.push(key));
        }
        keys.sort_unstable();
        keys.dedup();
        let (mut is_intricate, mut has_collections) = (false, false);
        for (_, operation) in &members {
            each_part(&operation.input, &mut |part| {
                is_intricate |= matches!(part, Input::Rename(..) | Input::Transfer(..) | Input::Lifetime(..));
                has_collections |= matches!(part, Input::Collection(..) | Input::Transfer(..));
            });
        }
        let place = |(number, operation)| Placeable::new(number, operation, &keys, has_collections);
        let mut operations: Vec<Placeable<'h>> = members.into_iter().map(place).collect();
        let mut moved = 0;
        for placeable in &operations {
            if matches!(placeable.operation.input, Input::Conditional(..)) {
                moved |= placeable.keys;
            }
            each_part(&placeable.operation.input, &mut |part| {
                if let Input::Rename(from, to) | Input::Transfer(from, to, _) = part {
                    moved |= bit(position(&keys, *from)) | bit(position(&keys, *to));
                }
            });
        }
        constraints::narrow(&mut operations, &keys, has_collections);
        operations
            .sort_by_key(|placeable| (placeable.told.is_none(), placeable.invoked, placeable.completed));
        let acknowledged = operations.iter().filter(|placeable| placeable.told.is_some()).count();
        demand_orders(&mut operations[..acknowledged]);
        let mut last_with: HashMap<&Input, u32> = HashMap::new();
        for (index, placeable) in operations.iter_mut().enumerate().skip(acknowledged) {
            placeable.twin = last_with.insert(&placeable.operation.input, index as u32);
        }
        let mut shown = vec![Vec::new(); keys.len()];
        for placeable in &operations[..acknowledged] {
            if let Some(told) = placeable.told {
                collect_shown(&placeable.operation.input, told, &keys, &mut shown);
            }
        }
        // Whether a value is the one that expires, or that a condition is about, matters like whether it is one that somebody
        // saw.
        for placeable in &operations {
            match &placeable.operation.input {
                Input::Expire(key, value) => shown[position(&keys, *key) as usize].push(value),
                Input::Conditional(seen, _) => {
                    let texts = seen.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
                    texts.for_each(|(key, value)| shown[position(&keys, *key) as usize].push(value));
                }
                _ => {}
            }
        }
        if is_intricate {
            // What was shown of one key may have been written to another.
            shown = vec![shown.concat(); keys.len()];
        }
        for values in &mut shown {
            values.sort_unstable();
            values.dedup();
        }
        Self { keys, operations, acknowledged, shown, is_intricate, moved }
    }

    /// True if some outcome is unknown.
    pub(super) fn has_unknown(&self) -> bool {
        self.acknowledged < self.operations.len()
    }
}

/// Visits an operation, or the parts of a batch.
fn each_part(input: &Input, visit: &mut dyn FnMut(&Input)) {
    match input {
        Input::Batch(parts) | Input::Conditional(_, parts) => parts.iter().for_each(visit),
        input => visit(input),
    }
}

/// Finds where the operations are that others must follow. Those without a key in common need no order: nobody sees it.
fn demand_orders(acknowledged: &mut [Placeable<'_>]) {
    if acknowledged.iter().all(|placeable| placeable.operation.follows.is_empty()) {
        return;
    }
    let places: HashMap<usize, usize> =
        acknowledged.iter().enumerate().map(|(at, placeable)| (placeable.number, at)).collect();
    for at in 0..acknowledged.len() {
        let first = acknowledged[at].operation.follows.iter().filter_map(|first| places.get(&first.0));
        let shares_a_key = |first: &&usize| {
            let touched = &acknowledged[**first].touched;
            acknowledged[at].touched.iter().any(|key| touched.binary_search(key).is_ok())
        };
        let follows = first.filter(shares_a_key).map(|first| *first as u32).collect();
        acknowledged[at].follows = follows;
    }
}

fn collect_shown<'h>(input: &'h Input, told: &'h Output, keys: &[u32], shown: &mut [Vec<&'h [u8]>]) {
    let mut show = |key: &u32, value: &'h Option<Vec<u8>>| {
        if let Some(value) = value {
            shown[position(keys, *key) as usize].push(value);
        }
    };
    match (input, told) {
        (Input::Get(key) | Input::Exchange(key, _), Output::Value(value)) => show(key, value),
        (Input::GetMany(asked), Output::Values(values)) => {
            asked.iter().zip(values).for_each(|(key, value)| show(key, value));
        }
        (Input::Batch(parts), Output::Batch(outputs)) => {
            for (part, told) in parts.iter().zip(outputs) {
                collect_shown(part, told, keys, shown);
            }
        }
        _ => {}
    }
}

/// Disjoint sets of keys.
#[derive(Default)]
struct DisjointKeySets {
    parent: BTreeMap<u32, u32>,
}

impl DisjointKeySets {
    fn root(&mut self, key: u32) -> u32 {
        let mut root = key;
        while let Some(parent) = self.parent.get(&root).filter(|parent| **parent != root) {
            root = *parent;
        }
        self.parent.insert(key, root);
        root
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        // The smaller key leads, so that components come out sorted by their smallest key.
        self.parent.insert(a.max(b), a.min(b));
    }
}

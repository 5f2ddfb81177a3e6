//! What is left of values that nobody needs any more, for whoever must not take long over giving it back.

use crate::Value;
use crate::by_hash::Form;
use crate::field_expiries::FieldExpiries;
use crate::hash::Hash;
use crate::list::{self, List};
use crate::parts::{Tree, ValueParts};
use crate::set::Set;
use crate::sorted_set::{self, SortedSet};
use crate::stream::{State, Stream};
use core::fmt;
use syros_tree::{ByBytes, ByHash, ById, ByPosition, ByScore, Dismantle, Members, Pairs};

/// The trees of large collections that nobody needs any more. Dropping it gives all their memory back at once;
/// [`step`](Self::step) does so a few nodes at a time.
#[derive(Default)]
pub struct Garbage {
    pairs: Dismantle<ByHash<Pairs>>,
    members: Dismantle<ByHash<Members>>,
    elements: Dismantle<ByPosition>,
    scores: Dismantle<ByScore>,
    entries: Dismantle<ById>,
    records: Dismantle<ByBytes>,
}

impl Garbage {
    /// Takes a value. What has no tree is dropped at once.
    pub fn add(&mut self, value: Value) {
        match value {
            Value::Hash(Hash(Form::Tree(large))) => {
                self.pairs.add(large.tree);
                self.add_expiries(large.beside);
            }
            Value::List(List(list::Form::Tree(tree))) => self.elements.add(*tree),
            Value::Set(Set(Form::Tree(large))) => self.members.add(large.tree),
            Value::SortedSet(SortedSet(sorted_set::Form::Tree(trees))) => {
                self.scores.add(trees.by_score);
                self.pairs.add(trees.members);
            }
            Value::Stream(stream) => self.add_stream(stream),
            Value::Hash(Hash(Form::Packed(_)))
            | Value::List(List(list::Form::Packed(_)))
            | Value::Set(Set(Form::Packed(_)))
            | Value::SortedSet(SortedSet(sorted_set::Form::Packed(_)))
            | Value::String(_) => {}
        }
    }

    /// Takes a collection that was being written.
    pub fn add_parts(&mut self, parts: ValueParts) {
        match parts.into_tree() {
            Tree::Hash(tree, expiries) => {
                self.pairs.add(tree);
                self.add_expiries(expiries);
            }
            Tree::List(tree) => self.elements.add(tree),
            Tree::Set(tree) => self.members.add(tree),
            Tree::SortedSet(tree) => self.scores.add(tree),
            Tree::Stream(stream) => self.add_stream(stream),
        }
    }

    fn add_expiries(&mut self, expiries: Option<Box<FieldExpiries>>) {
        if let Some(expiries) = expiries {
            self.add(expiries.into_sorted_set().into());
        }
    }

    fn add_stream(&mut self, stream: Stream) {
        let State { entries, records, index, .. } = *stream.0;
        self.entries.add(entries);
        self.records.add(records);
        self.records.add(index);
    }

    /// Bytes of memory that are left, those included that clones of the values hold.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let collections =
            self.pairs.bytes() + self.members.bytes() + self.elements.bytes() + self.scores.bytes();
        collections + self.entries.bytes() + self.records.bytes()
    }

    /// Gives back at most `nodes` nodes, of about 1 KiB each; a large one counts as several. False once there are none
    /// left. What a clone holds is passed over.
    pub fn step(&mut self, mut nodes: usize) -> bool {
        self.pairs.spend(&mut nodes);
        self.members.spend(&mut nodes);
        self.elements.spend(&mut nodes);
        self.scores.spend(&mut nodes);
        self.entries.spend(&mut nodes);
        self.records.spend(&mut nodes);
        self.bytes() > 0
    }
}

/// A clone is empty: nobody needs two of what nobody needs.
impl Clone for Garbage {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Garbage").field("bytes", &self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that is a tree.
    fn large(fields: u32) -> Hash {
        let mut hash = Hash::default();
        for number in 0..fields {
            hash.set(&number.to_be_bytes(), &[7; 20]);
        }
        assert!(!hash.is_packed());
        hash
    }

    #[test]
    fn trees_go_in_bounded_steps() {
        const NODES: usize = 10;
        let mut garbage = Garbage::default();
        assert!(!garbage.step(NODES), "there is nothing");
        let hash = large(20_000);
        let bytes = hash.memory_bytes() as u64;
        garbage.add(hash.into());
        assert!((bytes - 100..bytes).contains(&garbage.bytes()));
        let (mut before, mut steps) = (garbage.bytes(), 0);
        while garbage.step(NODES) {
            // No node is longer than a node with the most children.
            assert!(before - garbage.bytes() <= NODES as u64 * 4096, "too much at once");
            (before, steps) = (garbage.bytes(), steps + 1);
        }
        assert!(steps as u64 > bytes / 1024 / NODES as u64 / 2, "{steps} steps");
        assert_eq!(garbage.bytes(), 0);
    }

    #[test]
    fn a_large_element_counts_as_many_nodes() {
        let mut garbage = Garbage::default();
        for _ in 0..3 {
            let mut hash = Hash::default();
            hash.set(b"field", &[7; 1 << 20]);
            garbage.add(hash.into());
        }
        let before = garbage.bytes();
        assert!(garbage.step(100), "one is more than a step's worth");
        assert!((1 << 20..1 << 21).contains(&(before - garbage.bytes())), "one went");
    }

    #[test]
    fn what_a_clone_holds_is_passed_over() {
        let mut garbage = Garbage::default();
        let hash = large(20_000);
        let mut clone = hash.clone();
        clone.set(b"another", b"value");
        let (fingerprint, bytes) = (clone.fingerprint(), clone.memory_bytes() as u64);
        garbage.add(hash.into());
        let mut steps = 0;
        while garbage.step(10) {
            steps += 1;
        }
        assert!(steps < 50, "{steps} steps for the path that differs");
        assert_eq!((clone.fingerprint(), garbage.bytes()), (fingerprint, 0));
        let parts = ValueParts::of(&clone.into()).expect("it is large");
        garbage.add_parts(parts);
        assert!(garbage.bytes() > bytes - 100, "nobody else holds it now");
    }

    #[test]
    fn small_values_go_at_once() {
        let mut garbage = Garbage::default();
        garbage.add(Value::String(vec![7; 1000]));
        let mut hash = Hash::default();
        hash.set(b"field", b"value");
        garbage.add(hash.into());
        assert_eq!(garbage.bytes(), 0);
        garbage.add(large(1000).into());
        assert!(garbage.bytes() > 0 && garbage.clone().bytes() == 0, "a clone is empty");
    }
}

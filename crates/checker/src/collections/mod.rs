//! Operations on collections. Each type of them has a file of its own, a line in the list below, and a variant of
//! [`Content`].

mod hashes;
mod lists;
mod sets;
mod sorted_sets;

pub use hashes::{Fields, HashOperation};
pub use lists::{End, Items, ListOperation};
pub use sets::{Members, SetOperation};
pub use sorted_sets::{Scores, SortedSetOperation};

use crate::output::Output;
use crate::value::{Content, Value};
use std::fmt;

/// What a collection is made of. A key has none without elements: it goes with the last one.
trait Elements: Clone + Default + Into<Content> {
    /// The elements of a value of this type.
    fn of(content: &Content) -> Option<&Self>;

    /// True if there are none.
    fn is_empty(&self) -> bool;
}

/// An operation on one type of collections.
trait Operation: fmt::Display {
    /// What such a collection is made of.
    type Elements: Elements;

    /// True if it can change nothing, whatever it finds.
    fn is_read(&self) -> bool;

    /// True if `output` may be an answer to this operation, as far as its form goes. That the key holds a value of
    /// another type, and that an update is done, are answers to all.
    fn admits(&self, output: &Output) -> bool;

    /// True if it changed nothing when it gave this answer.
    fn is_inert(&self, told: &Output) -> bool;

    /// True if it may remove the last element.
    fn may_remove(&self) -> bool;

    /// Executes it, and gives the full answer.
    fn apply(&self, elements: &mut Self::Elements) -> Output;
}

/// Declares the types.
macro_rules! collections {
    ($($kind:ident($operation:ty): $what:literal;)*) => {
        /// An operation on the collection of one key. If the key holds a value of another type, it does nothing and
        /// answers [`Output::WrongType`]; a missing key counts as a collection without elements.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum CollectionOperation {
            $(#[doc = $what] $kind($operation),)*
        }

        impl CollectionOperation {
            /// True if it can change nothing, whatever it finds.
            #[must_use]
            pub fn is_read(&self) -> bool {
                match self { $(Self::$kind(operation) => operation.is_read(),)* }
            }

            /// True if `output` may be an answer to this operation, as far as its form goes.
            pub(crate) fn admits(&self, output: &Output) -> bool {
                match self { $(Self::$kind(operation) => operation.admits(output),)* }
            }

            /// True if it changed nothing when it gave this answer.
            pub(crate) fn is_inert(&self, told: &Output) -> bool {
                self.is_read() || match self { $(Self::$kind(operation) => operation.is_inert(told),)* }
            }

            /// True if it may leave a missing key where there was a collection.
            pub(crate) fn may_remove(&self) -> bool {
                match self { $(Self::$kind(operation) => operation.may_remove(),)* }
            }

            /// Executes it on what a key holds, and gives the full answer.
            pub(crate) fn apply(&self, value: &mut Option<Value>) -> Output {
                match self { $(Self::$kind(operation) => apply(operation, value),)* }
            }
        }

        impl fmt::Display for CollectionOperation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$kind(operation) => operation.fmt(f),)* }
            }
        }
    };
}

collections! {
    Hash(HashOperation): "On a hash.";
    List(ListOperation): "On a list.";
    Set(SetOperation): "On a set.";
    SortedSet(SortedSetOperation): "On a sorted set.";
}

fn apply<O: Operation>(operation: &O, value: &mut Option<Value>) -> Output {
    let mut elements = match value {
        None => O::Elements::default(),
        Some(value) => match O::Elements::of(&value.content) {
            Some(elements) => elements.clone(),
            None => return Output::WrongType,
        },
    };
    let answer = operation.apply(&mut elements);
    let lifetime = value.as_ref().and_then(|value| value.lifetime);
    *value = (!elements.is_empty()).then(|| Value { content: elements.into(), lifetime });
    answer
}

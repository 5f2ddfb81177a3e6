//! Counted, persistent B+ trees of packed blocks: what the large collections of a store are kept in.
//!
//! **Persistent.** Nodes are shared by reference counts. A clone of a tree is a clone of its root and costs nothing; an
//! update copies those nodes on its path that somebody else holds, and none if nobody does.
//!
//! **Counted.** A node knows how many elements are below each child, so an element is found by its rank, and the rank
//! of an element is found, in O(log n). What is asked by rank depends on the elements alone: no answer tells how
//! elements lie in blocks, so trees with equal elements give equal answers, whatever their history was.
//!
//! **Packed.** A leaf is a block of about 1 KiB, one allocation of elements behind each other (`elements.rs`). No element
//! has a pointer of its own. An element that is larger than a block has a block for itself.
//!
//! What a tree is ordered by is its [`Order`]:
//!
//! | order | tree | for |
//! |---|---|---|
//! | [`ByHash`] of [`Pairs`] or [`Members`] | [`Map`], [`Set`] | hashes, sets, the scores of members |
//! | [`ByScore`] | [`Scores`] | sorted sets |
//! | [`ByPosition`] | [`List`] | lists |
//! | [`ById`] | [`Log`] | streams |
//! | [`ByBytes`] | [`Dictionary`] | the consumer groups of streams |
//!
//! **Paged.** The nodes of a tree may lie elsewhere, on disk, and are fetched when somebody looks at them ([`Pages`]). An
//! update writes the nodes on its path anew ([`Saver`]). What is read and written grows with the height of the tree and not
//! with its elements.
//!
//! Everything here is a function of the calls that were made: nothing depends on addresses, time or chance.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as syros_tree;

mod block;
mod build;
mod by_bytes;
mod by_hash;
mod by_id;
mod by_position;
mod by_score;
mod check;
#[cfg(test)]
mod corrupt;
mod dismantle;
mod draft;
mod edit;
mod elements;
mod extent;
mod iter;
mod key_order;
#[cfg(test)]
mod narrow;
mod node;
mod order;
mod page;
mod saver;
mod seek;
mod separators;
mod tail;
mod tree;

pub use build::{Builder, OutOfOrder};
pub use by_bytes::{ByBytes, Dictionary};
pub use by_hash::{ByHash, Form, Hashing, KeyHash, Map, Members, Pairs, Position, Scan, Set};
pub use by_id::{ById, Log};
pub use by_position::{ByPosition, List};
pub use by_score::{ByScore, Edge, Score, Scores};
pub use check::Flaw;
pub use dismantle::Dismantle;
pub use draft::Draft;
pub use elements::Elements;
pub use iter::{Blocks, Iter, Leaf};
pub use key_order::KeyOrder;
pub use order::{Element, Order};
pub use page::{Pages, Source, Subtree};
pub use saver::{Saved, Saver};
pub use tree::Tree;

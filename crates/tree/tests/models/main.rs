//! Trees of each order against the collections of the standard library: random operations with many seeds, with clones
//! that are kept and may not change, and the tree's own check after each of them.

mod common;
mod dictionaries;
mod lists;
mod logs;
mod maps;
mod scores;

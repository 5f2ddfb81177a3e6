//! The model-based tests once more, with nodes of few children, so that small trees are high
//! ([`CHILDREN_MAX`](crate::node::CHILDREN_MAX)).

#[path = "../tests/lists.rs"]
mod lists;
#[path = "../tests/logs.rs"]
mod logs;
#[path = "../tests/maps.rs"]
mod maps;
#[path = "../tests/scores.rs"]
mod scores;

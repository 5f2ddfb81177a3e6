//! The model-based tests once more, with nodes of few children, so that small trees are high
//! ([`CHILDREN_MAX`](crate::node::CHILDREN_MAX)).

#[path = "../tests/models/main.rs"]
mod models;

//! Giving nodes back in bounded steps.

use crate::node::Child;
use crate::order::Order;
use std::sync::Arc;

/// Nodes that no tree needs any more. Dropping it gives everything back at once; [`step`](Self::step) does so a few
/// nodes at a time, and another thread may do it.
#[must_use = "dropping it gives all nodes back at once"]
pub struct Dismantle<O: Order> {
    nodes: Vec<Child<O>>,
}

impl<O: Order> Dismantle<O> {
    /// Gives back these nodes and all that is below them and nobody else holds.
    pub(crate) fn new(nodes: Vec<Child<O>>) -> Self {
        Self { nodes }
    }

    /// Gives back at most `nodes` nodes. False once there are none left. Nodes that a clone holds are passed over with
    /// all that is below them.
    pub fn step(&mut self, nodes: usize) -> bool {
        for _ in 0..nodes {
            let Some(node) = self.nodes.pop() else { return false };
            if let Child::Inner(inner) = node
                && let Some(inner) = Arc::into_inner(inner)
            {
                self.nodes.extend(inner.children);
            }
        }
        !self.nodes.is_empty()
    }
}

//! Giving nodes back in bounded steps.

use crate::node::{Child, Inner};
use crate::order::Order;
use std::sync::Arc;

/// So many bytes of a block count as one more node: allocators ask the system to take large allocations back, which
/// takes time for each page.
const BYTES_PER_NODE: u64 = 8 << 10;

/// Nodes that no tree needs any more. Dropping it gives everything back at once; [`step`](Self::step) does so a few
/// nodes at a time, and another thread may do it.
#[must_use = "dropping it gives all nodes back at once"]
pub struct Dismantle<O: Order> {
    nodes: Vec<Child<O>>,
    /// Bytes of memory of the nodes and all that is below them.
    bytes: u64,
}

impl<O: Order> Default for Dismantle<O> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<O: Order> Dismantle<O> {
    /// Gives back these nodes and all that is below them and nobody else holds.
    pub(crate) fn new(nodes: Vec<Child<O>>) -> Self {
        let bytes = nodes.iter().map(|node| node.extent().memory).sum();
        Self { nodes, bytes }
    }

    /// Adds the root of a tree, below which there are so many bytes.
    pub(crate) fn add_root(&mut self, root: Option<Child<O>>, bytes: u64) {
        self.bytes += bytes;
        self.nodes.extend(root);
    }

    /// Bytes of memory of the nodes that are left, those included that clones hold.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back at most `nodes` nodes, of which a large one counts as several. False once there are none left. Nodes
    /// that a clone holds are passed over with all that is below them.
    pub fn step(&mut self, nodes: usize) -> bool {
        self.spend(&mut { nodes });
        !self.nodes.is_empty()
    }

    /// Does the same, and takes what it has given back off `nodes`.
    pub fn spend(&mut self, nodes: &mut usize) {
        while *nodes > 0
            && let Some(node) = self.nodes.pop()
        {
            let (bytes, cost) = match node {
                Child::Leaf(_) | Child::Paged(_) => {
                    let bytes = node.extent().memory;
                    (bytes, 1 + bytes / BYTES_PER_NODE)
                }
                Child::Inner(inner) => (self.open(inner), 1),
            };
            self.bytes -= bytes;
            *nodes = nodes.saturating_sub(cost as usize);
        }
    }

    /// Gives back a node, and takes its children; the bytes that have gone with it.
    fn open(&mut self, node: Arc<Inner<O>>) -> u64 {
        let (all, own) = (node.extent.memory + node.own_bytes(), node.own_bytes());
        match Arc::into_inner(node) {
            Some(inner) => {
                self.nodes.extend(inner.children);
                own
            }
            None => all,
        }
    }
}

//! Where the nodes are: what the configuration lists, and what other nodes say of those that the group has grown by.
//!
//! Nodes connect to those with lower numbers, which they are configured with, so that a group can grow though no node that there
//! is knows of the new ones. Addresses are for those who look for nodes: gateways, and whoever asks with INFO. Nothing that is
//! counted depends on them: who a node is, its handshake says. (In the simulator there are no addresses.)

use std::time::Duration;

use syros_node::front_end::MessagePeer;
use syros_types::{Instant, ReplicaId};
use syros_wire::{FrontEndMessage, RESIZED_SINCE};

use super::EventLoop;

/// A process that does not know where all nodes are asks again after so long.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

impl EventLoop {
    /// Positions of the group of which no address is known.
    fn lacks_addresses(&self) -> bool {
        let size = self.description.configuration.size();
        let known = self.description.replicas.iter().take(size).filter(|address| !address.is_empty());
        known.count() < size
    }

    /// When it asks again where the nodes are.
    pub(super) fn ask_for_nodes_at(&self) -> Instant {
        if self.lacks_addresses() { self.nodes_asked.after(ASK_INTERVAL) } else { Instant::NEVER }
    }

    /// The group has another size: where a node was that it has shrunk by, another one may be when it grows again.
    pub(super) fn forget_places(&mut self) {
        let size = self.description.configuration.size();
        self.description.replicas.truncate(size);
        for link in self.links.iter_mut().skip(size) {
            link.forget_place();
        }
    }

    /// Asks the nodes that are connected where all are, if that is not known.
    pub(super) fn ask_for_nodes(&mut self) {
        if self.now.instant < self.ask_for_nodes_at() {
            return;
        }
        self.nodes_asked = self.now.instant;
        for index in 0..self.links.len() {
            let link = &self.links[index];
            if link.connection.is_some() && link.spoken >= RESIZED_SINCE {
                let replica = ReplicaId(u8::try_from(index).unwrap_or(u8::MAX));
                self.send_to_peer(MessagePeer::Member(replica), &FrontEndMessage::WantNodes);
            }
        }
    }

    /// Another process wants to know where the nodes are. Gateways know no more than they are told.
    pub(super) fn tell_nodes(&mut self, to: MessagePeer) {
        if self.local.is_some() {
            let addresses = self.description.replicas.clone();
            self.send_to_peer(to, &FrontEndMessage::Nodes { addresses });
        }
    }

    /// A node has told where nodes are. Of those that the configuration lists it knows better.
    pub(super) fn on_nodes(&mut self, addresses: Vec<String>) {
        let known = &mut self.description.replicas;
        for (index, address) in addresses.into_iter().enumerate().take(self.links.len().max(known.len())) {
            if index >= known.len() {
                known.push(String::new());
            }
            if !known[index].is_empty() || address.is_empty() {
                continue;
            }
            known[index].clone_from(&address);
            let is_gateway = self.introduction.member.is_none();
            tracing::info!(member = index, address, "this process was told where a node is");
            if let Some(link) = self.links.get_mut(index).filter(|_| is_gateway) {
                link.dial_to(address, self.now.instant.0 ^ index as u64);
            }
        }
    }
}

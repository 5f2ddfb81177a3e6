//! Messages on the network: sent, damaged, and delivered.

use super::{InFlight, SimEvent, World};
use crate::adapter;
use crate::clock::VirtualTime;
use crate::network::{Fate, NodeIndex};
use crate::tally::Occurrence;
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica::{self, PlantedBug};
use syros_types::ReplicaId;

impl World {
    /// Puts a message on the network, at `now` or later.
    pub(super) fn transmit(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        now: VirtualTime,
        mut in_flight: InFlight,
    ) {
        if self.is_one_process(from, to) {
            return self.scheduler.schedule(now, SimEvent::Arrival { from, to, in_flight });
        }
        let (sender, receiver) = (self.place_of(from), self.place_of(to));
        let fate = self.network.send(sender, receiver, now, &in_flight.bytes);
        let Fate { arrivals, lost, held_back, flipped } = fate;
        let [first, second] = arrivals;
        self.tally.record_times(Occurrence::Lost, u64::from(lost));
        self.tally.record_times(Occurrence::Duplicated, u64::from(fate.duplicated()));
        self.tally.record_times(Occurrence::Delayed, held_back);
        if held_back > 0 {
            self.lingers_until =
                arrivals.iter().flatten().fold(self.lingers_until, |until, at| until.max(*at));
        }
        if let (Some(at), Some(bit)) = (first, flipped) {
            self.tally.record(Occurrence::Flipped);
            let trusting = self.planted == Some(PlantedBug::ChecksumIgnored);
            match adapter::damaged(&in_flight.bytes, bit, trusting) {
                Some(bytes) => in_flight.bytes = bytes,
                None => return self.found_damaged(from, to, at, in_flight.address),
            }
        }
        if let Some(at) = second {
            self.scheduler.schedule(at, SimEvent::Arrival { from, to, in_flight: in_flight.clone() });
        }
        if let Some(at) = first {
            self.scheduler.schedule(at, SimEvent::Arrival { from, to, in_flight });
        }
    }

    /// A frame is found to be damaged when it arrives: the receiver takes nothing of it, and ends the connection.
    pub(super) fn found_damaged(&mut self, from: NodeIndex, to: NodeIndex, at: VirtualTime, address: u64) {
        let n = self.replicas.len();
        let (replica, client) = if from < n { (from, to) } else { (to, from) };
        if client >= n {
            let (slot, life) = (client - n, self.clients[client - n].life);
            self.scheduler.schedule(at, SimEvent::Disconnect { slot, life, replica, address });
        }
    }

    pub(super) fn arrive(&mut self, from: NodeIndex, to: NodeIndex, in_flight: &InFlight) {
        let is_dropped = self.network.drops_arrival(self.place_of(from), self.place_of(to));
        if (is_dropped && !self.is_one_process(from, to)) || self.refuse_each_other(from, to) {
            return;
        }
        if self.is_of_other_node((from, to), in_flight.nodes) {
            return self.compare_configurations(from, to);
        }
        let now = self.now();
        self.trace.fold(now);
        self.trace.fold((from * 64 + to) as u64);
        self.trace.fold_bytes(&in_flight.bytes);
        let n = self.replicas.len();
        let message = adapter::decode_message(&in_flight.bytes);
        if self.trace.is_verbose() {
            let (from, to) = (self.node_name(from), self.node_name(to));
            self.trace.line(now, format_args!("{from} -> {to}: {}", message_text(&message)));
        }
        if to >= n {
            return self.arrive_at_client(from, to - n, in_flight, message);
        }
        if from >= n && self.addresses[in_flight.address as usize].replica_life != self.replicas[to].life {
            // No connection outlives the process that took it.
            return;
        }
        if !self.cost.is_none() {
            return self.await_turn(from, to, in_flight.address, message);
        }
        let from =
            if from < n { Peer::Replica(ReplicaId(from as u8)) } else { Peer::Client(in_flight.address) };
        let life = self.replicas[to].life;
        self.tell(to, life, replica::Event::Message { from, message });
    }

    pub(super) fn node_name(&self, node: NodeIndex) -> String {
        let n = self.replicas.len();
        if node < n { format!("replica {node}") } else { format!("client {}", node - n) }
    }
}

/// A message for the diary: long contents cut.
fn message_text(message: &Message) -> String {
    let mut text = format!("{message:?}");
    if text.len() > 2_000 {
        text.truncate(2_000);
        text.push('…');
    }
    text
}

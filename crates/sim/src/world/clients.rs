//! The clients of the world: they come and go, connect, ask for operations and are told the results.

use super::{ClientSlot, Connection, InFlight, SimEvent, World, offset};
use crate::asked::Asked;
use crate::client::{ClientEffect, ClientProcess};
use crate::history::{OperationIndex, StaleRead};
use crate::network::NodeIndex;
use crate::tally::Occurrence;
use crate::trace::Text;
use crate::workload::{ClientCommand, Watching, encode};
use std::sync::Arc;
use syros_protocol::client;
use syros_protocol::message::{Message, Refusal};
use syros_protocol::replica;
use syros_types::{Configuration, OpNumber, ReadPolicy, ReplicaId};

/// Answers of members that are remembered: clients take the one they want before so many have come.
const SEEN_MAX: usize = 256;

impl World {
    pub(crate) fn client_node(&self, slot: usize) -> NodeIndex {
        self.replicas.len() + slot
    }

    /// Adds a client, which begins to connect.
    ///
    /// # Panics
    /// If there are as many already as the world has room for: 16 but in experiments with distance.
    pub fn add_client(&mut self) -> usize {
        assert!(self.clients.len() < self.clients_max, "a world has room for {} clients", self.clients_max);
        let wall_offset = offset(&mut self.dice.clocks, self.swarm.clocks.skew_micros);
        self.clients.push(ClientSlot { process: None, life: 0, wall_offset });
        let slot = self.clients.len() - 1;
        self.start_client(slot);
        slot
    }

    pub(crate) fn start_client(&mut self, slot: usize) {
        if self.home_of(slot).is_some_and(|home| self.replicas[home].process.is_none()) {
            // It begins with its replica.
            return;
        }
        let protocol = &self.swarm.protocol;
        let configuration = Configuration::first(self.first_group, self.swarm.fast_quorum);
        let mut config = client::Config::new(configuration, self.dice.clients.next_u64());
        config.own_replica = self.own_replica_of(slot).map(|replica| ReplicaId(replica as u8));
        config.settings = client::Settings {
            resend: protocol.client_resend,
            sync_after: protocol.sync_after,
            give_up_after: protocol.give_up_after,
            in_flight_max: protocol.in_flight_max,
            session_idle_max: protocol.replica.session_timeout / 4,
            read_policy: self.swarm.workload.read_policy_of(slot),
            write_policy: self.swarm.workload.write_policy_of(slot),
            direct_gain_min: protocol.direct_gain_min,
            direct_lasting: protocol.direct_lasting,
        };
        config.planted = self.planted;
        let now = self.now();
        let process = self.new_front_end(slot, &config);
        let process = process.unwrap_or_else(|| {
            let clock = self.clock(self.clients[slot].wall_offset);
            ClientProcess::new(config, self.replicas.len(), clock, now)
        });
        let place = &mut self.clients[slot];
        place.life += 1;
        place.process = Some(process);
        let life = place.life;
        self.open_front_end(slot);
        self.trace.line(now, format_args!("client {slot} starts"));
        let node = self.place_of(self.client_node(slot));
        for replica in 0..self.replicas.len() {
            let delay = self.network.delay(node, replica);
            self.scheduler.schedule(now + delay, SimEvent::Connect { slot, life, replica });
        }
        for _ in 0..self.swarm.workload.in_flight {
            self.schedule_issue(slot);
        }
        self.drain_client(slot);
    }

    /// A client process ends; what it had asked for may still happen.
    pub fn crash_client(&mut self, slot: usize) {
        let now = self.now();
        self.trace.line(now, format_args!("client {slot} crashes"));
        let Some(client) = self.clients[slot].process.take() else { return };
        self.clients[slot].life += 1;
        self.end_conversation(slot);
        self.waiting.end(slot);
        self.tracking.end(slot);
        self.actors.end(slot);
        client.unfinished().into_iter().for_each(|operation| self.history.abandon(operation));
        for (replica, address) in client.connections.iter().enumerate() {
            if let Some(address) = address {
                let life = self.replicas[replica].life;
                self.tell(replica, life, replica::Event::ClientGone(*address));
            }
        }
    }

    pub(super) fn connect(&mut self, slot: usize, life: u64, replica: usize) {
        let node = self.place_of(self.client_node(slot));
        if self.clients[slot].life != life {
            return;
        }
        let reachable = self.replicas[replica].process.is_some()
            && !self.network.is_cut(node, replica)
            && !self.network.is_cut(replica, node);
        let now = self.now();
        if reachable {
            self.tell_client_of_nodes(slot, replica);
        }
        let is_known = self.clients[slot]
            .process
            .as_ref()
            .is_some_and(|client| client.configuration().has(ReplicaId(replica as u8)));
        if !reachable || !is_known {
            let again = now + self.swarm.protocol.client_reconnect.as_nanos() as u64;
            self.scheduler.schedule(again, SimEvent::Connect { slot, life, replica });
            return;
        }
        let address = self.addresses.len() as u64;
        let replica_life = self.replicas[replica].life;
        self.addresses.push(Connection { slot, life, replica_life });
        let Some(client) = &mut self.clients[slot].process else { return };
        client.connections[replica] = Some(address);
        client.handle(now, client::Event::Connected(ReplicaId(replica as u8)));
        self.drain_client(slot);
        if self.own_replica_of(slot) == Some(replica) {
            self.tell(replica, replica_life, replica::Event::OwnFrontEnd(address));
        }
    }

    /// A client that tries to reach nodes is told by any which nodes there are: those that it knew may all be gone.
    fn tell_client_of_nodes(&mut self, slot: usize, replica: usize) {
        if self.swarm.sizes.is_none() {
            return;
        }
        let Some(process) = &self.replicas[replica].process else { return };
        let known = process.core().configuration().reconfiguration();
        let now = self.now();
        if let Some(client) = &mut self.clients[slot].process
            && client.configuration().id.epoch < known.epoch
        {
            let message = Message::Configuration(Box::new(known));
            client.handle(now, client::Event::Message { from: ReplicaId(replica as u8), message });
            self.drain_client(slot);
        }
    }

    /// The replica whose own front end a client is, if it is one.
    pub(crate) fn own_replica_of(&self, slot: usize) -> Option<usize> {
        // A node has one front end for Redis clients: their commands that wait are known by its name, and it ends with the node.
        let own =
            if self.is_front_end(slot) { self.home_of(slot) } else { Some(slot % self.swarm.replicas_min()) };
        own.filter(|_| self.swarm.own_front_ends)
    }

    /// One end of a broken connection finds out, if nothing keeps it from that.
    pub(super) fn disconnect(&mut self, slot: usize, life: u64, replica: usize, address: u64) {
        let node = self.place_of(self.client_node(slot));
        let place = &mut self.clients[slot];
        let Some(client) = place.process.as_mut().filter(|_| place.life == life) else { return };
        if client.connections[replica] != Some(address) {
            return;
        }
        let now = self.scheduler.now();
        let retry = now + self.swarm.protocol.client_reconnect.as_nanos() as u64;
        if self.network.is_cut(replica, node) {
            self.scheduler.schedule(retry, SimEvent::Disconnect { slot, life, replica, address });
            return;
        }
        client.connections[replica] = None;
        client.handle(now, client::Event::Disconnected(ReplicaId(replica as u8)));
        self.scheduler.schedule(retry, SimEvent::Connect { slot, life, replica });
        self.drain_client(slot);
        let life = self.replicas[replica].life;
        self.tell(replica, life, replica::Event::ClientGone(address));
    }

    /// Breaks the connection between a client and a replica; both find out at once. False if there is none.
    pub(crate) fn break_connection(&mut self, slot: usize, replica: usize) -> bool {
        if self.home_of(slot) == Some(replica) {
            return false;
        }
        let place = &self.clients[slot];
        let life = place.life;
        let address = place.process.as_ref().and_then(|client| client.connections[replica]);
        if let Some(address) = address {
            self.disconnect(slot, life, replica, address);
        }
        address.is_some()
    }

    /// Carries out what a client wants.
    pub(crate) fn drain_client(&mut self, slot: usize) {
        let now = self.now();
        let before = self.tally.moments();
        if self.is_front_end(slot) {
            self.watch_quorum(slot);
        }
        let mut effects = core::mem::take(&mut self.client_effects);
        let home = self.home_of(slot).filter(|_| self.is_front_end(slot));
        let home = home.and_then(|home| self.replicas[home].process.as_mut());
        let Some(client) = &mut self.clients[slot].process else { return };
        client.drain(now, home, &mut effects);
        let deadline = client.deadline();
        let node = self.client_node(slot);
        let life = self.clients[slot].life;
        let mut exits = false;
        let mut follow = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                ClientEffect::Read { operation, reply, applied } => {
                    let seen = reply.and_then(|reply| self.seen_by(&client::Outcome::Reply(reply)));
                    if let Some(number) = seen.or(applied).or(self.read_at) {
                        self.history.read_after(operation, number);
                    }
                }
                ClientEffect::NoOp { operation, reply, applied } => {
                    self.tally.record(Occurrence::NoOpAnswered);
                    let seen = self.seen_by(&client::Outcome::Reply(reply));
                    self.history.read_after(operation, seen.unwrap_or(applied));
                }
                ClientEffect::Reply { address, bytes } => self.reply_to_redis(slot, address, bytes),
                ClientEffect::Close { address } => self.hang_up_on_redis(slot, address),
                ClientEffect::SendToPeer { to, message } => self.send_to_peer(slot, to, &message),
                ClientEffect::Exit => exits = true,
                ClientEffect::Send { to, bytes } => {
                    let Some(client) = &self.clients[slot].process else { continue };
                    if let Some(address) = client.connections[to.index()] {
                        if let Some(counts) = &mut self.counts {
                            *counts.entry("client").or_default() += 1;
                        }
                        let in_flight =
                            InFlight { address, executed: OpNumber(0), life: 0, nodes: None, bytes };
                        self.transmit(node, to.index(), now, in_flight);
                    }
                }
                ClientEffect::Sent { operation, id } => self.history.sent(operation, id),
                ClientEffect::Resent => self.tally.record(Occurrence::Resent),
                ClientEffect::Completed { operation, outcome, applied } => {
                    if self.history.get(operation).stale.is_some() {
                        let by = self.answered_by;
                        let (named, entries) = (applied.unwrap_or_default(), self.invariants.entries());
                        self.history.read_stale(operation, StaleRead { by, named, entries });
                    }
                    let read_at = self.seen_by(&outcome).or(applied).or(self.read_at);
                    if let (Some(number), client::Outcome::Reply(_)) = (read_at, &outcome) {
                        self.history.read_after(operation, number);
                    }
                    match outcome {
                        client::Outcome::Refused(Refusal::OutOfMemory) => {
                            self.tally.record(Occurrence::OutOfMemory);
                        }
                        client::Outcome::Refused(Refusal::DiskFull) => {
                            self.tally.record(Occurrence::DiskFull);
                        }
                        _ => {}
                    }
                    self.trace.fold(0xd0e5 + operation as u64);
                    self.trace.line(
                        now,
                        format_args!("client {slot} operation {operation} ends: {}", outcome_text(&outcome)),
                    );
                    self.on_watching(operation, &outcome, &mut follow);
                    if follow.last().is_none_or(|(before, ..)| *before != operation) {
                        self.schedule_issue(slot);
                    }
                    self.history.finish(operation, outcome, now);
                }
            }
        }
        self.client_effects = effects;
        self.strike_at_moments(before);
        if let Some(at) = deadline {
            self.poke(node, at);
        }
        if exits {
            self.exit(slot);
        }
        for (_, steps, watching) in follow {
            // It may have been struck just now.
            if self.clients[slot].life != life || self.clients[slot].process.is_none() {
                return;
            }
            let operation = self.submit_as(slot, steps, false);
            self.watching.extend(watching.map(|watching| (operation, watching)));
        }
    }

    /// An operation ends of a client that watches keys, perhaps: what it asks for next.
    fn on_watching(
        &mut self,
        operation: OperationIndex,
        outcome: &client::Outcome,
        follow: &mut Vec<(OperationIndex, Vec<ClientCommand>, Option<Watching>)>,
    ) {
        let Some(watching) = self.watching.remove(&operation) else {
            if matches!(self.history.get(operation).steps.first(), Some(ClientCommand::Unchanged { .. })) {
                let replies = if let client::Outcome::Reply(body) = outcome { body.len() } else { 0 };
                // Nil by itself is one byte.
                let kind = if replies > 1 { Occurrence::Exec } else { Occurrence::ExecFailed };
                self.tally.record(kind);
            }
            return;
        };
        if let Some((steps, next)) = watching.on_outcome(outcome, &mut self.workload) {
            follow.push((operation, steps, next));
        }
    }

    /// Has the client ask for its next operation after a pause, if there are any left.
    pub(super) fn schedule_issue(&mut self, slot: usize) {
        if self.left_to_issue == 0 {
            return;
        }
        let think = self.swarm.workload.think;
        let pause =
            if think == 0 || self.dice.clients.chance(1, 4) { 0 } else { self.dice.clients.below(2 * think) };
        let life = self.clients[slot].life;
        self.scheduler.schedule(self.now() + pause, SimEvent::Issue { slot, life });
    }

    pub(super) fn issue(&mut self, slot: usize, life: u64) {
        if self.clients[slot].life != life || self.left_to_issue == 0 {
            return;
        }
        self.left_to_issue -= 1;
        if self.is_front_end(slot) {
            self.issue_pipeline(slot);
        } else if let Some((steps, watching)) = self.workload.begin_watching(slot) {
            let operation = self.submit_as(slot, steps, false);
            self.watching.insert(operation, watching);
        } else {
            let steps = self.workload.next(slot);
            let is_stale = self.workload.is_stale(&steps);
            self.submit_as(slot, steps, is_stale);
        }
        self.strike_soon();
        if self.swarm.lease_change.is_some_and(|change| change.at == self.left_to_issue) {
            self.change_leases();
        }
        if self.swarm.nemesis.ruin_at == Some(self.left_to_issue) {
            self.ruin();
        }
    }

    /// Has a client ask for an operation.
    ///
    /// # Panics
    /// If the client does not run.
    pub fn submit(&mut self, slot: usize, steps: Vec<ClientCommand>) -> OperationIndex {
        self.submit_as(slot, steps, false)
    }

    /// Has a client ask for an operation; if it `is_stale`, any replica may answer it as it is.
    fn submit_as(&mut self, slot: usize, steps: Vec<ClientCommand>, is_stale: bool) -> OperationIndex {
        if self.is_front_end(slot) {
            return self.send_pipeline(slot, steps.into_iter().map(Asked::single).collect());
        }
        let now = self.now();
        let body = encode(&steps);
        let life = self.clients[slot].life;
        self.trace.fold_bytes(&body);
        self.trace.line(
            now,
            format_args!("client {slot} operation {}: {steps:?}", self.history.operations().len()),
        );
        let operation = self.history.invoke((slot as u64) << 32 | life, steps, now);
        let client = self.clients[slot].process.as_mut().expect("the client runs");
        if is_stale {
            self.history.read_stale(operation, StaleRead::default());
        }
        let policy = is_stale.then_some(ReadPolicy::Stale);
        if !client.submit(now, &body, policy, operation) {
            self.history.finish(operation, client::Outcome::TimedOut, now);
        }
        self.drain_client(slot);
        operation
    }

    /// A client gets a message.
    pub(super) fn arrive_at_client(
        &mut self,
        from: NodeIndex,
        slot: usize,
        in_flight: &InFlight,
        message: Message,
    ) {
        let now = self.now();
        if let Some(until) = self.stands_still_until(slot) {
            let (to, in_flight) = (self.client_node(slot), in_flight.clone());
            return self.scheduler.schedule(until, SimEvent::Arrival { from, to, in_flight });
        }
        let place = &mut self.clients[slot];
        let Some(client) = &mut place.process else { return };
        if client.connections[from] != Some(in_flight.address) {
            // Whoever has ended a connection gets nothing from it any more.
            return;
        }
        if let Message::MemberReply { reply, .. } = &message {
            self.seen.truncate(SEEN_MAX - 1);
            self.seen.push_front((reply.clone(), in_flight.executed));
        }
        // A member's answer says itself at which entry it was given.
        self.read_at = matches!(message, Message::ReadReply { .. }).then_some(in_flight.executed);
        let is_members = matches!(message, Message::MemberReply { .. });
        self.answered_by = is_members.then_some((from, in_flight.life));
        client.handle(now, client::Event::Message { from: ReplicaId(from as u8), message });
        self.drain_client(slot);
        self.read_at = None;
        self.answered_by = None;
    }
}

impl World {
    /// What the member had seen whose answer this is, if one is known that tells less.
    fn seen_by(&self, outcome: &client::Outcome) -> Option<OpNumber> {
        let client::Outcome::Reply(reply) = outcome else { return None };
        // The core passes the very same bytes on.
        let (_, seen) = self.seen.iter().find(|(body, _)| Arc::ptr_eq(body, reply))?;
        Some(*seen)
    }
}

fn outcome_text(outcome: &client::Outcome) -> String {
    match outcome {
        client::Outcome::Reply(body) => format!("reply {}", Text(body)),
        other => format!("{other:?}"),
    }
}

//! Processes with a Redis front end: nodes, where it shares the process of the replica, and gateways; and the Redis clients
//! of both.

use super::{SimEvent, World};
use crate::client::ClientProcess;
use crate::history::OperationIndex;
use crate::network::NodeIndex;
use crate::redis_host::{Ended, RedisHost};
use crate::resp_client::as_redis_has_it;
use crate::swarm::{FrontEndWorld, MICRO, SECOND};
use crate::tally::Occurrence;
use crate::workload::ClientCommand;
use syros_protocol::client::{Config, Outcome};
use syros_protocol::replica;

/// What happens on the connection of a Redis client.
#[derive(Clone, Debug)]
pub(crate) enum SocketEvent {
    /// The next of what the client has sent arrives at the process.
    ToProcess,
    /// Bytes arrive at the client.
    ToClient(Vec<u8>),
    /// The client has taken so many bytes from its socket.
    Taken(usize),
    /// The client closes the connection.
    Closes,
    /// The client hears that the process has closed the connection.
    Closed,
}

/// A process that is told to end is so within this time after its start.
const TERMINATED_WITHIN: u64 = 6 * SECOND;

impl World {
    /// The settings of the front end in a client's place, if there is one.
    fn front_end_of(&self, slot: usize) -> Option<FrontEndWorld> {
        self.swarm.front_ends.filter(|world| slot < world.at_nodes + world.gateways)
    }

    /// True if a client is a process with a Redis front end.
    pub(super) fn is_front_end(&self, slot: usize) -> bool {
        self.front_end_of(slot).is_some()
    }

    /// The replica whose process a front end shares.
    pub(crate) fn home_of(&self, slot: usize) -> Option<usize> {
        let at_nodes = self.swarm.front_ends.map_or(0, |world| world.at_nodes);
        (slot < at_nodes && slot < self.replicas.len()).then_some(slot)
    }

    /// Where a process is on the network: a front end is where its replica is.
    pub(super) fn place_of(&self, node: NodeIndex) -> NodeIndex {
        let slot = node.checked_sub(self.replicas.len());
        slot.and_then(|slot| self.home_of(slot)).unwrap_or(node)
    }

    /// True if both are in one process.
    pub(super) fn is_one_process(&self, from: NodeIndex, to: NodeIndex) -> bool {
        from != to && self.place_of(from) == self.place_of(to)
    }

    /// The process of a front end stands still until then.
    pub(super) fn stands_still_until(&self, slot: usize) -> Option<u64> {
        let until = self.replicas[self.home_of(slot)?].paused_until;
        (until > self.now()).then_some(until)
    }

    /// The process in a client's place, if that has a front end.
    pub(super) fn new_front_end(&mut self, slot: usize, config: &Config) -> Option<ClientProcess> {
        let world = self.front_end_of(slot)?;
        let clock = self.clock(self.clients[slot].wall_offset);
        let now = clock.now(self.now());
        let host = RedisHost::new(config.clone(), world, now);
        Some(ClientProcess::with_front_end(host, self.replicas.len(), clock))
    }

    /// A front end has started: clients connect to it.
    pub(super) fn open_front_end(&mut self, slot: usize) {
        let Some(world) = self.front_end_of(slot) else { return };
        for _ in 0..world.connections {
            self.connect_redis(slot);
        }
        if self.dice.redis.chance(world.terminate_percent, 100) {
            let within = TERMINATED_WITHIN / u64::from(self.swarm.protocol.speed);
            let at = self.now() + self.dice.redis.below(within);
            let life = self.clients[slot].life;
            self.scheduler.schedule(at, SimEvent::Terminate { slot, life });
        }
    }

    fn connect_redis(&mut self, slot: usize) {
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        if let Some(host) = process.host() {
            host.connect(now);
        }
    }

    /// Front ends that share the process of a replica begin with it.
    pub(super) fn start_front_ends(&mut self, replica: usize) {
        for slot in 0..self.clients.len() {
            if self.home_of(slot) == Some(replica) && self.clients[slot].process.is_none() {
                self.start_client(slot);
            }
        }
    }

    /// Front ends that share the process of a replica end with it.
    pub(super) fn end_front_ends(&mut self, replica: usize) {
        for slot in 0..self.clients.len() {
            if self.home_of(slot) == Some(replica) {
                self.crash_client(slot);
            }
        }
    }

    /// Has a Redis client ask for several things at once.
    pub(super) fn issue_pipeline(&mut self, slot: usize) {
        let pipeline = self.front_end_of(slot).map_or(1, |world| world.pipeline);
        let mut steps = Vec::new();
        for _ in 0..=self.dice.redis.below(pipeline) {
            steps.extend(self.workload.next(slot));
        }
        self.send_pipeline(slot, steps);
        let closes = self.front_end_of(slot).map_or(0, |world| world.close_percent);
        if self.dice.redis.chance(closes, 100) {
            self.close_some_connection(slot);
        }
    }

    /// One of the clients of a front end is about to go.
    fn close_some_connection(&mut self, slot: usize) {
        let Some(host) = self.clients[slot].process.as_mut().and_then(ClientProcess::host) else { return };
        let clients = host.clients();
        if let Some(address) = clients.get(self.dice.redis.below(clients.len().max(1) as u64) as usize) {
            let delay = self.dice.redis.below(4 * self.delay_of(slot) + 1);
            self.on_socket(slot, *address, self.now() + delay, SocketEvent::Closes);
        }
    }

    /// About how long bytes take between clients and front end.
    fn delay_of(&self, slot: usize) -> u64 {
        self.front_end_of(slot).map_or(0, |world| world.delay)
    }

    fn on_socket(&mut self, slot: usize, address: u64, at: u64, event: SocketEvent) {
        let life = self.clients[slot].life;
        self.scheduler.schedule(at, SimEvent::Socket { slot, life, address, event });
    }

    /// When something arrives that leaves now, if nothing is before it on the line.
    fn arrival_on_line(&mut self, slot: usize) -> u64 {
        let delay = self.delay_of(slot);
        self.now() + delay / 2 + self.dice.redis.below(delay + 1)
    }

    /// Has something arrive at a client, after all that has left before.
    fn put_on_line(&mut self, slot: usize, address: u64, event: SocketEvent) {
        let at = self.arrival_on_line(slot);
        let Some(host) = self.clients[slot].process.as_mut().and_then(ClientProcess::host) else { return };
        let at = host.arrival(address, true, at);
        self.on_socket(slot, address, at, event);
    }

    /// Has bytes of a client arrive at the process, or the end of them (`None`), after all that has left before.
    fn put_on_line_to_process(&mut self, slot: usize, address: u64, bytes: Option<Vec<u8>>) {
        let at = self.arrival_on_line(slot);
        let Some(host) = self.clients[slot].process.as_mut().and_then(ClientProcess::host) else { return };
        let at = host.arrival(address, false, at);
        host.send(address, bytes);
        self.on_socket(slot, address, at, SocketEvent::ToProcess);
    }

    /// Has a Redis client send commands in one pipeline. The last of the operations.
    pub(super) fn send_pipeline(&mut self, slot: usize, steps: Vec<ClientCommand>) -> OperationIndex {
        let (now, life) = (self.now(), self.clients[slot].life);
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let clients = host.map(|host| host.clients()).unwrap_or_default();
        let client = clients.get(self.dice.redis.below(clients.len().max(1) as u64) as usize).copied();
        let (mut bytes, count) = (Vec::new(), steps.len());
        for (number, step) in steps.into_iter().map(as_redis_has_it).enumerate() {
            let echo = self.dice.redis.chance(1, 6);
            let operation = self.history.invoke((slot as u64) << 32 | life, vec![step.clone()], now);
            self.trace.line(now, format_args!("client {slot} {client:x?} operation {operation}: {step:?}"));
            let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
            let (Some(host), Some(address)) = (host, client) else {
                // Nobody takes the connection.
                self.history.finish(operation, Outcome::TimedOut, now);
                continue;
            };
            let connection = life << 44 | (slot as u64) << 40 | (address >> 32) << 8 | (address & 0xff);
            self.history.on_connection(operation, connection);
            bytes.extend(host.ask(address, (operation, step), (echo, number + 1 == count)));
        }
        if let Some(address) = client {
            self.send_in_pieces(slot, address, &bytes);
        }
        self.history.operations().len() - 1
    }

    fn send_in_pieces(&mut self, slot: usize, address: u64, mut bytes: &[u8]) {
        self.trace.fold_bytes(bytes);
        for _ in 0..self.dice.redis.below(3) {
            let (piece, rest) = bytes.split_at(self.dice.redis.below(bytes.len() as u64 + 1) as usize);
            bytes = rest;
            self.put_on_line_to_process(slot, address, Some(piece.to_vec()));
        }
        self.put_on_line_to_process(slot, address, Some(bytes.to_vec()));
    }

    /// Replies leave for a client.
    pub(super) fn reply_to_redis(&mut self, slot: usize, address: u64, bytes: Vec<u8>) {
        self.trace.fold_bytes(&bytes);
        self.put_on_line(slot, address, SocketEvent::ToClient(bytes));
    }

    /// The process has closed a connection.
    pub(super) fn hang_up_on_redis(&mut self, slot: usize, address: u64) {
        self.tally.record(Occurrence::RedisClosed);
        self.put_on_line(slot, address, SocketEvent::Closed);
    }

    /// Something happens on the connection of a Redis client.
    pub(super) fn socket_event(&mut self, slot: usize, life: u64, address: u64, event: SocketEvent) {
        if self.clients[slot].life != life {
            return;
        }
        if matches!(event, SocketEvent::ToProcess | SocketEvent::Taken(_))
            && let Some(until) = self.stands_still_until(slot)
        {
            return self.on_socket(slot, address, until, event);
        }
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        let Some(host) = process.host() else { return };
        match event {
            SocketEvent::ToProcess => host.receive_next(now, address),
            SocketEvent::ToClient(bytes) => {
                let ended = host.arrive(address, &bytes);
                match ended {
                    Ok(ended) => self.have_ended(slot, ended),
                    Err(problem) => self.misanswered = self.misanswered.take().or(Some(problem)),
                }
                let pause = self.front_end_of(slot).map_or(0, |world| world.read_pause);
                let at = time + self.dice.redis.below(pause + 1);
                return self.on_socket(slot, address, at, SocketEvent::Taken(bytes.len()));
            }
            SocketEvent::Taken(bytes) => host.taken(address, bytes),
            SocketEvent::Closes => {
                self.tally.record(Occurrence::RedisClientGone);
                let ended = host.abandon(address);
                self.have_ended(slot, ended);
                self.put_on_line_to_process(slot, address, None);
                return self.connect_redis(slot);
            }
            SocketEvent::Closed => {
                let ended = host.abandon(address);
                host.close(address);
                self.have_ended(slot, ended);
                self.connect_redis(slot);
            }
        }
        self.drain_client(slot);
    }

    /// What clients of a front end had asked for has ended.
    fn have_ended(&mut self, slot: usize, ended: Vec<Ended>) {
        let now = self.now();
        for Ended { operation, outcome, ends_pipeline } in ended {
            self.trace.fold(0x3ed1_5000 + operation as u64);
            self.trace.line(now, format_args!("client {slot} operation {operation} ends: {outcome:?}"));
            match outcome {
                Some(outcome) => {
                    match outcome {
                        Outcome::NoQuorum => self.tally.record(Occurrence::NoQuorum),
                        Outcome::Unknown => self.tally.record(Occurrence::RedisUnknown),
                        _ => {}
                    }
                    self.history.finish(operation, outcome, now);
                }
                None => self.history.abandon(operation),
            }
            if ends_pipeline {
                self.schedule_issue(slot);
            }
        }
    }

    /// A process with a front end gets SIGTERM.
    pub(super) fn terminate(&mut self, slot: usize, life: u64) {
        let may = self.home_of(slot).is_none() || self.may_crash();
        if self.clients[slot].life != life || self.is_healed || !may {
            return;
        }
        let time = self.now();
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        if let Some(host) = process.host() {
            host.terminate(now);
            self.tally.record(Occurrence::Terminated);
            self.trace.line(time, format_args!("client {slot} is told to end"));
        }
        if let Some(replica) = self.home_of(slot) {
            let life = self.replicas[replica].life;
            self.tell(replica, life, replica::Event::StepDown);
        }
        self.drain_client(slot);
    }

    /// A process with a front end has answered all it is going to answer, and ends.
    pub(super) fn exit(&mut self, slot: usize) {
        match self.home_of(slot) {
            Some(replica) if self.may_crash() => self.crash_for_a_while(replica, false),
            Some(_) => {
                self.crash_client(slot);
                self.start_client(slot);
            }
            None => {
                self.crash_client(slot);
                let at = self.now() + MICRO + self.fault_duration();
                let life = self.clients[slot].life;
                self.scheduler.schedule(at, SimEvent::Respawn { slot, life });
            }
        }
    }

    /// Tells a front end whether a majority can be reached.
    pub(super) fn watch_quorum(&mut self, slot: usize) {
        let (time, home) = (self.now(), self.home_of(slot));
        let is_alone = self.replicas.len() == 1;
        let replica = home.and_then(|home| self.replicas[home].process.as_ref());
        let silent = replica.and_then(|it| it.core().quorum_silence(it.clock.now(time).instant));
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        let mut others = process.connections.iter().enumerate().filter(|(to, _)| Some(*to) != home);
        let is_connected = is_alone || others.any(|(_, connection)| connection.is_some());
        if let Some(host) = process.host() {
            host.watch_quorum(now, silent, is_connected);
        }
    }
}

//! Processes with a Redis front end: nodes, where it shares the process of the replica, and gateways; and the Redis clients
//! of both.

use super::{SimEvent, World};
use crate::asked::{Asked, Ending, Form, ScriptEnd, ScriptForm};
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
use syros_types::Database;

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
        (slot < at_nodes && slot < self.swarm.replicas_min()).then_some(slot)
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
        let is_gateway = self.home_of(slot).is_none();
        let host = RedisHost::new(config.clone(), (world, is_gateway), now);
        Some(ClientProcess::with_front_end(host, self.replicas.len(), clock))
    }

    /// A front end has started: clients connect to it.
    pub(super) fn open_front_end(&mut self, slot: usize) {
        let Some(world) = self.front_end_of(slot) else { return };
        for _ in 0..world.connections {
            self.connect_redis(slot);
        }
        self.begin_conversation(slot);
        self.begin_waiting(slot);
        self.begin_tracking(slot);
        self.begin_acting(slot);
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
        let Some(world) = self.front_end_of(slot) else { return };
        let mut asked = Vec::new();
        for _ in 0..=self.dice.redis.below(world.pipeline) {
            let steps = self.workload.next(slot);
            if self.dice.asked.chance(world.joined_percent, 100) {
                asked.push(self.join(slot, world, steps));
            } else {
                asked.extend(steps.into_iter().map(Asked::single));
            }
        }
        if world.databases > 1 {
            for asked in &mut asked {
                let (database, other) =
                    (self.draw_database(world.databases), self.dice.asked.below(world.databases));
                let other = Database::all().nth(other as usize).unwrap_or_default();
                let moved = |step: ClientCommand| step.in_database(database).into_database(other);
                asked.steps = core::mem::take(&mut asked.steps).into_iter().map(moved).collect();
                asked.undone = core::mem::take(&mut asked.undone).into_iter().map(moved).collect();
            }
        }
        self.send_pipeline(slot, asked);
        let closes = self.front_end_of(slot).map_or(0, |world| world.close_percent);
        if self.dice.redis.chance(closes, 100) {
            self.close_some_connection(slot);
        }
    }

    /// Several commands as one operation, if they can be that.
    fn join(&mut self, slot: usize, world: FrontEndWorld, mut steps: Vec<ClientCommand>) -> Asked {
        while steps.len() < 4 && self.dice.asked.chance(1, 2) {
            steps.extend(self.workload.next(slot));
        }
        // The judge knows lifetimes of single commands only, and what concerns all keys not among others.
        steps.retain(ClientCommand::can_be_joined);
        let mut steps: Vec<ClientCommand> = steps.into_iter().map(ClientCommand::with_reply).collect();
        let mut undone = Vec::new();
        let is_script = self.dice.asked.chance(2, 3);
        let form = if is_script {
            self.scripts += 1;
            let end = match self.dice.asked.below(8) {
                0 | 1 => ScriptEnd::Fails,
                2 | 3 if world.declares => ScriptEnd::Strays,
                4 if self.exhausting > 0 => {
                    self.exhausting -= 1;
                    ScriptEnd::Exhausts
                }
                _ => ScriptEnd::Returns,
            };
            match end {
                ScriptEnd::Returns => {}
                ScriptEnd::Fails => steps.retain(|step| !step.is_read()),
                ScriptEnd::Exhausts | ScriptEnd::Strays => undone = core::mem::take(&mut steps),
            }
            Form::Script(ScriptForm {
                declares: world.declares || self.dice.asked.chance(1, 2),
                by_name: self.dice.asked.chance(1, 2),
                end,
                number: self.scripts,
            })
        } else {
            Form::Transaction
        };
        Asked { steps, undone, form }
    }

    /// One of the first so many databases.
    fn draw_database(&mut self, databases: u64) -> Database {
        Database::all().nth(self.dice.redis.below(databases) as usize).unwrap_or_default()
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
    pub(super) fn send_pipeline(&mut self, slot: usize, asked: Vec<Asked>) -> OperationIndex {
        let (now, life) = (self.now(), self.clients[slot].life);
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let clients = host.map(|host| host.clients()).unwrap_or_default();
        let client = clients.get(self.dice.redis.below(clients.len().max(1) as u64) as usize).copied();
        let (mut bytes, count) = (Vec::new(), asked.len());
        for (number, mut asked) in asked.into_iter().enumerate() {
            asked.steps = asked.steps.into_iter().map(as_redis_has_it).collect();
            let echo = self.dice.redis.chance(1, 6);
            let operation = self.history.invoke((slot as u64) << 32 | life, asked.steps.clone(), now);
            self.trace.line(now, format_args!("client {slot} {client:x?} operation {operation}: {asked:?}"));
            let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
            let (Some(host), Some(address)) = (host, client) else {
                // Nobody takes the connection.
                self.history.finish(operation, Outcome::TimedOut, now);
                continue;
            };
            let connection = life << 44 | (slot as u64) << 40 | (address >> 32) << 8 | (address & 0xff);
            self.history.on_connection(operation, connection, asked.form != Form::Single);
            bytes.extend(host.ask(address, (operation, asked), (echo, number + 1 == count)));
        }
        if let Some(address) = client {
            self.send_in_pieces(slot, address, &bytes);
        }
        self.history.operations().len() - 1
    }

    pub(super) fn send_in_pieces(&mut self, slot: usize, address: u64, mut bytes: &[u8]) {
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
        if let SocketEvent::ToClient(bytes) = &event
            && (self.hears_as_talker(slot, address, bytes)
                || self.hears_as_keeper(slot, address, bytes)
                || self.hears_as_user(slot, address, bytes))
        {
            return self.on_socket(slot, address, time, SocketEvent::Taken(bytes.len()));
        }
        let Some(process) = &mut self.clients[slot].process else { return };
        let now = process.clock.now(time);
        let Some(host) = process.host() else { return };
        match event {
            SocketEvent::ToProcess => host.receive_next(now, address),
            SocketEvent::ToClient(bytes) => {
                let ended = host.arrive(address, &bytes);
                match ended {
                    Ok(ended) => self.have_ended(slot, ended),
                    Err(problem) => _ = self.misanswered.get_or_insert(problem),
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
                if self.conversation.is_talker(slot, address) {
                    return self.forget_talker(slot, address);
                }
                if self.waiting.forget(slot, address)
                    || self.tracking.forget(slot, address)
                    || self.actors.forget(slot, address)
                {
                    return;
                }
                return self.connect_redis(slot);
            }
            SocketEvent::Closed => {
                let ended = host.abandon(address);
                host.close(address);
                self.have_ended(slot, ended);
                if self.conversation.is_talker(slot, address) {
                    return self.forget_talker(slot, address);
                }
                if !self.waiting.forget(slot, address)
                    && !self.tracking.forget(slot, address)
                    && !self.actors.forget(slot, address)
                {
                    self.connect_redis(slot);
                }
            }
        }
        self.drain_client(slot);
    }

    /// What clients of a front end had asked for has ended.
    fn have_ended(&mut self, slot: usize, ended: Vec<Ended>) {
        let now = self.now();
        for Ended { operation, ending, ends_pipeline } in ended {
            self.trace.fold(0x3ed1_5000 + operation as u64);
            self.trace.line(now, format_args!("client {slot} operation {operation} ends: {ending:?}"));
            match ending {
                Some(Ending::Undone(why)) => {
                    self.tally.record(why);
                    self.history.undo(operation);
                    self.history.finish(operation, Outcome::Done, now);
                }
                Some(Ending::Outcome(outcome)) => {
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
            if self.history.get(operation).is_wait() {
                self.waited(slot, operation);
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

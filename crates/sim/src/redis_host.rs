//! A process with a Redis front end, as it ships (`syros_node::front_end`), and the clients at its sockets.
//!
//! Clients send pipelines of commands as bytes, cut at arbitrary places, and take what comes back as slowly as the world
//! says. Replies are matched with commands by their order alone. ECHO commands between them have an answer that nothing else
//! has, so that a reply in a wrong place shows at once. What operations answer, the history's judge looks at.

use crate::asked::{Asked, Ending, SCRIPT};
use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::process::ReplicaProcess;
use crate::resp_client::{Received, command_of, parse};
use crate::swarm::FrontEndWorld;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use syros_commands::Operation;
use syros_node::NoOpAnswer;
use syros_node::front_end::{
    ClientMemory, FrontEndAction, FrontEndSettings, MessagePeer, RedisFrontEnd, Submitted, USERS_VALID,
};
use syros_protocol::client::{Client, Config, Event, Token};
use syros_protocol::message::{Body, Message, Request};
use syros_resp::{Connection, Context, DebugAccess, Identity, ServerInfo, ServerReport, Submission};
use syros_types::{Configuration, Database, Instant, Now, OpNumber, OperationId, ReplicaSet};
use syros_wire::FrontEndMessage;

/// A server of which INFO says nothing.
struct Silent;

impl ServerInfo for Silent {
    fn report(&self) -> ServerReport {
        ServerReport::default()
    }

    fn reset_statistics(&self) {}
}

/// What the process wants of the world.
#[derive(Debug)]
pub(crate) enum HostEffect {
    /// A message leaves for replicas.
    Send { to: ReplicaSet, message: Message },
    /// An update is about to be sent for the first time.
    Sent { operation: OperationIndex, id: OperationId },
    /// A read, or a body of several, has ended.
    Read { operation: OperationIndex, reply: Option<Body>, applied: Option<OpNumber> },
    /// An update that changes nothing has been answered without an entry in the log: after this one.
    NoOp { operation: OperationIndex, reply: Body, applied: OpNumber },
    /// Bytes leave for a client.
    Reply { address: u64, bytes: Vec<u8> },
    /// The process closes a connection.
    Close { address: u64 },
    /// A message leaves for another front end.
    SendToPeer { to: MessagePeer, message: FrontEndMessage },
    /// The process has answered all that it is going to answer, and ends.
    Exit,
}

/// What a client waits for.
#[derive(Debug)]
enum Awaited {
    /// The reply to a command.
    Operation {
        operation: OperationIndex,
        asked: Asked,
        encoding: Vec<u8>,
        /// The submission that it is a part of, by the connection's name for it.
        slot: Option<u64>,
        ends_pipeline: bool,
    },
    /// This text.
    Echo(Vec<u8>),
    /// How many patterns are subscribed to.
    Patterns,
    /// The reply to SELECT.
    Selected,
    /// What MULTI is answered, or a command behind it.
    Queued,
    /// The name of a script.
    Name,
    /// How many clients there were, of one at most.
    Counted,
}

/// Both ends of a connection of a Redis client.
#[derive(Debug, Default)]
struct Socket {
    /// What is on its way to the process, in the order in which the client sent it; `None` is the end.
    sent: VecDeque<Option<Vec<u8>>>,
    /// Bytes that the process has received and not taken.
    received: Vec<u8>,
    /// Bytes on their way to the client, or that it has not taken.
    untaken: usize,
    /// What the memory of all clients is charged with.
    charged: usize,
    /// Bytes that the client has received and not understood.
    replies: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// What the client has selected.
    database: Database,
    /// The client publishes and subscribes, and does nothing else.
    is_talker: bool,
    /// The client asks for commands that wait, and for hardly anything else.
    is_waiter: bool,
    /// It has told the process what scripts may touch.
    is_prepared: bool,
    /// The client has gone.
    is_abandoned: bool,
    /// The process has heard that the client has gone. It closes the connection when all of it is answered.
    is_ending: bool,
    /// The process has closed it, and does nothing for it any more.
    is_hung_up: bool,
    /// It is read again when the connection is not paused any more, or when its client sends more; so in the event loop.
    is_stalled: bool,
    /// It is read again when the front end is not full any more.
    is_throttled: bool,
    /// It may have output.
    is_dirty: bool,
    /// When the last bytes arrive that have left for the process, and for the client.
    arrives_at: [VirtualTime; 2],
}

/// An operation whose reply has come, or never will.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) operation: OperationIndex,
    /// `None` if no reply will come.
    pub(crate) ending: Option<Ending>,
    /// It was the last of a pipeline.
    pub(crate) ends_pipeline: bool,
}

/// A process with a Redis front end.
#[derive(Debug)]
pub(crate) struct RedisHost {
    front_end: RedisFrontEnd,
    memory: ClientMemory,
    reserved: usize,
    world: FrontEndWorld,
    sockets: BTreeMap<u64, Socket>,
    /// How often each place has been used.
    uses: Vec<u32>,
    /// Places without a connection.
    free: Vec<usize>,
    submitted: BTreeMap<Token, (Submitted, Vec<OperationIndex>)>,
    /// Updates whose ids are known.
    sent: Vec<Token>,
    closed: Vec<u64>,
    /// Its name, if some client has heard that.
    script: Option<Vec<u8>>,
    echoes: u64,
    has_exited: bool,
}

impl RedisHost {
    pub(crate) fn new(config: Config, (world, is_gateway): (FrontEndWorld, bool), now: Now) -> Self {
        let settings = FrontEndSettings {
            client_memory: world.client_memory,
            quorum_timeout: Duration::from_nanos(world.quorum_timeout),
            drain_timeout: Duration::from_nanos(world.drain_timeout),
            debug: DebugAccess::Nobody,
            users_valid: world.users.map_or(USERS_VALID, |users| Duration::from_nanos(users.valid)),
            is_gateway,
        };
        let mut front_end = RedisFrontEnd::new(config, settings, now);
        if world.users.is_some() {
            front_end.require_users(now, Vec::new(), false);
        }
        Self {
            front_end,
            memory: ClientMemory::new(world.client_memory),
            reserved: 0,
            world,
            sockets: BTreeMap::new(),
            uses: Vec::new(),
            free: Vec::new(),
            submitted: BTreeMap::new(),
            sent: Vec::new(),
            closed: Vec::new(),
            script: None,
            echoes: 0,
            has_exited: false,
        }
    }

    pub(crate) const fn core(&self) -> &Client {
        self.front_end.client()
    }

    /// The newest configuration that it has heard of.
    pub(crate) const fn configuration(&self) -> &Configuration {
        self.front_end.client().configuration()
    }

    pub(crate) fn handle(&mut self, now: Now, event: Event) {
        match event {
            Event::Message { from, message } => {
                if self.front_end.count_reply(&message) {
                    self.evict_if_exceeded();
                    self.front_end.make_room(&message, self.memory.is_scarce());
                }
                self.front_end.on_message(now, from, message);
            }
            Event::Tick => {
                self.front_end.begin_turn(now.instant);
                self.front_end.tick(now);
            }
            other => self.front_end.handle(now, other),
        }
    }

    /// Looks whether a majority can be reached.
    pub(crate) fn watch_quorum(&mut self, now: Now, silent: Option<Duration>, is_connected: bool) {
        if self.front_end.is_quorum_due(now) {
            self.front_end.watch_quorum(now, silent, is_connected);
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.front_end.deadline()
    }

    // ---- The clients.

    /// A client connects; its address. None if the process takes no connections.
    pub(crate) fn connect(&mut self, now: Now) -> Option<u64> {
        if self.front_end.is_stopping() {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.uses.push(0);
            self.uses.len() - 1
        });
        self.uses[place] += 1;
        let address = u64::from(self.uses[place]) << 32 | place as u64;
        let identity = Identity { id: address, address: String::new(), local_address: String::new() };
        let mut redis = self.front_end.new_connection(identity, now);
        self.front_end.plant(&mut redis);
        self.front_end.open(address, redis);
        self.sockets.insert(address, Socket::default());
        Some(address)
    }

    /// A client connects that publishes and subscribes; see [`connect`](Self::connect).
    pub(crate) fn connect_talker(&mut self, now: Now) -> Option<u64> {
        let address = self.connect(now)?;
        if let Some(socket) = self.sockets.get_mut(&address) {
            socket.is_talker = true;
        }
        Some(address)
    }

    /// A client connects that asks for commands which wait; see [`connect`](Self::connect).
    pub(crate) fn connect_waiter(&mut self, now: Now) -> Option<u64> {
        let address = self.connect(now)?;
        if let Some(socket) = self.sockets.get_mut(&address) {
            socket.is_waiter = true;
        }
        Some(address)
    }

    /// The bytes of a command by which one client ends what another one waits for, or its connection.
    pub(crate) fn ask_about(&mut self, address: u64, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(socket) = self.sockets.get_mut(&address) {
            command_of(words, &mut bytes);
            socket.awaited.push_back(Awaited::Counted);
        }
        bytes
    }

    /// What the group knows the commands by that wait here.
    pub(crate) const fn owner_of_waits(&self) -> u64 {
        self.front_end.owner_of_waits()
    }

    /// True if some of these members cannot be reached from here.
    pub(crate) fn misses(&self, members: ReplicaSet) -> bool {
        self.front_end.misses(members)
    }

    /// The front end.
    pub(crate) const fn front_end_mut(&mut self) -> &mut RedisFrontEnd {
        &mut self.front_end
    }

    /// Clients that are there, but for those that publish, subscribe or wait.
    pub(crate) fn clients(&self) -> Vec<u64> {
        let is_apart = |socket: &Socket| socket.is_talker || socket.is_waiter;
        let is_there = |socket: &Socket| !socket.is_abandoned && !socket.is_hung_up && !is_apart(socket);
        let sockets = self.sockets.iter().filter(|(_, socket)| is_there(socket));
        sockets.map(|(address, _)| *address).collect()
    }

    /// A client asks for something; its bytes. With `echo`, a command goes before it whose reply nothing else has.
    pub(crate) fn ask(
        &mut self,
        address: u64,
        (operation, asked): (OperationIndex, Asked),
        (echo, ends_pipeline): (bool, bool),
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(socket) = self.sockets.get_mut(&address) else { return bytes };
        if echo {
            self.echoes += 1;
            // What asks the registry of subscriptions waits for its turn; not every user may.
            if self.echoes.is_multiple_of(3) && self.world.users.is_none() {
                command_of(&[b"PUBSUB", b"NUMPAT"], &mut bytes);
                socket.awaited.push_back(Awaited::Patterns);
            } else {
                let text = format!("echo {}", self.echoes).into_bytes();
                command_of(&[b"ECHO", &text], &mut bytes);
                socket.awaited.push_back(Awaited::Echo(text));
            }
        }
        let is_script = asked.tag().is_some();
        if is_script && !core::mem::replace(&mut socket.is_prepared, true) {
            // The setting is of the process, and each client makes sure of it before its first script.
            let declares: &[u8] = if self.world.declares { b"no" } else { b"yes" };
            command_of(&[b"CONFIG", b"SET", b"lua-undeclared-keys", declares], &mut bytes);
            command_of(&[b"SCRIPT", b"LOAD", SCRIPT.as_bytes()], &mut bytes);
            socket.awaited.extend([Awaited::Selected, Awaited::Name]);
        }
        let database = asked.database();
        if core::mem::replace(&mut socket.database, database) != database {
            command_of(&[b"SELECT", database.number().to_string().as_bytes()], &mut bytes);
            socket.awaited.push_back(Awaited::Selected);
        }
        let encoding = asked.put(self.script.as_deref(), &mut bytes);
        socket.awaited.extend((0..asked.replies_before()).map(|_| Awaited::Queued));
        socket.awaited.push_back(Awaited::Operation {
            operation,
            asked,
            encoding,
            slot: None,
            ends_pipeline,
        });
        bytes
    }

    /// When bytes arrive at an end of a connection that leave `now` and take `delay`: after all before them.
    pub(crate) fn arrival(&mut self, address: u64, to_client: bool, at: VirtualTime) -> VirtualTime {
        let Some(socket) = self.sockets.get_mut(&address) else { return at };
        let last = &mut socket.arrives_at[usize::from(to_client)];
        *last = at.max(*last);
        *last
    }

    /// A client sends bytes, or closes its end (`None`).
    pub(crate) fn send(&mut self, address: u64, bytes: Option<Vec<u8>>) {
        if let Some(socket) = self.sockets.get_mut(&address) {
            socket.sent.push_back(bytes);
        }
    }

    /// The next of what a client has sent arrives at the process. (A process that stood still may get several at one moment.)
    pub(crate) fn receive_next(&mut self, now: Now, address: u64) {
        let Some(socket) = self.sockets.get_mut(&address) else { return };
        match socket.sent.pop_front() {
            Some(Some(bytes)) => {
                socket.received.extend_from_slice(&bytes);
                self.feed(now, address);
            }
            // Half of the clients reset their connections: whatever is unanswered is given up at once.
            Some(None) if (address >> 32).is_multiple_of(2) => self.close(address),
            Some(None) => {
                socket.is_ending = true;
                self.feed(now, address);
                self.front_end.on_input_end(now, address);
                self.close_if_ended(now, address);
            }
            None => {}
        }
    }

    /// Closes a connection whose client has gone, if nothing of it is unanswered. What is answered it does not get.
    fn close_if_ended(&mut self, now: Now, address: u64) {
        let Some(socket) = self.sockets.get(&address).filter(|socket| socket.is_ending) else { return };
        let has_input = !socket.received.is_empty();
        let output = self.front_end.output(address).len();
        self.front_end.sent(address, output);
        self.front_end.on_sent(now, address);
        let outstanding = self.front_end.connection(address).map_or(0, Connection::outstanding);
        if outstanding == 0 && !has_input {
            self.close(address);
        }
    }

    /// How many connections there are whose clients have gone.
    pub(crate) fn ending(&self) -> usize {
        self.sockets.values().filter(|socket| socket.is_ending && !socket.is_hung_up).count()
    }

    /// Hands over what a connection has received, unless it is paused.
    fn feed(&mut self, now: Now, address: u64) {
        while let Some(socket) = self.sockets.get_mut(&address) {
            socket.is_throttled = self.front_end.is_full();
            if socket.received.is_empty() || socket.is_hung_up || socket.is_throttled {
                return;
            }
            let unavailable = self.front_end.unavailable();
            let Some((redis, _)) = self.front_end.connection_mut(now, address) else { return };
            let context = Context { now: now.wall, info: &Silent, unavailable };
            let consumed = redis.receive(&socket.received, &context);
            socket.received.drain(..consumed);
            socket.is_dirty = true;
            let has_more = self.front_end.on_received(now, address);
            socket.is_stalled |= self.front_end.connection(address).is_some_and(Connection::is_paused);
            if !has_more {
                return;
            }
        }
    }

    /// Reads a connection again if what it waited for is over. One that is not known to wait is not looked at: nor does the event
    /// loop, where a client whose pipeline is forgotten waits for ever.
    fn resume(&mut self, now: Now, address: u64) {
        let Some(socket) = self.sockets.get_mut(&address) else { return };
        let is_paused = self.front_end.connection(address).is_some_and(Connection::is_paused);
        if socket.is_throttled || (socket.is_stalled && !is_paused) {
            socket.is_stalled = false;
            self.feed(now, address);
        }
    }

    /// Bytes arrive at a client that publishes and subscribes: what it hears.
    ///
    /// # Errors
    /// What came is no reply and no message.
    pub(crate) fn hear(&mut self, address: u64, bytes: &[u8]) -> Result<Vec<Received>, String> {
        let mut heard = Vec::new();
        let Some(socket) = self.sockets.get_mut(&address).filter(|socket| !socket.is_abandoned) else {
            return Ok(heard);
        };
        socket.replies.extend_from_slice(bytes);
        let mut rest = socket.replies.as_slice();
        while let Some(reply) = parse(&mut rest)? {
            heard.push(reply);
        }
        let taken = socket.replies.len() - rest.len();
        socket.replies.drain(..taken);
        Ok(heard)
    }

    /// Bytes arrive at a client: what has ended.
    ///
    /// # Errors
    /// What came is no answer to what it asked for.
    pub(crate) fn arrive(&mut self, address: u64, bytes: &[u8]) -> Result<Vec<Ended>, String> {
        let mut ended = Vec::new();
        let Some(socket) = self.sockets.get_mut(&address).filter(|socket| !socket.is_abandoned) else {
            return Ok(ended);
        };
        socket.replies.extend_from_slice(bytes);
        let mut rest = socket.replies.as_slice();
        while let Some(reply) = parse(&mut rest)? {
            match socket.awaited.pop_front() {
                None => return Err(format!("a client that has asked for nothing gets {reply:?}")),
                Some(Awaited::Echo(text)) if reply == Received::Bulk(text.clone()) => {}
                // Who a client is may not be known.
                Some(Awaited::Echo(_)) if self.world.users.is_some() && is_unknown_user(&reply) => {}
                // It came when the process was told to end.
                Some(Awaited::Echo(_)) if is_stopping(&reply) => {}
                Some(Awaited::Patterns) if matches!(reply, Received::Integer(_)) || is_stopping(&reply) => {}
                Some(Awaited::Patterns) => return Err(format!("PUBSUB NUMPAT is answered with {reply:?}")),
                Some(Awaited::Selected) if reply == Received::Simple(b"OK".to_vec()) => {}
                Some(Awaited::Selected) => return Err(format!("SELECT is answered with {reply:?}")),
                Some(Awaited::Queued) if matches!(reply, Received::Simple(_) | Received::Error(_)) => {}
                Some(Awaited::Queued) => return Err(format!("a command in MULTI is answered {reply:?}")),
                Some(Awaited::Name) => {
                    if let Received::Bulk(name) = reply {
                        self.script = Some(name);
                    }
                }
                Some(Awaited::Counted) if matches!(reply, Received::Integer(0 | 1)) => {}
                Some(Awaited::Counted) => return Err(format!("one client is {reply:?} clients")),
                Some(Awaited::Echo(text)) => {
                    return Err(format!("a client that expects {} gets {reply:?}", text.escape_ascii()));
                }
                Some(Awaited::Operation { operation, asked, ends_pipeline, .. }) => {
                    let ending = Some(asked.is_answered(reply)?);
                    ended.push(Ended { operation, ending, ends_pipeline });
                }
            }
        }
        let left = rest.len();
        let taken = socket.replies.len() - left;
        socket.replies.drain(..taken);
        Ok(ended)
    }

    /// A client has taken so many bytes: more may leave.
    pub(crate) fn taken(&mut self, address: u64, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut(&address) {
            socket.untaken -= bytes;
            socket.is_dirty = true;
        }
    }

    /// A client goes; the process has not heard of it. What it had asked for.
    pub(crate) fn abandon(&mut self, address: u64) -> Vec<Ended> {
        let Some(socket) = self.sockets.get_mut(&address) else { return Vec::new() };
        if core::mem::replace(&mut socket.is_abandoned, true) {
            return Vec::new();
        }
        // Commands on their way are executed all the same: what is awaited tells which they are.
        let ended = socket.awaited.iter().filter_map(|awaited| match awaited {
            Awaited::Operation { operation, ends_pipeline, .. } => {
                Some(Ended { operation: *operation, ending: None, ends_pipeline: *ends_pipeline })
            }
            _ => None,
        });
        ended.collect()
    }

    /// A connection has ended at the process, too. Its place is free.
    pub(crate) fn close(&mut self, address: u64) {
        if let Some(mut socket) = self.sockets.remove(&address) {
            self.memory.charge(&mut socket.charged, 0);
            self.front_end.close(address);
            self.free.push(address as u32 as usize);
        }
    }

    /// What clients wait for when the process dies.
    pub(crate) fn unfinished(&self) -> Vec<OperationIndex> {
        let open = self.sockets.values().filter(|socket| !socket.is_abandoned);
        let awaited = open.flat_map(|socket| &socket.awaited);
        let operations = awaited.filter_map(|awaited| match awaited {
            Awaited::Operation { operation, .. } => Some(*operation),
            _ => None,
        });
        operations.collect()
    }

    /// The process is told to end.
    pub(crate) fn terminate(&mut self, now: Now) {
        self.front_end.begin_drain(now);
    }

    // ---- The process.

    /// Does what there is to do at `time`, when its clock says `now`, beside the replica in the same process, if there is one:
    /// its clock is another one here.
    pub(crate) fn run(
        &mut self,
        (time, now): (VirtualTime, Now),
        mut home: Option<&mut ReplicaProcess>,
        effects: &mut Vec<HostEffect>,
    ) {
        self.front_end.begin_turn(now.instant);
        self.front_end.tick(now);
        loop {
            let mut is_quiet = true;
            self.record_submitted();
            if let Some(home) = &mut home {
                self.front_end.exchange_waited(home.waited_mut());
                is_quiet &= !self.front_end.exchange_evictions(now, home.evictions_mut());
                home.exchange_key_events(now, &mut self.front_end);
            }
            while let Some(action) = self.front_end.poll(now) {
                is_quiet = false;
                self.record_submitted();
                match action {
                    FrontEndAction::Send { to, message } => {
                        if let Message::Request { request, .. } = &message {
                            self.record_sent(request, effects);
                        }
                        effects.push(HostEffect::Send { to, message });
                    }
                    FrontEndAction::Reconfigured(_) => {}
                    FrontEndAction::SendToPeer { to, message } => {
                        effects.push(HostEffect::SendToPeer { to, message });
                    }
                    FrontEndAction::CloseSubscriber { address, .. } => {
                        self.front_end.close(address);
                        self.hang_up(address);
                    }
                    FrontEndAction::Completed { token, reply, applied, .. } => {
                        let submitted = self.submitted.remove(&token);
                        let operations = submitted.map(|(_, operations)| operations).unwrap_or_default();
                        let read = |operation| HostEffect::Read { operation, reply: reply.clone(), applied };
                        effects.extend(operations.into_iter().map(read));
                    }
                    FrontEndAction::Look(look) => {
                        let reply = home.as_ref().and_then(|home| home.read_at_once(now, &look.body));
                        self.front_end.on_look(now, look, reply.as_deref());
                    }
                    FrontEndAction::Try(attempt) => {
                        let answer = match &mut home {
                            Some(home) => home.answer_no_op(time, attempt.submission()),
                            None => NoOpAnswer::Unknown,
                        };
                        if let NoOpAnswer::NoOp(applied, reply) = &answer {
                            let Submission { slot, body, .. } = attempt.submission();
                            let operations = self.operations_in(attempt.address(), *slot, body);
                            let answered = |operation| HostEffect::NoOp {
                                operation,
                                reply: reply.clone(),
                                applied: *applied,
                            };
                            effects.extend(operations.into_iter().map(answered));
                        }
                        self.front_end.on_tried(now, attempt, answer);
                    }
                }
            }
            // Commands that wait are submitted when the front end is polled.
            self.record_submitted();
            while let Some(address) = self.front_end.go_on(now) {
                is_quiet = false;
                if let Some(socket) = self.sockets.get_mut(&address) {
                    socket.is_dirty = true;
                }
                self.resume(now, address);
            }
            is_quiet &= !self.flush(now, effects);
            if is_quiet {
                break;
            }
        }
        self.evict_if_exceeded();
        self.leave(now, effects);
        for address in core::mem::take(&mut self.closed) {
            effects.push(HostEffect::Close { address });
        }
    }

    /// Moves replies into the sockets, as far as these take them. True if there were any.
    fn flush(&mut self, now: Now, effects: &mut Vec<HostEffect>) -> bool {
        let mut has_sent = false;
        let addresses: Vec<u64> = self.sockets.keys().copied().collect();
        for address in addresses {
            let Some(socket) = self.sockets.get_mut(&address).filter(|it| !it.is_hung_up) else { continue };
            if socket.is_ending {
                self.feed(now, address);
                self.close_if_ended(now, address);
                continue;
            }
            if !core::mem::take(&mut socket.is_dirty) && !socket.is_throttled {
                continue;
            }
            let output = self.front_end.output(address);
            let portion = output.len().min(self.world.window.saturating_sub(socket.untaken));
            if portion > 0 {
                let bytes = output[..portion].to_vec();
                socket.untaken += portion;
                effects.push(HostEffect::Reply { address, bytes });
                self.front_end.sent(address, portion);
                has_sent = true;
            }
            self.front_end.on_sent(now, address);
            self.resume(now, address);
            let is_finished = self.front_end.connection(address).is_some_and(Connection::is_finished);
            if is_finished && self.front_end.output(address).is_empty() {
                self.hang_up(address);
            }
        }
        has_sent
    }

    /// The process closes a connection.
    fn hang_up(&mut self, address: u64) {
        if let Some(socket) = self.sockets.get_mut(&address)
            && !std::mem::replace(&mut socket.is_hung_up, true)
        {
            socket.received = Vec::new();
            self.closed.push(address);
        }
    }

    /// Closes the connections that hold most, if all together hold too much.
    fn evict_if_exceeded(&mut self) {
        for (address, socket) in &mut self.sockets {
            let replies = self.front_end.connection(*address).map_or(0, Connection::memory_bytes);
            self.memory.charge(&mut socket.charged, socket.received.capacity() + replies);
        }
        self.memory.charge(&mut self.reserved, self.front_end.reserved());
        if !self.memory.is_exceeded() {
            return;
        }
        let charged = |(address, socket): (&u64, &Socket)| (*address, socket.charged);
        let mut evictable = self.memory.evictable(self.sockets.iter().map(charged));
        while let Some((address, _)) = self.memory.evict(&mut evictable) {
            if let Some(socket) = self.sockets.get_mut(&address) {
                self.memory.charge(&mut socket.charged, 0);
            }
            self.front_end.close(address);
            self.hang_up(address);
        }
    }

    /// A process that is to end closes connections of which nothing is unanswered, and ends when none is left.
    fn leave(&mut self, now: Now, effects: &mut Vec<HostEffect>) {
        if !self.front_end.is_stopping() || self.has_exited {
            return;
        }
        let mut open = 0;
        let open_sockets = self.sockets.iter().filter(|(_, socket)| !socket.is_hung_up);
        let addresses: Vec<u64> = open_sockets.map(|(address, _)| *address).collect();
        for address in addresses {
            let has_bytes =
                self.sockets.get(&address).is_some_and(|it| !it.received.is_empty() || it.untaken > 0);
            if self.front_end.is_quiet(now, address, has_bytes) {
                self.hang_up(address);
            } else {
                open += 1;
            }
        }
        if open == 0 || self.front_end.is_drain_over(now) {
            self.has_exited = true;
            effects.push(HostEffect::Exit);
        } else {
            self.front_end.look_again(now);
        }
    }

    /// Finds out which commands are in what the front end has submitted: for the judge, which tries the order of the log first.
    fn record_submitted(&mut self) {
        while let Some(submitted) = self.front_end.next_submitted() {
            let Submitted { address, slot, token, ref body, ref made } = submitted;
            let operations = self.operations_in(address, slot, made.as_ref().unwrap_or(body));
            self.submitted.insert(token, (submitted, operations));
        }
    }

    /// The commands of a client that are in this body, which its connection calls so.
    fn operations_in(&mut self, address: u64, called: u64, body: &[u8]) -> Vec<OperationIndex> {
        let mut operations = Vec::new();
        let mut rest = body;
        let awaited = self.sockets.get_mut(&address).map(|socket| &mut socket.awaited);
        for awaited in awaited.into_iter().flatten() {
            // A read that is submitted again keeps its slot.
            if let Awaited::Operation { operation, asked, encoding, slot, .. } = awaited
                && slot.is_none_or(|slot| slot == called)
                && !rest.is_empty()
                && let Some(after) = without(rest, encoding, asked.tag().as_deref())
            {
                *slot = Some(called);
                rest = after;
                operations.push(*operation);
            }
        }
        operations
    }

    fn record_sent(&mut self, request: &Request, effects: &mut Vec<HostEffect>) {
        let is_this = |(_, (submitted, _)): &(&Token, &(Submitted, Vec<OperationIndex>))| {
            Arc::ptr_eq(&submitted.body, &request.body)
        };
        let Some((token, (_, operations))) = self.submitted.iter().find(is_this) else { return };
        if !self.sent.contains(token) {
            self.sent.push(*token);
            let sent =
                |operation: &OperationIndex| HostEffect::Sent { operation: *operation, id: request.id };
            effects.extend(operations.iter().map(sent));
        }
    }
}

/// True for what clients get while the process does not know the users.
fn is_unknown_user(reply: &Received) -> bool {
    matches!(reply, Received::Error(text) if text.starts_with(b"NOQUORUM"))
}

/// True for what clients get from a process that has been told to end.
fn is_stopping(reply: &Received) -> bool {
    matches!(reply, Received::Error(text) if text.starts_with(b"TRYAGAIN") && text.ends_with(b"this node is stopping"))
}

/// A body without the operations that it begins with, if those are what is encoded here but for what the process has drawn,
/// or a script with this among its arguments. `None` if nothing is encoded: an empty transaction is in no body.
fn without<'b>(body: &'b [u8], encoding: &[u8], tag: Option<&[u8]>) -> Option<&'b [u8]> {
    let mut rest = body;
    if let Some(tag) = tag {
        Operation::decode(&mut rest).ok()?;
        let first = &body[..body.len() - rest.len()];
        return first.windows(tag.len()).any(|window| window == tag).then_some(rest);
    }
    let mut undrawn = Vec::new();
    while undrawn.len() < encoding.len() {
        let mut operation = Operation::decode(&mut rest).ok()?;
        if let Some(seed) = operation.seed_mut() {
            *seed = 0;
        }
        operation.encode(&mut undrawn);
    }
    (!encoding.is_empty() && undrawn == encoding).then_some(rest)
}

#[cfg(test)]
mod tests {
    use syros_commands::{Parsed, parse};

    use super::without;

    /// The body of these commands, of which what depends on chance has drawn this.
    fn body(commands: &[&[&[u8]]], drawn: u64) -> Vec<u8> {
        let mut body = Vec::new();
        for words in commands {
            let Ok(Parsed::Data(mut operation)) = parse(words) else { panic!("{words:?} is of data") };
            if let Some(seed) = operation.seed_mut() {
                *seed = drawn;
            }
            operation.encode(&mut body);
        }
        body
    }

    #[test]
    fn what_the_process_draws_is_not_compared() {
        let transaction: &[&[&[u8]]] = &[&[b"SPOP", b"a"], &[b"SET", b"b", b"1"], &[b"SPOP", b"c"]];
        let next: &[&[&[u8]]] = &[&[b"SET", b"d", b"2"]];
        let asked = body(transaction, 0);
        let submitted = [body(transaction, 77), body(next, 0)].concat();
        assert_eq!(without(&submitted, &asked, None), Some(&*body(next, 0)));
        let other = body(&[&[b"SPOP", b"a"], &[b"SET", b"b", b"9"], &[b"SPOP", b"c"]], 77);
        assert_eq!(
            without(&other, &asked, None),
            None,
            "it is another transaction behind its first operation"
        );
    }

    #[test]
    fn an_empty_transaction_is_in_no_body() {
        assert_eq!(without(&body(&[&[b"SET", b"d", b"2"]], 0), b"", None), None);
    }
}

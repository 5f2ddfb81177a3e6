//! The event loop: one thread, one turn after the other.
//!
//! A turn waits for events, reads every connection that has input, carries out what the cores want
//! until they want nothing more, hands the log to its thread, and writes every connection that has
//! output. So whatever came together is handled together: one system call for many messages, one
//! Prepare for many updates.
//!
//! **What can wait comes last.** A fast update is answered when it is on disk; ordering and executing it is
//! nobody's hurry. So a turn executes the log and looks at what is due only when it has handed the disk its
//! records and clients their answers, and then does the same once more with what came of that: the disk writes meanwhile.
//! In between it lets the threads run that it has woken ([`yield_policy`](crate::yield_policy)), and those answers that wait for
//! the disk leave without it ([`durable_sender`](crate::durable_sender)).
//!
//! **Time.** `now` is sampled after every read and never before: a read handled by a leader whose lease
//! is valid at `now` was received before `now`. (A process that slept in between wakes with an old
//! `now`, and an answer that was right then; what it receives after waking gets a new one.)

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event as IoEvent;
use mio::{Events, Poll, Token};
use syros_net::{FlushOutcome, ReadOutcome};
use syros_node::front_end::{ClientMemory, FrontEndAction, RedisFrontEnd, needs_room};
use syros_node::{InMemory as _, ReadJob};
use syros_protocol::client;
use syros_protocol::message::{Body, Freshness, Message, Peer};
use syros_protocol::record::Ticket;
use syros_protocol::replica;
use syros_types::{
    ConfigurationEpoch, ConfigurationId, Instant, Now, OpNumber, OtherConfiguration, ReplicaId, ReplicaSet,
    Roster, View, WallTime,
};
use syros_wire::{
    Channel, FrameBuffer, HandshakeMessage, put_member_reply_frame, put_message_frame, put_read_reply_frame,
};
use tracing::field::display;

use crate::accept::Listener;
use crate::clock::Clock;
use crate::connection::{Connections, Deadlines, Entry, HeldRead, Kind, Open};
use crate::descriptors::Descriptors;
use crate::forming::Forming;
use crate::handshake::Introduction;
use crate::info::Description;
use crate::links::{Link, Resolver};
use crate::local::{Delayed, Local, Wanted};
use crate::statistics::Statistics;
use crate::stop::StopFlag;
use crate::yield_policy::{Turn, YieldPolicy};

/// Token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Tokens of the listeners.
pub(crate) const REDIS_LISTENER: Token = Token(usize::MAX - 1);
pub(crate) const REPLICA_LISTENER: Token = Token(usize::MAX - 2);

/// Events taken from the system at a time; the rest comes in the next turn.
const EVENTS_PER_TURN: usize = 1024;

/// Reads of one connection in one turn. Its input buffer grows when reads fill it, so a busy connection
/// needs few; the others should not wait for more.
const READS_PER_TURN: usize = 4;

/// The replica core sees the front end of its own process as the client with this address. No
/// connection has it: it would be in the last place of a full table.
const OWN_FRONT: u64 = u64::MAX;

/// Portions of output that one connection writes at a time.
const PORTIONS_PER_TURN: usize = 4;

/// Messages to a replica are dropped while more bytes than this wait for it: it will ask again.
const LINK_BACKLOG_MAX: usize = 64 * 1024 * 1024;

/// When a leader stops, another one has to lead within this time.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(1);

/// When a process stops, what it has done is written out within this time.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);

/// INFO waits so long until the keys have been counted, and then tells how many there were the last time.
const COUNT_PATIENCE: Duration = Duration::from_secs(2);

/// A connection that waits until the keys have been counted.
#[derive(Clone, Copy, Debug)]
struct Counting {
    address: u64,
    request: u64,
    /// It waits no longer than this.
    until: Instant,
}

/// Why the loop has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// The disk had refused a write, and takes writes again.
    DiskReturned,
    /// What is on disk is damaged, and others can repair it.
    Damaged,
    /// The group has been formed: the node may act.
    Formed(Roster),
    /// The node must not run, for this reason.
    Refused(String),
}

/// Everything a process does.
pub(crate) struct EventLoop {
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    pub(crate) now: Now,
    pub(crate) stop: Arc<StopFlag>,
    pub(crate) table: Connections,
    /// Connections to be read in this turn, or the next.
    ready: Vec<usize>,
    /// Connections that are not read until the disk and the group have caught up.
    throttled: Vec<usize>,
    /// Connections that are not read until others have given memory back.
    starved: Vec<usize>,
    /// Connections whose held reads may go on.
    resumed: Vec<usize>,
    /// What the front end has just been answered is large: it is dealt with before more is read.
    has_large_news: bool,
    /// The memory of all clients' connections.
    pub(crate) memory: ClientMemory,
    /// What it is charged with for replies that belong to no connection yet.
    reserved: usize,
    /// Connections with output.
    pub(crate) dirty: Vec<usize>,
    /// Connections with frames that are to leave from the log's thread.
    released: Vec<usize>,
    /// A request of the front end on its way to several connections.
    frame: FrameBuffer,
    pub(crate) redis_listener: Option<Listener>,
    pub(crate) replica_listener: Option<Listener>,
    pub(crate) greetings: Deadlines,
    /// Connections to the replicas' port in the order in which they came, as long as it is not settled who they are;
    /// some of them have been, or are gone.
    pub(crate) unsettled: VecDeque<u64>,
    pub(crate) links: Vec<Link>,
    pub(crate) resolver: Resolver,
    pub(crate) introduction: Introduction,
    pub(crate) front_end: RedisFrontEnd,
    pub(crate) local: Option<Local>,
    /// What there is instead of a replica while the group is being formed.
    pub(crate) forming: Option<Forming>,
    /// Members that know this one by another disk.
    pub(crate) disowned_by: ReplicaSet,
    /// Why the node must not go on.
    pub(crate) refusal: Option<String>,
    pub(crate) description: Description,
    /// Redis clients connected.
    pub(crate) clients: usize,
    /// Syros clients connected, on the port for replicas. Whoever reaches one port takes no places of the other's.
    pub(crate) peer_clients: usize,
    /// Most of each.
    pub(crate) descriptors: Descriptors,
    pub(crate) output_bytes_max: usize,
    pub(crate) statistics: Statistics,
    /// Connections that wait until the keys have been counted, in the order of their requests.
    counting: VecDeque<Counting>,
    /// Number of the last request for a count.
    last_count: u64,
    yield_policy: YieldPolicy,
    /// What this turn has done so far.
    turn: Turn,
}

/// What an [`EventLoop`] is made of.
pub(crate) struct Parts {
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<StopFlag>,
    pub(crate) redis_listener: Option<Listener>,
    pub(crate) replica_listener: Option<Listener>,
    pub(crate) links: Vec<Link>,
    pub(crate) resolver: Resolver,
    pub(crate) introduction: Introduction,
    pub(crate) front_end: RedisFrontEnd,
    pub(crate) local: Option<Local>,
    pub(crate) forming: Option<Forming>,
    pub(crate) description: Description,
    pub(crate) descriptors: Descriptors,
    pub(crate) client_memory: usize,
    pub(crate) output_bytes_max: usize,
}

impl EventLoop {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            now: parts.clock.now(),
            poll: parts.poll,
            clock: parts.clock,
            stop: parts.stop,
            table: Connections::default(),
            ready: Vec::new(),
            throttled: Vec::new(),
            starved: Vec::new(),
            resumed: Vec::new(),
            has_large_news: false,
            memory: ClientMemory::new(parts.client_memory),
            reserved: 0,
            dirty: Vec::new(),
            released: Vec::new(),
            frame: FrameBuffer::default(),
            redis_listener: parts.redis_listener,
            replica_listener: parts.replica_listener,
            greetings: Deadlines::default(),
            unsettled: VecDeque::new(),
            links: parts.links,
            resolver: parts.resolver,
            introduction: parts.introduction,
            front_end: parts.front_end,
            local: parts.local,
            forming: parts.forming,
            disowned_by: ReplicaSet::default(),
            refusal: None,
            description: parts.description,
            clients: 0,
            peer_clients: 0,
            descriptors: parts.descriptors,
            output_bytes_max: parts.output_bytes_max,
            statistics: Statistics::default(),
            counting: VecDeque::new(),
            last_count: 0,
            yield_policy: YieldPolicy::default(),
            turn: Turn::default(),
        }
    }

    /// Runs until it is told to stop, or has to start anew. An error: the system does not let us wait for
    /// events.
    pub(crate) fn run(mut self) -> io::Result<Ended> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        if let Some(local) = &mut self.local {
            local.handle(self.now, replica::Event::MemberConnected(OWN_FRONT));
            self.front_end.handle(self.now, client::Event::Connected(local.me));
        }
        while !self.stop.is_set() {
            self.turn(&mut events)?;
            if let Some(ended) = self.form()? {
                self.flush();
                return Ok(ended);
            }
            if let Some(refusal) = self.refusal.take() {
                return Ok(Ended::Refused(refusal));
            }
            if self.local.as_mut().is_some_and(|local| local.disk_has_returned(self.now)) {
                self.flush();
                return Ok(Ended::DiskReturned);
            }
            if self.local.as_mut().is_some_and(|local| local.is_damaged(self.now)) {
                self.hand_over(&mut events)?;
                self.flush();
                return Ok(Ended::Damaged);
            }
        }
        self.hand_over(&mut events)?;
        self.drain_clients(&mut events)?;
        self.shut_down();
        Ok(Ended::Stopped)
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        match self.poll.poll(events, self.timeout()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => result?,
        }
        self.now = self.clock.now();
        self.turn = Turn::default();
        self.front_end.begin_turn();
        for event in events.iter() {
            self.on_io_event(event);
        }
        // What is on disk now has been waited for the longest.
        if let Some(local) = &mut self.local
            && local.on_progress(self.now)
        {
            self.dispatch_outputs();
        }
        self.end_counting();
        self.accept_waiting();
        self.dial_due();
        if !self.throttled.is_empty() && !self.is_overloaded() {
            self.ready.append(&mut self.throttled);
        }
        self.feed_starved();
        // Places that are queued during this loop wait for the next turn.
        let mut ready = std::mem::take(&mut self.ready);
        for index in ready.drain(..) {
            self.serve(index);
        }
        if self.ready.is_empty() {
            self.ready = ready;
        }
        self.close_silent();
        self.dispatch_outputs();
        // The disk has what it waits for, and clients have their answers: now what can wait.
        self.yield_policy();
        if let Some(local) = &mut self.local {
            local.execute(self.now);
        }
        self.tick();
        self.dispatch_outputs();
        if let Some(local) = &mut self.local {
            local.pause_execution();
        }
        self.table.recycle();
        Ok(())
    }

    /// Lets the threads run that this turn has woken, before it does what can wait.
    fn yield_policy(&mut self) {
        if self.turn.should_yield() && self.yield_policy.is_due(self.now.instant) {
            let begun = self.clock.now().instant;
            std::thread::yield_now();
            self.yield_policy.record(begun, self.clock.now().instant.since(begun));
        }
    }

    /// Carries out what the cores want, and lets go of what has come of it: to the log's thread, and to others.
    fn dispatch_outputs(&mut self) {
        self.drain();
        if self.memory.candidate().is_some() {
            self.spare();
        }
        self.evict_if_exceeded();
        self.hand_to_durable_sender();
        if let Some(local) = &mut self.local {
            self.turn.has_logged |= local.submit();
            local.tell_role();
        }
        self.flush();
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let has_more = !self.dirty.is_empty()
            || !self.ready.is_empty()
            || !self.resumed.is_empty()
            || self.front_end.has_more();
        if has_more || self.wants_to_accept() {
            return Some(Duration::ZERO);
        }
        let local = self.local.as_ref().map_or(Instant::NEVER, Local::deadline);
        let deadline = local
            .min(self.front_end.deadline())
            .min(self.greetings.next())
            .min(self.memory.deadline())
            .min(self.memory.spared_until())
            .min(self.counting.front().map_or(Instant::NEVER, |counting| counting.until))
            .min(self.accept_deadline())
            .min(self.dial_deadline())
            .min(self.forming.as_ref().map_or(Instant::NEVER, Forming::deadline));
        (deadline != Instant::NEVER).then(|| deadline.since(self.clock.now().instant))
    }

    fn on_io_event(&mut self, event: &IoEvent) {
        match event.token() {
            // What it wakes for is looked at in every turn.
            WAKER => {}
            token @ (REDIS_LISTENER | REPLICA_LISTENER) => {
                if let Some(listener) = self.listener(token) {
                    listener.is_ready = true;
                }
            }
            Token(index) if self.table.is_dialing(index) => self.progress(index),
            Token(index) => {
                let Some(open) = self.table.open_mut(index) else { return };
                open.net.on_event(event);
                if open.net.is_readable() {
                    self.queue(index);
                }
                self.mark_dirty(index);
            }
        }
    }

    /// The connection is to be read.
    pub(crate) fn queue(&mut self, index: usize) {
        if let Some(open) = self.table.open_mut(index)
            && !open.is_queued
        {
            open.is_queued = true;
            self.ready.push(index);
        }
    }

    /// The connection may have output.
    pub(crate) fn mark_dirty(&mut self, index: usize) {
        if let Some(open) = self.table.open_mut(index) {
            mark_dirty(open, index, &mut self.dirty);
        }
    }

    fn is_overloaded(&self) -> bool {
        self.front_end.is_full() || self.local.as_ref().is_some_and(Local::is_behind)
    }

    /// Reads a connection and handles what came.
    fn serve(&mut self, index: usize) {
        let is_overloaded = self.is_overloaded();
        let Some(open) = self.table.open_mut(index) else { return };
        let is_client = matches!(open.kind, Kind::Redis | Kind::Client);
        if is_client && is_overloaded {
            // Stays queued, in another queue.
            self.throttled.push(index);
            return;
        }
        open.is_queued = false;
        for _ in 0..READS_PER_TURN {
            let Some(open) = self.table.open_mut(index) else { return };
            if is_client && open.is_clogged() {
                open.is_stalled = true;
                return;
            }
            if is_client && !open.is_closing {
                // Charged before it is taken.
                let growth = open.net.growth_ahead();
                if growth > 0 && !self.memory.admits(open.charged, growth) {
                    open.is_queued = true;
                    self.starved.push(index);
                    return self.memory.wait(self.now.instant, growth);
                }
            }
            // Of a connection that is closing, only what has been received is still handled.
            let outcome = if open.is_closing { ReadOutcome::Nothing } else { open.net.read() };
            self.now = self.clock.now();
            match outcome {
                ReadOutcome::Received(_) | ReadOutcome::Nothing | ReadOutcome::Full => {
                    if let Err(problem) = self.handle_input(index) {
                        return self.refuse(index, &problem);
                    }
                }
                ReadOutcome::Closed => return self.on_end(index),
                ReadOutcome::Failed(error) => return self.close(index, &error.to_string()),
            }
            let Some(open) = self.table.open_mut(index) else { return };
            open.charge(&self.front_end, &mut self.memory);
            if !open.net.is_readable() || open.is_stalled || open.is_closing {
                return;
            }
        }
        self.queue(index);
    }

    /// Handles all whole messages that a connection has received. An error: it sent something that no
    /// working peer sends.
    fn handle_input(&mut self, index: usize) -> Result<(), String> {
        loop {
            let Some(open) = self.table.open_mut(index) else { return Ok(()) };
            match &open.kind {
                Kind::Redis => {
                    self.handle_redis(index);
                    return Ok(());
                }
                Kind::Greeting(_) => {
                    if !self.handle_greeting(index)? {
                        return Ok(());
                    }
                }
                Kind::Client => return self.handle_client(index),
                Kind::Link(replica) => {
                    let replica = *replica;
                    return self.handle_link(index, replica);
                }
            }
        }
    }

    /// Frames of a Syros client: requests for the replica.
    fn handle_client(&mut self, index: usize) -> Result<(), String> {
        let ours = self.description.configuration.id;
        let (Some(open), Some(local)) = (self.table.open_mut(index), &mut self.local) else { return Ok(()) };
        let from = Peer::Client(open.address);
        let statistics = &self.statistics;
        let inbound = open.net.inbound();
        while let Some(frame) = inbound
            .next_frame(syros_wire::CLIENT_FRAME_BYTES_MAX)
            .map_err(|error| statistics.no_frame(error))?
        {
            if frame.channel != Channel::Client {
                let Some(transcript) = open.transcript.take().filter(|_| frame.channel == Channel::Handshake)
                else {
                    return Err(format!("a client sent a frame on channel {:?}", frame.channel));
                };
                let step = HandshakeMessage::decode(frame.payload).map_err(|error| error.to_string())?;
                self.authenticate_client(index, &transcript, &step)?;
                // Only once: the transcript has been taken.
                return self.handle_client(index);
            }
            let message =
                syros_wire::decode_client_message(frame.payload).map_err(|error| error.to_string())?;
            if !is_for_replica(&message) {
                return Err("a client sent an answer".to_owned());
            }
            ours.check(frame.configuration).map_err(foreign)?;
            if matches!(message, Message::HandOver { .. })
                && self.introduction.secret.is_some()
                && !open.is_authenticated
            {
                return Err(
                    "a client that has not proved that it knows the cluster's secret wanted the leader \
                            to hand over"
                        .to_owned(),
                );
            }
            tracing::trace!(
                connection = open.address,
                name = message.name(),
                "a request of a Syros client has come"
            );
            local.handle(self.now, replica::Event::Message { from, message });
        }
        Ok(())
    }

    /// Frames of another node: messages for the replica, requests of its front end, and answers to ours.
    fn handle_link(&mut self, index: usize, from: ReplicaId) -> Result<(), String> {
        while let Some((epoch, message)) = self.handle_frames(index, from)? {
            self.make_room_for(&message);
            self.front_end.on_message(self.now, from, epoch, message);
        }
        Ok(())
    }

    /// Frames of another node, up to a reply that there has to be room for.
    fn handle_frames(
        &mut self,
        index: usize,
        from: ReplicaId,
    ) -> Result<Option<(ConfigurationEpoch, Message)>, String> {
        let ours = self.description.configuration.id;
        let Some(open) = self.table.open_mut(index) else { return Ok(None) };
        let address = open.address;
        let mut reply = None;
        let Self { front_end, statistics, .. } = self;
        let mut heard = None;
        let inbound = open.net.inbound();
        while let Some(frame) = inbound
            .next_frame(syros_types::limits::FRAME_BYTES_MAX)
            .map_err(|error| statistics.no_frame(error))?
        {
            match (frame.channel, &mut self.local) {
                (Channel::Client, local) => {
                    let message = syros_wire::decode_client_message(frame.payload)
                        .map_err(|error| error.to_string())?;
                    let epoch = frame.configuration.epoch;
                    // Which epoch's answers count, the client decides.
                    let expected =
                        if is_for_replica(&message) { ours } else { ConfigurationId { epoch, ..ours } };
                    expected.check(frame.configuration).map_err(foreign)?;
                    tracing::trace!(
                        connection = address,
                        member = from.0,
                        name = message.name(),
                        "a message of another node's front end or to ours has come"
                    );
                    match local {
                        Some(local) if is_for_replica(&message) => {
                            let from = Peer::Client(address);
                            local.handle(self.now, replica::Event::Message { from, message });
                        }
                        _ if needs_room(&message) => {
                            reply = Some((epoch, message));
                            break;
                        }
                        _ => front_end.on_message(self.now, from, epoch, message),
                    }
                }
                (Channel::Replica, Some(local)) => {
                    ours.check(frame.configuration).map_err(foreign)?;
                    let message = syros_wire::decode_message(frame.payload, local.describe)
                        .map_err(|error| error.to_string())?;
                    tracing::trace!(
                        connection = address,
                        member = from.0,
                        name = message.name(),
                        "a message of another replica has come"
                    );
                    let from = Peer::Replica(from);
                    local.handle(self.now, replica::Event::Message { from, message });
                }
                // The group is being formed here, and has been at the other end.
                (Channel::Replica, None) if self.forming.is_some() => {}
                (Channel::Handshake, _) => {
                    match HandshakeMessage::decode(frame.payload).map_err(|error| error.to_string())? {
                        HandshakeMessage::Stage(stage) => heard = Some(stage),
                        _ => return Err("it goes on with a handshake that is over".to_owned()),
                    }
                }
                (channel, _) => return Err(format!("unexpected frame on channel {channel:?}")),
            }
        }
        heard.map_or(Ok(()), |stage| self.hear_stage(from, stage))?;
        Ok(reply)
    }

    /// Redis commands.
    fn handle_redis(&mut self, index: usize) {
        let Self { table, front_end, statistics, local, description, memory, now, .. } = self;
        let Some(open) = table.open_mut(index) else { return };
        let state = (front_end.is_cut_off(), front_end.is_stopping());
        let unavailable = front_end.unavailable();
        let Some((redis, client)) = front_end.connection_mut(open.address) else { return };
        let clients = (self.clients, self.descriptors.redis_clients);
        let info = description.view(local.as_ref(), (client, statistics), clients, memory, state, *now);
        let context = syros_resp::Context { now: now.wall, info: &info, unavailable };
        let before = redis.commands();
        let received = open.net.received();
        if !received.is_empty() {
            let consumed = redis.receive(received, &context);
            open.net.consume(consumed);
        }
        if redis.speaks_http() {
            let problem = "it sent POST or Host: as a command, as a web browser does that an attacker uses to \
                           send commands (cross-protocol scripting)";
            return self.refuse(index, problem);
        }
        statistics.commands.set(statistics.commands.get() + redis.commands() - before);
        if redis.is_paused() {
            open.is_stalled = true;
        }
        if redis.takes_count()
            && let Some(local) = local
        {
            self.last_count += 1;
            local.count_keys(self.last_count);
            let until = now.instant.after(COUNT_PATIENCE);
            self.counting.push_back(Counting { address: open.address, request: self.last_count, until });
        }
        front_end.on_received(*now, open.address);
        mark_dirty(open, index, &mut self.dirty);
        if let Some(local) = local {
            // One of the commands may have set the limit.
            local.tell_memory(*now);
        }
    }

    /// Answers INFO where it waited until the keys were counted.
    fn end_counting(&mut self) {
        let now = self.now;
        while let Some(Counting { address, request, until }) = self.counting.front().copied()
            && (self.local.as_ref().is_none_or(|local| local.counted >= request) || until <= now.instant)
        {
            self.counting.pop_front();
            let Some(index) = self.table.find(address) else { continue };
            let Self { table, front_end, statistics, local, description, memory, .. } = self;
            let Some(open) = table.open_mut(index) else { continue };
            let state = (front_end.is_cut_off(), front_end.is_stopping());
            let Some((redis, client)) = front_end.connection_mut(address) else { continue };
            let clients = (self.clients, self.descriptors.redis_clients);
            let info = description.view(local.as_ref(), (client, statistics), clients, memory, state, now);
            redis.counted(&syros_resp::Context { now: now.wall, info: &info, unavailable: None });
            open.charge(front_end, memory);
            mark_dirty(open, index, &mut self.dirty);
            self.unstall(index);
        }
    }

    /// The other end sends no more.
    fn on_end(&mut self, index: usize) {
        let Some(open) = self.table.open_mut(index) else { return };
        let waits = match &open.kind {
            Kind::Redis => self.front_end.connection(open.address).is_some_and(has_replies),
            Kind::Greeting(_) | Kind::Link(_) | Kind::Client => false,
        };
        if waits || (open.net.backlog() > 0 && !matches!(open.kind, Kind::Link(_))) {
            // It may have closed only its own direction, and wait for its replies.
            open.is_closing = true;
            self.mark_dirty(index);
        } else {
            self.close(index, "the other end closed the connection");
        }
    }

    /// What the cores wait for in time.
    fn tick(&mut self) {
        let now = self.now;
        if let Some(local) = &mut self.local {
            if now.instant >= local.replica().deadline() {
                local.handle(now, replica::Event::Tick);
            }
            local.record_promises_end(now);
        }
        self.front_end.tick(now);
        self.watch_quorum();
    }

    /// Tells the front end when no majority can be reached, and when one can be again.
    fn watch_quorum(&mut self) {
        if !self.front_end.is_quorum_due(self.now) {
            return;
        }
        let now = self.now;
        let silent = self.local.as_ref().and_then(|local| local.replica().quorum_silence(now.instant));
        let has_links = self.links.iter().any(|link| link.connection.is_some());
        let is_alone = self.links.len() <= 1;
        if let Some(reachable) = self.front_end.watch_quorum(now, silent, has_links || is_alone) {
            if reachable {
                tracing::info!(node = self.node(), "this node reaches a majority of the replicas again");
            } else {
                tracing::warn!(
                    node = self.node(),
                    "this node reaches no majority of the replicas: Redis clients get NOQUORUM"
                );
            }
        }
    }

    /// Carries out what the cores want, until they want nothing more.
    fn drain(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(delayed) = self.local.as_mut().and_then(Local::pop_held) {
                is_quiet = false;
                match delayed {
                    Delayed::Message(to, message) => self.deliver(to, message),
                    Delayed::Frames(address, frames) => {
                        self.put_for_client(address, |out| out.extend_from_slice(&frames));
                    }
                }
            }
            while let Some((to, message)) = self.pop_slow_read() {
                is_quiet = false;
                self.deliver(to, message);
            }
            while let Some(index) = self.resumed.pop() {
                is_quiet = false;
                self.read_held(index);
            }
            while !self.has_large_news
                && let Some(wanted) = self.local.as_mut().and_then(|local| local.poll(self.now))
            {
                is_quiet = false;
                self.act(wanted);
            }
            self.has_large_news = false;
            while let Some(action) = self.front_end.poll(self.now) {
                is_quiet = false;
                match action {
                    FrontEndAction::Send { to, message } => self.send_request(to, message),
                    FrontEndAction::Completed { address, .. } => self.charge(address),
                }
            }
            while let Some(address) = self.front_end.go_on(self.now) {
                is_quiet = false;
                self.go_on(address);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn act(&mut self, wanted: Wanted) {
        match wanted {
            Wanted::Send(to, message) => self.deliver(to, message),
            Wanted::SendAfter(after, to, message) => self.deliver_after(after, to, message),
            Wanted::Read(job) => {
                let ReadJob { to, view, number, body, freshness, applied, now, time } = job;
                self.read_if_room(to, (view, number), applied, body, (freshness, time, now));
            }
        }
    }

    /// Sends a message of the replica.
    fn deliver(&mut self, to: Peer, message: Message) {
        let configuration = self.description.configuration.id;
        tracing::trace!(to = ?to, name = message.name(), "the replica sends a message");
        match to {
            Peer::Client(OWN_FRONT) => {
                let Some(local) = &self.local else { return };
                let from = local.me;
                self.make_room_for(&message);
                self.front_end.on_message(self.now, from, configuration.epoch, message);
            }
            Peer::Client(address) => self.put_for_client(address, |out| {
                put_message_frame(out, Channel::Client, configuration, &message);
            }),
            Peer::Replica(replica) => self.put_for_replica(replica, |out| {
                put_message_frame(out, Channel::Replica, configuration, &message);
            }),
        }
    }

    /// Sends a message of the replica when a record is on disk: from the log's thread, if it goes to another process.
    fn deliver_after(&mut self, after: Ticket, to: Peer, message: Message) {
        let configuration = self.description.configuration.id;
        tracing::trace!(to = ?to, name = message.name(), ticket = after.0, "the replica sends a message after a record");
        let (index, channel) = match to {
            Peer::Client(address) => (self.table.find(address), Channel::Client),
            Peer::Replica(replica) => (self.link_to(replica), Channel::Replica),
        };
        let Some(local) = &mut self.local else { return };
        let Some((index, open)) = index.and_then(|index| Some((index, self.table.open_mut(index)?))) else {
            // It is for the front end of this process, or for a replica that may be connected by then.
            return local.hold(after, Delayed::Message(to, message));
        };
        if open.release.is_none() || local.is_submitted(after) {
            // What is left with the other thread is not counted here: to a full socket, there would be no end to it.
            let Some(outlet) = open.net.outlet() else {
                return local.hold(after, Delayed::Message(to, message));
            };
            let mut frames = Vec::new();
            put_message_frame(&mut frames, channel, configuration, &message);
            if local.is_submitted(after) {
                return local.send_when_durable(after, outlet, frames);
            }
            open.release = Some((after, outlet, frames));
            self.released.push(index);
        } else if let Some((last, _, frames)) = &mut open.release {
            // Their records reach the disk together.
            *last = after.max(*last);
            put_message_frame(frames, channel, configuration, &message);
        }
    }

    /// Leaves with the log's thread what it is to send.
    fn hand_to_durable_sender(&mut self) {
        let Some(local) = &mut self.local else { return };
        for index in self.released.drain(..) {
            let Some(open) = self.table.open_mut(index) else { continue };
            let Some((after, outlet, frames)) = open.release.take() else { continue };
            if matches!(open.kind, Kind::Client) && open.net.backlog() > 0 {
                // A client that gets other answers now is soon back with more. Woken for these in between, it would come in
                // small pieces, which costs more than they gain.
                local.hold(after, Delayed::Frames(open.address, frames));
            } else {
                local.send_when_durable(after, outlet, frames);
            }
        }
        // Whoever was stopped from sending waits for bytes to leave, whatever they are.
        local.ask_to_be_woken(!self.throttled.is_empty());
    }

    /// Executes a read, unless its client has to take replies before: what they take is known only now.
    fn read_if_room(
        &mut self,
        to: Peer,
        request: (View, u64),
        applied: OpNumber,
        body: Body,
        (freshness, time, now): (Option<Freshness>, Option<WallTime>, WallTime),
    ) {
        self.evict_if_exceeded();
        let Peer::Client(address) = to else { return };
        if address == OWN_FRONT {
            if !self.front_end.admits_read(request.1, &body, self.memory.is_scarce()) {
                return;
            }
        } else {
            let Some(index) = self.table.find(address) else { return };
            let Some(open) = self.table.open_mut(index) else { return };
            if open.owes_too_much() || !open.held_reads.is_empty() {
                open.hold(HeldRead { request, applied, body, freshness, time, now });
                return open.charge(&self.front_end, &mut self.memory);
            }
        }
        self.read(to, request, applied, body, (freshness, time, now));
    }

    /// Executes reads of a connection that waited for room.
    fn read_held(&mut self, index: usize) {
        while let Some(open) = self.table.open_mut(index)
            && let Some(HeldRead { request, applied, body, freshness, time, now }) = open.pop_held()
        {
            let (to, view) = (Peer::Client(open.address), self.local.as_ref().map(|l| l.replica().view()));
            // What a member said of itself holds in that view; its client asks again.
            if freshness.is_none() || view == Some(request.0) {
                self.evict_if_exceeded();
                self.read(to, request, applied, body, (freshness, time, now));
            }
        }
        // It may be read again.
        self.mark_dirty(index);
    }

    /// Executes a read and sends its result: for another process straight into the connection's buffer.
    fn read(
        &mut self,
        to: Peer,
        request: (View, u64),
        applied: OpNumber,
        body: Body,
        (freshness, time, now): (Option<Freshness>, Option<WallTime>, WallTime),
    ) {
        let configuration = self.description.configuration.id;
        let (clock, Some(local)) = (self.now, &mut self.local) else { return };
        match (to, local.memory()) {
            (Peer::Client(address), Some(memory))
                if address != OWN_FRONT
                    && local.slow_reads.is_none()
                    && !memory.engine().is_long(&body)
                    && memory.expired(time, &body).is_none() =>
            {
                let Self { table, dirty, output_bytes_max, front_end, memory: client_memory, .. } = self;
                let Some(index) = table.find(address) else { return };
                let Some(open) = table.open_mut(index) else { return };
                let engine = memory.engine();
                open.put_for_client(*output_bytes_max, |out| {
                    let read = |out: &mut Vec<u8>| engine.read(now, &body, out);
                    match freshness {
                        None => put_read_reply_frame(out, configuration, request, read),
                        Some(freshness) => {
                            put_member_reply_frame(out, configuration, request, applied, freshness, |out| {
                                read(out);
                                engine.first_expiry(&body).unwrap_or_default()
                            });
                        }
                    }
                });
                open.charge(front_end, client_memory);
                mark_dirty(open, index, dirty);
            }
            _ => {
                let (view, number) = request;
                let job = ReadJob { to, view, number, body, freshness, applied, now, time };
                let Some(message) = local.read(clock, job) else { return };
                self.has_large_news |= is_large(&message);
                match &mut local.slow_reads {
                    Some(slow_reads) => slow_reads.hold(clock.instant, to, message),
                    None => self.deliver(to, message),
                }
            }
        }
    }

    fn pop_slow_read(&mut self) -> Option<(Peer, Message)> {
        self.local.as_mut()?.slow_reads.as_mut()?.pop(self.now.instant)
    }

    /// Sends a request of the front end.
    fn send_request(&mut self, to: ReplicaSet, message: Message) {
        let me = self.local.as_ref().map(|local| local.me);
        let others = me.map_or(to, |me| to.without(me));
        if !others.is_empty() {
            let mut buffer = std::mem::take(&mut self.frame);
            let epoch = self.front_end.client().epoch();
            let configuration = ConfigurationId { epoch, ..self.description.configuration.id };
            let frame = buffer.of(Channel::Client, configuration, &message);
            for other in others.iter() {
                self.put_for_replica(other, |out| out.extend_from_slice(frame));
            }
            self.frame = buffer;
        }
        if let Some(local) = &mut self.local
            && to.contains(local.me)
        {
            let event = replica::Event::Message { from: Peer::Client(OWN_FRONT), message };
            local.handle(self.now, event);
        }
    }

    /// The place of the connection to a replica, if there is one.
    fn link_to(&self, replica: ReplicaId) -> Option<usize> {
        self.links.get(replica.index())?.connection
    }

    /// Has `put` append to the output of the link to a replica, unless there is none or too much waits there already.
    fn put_for_replica(&mut self, to: ReplicaId, put: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.link_to(to) else { return };
        let Some(open) = self.table.open_mut(index) else { return };
        if open.net.backlog() <= LINK_BACKLOG_MAX {
            put(open.net.outbound());
            mark_dirty(open, index, &mut self.dirty);
        }
    }

    fn put_for_client(&mut self, address: u64, put: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.table.find(address) else { return };
        let Some(open) = self.table.open_mut(index) else { return };
        open.put_for_client(self.output_bytes_max, put);
        open.charge(&self.front_end, &mut self.memory);
        mark_dirty(open, index, &mut self.dirty);
    }

    /// An operation of the Redis connection with this address has ended, if it is still there.
    fn charge(&mut self, address: Option<u64>) {
        tracing::trace!(connection = address, "an operation of a Redis client has ended");
        let index = address.and_then(|address| self.table.find(address));
        if let Some(open) = index.and_then(|index| self.table.open_mut(index)) {
            open.charge(&self.front_end, &mut self.memory);
        }
    }

    /// The Redis connection with this address may go on after some of its operations have ended.
    fn go_on(&mut self, address: u64) {
        let Some(index) = self.table.find(address) else { return };
        self.mark_dirty(index);
        self.unstall(index);
    }

    /// A reply to a read of the front end has come, or is about to: it is taken if there is room for it.
    fn make_room_for(&mut self, message: &Message) {
        if self.front_end.count_reply(message) {
            self.evict_if_exceeded();
            self.front_end.make_room(message, self.memory.is_scarce());
        }
    }

    /// Reads a connection again if what it waited for is over.
    fn unstall(&mut self, index: usize) {
        let Some(open) = self.table.open_mut(index) else { return };
        let redis = self.front_end.connection(open.address).filter(|_| open.is_redis());
        let is_paused = redis.is_some_and(syros_resp::Connection::is_paused);
        let may_resume = !open.held_reads.is_empty() && !open.owes_too_much();
        if open.is_stalled && !is_paused && !open.is_clogged() {
            open.is_stalled = false;
            self.queue(index);
        }
        if may_resume {
            self.resumed.push(index);
        }
    }

    /// Lets those go on that waited for memory, if there is some; closes connections that hold much if there has been none
    /// for too long.
    fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return self.memory.end_waiting();
        }
        if self.memory.deadline() <= self.now.instant {
            self.spare();
            self.give_back();
            self.evict("for which others wait");
            self.memory.end_waiting();
        }
        if self.memory.has_room() {
            self.memory.retry();
            self.ready.append(&mut self.starved);
        }
    }

    /// Closes connections that hold much if all clients together hold too much.
    pub(crate) fn evict_if_exceeded(&mut self) {
        self.memory.charge(&mut self.reserved, self.front_end.reserved());
        if self.memory.is_exceeded() {
            self.spare();
        }
        if self.memory.is_exceeded() {
            self.give_back();
        }
        if self.memory.is_exceeded() {
            self.evict("which is above the limit");
        }
    }

    /// Gives up buffers of clients that are not in use.
    fn give_back(&mut self) {
        for index in 0..self.table.len() {
            if let Some(open) = self.table.open_mut(index)
                && open.is_client()
            {
                open.net.give_back();
                open.charge(&self.front_end, &mut self.memory);
            }
        }
    }

    /// Finds out whether the connection that was spared still is to be; if there is none, who is.
    fn spare(&mut self) {
        let candidate = self.memory.candidate().and_then(|address| self.table.find(address));
        let index = candidate.or_else(|| self.table.largest_client(None).map(|(index, _)| index));
        if let Some(open) = index.and_then(|index| self.table.open_mut(index)) {
            let owed = open.owed_bytes(&self.front_end);
            self.memory.spare(self.now.instant, open.address, open.charged, owed);
        } else {
            self.memory.spare_nobody();
        }
    }

    /// Closes the connections that hold most, until half of the budget is free.
    fn evict(&mut self, why: &str) {
        while !self.memory.is_relieved()
            && let Some((index, bytes)) = self.table.largest_client(self.memory.spared())
            && bytes > 0
        {
            let (used, limit) = (self.memory.used(), self.memory.limit());
            self.memory.count_evicted();
            let problem = format!(
                "it holds {bytes} bytes, more than any other client, and all clients together hold {used}, {why}; \
                 limits.client-memory is {limit}"
            );
            self.refuse(index, &problem);
        }
    }

    /// Writes what there is to write.
    pub(crate) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush_one(index);
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    fn flush_one(&mut self, index: usize) {
        let Some(open) = self.table.open_mut(index) else { return };
        open.is_dirty = false;
        let mut portions = 0;
        let is_done = loop {
            open.refill(&mut self.front_end);
            if !open.net.wants_flush() {
                break open.waiting_bytes(&self.front_end) == 0;
            }
            if portions == PORTIONS_PER_TURN {
                // A fast reader of a long reply does not keep the others waiting.
                mark_dirty(open, index, &mut self.dirty);
                break false;
            }
            portions += 1;
            self.turn.has_answered |= !matches!(open.kind, Kind::Link(_));
            match open.net.flush() {
                FlushOutcome::Done => {}
                FlushOutcome::Blocked => break false,
                FlushOutcome::Failed(error) => return self.close(index, &error.to_string()),
            }
        };
        let is_finished = match &open.kind {
            Kind::Redis => self
                .front_end
                .connection(open.address)
                .is_none_or(|redis| redis.is_finished() || (open.is_closing && redis.outstanding() == 0)),
            Kind::Greeting(_) | Kind::Link(_) | Kind::Client => open.is_closing,
        };
        if is_done && is_finished {
            return self.close(index, "it has got all its replies");
        }
        open.charge(&self.front_end, &mut self.memory);
        let (waiting, limit) = (open.waiting_bytes(&self.front_end), self.output_bytes_max);
        if waiting > limit && !matches!(open.kind, Kind::Link(_)) {
            return self
                .refuse(index, &format!("{waiting} bytes of replies wait for it, the limit is {limit}"));
        }
        // Replies that have gone may let the connection submit more.
        if open.is_redis() {
            self.front_end.on_sent(self.now, open.address);
        }
        self.unstall(index);
    }

    /// Closes a connection whose other end does what it must not.
    pub(crate) fn refuse(&mut self, index: usize, problem: &str) {
        let node = self.node();
        let Some(open) = self.table.open_mut(index) else { return };
        // What goes wrong with a connection that we make is logged where it is tried again.
        if !matches!(&open.kind, Kind::Greeting(greeting) if greeting.dialed.is_some()) {
            let (connection, peer) = (open.address, open.peer.map(display));
            tracing::warn!(
                node,
                connection,
                peer,
                error = problem,
                "closed a connection whose peer does what it must not"
            );
        }
        self.close(index, problem);
    }

    /// Closes a connection and tells the cores.
    pub(crate) fn close(&mut self, index: usize, reason: &str) {
        let Some(Entry::Open(mut open)) = self.table.remove(index) else { return };
        self.memory.charge(&mut open.charged, 0);
        self.front_end.close(open.address);
        let (connection, peer) = (open.address, open.peer.map(display));
        tracing::debug!(node = self.node(), connection, peer, reason, "closed a connection");
        let gone = replica::Event::ClientGone(open.address);
        match open.kind {
            Kind::Link(replica) => {
                self.on_link_lost(replica, index, reason);
                if let Some(local) = &mut self.local {
                    local.handle(self.now, gone);
                }
            }
            Kind::Client => {
                self.peer_clients -= 1;
                if let Some(local) = &mut self.local {
                    local.handle(self.now, gone);
                }
            }
            Kind::Redis => self.clients -= 1,
            Kind::Greeting(greeting) => match greeting.dialed {
                None => {}
                Some(replica) => self.on_dial_failed(replica, reason),
            },
        }
    }

    /// Closes connections that did not say in time who they are.
    fn close_silent(&mut self) {
        while let Some(address) = self.greetings.pop_due(self.now.instant) {
            let Some(index) = self.table.find(address) else { continue };
            if self.table.is_dialing(index) {
                self.give_up_dialing(index, "no answer");
            } else if matches!(self.table.open_mut(index), Some(Open { kind: Kind::Greeting(_), .. })) {
                self.refuse(index, "it has not said who it is");
            }
        }
    }

    /// Lets another replica lead before this one goes, so that nobody has to find out.
    fn hand_over(&mut self, events: &mut Events) -> io::Result<()> {
        let Some(local) = &mut self.local else { return Ok(()) };
        if !local.replica().is_leader() {
            return Ok(());
        }
        self.now = self.clock.now();
        local.handle(self.now, replica::Event::StepDown);
        let deadline = self.now.instant.after(HAND_OVER_PATIENCE);
        while self.local.as_ref().is_some_and(|local| !local.replica().is_normal())
            && self.now.instant < deadline
        {
            self.turn(events)?;
        }
        Ok(())
    }

    /// Answers what Redis clients have in flight before the process ends: no new connections; commands that come now
    /// are refused; a connection without anything unanswered is closed when it has been quiet for a moment.
    fn drain_clients(&mut self, events: &mut Events) -> io::Result<()> {
        self.redis_listener = None;
        self.now = self.clock.now();
        self.front_end.begin_drain(self.now);
        loop {
            self.now = self.clock.now();
            let mut open = 0;
            for index in 0..self.table.len() {
                match self.is_quiet(index) {
                    None => {}
                    Some(false) => open += 1,
                    Some(true) => self.close(index, "this node is stopping"),
                }
            }
            if open == 0 {
                return Ok(());
            }
            if self.front_end.is_drain_over(self.now) {
                tracing::warn!(
                    node = self.node(),
                    connections = open,
                    "this node stops, and cuts connections of Redis clients whose commands have no answer yet"
                );
                return Ok(());
            }
            self.front_end.look_again(self.now);
            self.turn(events)?;
        }
    }

    /// Whether the Redis connection at this place can be closed when the process stops; `None` if there is none.
    fn is_quiet(&mut self, index: usize) -> Option<bool> {
        let open = self.table.open_mut(index).filter(|open| open.is_redis())?;
        let has_bytes = open.net.backlog() > 0 || open.is_queued || !open.net.received().is_empty();
        Some(self.front_end.is_quiet(self.now, open.address, has_bytes))
    }

    /// Writes the log out, and sends what waited for it.
    fn shut_down(&mut self) {
        let deadline = self.clock.now().instant.after(SETTLE_PATIENCE);
        while self.local.as_ref().is_some_and(|local| !local.is_drained()) && self.now.instant < deadline {
            std::thread::sleep(Duration::from_millis(1));
            self.now = self.clock.now();
            if let Some(local) = &mut self.local {
                local.on_progress(self.now);
                local.execute(self.now);
            }
            self.dispatch_outputs();
        }
        self.flush();
        let Some(local) = self.local.take() else { return };
        let (node, reason) = (local.me.0, self.stop.reason());
        match local.close() {
            Ok(()) => tracing::info!(node, reason = %reason, "this node has stopped"),
            Err(error) => {
                tracing::error!(node, reason = %reason, error = %error, "this node has stopped, and its log had failed");
            }
        }
    }
}

/// True if a Redis connection has replies to come, or to be sent.
fn has_replies(redis: &syros_resp::Connection) -> bool {
    redis.outstanding() > 0 || !redis.output().is_empty()
}

/// True if a message holds so much of a value that there should not be many like it.
fn is_large(message: &Message) -> bool {
    const LARGE_BYTES: usize = 64 * 1024;
    match message {
        Message::ReadReply { reply, .. } | Message::MemberReply { reply, .. } => reply.len() >= LARGE_BYTES,
        _ => false,
    }
}

pub(crate) fn mark_dirty(open: &mut Open, index: usize, dirty: &mut Vec<usize>) {
    if !open.is_dirty {
        open.is_dirty = true;
        dirty.push(index);
    }
}

/// True for what clients send to replicas, false for what replicas answer.
const fn is_for_replica(message: &Message) -> bool {
    matches!(
        message,
        Message::Register { .. }
            | Message::Attach { .. }
            | Message::Request { .. }
            | Message::Read { .. }
            | Message::StatusRequest
            | Message::HandOver { .. }
    )
}

/// Why a frame for another configuration than this process's ends its connection.
fn foreign(other: OtherConfiguration) -> String {
    format!("a frame for another configuration: {other}")
}

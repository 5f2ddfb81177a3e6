//! The Redis front end of a process: what it decides between the sockets of its Redis clients and the replicas.
//!
//! A node has a front end beside its replica, a gateway has nothing else. The front end owns the client core, the state
//! machines of all Redis connections (crate `resp`), the table that says which connection waits for which operation, and the
//! room for replies that have been asked for. It owns no socket, no buffer of one, and no clock.
//!
//! Its owner
//!
//! - names connections by addresses, which it never uses twice ([`RedisFrontEnd::open`], [`RedisFrontEnd::close`]);
//! - hands bytes of clients to [`RedisFrontEnd::connection`], and then calls [`RedisFrontEnd::on_received`];
//! - hands messages of replicas to [`RedisFrontEnd::on_message`], after [`RedisFrontEnd::make_room`];
//! - polls [`RedisFrontEnd::poll`] and [`RedisFrontEnd::go_on`] until there is nothing more;
//! - sends [`RedisFrontEnd::output`] of every connection, and says how much of it has left;
//! - calls [`RedisFrontEnd::tick`] no later than [`RedisFrontEnd::deadline`].

mod availability;
mod client_memory;
mod connections;
mod copies;
mod drain;
mod errand;
mod group_client;
mod messages;
mod no_ops;
mod reply_room;
mod requests;
mod subscribers;
mod tracking;
mod users;
mod waits;

pub use client_memory::{ClientMemory, PATIENCE, REPLY_BYTES_SHARE};
#[cfg(feature = "planted-bugs")]
pub use group_client::Submitted;
pub use messages::{
    MessagePeer, SETTLE_MAX, SUBSCRIPTION_BYTES_MAX, SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_PER_CONNECTION_MAX,
    SubscriptionCounts,
};
pub use no_ops::Attempt;
pub use reply_room::needs_room;
use subscribers::Asking;
pub use subscribers::{LAG_MAX, PUSHED_BYTES_LAG, PUSHED_BYTES_MAX};
pub use users::USERS_VALID;

use std::sync::Arc;
use std::time::Duration;

use availability::Availability;
use connections::RedisConnections;
use drain::Drain;
use errand::{Errand, ErrandKind, WaitedKey};
#[cfg(feature = "planted-bugs")]
use group_client::Waiter;
use group_client::{GroupClient, Purpose, completion};
use messages::Messages;
use no_ops::NoOps;
use reply_room::{ReplyRoom, long_reply, needed};
use requests::Requests;
use syros_commands::{Generation, may_be_heavy, may_be_no_op};
use syros_protocol::client::{Action, Client, Config, Event, Outcome, Token, Way};
use syros_protocol::message::{Body, Message};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::{Completion, Connection, DebugAccess, Identity, Shared, Submission, Unavailable};
use syros_types::{
    Class, Footprint, Instant, Now, OpNumber, ReadPolicy, Reconfiguration, ReplicaId, ReplicaSet, mix,
};
use syros_wire::FrontEndMessage;
use tracking::Tracking;
use users::{UserWatch, Withheld};
use waits::{Resubmission, WaitEnd, Waits};

use crate::evictions::{Eviction, Evictions};
use crate::no_op_answer::NoOpAnswer;
use crate::waited_keys::WaitedKeys;

/// Limits and patience of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontEndSettings {
    /// Bytes that the connections of all clients may take together; replies that have been asked for may take an eighth.
    pub client_memory: usize,
    /// Without a majority for so long, commands are refused.
    pub quorum_timeout: Duration,
    /// When the process stops, clients have so long to get what they have in flight.
    pub drain_timeout: Duration,
    /// Which clients may use DEBUG.
    pub debug: DebugAccess,
    /// So long after they have been read, the users are known well enough to serve clients. Whoever takes away a right gets
    /// the reply a little later than that: no front end goes by the right any more.
    pub users_valid: Duration,
    /// The process has no replica: one of the nodes that it is connected to tells the others of its subscribers.
    pub is_gateway: bool,
}

/// What the owner is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEndAction {
    /// Send a message to replicas: the same to each.
    Send {
        /// The replicas; one at least.
        to: ReplicaSet,
        /// The message.
        message: Message,
    },
    /// The group has this configuration: nodes that are new are to be connected.
    Reconfigured(Reconfiguration),
    /// An operation has ended: the owner looks at what its connection takes of memory.
    Completed {
        /// The operation.
        token: Token,
        /// The connection that waited for it; `None` if it has gone meanwhile.
        address: Option<u64>,
        /// The reply, if there is one: what the judge of a simulation looks at.
        #[cfg(feature = "planted-bugs")]
        reply: Option<Body>,
        /// A read that a member answered: the state was the one after this log entry, or a later one.
        applied: Option<OpNumber>,
        /// The way in which it was answered, if it was.
        way: Option<Way>,
        /// How it ended, if the owner wants to know: see [`RedisFrontEnd::show_outcomes`].
        outcome: Option<Outcome>,
    },
    /// Send a message to another front end.
    SendToPeer {
        /// The other one.
        to: MessagePeer,
        /// The message.
        message: FrontEndMessage,
    },
    /// Close the connection of a subscriber that does not take what is published.
    CloseSubscriber {
        /// The connection.
        address: u64,
        /// Bytes that wait for its client.
        bytes: usize,
    },
    /// A question to the state, which is to be answered with [`RedisFrontEnd::on_look`].
    Look(Look),
    /// An update that may change nothing: the replica of this process is to be asked whether it can say so, and
    /// [`RedisFrontEnd::on_tried`] to be told.
    Try(Attempt),
}

/// A question to the state for commands that wait. An owner with an engine that it may ask at once does that, because the
/// question has come of what this engine has executed; another has the group asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    key: WaitedKey,
    footprint: Footprint,
    /// A body of one read.
    pub body: Body,
}

/// Where an operation comes from that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// When it came.
    pub since: Instant,
    /// No client has asked for it: the front end needs it itself.
    pub is_internal: bool,
}

/// The Redis front end of a process.
#[derive(Debug)]
pub struct RedisFrontEnd {
    group: GroupClient,
    connections: RedisConnections,
    availability: Availability,
    drain: Drain,
    /// What all connections share.
    shared: Arc<Shared>,
    requests: Requests,
    /// So many followers have an update that has been acknowledged, at least.
    followers: u64,
    messages: Messages,
    /// Connections that ask something of the registry of subscriptions in a later turn.
    asking: Asking,
    /// Clients that keep copies of what they read.
    tracking: Tracking,
    is_gateway: bool,
    own_replica: Option<ReplicaId>,
    /// How reads are answered whose clients have not said it.
    read_policy: ReadPolicy,
    /// Connections of subscribers that are to be closed, and bytes that wait for each.
    overrun: Vec<(u64, usize)>,
    /// Connections that may have something to submit, since one of their operations has ended or replies have been sent.
    answered: Vec<u64>,
    /// Commands that wait for elements.
    waits: Waits,
    /// Updates that may change nothing, and are submitted unless the replica of this process can say so. They count as
    /// operations in flight.
    no_ops: NoOps,
    /// What is known of the users.
    users: UserWatch,
    /// So many removals of keys for want of memory have ended, and nobody has been told.
    evictions_ended: usize,
    /// Reads that this side has made for itself: of the users, and of whether the leader leads.
    own_reads: u64,
    /// The owner wants to know how operations end.
    shows_outcomes: bool,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl RedisFrontEnd {
    /// A front end without connections, whose client core has these settings.
    #[must_use]
    pub fn new(config: Config, settings: FrontEndSettings, now: Now) -> Self {
        #[cfg(feature = "planted-bugs")]
        let planted = config.planted;
        let followers = config.configuration.group().faults() as u64;
        // Two clients that start at one time differ in their seeds.
        let messages = Messages::new(mix(config.seed ^ now.wall.0), settings.is_gateway);
        #[cfg(feature = "planted-bugs")]
        let messages = messages.planted(planted);
        // Two lives of a process differ in their seeds, as they must for their sessions.
        let (own_replica, read_policy) = (config.own_replica, config.settings.read_policy);
        let shared = Arc::new(Shared::new(settings.debug));
        shared.set_reads_stale(read_policy == ReadPolicy::Stale);
        let tracking = Tracking::new(shared.tracking_keys_max());
        #[cfg(feature = "planted-bugs")]
        let tracking = tracking.planted(planted);
        let users = UserWatch::new(settings.users_valid, config.settings.give_up_after);
        #[cfg(feature = "planted-bugs")]
        let users = users.planted(planted);
        let give_up_after = config.settings.give_up_after;
        let waits = Waits::new(config.own_replica, mix(config.seed), give_up_after, now.instant);
        #[cfg(feature = "planted-bugs")]
        let waits = waits.planted(planted);
        Self {
            group: GroupClient::new(config, ReplyRoom::new(settings.client_memory), now),
            connections: RedisConnections::default(),
            availability: Availability::new(settings.quorum_timeout, now.instant),
            drain: Drain::new(settings.drain_timeout),
            tracking,
            is_gateway: settings.is_gateway,
            own_replica,
            read_policy,
            shared,
            requests: Requests::default(),
            followers,
            messages,
            overrun: Vec::new(),
            asking: Asking::default(),
            answered: Vec::new(),
            waits,
            no_ops: NoOps::default(),
            users,
            evictions_ended: 0,
            own_reads: 0,
            shows_outcomes: false,
            #[cfg(feature = "planted-bugs")]
            planted,
        }
    }

    /// The client core.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.group.client
    }

    /// From now on the owner is told how each operation ends, which costs a reference to its reply.
    pub const fn show_outcomes(&mut self) {
        self.shows_outcomes = true;
    }

    /// Where an operation comes from, if it has not ended.
    #[must_use]
    pub fn origin(&self, token: Token) -> Option<Origin> {
        let waiter = self.group.waiter(token)?;
        Some(Origin { since: waiter.since, is_internal: waiter.purpose != Purpose::Connection })
    }

    /// Tells the client core of something that is no message.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.group.client.handle(now, event);
    }

    /// Takes a message that a replica sends; [`make_room`](Self::make_room) has seen the message.
    pub fn on_message(&mut self, now: Now, from: ReplicaId, message: Message) {
        self.note_answer(from, &message);
        self.group.client.handle(now, Event::Message { from, message });
    }

    /// True if no further commands should be read for now: too many operations are in flight.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.group.is_full(self.no_ops.len())
    }

    // ---- Connections.

    /// What all connections of this front end share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The state machine of a connection that was accepted `now`, to be [opened](Self::open).
    #[must_use]
    pub fn new_connection(&self, identity: Identity, now: Now) -> Connection {
        Connection::with_shared(identity, now.wall, Arc::clone(&self.shared))
    }

    /// A client has connected. Its address names a place in its lower half, which no other open connection has, and the use
    /// of that place in its upper half.
    pub fn open(&mut self, address: u64, redis: Connection) {
        self.connections.insert(address, redis);
    }

    /// The connection is gone. What it has in flight goes on without it.
    pub fn close(&mut self, address: u64) {
        self.forget_requests(address);
        self.users.forget(address);
        self.messages.end_all(address);
        self.end_tracking(address);
        // It leaves the queues as soon as something is submitted.
        self.waits.forget(Instant(0), address);
        if let Some(connection) = self.connections.remove(address)
            && connection.waits_for_room
        {
            self.group.room.forget(address);
        }
    }

    /// The state machine of the connection with this address.
    #[must_use]
    pub fn connection(&self, address: u64) -> Option<&Connection> {
        self.connections.get(address).map(|connection| &connection.redis)
    }

    /// As [`connection`](Self::connection), to hand it bytes of its client that have been received before `now`; then [`on_received`](Self::on_received) is called.
    /// The client core comes along for INFO.
    pub fn connection_mut(&mut self, now: Now, address: u64) -> Option<(&mut Connection, &Client)> {
        self.note_age_of_users(now);
        let connection = self.connections.get_mut(address)?;
        Some((&mut connection.redis, &self.group.client))
    }

    /// The connection has taken bytes of its client: submits what may go. True if the connection can take more at once,
    /// because what it waited for has been answered meanwhile.
    pub fn on_received(&mut self, now: Now, address: u64) -> bool {
        let is_paused = |front_end: &Self| front_end.connection(address).is_some_and(Connection::is_paused);
        let was_paused = is_paused(self);
        self.look_for_reset(address);
        self.submit(now, address, false);
        self.serve_request(now, address);
        self.ask(now, address);
        self.unblock(now, address);
        self.note_postponed(address);
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::PipelineForgotten) {
            return false;
        }
        was_paused && !is_paused(self)
    }

    /// The client has closed its end of the connection: it waits for no elements any more, nor for followers, and no command
    /// that is behind what it waits for begins to.
    pub fn on_input_end(&mut self, now: Now, address: u64) {
        #[cfg(feature = "planted-bugs")]
        let is_noted = self.planted != Some(PlantedBug::GoneClientWaits);
        #[cfg(not(feature = "planted-bugs"))]
        let is_noted = true;
        if let Some(connection) = self.connections.get_mut(address) {
            connection.has_input_ended = is_noted;
        }
        self.end_request(now, address);
        let end = self.waits.give_up(now.instant, address);
        self.end_waits(now.instant, end);
    }

    /// Carries out a CLIENT UNBLOCK of this connection.
    fn unblock(&mut self, now: Now, address: u64) {
        let Some(connection) = self.connections.get_mut(address) else { return };
        let Some(unblocking) = connection.redis.takes_unblocking() else { return };
        let (found, end) = self.waits.unblock(now.instant, unblocking);
        connection.redis.unblocked(found);
        self.mark_answered(address);
        self.end_waits(now.instant, end);
    }

    /// Answers commands that have waited.
    fn end_waits(&mut self, now: Instant, ends: impl IntoIterator<Item = WaitEnd>) {
        for WaitEnd { address, slot, completion } in ends {
            let is_answered = completion.is_answer();
            self.before_reply(now, address, is_answered);
            if let Some(connection) = self.connections.get_mut(address) {
                connection.redis.complete(slot, completion);
                self.mark_answered(address);
            }
            self.after_reply(now, address, is_answered);
        }
    }

    /// Bytes for the client.
    #[must_use]
    pub fn output(&self, address: u64) -> &[u8] {
        self.connection(address).map_or(&[], Connection::output)
    }

    /// So many bytes of the output have left.
    pub fn sent(&mut self, address: u64, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(address) {
            connection.redis.sent(bytes);
        }
    }

    /// Replies have left: the connection may submit more.
    pub fn on_sent(&mut self, now: Now, address: u64) {
        if self.submit(now, address, false) {
            self.mark_answered(address);
        }
    }

    /// The next connection that may go on, since something of it has been answered, or there is room for its replies: the owner
    /// looks at its output, and reads it again if it was paused.
    pub fn go_on(&mut self, now: Now) -> Option<u64> {
        while let Some(address) = self.answered.pop() {
            if let Some(connection) = self.connections.get_mut(address) {
                connection.is_answered = false;
                self.submit(now, address, false);
                self.serve_request(now, address);
                self.ask(now, address);
                return Some(address);
            }
        }
        while let Some(address) = self.asking.pop_next() {
            if self.connections.get_mut(address).is_some() {
                self.ask(now, address);
                return Some(address);
            }
        }
        while let Some(address) = self.group.room.pop_next() {
            if let Some(connection) = self.connections.get_mut(address) {
                connection.waits_for_room = false;
                self.submit(now, address, true);
                return Some(address);
            }
        }
        None
    }

    /// True if [`go_on`](Self::go_on) has something to do in another turn.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.answered.is_empty()
            || self.asking.has_next()
            || self.group.room.has_next()
            || self.waits.has_work()
    }

    fn mark_answered(&mut self, address: u64) {
        if let Some(connection) = self.connections.get_mut(address)
            && !connection.is_answered
        {
            connection.is_answered = true;
            self.answered.push(address);
        }
    }

    /// Hands over what a connection wants to submit, as far as there is room for the replies; one that `has_turn` has
    /// waited longest for it. True if there was anything.
    fn submit(&mut self, now: Now, address: u64, mut has_turn: bool) -> bool {
        let Self { group, connections, waits, tracking, read_policy, no_ops, users, .. } = self;
        let has_replica = self.own_replica.is_some();
        let Some(connection) = connections.get_mut(address) else { return false };
        let tracks = connection.redis.is_tracking();
        connection.redis.expect_first_values(group.room.longest_lately());
        let (mut has_submitted, mut reserved, mut is_refused) = (false, 0, false);
        loop {
            let submission = connection.redis.poll_submit_if(|expected| {
                reserved = needed(expected);
                is_refused = !group.room.reserve(reserved, has_turn);
                !is_refused
            });
            let Some(submission) = submission else { break };
            has_submitted = true;
            has_turn &= reserved == 0;
            if submission.waits && connection.has_input_ended {
                // Whatever it took would be lost.
                group.room.release(reserved);
                let mut nothing = Vec::new();
                syros_commands::put_nil_array(&mut nothing);
                connection.redis.complete(submission.slot, Completion::Reply(nothing.into()));
                continue;
            }
            users.note(address, &submission);
            if tracks {
                let keeps = (connection.redis.keeps_copies(), *read_policy);
                Self::note_submission(tracking, address, &submission, keeps);
            }
            if submission.waits && group.knows(&submission.body) {
                let from = (address, submission.slot, connection.redis.id());
                if waits.begin(now.instant, from, &submission.body, &submission.footprint) {
                    group.room.release(reserved);
                    continue;
                }
            }
            let Submission { class, waits: may_wait, ref body, ref footprint, .. } = submission;
            let is_asked_about = has_replica && !may_wait;
            let is_heavy =
                !submission.is_pack && !matches!(class, Class::Read | Class::Overwrite) && may_be_heavy(body);
            let is_vain = class == Class::Update && may_be_no_op(body);
            if is_asked_about && (is_heavy || (is_vain && no_ops.is_worth_a_look(footprint))) {
                let (since, has_waited) = (now.instant, false);
                no_ops.add(Attempt { address, submission, reserved, since, has_waited });
                continue;
            }
            if let Some((slot, completion)) = group.submit(now, (address, now.instant), submission, reserved)
                && let Some(completion) = waits.on_read(now.instant, (address, slot), completion)
            {
                users.withdraw((address, slot));
                tracking.after_reply(address, false);
                connection.redis.complete(slot, completion);
            }
        }
        if is_refused {
            connection.wait_for_room(&mut group.room, address, reserved, has_turn);
        }
        has_submitted
    }

    // ---- Operations.

    /// Of the connected members, the one of the earliest build speaks this version of the wire format: commands that it does
    /// not know are refused from now on.
    pub fn set_oldest_version(&mut self, version: u16) {
        self.group.known = Generation::of_wire_version(version);
        self.shared.set_generation(self.group.known);
    }

    /// What is to be done next, if anything is.
    pub fn poll(&mut self, now: Now) -> Option<FrontEndAction> {
        self.shared.statistics.set_blocked((self.waits.len() + self.postponed()) as u64);
        self.look_at_users(now);
        while let Some(errand) = self.waits.next_errand(now) {
            self.run_errand(now, errand);
        }
        while let Some(Resubmission { address, slot, body }) = self.waits.next_resubmission(now) {
            if let Some(connection) = self.connections.get_mut(address)
                && connection.redis.postpone(slot, &body)
            {
                self.mark_answered(address);
            }
        }
        if let Some(look) = self.waits.next_look() {
            let Errand { kind, body, footprint, .. } = look;
            if let ErrandKind::Look(key) = kind {
                return Some(FrontEndAction::Look(Look { key, footprint, body }));
            }
        }
        if let Some(attempt) = self.no_ops.next() {
            return Some(FrontEndAction::Try(attempt));
        }
        let Some(action) = self.group.client.poll() else { return self.poll_messages(now) };
        Some(match action {
            Action::Send { to, message } => {
                self.note_sent(&message);
                FrontEndAction::Send { to, message }
            }
            Action::Reconfigured(known) => FrontEndAction::Reconfigured(known),
            Action::Completed { token, outcome, applied, way } => {
                let shown = self.shows_outcomes.then(|| outcome.clone());
                #[cfg(feature = "planted-bugs")]
                let reply = if let Outcome::Reply(reply) = &outcome { Some(reply.clone()) } else { None };
                let address = self.complete(now, token, outcome);
                FrontEndAction::Completed {
                    token,
                    address,
                    #[cfg(feature = "planted-bugs")]
                    reply,
                    applied,
                    way,
                    outcome: shown,
                }
            }
        })
    }

    /// An operation has ended; the address of the connection that waited for it, if it is still there.
    fn complete(&mut self, now: Now, token: Token, outcome: Outcome) -> Option<u64> {
        let waiter = self.group.take(token)?;
        if matches!(outcome, Outcome::Done | Outcome::Reply(_)) {
            self.availability.on_answer(now.instant);
        }
        if let Purpose::Errand(errand) = waiter.purpose {
            return self.end_errand(now, errand, outcome);
        }
        let completion = completion(outcome);
        #[cfg(feature = "planted-bugs")]
        let (waiter, completion) = self.confuse(waiter, completion);
        let from = (waiter.address, waiter.slot);
        let Some(completion) = self.waits.on_read(now.instant, from, completion) else {
            return Some(waiter.address);
        };
        self.answer((waiter.address, waiter.slot), now, waiter.since, completion)
    }

    /// An operation of a connection, which calls it so and has waited since a moment, has ended; the address of the connection
    /// if it is still there.
    fn answer(&mut self, from: (u64, u64), now: Now, since: Instant, completion: Completion) -> Option<u64> {
        match self.users.withhold(now.instant, Withheld { from, since, completion }) {
            Some(reply) => self.deliver(now, reply),
            None => Some(from.0),
        }
    }

    /// A connection gets the reply to an operation; the address of the connection if it is still there.
    fn deliver(&mut self, now: Now, reply: Withheld) -> Option<u64> {
        let Withheld { from: (address, slot), since, completion } = reply;
        let is_answered = completion.is_answer();
        self.before_reply(now.instant, address, is_answered);
        let connection = self.connections.get_mut(address)?;
        connection.redis.complete_after(slot, completion, now.instant.since(since), now.wall);
        self.after_reply(now.instant, address, is_answered);
        self.mark_answered(address);
        Some(address)
    }

    /// What the replica of this process says of an update that may change nothing.
    pub fn on_tried(&mut self, now: Now, attempt: Attempt, answer: NoOpAnswer) {
        match answer {
            NoOpAnswer::NoOp(_, reply) => {
                self.no_ops.note(&attempt, true);
                self.availability.on_answer(now.instant);
                self.end_attempt(now, &attempt, Completion::Reply(reply));
            }
            NoOpAnswer::Change => {
                self.no_ops.note(&attempt, false);
                self.submit_attempt(now, attempt);
            }
            NoOpAnswer::TooMuch(work) if !attempt.submission().is_pack => {
                self.end_attempt(now, &attempt, Completion::TooMuchWork(work));
            }
            NoOpAnswer::TooMuch(_) | NoOpAnswer::Unknown => self.submit_attempt(now, attempt),
            NoOpAnswer::Later => match self.no_ops.wait(attempt) {
                Ok(errand) => self.run_errand(now, errand),
                Err(attempt) => self.submit_attempt(now, attempt),
            },
        }
    }

    /// An update may change something.
    fn submit_attempt(&mut self, now: Now, attempt: Attempt) {
        let Attempt { address, submission, reserved, since, .. } = attempt;
        if let Some((slot, completion)) = self.group.submit(now, (address, since), submission, reserved)
            && let Some(connection) = self.connections.get_mut(address)
        {
            self.tracking.after_reply(address, false);
            connection.redis.complete(slot, completion);
            self.mark_answered(address);
        }
    }

    /// An update has ended that was not submitted.
    fn end_attempt(&mut self, now: Now, attempt: &Attempt, completion: Completion) {
        let Attempt { address, reserved, since, .. } = *attempt;
        self.group.room.release(reserved);
        self.answer((address, attempt.submission.slot), now, since, completion);
    }

    /// Submits something for commands that wait.
    fn run_errand(&mut self, now: Now, errand: Errand) {
        let kind = errand.kind;
        #[cfg(feature = "planted-bugs")]
        let body = errand.body.clone();
        let token = self.group.submit_errand(now, errand);
        if token.is_none() {
            self.end_errand(now, kind, Outcome::TimedOut);
        }
        #[cfg(feature = "planted-bugs")]
        self.group.submitted.extend(token.and_then(|token| self.waits.submitted(kind, token, body)));
    }

    /// Something that was submitted for commands that wait has ended; the address of the connection whose command has.
    fn end_errand(&mut self, now: Now, errand: ErrandKind, outcome: Outcome) -> Option<u64> {
        let is_own = matches!(errand, ErrandKind::Users | ErrandKind::OldLeader);
        self.own_reads += u64::from(is_own && matches!(outcome, Outcome::Reply(_)));
        match errand {
            ErrandKind::Ask(number) => {
                let end = self.waits.on_asked(now.instant, number, outcome)?;
                let address = end.address;
                self.end_waits(now.instant, [end]);
                return Some(address);
            }
            ErrandKind::Leave(number) => self.waits.on_left(now.instant, number, &outcome),
            ErrandKind::Look(key) => {
                let reply = if let Outcome::Reply(reply) = &outcome { Some(&**reply) } else { None };
                self.waits.on_look(now.instant, key, reply);
            }
            ErrandKind::Settle(number) => {
                let attempt = self.no_ops.waited(number)?;
                match outcome {
                    Outcome::Reply(_) => self.no_ops.add(attempt),
                    // It was never sent, and has waited long enough.
                    Outcome::TimedOut | Outcome::NoQuorum => {
                        self.end_attempt(now, &attempt, completion(outcome));
                    }
                    _ => self.submit_attempt(now, attempt),
                }
            }
            ErrandKind::Users => self.on_users_read(now, &outcome),
            ErrandKind::OldLeader => self.on_old_leader(now, outcome),
            ErrandKind::FirstUser => self.users.on_changed(now.instant),
            // Where keys have not gone, others are chosen as long as memory is short.
            ErrandKind::Evict => self.evictions_ended += 1,
        }
        None
    }

    /// The answer to a question to the state; `None`: the group is to be asked.
    pub fn on_look(&mut self, now: Now, look: Look, reply: Option<&[u8]>) {
        if reply.is_some() {
            return self.waits.on_look(now.instant, look.key, reply);
        }
        let Look { key, footprint, body } = look;
        self.run_errand(now, Errand { kind: ErrandKind::Look(key), body, class: Class::Read, footprint });
    }

    /// Tells what executes the log in this process which keys are waited for, and hears which of them have been touched: to
    /// be called before [`poll`](Self::poll) whenever something has been executed.
    pub fn exchange_waited(&mut self, waited: &mut WaitedKeys) {
        self.waits.exchange(waited);
    }

    /// Submits the removals that the replica of this process wants, and tells it which have ended: to be called before
    /// [`poll`](Self::poll) whenever something has been executed. True if any have: the replica may want others.
    pub fn exchange_evictions(&mut self, now: Now, evictions: &mut Evictions) -> bool {
        let ended = std::mem::take(&mut self.evictions_ended);
        evictions.end(ended);
        while let Some(Eviction { body, class }) = evictions.next() {
            if self.group.knows(&body) {
                // What concerns all keys, the leader orders at once: then it has been executed when it ends.
                let footprint = Footprint::All;
                self.run_errand(now, Errand { kind: ErrandKind::Evict, body, class, footprint });
            } else {
                self.evictions_ended += 1;
            }
        }
        ended > 0
    }

    /// What a known-wrong variant makes of the end of an operation.
    #[cfg(feature = "planted-bugs")]
    fn confuse(&self, mut waiter: Waiter, completion: Completion) -> (Waiter, Completion) {
        if self.planted == Some(PlantedBug::CompletionToPlace)
            && let Some(address) = self.connections.at_place(waiter.address)
        {
            waiter.address = address;
        }
        let is_hidden = self.planted == Some(PlantedBug::UnknownIsDone) && completion == Completion::Unknown;
        (waiter, if is_hidden { Completion::Done } else { completion })
    }

    /// Makes a connection that is about to be [opened](Self::open) a known-wrong one, if this front end is.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&self, redis: &mut Connection) {
        redis.plant(match self.planted {
            Some(PlantedBug::RepliesOutOfOrder) => Some(syros_resp::PlantedBug::RepliesOutOfOrder),
            Some(PlantedBug::LockReleasedEarly) => Some(syros_resp::PlantedBug::LockReleasedEarly),
            Some(PlantedBug::DatabaseForgotten) => Some(syros_resp::PlantedBug::DatabaseForgotten),
            Some(PlantedBug::UnknownTriedAgain) => Some(syros_resp::PlantedBug::UnknownTriedAgain),
            Some(PlantedBug::ProvisionalLoginKept) => Some(syros_resp::PlantedBug::ProvisionalLoginKept),
            Some(PlantedBug::ScriptOfNobody) => Some(syros_resp::PlantedBug::ScriptOfNobody),
            Some(PlantedBug::ExecNotChecked) => Some(syros_resp::PlantedBug::ExecNotChecked),
            Some(PlantedBug::RemovedUserGoesOn) => Some(syros_resp::PlantedBug::RemovedUserGoesOn),
            _ => None,
        });
    }

    /// The next operation that has been submitted: what the judge of a simulation looks at.
    #[cfg(feature = "planted-bugs")]
    pub fn next_submitted(&mut self) -> Option<Submitted> {
        self.group.submitted.pop_front()
    }

    /// Reads that were answered, and that no client has asked for: of the users, and of whether the leader leads. They are
    /// among those that [`Client::read_counts`] counts.
    #[must_use]
    pub const fn own_reads(&self) -> u64 {
        self.own_reads
    }

    /// What the group knows the commands by that wait here: what the judge of a simulation looks at.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub const fn owner_of_waits(&self) -> u64 {
        self.waits.owner()
    }

    /// True if some of these members cannot be reached, and count as lost for those who wait, or will: what the judge of a
    /// simulation looks at.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn misses(&self, members: ReplicaSet) -> bool {
        self.waits.misses(members)
    }

    /// Another turn of the owner's loop begins.
    pub const fn begin_turn(&mut self, now: Instant) {
        self.group.room.begin_turn(now);
        self.asking.begin_turn();
    }

    /// Bytes of room that are reserved for replies: they count as clients' memory.
    #[must_use]
    pub const fn reserved(&self) -> usize {
        self.group.room.reserved()
    }

    /// Counts a message that is about to be handed over. True if it is a reply that there has to be room for: then
    /// [`make_room`](Self::make_room) is called before [`on_message`](Self::on_message).
    pub fn count_reply(&mut self, message: &Message) -> bool {
        let Some((_, bytes)) = long_reply(message) else { return false };
        self.group.room.count(bytes);
        true
    }

    /// A reply to a read has come, or is about to: if there is no room for it, its read is abandoned, so that the client core
    /// does not keep it, and asked again when there is. Clients' memory `is_scarce` when half of it is taken.
    pub fn make_room(&mut self, message: &Message, is_scarce: bool) {
        let Some((number, bytes)) = long_reply(message) else { return };
        let Self { group, connections, .. } = self;
        let Some(waiter) = group.reader(number) else { return };
        if matches!(waiter.purpose, Purpose::Errand(_)) {
            return;
        }
        let Some(connection) = connections.get_mut(waiter.address) else {
            // Its client has gone.
            group.abandon_read(number);
            return;
        };
        let redis = &mut connection.redis;
        if is_scarce {
            redis.narrow();
        }
        let has_room = redis.has_room_for(waiter.slot);
        if has_room && group.room.take(waiter.reserved, bytes) {
            return group.set_reserved(number, bytes.max(waiter.reserved));
        }
        let Some(body) = group.abandon_read(number) else { return };
        if redis.postpone(waiter.slot, &body) {
            redis.expect(waiter.slot, bytes);
        }
        // The last of those that were on their way may have had no room because an earlier one has been postponed that
        // could not be asked for as long as these were.
        if has_room || !redis.has_values_in_flight() {
            connection.wait_for_room(&mut group.room, waiter.address, bytes, false);
        }
    }

    /// True if the replica of this process may execute the read with this number, which has this body, for a connection of
    /// this front end. If not, it is postponed, or its client has gone: only now is it known what its client has to take.
    pub fn admits_read(&mut self, number: u64, body: &Body, is_scarce: bool) -> bool {
        let Self { group, connections, .. } = self;
        let Some(waiter) = group.reader(number) else { return false };
        if matches!(waiter.purpose, Purpose::Errand(_)) {
            return true;
        }
        // How long its reply will be is not known, and this turn of the loop has got many bytes of replies.
        let must_wait_for_turn = waiter.reserved == 0 && group.room.is_turn_over();
        let Some(connection) = connections.get_mut(waiter.address) else {
            // Its client has gone.
            group.abandon_read(number);
            return false;
        };
        let redis = &mut connection.redis;
        if is_scarce {
            redis.narrow();
        }
        let has_room = redis.has_room_for(waiter.slot);
        if has_room && !must_wait_for_turn {
            return true;
        }
        redis.postpone(waiter.slot, body);
        group.abandon_read(number);
        if has_room || !redis.has_values_in_flight() {
            connection.wait_for_room(&mut group.room, waiter.address, 0, false);
        }
        false
    }

    // ---- Time, and the end.

    /// When to call [`tick`](Self::tick) and to look at the connections of a process that stops, at the latest.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let of_clients = self.request_deadline().min(self.messages.deadline()).min(self.waits.deadline());
        let of_clients = of_clients.min(self.users.deadline());
        let of_process = self.availability.deadline().min(self.drain.deadline());
        self.group.client.deadline().min(of_clients).min(of_process)
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) {
        if now.instant >= self.group.client.deadline() {
            self.group.client.handle(now, Event::Tick);
        }
        if now.instant >= self.request_deadline() {
            self.serve_due_requests(now);
        }
        self.note_age_of_users(now);
        self.messages.tick(now.instant);
        self.answer_confirmed(now);
        let members = self.group.client.members();
        let (reachable, connected) = (self.group.client.reachable(), self.group.client.connected());
        let reachable = self.waits.with_late(now.instant, reachable, connected);
        for member in self.waits.late_to_ask(now.instant) {
            self.group.client.ask_whether_it_answers(now, member);
        }
        self.waits.set_reachable(now.instant, reachable, members);
        let ends = self.waits.tick(now.instant);
        self.end_waits(now.instant, ends);
    }

    /// True if it is time for [`watch_quorum`](Self::watch_quorum).
    #[must_use]
    pub fn is_quorum_due(&self, now: Now) -> bool {
        self.availability.is_due(now.instant)
    }

    /// Looks whether a majority can be reached. `silent`: for how long the replica of this process has known of no majority, if
    /// it is one that would know; `is_connected`: there are other replicas that can be asked, or none are needed. Returns what
    /// has changed: whether a majority can be reached.
    pub fn watch_quorum(&mut self, now: Now, silent: Option<Duration>, is_connected: bool) -> Option<bool> {
        let reachable = self.availability.update(now.instant, silent, is_connected)?;
        self.group.client.handle(now, Event::QuorumReachable(reachable));
        self.shared.set_patient(reachable);
        if !reachable {
            self.end_waiting_for_users();
        }
        Some(reachable)
    }

    /// True if no majority can be reached.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        self.availability.is_cut_off()
    }

    /// The process stops: what is in flight is answered, later commands are refused.
    pub fn begin_drain(&mut self, now: Now) {
        self.drain.begin(now.instant);
        let ends = self.waits.end_all(now.instant);
        self.end_waits(now.instant, ends);
    }

    /// True if the process stops.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.drain.is_stopping()
    }

    /// Why commands on keys are not taken now, if they are not.
    #[must_use]
    pub fn unavailable(&self) -> Option<Unavailable> {
        self.is_stopping().then_some(Unavailable::Stopping)
    }

    /// True if clients of a process that stops have had the time they are given.
    #[must_use]
    pub fn is_drain_over(&self, now: Now) -> bool {
        self.drain.is_over(now.instant)
    }

    /// The connections of a process that stops are to be looked at again soon.
    pub fn look_again(&mut self, now: Now) {
        self.drain.look_again(now.instant);
    }

    /// Looks at a connection of a process that stops. `has_bytes`: the owner has bytes of it that are not handed over, or not
    /// sent. True if it can be closed: all of it is answered, and it has sent nothing for a moment.
    pub fn is_quiet(&mut self, now: Now, address: u64, has_bytes: bool) -> bool {
        let Some(connection) = self.connections.get(address) else { return true };
        let redis = &connection.redis;
        let is_busy = redis.outstanding() > 0 || !redis.output().is_empty() || has_bytes;
        self.drain.is_quiet(now.instant, address, redis.commands(), is_busy)
    }
}

impl connections::RedisConnection {
    /// The connection waits for room for so many bytes of replies, unless it does so already.
    fn wait_for_room(&mut self, room: &mut ReplyRoom, address: u64, bytes: usize, had_turn: bool) {
        if !self.waits_for_room {
            self.waits_for_room = true;
            room.wait(address, bytes, had_turn);
        }
    }
}

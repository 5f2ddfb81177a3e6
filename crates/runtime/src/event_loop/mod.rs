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
//!
//! Each module inside owns one concern of the loop: how connections come (`accept`, `links`, `handshakes`, `forming`), are
//! read (`input`, `redis`), written (`output`) and closed (`close`); what the cores want (`dispatch`, `reads`); the budget of
//! the clients' memory (`memory`); and the end of the process (`shutdown`).

mod accept;
mod close;
mod dispatch;
mod forming;
mod handshakes;
mod input;
mod learning;
mod links;
mod memory;
mod nodes;
mod output;
mod reads;
mod redis;
mod shutdown;
mod witnesses;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event as IoEvent;
use mio::{Events, Poll, Token, Waker};
use syros_metrics::{Distribution, Peer, Told};
use syros_node::ClientAddresses;
use syros_node::front_end::{ClientMemory, RedisFrontEnd};
use syros_protocol::{client, replica};
use syros_resp::ServerInfo as _;
use syros_types::{Instant, Now, Reconfiguration, ReplicaId, ReplicaSet};
use syros_wire::FrameBuffer;

pub(crate) use accept::Listener;
pub(crate) use forming::Forming;
pub(crate) use learning::Learning;
pub(crate) use links::Link;

use crate::clock::Clock;
use crate::connection::{Connections, Deadlines};
use crate::descriptors::Descriptors;
use crate::handshake::Introduction;
use crate::info::ProcessDescription;
use crate::inquiries::Inquiries;
use crate::load_meter::LoadMeter;
use crate::local_replica::LocalReplica;
use crate::statistics::Statistics;
use crate::stop::StopFlag;
use crate::tls::LinksTls;
use crate::tls_handshakes::TlsHandshakes;
use crate::traces::FrontEndTraces;
use crate::yield_policy::{Turn, YieldPolicy};
use redis::KeyCountRequest;

/// Token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Tokens of the listeners.
pub(crate) const REDIS_LISTENER: Token = Token(usize::MAX - 1);
pub(crate) const REPLICA_LISTENER: Token = Token(usize::MAX - 2);
pub(crate) const REDIS_TLS_LISTENER: Token = Token(usize::MAX - 3);

/// Events taken from the system at a time; the rest comes in the next turn.
const EVENTS_PER_TURN: usize = 1024;

/// The replica core sees the front end of its own process as the client with this address. No
/// connection has it: it would be in the last place of a full table.
const OWN_FRONT_END: u64 = u64::MAX;

/// Why the loop has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// It was told to.
    Stopped,
    /// The disk had refused a write, and takes writes again.
    DiskReturned,
    /// What is on disk is damaged, and others can repair it.
    Damaged,
    /// The group has been formed: the node may act.
    Formed(Reconfiguration),
    /// The node is to copy what the group of this configuration holds, before it comes into it.
    Learns(Reconfiguration),
    /// The node must not run, for this reason.
    Refused(String),
}

/// Everything a process does.
pub(crate) struct EventLoop {
    poll: Poll,
    clock: Clock,
    now: Now,
    stop: Arc<StopFlag>,
    table: Connections,
    /// Connections to be read in this turn, or the next.
    ready: Vec<usize>,
    /// Connections that are not read until the disk and the group have caught up.
    throttled: Vec<usize>,
    /// Connections that are not read until others have given memory back.
    waiting_for_memory: Vec<usize>,
    /// Connections whose held reads may go on.
    resumed: Vec<usize>,
    /// What the front end has just been answered is large: it is dealt with before more is read.
    has_large_reply: bool,
    /// The memory of all clients' connections.
    memory: ClientMemory,
    /// What it is charged with for replies that belong to no connection yet.
    reserved: usize,
    /// Connections with output.
    dirty: Vec<usize>,
    /// Connections with frames that are to leave from the log's thread.
    awaiting_record: Vec<usize>,
    /// A request of the front end on its way to several connections.
    frame: FrameBuffer,
    redis_listener: Option<Listener>,
    redis_tls_listener: Option<Listener>,
    replica_listener: Option<Listener>,
    tls_handshakes: Option<TlsHandshakes>,
    /// With what this process shows other nodes who it is, if it does so by TLS.
    links_tls: Option<LinksTls>,
    greetings: Deadlines,
    /// Connections to the replicas' port whose other end has not said who it is, in the order in which they came; some
    /// have said it meanwhile, or are gone.
    unidentified: VecDeque<u64>,
    links: Vec<Link>,
    /// When it has last asked where the nodes are.
    nodes_asked: Instant,
    introduction: Introduction,
    front_end: RedisFrontEnd,
    local: Option<LocalReplica>,
    /// What there is instead of a replica while the group is being formed.
    forming: Option<Forming>,
    /// The replica is no member yet.
    learning: Option<Learning>,
    /// Members that know another node in the position of this one, or none.
    disowned_by: ReplicaSet,
    /// Those of them that act in a later configuration, in which this node is not.
    left_out_by: ReplicaSet,
    /// The members that the group has shrunk by, if it has, are not needed any more, as was seen last.
    is_established: bool,
    /// Why the node must not go on.
    refusal: Option<String>,
    description: ProcessDescription,
    /// Redis clients connected.
    clients: usize,
    /// Syros clients connected, on the port for replicas. Clients of one port take no places of the other's.
    peer_clients: usize,
    /// Redis clients, by where they come from.
    client_addresses: ClientAddresses,
    /// Syros clients without a certificate, by where they come from.
    peer_client_addresses: ClientAddresses,
    /// Most of each.
    descriptors: Descriptors,
    output_bytes_max: usize,
    statistics: Statistics,
    /// Connections that wait until the keys have been counted, in the order of their requests.
    key_counts: VecDeque<KeyCountRequest>,
    /// Number of the last request for a count.
    last_count: u64,
    yield_policy: YieldPolicy,
    load: LoadMeter,
    /// What this turn has done so far.
    turn: Turn,
    /// What other threads ask.
    inquiries: Arc<Inquiries>,
    waker: Arc<Waker>,
    /// The operations of its clients that are traced, if any are.
    traces: Option<FrontEndTraces>,
}

/// What an [`EventLoop`] is made of.
pub(crate) struct EventLoopParts {
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<StopFlag>,
    pub(crate) redis_listener: Option<Listener>,
    pub(crate) redis_tls_listener: Option<Listener>,
    pub(crate) tls_handshakes: Option<TlsHandshakes>,
    pub(crate) links_tls: Option<LinksTls>,
    pub(crate) replica_listener: Option<Listener>,
    pub(crate) links: Vec<Link>,
    pub(crate) introduction: Introduction,
    pub(crate) front_end: RedisFrontEnd,
    pub(crate) local: Option<LocalReplica>,
    pub(crate) forming: Option<Forming>,
    pub(crate) learning: Option<Learning>,
    pub(crate) description: ProcessDescription,
    pub(crate) descriptors: Descriptors,
    pub(crate) client_memory: usize,
    pub(crate) output_bytes_max: usize,
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) traces: Option<FrontEndTraces>,
}

impl EventLoop {
    pub(crate) fn new(parts: EventLoopParts) -> Self {
        Self {
            now: parts.clock.now(),
            poll: parts.poll,
            clock: parts.clock,
            stop: parts.stop,
            table: Connections::default(),
            ready: Vec::new(),
            throttled: Vec::new(),
            waiting_for_memory: Vec::new(),
            resumed: Vec::new(),
            has_large_reply: false,
            memory: ClientMemory::new(parts.client_memory),
            reserved: 0,
            dirty: Vec::new(),
            awaiting_record: Vec::new(),
            frame: FrameBuffer::default(),
            redis_listener: parts.redis_listener,
            redis_tls_listener: parts.redis_tls_listener,
            tls_handshakes: parts.tls_handshakes,
            links_tls: parts.links_tls,
            replica_listener: parts.replica_listener,
            greetings: Deadlines::default(),
            unidentified: VecDeque::new(),
            links: parts.links,
            nodes_asked: Instant(0),
            is_established: false,
            introduction: parts.introduction,
            front_end: parts.front_end,
            local: parts.local,
            forming: parts.forming,
            learning: parts.learning,
            disowned_by: ReplicaSet::default(),
            left_out_by: ReplicaSet::default(),
            refusal: None,
            description: parts.description,
            clients: 0,
            peer_clients: 0,
            client_addresses: ClientAddresses::default(),
            peer_client_addresses: ClientAddresses::default(),
            descriptors: parts.descriptors,
            output_bytes_max: parts.output_bytes_max,
            statistics: Statistics::default(),
            key_counts: VecDeque::new(),
            last_count: 0,
            yield_policy: YieldPolicy::default(),
            load: LoadMeter::default(),
            turn: Turn::default(),
            inquiries: parts.inquiries,
            waker: parts.waker,
            traces: parts.traces,
        }
    }

    /// Runs until it is told to stop, or has to start anew. An error: the system does not let us wait for
    /// events.
    pub(crate) fn run(mut self) -> io::Result<EndReason> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let _running = self.inquiries.begin(Arc::clone(&self.waker));
        self.begin_to_serve();
        while !self.stop.is_set() {
            self.turn(&mut events)?;
            if let Some(ended) = self.form()? {
                self.flush();
                return Ok(ended);
            }
            if let Some(refusal) = self.refusal.take() {
                return Ok(EndReason::Refused(refusal));
            }
            if self.local.as_mut().is_some_and(|local| local.disk_has_returned(self.now)) {
                self.flush();
                return Ok(EndReason::DiskReturned);
            }
            if self.local.as_mut().is_some_and(|local| local.is_damaged(self.now)) {
                self.hand_over(&mut events)?;
                self.flush();
                return Ok(EndReason::Damaged);
            }
        }
        self.hand_over(&mut events)?;
        self.drain_clients(&mut events)?;
        self.shut_down();
        Ok(EndReason::Stopped)
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        match self.poll.poll(events, self.timeout()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => result?,
        }
        self.now = self.clock.now();
        self.turn = Turn::default();
        self.front_end.begin_turn(self.now.instant);
        for event in events.iter() {
            self.on_io_event(event);
        }
        // What is on disk now has been waited for the longest.
        if let Some(local) = &mut self.local
            && local.on_progress(self.now)
        {
            self.dispatch_outputs();
        }
        self.answer_key_counts();
        self.answer_inquiries();
        self.accept_waiting();
        self.dial_due();
        if !self.throttled.is_empty() && !self.is_overloaded() {
            // Who has waited goes before who has come since.
            self.throttled.append(&mut self.ready);
            std::mem::swap(&mut self.ready, &mut self.throttled);
        }
        self.retry_waiting_for_memory();
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
        self.let_members_go();
        // The disk has what it waits for, and clients have their answers: now what can wait.
        self.yield_processor();
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

    /// Tells other threads how the process is.
    fn answer_inquiries(&mut self) {
        let asked = self.inquiries.take();
        if asked.is_empty() {
            return;
        }
        let (peers, to_be) = (self.peers(), self.to_be());
        let Self { front_end, statistics, local, description, memory, now, traces, .. } = self;
        let state = (front_end.is_cut_off(), front_end.is_stopping());
        let shown = (&*memory, front_end.subscriptions(), front_end.own_reads());
        let clients = (self.clients, self.descriptors.redis_clients);
        let client = (front_end.client(), &*statistics);
        let mut report = description.state(local.as_ref(), client, clients, shown, state, *now).report();
        if to_be.is_some() {
            // It waits for the other members of a new group, and serves nobody yet.
            (report.role, report.status, report.leader) = (String::new(), "forming".to_owned(), None);
        }
        report.users_outdated = front_end.shared().is_outdated();
        let told = |client::TimesOfWay { way, sum, buckets }| (way.name(), Distribution { sum, buckets });
        let ways = front_end.client().way_times().into_iter().map(told).collect();
        let replica = local.as_ref().map(LocalReplica::activity);
        let traces = traces.as_ref().map(FrontEndTraces::activity);
        let shared = Arc::clone(front_end.shared());
        let told = Told { report, shared, ways, peers, replica, to_be, traces };
        for asker in asked {
            // Who does not wait any more does not get it.
            let _ = asker.send(told.clone());
        }
    }

    /// The other members, as far as this process has to do with them.
    fn peers(&self) -> Vec<Peer> {
        let to_be = self.to_be().map(|to_be| ReplicaId(to_be.replica));
        let own = self.local.as_ref().map(|local| local.me).or(to_be);
        let others = self.description.configuration.members().filter(|member| Some(*member) != own);
        let replica = self.local.as_ref().map(LocalReplica::replica);
        let peer = |member: ReplicaId| Peer {
            member: member.0,
            is_connected: self.links.get(member.index()).is_some_and(|link| link.connection.is_some()),
            acknowledged: replica.and_then(|replica| replica.acknowledged_by(member)).map(|entry| entry.0),
        };
        others.map(peer).collect()
    }

    /// Lets the threads run that this turn has woken, before it does what can wait.
    fn yield_processor(&mut self) {
        if self.turn.should_yield() && self.yield_policy.is_due(self.now.instant) {
            let begun = self.clock.now().instant;
            std::thread::yield_now();
            self.yield_policy.record(begun, self.clock.now().instant.since(begun));
        }
    }

    /// Carries out what the cores want, and lets go of what has come of it: to the log's thread, and to others.
    fn dispatch_outputs(&mut self) {
        self.drain_cores();
        if self.memory.candidate().is_some() {
            self.spare();
        }
        self.evict_if_exceeded();
        self.hand_to_durable_sender();
        if let Some(local) = &mut self.local {
            self.turn.has_logged |= local.submit();
            local.log_role();
        }
        self.flush();
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let has_more = !self.dirty.is_empty()
            || !self.ready.is_empty()
            || !self.resumed.is_empty()
            || (!self.throttled.is_empty() && !self.is_overloaded())
            || self.front_end.has_more();
        if has_more || self.wants_to_accept() {
            return Some(Duration::ZERO);
        }
        let local = self.local.as_ref().map_or(Instant::NEVER, LocalReplica::deadline);
        let deadline = local
            .min(self.front_end.deadline())
            .min(self.greetings.next())
            .min(self.memory.deadline())
            .min(self.memory.spared_until())
            .min(self.key_counts.front().map_or(Instant::NEVER, |request| request.until))
            .min(self.accept_deadline())
            .min(self.dial_deadline())
            .min(self.learning_deadline())
            .min(self.forming.as_ref().map_or(Instant::NEVER, Forming::deadline));
        (deadline != Instant::NEVER).then(|| deadline.since(self.clock.now().instant))
    }

    fn on_io_event(&mut self, event: &IoEvent) {
        match event.token() {
            // What it wakes for is looked at in every turn.
            WAKER => {}
            token @ (REDIS_LISTENER | REDIS_TLS_LISTENER | REPLICA_LISTENER) => {
                if let Some(listener) = self.listener(token) {
                    listener.is_ready = true;
                }
            }
            Token(index) if self.table.is_dialing(index) => self.continue_dialing(index),
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
    fn queue(&mut self, index: usize) {
        if let Some(open) = self.table.open_mut(index)
            && !open.is_queued
        {
            open.is_queued = true;
            self.ready.push(index);
        }
    }

    /// The connection may have output.
    fn mark_dirty(&mut self, index: usize) {
        if let Some(open) = self.table.open_mut(index) {
            open.mark_dirty(index, &mut self.dirty);
        }
    }

    fn is_overloaded(&self) -> bool {
        self.front_end.is_full() || self.local.as_ref().is_some_and(LocalReplica::is_behind)
    }

    /// What the cores wait for in time.
    fn tick(&mut self) {
        let now = self.now;
        if let Some(local) = &mut self.local {
            if now.instant >= local.replica().deadline() {
                local.handle(now, replica::Event::Tick);
            }
            local.record_promises_end(now);
            if let Some(share) = self.load.measure(now.instant) {
                local.handle(now, replica::Event::Load(share));
            }
        }
        self.front_end.tick(now);
        self.log_learning();
        self.watch_quorum();
    }

    /// Tells the front end when no majority can be reached, and when one can be again.
    fn watch_quorum(&mut self) {
        // Nobody is served by one that is no member yet.
        if self.forming.is_some() || self.learning.is_some() || !self.front_end.is_quorum_due(self.now) {
            return;
        }
        let now = self.now;
        let silent = self.local.as_ref().and_then(|local| local.replica().quorum_silence(now.instant));
        let has_links = self.links.iter().any(|link| link.connection.is_some());
        let is_alone = self.description.configuration.size() == 1;
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
}

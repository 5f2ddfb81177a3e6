//! A client inside somebody's event loop.

use crate::clock::Clock;
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, LinkError};
use crate::link::{Link, LinkStatus, Report};
use crate::options::Options;
use core::time::Duration;
use mio::{Registry, Token};
use std::collections::VecDeque;
use syros_protocol::client::{Action, Busy, Client, Config, Event, Outcome, ReadCounts, WriteCounts};
use syros_protocol::message::{Body, Message};
use syros_types::{
    Class, Configuration, ConfigurationEpoch, ConfigurationId, FastQuorum, Footprint, Group, Instant, Now,
    Prng, ReadPolicy, ReplicaId, Window,
};
use syros_wire::{ANY_CLUSTER, Channel, FrameBuffer, Hello, Member, RESIZED_SINCE, Sender};

/// An operation has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name that the caller gave it.
    pub user_token: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// An operation that came before the cluster's fast quorum mode was known.
#[derive(Debug)]
struct Early {
    user_token: u64,
    body: Body,
    class: Class,
    footprint: Footprint,
    policy: Option<ReadPolicy>,
    since: Instant,
}

/// Most slots of operations, those of ended ones behind one that has not ended included: 16 bytes each. More operations
/// fail as busy.
const NAMES_MAX: usize = 1 << 22;

/// A client that shares the caller's `mio::Poll` with other connections. One turn of the loop:
///
/// 1. wait in `Poll::poll`, no longer than [`wait`](Self::wait) says;
/// 2. hand every event with one of its tokens to [`on_event`](Self::on_event);
/// 3. [`turn`](Self::turn): reads, and gives what has ended;
/// 4. [`submit`](Self::submit) as much as there is;
/// 5. [`flush`](Self::flush): at most one write for each replica.
#[derive(Debug)]
pub struct EmbeddedClient {
    links: Vec<Link>,
    first_token: usize,
    registry: Registry,
    clock: Clock,
    /// What the clock said at the last turn.
    asked_clock: Now,
    options: Options,
    seed: u64,
    group: Group,
    hello: Hello,
    /// Known with the first handshake, together with `fast_quorum`.
    protocol: Option<Client>,
    fast_quorum: FastQuorum,
    /// Operations that wait for `protocol`, in the order of their coming.
    early: VecDeque<Early>,
    /// Names of the operations in flight, by the protocol's token.
    names: Window<u64>,
    /// Completions that were found outside of a turn.
    ended: Vec<Completion>,
    /// A message on its way to several links.
    frame: FrameBuffer,
}

impl EmbeddedClient {
    /// A client of the replicas at `endpoints`, in the order of the group, whose connections have the
    /// tokens from `first_token` on, one for each endpoint. Starts to connect with the first turn.
    ///
    /// # Errors
    /// [`ConnectError`]: the number of endpoints is no size of a group, or the system refuses
    /// another handle of the registry.
    pub fn new(
        endpoints: Vec<Endpoint>,
        options: Options,
        registry: &Registry,
        first_token: usize,
    ) -> Result<Self, ConnectError> {
        let group = Group::new(endpoints.len()).map_err(ConnectError::GroupSize)?;
        let seed = options.seed();
        let mut prng = Prng::new(seed);
        let clock = Clock::start();
        let link =
            |(index, endpoint)| Link::new(endpoint, Token(first_token + index), &options, prng.next_u64());
        Ok(Self {
            links: endpoints.into_iter().enumerate().map(link).collect(),
            first_token,
            registry: registry.try_clone().map_err(ConnectError::System)?,
            asked_clock: clock.now(),
            clock,
            hello: Hello { cluster: options.cluster, nonce: None, sender: Sender::Client },
            options,
            seed,
            group,
            protocol: None,
            fast_quorum: FastQuorum::Majority,
            early: VecDeque::new(),
            names: Window::new(1, NAMES_MAX),
            ended: Vec::new(),
            frame: FrameBuffer::default(),
        })
    }

    /// Takes on an operation that the caller calls `user_token`. `class` and `footprint` are what the
    /// state machine says of `body`. Nothing is sent before the next flush.
    ///
    /// # Errors
    /// [`Busy`] if too many operations are in flight.
    pub fn submit(
        &mut self,
        body: Body,
        class: Class,
        footprint: &Footprint,
        user_token: u64,
    ) -> Result<(), Busy> {
        self.submit_with(body, class, footprint, user_token, None)
    }

    /// As [`Self::submit`]; a read follows this policy, if one is given.
    ///
    /// # Errors
    /// [`Busy`] if too many operations are in flight.
    pub fn submit_with(
        &mut self,
        body: Body,
        class: Class,
        footprint: &Footprint,
        user_token: u64,
        policy: Option<ReadPolicy>,
    ) -> Result<(), Busy> {
        let now = self.clock.now_since(self.asked_clock);
        let Some(protocol) = &mut self.protocol else {
            let in_flight_max = self.options.settings.in_flight_max.min(NAMES_MAX);
            if self.early.len() >= in_flight_max {
                return Err(Busy { in_flight_max });
            }
            let (footprint, since) = (footprint.clone(), now.instant);
            self.early.push_back(Early { user_token, body, class, footprint, policy, since });
            return Ok(());
        };
        if self.names.is_full() {
            return Err(Busy { in_flight_max: NAMES_MAX });
        }
        let token = protocol.submit_with(now, body, class, footprint, policy)?;
        let number = self.names.push(user_token);
        debug_assert_eq!(token.0, number, "tokens count up");
        Ok(())
    }

    /// Takes note of an event. False if it is none of this client's.
    pub fn on_event(&mut self, event: &mio::event::Event) -> bool {
        let link = event.token().0.checked_sub(self.first_token).and_then(|index| self.links.get_mut(index));
        link.map(|link| link.on_event(event)).is_some()
    }

    /// Connects what must be connected, reads what has come, and appends what has ended to
    /// `completions`. Sends nothing.
    pub fn turn(&mut self, completions: &mut Vec<Completion>) {
        for index in 0..self.links.len() {
            if let Err(error) = self.serve(index) {
                self.fail(index, error);
            }
        }
        let now = self.clock.now();
        self.asked_clock = now;
        if let Some(protocol) = &mut self.protocol
            && now.instant >= protocol.deadline()
        {
            protocol.handle(now, Event::Tick);
        }
        while let Some(early) = self.early.front()
            && now.instant.since(early.since) >= self.options.settings.give_up_after
        {
            self.ended.push(Completion { user_token: early.user_token, outcome: Outcome::TimedOut });
            self.early.pop_front();
        }
        self.act();
        completions.append(&mut self.ended);
    }

    /// Writes what is to be sent: at most one write for each replica.
    pub fn flush(&mut self) {
        self.act();
        for index in 0..self.links.len() {
            if let Err(error) = self.links[index].flush() {
                self.fail(index, error);
            }
        }
    }

    /// How long the caller may wait for events; `None`: as long as it likes.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        if !self.ended.is_empty() || self.links.iter().any(Link::is_readable) {
            return Some(Duration::ZERO);
        }
        let links = self.links.iter().map(Link::deadline);
        let early = self.early.front().map(|early| early.since.after(self.options.settings.give_up_after));
        let protocol = self.protocol.as_ref().map(Client::deadline);
        let deadline = links.chain(early).chain(protocol).min().unwrap_or(Instant::NEVER);
        (deadline != Instant::NEVER).then(|| deadline.since(self.clock.now().instant))
    }

    /// How reads were answered so far; nothing before the cluster has been reached.
    #[must_use]
    pub fn read_counts(&self) -> ReadCounts {
        self.protocol.as_ref().map(Client::read_counts).unwrap_or_default()
    }

    /// How updates were answered so far; nothing before the cluster has been reached.
    #[must_use]
    pub fn write_counts(&self) -> WriteCounts {
        self.protocol.as_ref().map(Client::write_counts).unwrap_or_default()
    }

    /// Operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.early.len() + self.protocol.as_ref().map_or(0, Client::in_flight)
    }

    /// How the links to the replicas are doing, in the order of the group.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkStatus> {
        self.links.iter().map(Link::status)
    }

    /// The cluster, once a replica has named it.
    #[must_use]
    pub fn cluster(&self) -> Option<u64> {
        (self.hello.cluster != ANY_CLUSTER).then_some(self.hello.cluster)
    }

    /// The cluster's fast quorum mode, once a replica has named it.
    #[must_use]
    pub fn fast_quorum(&self) -> Option<FastQuorum> {
        self.protocol.is_some().then_some(self.fast_quorum)
    }

    /// Moves one link on, and takes in whatever it received.
    fn serve(&mut self, index: usize) -> Result<(), LinkError> {
        let link = &mut self.links[index];
        if !link.is_ready() {
            link.advance(self.clock.now().instant, &self.hello, &self.registry)?;
        }
        if !link.is_readable() {
            return Ok(());
        }
        let end = link.read();
        let now = self.clock.now();
        let from = ReplicaId(index as u8);
        // What came before the end still counts.
        while let Some(report) = self.links[index].next()? {
            match report {
                Report::Greeted(hello) => self.greet(from, hello)?,
                Report::Message(message) => {
                    if let Some(protocol) = &mut self.protocol {
                        protocol.handle(now, Event::Message { from, message });
                    }
                }
            }
        }
        end
    }

    /// Checks a replica's handshake, and puts the link to it to use.
    fn greet(&mut self, from: ReplicaId, hello: Hello) -> Result<(), LinkError> {
        hello.check_cluster(self.hello.cluster)?;
        let Sender::Replica(member) = hello.sender else {
            return Err(LinkError::NotReplica);
        };
        let Member { declaration, settings, .. } = *member;
        let (replica, group, fast_quorum) = (declaration.replica, settings.group, settings.fast_quorum);
        // A group that has grown or shrunk has another size than was listed; its configuration says which.
        if group != self.group && declaration.epoch == ConfigurationEpoch::FIRST {
            return Err(LinkError::GroupSize { found: group.size(), expected: self.group.size() });
        }
        if replica != from {
            return Err(LinkError::WrongReplica { found: replica, expected: from });
        }
        if self.protocol.is_some() && fast_quorum != self.fast_quorum {
            return Err(LinkError::FastQuorum { found: fast_quorum, expected: self.fast_quorum });
        }
        self.links[from.index()].accept();
        // The first replica to answer decides for which cluster the client is; the others must agree.
        self.hello.cluster = hello.cluster;
        self.fast_quorum = fast_quorum;
        let now = self.clock.now();
        let settings = &self.options.settings;
        // What a replica says of itself may be ahead of the epoch that serves, but not by long: it is agreed upon.
        let first = Configuration::first(self.group, fast_quorum);
        let known = declaration.configuration().unwrap_or_else(|| first.reconfiguration());
        let configuration = first.after(known);
        let config = || Config { settings: settings.clone(), ..Config::new(configuration, self.seed) };
        let protocol = self.protocol.get_or_insert_with(|| Client::new(config(), now));
        if known.roster.group() != protocol.configuration().group() {
            protocol.handle(now, Event::Message { from, message: Message::Configuration(Box::new(known)) });
        }
        protocol.handle(now, Event::Connected(from));
        if self.links[from.index()].version() < RESIZED_SINCE {
            protocol.handle(now, Event::TellsNoConfiguration(from));
        }
        for early in core::mem::take(&mut self.early) {
            let Early { user_token, body, class, footprint, policy, .. } = early;
            if !self.names.is_full() && protocol.submit_with(now, body, class, &footprint, policy).is_ok() {
                self.names.push(user_token);
            } else {
                // Never sent, so it has had no effect; there is room, since the same limits hold before.
                self.ended.push(Completion { user_token, outcome: Outcome::TimedOut });
            }
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, error: LinkError) {
        let now = self.clock.now();
        if self.links[index].fail(now.instant, error)
            && let Some(protocol) = &mut self.protocol
        {
            protocol.handle(now, Event::Disconnected(ReplicaId(index as u8)));
        }
    }

    /// Carries out what the protocol wants done.
    fn act(&mut self) {
        let Some(protocol) = &mut self.protocol else { return };
        while let Some(action) = protocol.poll() {
            match action {
                Action::Send { to, message } => {
                    let frame = self.frame.of(Channel::Client, ConfigurationId::FIRST, &message);
                    for to in to.iter() {
                        if let Some(link) =
                            self.links.get_mut(to.index()).filter(|link| link.speaks(&message))
                        {
                            link.send(frame);
                        }
                    }
                }
                // The program that embeds the client owns its links, and makes no others.
                Action::Reconfigured(_) => {}
                Action::Completed { token, outcome, .. } => {
                    if let Some(user_token) = self.names.remove(token.0) {
                        self.ended.push(Completion { user_token, outcome });
                    }
                }
            }
        }
    }
}

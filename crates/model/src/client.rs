//! One client as the models see it: the real client core, and one turn of it.

use crate::history::Progress;
use crate::machine::{self, Operation};
use crate::node::Envelope;
use crate::setup::{Change, Setup, Time};
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;
use syros_protocol::client::{Action, Client, Config, Event, Outcome};
use syros_protocol::fingerprint::Moments;
use syros_protocol::message::{Message, Peer};
use syros_types::{Instant, Now, ReplicaId, ReplicaSet, WallTime, WritePolicy};

/// What can happen to a client.
#[derive(Clone, Debug)]
pub(crate) enum Input<'a> {
    Message(&'a Envelope),
    /// It is given an operation.
    Invoke(Operation),
    /// It loses its connection to a member.
    Disconnected(ReplicaId),
    /// It has waited long enough for something to be done about it.
    Impatience,
}

/// How long a client waits.
const PATIENCE: u64 = 2;

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct ModelClient {
    number: usize,
    client: Client,
    /// Members that it has connected to.
    connected: ReplicaSet,
    clock: Instant,
    wall: WallTime,
}

/// What came of a turn: messages, and operations (by the client's own count, from 1) that ended.
pub(crate) type Outcomes = (Vec<Envelope>, Vec<(u64, Progress)>);

impl ModelClient {
    pub(crate) fn new(setup: &Setup, number: usize, wall: u64) -> Self {
        let unit = Duration::from_nanos;
        let mut config = Config::new(setup.configuration(), number as u64 + 1);
        config.planted = setup.planted;
        config.registers_early = false;
        config.settings.read_policy = setup.reads;
        config.settings.write_policy = WritePolicy::Fast;
        config.settings.resend = unit(PATIENCE);
        config.settings.sync_after = unit(PATIENCE);
        config.settings.give_up_after = Duration::from_secs(3600);
        config.settings.session_idle_max = Duration::from_secs(3600);
        let (clock, wall) = (Instant(1), WallTime(wall));
        let mut client = Client::new(config, Now { instant: clock, wall });
        for member in setup.configuration().members() {
            client.handle(Now { instant: clock, wall }, Event::Connected(member));
            if setup.change == Change::Replacement {
                // The group keeps its size, so that nobody has to ask who is in it.
                client.handle(Now { instant: clock, wall }, Event::TellsNoConfiguration(member));
            }
        }
        let connected = setup.configuration().members().collect();
        Self { number, client, connected, clock, wall }
    }

    pub(crate) fn turn(&self, input: &Input<'_>) -> (Self, Outcomes) {
        let mut next = self.clone();
        match input {
            Input::Message(envelope) => {
                if let Peer::Replica(from) = envelope.from {
                    let message = envelope.message.clone();
                    next.client.handle(next.now(), Event::Message { from, message });
                }
            }
            Input::Invoke(operation) => {
                let (class, footprint) = (operation.class(), operation.footprint());
                let submitted = next.client.submit(next.now(), operation.encode(), class, &footprint);
                submitted.expect("a model has few operations");
            }
            Input::Disconnected(member) => {
                next.client.handle(next.now(), Event::Disconnected(*member));
            }
            Input::Impatience => {
                next.clock.0 += PATIENCE;
                next.client.handle(next.now(), Event::Tick);
            }
        }
        let outcomes = next.drain();
        (next, outcomes)
    }

    const fn now(&self) -> Now {
        Now { instant: self.clock, wall: self.wall }
    }

    fn drain(&mut self) -> Outcomes {
        let (mut sent, mut ended) = (Vec::new(), Vec::new());
        while let Some(action) = self.client.poll() {
            match action {
                // Sessions are open here.
                Action::Send { message: Message::Attach { .. }, .. } => {}
                Action::Reconfigured(known) => {
                    // It is connected to all that are still there, and at once to those that are new.
                    let connected = self.connected;
                    for member in known.roster.group().members().filter(|member| !connected.contains(*member))
                    {
                        self.connected = self.connected.with(member);
                        self.client.handle(self.now(), Event::Connected(member));
                    }
                }
                Action::Send { to, message } => {
                    let from = Peer::Client(self.number as u64);
                    let envelope = |to| Envelope { from, to: Peer::Replica(to), message: message.clone() };
                    sent.extend(to.iter().map(envelope));
                }
                Action::Completed { token, outcome, .. } => {
                    let progress = match outcome {
                        Outcome::Done => Progress::Done,
                        Outcome::Reply(body) => machine::decode_value(&body)
                            .map_or_else(|| panic!("a reply is a value"), Progress::Value),
                        Outcome::Refused(_) | Outcome::TimedOut | Outcome::NoQuorum => Progress::Refused,
                        Outcome::Unknown => Progress::Open,
                    };
                    ended.push((token.0, progress));
                }
            }
        }
        (sent, ended)
    }

    /// Two clients with the same fingerprint behave alike.
    pub(crate) fn fingerprint(&self, setup: &Setup) -> u64 {
        let moments = if setup.time == Time::Timers { Moments::Remaining } else { Moments::Absolute };
        let mut hasher = DefaultHasher::new();
        hasher.write_usize(self.number);
        hasher.write_u16(self.connected.0);
        self.client.fingerprint(moments, &mut hasher);
        hasher.finish()
    }

    pub(crate) fn view(&self) -> u64 {
        self.client.view().0
    }
}

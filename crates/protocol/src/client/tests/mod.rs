//! What a client sends, and when it calls an operation done.

mod active;
mod direct;
mod epochs;
mod quorums;
mod reads;
mod refusals;
mod sessions;
mod thrifty;
mod write_policies;

use super::*;
use crate::message::Path;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{
    Configuration, ConfigurationEpoch, FastQuorum, Group, OpNumber, ReadPolicy, SessionId, WritePolicy,
};

type Sent = Vec<(u8, Message)>;

type Done = Vec<(Token, Outcome)>;

struct Harness {
    client: Client,
    now: Now,
    /// Who was shown that a session is the client's, in order.
    attached: Vec<(u8, SessionId)>,
}

fn id(sequence: u64) -> OperationId {
    OperationId { session: SessionId(9), sequence }
}

impl Harness {
    /// A client with a session, connected to `connected` of `n` replicas.
    fn new(n: usize, mode: FastQuorum, connected: &[u8]) -> Self {
        Self::with(Config::new(Configuration::first(Group::new(n).unwrap(), mode), 1), connected)
    }

    fn with(config: Config, connected: &[u8]) -> Self {
        let now = Now { instant: Instant(1_000_000), wall: WallTime(1_000) };
        let mut client = Client::new(config, now);
        for replica in connected {
            client.handle(now, Event::Connected(ReplicaId(*replica)));
        }
        let mut harness = Self { client, now, attached: Vec::new() };
        harness.submit(Class::Update);
        let nonce = harness.drain().0.iter().find_map(|(_, message)| match message {
            Message::Register { nonce, .. } => Some(*nonce),
            _ => None,
        });
        let registered = Message::Registered { view: View(0), nonce: nonce.unwrap(), session: SessionId(9) };
        harness.receive(0, registered);
        let reply = Body::from([1]);
        let committed = Message::Committed { view: View(0), id: id(1), clock: WallTime(0), reply };
        harness.receive(0, committed);
        harness.drain();
        harness
    }

    fn submit(&mut self, class: Class) -> Token {
        self.client.submit(self.now, Body::from([7]), class, &Footprint::One(1)).unwrap()
    }

    fn receive(&mut self, from: u8, message: Message) {
        self.client.handle(self.now, Event::Message { from: ReplicaId(from), message });
    }

    fn ok(&mut self, from: u8, view: u64, sequence: u64) {
        self.receive(
            from,
            Message::Ok { view: View(view), rule: None, id: id(sequence), clock: self.clock() },
        );
    }

    /// What the replicas' clocks say: their wall clocks run as monotonic time does.
    fn clock(&self) -> WallTime {
        WallTime(self.now.instant.0 / 1000)
    }

    fn drain(&mut self) -> (Sent, Done) {
        let (mut sent, mut done) = (Vec::new(), Vec::new());
        while let Some(action) = self.client.poll() {
            match action {
                Action::Send { to, message } => {
                    assert!(!to.is_empty());
                    if let Message::Attach { session, .. } = message {
                        self.attached.extend(to.iter().map(|to| (to.0, session)));
                        continue;
                    }
                    sent.extend(to.iter().map(|to| (to.0, message.clone())));
                }
                Action::Completed { token, outcome, way, .. } => {
                    let is_answered = matches!(outcome, Outcome::Done | Outcome::Reply(_));
                    assert_eq!(way.is_some(), is_answered, "{outcome:?} by {way:?}");
                    done.push((token, outcome));
                }
                Action::Reconfigured(known) => {
                    assert_eq!(self.client.configuration().id.epoch, known.epoch);
                }
            }
        }
        (sent, done)
    }

    fn pass(&mut self, duration: Duration) {
        self.now.instant = self.now.instant.after(duration);
        self.client.handle(self.now, Event::Tick);
    }
}

fn paths(sent: &[(u8, Message)]) -> Vec<(u8, Path, u64)> {
    let path = |(to, message): &(u8, Message)| match message {
        Message::Request { path, request, .. } => Some((*to, *path, request.id.sequence)),
        _ => None,
    };
    sent.iter().filter_map(path).collect()
}

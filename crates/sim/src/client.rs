//! One life of a client process: the real client core and what it has asked for.

use crate::adapter;
use crate::clock::{Clock, VirtualTime};
use crate::history::OperationIndex;
use crate::process::ReplicaProcess;
use crate::redis_host::{HostEffect, RedisHost};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use syros_node::front_end::MessagePeer;
use syros_protocol::client::{Action, Client, Config, Event, Outcome, Token};
use syros_protocol::message::{Body, Message, Request};
use syros_types::{Configuration, Description, OpNumber, OperationId, ReadPolicy, ReplicaId};
use syros_wire::FrontEndMessage;

/// What a client wants of the world after it ran.
#[derive(Debug)]
pub enum ClientEffect {
    /// A message leaves.
    Send {
        /// To whom.
        to: ReplicaId,
        /// Encoded.
        bytes: Rc<[u8]>,
    },
    /// An update is about to be sent for the first time.
    Sent {
        /// Which.
        operation: OperationIndex,
        /// Its id.
        id: OperationId,
    },
    /// A request is sent that was sent before, and the client has completed an operation since.
    Resent,
    /// A read of a Redis client ended, or a body of several commands.
    Read {
        /// One of the operations.
        operation: OperationIndex,
        /// The reply to all of them.
        reply: Option<Body>,
        /// The log entry after which a member answered.
        applied: Option<OpNumber>,
    },
    /// An update of a Redis client that changes nothing has been answered after this log entry, and is not in the log.
    NoOp {
        /// The operation, or one of them.
        operation: OperationIndex,
        /// The reply to all of them.
        reply: Body,
        /// The log entry.
        applied: OpNumber,
    },
    /// Bytes leave for a Redis client.
    Reply {
        /// Its connection.
        address: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The connection of a Redis client is closed.
    Close {
        /// Its address.
        address: u64,
    },
    /// A message leaves for another front end.
    SendToPeer {
        /// The other one.
        to: MessagePeer,
        /// The message.
        message: FrontEndMessage,
    },
    /// The process ends by itself.
    Exit,
    /// An operation ended.
    Completed {
        /// Which.
        operation: OperationIndex,
        /// How.
        outcome: Outcome,
        /// The log entry after which a member answered a read.
        applied: Option<OpNumber>,
    },
}

/// One life of a client process.
#[derive(Debug)]
pub struct ClientProcess {
    core: Core,
    /// The process's clock.
    pub clock: Clock,
    /// When the process is to run next if nothing arrives; wake-ups for other times are void.
    pub wake_at: Option<VirtualTime>,
    /// Address of the connection to each replica that has one.
    pub connections: Vec<Option<u64>>,
    operations: BTreeMap<Token, Pending>,
    /// Operations that have ended.
    completed: u64,
}

/// What runs in the process.
#[derive(Debug)]
enum Core {
    Client(Box<Client>),
    FrontEnd(Box<RedisHost>),
}

/// An operation that has not ended.
#[derive(Debug)]
struct Pending {
    operation: OperationIndex,
    /// Tells which request is this operation's: the core passes the very same bytes on.
    body: Body,
    /// Operations that had ended when its request was first sent.
    sent: Option<u64>,
}

impl ClientProcess {
    /// Starts a client.
    #[must_use]
    pub fn new(config: Config, replicas: usize, clock: Clock, time: VirtualTime) -> Self {
        let connections = vec![None; replicas];
        let core = Core::Client(Box::new(Client::new(config, clock.now(time))));
        Self::with_core(core, connections, clock)
    }

    /// Starts a process with a Redis front end.
    pub(crate) fn with_front_end(host: RedisHost, replicas: usize, clock: Clock) -> Self {
        Self::with_core(Core::FrontEnd(Box::new(host)), vec![None; replicas], clock)
    }

    const fn with_core(core: Core, connections: Vec<Option<u64>>, clock: Clock) -> Self {
        Self { core, clock, wake_at: None, connections, operations: BTreeMap::new(), completed: 0 }
    }

    /// The client core.
    #[must_use]
    pub fn core(&self) -> &Client {
        match &self.core {
            Core::Client(client) => client,
            Core::FrontEnd(host) => host.core(),
        }
    }

    /// The front end, if there is one.
    pub(crate) fn host(&mut self) -> Option<&mut RedisHost> {
        match &mut self.core {
            Core::Client(_) => None,
            Core::FrontEnd(host) => Some(host),
        }
    }

    /// Asks for an operation; a read in a way of its own if a `policy` says so. False if the client has too much in flight.
    #[must_use]
    pub fn submit(
        &mut self,
        time: VirtualTime,
        body: &[u8],
        policy: Option<ReadPolicy>,
        operation: OperationIndex,
    ) -> bool {
        let Some(Description { class, footprint, .. }) = adapter::describe(body) else { return false };
        let now = self.clock.now(time);
        let body = Body::from(body);
        let Core::Client(core) = &mut self.core else { return false };
        match core.submit_with(now, body.clone(), class, &footprint, policy) {
            Ok(token) => {
                self.operations.insert(token, Pending { operation, body, sent: None });
                true
            }
            Err(_busy) => false,
        }
    }

    /// Handles one event.
    pub fn handle(&mut self, time: VirtualTime, event: Event) {
        let now = self.clock.now(time);
        match &mut self.core {
            Core::Client(client) => client.handle(now, event),
            Core::FrontEnd(host) => host.handle(now, event),
        }
    }

    /// The newest configuration that the client has heard of.
    pub(crate) fn configuration(&self) -> &Configuration {
        match &self.core {
            Core::Client(client) => client.configuration(),
            Core::FrontEnd(host) => host.configuration(),
        }
    }

    /// Carries out what the core wants, beside the replica in the same process, if there is one.
    pub(crate) fn drain(
        &mut self,
        time: VirtualTime,
        home: Option<&mut ReplicaProcess>,
        effects: &mut Vec<ClientEffect>,
    ) {
        let now = self.clock.now(time);
        if let Core::FrontEnd(host) = &mut self.core {
            let mut wanted = Vec::new();
            host.run((time, now), home, &mut wanted);
            wanted.into_iter().for_each(|effect| pass_on(effect, effects));
            return;
        }
        while let Core::Client(core) = &mut self.core
            && let Some(action) = core.poll()
        {
            match action {
                Action::Send { to, message } => {
                    let bytes = adapter::encode_message(&message);
                    for to in to.iter() {
                        if let Message::Request { request, .. } = &message {
                            effects.extend(self.on_sent(request));
                        }
                        effects.push(ClientEffect::Send { to, bytes: bytes.clone() });
                    }
                }
                // It asks around for nodes by itself.
                Action::Reconfigured(_) => {}
                Action::Completed { token, outcome, applied, way: _ } => {
                    let pending = self.operations.remove(&token).expect("a token ends once");
                    self.completed += 1;
                    effects.push(ClientEffect::Completed { operation: pending.operation, outcome, applied });
                }
            }
        }
    }

    /// What there is to be said of a request that leaves.
    fn on_sent(&mut self, request: &Request) -> Option<ClientEffect> {
        let completed = self.completed;
        let mut pending = self.operations.values_mut();
        let pending = pending.find(|pending| Arc::ptr_eq(&pending.body, &request.body))?;
        match pending.sent {
            None => {
                pending.sent = Some(completed);
                Some(ClientEffect::Sent { operation: pending.operation, id: request.id })
            }
            Some(first) => (first < completed).then_some(ClientEffect::Resent),
        }
    }

    /// Operations that have not ended.
    #[must_use]
    pub fn unfinished(&self) -> Vec<OperationIndex> {
        match &self.core {
            Core::Client(_) => self.operations.values().map(|pending| pending.operation).collect(),
            Core::FrontEnd(host) => host.unfinished(),
        }
    }

    /// When the process wants to run if nothing arrives; `None` if never.
    #[must_use]
    pub fn deadline(&self) -> Option<VirtualTime> {
        self.clock.when(match &self.core {
            Core::Client(client) => client.deadline(),
            Core::FrontEnd(host) => host.deadline(),
        })
    }
}

/// What a front end wants, as any client would say it.
fn pass_on(effect: HostEffect, effects: &mut Vec<ClientEffect>) {
    effects.push(match effect {
        HostEffect::Send { to, message } => {
            let bytes = adapter::encode_message(&message);
            return effects.extend(to.iter().map(|to| ClientEffect::Send { to, bytes: bytes.clone() }));
        }
        HostEffect::Sent { operation, id } => ClientEffect::Sent { operation, id },
        HostEffect::Read { operation, reply, applied } => ClientEffect::Read { operation, reply, applied },
        HostEffect::NoOp { operation, reply, applied } => ClientEffect::NoOp { operation, reply, applied },
        HostEffect::Reply { address, bytes } => ClientEffect::Reply { address, bytes },
        HostEffect::Close { address } => ClientEffect::Close { address },
        HostEffect::SendToPeer { to, message } => ClientEffect::SendToPeer { to, message },
        HostEffect::Exit => ClientEffect::Exit,
    });
}

//! The client that programs use.

use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, Error};
use crate::options::Options;
use crate::pending::{Interpret, Pending, Slot, block_on};
use crate::thread::{ConnectedSlot, IoThread, Shared, Submission};
use core::fmt::Display;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Instant;
use syros_machine::StateMachine;
use syros_protocol::message::{Body, Refusal};
use syros_types::{Class, Footprint, ReadPolicy};

/// A client of a cluster. Clones are handles of the same client, which share its session, its
/// connections and its I/O thread; the thread ends when the last handle is gone and the operations in
/// flight have ended.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    /// How this handle reads; `None`: as the options say.
    read_policy: Option<ReadPolicy>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

/// A client that is being connected, and a future of it.
#[derive(Debug)]
#[must_use = "the client is to be had by awaiting or waiting for this"]
pub struct Connecting {
    client: Client,
    connected: ConnectedSlot,
}

impl Connecting {
    /// Blocks the calling thread until a replica can be talked to.
    ///
    /// # Errors
    /// [`ConnectError::NoReplica`] if none can within the time allowed.
    pub fn wait(self) -> Result<Client, ConnectError> {
        block_on(self)
    }
}

impl Future for Connecting {
    type Output = Result<Client, ConnectError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.connected.poll(context).map(|result| result.map(|()| self.client.clone()))
    }
}

impl Client {
    /// Starts a client of the replicas at `addresses`: one for every replica, in the order of the group.
    /// Names are resolved here, which may block; nothing else does. They are resolved again, in the background, when a
    /// connection is lost or cannot be made.
    ///
    /// # Errors
    /// [`ConnectError`]: the number of addresses is no size of a group, a name cannot be resolved, or the
    /// system refuses a thread.
    pub fn connect(
        addresses: &[impl ToSocketAddrs + Display],
        options: Options,
    ) -> Result<Connecting, ConnectError> {
        let resolve = |(position, address)| {
            Endpoint::resolve(address).map_err(|error| ConnectError::Resolve { position, error })
        };
        let endpoints = addresses.iter().enumerate().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let (in_flight_max, connect_timeout) = (options.settings.in_flight_max, options.connect_timeout);
        let driver = Driver::new(endpoints, options)?;
        let shared = Arc::new(Shared::new(driver.waker().map_err(ConnectError::System)?, in_flight_max));
        let connected: ConnectedSlot = Slot::new();
        let until = Instant::now() + connect_timeout;
        let thread = IoThread::new(driver, Arc::clone(&shared), Arc::clone(&connected), until);
        std::thread::Builder::new()
            .name("syros-client".into())
            .spawn(|| thread.run())
            .map_err(ConnectError::System)?;
        let client = Self { inner: Arc::new(Inner { shared }), read_policy: None };
        Ok(Connecting { client, connected })
    }

    /// A handle of the same client whose reads are answered in this way.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use syros_client::{Client, Options, ReadPolicy};
    ///
    /// let client = Client::connect(&["10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000"], Options::default())?.wait()?;
    /// let value = client.reading(ReadPolicy::Quorum).get("key").wait()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn reading(&self, policy: ReadPolicy) -> Self {
        Self { read_policy: Some(policy), ..self.clone() }
    }

    /// Executes the operations in `body`, as [`syros_commands`] encodes them, and gives their encoded
    /// replies; none if all of them only acknowledge.
    pub fn execute(&self, body: impl Into<Body>) -> Pending<Body> {
        let body = body.into();
        match syros_commands::describe(&body) {
            Ok(description) => self.submit(body, description.class, description.footprint),
            Err(malformed) => Pending::not_sent(Error::Operation(malformed), |body| Ok(body.clone())),
        }
    }

    /// Executes an operation of any state machine, which says that it is of this class and touches these
    /// keys. A wrong class is refused by the replicas.
    pub fn submit(&self, body: impl Into<Body>, class: Class, footprint: Footprint) -> Pending<Body> {
        self.start(body.into(), class, footprint, |body| Ok(body.clone()))
    }

    /// Executes an operation of a state machine of somebody's own, and gives what it returns: nothing, if it is an
    /// overwrite or a merge. What the machine does not take for an operation is refused as malformed, and not sent.
    ///
    /// The nodes must run this machine (`Node::start_machine` of `syros-runtime`).
    pub fn submit_to<M: StateMachine>(&self, operation: impl Into<Body>) -> Pending<Body> {
        let operation = operation.into();
        match syros_machine::describe::<M>(&operation) {
            Some(known) => self.submit(operation, known.class, known.footprint),
            None => Pending::not_sent(Error::Refused(Refusal::Malformed), |body| Ok(body.clone())),
        }
    }

    pub(crate) fn start<T>(
        &self,
        body: Body,
        class: Class,
        footprint: Footprint,
        interpret: Interpret<T>,
    ) -> Pending<T> {
        let slot = Slot::new();
        let read_policy = self.read_policy;
        let submission = Submission { body, class, footprint, read_policy, slot: Arc::clone(&slot) };
        match self.inner.shared.submit(submission) {
            Ok(()) => Pending::sent(slot, interpret),
            Err(error) => Pending::not_sent(error, interpret),
        }
    }
}

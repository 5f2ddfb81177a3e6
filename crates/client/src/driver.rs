//! A client with an event loop of its own, which the caller's thread runs turn by turn.

use crate::embedded::{Completion, EmbeddedClient};
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::link::LinkStatus;
use crate::options::Options;
use core::time::Duration;
use mio::{Events, Poll, Token, Waker};
use std::io::ErrorKind;
use syros_protocol::client::Busy;
use syros_protocol::message::Body;
use syros_types::{Class, Footprint, ReadPolicy};

/// Events of one poll; there are at most 9 replicas and a waker.
const EVENTS_MAX: usize = 16;

/// The replicas have the tokens after it.
const WAKER: Token = Token(0);

/// A client that does its work in [`run_once`](Self::run_once), on the caller's thread: no locks, no
/// other thread, no hand-over. For load generators and other programs that mostly wait for their
/// own operations.
///
/// ```no_run
/// use syros_client::{Class, Driver, Endpoint, Footprint, Options};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoints = vec![Endpoint::resolve("127.0.0.1:7000")?];
/// let mut driver = Driver::new(endpoints, Options::default())?;
/// let words: [&[u8]; 3] = [b"SET", b"key", b"value"];
/// let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(&words) else { panic!() };
/// let mut body = Vec::new();
/// operation.encode(&mut body);
/// driver.submit(body.into(), operation.class(), &operation.footprint(), 1)?;
/// let mut completions = Vec::new();
/// while completions.is_empty() {
///     driver.run_once(None, &mut completions)?;
/// }
/// println!("{:?}", completions[0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Driver {
    poll: Poll,
    events: Events,
    client: EmbeddedClient,
}

impl Driver {
    /// A client of the replicas at `endpoints`, in the order of the group. Starts to connect with the
    /// first turn.
    ///
    /// # Errors
    /// [`ConnectError`]: the number of endpoints is no size of a group, or the system refuses an
    /// event queue.
    pub fn new(endpoints: Vec<Endpoint>, options: Options) -> Result<Self, ConnectError> {
        let poll = Poll::new().map_err(ConnectError::System)?;
        let client = EmbeddedClient::new(endpoints, options, poll.registry(), WAKER.0 + 1)?;
        Ok(Self { poll, events: Events::with_capacity(EVENTS_MAX), client })
    }

    /// What another thread can use to end the wait of [`run_once`](Self::run_once). There must be one
    /// at most.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn waker(&self) -> std::io::Result<Waker> {
        Waker::new(self.poll.registry(), WAKER)
    }

    /// Takes on an operation, see [`EmbeddedClient::submit`].
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
        self.client.submit(body, class, footprint, user_token)
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
        self.client.submit_with(body, class, footprint, user_token, policy)
    }

    /// One turn: sends what was submitted, with one write for each replica; waits until something comes,
    /// but no longer than `timeout`; reads, and appends what has ended to `completions`.
    ///
    /// # Errors
    /// Whatever the system says about waiting. Trouble with a replica is no error: see
    /// [`links`](Self::links).
    pub fn run_once(
        &mut self,
        timeout: Option<Duration>,
        completions: &mut Vec<Completion>,
    ) -> std::io::Result<()> {
        self.client.flush();
        let wait = match (self.client.wait(), timeout) {
            (Some(wait), Some(timeout)) => Some(wait.min(timeout)),
            (wait, timeout) => wait.or(timeout),
        };
        match self.poll.poll(&mut self.events, wait) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            self.client.on_event(event);
        }
        self.client.turn(completions);
        Ok(())
    }

    /// Operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.client.in_flight()
    }

    /// How the links to the replicas are doing, in the order of the group.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkStatus> {
        self.client.links()
    }
}

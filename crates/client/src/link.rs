//! The connection to one replica: made, lost and made again.

use crate::endpoint::Endpoint;
use crate::error::{LinkError, TlsProblem};
use crate::options::Options;
use core::time::Duration;
use mio::{Registry, Token};
use std::net::SocketAddr;
use std::sync::Arc;
use syros_net::{
    Connection, DialSchedule, Dialing, FlushOutcome, Limits, Lookup, Progress, ReadOutcome, TlsSession,
};
use syros_protocol::message::Message;
use syros_tls::Credentials;
use syros_types::{GroupId, Instant};
use syros_wire::{Channel, Hello, Sender, VERSION, decode_client_message, put_frame, version_of};

/// A link's state.
#[derive(Debug)]
enum State {
    /// Not connected; the next attempt is made when the schedule says.
    Waiting,
    /// The socket is being connected; given up then.
    Dialing { dialing: Dialing, until: Instant },
    /// Connected, our handshake is on its way, theirs has not come; given up then.
    Greeting { connection: Box<Connection>, until: Instant },
    /// In use.
    Ready { connection: Box<Connection> },
}

/// What a link has to report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The replica's handshake. The link is in use if the receiver does not object.
    Greeted(Hello),
    /// A message.
    Message(Message),
}

/// The connection to one replica.
#[derive(Debug)]
pub(crate) struct Link {
    endpoint: Endpoint,
    /// The name of the endpoint is being looked up again.
    lookup: Option<Lookup>,
    token: Token,
    state: State,
    /// An event for a socket that is being connected has come.
    is_signalled: bool,
    schedule: DialSchedule,
    dial_timeout: Duration,
    /// With what this client shows the replica who it is, if nodes speak TLS.
    credentials: Option<Arc<Credentials>>,
    /// The version of the wire format to begin the next connection in.
    version: u16,
    last_error: Option<LinkError>,
}

/// How a link is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// The replica's address in use, or tried last.
    pub address: SocketAddr,
    /// True if the replica can be talked to.
    pub is_connected: bool,
    /// Why it could not be talked to the last time it could not.
    pub last_error: Option<LinkError>,
}

impl Link {
    pub(crate) fn new(endpoint: Endpoint, token: Token, options: &Options, seed: u64) -> Self {
        Self {
            endpoint,
            lookup: None,
            token,
            state: State::Waiting,
            is_signalled: false,
            schedule: DialSchedule::new(options.backoff_first, options.backoff_max, seed),
            dial_timeout: options.dial_timeout,
            credentials: options.credentials.clone(),
            version: VERSION,
            last_error: None,
        }
    }

    pub(crate) fn status(&self) -> LinkStatus {
        let (address, last_error) = (self.endpoint.current(), self.last_error);
        LinkStatus { address, is_connected: self.is_ready(), last_error }
    }

    /// True if the link is in use.
    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// Takes note of an event.
    pub(crate) fn on_event(&mut self, event: &mio::event::Event) {
        match &mut self.state {
            State::Waiting => {}
            State::Dialing { .. } => self.is_signalled = true,
            State::Greeting { connection, .. } | State::Ready { connection } => connection.on_event(event),
        }
    }

    /// When the link must be moved on even if no event comes.
    pub(crate) const fn deadline(&self) -> Instant {
        match self.state {
            State::Waiting => self.schedule.due(),
            State::Dialing { until, .. } | State::Greeting { until, .. } => until,
            State::Ready { .. } => Instant::NEVER,
        }
    }

    /// True if the link can be moved on at once.
    pub(crate) fn is_readable(&self) -> bool {
        match &self.state {
            State::Waiting | State::Dialing { .. } => false,
            State::Greeting { connection, .. } | State::Ready { connection } => connection.is_readable(),
        }
    }

    /// Moves on a link that is not in use yet: connects when it is time, greets, gives up.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        hello: &Hello,
        registry: &Registry,
    ) -> Result<(), LinkError> {
        let is_late = now >= self.deadline();
        let signalled = core::mem::take(&mut self.is_signalled);
        let state = core::mem::replace(&mut self.state, State::Waiting);
        self.state = match state {
            State::Waiting if self.schedule.begin(now) => {
                self.take_addresses();
                let dialing = Dialing::start(self.endpoint.current(), registry, self.token)?;
                State::Dialing { dialing, until: now.after(self.dial_timeout) }
            }
            State::Dialing { dialing, until } if signalled => match dialing.progress() {
                Progress::Pending(dialing) => State::Dialing { dialing, until },
                Progress::Connected(stream) => {
                    let session = self.credentials.as_ref().map(|credentials| {
                        // If they have been renewed, and else what was read before counts.
                        let _ = credentials.refresh();
                        credentials.connect()
                    });
                    let session =
                        session.transpose().map_err(|error| LinkError::Tls(TlsProblem::of(&error)))?;
                    let mut connection =
                        Connection::adopt(stream, Limits::NODE, session.map(TlsSession::new))?;
                    put_frame(connection.outbound(), Channel::Handshake, |out| {
                        hello.encode_as(self.version, out);
                    });
                    State::Greeting { connection: Box::new(connection), until }
                }
                Progress::Failed(error) => return Err(error.into()),
            },
            State::Dialing { .. } | State::Greeting { .. } if is_late => return Err(LinkError::TimedOut),
            other => other,
        };
        Ok(())
    }

    /// One read.
    pub(crate) fn read(&mut self) -> Result<(), LinkError> {
        let (State::Greeting { connection, .. } | State::Ready { connection }) = &mut self.state else {
            return Ok(());
        };
        match connection.read() {
            // A full buffer is emptied by `next`, frame by frame, since any frame fits into it.
            ReadOutcome::Received(_) | ReadOutcome::Nothing | ReadOutcome::Full => Ok(()),
            ReadOutcome::Closed => Err(LinkError::Closed),
            ReadOutcome::Failed(error) => Err(error.into()),
        }
    }

    /// The next thing received.
    pub(crate) fn next(&mut self) -> Result<Option<Report>, LinkError> {
        let (is_greeted, connection) = match &mut self.state {
            State::Waiting | State::Dialing { .. } => return Ok(None),
            State::Greeting { connection, .. } => (false, connection),
            State::Ready { connection } => (true, connection),
        };
        let Some(frame) = connection.next_frame().map_err(LinkError::Frame)? else { return Ok(None) };
        match (is_greeted, frame.channel) {
            (true, Channel::Client) => {
                let group = frame.configuration.group;
                if group != GroupId::ONLY {
                    return Err(LinkError::Group(group));
                }
                let message = decode_client_message(frame.payload).map_err(LinkError::Malformed)?;
                Ok(Some(Report::Message(message)))
            }
            (false, Channel::Handshake) => {
                let theirs = Hello::version_of_answer(frame.payload);
                let hello = Hello::decode(frame.payload)?;
                if theirs < self.version {
                    // It refuses this connection, and takes the next.
                    self.version = theirs;
                    return Err(LinkError::Older(theirs));
                }
                if matches!(hello.sender, Sender::Client) {
                    return Err(LinkError::NotReplica);
                }
                Ok(Some(Report::Greeted(hello)))
            }
            _ => Err(LinkError::NoHello),
        }
    }

    /// The replica is the right one: the link is in use from now on.
    pub(crate) fn accept(&mut self) {
        let state = core::mem::replace(&mut self.state, State::Waiting);
        self.state = match state {
            State::Greeting { connection, .. } => State::Ready { connection },
            other => other,
        };
        self.schedule.on_success();
    }

    /// Gives the connection up and tries again later. True if it was in use.
    pub(crate) fn fail(&mut self, now: Instant, error: LinkError) -> bool {
        let was_ready = self.is_ready();
        if !matches!(error, LinkError::Older(_)) {
            // It may come back as one that speaks more.
            self.version = VERSION;
        }
        self.last_error = Some(error);
        self.state = State::Waiting;
        self.schedule.on_failure(now);
        self.endpoint.rotate();
        if let (None, Some(name)) = (&self.lookup, self.endpoint.name()) {
            // Without a thread for it the addresses that are known are tried again.
            self.lookup = Lookup::start(name.to_owned(), || {}).ok();
        }
        was_ready
    }

    /// Takes what has been found under the name, if the answer is there: an attempt does not wait for it, but goes to where
    /// the name led before. Where it leads nowhere now, that may be the name server's fault.
    fn take_addresses(&mut self) {
        if let Some(found) = self.lookup.as_ref().and_then(Lookup::take) {
            self.lookup = None;
            if let Ok(addresses) = found {
                self.endpoint.replace(addresses);
            }
        }
    }

    /// The version of the wire format that the replica speaks.
    pub(crate) const fn version(&self) -> u16 {
        self.version
    }

    /// False if the replica is of an older version, which does not know such messages.
    pub(crate) fn speaks(&self, message: &Message) -> bool {
        self.version >= version_of(message)
    }

    /// Appends a frame with a message to the output, unless the link is not in use or the replica does not read:
    /// what the protocol sends it sends again if it is not answered.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        if let State::Ready { connection } = &mut self.state
            && !connection.is_clogged()
        {
            connection.outbound().extend_from_slice(frame);
        }
    }

    /// At most one write.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        if let State::Greeting { connection, .. } | State::Ready { connection } = &mut self.state
            && connection.wants_flush()
            && let FlushOutcome::Failed(error) = connection.flush()
        {
            return Err(error.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::SessionId;

    #[test]
    fn a_replica_of_an_older_version_is_not_sent_what_it_does_not_know() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut link = Link::new(address.into(), Token(1), &Options::default(), 1);
        let new = Message::AnswerDirectly { session: SessionId(1), nonce: 2, lasting: Duration::ZERO };
        assert!(link.speaks(&new));
        link.version = version_of(&new) - 1;
        assert!(!link.speaks(&new) && link.speaks(&Message::StatusRequest));
    }

    #[test]
    fn a_link_that_failed_looks_its_name_up_again() {
        let mut endpoint = Endpoint::resolve("localhost:7379").unwrap();
        let home = endpoint.current();
        // Where the name led once.
        let before = SocketAddr::from(([192, 0, 2, 1], 7379));
        endpoint.replace(vec![before]);
        let mut link = Link::new(endpoint, Token(1), &Options::default(), 1);
        assert!(!link.fail(Instant(1), LinkError::TimedOut));
        assert_eq!(link.status().address, before, "nobody waits for the name server");
        // The resolver's thread takes its time.
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while link.status().address == before && std::time::Instant::now() < until {
            link.take_addresses();
            std::thread::yield_now();
        }
        assert_eq!(link.status().address, home);
    }

    #[test]
    fn only_the_connection_after_a_refused_one_begins_in_an_older_version() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut link = Link::new(address.into(), Token(1), &Options::default(), 1);
        link.version = VERSION - 1;
        assert!(!link.fail(Instant(1), LinkError::Older(VERSION - 1)));
        assert_eq!(link.version, VERSION - 1, "it takes the next connection");
        assert!(!link.fail(Instant(2), LinkError::TimedOut));
        assert_eq!(link.version, VERSION, "it may have been upgraded meanwhile");
    }
}

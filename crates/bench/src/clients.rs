//! Clients on the calling thread, and the operations that they are given.

use crate::error::Error;
use core::time::Duration;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;
use syros_client::{Completion, EmbeddedClient, Endpoint, Options};
use syros_commands::families::{Append, FlushAll, Get, IncrBy, MGet, Set};
use syros_commands::{Arguments, Command, Operation};
use syros_types::{Group, Prng};

/// Events of one poll. More only come with the next one.
const EVENTS_MAX: usize = 256;

/// Makes operations: reads and overwrites of numbered keys.
#[derive(Debug)]
pub(crate) struct Operations {
    values: Values,
    body: Vec<u8>,
}

/// Values of one length.
#[derive(Debug)]
pub(crate) struct Values {
    /// Values are parts of this, one behind the other, which a processor foresees. Were they anywhere in it, each would wait for
    /// memory, longer than a client takes for anything else of an operation, and drive others' out of the caches.
    bytes: Vec<u8>,
    value_bytes: usize,
    /// Where the next one begins.
    next: usize,
}

/// Values begin at this many different places, so that a block of a store has hardly two that are alike.
const VALUE_PLACES: usize = 1 << 20;

/// A name of a key, made without allocating: that is done for each operation, and what it takes is none of the system's
/// that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    bytes: [u8; 32],
    length: usize,
}

impl Name {
    /// `kind` and a number of twelve digits at least, as `{number:012}` has it.
    fn new(kind: &[u8], number: u64) -> Self {
        let digits = number.checked_ilog10().map_or(0, |last| last as usize + 1).max(12);
        let length = kind.len() + digits;
        let mut bytes = [0; 32];
        bytes[..kind.len()].copy_from_slice(kind);
        let mut rest = number;
        for digit in bytes[kind.len()..length].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Self { bytes, length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The name of a record.
pub(crate) fn key_name(number: u64) -> Name {
    Name::new(b"key:", number)
}

impl Values {
    /// All are so long.
    pub(crate) fn new(value_bytes: usize, prng: &mut Prng) -> Self {
        // Bytes that do not compress, in case anything on the way tries.
        let bytes = (0..VALUE_PLACES + value_bytes).map(|_| prng.next_u64() as u8).collect();
        Self { bytes, value_bytes, next: prng.below(VALUE_PLACES as u64) as usize }
    }

    /// The next one.
    pub(crate) fn draw(&mut self) -> &[u8] {
        let start = self.next;
        // By odd steps it comes to all places before it comes to one again.
        self.next = (start + (self.value_bytes | 1)) % VALUE_PLACES;
        &self.bytes[start..start + self.value_bytes]
    }
}

impl Operations {
    /// All values are so long.
    pub(crate) fn new(value_bytes: usize, prng: &mut Prng) -> Self {
        Self { values: Values::new(value_bytes, prng), body: Vec::new() }
    }

    /// Gives an operation on one key to a client.
    pub(crate) fn submit(&mut self, client: &mut EmbeddedClient, key: u64, is_read: bool, user_token: u64) {
        self.ask(client, if is_read { Request::Get(key) } else { Request::Set(key) }, user_token);
    }

    /// Gives any request to a client.
    pub(crate) fn ask(&mut self, client: &mut EmbeddedClient, request: Request, user_token: u64) {
        let value = self.values.draw();
        let (name, names, keys): (Name, Vec<Name>, Vec<&[u8]>);
        let command: Command<'_> = match request {
            Request::Get(record) => {
                name = key_name(record);
                Get { key: name.as_bytes() }.into()
            }
            Request::Set(record) => {
                name = key_name(record);
                Set::new(name.as_bytes(), value).into()
            }
            Request::MGet { first, count } => {
                names = (first..first + count).map(key_name).collect();
                keys = names.iter().map(Name::as_bytes).collect();
                MGet { keys: Arguments::new(&keys) }.into()
            }
            Request::Increment(counter) => {
                name = Name::new(b"counter:", counter);
                IncrBy { key: name.as_bytes(), delta: 1 }.into()
            }
            Request::Append(file) => {
                name = Name::new(b"file:", file);
                Append { key: name.as_bytes(), value }.into()
            }
            Request::FlushAll => FlushAll.into(),
        };
        let blind = matches!(request, Request::Append(_));
        let operation = Operation { blind, ..Operation::new(command) };
        self.body.clear();
        operation.encode(&mut self.body);
        let (class, footprint) = (operation.class(), operation.footprint());
        let submitted = client.submit(self.body.as_slice().into(), class, &footprint, user_token);
        submitted.expect("the client was told to take any number of operations");
    }
}

/// What a client is to ask of the store, about records by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The value of a record.
    Get(u64),
    /// Replaces a record, or writes a new one.
    Set(u64),
    /// Values of so many records, 1 at least.
    MGet {
        /// The first of them.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Increments a counter, which is none of the records.
    Increment(u64),
    /// Adds a record to a key of a file, which is none of the records, and wants no answer but that it was done.
    Append(u64),
    /// Empties the store.
    FlushAll,
}

/// All clients on one event queue. A turn costs only what the clients cost that something happened to.
pub(crate) struct Clients {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    /// Ends a turn at the moment of `alarm`; what `poll` itself waits is whole milliseconds.
    timer: OwnedFd,
    alarm: Option<Instant>,
}

/// The timer's token: that of no connection.
const TIMER: Token = Token(usize::MAX);

/// A client, and what must be known of it to leave it alone.
struct Client {
    client: EmbeddedClient,
    /// When it must have a turn even if nothing happens to it.
    deadline: Option<Instant>,
    /// Something has happened to it since its last flush.
    is_active: bool,
}

impl Clients {
    /// One client for each list of replicas.
    pub(crate) fn new(settings: impl IntoIterator<Item = (Vec<Endpoint>, Options)>) -> Result<Self, Error> {
        let poll = Poll::new().map_err(Error::System)?;
        let mut clients = Vec::new();
        for (index, (endpoints, options)) in settings.into_iter().enumerate() {
            let client = EmbeddedClient::new(endpoints, options, poll.registry(), index * Group::SIZE_MAX)?;
            clients.push(Client { client, deadline: None, is_active: true });
        }
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|error| Error::System(error.into()))?;
        let registered =
            poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE);
        registered.map_err(Error::System)?;
        Ok(Self { poll, events: Events::with_capacity(EVENTS_MAX), clients, timer, alarm: None })
    }

    /// The number of clients.
    pub(crate) const fn count(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn client(&self, index: usize) -> &EmbeddedClient {
        &self.clients[index].client
    }

    /// A client that is about to be given something to do.
    pub(crate) fn active(&mut self, index: usize) -> &mut EmbeddedClient {
        let client = &mut self.clients[index];
        client.is_active = true;
        &mut client.client
    }

    /// Ends a turn at this moment, or as soon after it as the system can; once.
    pub(crate) fn wake_at(&mut self, moment: Instant) -> Result<(), Error> {
        if self.alarm == Some(moment) {
            return Ok(());
        }
        self.alarm = Some(moment);
        // Zero would disarm it.
        let left = moment.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)
            .map(drop)
            .map_err(|error| Error::System(error.into()))
    }

    /// One turn of all clients: sends, waits until something comes or until `until`, and reads.
    pub(crate) fn turn(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), Error> {
        let now = Instant::now();
        let mut wake = until;
        for client in &mut self.clients {
            if core::mem::take(&mut client.is_active) {
                client.client.flush();
                client.deadline = client.client.wait().map(|wait| now + wait);
            }
            wake = client.deadline.map_or(wake, |deadline| deadline.min(wake));
        }
        match self.poll.poll(&mut self.events, Some(wake.saturating_duration_since(now))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(Error::System(error)),
            _ => {}
        }
        for event in self.events.iter().filter(|event| event.token() != TIMER) {
            let client = &mut self.clients[event.token().0 / Group::SIZE_MAX];
            client.is_active |= client.client.on_event(event);
        }
        let now = Instant::now();
        for client in &mut self.clients {
            if client.is_active || client.deadline.is_some_and(|deadline| now >= deadline) {
                client.is_active = true;
                client.client.turn(completions);
            }
        }
        Ok(())
    }

    /// Runs the clients, which have nothing to do yet, until every one of them can talk to every replica.
    pub(crate) fn connect(&mut self, patience: Duration) -> Result<(), Error> {
        let until = Instant::now() + patience;
        loop {
            let mut links = self.clients.iter().flat_map(|client| client.client.links());
            let Some(link) = links.find(|link| !link.is_connected) else { return Ok(()) };
            if Instant::now() >= until {
                return Err(Error::Unreachable(link.address, link.last_error));
            }
            drop(links);
            self.turn(until, &mut Vec::new())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_everywhere_before_they_begin_anywhere_again() {
        for value_bytes in [1, 100, 101] {
            let mut values = Values::new(value_bytes, &mut Prng::new(1));
            let base = values.bytes.as_ptr() as usize;
            let mut seen = vec![false; VALUE_PLACES];
            for _ in 0..VALUE_PLACES {
                let value = values.draw();
                assert_eq!(value.len(), value_bytes);
                let place = value.as_ptr() as usize - base;
                assert!(!core::mem::replace(&mut seen[place], true), "{place} again");
            }
        }
    }

    #[test]
    fn names_have_twelve_digits_at_least() {
        for number in [0, 7, 10, 999_999_999_999, 1_000_000_000_000, u64::MAX] {
            assert_eq!(key_name(number).as_bytes(), format!("key:{number:012}").as_bytes());
            let counter = format!("counter:{number:012}");
            assert_eq!(Name::new(b"counter:", number).as_bytes(), counter.as_bytes());
        }
    }
}

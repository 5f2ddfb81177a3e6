//! The table of connections.

use std::collections::VecDeque;
use std::net::SocketAddr;

use syros_net::{Connection, Dialing, Outlet};
use syros_node::front_end::{ClientMemory, REPLY_BYTES_SHARE, RedisFrontEnd};
use syros_node::{ClientSource, ReadJob};
use syros_protocol::record::Ticket;
use syros_types::{Instant, ReplicaId};

use crate::handshake::{Greeting, Transcript};

/// Output that may wait is moved to a socket's buffer in portions of this size: about what the socket
/// takes at once.
const PORTION_BYTES: usize = 256 * 1024;

/// With more than this many bytes in the buffer of a link, frames for front ends go to its overflow.
const LINK_DIRECT_BYTES_MAX: usize = 1024 * 1024;

/// Frames for the front end of another node wait at most to so many bytes before its next read is executed: they are
/// what many clients have asked for, and that node does read.
const LINK_OVERFLOW_SHARE: usize = 16 * 1024 * 1024;

/// Reads of one connection that wait for room at most; further ones are dropped, and asked for again.
const HELD_READS_MAX: usize = 8192;

/// Who is at the other end of a connection.
pub(crate) enum ConnectionKind {
    /// The other end has not said who it is.
    Greeting(Box<Greeting>),
    /// A replica, or its front end.
    Link(ReplicaId),
    /// A Syros client.
    Client {
        /// The version of the wire format that it speaks.
        spoken: u16,
    },
    /// A Redis client: the front end has the rest.
    Redis,
}

/// An open connection.
pub(crate) struct OpenConnection {
    pub(crate) net: Connection,
    pub(crate) kind: ConnectionKind,
    /// Its name for the cores: unlike its place in the table, never used twice.
    pub(crate) address: u64,
    /// The other end, for log lines.
    pub(crate) peer: Option<SocketAddr>,
    /// Frames for the front end at the other end of a link that go out when the socket has taken what is
    /// before them, so that the replicas' own messages never wait behind megabytes of values.
    pub(crate) overflow: VecDeque<Vec<u8>>,
    /// Bytes in `overflow`.
    pub(crate) overflow_bytes: usize,
    /// Reads that are executed when there is room for their replies, in order.
    pub(crate) held_reads: VecDeque<ReadJob>,
    /// Bytes of the bodies of `held_reads`.
    held_read_bytes: usize,
    /// What the budget of all clients is charged with for this one.
    pub(crate) charged: usize,
    /// Frames that are to leave from the log's thread, and when: those of this part of a turn.
    pub(crate) awaiting_record: Option<(Ticket, Outlet, Vec<u8>)>,
    /// It is in the list of connections to be read.
    pub(crate) is_queued: bool,
    /// It is in the list of connections with output.
    pub(crate) is_dirty: bool,
    /// It has input that is not read for now, because too much waits to go out or to be done.
    pub(crate) is_stalled: bool,
    /// It is closed as soon as its output has gone.
    pub(crate) is_closing: bool,
    /// A client that has asked for more than may wait for it: an answer was dropped, and it is closed in this turn.
    pub(crate) is_overfull: bool,
    /// A client that may prove that it knows the cluster's secret.
    pub(crate) transcript: Option<Box<Transcript>>,
    /// A client that has proved it, or whose certificate says as much.
    pub(crate) is_authenticated: bool,
    /// The address as whose client it is counted, if it is.
    pub(crate) counted: Option<ClientSource>,
}

impl OpenConnection {
    pub(crate) const fn new(
        net: Connection,
        kind: ConnectionKind,
        address: u64,
        peer: Option<SocketAddr>,
    ) -> Self {
        Self {
            net,
            kind,
            address,
            peer,
            overflow: VecDeque::new(),
            overflow_bytes: 0,
            held_reads: VecDeque::new(),
            held_read_bytes: 0,
            charged: 0,
            awaiting_record: None,
            is_queued: false,
            is_dirty: false,
            is_stalled: false,
            is_closing: false,
            is_overfull: false,
            transcript: None,
            is_authenticated: false,
            counted: None,
        }
    }

    /// Appends a frame for a client of the replica. False if it was dropped, because more than
    /// `limit` bytes wait for the client, or at the other end of a link for the front end there. A few bytes may ask for
    /// megabytes, and thousands of such requests come in one turn: the limit holds before the turn's output is written.
    pub(crate) fn put_for_client(&mut self, limit: usize, put: impl FnOnce(&mut Vec<u8>)) -> bool {
        if !matches!(self.kind, ConnectionKind::Link(_)) {
            self.is_overfull |= self.net.backlog() > limit;
            if !self.is_overfull {
                put(self.net.outbound());
            }
            return !self.is_overfull;
        }
        let is_backed_up = self.net.backlog() > LINK_DIRECT_BYTES_MAX || !self.overflow.is_empty();
        if !is_backed_up {
            put(self.net.outbound());
            return true;
        }
        if self.overflow_bytes > limit {
            return false;
        }
        let mut frame = Vec::new();
        put(&mut frame);
        self.overflow_bytes += frame.len();
        self.overflow.push_back(frame);
        true
    }

    /// Moves what may go out now to the socket's buffer.
    pub(crate) fn refill(&mut self, front_end: &mut RedisFrontEnd) {
        if self.is_redis() && self.net.backlog() == 0 {
            let output = front_end.output(self.address);
            let portion = output.len().min(PORTION_BYTES);
            self.net.outbound().extend_from_slice(&output[..portion]);
            front_end.sent(self.address, portion);
        }
        while self.net.backlog() < PORTION_BYTES
            && let Some(frame) = self.overflow.pop_front()
        {
            self.overflow_bytes -= frame.len();
            self.net.outbound().extend_from_slice(&frame);
        }
    }

    /// Puts the connection into the list of those with output, in which `index` is its place.
    pub(crate) fn mark_dirty(&mut self, index: usize, dirty: &mut Vec<usize>) {
        if !self.is_dirty {
            self.is_dirty = true;
            dirty.push(index);
        }
    }

    /// True if commands have been received that wait for room: they are taken though the client sends no more.
    pub(crate) fn has_input_to_take(&self) -> bool {
        (self.is_stalled || self.is_queued) && !self.net.received().is_empty()
    }

    /// True for a connection of a Redis client.
    pub(crate) const fn is_redis(&self) -> bool {
        matches!(self.kind, ConnectionKind::Redis)
    }

    /// True if the connection of a Redis client goes on with what it has received in the next turn.
    pub(crate) fn rests(&self, front_end: &RedisFrontEnd) -> bool {
        self.redis(front_end).is_some_and(syros_resp::Connection::rests)
    }

    /// What the front end has for the connection of a Redis client.
    fn redis<'a>(&self, front_end: &'a RedisFrontEnd) -> Option<&'a syros_resp::Connection> {
        if self.is_redis() { front_end.connection(self.address) } else { None }
    }

    /// True for a connection of a client of either kind, or one that may become that.
    pub(crate) fn is_client(&self) -> bool {
        match &self.kind {
            ConnectionKind::Redis | ConnectionKind::Client { .. } => true,
            ConnectionKind::Greeting(greeting) => greeting.dialed.is_none(),
            ConnectionKind::Link(_) => false,
        }
    }

    /// Charges the budget of all clients with what this one takes now.
    pub(crate) fn charge(&mut self, front_end: &RedisFrontEnd, memory: &mut ClientMemory) {
        if self.is_client() {
            let replies = self.redis(front_end).map_or(0, syros_resp::Connection::memory_bytes);
            let held = self.held_reads.len() * size_of::<ReadJob>() + self.held_read_bytes;
            memory.charge(&mut self.charged, self.net.memory_bytes() + replies + held);
        } else {
            memory.charge(&mut self.charged, 0);
        }
    }

    /// True if the other end is to take replies before another read is executed for it. (Redis connections say for
    /// themselves which of their reads may be.)
    pub(crate) fn exceeds_reply_share(&self) -> bool {
        match self.kind {
            ConnectionKind::Link(_) => self.overflow_bytes > LINK_OVERFLOW_SHARE,
            _ => self.net.backlog() > REPLY_BYTES_SHARE,
        }
    }

    /// True if no requests should be read from it for now, because too much waits to go out.
    pub(crate) fn is_backpressured(&self) -> bool {
        let is_owing = matches!(self.kind, ConnectionKind::Client { .. }) && self.exceeds_reply_share();
        is_owing || self.net.is_clogged() || !self.held_reads.is_empty()
    }

    /// Keeps a read until its client has taken replies that it has got.
    pub(crate) fn hold(&mut self, job: ReadJob) {
        if self.held_reads.len() < HELD_READS_MAX {
            self.held_read_bytes += job.body.len();
            self.held_reads.push_back(job);
        }
    }

    /// The next read that was kept, if there is room for its reply.
    pub(crate) fn pop_held(&mut self) -> Option<ReadJob> {
        if self.exceeds_reply_share() {
            return None;
        }
        let job = self.held_reads.pop_front()?;
        self.held_read_bytes -= job.body.len();
        Some(job)
    }

    /// Bytes of replies in memory that the other end is to take.
    pub(crate) fn unsent_reply_bytes(&self, front_end: &RedisFrontEnd) -> usize {
        let replies = self.redis(front_end).map_or(0, syros_resp::Connection::reply_bytes);
        replies + self.net.backlog()
    }

    /// Bytes that wait to go out.
    pub(crate) fn waiting_bytes(&self, front_end: &RedisFrontEnd) -> usize {
        let replies = self.redis(front_end).map_or(0, |redis| redis.output().len());
        replies + self.overflow_bytes + self.net.backlog()
    }
}

/// A connection at any stage.
#[expect(clippy::large_enum_variant, reason = "nearly all entries are open, and looked at often")]
pub(crate) enum ConnectionEntry {
    /// It is being made.
    Dialing { replica: ReplicaId, dialing: Dialing, address: u64 },
    /// It is there.
    Open(OpenConnection),
}

impl ConnectionEntry {
    const fn address(&self) -> u64 {
        match self {
            Self::Dialing { address, .. } => *address,
            Self::Open(open) => open.address,
        }
    }
}

/// All connections, by their place in a table, which is also the token of their events.
#[derive(Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Places given up in this turn of the loop. They are not used again before the next, because
    /// events for them may still be waiting.
    retired: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    uses: u32,
    entry: Option<ConnectionEntry>,
}

impl Connections {
    /// A place for a new connection, and its address. It must be filled, or given back.
    pub(crate) fn reserve(&mut self) -> (usize, u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        slot.uses = slot.uses.wrapping_add(1);
        (index, u64::from(slot.uses) << 32 | index as u64)
    }

    /// Gives back a place that was reserved.
    pub(crate) fn release(&mut self, index: usize) {
        self.retired.push(index);
    }

    /// Fills a place, whatever was there before.
    pub(crate) fn fill(&mut self, index: usize, entry: ConnectionEntry) {
        self.slots[index].entry = Some(entry);
    }

    /// Takes a connection out and gives its place back.
    pub(crate) fn remove(&mut self, index: usize) -> Option<ConnectionEntry> {
        let entry = self.slots.get_mut(index)?.entry.take()?;
        self.retired.push(index);
        Some(entry)
    }

    /// Takes a connection out; its place stays reserved.
    pub(crate) fn take(&mut self, index: usize) -> Option<ConnectionEntry> {
        self.slots.get_mut(index)?.entry.take()
    }

    /// A turn of the loop is over: places given up may be used again.
    pub(crate) fn recycle(&mut self) {
        self.free.append(&mut self.retired);
    }

    /// The open connection at this place.
    pub(crate) fn open_mut(&mut self, index: usize) -> Option<&mut OpenConnection> {
        match self.slots.get_mut(index)?.entry.as_mut()? {
            ConnectionEntry::Open(open) => Some(open),
            ConnectionEntry::Dialing { .. } => None,
        }
    }

    /// So many places there are, taken or not.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if the connection at this place is still being made.
    pub(crate) fn is_dialing(&self, index: usize) -> bool {
        matches!(self.slots.get(index), Some(Slot { entry: Some(ConnectionEntry::Dialing { .. }), .. }))
    }

    /// The addresses of all clients' connections, and what the budget is charged with for each.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (u64, usize)> {
        self.slots.iter().filter_map(|slot| match &slot.entry {
            Some(ConnectionEntry::Open(open)) if open.is_client() => Some((open.address, open.charged)),
            _ => None,
        })
    }

    /// True if the connection at this place has been accepted, and its other end has not said who it is.
    pub(crate) fn is_unidentified(&self, index: usize) -> bool {
        let entry = self.slots.get(index).and_then(|slot| slot.entry.as_ref());
        matches!(entry, Some(ConnectionEntry::Open(OpenConnection { kind: ConnectionKind::Greeting(greeting), .. })) if greeting.dialed.is_none())
    }

    /// The place of the connection with this address, if it still exists.
    pub(crate) fn find(&self, address: u64) -> Option<usize> {
        let index = (address & u64::from(u32::MAX)) as usize;
        let entry = self.slots.get(index)?.entry.as_ref()?;
        (entry.address() == address).then_some(index)
    }
}

/// Connections that have to get somewhere within a time that is the same for all, in order.
#[derive(Default)]
pub(crate) struct Deadlines(VecDeque<(Instant, u64)>);

impl Deadlines {
    /// The connection with this address has until `deadline`, which is no earlier than any before.
    pub(crate) fn push(&mut self, deadline: Instant, address: u64) {
        self.0.push_back((deadline, address));
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Instant {
        self.0.front().map_or(Instant::NEVER, |(deadline, _)| *deadline)
    }

    /// A connection whose deadline has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u64> {
        let (deadline, address) = self.0.front().copied()?;
        (deadline <= now).then(|| {
            self.0.pop_front();
            address
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialing(connections: &mut Connections, poll: &mio::Poll) -> (usize, u64) {
        let (index, address) = connections.reserve();
        // Nobody needs to listen there: the connection is only being made.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let dialing = Dialing::start(nowhere, poll.registry(), mio::Token(index)).unwrap();
        connections.fill(index, ConnectionEntry::Dialing { replica: ReplicaId(0), dialing, address });
        (index, address)
    }

    #[test]
    fn addresses_are_never_used_twice_and_places_not_in_one_turn() {
        let poll = mio::Poll::new().unwrap();
        let mut connections = Connections::default();
        let (first, address) = dialing(&mut connections, &poll);
        assert_eq!(connections.find(address), Some(first));
        assert!(connections.is_dialing(first) && connections.open_mut(first).is_none());
        assert!(connections.remove(first).is_some() && connections.remove(first).is_none());
        assert_eq!(connections.find(address), None);

        let (second, _) = dialing(&mut connections, &poll);
        assert_ne!(first, second, "an event for the first may be waiting");
        connections.recycle();
        let (third, new_address) = dialing(&mut connections, &poll);
        assert_eq!(first, third);
        assert_ne!(address, new_address);
        assert_eq!((connections.find(address), connections.find(new_address)), (None, Some(first)));
        assert_eq!(connections.find(u64::MAX), None);
    }

    /// Thousands of requests may come in one turn, each of which asks for a megabyte.
    #[test]
    fn what_waits_for_a_client_has_a_limit_before_it_is_written() {
        let poll = mio::Poll::new().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = mio::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let net =
            Connection::register(stream, syros_net::Limits::CLIENT, poll.registry(), mio::Token(0), None);
        let mut open = OpenConnection::new(net.unwrap(), ConnectionKind::Client { spoken: 0 }, 1, None);
        let put =
            |open: &mut OpenConnection| open.put_for_client(10, |out| out.extend_from_slice(b"12345678"));
        assert_eq!([put(&mut open), put(&mut open), put(&mut open)], [true, true, false]);
        assert!(open.is_overfull && open.net.backlog() == 16);
        // What was dropped is missed, whatever the client takes now.
        open.net.outbound().clear();
        assert!(!put(&mut open));
    }

    #[test]
    fn deadlines_come_in_order() {
        let mut deadlines = Deadlines::default();
        assert_eq!((deadlines.next(), deadlines.pop_due(Instant(100))), (Instant::NEVER, None));
        deadlines.push(Instant(10), 1);
        deadlines.push(Instant(20), 2);
        assert_eq!((deadlines.next(), deadlines.pop_due(Instant(9))), (Instant(10), None));
        assert_eq!((deadlines.pop_due(Instant(15)), deadlines.pop_due(Instant(15))), (Some(1), None));
        assert_eq!(deadlines.pop_due(Instant(20)), Some(2));
    }
}

//! A connection through the relay: two sockets, and a flow from each to the other.

use crate::flow::{Delivered, Flow};
use mio::net::TcpStream;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;

/// Most bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Most reads of one socket in one turn: the others wait meanwhile.
const READS_MAX: usize = 16;

/// The end that was dialed from outside.
pub(crate) const DIALER: usize = 0;

/// The end at the replica.
pub(crate) const REPLICA: usize = 1;

/// A socket.
#[derive(Debug)]
struct End {
    stream: TcpStream,
    /// The connection is made, as far as is known.
    is_connected: bool,
    is_readable: bool,
    is_writable: bool,
}

/// Two sockets.
#[derive(Debug)]
pub(crate) struct Connection {
    ends: [End; 2],
    /// From each end to the other.
    flows: [Flow; 2],
}

impl Connection {
    /// `replica` may be under way still.
    pub(crate) const fn new(dialer: TcpStream, replica: TcpStream, flows: [Flow; 2]) -> Self {
        let dialer = End { stream: dialer, is_connected: true, is_readable: true, is_writable: true };
        let replica = End { stream: replica, is_connected: false, is_readable: false, is_writable: false };
        Self { ends: [dialer, replica], flows }
    }

    /// When there is something to be delivered to an end, if that is to be looked at anew.
    pub(crate) fn schedule(&mut self, side: usize) -> Option<u64> {
        // What the receiver has no room for waits for the receiver.
        let is_waited_for = self.ends[1 - side].is_writable;
        let flow = &mut self.flows[side];
        let due = flow.due().filter(|due| is_waited_for && flow.scheduled.is_none_or(|at| *due < at))?;
        flow.scheduled = Some(due);
        Some(due)
    }

    /// The time for which a flow was scheduled has come.
    pub(crate) const fn unschedule(&mut self, side: usize) {
        self.flows[side].scheduled = None;
    }

    /// Takes note of an event of one end.
    pub(crate) fn on_event(&mut self, side: usize, event: &mio::event::Event, now: u64) {
        let end = &mut self.ends[side];
        end.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        if end.is_connected {
            end.is_writable |= event.is_writable() || event.is_write_closed() || event.is_error();
            return;
        }
        match (end.stream.take_error(), end.stream.peer_addr()) {
            (Ok(None), Ok(_)) => (end.is_connected, end.is_writable) = (true, true),
            // As mio has it: it is still under way.
            (Ok(None), Err(error)) if error.kind() == ErrorKind::NotConnected => {}
            _ => self.lose(side, now),
        }
    }

    /// One socket is of no use any more: the other end hears of it when it can.
    pub(crate) fn lose(&mut self, side: usize, now: u64) {
        self.ends[side].is_readable = false;
        self.flows[side].send_reset(now);
        self.flows[1 - side].drop_all();
    }

    /// Reads what one end has sent. True if there may be more now.
    pub(crate) fn read(&mut self, side: usize, clock: impl Fn() -> u64) -> bool {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..READS_MAX {
            let (end, flow) = (&mut self.ends[side], &mut self.flows[side]);
            if !end.is_readable || !end.is_connected || !flow.takes_more() {
                return false;
            }
            match end.stream.read(&mut buffer) {
                Ok(0) => {
                    end.is_readable = false;
                    flow.send_end(clock());
                }
                Ok(count) => flow.send(clock(), &buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => end.is_readable = false,
                Err(_) => self.lose(side, clock()),
            }
        }
        true
    }

    /// Delivers what one end has sent and has arrived at the other.
    pub(crate) fn deliver(&mut self, side: usize, now: u64) {
        let receiver = &mut self.ends[1 - side];
        if !receiver.is_writable {
            return;
        }
        match self.flows[side].deliver(now, &mut receiver.stream) {
            Ok(Delivered::All) => {}
            Ok(Delivered::Blocked) => receiver.is_writable = false,
            Ok(Delivered::End) => {
                if receiver.stream.shutdown(Shutdown::Write).is_err() {
                    self.lose(1 - side, now);
                }
            }
            Ok(Delivered::Reset) => self.flows[1 - side].drop_all(),
            Err(_) => self.lose(1 - side, now),
        }
    }

    /// Nothing will ever come of it again.
    pub(crate) const fn is_over(&self) -> bool {
        self.flows[0].is_over() && self.flows[1].is_over()
    }

    /// The sockets, to be registered.
    pub(crate) const fn streams(&mut self) -> [&mut TcpStream; 2] {
        let [dialer, replica] = &mut self.ends;
        [&mut dialer.stream, &mut replica.stream]
    }
}

//! The relay's only thread.

use crate::connection::{Connection, DIALER, REPLICA};
use crate::flow::Flow;
use core::cmp::Reverse;
use core::time::Duration;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use syros_regions::{Line, Traffic};
use syros_types::Prng;

/// Most connections through one relay; more are closed at once. Each takes two files of the usual 1024 or
/// more, and up to twice what may be under way in a direction.
pub const CONNECTIONS_MAX: usize = 2048;

/// Events of one poll. More only come with the next one.
const EVENTS_MAX: usize = 256;

/// After the system had no file for a connection it is asked again after this long.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

pub(crate) const WAKE: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);

/// A listening socket, and where its connections go.
#[derive(Debug)]
pub(crate) struct RelayListener {
    pub(crate) listener: TcpListener,
    pub(crate) to: SocketAddr,
    /// There, and back.
    pub(crate) lines: [Line; 2],
}

/// What is to be looked at when: a flow by its connection and the end it comes from.
type ScheduledDelivery = Reverse<(u64, usize, usize)>;

/// Everything that the thread owns.
#[derive(Debug)]
pub(crate) struct EventLoop {
    poll: Poll,
    /// Unlike the system's waiting for events, it is exact to far less than a millisecond.
    timer: OwnedFd,
    /// What time the timer is set to.
    alarm: u64,
    started: Instant,
    listeners: Vec<RelayListener>,
    connections: Vec<Option<Connection>>,
    /// Places in `connections`. Those that became free in this turn are not used before the next one: an
    /// event of their last owner may wait still.
    free: Vec<usize>,
    freed: Vec<usize>,
    open: usize,
    appointments: BinaryHeap<ScheduledDelivery>,
    /// Ends that have more to read.
    unread: Vec<(usize, usize)>,
    /// Listeners that somebody waits at whom the system had no room for.
    crowded: Vec<usize>,
    prng: Prng,
    is_stopped: Arc<AtomicBool>,
}

fn token(listeners: usize, connection: usize, side: usize) -> Token {
    Token(listeners + 2 * connection + side)
}

impl EventLoop {
    pub(crate) fn new(
        poll: Poll,
        mut listeners: Vec<RelayListener>,
        prng: Prng,
        is_stopped: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        for (index, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(&mut listener.listener, Token(index), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            timer,
            alarm: 0,
            started: Instant::now(),
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            open: 0,
            appointments: BinaryHeap::new(),
            unread: Vec::new(),
            crowded: Vec::new(),
            prng,
            is_stopped,
        })
    }

    /// Nanoseconds since the relay's start.
    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_stopped.load(Ordering::Acquire) {
            self.wait(&mut events)?;
            for (connection, side) in core::mem::take(&mut self.unread) {
                self.serve(connection, side);
            }
            for listener in core::mem::take(&mut self.crowded) {
                self.accept(listener);
            }
            for event in &events {
                match event.token() {
                    WAKE | TIMER => {}
                    Token(listener) if listener < self.listeners.len() => self.accept(listener),
                    Token(number) => {
                        let (index, side) =
                            ((number - self.listeners.len()) / 2, (number - self.listeners.len()) % 2);
                        let now = self.now();
                        if let Some(Some(connection)) = self.connections.get_mut(index) {
                            connection.on_event(side, event, now);
                            self.serve(index, side);
                        }
                    }
                }
            }
            self.keep_appointments();
            self.free.append(&mut self.freed);
        }
        Ok(())
    }

    /// Waits for events, or until something is to be delivered.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let mut timeout = (!self.crowded.is_empty()).then_some(ACCEPT_AGAIN);
        if let Some(Reverse((at, ..))) = self.appointments.peek() {
            let left = at.saturating_sub(self.now());
            if left == 0 {
                timeout = Some(Duration::ZERO);
            } else if self.alarm != *at {
                self.alarm = *at;
                let it_value = Timespec {
                    tv_sec: (left / 1_000_000_000) as i64,
                    tv_nsec: (left % 1_000_000_000) as i64,
                };
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let setting = Itimerspec { it_interval, it_value };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
            }
        }
        if !self.unread.is_empty() {
            timeout = Some(Duration::ZERO);
        }
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    fn keep_appointments(&mut self) {
        while let Some(Reverse((at, index, side))) = self.appointments.peek().copied()
            && at <= self.now()
        {
            self.appointments.pop();
            if let Some(Some(connection)) = self.connections.get_mut(index) {
                connection.unschedule(side);
                // There may be room again for what its sender has.
                self.serve(index, side);
            }
        }
    }

    /// Moves one connection on: reads what `side` has sent, and delivers what has arrived in both directions.
    fn serve(&mut self, index: usize, side: usize) {
        let (started, now) = (self.started, self.now());
        let Some(Some(connection)) = self.connections.get_mut(index) else { return };
        let clock = || started.elapsed().as_nanos() as u64;
        for side in [side, 1 - side] {
            connection.deliver(side, now);
            if connection.read(side, clock) {
                self.unread.push((index, side));
            }
            connection.deliver(side, clock());
        }
        if connection.is_over() {
            self.connections[index] = None;
            self.freed.push(index);
            self.open -= 1;
            return;
        }
        for side in [DIALER, REPLICA] {
            if let Some(at) = connection.schedule(side) {
                self.appointments.push(Reverse((at, index, side)));
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        loop {
            match self.listeners[listener].listener.accept() {
                // Whoever is too many finds its connection closed.
                Ok(_) if self.open >= CONNECTIONS_MAX => {}
                Ok((stream, _)) => {
                    // If it fails the connection is closed: whoever dialed tries again.
                    let _ = self.open(listener, stream);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.crowded.push(listener);
                    return;
                }
            }
        }
    }

    fn open(&mut self, listener: usize, dialer: TcpStream) -> io::Result<()> {
        let RelayListener { to, lines, .. } = &self.listeners[listener];
        let replica = TcpStream::connect(*to)?;
        dialer.set_nodelay(true)?;
        replica.set_nodelay(true)?;
        let flows = lines.map(|line| Flow::new(Traffic::new(line, self.prng.fork())));
        let mut connection = Connection::new(dialer, replica, flows);
        let index = self.free.pop().unwrap_or(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        for (side, stream) in connection.streams().into_iter().enumerate() {
            self.poll.registry().register(stream, token(self.listeners.len(), index, side), interest)?;
        }
        if index == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[index] = Some(connection);
        self.open += 1;
        Ok(())
    }
}

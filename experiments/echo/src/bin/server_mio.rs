//! The echo on a thin mio loop: poll, read every ready connection, then one write per connection.
//!
//! Options: `--spin-us N` polls without blocking for N microseconds before it blocks; `--flush
//! loop|event|message` says how much one write gathers; `--drain 1` reads until the socket is empty instead
//! of stopping at a short read; `--events N` bounds the events of one poll; `--pause-us N` sleeps before
//! each poll so that more requests gather.

use echo::{Buffers, Core, Counters, option, print_counters};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Result, Write};
use std::time::{Duration, Instant};

const LISTENER: Token = Token(usize::MAX);

#[derive(Clone, Copy, PartialEq)]
enum Flush {
    Loop,
    Event,
    Message,
}

struct Connection {
    stream: TcpStream,
    buffers: Buffers,
    is_dirty: bool,
}

struct Server {
    core: Core,
    counters: Counters,
    flush: Flush,
    drain: bool,
    connections: Vec<Option<Connection>>,
    open: usize,
}

/// Writes what is pending. `Ok(false)`: the socket is full, and an edge will tell when it is not.
fn write(connection: &mut Connection, counters: &mut Counters) -> Result<bool> {
    while !connection.buffers.output.is_empty() {
        counters.writes += 1;
        match connection.stream.write(&connection.buffers.output) {
            Ok(count) => connection.buffers.sent(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

impl Server {
    /// Reads and handles what has come. `Ok(false)`: the peer has closed.
    fn read(&mut self, index: usize, until_empty: bool) -> Result<bool> {
        let Some(connection) = self.connections[index].as_mut() else { return Ok(true) };
        loop {
            // A peer that does not read its replies is not read from either, until its socket drains.
            if connection.buffers.is_clogged() && !write(connection, &mut self.counters)? {
                return Ok(true);
            }
            self.counters.reads += 1;
            let space = connection.buffers.space();
            let room = space.len();
            let count = match connection.stream.read(space) {
                Ok(0) => return Ok(false),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (core, counters, flush) = (&mut self.core, &mut self.counters, self.flush);
            let stream = &mut connection.stream;
            let parsed = connection.buffers.received(count, |body, output| {
                core.handle(body, output);
                if flush == Flush::Message {
                    counters.writes += 1;
                    if let Ok(count) = stream.write(output) {
                        output.drain(..count);
                    }
                }
            });
            if parsed.is_err() {
                return Ok(false);
            }
            // epoll(7): on a stream socket a short read says that the buffer was emptied.
            if count < room && !until_empty && !self.drain {
                return Ok(true);
            }
        }
    }

    /// Drops a connection whose peer has closed or failed.
    fn close(&mut self, index: usize) {
        if self.connections[index].take().is_some() {
            self.open -= 1;
        }
    }

    fn accept(&mut self, listener: &TcpListener, poll: &Poll) -> Result<()> {
        loop {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nodelay(true)?;
                    let token = Token(self.connections.len());
                    poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
                    let connection = Connection { stream, buffers: Buffers::default(), is_dirty: false };
                    self.connections.push(Some(connection));
                    self.open += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Polls without blocking for as long as `spin` says, then blocks.
fn wait(poll: &mut Poll, events: &mut Events, spin: Duration) -> Result<()> {
    if !spin.is_zero() {
        let start = Instant::now();
        while start.elapsed() < spin {
            poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
        }
    }
    match poll.poll(events, None) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}

fn main() -> Result<()> {
    let flush = match option("--flush", String::from("loop")).as_str() {
        "loop" => Flush::Loop,
        "event" => Flush::Event,
        "message" => Flush::Message,
        other => panic!("--flush {other} is none of loop, event, message"),
    };
    let spin = Duration::from_micros(option("--spin-us", 0));
    let pause = Duration::from_micros(option("--pause-us", 0));
    let mut events = Events::with_capacity(option("--events", 256));
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?.port());
    let mut server = Server {
        core: Core::default(),
        counters: Counters::default(),
        flush,
        drain: option("--drain", 0) == 1,
        connections: Vec::new(),
        open: 0,
    };
    let mut dirty: Vec<usize> = Vec::with_capacity(256);
    loop {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        wait(&mut poll, &mut events, spin)?;
        for event in &events {
            if event.token() == LISTENER {
                server.accept(&listener, &poll)?;
                continue;
            }
            let index = event.token().0;
            if !server.read(index, event.is_read_closed()).unwrap_or(false) {
                server.close(index);
            }
            let Some(connection) = server.connections[index].as_mut() else { continue };
            if flush == Flush::Event {
                let _ = write(connection, &mut server.counters);
            } else if !connection.is_dirty && !connection.buffers.output.is_empty() {
                connection.is_dirty = true;
                dirty.push(index);
            }
        }
        for index in dirty.drain(..) {
            let Some(connection) = server.connections[index].as_mut() else { continue };
            connection.is_dirty = false;
            if write(connection, &mut server.counters).is_err() {
                server.close(index);
            }
        }
        if server.open == 0 && !server.connections.is_empty() {
            print_counters(&server.core, &server.counters);
            return Ok(());
        }
    }
}

//! Clients of the Redis protocol. Those that share a connection make its pipeline: replies come in the order of commands.

use crate::clients::{Request, Values, key_name};
use crate::error::Error;
use crate::fleet::{Ended, Fleet};
use core::time::Duration;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;
use syros_types::Prng;

/// Events of one poll. More only come with the next one.
const EVENTS_MAX: usize = 256;

/// What is read at once.
const READ_BYTES: usize = 16 * 1024;

/// A reply of the kinds that are asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// A line, such as `OK`.
    Line(&'a [u8]),
    /// What went wrong.
    Error(&'a [u8]),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(&'a [u8]),
    /// Nothing.
    Nil,
}

/// The reply at the beginning, and how many bytes it takes; `None` if there is more to come.
fn parse(bytes: &[u8]) -> io::Result<Option<(Reply<'_>, usize)>> {
    let malformed =
        || io::Error::new(ErrorKind::InvalidData, "what was received is no reply of the Redis protocol");
    let Some(end) = bytes.iter().position(|byte| *byte == b'\r') else { return Ok(None) };
    let Some(after) = bytes.get(end + 1) else { return Ok(None) };
    if end == 0 || *after != b'\n' {
        return Err(malformed());
    }
    let (line, next) = (&bytes[1..end], end + 2);
    let number = || core::str::from_utf8(line).ok()?.parse::<i64>().ok();
    let reply = match bytes[0] {
        b'+' => Reply::Line(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(number().ok_or_else(malformed)?),
        b'$' => match number().ok_or_else(malformed)? {
            -1 => Reply::Nil,
            length => {
                let length = usize::try_from(length).map_err(|_| malformed())?;
                let Some(rest) = bytes.get(next..next + length + 2) else { return Ok(None) };
                let (value, line_end) = rest.split_at(length);
                if line_end != b"\r\n" {
                    return Err(malformed());
                }
                return Ok(Some((Reply::Bulk(value), next + length + 2)));
            }
        },
        _ => return Err(malformed()),
    };
    Ok(Some((reply, next)))
}

/// Appends a command.
fn put_command(words: &[&[u8]], out: &mut Vec<u8>) {
    write!(out, "*{}\r\n", words.len()).expect("a vector takes everything");
    for word in words {
        write!(out, "${}\r\n", word.len()).expect("a vector takes everything");
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Asks once, on a connection of its own; what comes, unless it is an error.
pub(super) fn ask_once(server: SocketAddr, words: &[&[u8]], patience: Duration) -> io::Result<Vec<u8>> {
    let mut stream = std::net::TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; READ_BYTES]);
    put_command(words, &mut bytes);
    stream.write_all(&bytes)?;
    bytes.clear();
    loop {
        match parse(&bytes)? {
            Some((Reply::Line(text) | Reply::Bulk(text), _)) => return Ok(text.to_vec()),
            Some((Reply::Integer(number), _)) => return Ok(number.to_string().into_bytes()),
            Some((Reply::Nil, _)) => return Ok(Vec::new()),
            Some((Reply::Error(text), _)) => return Err(io::Error::other(String::from_utf8_lossy(text))),
            None => match stream.read(&mut buffer)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&buffer[..count]),
            },
        }
    }
}

/// What a client has asked for and has not been answered.
struct Asked {
    client: usize,
    request: Request,
    /// Whether all replies to it so far were good.
    is_good: bool,
    /// Whether the reply to WAIT is the next one.
    waits: bool,
}

/// A connection.
struct Connection {
    stream: TcpStream,
    /// What is to be sent, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// What has come and is not understood yet.
    input: Vec<u8>,
    /// What has not been answered, in the order of commands.
    asked: VecDeque<Asked>,
    /// It has something to send.
    is_active: bool,
}

/// Clients of the Redis protocol.
pub(super) struct RespFleet {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    /// Those that have something to send.
    active: Vec<usize>,
    values: Values,
    /// A write ends when so many replicas have it; `None`: when it is answered.
    copies: Option<usize>,
    /// The command that waits for them.
    wait: Vec<u8>,
    last_refusal: Option<String>,
}

impl RespFleet {
    /// So many clients, which share so many connections to these servers in turn. With `copies`, a write is followed by WAIT
    /// at once, and ends when so many replicas have told the server that they have it.
    pub(super) fn new(
        servers: &[SocketAddr],
        (clients, connections): (usize, usize),
        value_bytes: usize,
        copies: Option<usize>,
        prng: &mut Prng,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut all = Vec::new();
        for (number, server) in (0..connections.min(clients)).zip(servers.iter().cycle()) {
            let stream = std::net::TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(number), interest)?;
            let (out, input, asked) = (Vec::new(), Vec::new(), VecDeque::new());
            all.push(Connection { stream, out, sent: 0, input, asked, is_active: false });
        }
        let mut wait = Vec::new();
        let number = copies.unwrap_or_default().to_string();
        put_command(&[b"WAIT", number.as_bytes(), b"0"], &mut wait);
        let values = Values::new(value_bytes, prng);
        let (events, active) = (Events::with_capacity(EVENTS_MAX), Vec::new());
        Ok(Self { poll, events, connections: all, active, values, copies, wait, last_refusal: None })
    }
}

impl Fleet for RespFleet {
    fn ask(&mut self, client: usize, request: Request) {
        let number = client % self.connections.len();
        let connection = &mut self.connections[number];
        let out = &mut connection.out;
        let mut waits = false;
        match request {
            Request::Get(key) => put_command(&[b"GET", key_name(key).as_bytes()], out),
            Request::Set(key) => {
                put_command(&[b"SET", key_name(key).as_bytes(), self.values.draw()], out);
                if self.copies.is_some() {
                    out.extend_from_slice(&self.wait);
                    waits = true;
                }
            }
            other => unreachable!("peers are asked for reads and overwrites only, not for {other:?}"),
        }
        connection.asked.push_back(Asked { client, request, is_good: true, waits });
        if !core::mem::replace(&mut connection.is_active, true) {
            self.active.push(number);
        }
    }

    fn turn(&mut self, until: Instant, ended: &mut Vec<Ended>) -> Result<(), Error> {
        for number in self.active.drain(..) {
            self.connections[number].is_active = false;
            self.connections[number].write().map_err(Error::System)?;
        }
        let patience = until.saturating_duration_since(Instant::now());
        match self.poll.poll(&mut self.events, Some(patience)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(Error::System(error)),
            _ => {}
        }
        for event in &self.events {
            let connection = &mut self.connections[event.token().0];
            if event.is_writable() {
                connection.write().map_err(Error::System)?;
            }
            if event.is_readable() {
                connection.read().map_err(Error::System)?;
                let copies = self.copies.unwrap_or_default();
                connection.answer(copies, &mut self.last_refusal, ended).map_err(Error::System)?;
            }
        }
        Ok(())
    }

    fn last_refusal(&self) -> Option<String> {
        self.last_refusal.clone()
    }
}

impl Connection {
    /// Sends what it can.
    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads what there is.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
                }
                Ok(count) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    // Less than asked for is all that there is; what comes later is another event.
                    if count < READ_BYTES {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds those whose requests have been answered, and whether they have done what they were to do.
    fn answer(
        &mut self,
        copies: usize,
        last_refusal: &mut Option<String>,
        ended: &mut Vec<Ended>,
    ) -> io::Result<()> {
        let mut taken = 0;
        while let Some(asked) = self.asked.front_mut() {
            let Some((reply, length)) = parse(&self.input[taken..])? else { break };
            taken += length;
            if let Reply::Error(text) = reply {
                *last_refusal = Some(String::from_utf8_lossy(text).into_owned());
            }
            asked.is_good &= match (asked.request, reply) {
                (Request::Set(_), Reply::Line(text)) => text == b"OK",
                (Request::Set(_), Reply::Integer(count)) => {
                    asked.waits = false;
                    usize::try_from(count).is_ok_and(|count| count >= copies)
                }
                (Request::Get(_), Reply::Bulk(_)) => true,
                _ => false,
            };
            let is_line = matches!(reply, Reply::Line(_) | Reply::Error(_));
            // An error may be the reply to either of two commands: WAIT refuses nothing that this asks for.
            if !(asked.waits && is_line) {
                ended.push(Ended { client: asked.client, is_good: asked.is_good });
                self.asked.pop_front();
            }
        }
        self.input.drain(..taken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_when_they_are_whole() {
        for (bytes, reply) in [
            (&b"+OK\r\n"[..], Reply::Line(b"OK")),
            (b"-ERR no\r\n", Reply::Error(b"ERR no")),
            (b":-12\r\n", Reply::Integer(-12)),
            (b"$5\r\na\r\nbc\r\n", Reply::Bulk(b"a\r\nbc")),
            (b"$0\r\n\r\n", Reply::Bulk(b"")),
            (b"$-1\r\n", Reply::Nil),
        ] {
            assert_eq!(parse(bytes).unwrap(), Some((reply, bytes.len())));
            let more = [bytes, b"+OK\r\n"].concat();
            assert_eq!(parse(&more).unwrap(), Some((reply, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(parse(&bytes[..cut]).unwrap(), None, "{cut} of {bytes:?}");
            }
        }
        for wrong in [&b"\r\n"[..], b"?\r\n", b":x\r\n", b"$-2\r\n", b"+O\rK\r\n", b"$1\r\nabc"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn commands_are_arrays_of_their_words() {
        let mut out = Vec::new();
        put_command(&[b"SET", b"k", b""], &mut out);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }
}

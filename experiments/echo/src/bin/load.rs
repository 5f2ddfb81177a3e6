//! The load: `--connections C` connections that keep `--depth D` requests each in flight, for a bounded time
//! (`--seconds`, after a warm-up), against `--port`. It reads the CPU time of the server, `--server-pid`,
//! from /proc around the measured part and prints one line of `name value` pairs.

use echo::{Buffers, PREFIX_BYTES, REQUEST_BYTES, option};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Result, Write};
use std::time::{Duration, Instant};

const WARM_UP: Duration = Duration::from_millis(300);

/// CPU time of a single-threaded process: nanoseconds on a core, and clock ticks in user mode and in all.
fn cpu_of(pid: u32) -> Result<(f64, f64, f64)> {
    let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    // The name, field 2, may hold spaces; after its closing parenthesis come the state and 10 others.
    let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11);
    let (user, system): (f64, f64) = (number(fields.next()), number(fields.next()));
    Ok((number(schedstat.split_whitespace().next()), user, user + system))
}

/// Sends what is pending as far as the socket takes it.
fn send(stream: &mut TcpStream, buffers: &mut Buffers) -> Result<()> {
    while !buffers.output.is_empty() {
        match stream.write(&buffers.output) {
            Ok(count) => buffers.sent(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let (connections, depth) = (option("--connections", 50usize), option("--depth", 1usize));
    let seconds: f64 = option("--seconds", 2.0);
    let (port, pid) = (option("--port", 0u16), option("--server-pid", 0u32));
    let mut request = [7; REQUEST_BYTES];
    request[..PREFIX_BYTES].copy_from_slice(&((REQUEST_BYTES - PREFIX_BYTES) as u32).to_le_bytes());
    let mut poll = Poll::new()?;
    let mut peers = Vec::with_capacity(connections);
    for index in 0..connections {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        let mut buffers = Buffers::default();
        for _ in 0..depth {
            buffers.output.extend_from_slice(&request);
        }
        send(&mut stream, &mut buffers)?;
        peers.push((stream, buffers));
    }
    let mut events = Events::with_capacity(256);
    let (mut replies, mut begun, start) = (0u64, None, Instant::now());
    loop {
        poll.poll(&mut events, Some(Duration::from_millis(100)))?;
        for event in &events {
            let (stream, buffers) = &mut peers[event.token().0];
            let count = match stream.read(buffers.space()) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            let parsed = buffers.received(count, |_, output| {
                replies += 1;
                output.extend_from_slice(&request);
            });
            parsed.map_err(|_| ErrorKind::InvalidData)?;
        }
        for event in &events {
            let (stream, buffers) = &mut peers[event.token().0];
            send(stream, buffers)?;
        }
        match begun {
            None if start.elapsed() >= WARM_UP => begun = Some((Instant::now(), replies, cpu_of(pid)?)),
            Some((begin, replies_before, before)) if begin.elapsed().as_secs_f64() >= seconds => {
                let after = cpu_of(pid)?;
                let count = (replies - replies_before) as f64;
                println!(
                    "us {:.4} rate {:.0} user {:.3} busy {:.3}",
                    (after.0 - before.0) / 1000.0 / count,
                    count / begin.elapsed().as_secs_f64(),
                    (after.1 - before.1) / (after.2 - before.2),
                    (after.0 - before.0) / 1e9 / begin.elapsed().as_secs_f64(),
                );
                return Ok(());
            }
            _ => {}
        }
    }
}

//! What is there where a command expected something else: a process of Syros has up to five ports, and each of them is easily taken
//! for another one.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use syros_client::Endpoint;

/// A port for Redis clients answers within this time, if it is asked whether it is one.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// How a node answers a Redis client at its port for nodes.
const AT_PORT_FOR_NODES: &str = "ERR this port of Syros is for its nodes";

/// True if this error to whatever a Redis client has said means that it has to be at another port.
pub(crate) fn is_of_other_port(error: &str) -> bool {
    error.starts_with(AT_PORT_FOR_NODES)
}

/// What stands in the way of a Redis client, as the first bytes show that have come for an answer; `None` if they may be one. No bytes:
/// the connection was closed.
pub(crate) fn instead_of_redis(first: &[u8]) -> Option<&'static str> {
    match first {
        [] => Some(
            "it closed the connection before it answered. The port may be that for nodes (listen.replicas), where Redis clients want \
             that for Redis clients (listen.redis)",
        ),
        first if is_tls(first) => Some(
            "it speaks TLS, and this end of the connection does not: give --tls, or name the port without TLS (listen.redis)",
        ),
        first if first.starts_with(b"HTTP") => Some(
            "it speaks HTTP: the port is that for metrics (listen.metrics), where Redis clients want that for Redis clients \
             (listen.redis)",
        ),
        _ => None,
    }
}

/// What answers a request of HTTP without speaking HTTP, as its first bytes show.
pub(crate) fn instead_of_http(first: &[u8]) -> &'static str {
    match first {
        [] => {
            "it closed the connection without an answer. The port may be that for nodes (listen.replicas) or that for Redis clients \
             (listen.redis), where syros health asks that for metrics (listen.metrics, of a gateway --metrics)"
        }
        first if is_tls(first) => {
            "it speaks TLS. The port may be that for Redis clients with TLS (listen.redis-tls), where syros health asks that for \
             metrics (listen.metrics, of a gateway --metrics)"
        }
        [b'-' | b'+' | b'$' | b'*' | b':', ..] => {
            "it speaks the Redis protocol. The port may be that for Redis clients (listen.redis), where syros health asks that for \
             metrics (listen.metrics, of a gateway --metrics)"
        }
        _ => "what answers there is no Syros process",
    }
}

/// A record of TLS begins so (RFC 8446, 5.1): its type, and version 3.
fn is_tls(first: &[u8]) -> bool {
    matches!(first, [0x14..=0x17, 3, ..])
}

/// True if a Redis client would be answered where a replica was asked for and said nothing: a server for Redis clients waits for the rest
/// of what it takes for a command.
pub(crate) fn answers_redis_clients(endpoint: &Endpoint) -> bool {
    let is_redis = endpoint.ask(|address: SocketAddr| {
        let mut stream = std::net::TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
        stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
        stream.write_all(b"PING\r\n")?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(matches!(first, [b'+' | b'-']))
    });
    is_redis.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_is_named() {
        for (first, words) in [
            (&b""[..], "that for nodes (listen.replicas)"),
            (b"\x15\x03\x03\x00\x02\x02\x32", "it speaks TLS"),
            (b"HTTP/1.1 400 Bad Request\r\n", "that for metrics"),
        ] {
            assert!(instead_of_redis(first).unwrap().contains(words), "{first:?}");
        }
        for first in [&b"+PONG\r\n"[..], b"-NOAUTH", b"$5\r\n", b"-LOADING"] {
            assert_eq!(instead_of_redis(first), None, "{first:?}");
        }
        for (first, words) in [
            (&b""[..], "that for nodes"),
            (b"\x15\x03\x03", "it speaks TLS"),
            (b"-ERR unknown command 'GET'\r\n", "it speaks the Redis protocol"),
            (b"220 smtp", "no Syros process"),
        ] {
            assert!(instead_of_http(first).contains(words), "{first:?}");
        }
    }
}

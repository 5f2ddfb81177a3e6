//! A real Redis 7, which is asked what a connection is asked.
#![allow(dead_code, reason = "every test file uses a part of this")]

mod process;

use crate::common::{TestStore, connection, request, serve};
use process::RedisProcess;
use std::io::{Read, Write};
use std::time::Duration;

/// A Redis server, which ends with the test.
pub(crate) struct Redis(RedisProcess);

impl Redis {
    /// `None`, with a notice, where Redis is not installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        RedisProcess::start(&format!("resp-{name}"), &[]).map(Self)
    }

    /// What Redis answers, until it has closed the connection or answered a mark at the end; whether it
    /// closed it; and the connection's id.
    pub(crate) fn ask(&self, input: &[u8]) -> (Vec<u8>, bool, u64) {
        let mut stream = self.0.connect().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"CLIENT ID\r\n").unwrap();
        let mut buffer = [0; 65536];
        let length = stream.read(&mut buffer).unwrap();
        let id = str::from_utf8(&buffer[1..length - 2]).unwrap().parse().unwrap();
        // Either may fail if Redis has closed the connection already.
        let _ = stream.write_all(input);
        let _ = stream.write_all(&request(&["ECHO", MARK]));
        let mut reply = Vec::new();
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return (reply, true, id),
                Ok(length) => reply.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return (reply, true, id);
                }
                Err(error) => panic!("no answer to {:?}: {error}", input.escape_ascii().to_string()),
            }
            if let Some(reply) = reply.strip_suffix(format!("${}\r\n{MARK}\r\n", MARK.len()).as_bytes()) {
                return (reply.to_vec(), false, id);
            }
        }
    }

    /// Asserts that a connection answers as Redis does.
    pub(crate) fn compare(&self, input: &[u8]) {
        let (expected, closed, id) = self.ask(input);
        let (reply, finished) = serve(&mut connection(id), &mut TestStore::default(), input);
        let shown = input[..input.len().min(200)].escape_ascii();
        assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{shown}");
        assert_eq!(finished, closed, "{shown}");
        self.ask(b"FLUSHALL\r\n");
    }
}

const MARK: &str = "--the end of the test--";

/// A reply, parsed: bulk and simple strings look alike, and so do the aggregates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Value>),
}

/// Takes a reply off the front of `input`.
pub(crate) fn value(input: &mut &str) -> Value {
    let (line, rest) = input.split_once("\r\n").unwrap();
    *input = rest;
    match line.split_at(1) {
        ("$", length) if length != "-1" => {
            let (text, rest) = rest.split_at(length.parse().unwrap());
            *input = &rest[2..];
            Value::Text(text.into())
        }
        ("*" | "~", count) => Value::List((0..count.parse().unwrap()).map(|_| value(input)).collect()),
        ("%", count) => Value::List((0..2 * count.parse::<usize>().unwrap()).map(|_| value(input)).collect()),
        _ => Value::Text(line.into()),
    }
}

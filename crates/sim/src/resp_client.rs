//! The client's side of the Redis protocol: commands to bytes, bytes to replies.

use crate::workload::ClientCommand;
use syros_commands::Reply;
use syros_protocol::client::Outcome;
use syros_protocol::message::{Body, Refusal};

/// A reply as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Received>),
    /// What a client of RESP3 gets without having asked.
    Push(Vec<Received>),
}

/// Appends a command.
pub(crate) fn command_of(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The command, or the nearest one that Redis has: it knows no lifetime shorter than `PX 1`.
pub(crate) fn as_redis_has_it(step: ClientCommand) -> ClientCommand {
    match step {
        ClientCommand::SetFor(key, value, millis) => ClientCommand::SetFor(key, value, millis.max(2)),
        other => other,
    }
}

/// Takes a whole reply; `None` if its end has not come.
///
/// # Errors
/// What came is no reply.
pub(crate) fn parse(input: &mut &[u8]) -> Result<Option<Received>, String> {
    let mut rest = *input;
    let reply = parse_one(&mut rest)?;
    if reply.is_some() {
        *input = rest;
    }
    Ok(reply)
}

fn parse_one(input: &mut &[u8]) -> Result<Option<Received>, String> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, rest) = (&input[..end], &input[end + 2..]);
    *input = rest;
    let (kind, text) = line.split_first().ok_or("a reply is empty")?;
    let number = || {
        let number = core::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        number.ok_or_else(|| format!("a reply says {}", line.escape_ascii()))
    };
    Ok(Some(match kind {
        b'+' => Received::Simple(text.to_vec()),
        b'-' => Received::Error(text.to_vec()),
        b':' => Received::Integer(number()?),
        b'$' | b'*' if number()? < 0 => Received::Nil,
        b'$' => {
            let length = number()? as usize;
            if input.len() < length + 2 {
                return Ok(None);
            }
            let bytes = input[..length].to_vec();
            *input = &input[length + 2..];
            Received::Bulk(bytes)
        }
        b'_' => Received::Nil,
        // A map is an array of keys and values.
        b'*' | b'>' | b'%' => {
            let mut replies = Vec::new();
            for _ in 0..number()? * if *kind == b'%' { 2 } else { 1 } {
                let Some(reply) = parse_one(input)? else { return Ok(None) };
                replies.push(reply);
            }
            if *kind == b'>' { Received::Push(replies) } else { Received::Array(replies) }
        }
        _ => return Err(format!("a reply begins with {}", line.escape_ascii())),
    }))
}

/// How an operation ended, by the reply to its command.
///
/// # Errors
/// No command gets such an error.
pub(crate) fn is_answer_to(step: &ClientCommand, reply: Received) -> Result<Outcome, String> {
    let Received::Error(text) = &reply else {
        let mut body = Vec::new();
        reply_of(reply).encode(&mut body);
        return Ok(Outcome::Reply(Body::from(body)));
    };
    let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    Ok(match code {
        b"UNKNOWN" => Outcome::Unknown,
        b"TIMEOUT" | b"OVERLOADED" => Outcome::TimedOut,
        b"NOQUORUM" => Outcome::NoQuorum,
        b"TRYAGAIN" => Outcome::Refused(Refusal::Overloaded),
        b"OOM" => Outcome::Refused(Refusal::OutOfMemory),
        b"UNBLOCKED" if step.waits() => {
            let mut body = Vec::new();
            reply_of(reply).encode(&mut body);
            Outcome::Reply(Body::from(body))
        }
        b"ERR" | b"WRONGTYPE" if step.may_fail_with(code) => {
            let mut body = Vec::new();
            reply_of(reply).encode(&mut body);
            Outcome::Reply(Body::from(body))
        }
        _ => return Err(format!("{step:?} is answered {}", text.escape_ascii())),
    })
}

/// A reply as the bytes of a body have it.
pub(crate) fn reply_of(reply: Received) -> Reply {
    match reply {
        Received::Simple(text) if text == b"OK" => Reply::Ok,
        Received::Simple(text) => Reply::Simple(text),
        Received::Error(text) => Reply::Error(text),
        Received::Integer(number) => Reply::Integer(number),
        Received::Bulk(bytes) => Reply::Bulk(bytes),
        Received::Nil => Reply::Nil,
        Received::Array(replies) | Received::Push(replies) => {
            Reply::Array(replies.into_iter().map(reply_of).collect())
        }
    }
}

//! Redis commands on a [`Client`], with typed arguments and results.

use crate::error::Error;
use crate::handle::Client;
use crate::pending::{Interpret, Pending};
use core::time::Duration;
use syros_commands::{CommandError, Parsed, Reply, ReplyRef, parse};
use syros_protocol::message::Body;

/// The command's only reply, unless it is an error. An update that only acknowledges has no bytes.
fn reply(body: &Body) -> Result<ReplyRef<'_>, Error> {
    let mut rest = &body[..];
    if rest.is_empty() {
        return Ok(ReplyRef::Ok);
    }
    match ReplyRef::decode(&mut rest) {
        Ok(ReplyRef::Error(text)) => Err(Error::Execution(String::from_utf8_lossy(text).into_owned())),
        Ok(reply) if rest.is_empty() => Ok(reply),
        _ => Err(Error::UnexpectedReply),
    }
}

fn any(body: &Body) -> Result<Reply, Error> {
    reply(body).map(ReplyRef::to_owned)
}

fn acknowledgement(body: &Body) -> Result<(), Error> {
    match reply(body)? {
        ReplyRef::Ok => Ok(()),
        _ => Err(Error::UnexpectedReply),
    }
}

fn integer(body: &Body) -> Result<i64, Error> {
    match reply(body)? {
        ReplyRef::Integer(value) => Ok(value),
        _ => Err(Error::UnexpectedReply),
    }
}

fn count(body: &Body) -> Result<u64, Error> {
    u64::try_from(integer(body)?).map_err(|_| Error::UnexpectedReply)
}

fn truth(body: &Body) -> Result<bool, Error> {
    Ok(integer(body)? != 0)
}

fn value_of(reply: ReplyRef<'_>) -> Result<Option<Vec<u8>>, Error> {
    match reply {
        ReplyRef::Bulk(bytes) => Ok(Some(bytes.to_vec())),
        ReplyRef::Nil => Ok(None),
        _ => Err(Error::UnexpectedReply),
    }
}

fn value(body: &Body) -> Result<Option<Vec<u8>>, Error> {
    value_of(reply(body)?)
}

fn values(body: &Body) -> Result<Vec<Option<Vec<u8>>>, Error> {
    match reply(body)? {
        ReplyRef::Array(values) => values.map(value_of).collect(),
        _ => Err(Error::UnexpectedReply),
    }
}

/// Milliseconds left; negative numbers stand for no expiry and no key.
fn time_left(body: &Body) -> Result<Option<Duration>, Error> {
    Ok(u64::try_from(integer(body)?).ok().map(Duration::from_millis))
}

/// Milliseconds, rounded up: a lifetime is never cut short, and never zero unless it was.
fn milliseconds(lifetime: Duration) -> String {
    lifetime.as_nanos().div_ceil(1_000_000).to_string()
}

impl Client {
    /// Executes any command on data, given in words as in Redis, and gives its reply. With `BLIND` for
    /// its first word an update only acknowledges, in one round trip.
    pub fn command(&self, words: &[&[u8]]) -> Pending<Reply> {
        self.typed(words, any)
    }

    /// GET: the value, if there is one.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Pending<Option<Vec<u8>>> {
        self.typed(&[b"GET", key.as_ref()], value)
    }

    /// MGET: the values that there are, in the order of the keys, all of one moment.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Pending<Vec<Option<Vec<u8>>>> {
        self.typed(&with_keys(b"MGET", keys), values)
    }

    /// EXISTS: true if there is a value.
    pub fn exists(&self, key: impl AsRef<[u8]>) -> Pending<bool> {
        self.typed(&[b"EXISTS", key.as_ref()], truth)
    }

    /// STRLEN: length of the value in bytes, 0 if there is none.
    pub fn length(&self, key: impl AsRef<[u8]>) -> Pending<u64> {
        self.typed(&[b"STRLEN", key.as_ref()], count)
    }

    /// PTTL: time until the key expires; `None` if it does not, or if there is none.
    pub fn time_to_live(&self, key: impl AsRef<[u8]>) -> Pending<Option<Duration>> {
        self.typed(&[b"PTTL", key.as_ref()], time_left)
    }

    /// SET. One round trip.
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Pending<()> {
        self.typed(&[b"SET", key.as_ref(), value.as_ref()], acknowledgement)
    }

    /// SET of a value that is gone after `lifetime`, in milliseconds. One round trip.
    pub fn set_for(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, lifetime: Duration) -> Pending<()> {
        let lifetime = milliseconds(lifetime);
        self.typed(&[b"SET", key.as_ref(), value.as_ref(), b"PX", lifetime.as_bytes()], acknowledgement)
    }

    /// SETNX: sets the value if there is none. True if it was set.
    pub fn set_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Pending<bool> {
        self.typed(&[b"SETNX", key.as_ref(), value.as_ref()], truth)
    }

    /// GETSET: sets the value and gives the old one.
    pub fn replace(&self, key: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Pending<Option<Vec<u8>>> {
        self.typed(&[b"GETSET", key.as_ref(), new.as_ref()], value)
    }

    /// MSET: sets several values at one moment.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Pending<()> {
        let pairs = pairs.iter().flat_map(|(key, value)| [key.as_ref(), value.as_ref()]);
        let words: Vec<&[u8]> = [&b"MSET"[..]].into_iter().chain(pairs).collect();
        self.typed(&words, acknowledgement)
    }

    /// APPEND: adds to the end of the value. Gives its new length in bytes.
    pub fn append(&self, key: impl AsRef<[u8]>, suffix: impl AsRef<[u8]>) -> Pending<u64> {
        self.typed(&[b"APPEND", key.as_ref(), suffix.as_ref()], count)
    }

    /// INCRBY: adds to the number, and gives the sum. No value counts as 0.
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Pending<i64> {
        self.typed(&[b"INCRBY", key.as_ref(), by.to_string().as_bytes()], integer)
    }

    /// INCRBY without its result, and without its error if the value is no number. Like SET, it takes one
    /// round trip in clusters of supermajority mode.
    pub fn increment_blindly(&self, key: impl AsRef<[u8]>, by: i64) -> Pending<()> {
        self.typed(&[b"BLIND", b"INCRBY", key.as_ref(), by.to_string().as_bytes()], acknowledgement)
    }

    /// DEL of one key: true if there was a value.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Pending<bool> {
        self.typed(&[b"DEL", key.as_ref()], truth)
    }

    /// DEL of several keys at one moment. Gives how many of them there were.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Pending<u64> {
        self.typed(&with_keys(b"DEL", keys), count)
    }

    /// DEL of one key without its result. One round trip.
    pub fn delete_blindly(&self, key: impl AsRef<[u8]>) -> Pending<()> {
        self.typed(&[b"BLIND", b"DEL", key.as_ref()], acknowledgement)
    }

    /// PEXPIRE: the key will be gone after `lifetime`, in milliseconds. False if there is no such key.
    pub fn expire(&self, key: impl AsRef<[u8]>, lifetime: Duration) -> Pending<bool> {
        self.typed(&[b"PEXPIRE", key.as_ref(), milliseconds(lifetime).as_bytes()], truth)
    }

    /// PERSIST: the key will not expire. False if it would not have anyway.
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Pending<bool> {
        self.typed(&[b"PERSIST", key.as_ref()], truth)
    }

    fn typed<T>(&self, words: &[&[u8]], interpret: Interpret<T>) -> Pending<T> {
        let operation = match parse(words) {
            Ok(Parsed::Data(operation)) => operation,
            // A command of the connection, such as PING or AUTH: there is no connection here.
            Ok(Parsed::Local(_)) => {
                let name = words.first().copied().unwrap_or_default().to_vec();
                let error = CommandError::Unknown { name, arguments: Vec::new() };
                return Pending::not_sent(Error::Command(error), interpret);
            }
            Err(error) => return Pending::not_sent(Error::Command(error), interpret),
        };
        let mut body = Vec::new();
        operation.encode(&mut body);
        self.start(body.into(), operation.class(), operation.footprint(), interpret)
    }
}

fn with_keys<'a, K: AsRef<[u8]>>(name: &'a [u8], keys: &'a [K]) -> Vec<&'a [u8]> {
    [name].into_iter().chain(keys.iter().map(AsRef::as_ref)).collect()
}

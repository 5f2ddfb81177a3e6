//! Replies as the client reads them: RESP2 and RESP3. Everything is appended to one buffer; nothing is
//! allocated besides.

use syros_commands::ReplyRef;
pub(crate) use syros_commands::write_integer as write_digits;

/// Version of the protocol that a client has chosen with HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every client understands.
    #[default]
    Resp2,
    /// With types for maps, sets, nil, and more.
    Resp3,
}

impl Protocol {
    /// Its number, as HELLO takes it.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

const LINE_END: &[u8] = b"\r\n";

fn write_header(out: &mut Vec<u8>, mark: u8, number: i64) {
    out.push(mark);
    write_digits(out, number);
    out.extend_from_slice(LINE_END);
}

/// Appends a reply of the state machine.
pub fn write_reply(out: &mut Vec<u8>, protocol: Protocol, reply: ReplyRef<'_>) {
    match reply {
        ReplyRef::Ok => write_simple(out, b"OK"),
        ReplyRef::Bulk(bytes) => write_bulk(out, bytes),
        ReplyRef::Integer(value) => write_integer(out, value),
        ReplyRef::Double(value) => {
            write_number(out, protocol, |text| syros_commands::write_double(text, value.value()));
        }
        ReplyRef::Decimal(value) => {
            write_number(out, protocol, |text| syros_commands::write_decimal(text, value.value()));
        }
        ReplyRef::Boolean(flag) => write_boolean(out, protocol, flag),
        ReplyRef::BigNumber(digits) => write_big_number(out, protocol, digits),
        ReplyRef::Verbatim(kind, text) => write_verbatim_of(out, protocol, kind, text),
        ReplyRef::Nil => write_nil(out, protocol),
        // What waits has not ended; a client is shown that only if something is wrong.
        ReplyRef::NilArray | ReplyRef::Waits => write_nil_array(out, protocol),
        ReplyRef::Simple(text) => write_simple(out, text),
        ReplyRef::Error(text) => write_error(out, text),
        ReplyRef::Array(replies) => {
            write_array(out, replies.len());
            replies.for_each(|reply| write_reply(out, protocol, reply));
        }
        ReplyRef::Set(members) => {
            write_set(out, protocol, members.len());
            members.for_each(|member| write_reply(out, protocol, member));
        }
        ReplyRef::Map(pairs) => {
            write_map(out, protocol, pairs.len());
            pairs.flat().for_each(|reply| write_reply(out, protocol, reply));
        }
        ReplyRef::Keyed(pairs) => {
            write_keyed(out, protocol, pairs.len());
            for (first, second) in pairs {
                write_keyed_one(out, protocol);
                write_reply(out, protocol, first);
                write_reply(out, protocol, second);
            }
        }
        ReplyRef::Pairs(pairs) => {
            write_pairs(out, protocol, pairs.len());
            for (first, second) in pairs {
                write_pair(out, protocol);
                write_reply(out, protocol, first);
                write_reply(out, protocol, second);
            }
        }
    }
}

/// Appends yes or no: in RESP2 an integer.
fn write_boolean(out: &mut Vec<u8>, protocol: Protocol, flag: bool) {
    match protocol {
        Protocol::Resp2 => write_integer(out, i64::from(flag)),
        Protocol::Resp3 => out.extend_from_slice(if flag { b"#t\r\n" } else { b"#f\r\n" }),
    }
}

/// Appends an integer of any length: in RESP2 a string.
fn write_big_number(out: &mut Vec<u8>, protocol: Protocol, digits: &[u8]) {
    match protocol {
        Protocol::Resp2 => write_bulk(out, digits),
        Protocol::Resp3 => {
            out.push(b'(');
            out.extend_from_slice(digits);
            out.extend_from_slice(LINE_END);
        }
    }
}

/// Appends a string of a kind that three letters name: in RESP2 only the string.
fn write_verbatim_of(out: &mut Vec<u8>, protocol: Protocol, kind: &[u8], text: &[u8]) {
    const KIND_BYTES: usize = 3;
    if protocol == Protocol::Resp2 {
        return write_bulk(out, text);
    }
    let mut kind = kind.to_vec();
    kind.resize(KIND_BYTES, b' ');
    write_header(out, b'=', text.len() as i64 + 1 + KIND_BYTES as i64);
    out.extend_from_slice(&kind);
    out.push(b':');
    out.extend_from_slice(text);
    out.extend_from_slice(LINE_END);
}

/// Appends the absence of a value: `_` in RESP3, a bulk string of length -1 in RESP2.
pub fn write_nil(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// Appends the absence of an array: `_` in RESP3, an array of length -1 in RESP2.
pub fn write_nil_array(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"*-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// Appends a simple string, which must not have line breaks in it.
pub fn write_simple(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'+');
    out.extend_from_slice(text);
    out.extend_from_slice(LINE_END);
}

/// Appends the head of a message that is no reply: in RESP3 it has a type of its own, in RESP2 it is an array.
pub fn write_push(out: &mut Vec<u8>, protocol: Protocol, length: usize) {
    match protocol {
        Protocol::Resp2 => write_array(out, length),
        Protocol::Resp3 => write_header(out, b'>', length as i64),
    }
}

/// Appends the head of so many pairs that tell something of the reply that follows them, in RESP3. RESP2 has no such thing:
/// nothing is written then, and the answer is false.
pub(crate) fn write_attribute(out: &mut Vec<u8>, protocol: Protocol, count: usize) -> bool {
    if protocol == Protocol::Resp3 {
        write_header(out, b'|', count as i64);
    }
    protocol == Protocol::Resp3
}

/// Appends an error: code and message. Line breaks in it become blanks, for it ends at the first.
pub fn write_error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(LINE_END);
}

/// Appends an integer.
pub fn write_integer(out: &mut Vec<u8>, value: i64) {
    write_header(out, b':', value);
}

/// Appends a number of floating point: in RESP2 as a string.
fn write_number(out: &mut Vec<u8>, protocol: Protocol, write: impl FnOnce(&mut Vec<u8>)) {
    let mut text = Vec::new();
    write(&mut text);
    match protocol {
        Protocol::Resp2 => write_bulk(out, &text),
        Protocol::Resp3 => {
            out.push(b',');
            out.extend_from_slice(&text);
            out.extend_from_slice(LINE_END);
        }
    }
}

/// Appends a string of any bytes.
pub fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 16);
    write_header(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(LINE_END);
}

/// Appends a text for people to read: in RESP3 a verbatim string.
pub fn write_verbatim(out: &mut Vec<u8>, protocol: Protocol, text: &[u8]) {
    if protocol == Protocol::Resp2 {
        return write_bulk(out, text);
    }
    write_header(out, b'=', text.len() as i64 + 4);
    out.extend_from_slice(b"txt:");
    out.extend_from_slice(text);
    out.extend_from_slice(LINE_END);
}

/// Appends the head of an array; `count` replies must follow.
pub fn write_array(out: &mut Vec<u8>, count: usize) {
    write_header(out, b'*', count as i64);
}

/// Appends the head of a map; `count` keys, each with its value, must follow. In RESP2 an array.
pub fn write_map(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    match protocol {
        Protocol::Resp2 => write_array(out, count * 2),
        Protocol::Resp3 => write_header(out, b'%', count as i64),
    }
}

/// Appends the head of `count` pairs: in RESP3 an array of arrays of two, in RESP2 one array. Before each pair
/// [`write_pair`] has to be called.
pub(crate) fn write_pairs(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    write_array(out, if protocol == Protocol::Resp2 { count * 2 } else { count });
}

/// Appends the head of one of the pairs whose head is [`write_pairs`].
pub(crate) fn write_pair(out: &mut Vec<u8>, protocol: Protocol) {
    if protocol == Protocol::Resp3 {
        write_array(out, 2);
    }
}

/// Appends the head of names with what belongs to them: a map in RESP3, and an array of arrays of two in RESP2.
pub(crate) fn write_keyed(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    match protocol {
        Protocol::Resp2 => write_array(out, count),
        Protocol::Resp3 => write_map(out, protocol, count),
    }
}

/// Appends the head of one of those whose head is [`write_keyed`].
pub(crate) fn write_keyed_one(out: &mut Vec<u8>, protocol: Protocol) {
    if protocol == Protocol::Resp2 {
        write_array(out, 2);
    }
}

/// Appends the head of a set; `count` members must follow. In RESP2 an array.
pub fn write_set(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    match protocol {
        Protocol::Resp2 => write_array(out, count),
        Protocol::Resp3 => write_header(out, b'~', count as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::{Double, Reply};

    fn written(protocol: Protocol, reply: &Reply) -> String {
        let (mut encoded, mut out) = (Vec::new(), Vec::new());
        reply.encode(&mut encoded);
        write_reply(&mut out, protocol, ReplyRef::decode(&mut &encoded[..]).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_in_both_protocols() {
        let pairs = || vec![(Reply::Ok, Reply::Integer(1)), (Reply::Ok, Reply::Nil)];
        let nested = Reply::Array(vec![Reply::Bulk(b"0".to_vec()), Reply::Array(vec![Reply::Nil])]);
        // As LCS answers.
        let range = Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)]);
        let matches = Reply::Array(vec![Reply::Array(vec![range.clone(), range])]);
        let deepest = Reply::Map(vec![(Reply::Ok, matches)]);
        for (reply, resp2, resp3) in [
            (
                deepest,
                "*2\r\n+OK\r\n*1\r\n*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:1\r\n:2\r\n",
                "%1\r\n+OK\r\n*1\r\n*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:1\r\n:2\r\n",
            ),
            (Reply::Ok, "+OK\r\n", "+OK\r\n"),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::Double(Double::new(-1.5)), "$4\r\n-1.5\r\n", ",-1.5\r\n"),
            (Reply::Double(Double::new(f64::INFINITY)), "$3\r\ninf\r\n", ",inf\r\n"),
            (Reply::Decimal(Double::new(0.1)), "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::Integer(-42), ":-42\r\n", ":-42\r\n"),
            (Reply::Bulk(b"a\r\nb".to_vec()), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (Reply::Bulk(Vec::new()), "$0\r\n\r\n", "$0\r\n\r\n"),
            (Reply::Simple(b"none".to_vec()), "+none\r\n", "+none\r\n"),
            (Reply::Error(b"ERR a\r\nb".to_vec()), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Map(pairs()), "*4\r\n+OK\r\n:1\r\n+OK\r\n$-1\r\n", "%2\r\n+OK\r\n:1\r\n+OK\r\n_\r\n"),
            (
                Reply::Pairs(pairs()),
                "*4\r\n+OK\r\n:1\r\n+OK\r\n$-1\r\n",
                "*2\r\n*2\r\n+OK\r\n:1\r\n*2\r\n+OK\r\n_\r\n",
            ),
            (
                Reply::Keyed(pairs()),
                "*2\r\n*2\r\n+OK\r\n:1\r\n*2\r\n+OK\r\n$-1\r\n",
                "%2\r\n+OK\r\n:1\r\n+OK\r\n_\r\n",
            ),
            (Reply::Set(vec![Reply::Ok, Reply::Nil]), "*2\r\n+OK\r\n$-1\r\n", "~2\r\n+OK\r\n_\r\n"),
            (nested, "*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n", "*2\r\n$1\r\n0\r\n*1\r\n_\r\n"),
        ] {
            assert_eq!(written(Protocol::Resp2, &reply), resp2);
            assert_eq!(written(Protocol::Resp3, &reply), resp3);
        }
    }

    #[test]
    fn heads_in_both_protocols() {
        for (protocol, expected) in
            [(Protocol::Resp2, "*4\r\n*2\r\n$2\r\nhi\r\n"), (Protocol::Resp3, "%2\r\n~2\r\n=6\r\ntxt:hi\r\n")]
        {
            let mut out = Vec::new();
            write_map(&mut out, protocol, 2);
            write_set(&mut out, protocol, 2);
            write_verbatim(&mut out, protocol, b"hi");
            assert_eq!(out, expected.as_bytes());
        }
    }
}

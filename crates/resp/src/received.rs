//! Replies as a client of a server receives them, in RESP2.

use core::fmt;
use std::io::{self, BufRead, ErrorKind, Read as _};

/// Longest line: an error's text, or a length.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Arrays are in arrays at most so deep: what SCAN answers has two.
const DEPTH_MAX: usize = 8;

/// Most elements of an array. SCAN answers more keys than it was asked for where many share a place.
const ELEMENTS_MAX: i64 = 1 << 20;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedReply {
    /// A simple string.
    Simple(String),
    /// An error, with its code.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// No bulk string, or no array.
    Nil,
    /// An array.
    Array(Vec<ReceivedReply>),
}

/// What stands before the bytes of a bulk string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkHead {
    /// So many bytes follow, and a line's end.
    Bytes(u64),
    /// There are none.
    Nil,
    /// An error came in its place.
    Error(String),
}

impl fmt::Display for ReceivedReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) | Self::Error(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Bulk(bytes) => bytes.escape_ascii().fmt(f),
            Self::Nil => f.write_str("nil"),
            Self::Array(elements) => write!(f, "an array of {}", elements.len()),
        }
    }
}

fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server does not speak RESP2: {}", problem.into()))
}

/// A line without its end.
fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None if line.len() as u64 == LINE_BYTES_MAX => Err(invalid("a line is too long")),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn number(digits: &str) -> io::Result<i64> {
    digits.parse().map_err(|_| invalid(format!("'{digits}' is not a number")))
}

/// Reads a reply that takes so much memory at most, which grows as bytes come.
///
/// # Errors
/// What the system says, and `InvalidData` if the bytes are no reply, or too much of one.
pub fn read_reply(input: &mut impl BufRead, mut bytes_max: u64) -> io::Result<ReceivedReply> {
    read_nested(input, &mut bytes_max, DEPTH_MAX)
}

/// Memory that is left after so much more.
fn spend(left: &mut u64, bytes: u64) -> io::Result<()> {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(invalid(format!("{bytes} bytes more than are expected"))),
    }
}

fn read_nested(input: &mut impl BufRead, left: &mut u64, depth: usize) -> io::Result<ReceivedReply> {
    spend(left, size_of::<ReceivedReply>() as u64)?;
    let line = line(input)?;
    spend(left, line.len() as u64)?;
    let Some((kind, rest)) = line.split_at_checked(1) else {
        return Err(invalid("a reply is an empty line"));
    };
    Ok(match kind {
        "+" => ReceivedReply::Simple(rest.to_owned()),
        "-" => ReceivedReply::Error(rest.to_owned()),
        ":" => ReceivedReply::Integer(number(rest)?),
        "$" => match number(rest)? {
            -1 => ReceivedReply::Nil,
            length => {
                let length = u64::try_from(length).map_err(|_| invalid("a length is negative"))?;
                spend(left, length)?;
                ReceivedReply::Bulk(read_bulk(input, length)?)
            }
        },
        "*" => match number(rest)? {
            -1 => ReceivedReply::Nil,
            count if (0..=ELEMENTS_MAX).contains(&count) && depth > 0 => {
                let elements = (0..count).map(|_| read_nested(input, left, depth - 1));
                ReceivedReply::Array(elements.collect::<io::Result<_>>()?)
            }
            count => return Err(invalid(format!("an array of {count}"))),
        },
        other => return Err(invalid(format!("a reply begins with {}", other.escape_default()))),
    })
}

/// Reads what stands before the bytes of a bulk string, where one is expected.
///
/// # Errors
/// What the system says, and `InvalidData` if there is something else.
pub fn read_bulk_head(input: &mut impl BufRead) -> io::Result<BulkHead> {
    let line = line(input)?;
    match line.split_at_checked(1) {
        Some(("-", text)) => Ok(BulkHead::Error(text.to_owned())),
        Some(("$", "-1")) => Ok(BulkHead::Nil),
        Some(("$", length)) => {
            let length = u64::try_from(number(length)?).map_err(|_| invalid("a length is negative"))?;
            Ok(BulkHead::Bytes(length))
        }
        _ => Err(invalid(format!("no bulk string: {line}"))),
    }
}

/// Reads so many bytes of a bulk string, and the line's end behind them.
///
/// # Errors
/// What the system says, and `InvalidData` if there is no line's end.
pub fn read_bulk(input: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    end_bulk(input)?;
    Ok(bytes)
}

/// Reads the line's end behind a bulk string.
///
/// # Errors
/// As [`read_bulk`].
pub fn end_bulk(input: &mut impl BufRead) -> io::Result<()> {
    let mut end = [0; 2];
    input.read_exact(&mut end)?;
    if end == *b"\r\n" { Ok(()) } else { Err(invalid("a string is longer than it says")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<ReceivedReply> {
        read_reply(&mut { bytes }, 400)
    }

    #[test]
    fn replies_are_read() {
        use ReceivedReply::{Array, Bulk, Error, Integer, Nil, Simple};
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], Simple("OK".to_owned())),
            (b"-ERR no\r\n", Error("ERR no".to_owned())),
            (b":-7\r\n", Integer(-7)),
            (b"$3\r\na\r\n\r\n", Bulk(b"a\r\n".to_vec())),
            (b"$-1\r\n", Nil),
            (b"*-1\r\n", Nil),
            (
                b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n",
                Array(vec![Bulk(b"0".to_vec()), Array(vec![Bulk(b"k".to_vec())])]),
            ),
        ] {
            assert_eq!(read(bytes).unwrap(), expected);
            for end in 0..bytes.len() {
                assert!(read(&bytes[..end]).is_err(), "{end} bytes of {}", bytes.escape_ascii());
            }
        }
        assert_eq!(read_bulk_head(&mut &b"$7\r\n"[..]).unwrap(), BulkHead::Bytes(7));
        assert_eq!(read_bulk_head(&mut &b"-ERR\r\n"[..]).unwrap(), BulkHead::Error("ERR".to_owned()));
        assert_eq!(read_bulk_head(&mut &b"$-1\r\n"[..]).unwrap(), BulkHead::Nil);
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let deep = b"*1\r\n".repeat(DEPTH_MAX + 1);
        let long = [&b"+"[..], &b"x".repeat(LINE_BYTES_MAX as usize), b"\r\n"].concat();
        for bytes in [
            &b"\r\n"[..],
            b"?\r\n",
            b"$401\r\n",
            b"*2\r\n$350\r\n",
            b"$-2\r\n",
            b"$x\r\n",
            b"$1\r\nabc\r\n",
            b"*1048577\r\n",
            b"*-2\r\n",
            b":\r\n",
            &deep,
            &long,
        ] {
            let refused = read(bytes).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidData, "{}", bytes.escape_ascii());
        }
        assert!(read_bulk_head(&mut &b"+OK\r\n"[..]).is_err());
    }
}

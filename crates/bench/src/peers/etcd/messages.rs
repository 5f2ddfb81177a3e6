//! The messages of etcd's gRPC interface that a load takes (etcd 3.4, `rpc.proto` and `kv.proto`), by hand: fields
//! that are zero or empty are left out, and unknown ones are skipped, as protocol buffers have it. Numbers are in their shortest
//! form, as etcd writes them.

use syros_types::varint::{put_varint, take_varint};

/// How a field is encoded, in the lowest three bits before it.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// Appends a field of bytes, unless there are none.
fn put_bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        put_varint(out, field << 3 | BYTES);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// `PutRequest`: overwrites a key, and wants nothing back.
pub(super) fn put_request(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    put_bytes(1, key, out);
    put_bytes(2, value, out);
}

/// `RangeRequest` for one key: linearizable, which is the default.
pub(super) fn range_request(key: &[u8], out: &mut Vec<u8>) {
    put_bytes(1, key, out);
}

/// What a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    /// A number, of whatever length.
    Number(u64),
    /// Bytes, or a message.
    Bytes(&'a [u8]),
}

/// Takes so many bytes from the beginning.
fn take<'a>(count: u64, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a field, with its number, from the beginning.
fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = take_varint(bytes).ok()?;
    let little_endian = |taken: &[u8]| taken.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let value = match tag & 7 {
        VARINT => Value::Number(take_varint(bytes).ok()?),
        FIXED_64 => Value::Number(little_endian(take(8, bytes)?)),
        FIXED_32 => Value::Number(little_endian(take(4, bytes)?)),
        BYTES => {
            let count = take_varint(bytes).ok()?;
            Value::Bytes(take(count, bytes)?)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

/// The last field of this number, as protocol buffers have it; `Err` if the message is none.
fn find(mut message: &[u8], wanted: u64) -> Result<Option<Value<'_>>, Malformed> {
    let mut found = None;
    while !message.is_empty() {
        let (field, value) = take_field(&mut message).ok_or(Malformed)?;
        if field == wanted {
            found = Some(value);
        }
    }
    Ok(found)
}

/// What was received is no such message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// `RangeResponse`: the length of the value that was found, if one was.
pub(super) fn range_response(message: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(Value::Bytes(pair)) = find(message, 2)? else { return Ok(None) };
    match find(pair, 5)? {
        Some(Value::Bytes(value)) => Ok(Some(value.len())),
        None => Ok(Some(0)),
        Some(Value::Number(_)) => Err(Malformed),
    }
}

/// `PutResponse`: it must be a message.
pub(super) fn put_response(message: &[u8]) -> Result<(), Malformed> {
    find(message, 1).map(drop)
}

/// What a member says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Its own id.
    pub(super) member: u64,
    /// Whom it takes for the leader; 0 if nobody.
    pub(super) leader: u64,
}

/// `StatusResponse`.
pub(super) fn status_response(message: &[u8]) -> Result<Status, Malformed> {
    let number = |message, field| match find(message, field)? {
        Some(Value::Number(number)) => Ok(number),
        None => Ok(0),
        Some(Value::Bytes(_)) => Err(Malformed),
    };
    let Some(Value::Bytes(header)) = find(message, 1)? else { return Err(Malformed) };
    Ok(Status { member: number(header, 2)?, leader: number(message, 4)? })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As the Python library of protocol buffers (7.x) encodes a `PutRequest`.
    #[test]
    fn requests_are_the_bytes_that_protocol_buffers_prescribe() {
        let mut out = Vec::new();
        put_request(b"key:1", b"xyz", &mut out);
        assert_eq!(out, b"\x0a\x05key:1\x12\x03xyz");
        out.clear();
        put_request(b"k", b"", &mut out);
        assert_eq!(out, b"\x0a\x01k", "what is empty is left out");
        out.clear();
        put_request(b"k", &[b'v'; 300], &mut out);
        assert_eq!((out.len(), &out[..6]), (306, &b"\x0a\x01k\x12\xac\x02"[..]));
        out.clear();
        range_request(b"key:1", &mut out);
        assert_eq!(out, b"\x0a\x05key:1");
    }

    /// What etcd 3.4.23 begins every answer with.
    pub(in crate::peers::etcd) const HEADER: &[u8] = b"\x0a\x18\x08\x87\xd5\xed\xba\x8f\xd5\x9d\xc1\x04\x10\xc0\xc0\xca\xaf\xc1\xba\x96\x89\x2e\x18\x02\x20\x02";

    /// What it adds when it has found `key:1` with the value `xyz`.
    pub(in crate::peers::etcd) const PAIR: &[u8] =
        b"\x12\x12\x0a\x05key:1\x10\x02\x18\x02\x20\x01\x2a\x03xyz\x20\x01";

    /// Recorded from etcd 3.4.23.
    #[test]
    fn responses_are_read() {
        let found = [HEADER, PAIR].concat();
        assert_eq!(range_response(&found), Ok(Some(3)));
        assert_eq!(range_response(HEADER), Ok(None), "nothing was found");
        let empty = [HEADER, b"\x12\x0d\x0a\x05empty\x10\x03\x18\x03\x20\x01\x20\x01"].concat();
        assert_eq!(range_response(&empty), Ok(Some(0)), "an empty value is left out");
        assert_eq!(put_response(HEADER), Ok(()));
        let (version, rest) =
            (b"\x12\x063.4.23\x18\x80\xa0\x01", b"\x28\x06\x30\x02\x38\x06\x48\x80\x80\x01");
        let status = [HEADER, version, b"\x20\xc0\xc0\xca\xaf\xc1\xba\x96\x89\x2e", rest].concat();
        let member = 0x2e12_59d4_15f2_a040;
        assert_eq!(status_response(&status), Ok(Status { member, leader: member }));
        let electing = [HEADER, version, rest].concat();
        assert_eq!(status_response(&electing), Ok(Status { member, leader: 0 }));
    }

    #[test]
    fn what_is_no_message_is_refused_and_unknown_fields_are_skipped() {
        for wrong in [
            &b"\x12\x05ab"[..],
            b"\x12",
            b"\x0b",
            b"\x80",
            b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(range_response(wrong), Err(Malformed), "{wrong:?}");
        }
        assert_eq!(range_response(b"\x12\x02\x28\x01"), Err(Malformed), "a value is no number");
        assert_eq!(range_response(b"\x49abcdefgh\x4dabcd\x12\x03\x2a\x01v"), Ok(Some(1)));
        assert_eq!(status_response(b""), Err(Malformed), "a header is always there");
    }
}

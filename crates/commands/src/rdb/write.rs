//! Values as they are written: in the oldest encodings that write all there is, which every version reads.

use super::output::Output;
use super::{Format, streams, type_number};
use syros_values::{Hash, Value};

/// A type's number and the value, for files of this format; `None` if it has no way to write the value.
pub(super) fn value_in(value: &Value, format: Format) -> Option<Vec<u8>> {
    match value {
        Value::Hash(hash) if hash.is_expiring() && format < Format::Redis74 => None,
        Value::Stream(stream) if format == Format::Redis70 => {
            let mut out = Output::new(usize::MAX);
            streams::put(&mut out, stream, type_number::STREAM_WITH_COUNTERS)?;
            Some(out.bytes)
        }
        value => self::value(value, usize::MAX),
    }
}

/// A type's number and the value; `None` if that is longer than `bytes_max`.
pub(super) fn value(value: &Value, bytes_max: usize) -> Option<Vec<u8>> {
    let mut out = Output::new(bytes_max);
    match value {
        Value::String(string) => {
            out.bytes.push(type_number::STRING);
            out.put_string(string)?;
        }
        Value::List(list) => {
            out.put_head(type_number::LIST, list.len());
            list.iter().try_for_each(|element| out.put_string(element))?;
        }
        Value::Set(set) => {
            out.put_head(type_number::SET, set.len());
            set.iter().try_for_each(|member| out.put_string(member))?;
        }
        Value::Hash(hash) if hash.is_expiring() => put_expiring_hash(&mut out, hash)?,
        Value::Hash(hash) => {
            out.put_head(type_number::HASH, hash.len());
            hash.iter().try_for_each(|(field, value)| {
                out.put_string(field)?;
                out.put_string(value)
            })?;
        }
        Value::SortedSet(set) => {
            out.put_head(type_number::SORTED_SET_BINARY, set.len());
            set.iter().try_for_each(|(member, score)| {
                out.put_string(member)?;
                out.bytes.extend_from_slice(&score.value().to_le_bytes());
                Some(())
            })?;
        }
        Value::Stream(stream) => streams::put(&mut out, stream, streams::type_of(stream))?,
    }
    (out.bytes.len() <= bytes_max).then_some(out.bytes)
}

/// Appends a hash of which fields expire: the last millisecond in which the first of them is there, and each with how
/// much longer it is there, and one more; 0 if it stays.
fn put_expiring_hash(out: &mut Output, hash: &Hash) -> Option<()> {
    out.bytes.push(type_number::EXPIRING_HASH);
    let first = hash.moments().first.map_or(0, |first| first.get() - 1);
    out.bytes.extend_from_slice(&first.to_le_bytes());
    out.put_number(hash.len());
    hash.iter().try_for_each(|(field, value)| {
        let longer = hash.expiry(field).map_or(0, |expiry| expiry.get() - first);
        out.put_number(longer);
        out.put_string(field)?;
        out.put_string(value)
    })
}

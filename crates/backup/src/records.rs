//! Records of a write-ahead log in the data of a backup: each after its length.

use syros_protocol::message::Describe;
use syros_protocol::record::Record;

/// Bytes before a record: its length.
pub(crate) const RECORD_HEADER_BYTES: usize = 4;

/// Appends a record as it stands behind the snapshot.
pub fn put_record(record: &Record, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    syros_wire::encode_record(record, out);
    let length = (out.len() - at - RECORD_HEADER_BYTES) as u32;
    out[at..at + RECORD_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// The records of a piece of a log.
pub(crate) fn records_of(
    mut bytes: &[u8],
    describe: Describe,
) -> impl Iterator<Item = Result<Record, String>> {
    let mut next = move || {
        let (length, rest) = bytes.split_first_chunk().ok_or("the data ends in the middle of its length")?;
        let record = rest
            .get(..u32::from_le_bytes(*length) as usize)
            .filter(|record| !record.is_empty())
            .ok_or("its length is impossible")?;
        bytes = &rest[record.len()..];
        let record = syros_wire::decode_record(record, describe).map_err(|error| error.to_string())?;
        Ok((record, bytes.is_empty()))
    };
    let mut is_over = bytes.is_empty();
    core::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let found: Result<(Record, bool), String> = next();
        is_over = found.as_ref().map_or(true, |(_, was_last)| *was_last);
        Some(found.map(|(record, _)| record))
    })
}

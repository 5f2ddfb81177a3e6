//! One file: records in chunks that a snapshot can share.

use crate::operation::{RECORD_BYTES_MAX, put_bytes, take_bytes};
use std::sync::Arc;

/// A chunk that holds so many bytes of records takes no more of them. Appending to a chunk that a snapshot still shares
/// copies it, once; so it is not long.
const CHUNK_BYTES: usize = 64 << 10;

const _: () = assert!(CHUNK_BYTES + RECORD_BYTES_MAX < u32::MAX as usize);

/// What a record takes besides its bytes.
const RECORD_OVERHEAD_BYTES: u64 = size_of::<u32>() as u64;

/// Some records of a file, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Number of the first record.
    first: u64,
    bytes: Vec<u8>,
    /// Where each record ends in `bytes`; never none.
    ends: Vec<u32>,
}

impl Chunk {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start =
            index.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.bytes.get(start..end)
    }

    /// As bytes, for snapshots.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.bytes);
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        put_bytes(out, &ends);
    }
}

/// A file. A clone shares its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct File {
    chunks: Vec<Arc<Chunk>>,
    records: u64,
    bytes: u64,
}

impl File {
    /// Number of records.
    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of all records, with what each takes besides.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a record, unless the file would exceed `limit` bytes. Returns its number.
    pub(crate) fn append(&mut self, record: &[u8], limit: u64) -> Option<u64> {
        let number = self.records;
        let bytes = self.bytes + record.len() as u64 + RECORD_OVERHEAD_BYTES;
        if bytes > limit {
            return None;
        }
        (self.records, self.bytes) = (number + 1, bytes);
        match self.chunks.last_mut() {
            Some(last) if last.bytes.len() < CHUNK_BYTES => {
                let last = Arc::make_mut(last);
                last.bytes.extend_from_slice(record);
                last.ends.push(last.bytes.len() as u32);
            }
            _ => {
                let chunk = Chunk { first: number, bytes: record.to_vec(), ends: vec![record.len() as u32] };
                self.chunks.push(Arc::new(chunk));
            }
        }
        Some(number)
    }

    /// The records from number `from` on.
    pub(crate) fn read(&self, from: u64) -> impl Iterator<Item = &[u8]> {
        let chunk = self.chunks.partition_point(|chunk| chunk.first <= from).saturating_sub(1);
        let skipped = self.chunks.get(chunk).map_or(0, |chunk| from - chunk.first);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let records = |chunk: &'_ Arc<Chunk>| chunk.ends.len();
        self.chunks[chunk..]
            .iter()
            .flat_map(move |chunk| (0..records(chunk)).filter_map(|index| chunk.get(index)))
            .skip(skipped)
    }

    /// What it is made of, for snapshots.
    pub(crate) fn into_chunks(self) -> impl Iterator<Item = Arc<Chunk>> + Send {
        self.chunks.into_iter()
    }

    /// Takes the next chunk of this file from the front of a snapshot; `None` if that is none.
    pub(crate) fn take_chunk(&mut self, state: &mut &[u8]) -> Option<()> {
        let (bytes, ends) = (take_bytes(state)?.to_vec(), take_bytes(state)?);
        let (ends, []) = ends.as_chunks() else { return None };
        let ends: Vec<u32> = ends.iter().map(|end| u32::from_le_bytes(*end)).collect();
        if !ends.is_sorted() || ends.last().is_none_or(|last| *last as usize != bytes.len()) {
            return None;
        }
        let first = self.records;
        self.records += ends.len() as u64;
        self.bytes += bytes.len() as u64 + ends.len() as u64 * RECORD_OVERHEAD_BYTES;
        self.chunks.push(Arc::new(Chunk { first, bytes, ends }));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> Vec<u8> {
        number.to_string().repeat(number as usize % 300).into_bytes()
    }

    #[test]
    fn any_range_over_many_chunks() {
        let mut file = File::default();
        for number in 0..3000 {
            assert_eq!(file.append(&record(number), u64::MAX), Some(number));
        }
        assert!(file.chunks.len() > 10, "{} chunks", file.chunks.len());
        for from in [0, 1, 299, 1500, 2999, 3000, 3001, u64::MAX] {
            let found: Vec<&[u8]> = file.read(from).collect();
            let expected: Vec<Vec<u8>> = (from.min(3000)..3000).map(record).collect();
            assert_eq!(found, expected, "from {from}");
        }
        assert_eq!(File::default().read(5).count(), 0);
    }

    #[test]
    fn a_clone_stays_as_it_was() {
        let mut file = File::default();
        file.append(b"one", u64::MAX);
        let before = file.clone();
        file.append(b"two", u64::MAX);
        assert_eq!(before.read(0).collect::<Vec<_>>(), [b"one"]);
        assert_eq!(file.read(0).collect::<Vec<_>>(), [b"one", b"two"]);
    }

    #[test]
    fn a_full_file_takes_no_more() {
        let mut file = File::default();
        assert_eq!(file.append(b"12345", 15), Some(0));
        assert_eq!(file.append(b"123", 15), None);
        assert_eq!((file.records(), file.bytes()), (1, 9), "nothing has changed");
        assert_eq!(file.append(b"12", 15), Some(1));
        assert_eq!(file.append(b"", 15), None);
    }

    #[test]
    fn chunks_come_back_and_damage_does_not() {
        let mut file = File::default();
        for number in 0..2000 {
            file.append(&record(number), u64::MAX);
        }
        let mut state = Vec::new();
        file.clone().into_chunks().for_each(|chunk| chunk.encode(&mut state));
        let (mut restored, mut rest) = (File::default(), &state[..]);
        while !rest.is_empty() {
            restored.take_chunk(&mut rest).expect("its own chunk");
        }
        assert_eq!(restored, file);
        let damaged = |bytes: &[u8], ends: &[u8]| {
            let mut state = Vec::new();
            put_bytes(&mut state, bytes);
            put_bytes(&mut state, ends);
            File::default().take_chunk(&mut &state[..]).is_none()
        };
        assert!(damaged(b"ab", &[]) && damaged(b"ab", &[1, 0, 0, 0]) && damaged(b"ab", &[2, 0, 0]));
        assert!(damaged(b"ab", &[3, 0, 0, 0, 2, 0, 0, 0]) && !damaged(b"ab", &[0, 0, 0, 0, 2, 0, 0, 0]));
        assert!(File::default().take_chunk(&mut &state[..100]).is_none());
    }
}

//! The state machine.

use crate::file::File;
use crate::operation::{LISTED_MAX, Operation, READ_BYTES_MAX, put_bytes, take_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use syros_machine::{Class, Footprint, Pieces, StateMachine, Unreadable, WallTime, key_hash};

/// Most bytes of one file, with 4 for each record: all files are in memory. There is no limit for all files together:
/// every append would have to look at the others' lengths, and so its footprint would be everything.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// First byte of an answer to [`Operation::AppendAt`]: the number of the record follows.
pub(crate) const APPENDED: u8 = 0;
/// The file has no room for the record.
pub(crate) const FULL: u8 = 1;

/// A store of files, each a sequence of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStore {
    /// Ordered, so that a list is the same on every replica.
    files: BTreeMap<Arc<[u8]>, File>,
    /// Bytes of all files.
    bytes: u64,
}

impl StateMachine for FileStore {
    const NAME: &'static str = "record-append";

    // ---- What is about replication: from here ...

    fn class(operation: &[u8]) -> Option<Class> {
        Some(match Operation::decode(operation)? {
            // It adds to what is there, and returns nothing.
            Operation::Append { .. } => Class::Merge,
            // Whatever was there, it is gone then.
            Operation::Remove { .. } => Class::Overwrite,
            // It tells where the record went.
            Operation::AppendAt { .. } => Class::Update,
            Operation::Length { .. } | Operation::Read { .. } | Operation::List { .. } => Class::Read,
        })
    }

    fn footprint(operation: &[u8]) -> Footprint {
        match Operation::decode(operation).and_then(|operation| operation.file()) {
            Some(file) => Footprint::One(key_hash(file)),
            None => Footprint::All,
        }
    }

    // ---- ... to here. The rest is the store, as it would be without replication.

    fn execute(&mut self, _: WallTime, operation: &[u8], reply: &mut Vec<u8>) {
        match Operation::decode(operation) {
            Some(Operation::Append { file, record }) => {
                self.append(file, record);
            }
            Some(Operation::AppendAt { file, record }) => match self.append(file, record) {
                Some(number) => {
                    reply.push(APPENDED);
                    reply.extend_from_slice(&number.to_le_bytes());
                }
                None => reply.push(FULL),
            },
            Some(Operation::Remove { file }) => {
                if let Some(removed) = self.files.remove(file) {
                    self.bytes -= removed.bytes();
                }
            }
            // `class` keeps these away.
            Some(Operation::Length { .. } | Operation::Read { .. } | Operation::List { .. }) | None => {}
        }
    }

    fn read(&self, operation: &[u8], reply: &mut Vec<u8>) {
        match Operation::decode(operation) {
            Some(Operation::Length { file }) => {
                let length = self.files.get(file).map_or(0, File::records);
                reply.extend_from_slice(&length.to_le_bytes());
            }
            Some(Operation::Read { file, from, count }) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let Some(file) = self.files.get(file) else { return };
                for record in file.read(from).take(count) {
                    put_bytes(reply, record);
                    if reply.len() > READ_BYTES_MAX {
                        break;
                    }
                }
            }
            Some(Operation::List { after }) => {
                let behind = self
                    .files
                    .range::<[u8], _>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
                for (name, file) in behind.take(LISTED_MAX) {
                    put_bytes(reply, name);
                    reply.extend_from_slice(&file.records().to_le_bytes());
                }
            }
            Some(Operation::Append { .. } | Operation::AppendAt { .. } | Operation::Remove { .. }) | None => {
            }
        }
    }

    fn snapshot(&self) -> Pieces {
        // Shares the records: takes a moment, however long the files are. A piece is a chunk behind the name of its file.
        let files = self.files.clone();
        Box::new(files.into_iter().flat_map(|(name, file)| {
            file.into_chunks().map(move |chunk| {
                let mut piece = Vec::new();
                put_bytes(&mut piece, &name);
                chunk.encode(&mut piece);
                piece
            })
        }))
    }

    fn restore(mut state: &[u8]) -> Result<Self, Unreadable> {
        let length = state.len();
        let mut store = Self::default();
        while !state.is_empty() {
            let at = length - state.len();
            let damage = || Unreadable(format!("there is no chunk of a file at byte {at} of {length}"));
            let name = take_bytes(&mut state).ok_or_else(damage)?;
            let file = store.files.entry(name.into()).or_default();
            file.take_chunk(&mut state).ok_or_else(damage)?;
        }
        store.bytes = store.files.values().map(File::bytes).sum();
        Ok(store)
    }

    fn snapshot_bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

impl FileStore {
    /// Appends a record; its number, or `None` if the file is full.
    fn append(&mut self, name: &[u8], record: &[u8]) -> Option<u64> {
        let file = match self.files.get_mut(name) {
            Some(file) => file,
            None => self.files.entry(name.into()).or_default(),
        };
        let before = file.bytes();
        let number = file.append(record, FILE_BYTES_MAX);
        self.bytes += file.bytes() - before;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::take_u64;
    use syros_machine::MachineKind;

    fn execute(store: &mut FileStore, operation: Operation<'_>) -> Vec<u8> {
        let mut reply = Vec::new();
        store.execute(WallTime(1), &operation.encode().unwrap(), &mut reply);
        reply
    }

    fn read(store: &FileStore, operation: Operation<'_>) -> Vec<u8> {
        let mut reply = Vec::new();
        store.read(&operation.encode().unwrap(), &mut reply);
        reply
    }

    fn records(store: &FileStore, file: &[u8], from: u64, count: u64) -> Vec<Vec<u8>> {
        let reply = read(store, Operation::Read { file, from, count });
        let mut rest = &reply[..];
        std::iter::from_fn(|| take_bytes(&mut rest).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn classes_and_footprints() {
        let kind = MachineKind::of::<FileStore>();
        let describe = |operation: Operation<'_>| {
            let known = kind.describe(&operation.encode().unwrap()).unwrap();
            (known.class, known.footprint)
        };
        let one = Footprint::One(key_hash(b"f"));
        let (file, record) = (&b"f"[..], &b"r"[..]);
        for (operation, class) in [
            (Operation::Append { file, record }, Class::Merge),
            (Operation::AppendAt { file, record }, Class::Update),
            (Operation::Remove { file }, Class::Overwrite),
            (Operation::Length { file }, Class::Read),
            (Operation::Read { file, from: 0, count: 1 }, Class::Read),
        ] {
            assert_eq!(describe(operation), (class, one.clone()));
        }
        assert_eq!(describe(Operation::List { after: b"f" }), (Class::Read, Footprint::All));
        assert_eq!(kind.describe(b"garbage"), None);
    }

    #[test]
    fn records_are_read_where_they_were_appended() {
        let mut store = FileStore::default();
        let (a, b) = (&b"a"[..], &b"b"[..]);
        assert_eq!(execute(&mut store, Operation::Append { file: a, record: b"0" }), []);
        assert_eq!(execute(&mut store, Operation::Append { file: b, record: b"other" }), []);
        let reply = execute(&mut store, Operation::AppendAt { file: a, record: b"" });
        assert_eq!((reply[0], take_u64(&mut &reply[1..])), (APPENDED, Some(1)));
        execute(&mut store, Operation::Append { file: a, record: b"2" });
        assert_eq!(records(&store, a, 0, 9), [&b"0"[..], b"", b"2"]);
        assert_eq!(records(&store, a, 1, 1), [b""]);
        assert!(records(&store, a, 3, 9).is_empty() && records(&store, b"none", 0, 9).is_empty());
        assert_eq!(read(&store, Operation::Length { file: a }), 3_u64.to_le_bytes());
        assert_eq!(read(&store, Operation::Length { file: b"none" }), [0; 8]);
        execute(&mut store, Operation::Remove { file: a });
        execute(&mut store, Operation::Remove { file: b"none" });
        assert!(records(&store, a, 0, 9).is_empty());
        assert_eq!((store.bytes, store.files.len()), (9, 1));
    }

    #[test]
    fn one_answer_is_not_too_long() {
        let mut store = FileStore::default();
        let record = vec![1; READ_BYTES_MAX / 4];
        for _ in 0..20 {
            execute(&mut store, Operation::Append { file: b"f", record: &record });
        }
        assert_eq!(records(&store, b"f", 0, 20).len(), 4);
        for number in 0..LISTED_MAX + 5 {
            let file = format!("{number:05}");
            execute(&mut store, Operation::Append { file: file.as_bytes(), record: b"r" });
        }
        let listed = |after: &[u8]| {
            let reply = read(&store, Operation::List { after });
            let mut rest = &reply[..];
            let mut names = Vec::new();
            while let Some(name) = take_bytes(&mut rest) {
                names.push(String::from_utf8_lossy(name).into_owned());
                take_u64(&mut rest).expect("a length");
            }
            names
        };
        assert_eq!(listed(b"").len(), LISTED_MAX);
        assert_eq!(listed(b"01002"), ["01003", "01004", "f"]);
    }

    #[test]
    fn a_snapshot_is_the_state_of_its_moment() {
        let mut store = FileStore::default();
        for number in 0..5000_u64 {
            let file = (number % 7).to_string();
            let record = number.to_string().repeat(number as usize % 100);
            execute(&mut store, Operation::Append { file: file.as_bytes(), record: record.as_bytes() });
        }
        let (pieces, before) = (store.snapshot(), store.clone());
        execute(&mut store, Operation::Append { file: b"1", record: b"later" });
        execute(&mut store, Operation::Remove { file: b"2" });
        let state: Vec<u8> = pieces.flatten().collect();
        assert!(state.len() >= before.snapshot_bytes());
        assert_eq!(FileStore::restore(&state), Ok(before));
        assert_eq!(FileStore::restore(&[]), Ok(FileStore::default()));
        let error = FileStore::restore(&state[..state.len() - 1]).unwrap_err().to_string();
        assert!(error.starts_with("there is no chunk of a file at byte "), "{error}");
    }

    /// Any operation, drawn from a number.
    fn draw(random: u64, record: &[u8]) -> (u8, &'static [u8], &[u8]) {
        let file = [&b"a"[..], b"b", b"cc", b"a/b"][(random >> 8) as usize % 4];
        let length = (random >> 16) as usize % if random.is_multiple_of(50) { record.len() } else { 200 };
        ((random % 40) as u8, file, &record[..length])
    }

    #[test]
    fn equal_histories_lead_to_equal_states_whatever_snapshots_are_taken() {
        let long = vec![b'x'; 100_000];
        // One executes everything, one comes back from a snapshot now and then, one is only lists of records.
        let (mut plain, mut restored) = (FileStore::default(), FileStore::default());
        let mut model: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
        let mut taking: Option<Pieces> = None;
        let mut random = 7_u64;
        for step in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (choice, file, record) = draw(random >> 20, &long);
            let operation = match choice {
                0 => Operation::Remove { file },
                1..20 => Operation::Append { file, record },
                _ => Operation::AppendAt { file, record },
            };
            let replies = [execute(&mut plain, operation), execute(&mut restored, operation)];
            assert_eq!(replies[0], replies[1], "step {step}");
            match operation {
                Operation::Remove { .. } => drop(model.remove(file)),
                _ => model.entry(file).or_default().push(record),
            }
            match step % 1000 {
                // Under way for a while, and asked for in parts.
                500 => taking = Some(plain.snapshot()),
                600 => drop(taking.as_mut().and_then(Iterator::next)),
                0 => {
                    let state: Vec<u8> = plain.snapshot().flatten().collect();
                    assert_eq!(state, restored.snapshot().flatten().collect::<Vec<u8>>());
                    restored = FileStore::restore(&state).unwrap();
                    assert_eq!(restored, plain);
                }
                _ => {}
            }
            if step % 100 == 0 {
                for (file, expected) in &model {
                    let from = random % (expected.len() as u64 + 1);
                    let expected: Vec<&[u8]> = expected[from as usize..].iter().take(5).copied().collect();
                    let found = records(&plain, file, from, 5);
                    assert_eq!(found, expected, "step {step}");
                }
                assert_eq!(plain.files.len(), model.len());
            }
        }
        let bytes = |records: &Vec<&[u8]>| records.iter().map(|record| record.len() as u64 + 4).sum::<u64>();
        assert_eq!(plain.bytes, model.values().map(bytes).sum::<u64>());
    }

    #[test]
    fn operations_that_are_none_change_nothing() {
        let mut store = FileStore::default();
        let mut reply = Vec::new();
        for bytes in [&b""[..], b"\x09\x01f", b"\x05\x01f"] {
            store.execute(WallTime(1), bytes, &mut reply);
            store.read(bytes, &mut reply);
        }
        assert!(reply.is_empty() && store == FileStore::default());
    }
}

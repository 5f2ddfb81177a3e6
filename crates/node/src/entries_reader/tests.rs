//! What is found in a log on disk, while its owner goes on with it.

use super::*;
use syros_protocol::message::{BodyHash, LogEntry, Prepared, Request};
use syros_protocol::record::{Record, Ticket};
use syros_types::{
    Class, ConfigurationId, Description, Footprint, OperationId, ReplicaId, SessionId, View, WallTime,
};
use syros_wal::Wal;
use syros_wal::memory_disk::MemoryDisk;

const CLIENT: Peer = Peer::Client(5);

fn any(_: &[u8]) -> Option<Description> {
    Some(Description { class: Class::Merge, footprint: Footprint::All, growth: 1 })
}

fn options() -> Options {
    let options = Options::new(7, ReplicaId(1));
    Options { may_create: true, segment_bytes: 400, reserve_bytes: 1, keep_bytes: u64::MAX, ..options }
}

/// A log, with who writes it.
struct Log {
    disk: MemoryDisk,
    wal: Wal<MemoryDisk>,
    reader: EntriesReader<MemoryDisk>,
    /// The last entry.
    last: u64,
}

impl Log {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        let (wal, _) = Wal::open(disk.clone(), options(), |_, _| Ok::<(), String>(())).unwrap();
        let reader = EntriesReader::new(disk.clone(), options(), ConfigurationId::FIRST, any);
        Self { disk, wal, reader: reader.with_step_bytes(300), last: 0 }
    }

    fn write(&mut self, record: &Record) {
        self.wal.append_with(|out| syros_wire::encode_record(record, out)).unwrap();
        self.wal.flush().unwrap();
        self.wal.sync().unwrap();
    }

    /// One more entry of view 0, whose body is in a record before; all before it are committed.
    fn append(&mut self) {
        let id = OperationId { session: SessionId(1), sequence: self.last + 1 };
        let body = format!("body of {}", id.sequence).into_bytes().into();
        self.write(&Record::Accept(Request { id, micros: 1, acked_below: 0, body }));
        self.append_only();
    }

    fn append_only(&mut self) {
        let commit = OpNumber(self.last);
        self.last += 1;
        let id = OperationId { session: SessionId(1), sequence: self.last };
        let entries = vec![Prepared::Reference { id, body_hash: BodyHash::default() }];
        let first = OpNumber(self.last);
        self.write(&Record::Append { first, view: View(0), time: WallTime(0), commit, entries });
    }

    fn wanted(&self, after: u64, bytes_max: usize) -> EntriesJob {
        let wanted = EntriesWanted {
            copier: CLIENT,
            after: OpNumber(after),
            applied: OpNumber(self.last),
            ticket: Ticket(0),
            bytes_max,
            entries_max: 1_000,
        };
        EntriesJob { wanted, emitted: self.wal.persisted(), durable: self.wal.persisted() }
    }

    /// What is found, and in how many steps. One who gets no entries asks again.
    fn read(&mut self, job: EntriesJob) -> (EntriesReport, u32) {
        self.reader.begin(job);
        for steps in 1..1_000 {
            let Some(report) = self.reader.step() else { continue };
            assert!(!self.reader.has_work());
            match &report.found {
                Some(ScannedEntries::Entries { entries, .. }) if entries.is_empty() => self.reader.begin(job),
                _ => return (report, steps),
            }
        }
        panic!("it never ends");
    }

    fn found(&mut self, job: EntriesJob) -> Result<Vec<LogEntry>, u64> {
        match self.read(job).0.found.expect("the log can be read") {
            ScannedEntries::Entries { entries, .. } => Ok(entries),
            ScannedEntries::Gone { base, .. } => Err(base.0),
        }
    }
}

fn sequences(entries: &[LogEntry]) -> Vec<u64> {
    entries.iter().flat_map(LogEntry::updates).map(|update| update.request.id.sequence).collect()
}

#[test]
fn all_that_is_executed_is_found_wherever_it_begins() {
    let mut log = Log::new();
    (0..40).for_each(|_| log.append());
    // One more, which nobody asks for.
    let more = log.last;
    log.append();
    log.last = more;
    log.wal.remove_before(log.wal.persisted()).unwrap();
    // Of the entry before the first nobody knows the view.
    assert_eq!(log.found(log.wanted(0, usize::MAX)), Err(1));
    for after in 1..40 {
        let found = log.found(log.wanted(after, usize::MAX)).unwrap();
        assert_eq!(sequences(&found), (after + 1..=40).collect::<Vec<u64>>());
    }
}

#[test]
fn a_body_that_stands_far_before_its_entry_is_found() {
    let mut log = Log::new();
    (0..10).for_each(|_| log.append());
    for sequence in 11..=30 {
        let id = OperationId { session: SessionId(1), sequence };
        log.write(&Record::Accept(Request { id, micros: 1, acked_below: 0, body: vec![3; 30].into() }));
    }
    (11..=30).for_each(|_| log.append_only());
    for after in [5, 15, 29] {
        let found = log.found(log.wanted(after, usize::MAX)).unwrap();
        assert_eq!(sequences(&found), (after + 1..=30).collect::<Vec<u64>>());
    }
}

#[test]
fn one_who_goes_on_asking_gets_the_rest_without_reading_all_of_it_again() {
    let mut log = Log::new();
    (0..200).for_each(|_| log.append());
    let (mut after, mut longest) = (1, 0);
    while after < 200 {
        let (report, steps) = log.read(log.wanted(after, 300));
        let Some(ScannedEntries::Entries { entries, .. }) = report.found else { panic!("it is there") };
        assert_eq!(sequences(&entries)[0], after + 1);
        longest = longest.max(if after == 1 { 0 } else { steps });
        after += entries.len() as u64;
    }
    assert!(longest < 20, "{longest} steps");
}

#[test]
fn only_what_the_records_say_is_committed_is_told_before_all_are_read() {
    let mut log = Log::new();
    (0..5).for_each(|_| log.append());
    let all = log.wanted(1, usize::MAX);
    assert_eq!(sequences(&log.found(all).unwrap()), [2, 3, 4, 5]);
    // The replica has emitted one more, which is not durable: it may replace the last entry.
    let job = EntriesJob { emitted: RecordNumber(all.durable.0 + 1), ..all };
    assert_eq!(sequences(&log.found(job).unwrap()), [2, 3, 4]);
    let suffix = vec![];
    let (view, base, commit) = (View(2), OpNumber(4), OpNumber(4));
    log.write(&Record::EnterView { view, rule: None, base, commit, suffix });
    assert_eq!(sequences(&log.found(log.wanted(1, usize::MAX)).unwrap()), [2, 3, 4]);
}

#[test]
fn what_goes_while_it_is_read_is_told_to_be_gone() {
    let mut log = Log::new();
    (0..100).for_each(|_| log.append());
    log.reader.begin(log.wanted(1, usize::MAX));
    for _ in 0..25 {
        assert!(log.reader.step().is_none());
    }
    log.wal.remove_before(log.wal.persisted()).unwrap();
    log.wal.drop_kept();
    let base = loop {
        let report = (0..1_000).find_map(|_| log.reader.step()).expect("there is an answer");
        match report.found {
            Some(ScannedEntries::Gone { base, .. }) => break base,
            Some(ScannedEntries::Entries { entries, .. }) if entries.is_empty() => {
                log.reader.begin(log.wanted(1, usize::MAX));
            }
            found => panic!("{found:?}"),
        }
    };
    assert!(base > OpNumber(50), "{base:?}");
    assert_eq!(sequences(&log.found(log.wanted(base.0, usize::MAX)).unwrap()).len() as u64, 100 - base.0);
    assert_eq!(log.reader.oldest(log.wal.persisted()), Ok(Some(base)));
}

#[test]
fn damage_is_reported_and_what_is_behind_it_is_found() {
    let mut log = Log::new();
    (0..100).for_each(|_| log.append());
    log.wal.remove_before(log.wal.persisted()).unwrap();
    let names = log.disk.list().unwrap();
    let kept: Vec<&String> = names.iter().filter(|name| name.starts_with("kept-")).collect();
    log.disk.corrupt(kept[3], 60, 1);
    let (report, _) = log.read(log.wanted(2, usize::MAX));
    assert!(report.found.is_none() && report.warning.unwrap().contains(kept[3].as_str()));
    assert_eq!(sequences(&log.found(log.wanted(60, usize::MAX)).unwrap()).len(), 40);
}

//! Which of several logs is taken, what comes to it, and what is refused.

use super::*;
use crate::directory::DIRECTORY_FORMAT;
use std::convert::Infallible;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use syros_backup::{Backup, Item};
use syros_protocol::message::{Body, Payload};
use syros_types::SessionId;
use syros_types::View;
use syros_wal::{FileDisk, Options, Wal};

const CLUSTER: u64 = 0x77;

/// A directory that goes when the test ends.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("syros-recover-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The directory of a replica of seven with these records.
    fn replica(&self, id: u8, records: &[Record]) -> PathBuf {
        self.replica_of(CLUSTER, id, records)
    }

    fn replica_of(&self, cluster: u64, id: u8, records: &[Record]) -> PathBuf {
        let path = self.0.join(format!("data-{id}"));
        fs::create_dir_all(path.join("snapshots")).unwrap();
        let identity = format!(
            "syros replica identity\nformat = 2\ncluster = {cluster:016x}\nreplica = {id}\nreplicas = 7\n\
             fast-quorum = majority\ndurability = fsync\nengine = memory\n"
        );
        fs::write(path.join("identity"), identity).unwrap();
        let options = Options { may_create: true, ..Options::new(cluster, ReplicaId(id)) };
        let disk = FileDisk::open(&path.join("wal")).unwrap();
        let (mut wal, _) = Wal::open(disk, options, |_, _| Ok::<(), Infallible>(())).unwrap();
        for record in records {
            wal.append_with(|out| syros_wire::encode_record(record, out)).unwrap();
        }
        wal.flush().unwrap();
        wal.mark().unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tick(view: u64, time: u64) -> LogEntry {
    LogEntry { view: View(view), time: WallTime(time), payload: Payload::Tick }
}

fn enter(view: u64, entries: u64, commit: u64) -> Record {
    Record::EnterView {
        view: View(view),
        rule: None,
        base: OpNumber(0),
        commit: OpNumber(commit),
        suffix: (1..=entries).map(|time| tick(view, time)).collect(),
    }
}

fn accept(sequence: u64) -> Record {
    Record::Accept(request(sequence))
}

fn request(sequence: u64) -> Request {
    let id = OperationId { session: SessionId(1), sequence };
    Request { id, micros: sequence, acked_below: 1, body: Body::from(*b"any operation") }
}

fn sequences(plan: &RecoveryPlan) -> Vec<u64> {
    let mut sequences: Vec<u64> = plan.kept.iter().map(|request| request.id.sequence).collect();
    sequences.sort_unstable();
    sequences
}

#[test]
fn the_longest_log_of_the_newest_view_is_taken_with_all_updates_of_its_view() {
    let place = Place::new();
    let paths = [
        place.replica(0, &[enter(3, 2, 1), accept(1), accept(2)]),
        place.replica(4, &[enter(2, 9, 1), accept(8)]),
        place.replica(2, &[enter(3, 5, 2), accept(2), accept(3)]),
    ];
    let plan = RecoveryPlan::make(&paths).unwrap();
    assert_eq!(plan.chosen, 2, "not the longest of an earlier view");
    assert_eq!((plan.last.op_number, plan.last.view, plan.last.time), (OpNumber(5), View(3), WallTime(5)));
    assert_eq!((plan.certain, plan.certain_time), (OpNumber(2), WallTime(2)));
    assert_eq!((sequences(&plan), plan.obsolete), (vec![1, 2, 3], 1));
    assert_eq!(plan.lost, [ReplicaId(1), ReplicaId(3), ReplicaId(5), ReplicaId(6)]);

    let target = syros_backup::Place::directory(&place.0.join("rest"));
    let stamp = Stamp { id: 9, product: "test".to_owned(), created: WallTime(1) };
    plan.write(&target, stamp).unwrap();
    let backup = Backup::open(&target).unwrap();
    backup.verify(|_| {}).unwrap();
    let (mut entries, mut accepted) = (0, Vec::new());
    backup
        .read::<BackupError>(crate::describe, |item| {
            match item {
                Item::Record(record) => match *record {
                    Record::Transfer { base, entries: more } => {
                        assert_eq!(base.0, entries, "they follow each other");
                        entries += more.len() as u64;
                    }
                    Record::Accept(request) => accepted.push(request),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((entries, accepted.len()), (5, 3));
}

/// Found by an operator, who had nodes that were removed or replaced counted for a majority, and so nothing recovered.
#[test]
fn nodes_that_are_no_members_any_more_are_left_out() {
    let place = Place::new();
    // The directory of replica `id` that goes by this configuration: of node `nodes[id]`, or one of before.
    let directory = |name: &str, id: u8, epoch: u64, nodes: &[u64], before: &[u64]| {
        let path = place.0.join(name);
        fs::rename(place.replica(id, &[enter(3, 2, 1)]), &path).unwrap();
        let list =
            |nodes: &[u64]| nodes.iter().map(|node| format!("{node:016x}")).collect::<Vec<_>>().join(" ");
        let node = nodes.get(usize::from(id)).unwrap_or_else(|| &before[usize::from(id)]);
        let before =
            if before.is_empty() { String::new() } else { format!("nodes-before = {}\n", list(before)) };
        let identity = format!(
            "syros replica identity\nformat = {DIRECTORY_FORMAT}\ncluster = {CLUSTER:016x}\ngroup = 0\nepoch = {epoch}\nreplica = {id}\n\
             replicas = {}\nfast-quorum = majority\ndurability = fsync\nengine = memory\nnode = {node:016x}\nincarnation = 1\n\
             nodes = {}\n{before}",
            nodes.len(),
            list(nodes),
        );
        fs::write(path.join("identity"), identity).unwrap();
        path
    };
    let (three, five) = ([1, 2, 3], [1, 2, 3, 4, 5]);
    let left = |paths: &[PathBuf]| RecoveryPlan::make(paths).map(|plan| (plan.left_out.len(), plan.lost));
    let member = directory("0", 0, 1, &three, &five);
    let removed = directory("3", 3, 1, &three, &five);
    assert_eq!(left(&[member.clone(), removed.clone()]).unwrap(), (1, vec![ReplicaId(1), ReplicaId(2)]));
    assert!(matches!(left(&[removed]), Err(RecoverError::Nothing)), "it is of no use alone");
    let replaced = directory("1-before", 1, 0, &[1, 9, 3], &[]);
    assert_eq!(left(&[member.clone(), replaced]).unwrap(), (1, vec![ReplicaId(1), ReplicaId(2)]));
    let other = directory("1", 1, 1, &three, &five);
    let majority = left(&[member.clone(), other]);
    assert!(matches!(majority, Err(RecoverError::Majority { survivors: 2, replicas: 3 })), "{majority:?}");
    let stranger = directory("2", 2, 0, &[71, 72, 73], &[]);
    assert!(matches!(left(&[member, stranger]), Err(RecoverError::OtherGroup { .. })));
}

#[test]
fn what_is_no_remains_of_a_lost_majority_is_refused() {
    let place = Place::new();
    let paths: Vec<PathBuf> = (0..4).map(|id| place.replica(id, &[enter(1, 1, 1)])).collect();
    let refused = |paths: &[PathBuf]| RecoveryPlan::make(paths).expect_err("it is refused");
    assert!(matches!(refused(&paths), RecoverError::Majority { survivors: 4, replicas: 7 }));
    assert!(RecoveryPlan::make(&paths[..3]).is_ok());
    let twice = [paths[0].clone(), paths[1].clone(), paths[0].clone()];
    assert!(matches!(refused(&twice), RecoverError::Twice { replica: ReplicaId(0), .. }));
    let other = place.replica_of(0x78, 5, &[enter(1, 1, 1)]);
    assert!(matches!(refused(&[paths[0].clone(), other]), RecoverError::OtherCluster { found: 0x78, .. }));
    fs::remove_file(paths[2].join("identity")).unwrap();
    assert!(matches!(refused(&paths[2..3]), RecoverError::Directory { .. }));
}

#[test]
fn a_replica_without_memory_counts_for_nothing_and_a_damaged_one_is_named() {
    let place = Place::new();
    let forgot = place.replica(0, &[enter(5, 3, 3), Record::Forgot { view: View(5) }]);
    assert!(matches!(RecoveryPlan::make(std::slice::from_ref(&forgot)), Err(RecoverError::Nothing)));
    let knows = place.replica(1, &[enter(2, 1, 1)]);
    let plan = RecoveryPlan::make(&[forgot, knows.clone()]).unwrap();
    assert_eq!((plan.chosen, plan.last.view), (1, View(2)));
    let segment = knows.join("wal/wal-00000000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[40] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let refused = RecoveryPlan::make(&[knows]).expect_err("it is damaged").to_string();
    assert!(refused.contains("data-1 cannot be used: its log is damaged"), "{refused}");
}

#[test]
fn a_long_log_is_written_in_pieces() {
    let entry = |number: u64| LogEntry {
        view: View(1),
        time: WallTime(number),
        payload: Payload::Register { nonce: number },
    };
    let remains = Remains {
        last_normal: View(1),
        commit: OpNumber(0),
        base: OpNumber(7),
        base_time: WallTime(0),
        entries: (1..=200_000).map(entry).collect(),
        dlog: Vec::new(),
    };
    let (mut records, mut next) = (0, 7);
    for_each_transfer(&remains, |record| -> Result<(), Infallible> {
        let Record::Transfer { base, entries } = record else { panic!("{record:?}") };
        assert!(base.0 == next && !entries.is_empty());
        records += 1;
        next += entries.len() as u64;
        Ok(())
    })
    .unwrap();
    assert!(records > 5 && next == 200_007, "{records}");
}

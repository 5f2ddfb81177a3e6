//! `syros inspect`: what it says of directories that are intact, in use and damaged.

mod common;

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use common::{Dev, Redis, Scratch, free_ports, run, syros, text, wait_for_end};
use syros_types::{OpNumber, ReplicaId, View, WallTime};
use syros_wal::{FileDisk, Options, SnapshotHeader, SnapshotWriter, Wal};

const CLUSTER: u64 = 0x77;

fn inspect(directory: &Path, options: &[&str]) -> Output {
    run(syros().arg("inspect").arg(directory).args(options))
}

/// Exit status and what it printed.
fn told(directory: &Path) -> (Option<i32>, String) {
    let output = inspect(directory, &[]);
    assert!(output.stderr.is_empty(), "{}", text(&output));
    (output.status.code(), text(&output))
}

#[track_caller]
fn assert_told(directory: &Path, status: i32, lines: &[&str]) -> String {
    let (code, text) = told(directory);
    assert_eq!(code, Some(status), "{text}");
    for line in lines {
        assert!(text.contains(line), "'{line}' is missing in\n{text}");
    }
    text
}

/// A replica's directory with six records and two snapshots.
fn directory(scratch: &Scratch) -> PathBuf {
    let path = scratch.0.join("data");
    fs::create_dir_all(&path).unwrap();
    let identity = "syros replica identity\nformat = 1\ncluster = 0000000000000077\nreplica = 1\n\
                    replicas = 3\nfast-quorum = majority\ndurability = fsync\n";
    fs::write(path.join("identity"), identity).unwrap();
    let disk = FileDisk::open(&path.join("wal")).unwrap();
    let options = Options {
        may_create: true,
        segment_bytes: 50,
        reserve_bytes: 1,
        ..Options::new(CLUSTER, ReplicaId(1))
    };
    let (mut wal, _) = Wal::open(disk, options, |_, _| Ok::<(), Infallible>(())).unwrap();
    for view in 1..=6 {
        // Record::View, as the golden bytes of crate wire have it.
        wal.append(&[&[1, view, view - 1]]).unwrap();
        wal.flush().unwrap();
        wal.sync().unwrap();
    }
    // Opened once: a process that another test begins just now has the lock too, until it becomes another
    // program.
    let mut disk = FileDisk::open(&path.join("snapshots")).unwrap();
    for number in [5, 9] {
        let header = SnapshotHeader {
            cluster: CLUSTER,
            op_number: OpNumber(number),
            view: View(4),
            time: WallTime(1_740_787_199_000_007),
        };
        let mut writer = SnapshotWriter::create(&mut disk, header).unwrap();
        writer.block(&mut disk, 1, b"hello").unwrap();
        writer.finish(&mut disk).unwrap();
    }
    path
}

/// The segments, in order.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("wal")).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    segments.sort();
    segments
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn stores_that_were_set_aside_are_told_and_are_no_problem() {
    let scratch = Scratch::new("inspect-set-aside");
    let path = directory(&scratch);
    for (name, bytes) in [("damaged-10", 7), ("damaged-2", 100), ("damaged-goods", 5)] {
        fs::create_dir_all(path.join(name).join("wal")).unwrap();
        fs::write(path.join(name).join("wal/wal-00000000000000000001.log"), vec![0; bytes]).unwrap();
        fs::write(path.join(name).join("more"), b"12345").unwrap();
    }
    let found = assert_told(
        &path,
        0,
        &["set aside   damaged-2  bytes 105  (", "set aside   damaged-10  bytes 12  ("],
    );
    assert!(found.find("damaged-2 ") < found.find("damaged-10 ") && !found.contains("goods"), "{found}");
    let json = text(&inspect(&path, &["--json"]));
    let part =
        "\"set_aside\":[{\"name\":\"damaged-2\",\"bytes\":105},{\"name\":\"damaged-10\",\"bytes\":12}]";
    assert!(json.contains(part), "{json}");
}

#[test]
fn an_intact_directory() {
    let scratch = Scratch::new("inspect-intact");
    let path = directory(&scratch);
    let found = assert_told(
        &path,
        0,
        &[
            "identity    replica 1 of 3 of cluster 0000000000000077 (made with fast quorum majority, durability fsync, engine memory)\n",
            "segment     wal-00000000000000000001.log  bytes 63  records 1 (1 to 1)\n",
            "records     view 6  accept 0  append 0  transfer 0  enter_view 0  checkpoint 0  forgot 0  \
             other_configuration 0  malformed 0\n",
            "newest view 6\n",
            "snapshot    snapshot-00000000000000000009.snap  op 9  bytes 87  blocks 1  view 4  \
             time 2025-02-28T23:59:59.000007Z  ok\n",
        ],
    );
    assert!(found.ends_with("\nintact\n"), "{found}");
    let json = text(&inspect(&path, &["--json"]));
    for part in [
        "{\"directory\":\"",
        "\"identity\":{\"cluster\":\"0000000000000077\",\"replica\":1,\"replicas\":3,",
        "\"in_use\":false,\"segments\":[{\"file\":\"wal-00000000000000000001.log\",\"bytes\":63,\"room\":0,\"records\":1,",
        "\"records\":{\"view\":6,\"accept\":0,",
        "\"newest_view\":6,\"newest_epoch\":0,\"snapshots\":[{\"file\":\"snapshot-00000000000000000005.snap\",\"op\":5,",
        "\"set_aside\":[],\"problems\":[],\"intact\":true}\n",
    ] {
        assert!(json.contains(part), "'{part}' is missing in {json}");
    }
    // Without snapshots, and with what a crash leaves.
    fs::remove_dir_all(path.join("snapshots")).unwrap();
    let last = segments(&path).pop().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    bytes.extend_from_slice(&[9, 0, 0, 0, 1]);
    fs::write(&last, &bytes).unwrap();
    let found =
        assert_told(&path, 0, &["torn end    wal-0", "the last 5 bytes, from offset 63 on, are torn"]);
    assert!(found.ends_with("\nintact\n"), "{found}");
    assert_eq!(fs::read(&last).unwrap(), bytes, "nothing is cut");
}

#[test]
fn damage_of_every_kind_is_told_at_once() {
    let scratch = Scratch::new("inspect-damage");
    let path = directory(&scratch);
    let all = segments(&path);
    assert_eq!(all.len(), 6);
    flip(&all[0], 20);
    flip(&all[2], 46);
    fs::remove_file(&all[3]).unwrap();
    fs::write(path.join("wal/wal-7.log"), "").unwrap();
    flip(&path.join("snapshots/snapshot-00000000000000000005.snap"), 60);
    let nine = path.join("snapshots/snapshot-00000000000000000009.snap");
    let bytes = fs::read(&nine).unwrap();
    fs::write(&nine, &bytes[..62]).unwrap();
    fs::write(path.join("snapshots/snapshot-00000000000000000010.snap.tmp"), "").unwrap();
    let found = assert_told(
        &path,
        1,
        &[
            "problem     wal-00000000000000000001.log at 0: the checksum of the segment header does not match\n",
            "problem     wal-00000000000000000003.log at 36: record 3 is bad (its checksum does not match) and \
             this is not the last segment\n",
            "problem     wal-7.log: not a file of this log",
            "problem     snapshot-00000000000000000005.snap at 48: block 0 is bad (its checksum does not match)\n",
            "problem     snapshot-00000000000000000009.snap at 62: it ends after 1 blocks without a last one\n",
            "unfinished  snapshot-00000000000000000010.snap.tmp\n",
            "records     view 3  ",
            "\nnewest view 6\n",
        ],
    );
    assert!(found.ends_with("\n5 problems\n"), "{found}");
    let json = inspect(&path, &["--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json = text(&json);
    assert!(json.contains("\"file\":\"wal-00000000000000000003.log\",\"offset\":36}"), "{json}");
    assert!(json.ends_with("\"intact\":false}\n"), "{json}");
}

#[test]
fn missing_parts_and_nonsense_are_told() {
    let scratch = Scratch::new("inspect-missing");
    let path = directory(&scratch);
    fs::remove_file(&segments(&path)[3]).unwrap();
    let found = assert_told(&path, 1, &["at 0: a segment that begins with record 4 is missing\n"]);
    assert!(found.ends_with("\n1 problem\n"), "{found}");

    fs::remove_dir_all(path.join("wal")).unwrap();
    assert_told(&path, 1, &["problem     there is no write-ahead log\n"]);
    let disk = FileDisk::open(&path.join("wal")).unwrap();
    let options = Options { may_create: true, ..Options::new(CLUSTER, ReplicaId(2)) };
    let (mut wal, _) = Wal::open(disk, options, |_, _| Ok::<(), Infallible>(())).unwrap();
    wal.append(&[b"\xffnonsense"]).unwrap();
    // Record::View of group 3, epoch 7, as the golden bytes of crate wire have it.
    wal.append(&[&[9, 3, 7, 1, 5, 4]]).unwrap();
    wal.flush().unwrap();
    let process = std::process::id();
    let in_use = format!("in use      by process {process}: the end of the log");
    assert_told(&path, 1, &["at 0: it belongs to replica 2, not replica 1\n", &in_use]);
    drop(wal);
    fs::remove_file(path.join("identity")).unwrap();
    assert_told(
        &path,
        1,
        &[
            "there is no identity: this is no replica's directory\n",
            "record 1 is intact and says nothing sensible",
            "record 2 is intact and of another configuration: it names group 3, epoch 7; here it is group 0, epoch 0\n",
            "other_configuration 1  malformed 1\n",
        ],
    );
    fs::write(path.join("identity"), "rubbish").unwrap();
    let found = assert_told(&path, 1, &["identity file", "is damaged: its first line"]);
    assert!(found.ends_with("\n3 problems\n"), "{found}");
}

#[test]
fn bad_usage_and_a_reader_that_has_seen_enough() {
    let scratch = Scratch::new("inspect-usage");
    let missing = inspect(&scratch.0.join("nothing"), &[]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing));
    assert!(text(&missing).contains("syros: cannot inspect "), "{}", text(&missing));
    assert_eq!(run(syros().arg("inspect")).status.code(), Some(2));
    fs::write(scratch.0.join("file"), "").unwrap();
    assert_eq!(inspect(&scratch.0.join("file"), &[]).status.code(), Some(2));

    let path = directory(&scratch);
    let mut process =
        syros().arg("inspect").arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    assert!(wait_for_end(&mut process).success());
    let output = process.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", text(&output));
}

#[test]
fn a_node_may_be_running() {
    let scratch = Scratch::new("inspect-running");
    let cluster = scratch.0.join("cluster");
    let dev = Dev::start(&cluster, free_ports(), &["--replicas", "1"]);
    let node = dev.nodes[0].clone();
    let mut redis = Redis::connect(node.redis);
    for number in 0..20 {
        assert_eq!(redis.ask(&["SET", &format!("key{number}"), "value"]), "+OK");
    }
    let in_use = format!("in use      by process {}: ", node.pid);
    assert_told(&cluster.join("node-0"), 0, &["replica 0 of 1 of cluster", &in_use, "ops         1 to "]);
    assert!(dev.stop().success());
    let found = assert_told(&cluster.join("node-0"), 0, &["malformed 0\n"]);
    assert!(!found.contains("in use") && found.ends_with("\nintact\n"), "{found}");
}

//! Stores that are damaged, while their replica is away and while it runs: it repairs itself from the
//! others, or refuses to start and says why, and never serves anything wrong.

use crate::common::{Redis, Scratch, copy_directory, run, syros, text, wait_for};
use crate::load::Load;
use crate::setup::{GIVE_UP_AFTER, PATIENCE, alone, say, sleep};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::time::Instant;
use syros_bench::cluster::{Cluster, ClusterOptions};
use syros_protocol::message::RoleName;
use syros_types::{OpNumber, ReplicaId, View, WallTime};
use syros_wal::{
    Disk as _, FileDisk, HEADER_BYTES, MARK_BYTES, RECORD_HEADER_BYTES, RecordNumber, SegmentHeader,
    SnapshotHeader, SnapshotWriter, recover_segment, segment_name, snapshot_name, write_atomically,
};

/// So many keys are written again and again.
const KEYS: usize = 40;

/// Length of a value: a segment takes eight of them.
const VALUE_BYTES: usize = 8 << 10;

/// Length of the page that is zeroed.
const PAGE_BYTES: u64 = 4096;

/// Small segments, snapshots and logs, so that all of them occur with little data.
const SMALL: &str = "[limits]\nsnapshot-log = \"1MiB\"\nlog-keep = \"0\"\n\n\
                     [disk]\nwal-segment = \"64KiB\"\nscrub-interval = \"0s\"\n";

/// A cluster on loopback whose clients know what they have written.
struct Setup {
    // In the order in which they must go.
    cluster: Cluster,
    scratch: Scratch,
    _alone: MutexGuard<'static, ()>,
    /// What the value of every key begins with.
    written: Vec<usize>,
    writes: usize,
}

fn start(test: &str, settings: &str) -> Setup {
    let (alone, scratch) = (alone(), Scratch::new(test));
    let mut cluster = Cluster::start(ClusterOptions {
        program: syros().get_program().into(),
        directory: scratch.0.join("cluster"),
        replicas: 3,
        spare: 0,
        namespaces: false,
        regions: None,
        settings: format!("{settings}\n[timing]\noperation-timeout = \"{}ms\"", GIVE_UP_AFTER.as_millis()),
    })
    .unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    Setup { cluster, scratch, _alone: alone, written: vec![0; KEYS], writes: 0 }
}

fn value(number: usize) -> String {
    format!("{number}:{}", "v".repeat(VALUE_BYTES))
}

impl Setup {
    fn redis(&self, node: usize) -> Redis {
        Redis::connect_to(self.cluster.redis_address(node), GIVE_UP_AFTER * 2).unwrap()
    }

    /// Sets so many keys; every write is acknowledged.
    fn write(&mut self, redis: &mut Redis, keys: usize) {
        let numbers: Vec<usize> = (0..keys).map(|key| self.writes + key + 1).collect();
        for number in &numbers {
            redis.send(&["SET", &format!("key{}", number % KEYS), &value(*number)]).unwrap();
        }
        for number in numbers {
            assert_eq!(redis.reply().unwrap(), "+OK");
            self.written[number % KEYS] = number;
            self.writes = number;
        }
    }

    fn data(&self, node: usize) -> PathBuf {
        self.cluster.directory(node).join("data")
    }

    /// Writes until the node has a snapshot and several segments, the last with several records, and kills
    /// it then.
    fn kill_when_full(&mut self, node: usize) {
        // This writes megabytes and syncs all the time, perhaps on a busy disk.
        let deadline = Instant::now() + 4 * PATIENCE;
        let other = (node + 1) % 3;
        let mut redis = self.redis(other);
        loop {
            // Few at a time: what is written together can be one record.
            self.write(&mut redis, 3);
            if !is_full(&self.data(node)) {
                assert!(Instant::now() < deadline, "{}", self.cluster.log(node));
                continue;
            }
            sleep(30);
            self.cluster.kill(node).unwrap();
            if is_full(&self.data(node)) {
                return;
            }
            // It was just about to remove something.
            self.cluster.restart(node).unwrap();
            self.cluster.wait_until_well(PATIENCE).unwrap();
        }
    }

    /// All replicas are well, have the same, and this one leads and has everything right.
    fn must_serve(&mut self, node: usize, case: &str) {
        self.cluster.wait_until_well(PATIENCE).unwrap_or_else(|error| {
            panic!("{case}: {error}\n{}", self.cluster.log(node));
        });
        let address = self.cluster.redis_address(node).to_string();
        wait_for("the repaired replica to lead", || {
            run(syros().args(["lead", &node.to_string(), "--addr", &address])).status.success().then_some(())
        });
        let mut redis = self.redis(node);
        for (key, number) in self.written.clone().into_iter().enumerate().filter(|(_, number)| *number > 0) {
            assert_eq!(redis.ask(&["GET", &format!("key{key}")]), value(number), "{case}: key{key}");
        }
        self.write(&mut redis, 1);
        wait_for("the same in all replicas", || {
            let reports = self.cluster.reports();
            let applied: BTreeSet<u64> = reports.iter().flatten().map(|report| report.applied).collect();
            (reports.iter().all(Option::is_some) && applied.len() == 1).then_some(())
        });
    }

    /// What a node has logged after the first `from` bytes.
    fn log_since(&self, node: usize, from: usize) -> String {
        self.cluster.log(node).split_off(from)
    }
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    paths.sort();
    paths
}

/// What a restart reads of the log, and not what is kept beside it for those who copy it.
fn segments(data: &Path) -> Vec<PathBuf> {
    let mut files = files(&data.join("wal"), "log");
    files.retain(|path| name(path).starts_with("wal-"));
    files
}

fn snapshots(data: &Path) -> Vec<PathBuf> {
    files(&data.join("snapshots"), "snap")
}

/// The directories in which damaged stores are kept.
fn set_aside(data: &Path) -> usize {
    let entries = fs::read_dir(data).unwrap();
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("damaged-"))
        .count()
}

/// True if there is a snapshot, and segments that can be damaged in every way: in the last one, something
/// must follow what is damaged.
fn is_full(data: &Path) -> bool {
    let segments = segments(data);
    if segments.len() < 4 || snapshots(data).len() != 1 {
        return false;
    }
    let last = segments.last().and_then(|last| fs::read(last).ok()).unwrap_or_default();
    // What is before the last mark cannot be a torn tail.
    recover_segment(&last).is_ok_and(|contents| contents.marked_bytes as u64 > 3 * PAGE_BYTES)
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DamagedPart {
    FirstSegment,
    MiddleSegment,
    LastSegment,
    Snapshot,
    Identity,
    View,
    Log,
    Snapshots,
    LogAndView,
}

impl DamagedPart {
    const fn text(self) -> &'static str {
        match self {
            Self::FirstSegment => "first segment of the log",
            Self::MiddleSegment => "middle segment of the log",
            Self::LastSegment => "last segment of the log",
            Self::Snapshot => "snapshot",
            Self::Identity => "identity",
            Self::View => "view",
            Self::Log => "directory wal",
            Self::Snapshots => "directory snapshots",
            Self::LogAndView => "directory wal, and view",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    FlippedBit,
    FlippedVersion,
    Truncated,
    Missing,
    OtherReplicas,
    OtherClusters,
    ZeroedPage,
    Garbage,
    TornTail,
}

impl Damage {
    const fn text(self) -> &'static str {
        match self {
            Self::FlippedBit => "flipped bit",
            Self::FlippedVersion => "flipped bit in the format version",
            Self::Truncated => "cut in the middle",
            Self::Missing => "missing",
            Self::OtherReplicas => "another replica's",
            Self::OtherClusters => "another cluster's",
            Self::ZeroedPage => "zeroed page",
            Self::Garbage => "garbage file with such a name beside it",
            Self::TornTail => "torn tail",
        }
    }
}

/// What a replica does when it is started with damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// Sets its store aside and gets everything from the others.
    Repaired,
    /// Has all it needs, and does without or writes anew what is damaged.
    Unharmed,
    /// Cuts the end of the log off.
    Cut,
    Refused,
}

impl Reaction {
    const fn text(self) -> &'static str {
        match self {
            Self::Repaired => "set aside; repaired from the others",
            Self::Unharmed => "not needed, or written anew; nothing is repaired",
            Self::Cut => "cut; what is missing comes from the others",
            Self::Refused => "refuses to start, and says what to do",
        }
    }
}

/// All cases.
fn cases() -> Vec<(DamagedPart, Damage, Reaction)> {
    use {Damage as D, DamagedPart as T, Reaction as R};
    let mut cases = Vec::new();
    for place in [T::FirstSegment, T::MiddleSegment, T::LastSegment] {
        for kind in [D::FlippedBit, D::Truncated, D::Missing, D::OtherReplicas, D::ZeroedPage, D::Garbage] {
            let looks_torn = place == T::LastSegment && kind == D::Truncated;
            cases.push((place, kind, if looks_torn { R::Cut } else { R::Repaired }));
        }
    }
    cases.push((T::FirstSegment, D::FlippedVersion, R::Repaired));
    cases.push((T::MiddleSegment, D::OtherClusters, R::Repaired));
    cases.push((T::LastSegment, D::TornTail, R::Cut));
    for kind in [D::FlippedBit, D::FlippedVersion, D::Truncated, D::Missing, D::OtherClusters, D::ZeroedPage]
    {
        cases.push((T::Snapshot, kind, R::Repaired));
    }
    cases.push((T::Snapshot, D::Garbage, R::Unharmed));
    cases.push((T::Log, D::Missing, R::Repaired));
    cases.push((T::Snapshots, D::Missing, R::Repaired));
    for (place, outcome) in [(T::View, R::Unharmed), (T::Identity, R::Refused)] {
        for kind in [D::FlippedBit, D::Truncated, D::Missing, D::OtherReplicas, D::ZeroedPage] {
            cases.push((place, kind, outcome));
        }
    }
    cases.push((T::LogAndView, D::Missing, R::Refused));
    cases
}

/// Where the damage is done.
struct Target<'a> {
    data: &'a Path,
    /// The data of another replica.
    other: &'a Path,
    scratch: &'a Path,
}

impl Target<'_> {
    fn cluster() -> u64 {
        u64::from(std::process::id()) + 1
    }

    /// Does it; gives what the log of the replica must say.
    fn damage(&self, place: DamagedPart, kind: Damage) -> Vec<String> {
        let segments = segments(self.data);
        let at = match place {
            DamagedPart::FirstSegment => 0,
            DamagedPart::MiddleSegment => segments.len() / 2,
            DamagedPart::LastSegment => segments.len() - 1,
            DamagedPart::Snapshot => return self.damage_snapshot(kind),
            DamagedPart::Identity => return self.damage_identity(kind),
            DamagedPart::View => return self.damage_view(kind),
            DamagedPart::Log => {
                fs::remove_dir_all(self.data.join("wal")).unwrap();
                return vec!["there is no write-ahead log".to_owned()];
            }
            DamagedPart::Snapshots => {
                let snapshot = name(&snapshots(self.data)[0]);
                fs::remove_dir_all(self.data.join("snapshots")).unwrap();
                return vec![format!("{snapshot} is missing")];
            }
            DamagedPart::LogAndView => {
                fs::remove_dir_all(self.data.join("wal")).unwrap();
                fs::remove_file(self.data.join("view/view")).unwrap();
                return vec!["there is no write-ahead log".to_owned(), "view/view".to_owned()];
            }
        };
        let (path, next) = (&segments[at], segments.get(at + 1));
        self.damage_segment(path, next, place, kind)
    }

    fn damage_segment(
        &self,
        path: &Path,
        next: Option<&PathBuf>,
        place: DamagedPart,
        kind: Damage,
    ) -> Vec<String> {
        let first: u64 = name(path).trim_start_matches("wal-").trim_end_matches(".log").parse().unwrap();
        let mut bytes = fs::read(path).unwrap();
        // Behind that, there is only room.
        let valid = recover_segment(&bytes).unwrap().valid_bytes;
        let of = |reason: &str| vec![format!("{} at offset ", name(path)), reason.to_owned()];
        match kind {
            Damage::FlippedBit => {
                // Early in the last segment: other records must follow.
                flip(
                    path,
                    if place == DamagedPart::LastSegment {
                        HEADER_BYTES as u64 + 20
                    } else {
                        valid as u64 / 2
                    },
                );
                of("is bad")
            }
            Damage::FlippedVersion => {
                flip(path, 8);
                of("checksum of the segment header")
            }
            Damage::Truncated => {
                let length = within_a_record(&bytes, valid as u64 / 2);
                OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
                if place == DamagedPart::LastSegment {
                    return vec![format!("of {}", name(path)), "cut ".to_owned(), "is torn".to_owned()];
                }
                of("is bad")
            }
            Damage::ZeroedPage => {
                // Records are in it: one that is too long for the rest of a segment begins the next one.
                let page = if valid as u64 > 2 * PAGE_BYTES { PAGE_BYTES } else { HEADER_BYTES as u64 + 20 };
                let length = PAGE_BYTES.min(valid as u64 - page);
                let file = OpenOptions::new().write(true).open(path).unwrap();
                file.write_all_at(&vec![0; length as usize], page).unwrap();
                of("is bad")
            }
            Damage::Missing => {
                fs::remove_file(path).unwrap();
                match next {
                    None => of("it was the last segment, and is missing"),
                    Some(next) => vec![format!("{} at offset 0", name(next)), "missing".to_owned()],
                }
            }
            Damage::OtherReplicas => {
                let theirs = segments(self.other);
                fs::copy(&theirs[0], path).unwrap();
                of("it belongs to replica")
            }
            Damage::OtherClusters => {
                let header = SegmentHeader::decode(&bytes).unwrap();
                let header = SegmentHeader { cluster: header.cluster + 1, ..header };
                bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
                fs::write(path, bytes).unwrap();
                of("it belongs to cluster")
            }
            Damage::Garbage => {
                let first = match place {
                    DamagedPart::FirstSegment => first - 1,
                    DamagedPart::MiddleSegment => first + 1,
                    _ => first + 1_000_000,
                };
                let garbage = path.with_file_name(segment_name(RecordNumber(first)));
                fs::write(&garbage, "garbage".repeat(1000)).unwrap();
                vec![format!("{} at offset 0", name(&garbage))]
            }
            Damage::TornTail => {
                // The beginning of a record, as a write that was cut short leaves it.
                let torn = [[0, 16, 0, 0, 1, 2, 3, 4].as_slice(), &[7; 300]].concat();
                bytes.resize(bytes.len().max(valid + torn.len()), 0);
                bytes[valid..valid + torn.len()].copy_from_slice(&torn);
                let cut = bytes.len() - valid;
                fs::write(path, bytes).unwrap();
                vec![format!("cut {cut} bytes at offset {valid} of {}", name(path))]
            }
        }
    }

    fn damage_snapshot(&self, kind: Damage) -> Vec<String> {
        let path = &snapshots(self.data)[0];
        let length = fs::metadata(path).unwrap().len();
        let digits = name(path).trim_start_matches("snapshot-").trim_end_matches(".snap").to_owned();
        let op_number = OpNumber(digits.parse().unwrap());
        let damaged = |reason: &str| {
            vec![format!("the snapshot {} is damaged at offset ", name(path)), reason.to_owned()]
        };
        match kind {
            Damage::FlippedBit => {
                flip(path, length / 2);
                damaged("its checksum does not match")
            }
            Damage::FlippedVersion => {
                flip(path, 8);
                damaged("the checksum of the header")
            }
            Damage::Truncated => {
                OpenOptions::new().write(true).open(path).unwrap().set_len(length / 2).unwrap();
                damaged("the file ends in the middle")
            }
            Damage::ZeroedPage => {
                let file = OpenOptions::new().write(true).open(path).unwrap();
                file.write_all_at(&[0; PAGE_BYTES as usize], 10 * PAGE_BYTES).unwrap();
                damaged("is bad")
            }
            Damage::Missing => {
                fs::remove_file(path).unwrap();
                vec![format!("{} is missing", name(path))]
            }
            Damage::OtherClusters | Damage::OtherReplicas => {
                let elsewhere = self.scratch.join("elsewhere");
                let mut disk = FileDisk::open(&elsewhere).unwrap();
                let (cluster, view, time) = (Self::cluster() + 1, View(1), WallTime(1));
                let header = SnapshotHeader { cluster, op_number, view, time };
                let mut writer = SnapshotWriter::create(&mut disk, header).unwrap();
                writer.block(&mut disk, 1, b"theirs").unwrap();
                writer.finish(&mut disk).unwrap();
                fs::copy(elsewhere.join(snapshot_name(op_number)), path).unwrap();
                disk.remove(&snapshot_name(op_number)).unwrap();
                damaged("it belongs to cluster")
            }
            Damage::Garbage => {
                let garbage = path.with_file_name(snapshot_name(OpNumber(op_number.0 + 1_000_000)));
                fs::write(garbage, "garbage").unwrap();
                Vec::new()
            }
            Damage::TornTail => unreachable!("a snapshot has its name when it is whole"),
        }
    }

    fn damage_identity(&self, kind: Damage) -> Vec<String> {
        let path = self.data.join("identity");
        let good = fs::read(&path).unwrap();
        let file = path.display().to_string();
        let damaged = || vec![format!("identity file {file} is damaged"), "put it back".to_owned()];
        match kind {
            Damage::FlippedBit => {
                // A digit of the cluster's number, which makes it another good one.
                let text = String::from_utf8(good).unwrap();
                let at = text.find("cluster = ").unwrap() + "cluster = ".len();
                flip(&path, at as u64);
                vec!["belongs to".to_owned(), file]
            }
            Damage::Truncated => {
                fs::write(&path, &good[..good.len() / 2]).unwrap();
                damaged()
            }
            Damage::ZeroedPage => {
                fs::write(&path, vec![0; good.len()]).unwrap();
                damaged()
            }
            Damage::Missing => {
                fs::remove_file(&path).unwrap();
                damaged()
            }
            _ => {
                fs::copy(self.other.join("identity"), &path).unwrap();
                vec!["belongs to".to_owned(), file]
            }
        }
    }

    fn damage_view(&self, kind: Damage) -> Vec<String> {
        let path = self.data.join("view/view");
        let good = fs::read(&path).unwrap();
        let anew = "it is written anew".to_owned();
        match kind {
            Damage::FlippedBit => flip(&path, good.len() as u64 - 1),
            Damage::Truncated => fs::write(&path, &good[..good.len() / 2]).unwrap(),
            Damage::ZeroedPage => fs::write(&path, vec![0; good.len()]).unwrap(),
            Damage::Missing => {
                fs::remove_file(&path).unwrap();
                return vec!["view/view is missing".to_owned(), anew];
            }
            _ => {
                fs::copy(self.other.join("view/view"), &path).unwrap();
                return vec!["view/view belongs to replica".to_owned(), anew];
            }
        }
        vec!["view/view is damaged".to_owned(), anew]
    }
}

/// The place in a segment, or the next one after it, that is not where a record or a mark ends and another
/// begins: a log that was cut there is whole.
fn within_a_record(segment: &[u8], place: u64) -> u64 {
    let mut start = HEADER_BYTES;
    loop {
        let end = start
            + match segment[start..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) {
                u32::MAX => MARK_BYTES,
                length => RECORD_HEADER_BYTES + length as usize,
            };
        if end as u64 > place {
            return place.max(start as u64 + 1);
        }
        start = end;
    }
}

/// One line of the table in docs/TESTING.md for every case.
#[test]
fn every_kind_of_damage_in_every_place_is_repaired_or_refused() {
    let mut setup = start("damage", SMALL);
    let began = Instant::now();
    let mut table = String::from("| place | damage | what the replica does |\n|---|---|---|\n");
    for (place, kind, outcome) in cases() {
        let case = format!("{}, {}", place.text(), kind.text());
        // Never the one that leads: every case would take a change of views.
        let node = (setup.cluster.wait_until_well(PATIENCE).unwrap() + 1) % 3;
        setup.kill_when_full(node);
        let (data, other) = (setup.data(node), setup.data((node + 1) % 3));
        let kept = setup.scratch.0.join("kept");
        if outcome == Reaction::Refused {
            copy_directory(&data, &kept);
        }
        let target = Target { data: &data, other: &other, scratch: &setup.scratch.0 };
        let expected = target.damage(place, kind);
        let (before, logged) = (set_aside(&data), setup.cluster.log(node).len());
        // What it does not have at all.
        let mut redis = setup.redis((node + 1) % 3);
        setup.write(&mut redis, 10);

        setup.cluster.restart(node).unwrap();
        if outcome == Reaction::Refused {
            assert!(setup.cluster.wait_until_ended(node, PATIENCE).unwrap(), "{case}: no error");
            let log = setup.log_since(node, logged);
            assert!(expected.iter().all(|part| log.contains(part)), "{case}: {expected:?} in\n{log}");
            fs::remove_dir_all(&data).unwrap();
            fs::rename(&kept, &data).unwrap();
            setup.cluster.restart(node).unwrap();
        }
        setup.must_serve(node, &case);
        let log = setup.log_since(node, logged);
        assert!(expected.iter().all(|part| log.contains(part)), "{case}: {expected:?} in\n{log}");
        let repaired = usize::from(outcome == Reaction::Repaired);
        assert_eq!(set_aside(&data) - before, repaired, "{case}:\n{log}");
        writeln!(table, "| {} | {} | {} |", place.text(), kind.text(), outcome.text()).unwrap();
    }
    say(&format!("{table}damaged stores: {:?}", began.elapsed()));
}

#[test]
fn two_of_three_are_damaged_one_after_the_other() {
    let mut setup = start("two-damaged", SMALL);
    let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
    setup.kill_when_full((leader + 1) % 3);
    for node in [(leader + 1) % 3, (leader + 2) % 3, leader] {
        let data = setup.data(node);
        if node != (leader + 1) % 3 {
            // At once, and with what the repair has left there: what it got is all the group has.
            setup.cluster.kill(node).unwrap();
            wait_for("a leader", || setup.cluster.leader());
        }
        fs::remove_dir_all(data.join("wal")).unwrap();
        setup.cluster.restart(node).unwrap();
        setup.must_serve(node, &format!("node {node}"));
        assert_eq!(set_aside(&data), 1);
    }
}

/// Two members without memory cannot know what the group had acknowledged, and the third alone cannot
/// either.
#[test]
fn a_group_whose_majority_is_damaged_at_once_serves_nothing() {
    let mut setup = start("majority-damaged", SMALL);
    let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
    let mut redis = setup.redis(leader);
    setup.write(&mut redis, 100);
    (0..3).for_each(|node| setup.cluster.kill(node).unwrap());
    let intact = (leader + 2) % 3;
    for node in (0..3).filter(|node| *node != intact) {
        let first = &segments(&setup.data(node))[0];
        flip(first, fs::metadata(first).unwrap().len() / 2);
    }
    (0..3).for_each(|node| setup.cluster.restart(node).unwrap());
    wait_for("two replicas to be without memory", || {
        let reports = setup.cluster.reports();
        let roles = reports.iter().flatten().filter(|report| report.role == RoleName::Recovering);
        (roles.count() == 2).then_some(())
    });
    let deadline = Instant::now() + GIVE_UP_AFTER / 2;
    while Instant::now() < deadline {
        assert_eq!(setup.cluster.leader(), None);
        sleep(50);
    }
    // All of them run out of time, at the same time.
    let mut clients: Vec<Redis> = (0..3).map(|node| setup.redis(node)).collect();
    for redis in &mut clients {
        redis.send(&["GET", "key1"]).unwrap();
        redis.send(&["SET", "key1", "x"]).unwrap();
    }
    for redis in &mut clients {
        for answer in [redis.reply().unwrap(), redis.reply().unwrap()] {
            assert!(answer.starts_with('-'), "{answer}");
        }
    }
    let addresses: Vec<String> = setup.cluster.addresses().iter().map(ToString::to_string).collect();
    let status = run(syros().args(["status", "--replicas", &addresses.join(",")]));
    let printed = text(&status);
    assert_eq!(status.status.code(), Some(1), "{printed}");
    assert_eq!(printed.matches("recovering").count(), 2, "{printed}");
    assert!(printed.contains("no replica leads with a majority"), "{printed}");
    say(&printed);
}

/// Without anybody's help, while clients go on: first a follower, then the leader.
#[test]
fn rot_in_the_store_of_a_running_replica_is_found_and_repaired() {
    let settings = "[limits]\nsnapshot-log = \"64MiB\"\n\n\
                    [disk]\nwal-segment = \"64KiB\"\nscrub-interval = \"1s\"\nscrub-rate = \"1GiB\"\n";
    let mut setup = start("rot", settings);
    let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
    let mut redis = setup.redis(leader);
    setup.write(&mut redis, 60);
    let load = Load::start(&setup.cluster, 3);
    for leads in [false, true] {
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let node = if leads { leader } else { (leader + 1) % 3 };
        let data = setup.data(node);
        let old = wait_for("finished segments", || {
            let segments = segments(&data);
            (segments.len() > 2).then(|| segments[segments.len() - 2].clone())
        });
        flip(&old, fs::metadata(&old).unwrap().len() / 2);
        wait_for("the damaged store to be set aside", || (set_aside(&data) == 1).then_some(()));
        let log = setup.cluster.log(node);
        assert!(log.contains(&format!("file={} offset=", old.display())), "{log}");
        load.must_go_on();
        setup.cluster.wait_until_well(PATIENCE).unwrap();
        // So that it has finished segments again. The connection to the node that started anew is gone.
        redis = setup.redis((node + 1) % 3);
        setup.write(&mut redis, 60);
    }
    // The file of the view is written anew, and nothing else happens.
    let node = (setup.cluster.wait_until_well(PATIENCE).unwrap() + 1) % 3;
    let (view, before) = (setup.data(node).join("view/view"), set_aside(&setup.data(node)));
    flip(&view, fs::metadata(&view).unwrap().len() - 1);
    wait_for("the view to be written anew", || {
        setup.cluster.log(node).contains("it is written anew").then_some(())
    });
    sleep(100);
    assert_eq!(set_aside(&setup.data(node)), before);
    load.must_go_on();
    load.finish("rot");
    setup.must_serve(node, "after all");
}

/// Nobody could repair it: it goes on, and says so in every round.
#[test]
fn rot_in_the_store_of_a_lone_replica_is_reported() {
    let (_alone, scratch) = (alone(), Scratch::new("lone-rot"));
    let settings = "[disk]\nwal-segment = \"64KiB\"\nscrub-interval = \"500ms\"\nscrub-rate = \"1GiB\"";
    let mut cluster = Cluster::start(ClusterOptions {
        program: syros().get_program().into(),
        directory: scratch.0.join("cluster"),
        replicas: 1,
        spare: 0,
        namespaces: false,
        regions: None,
        settings: settings.to_owned(),
    })
    .unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    let mut redis = Redis::connect_to(cluster.redis_address(0), GIVE_UP_AFTER).unwrap();
    for number in 0..40 {
        assert_eq!(redis.ask(&["SET", &format!("key{number}"), &value(number)]), "+OK");
    }
    let data = cluster.directory(0).join("data");
    let first = segments(&data)[0].clone();
    flip(&first, fs::metadata(&first).unwrap().len() / 2);
    let complaint = format!("file={} offset=", first.display());
    wait_for("two rounds", || (cluster.log(0).matches(&complaint).count() >= 2).then_some(()));
    assert_eq!(redis.ask(&["GET", "key7"]), value(7));
    cluster.kill(0).unwrap();
    cluster.restart(0).unwrap();
    assert!(cluster.wait_until_ended(0, PATIENCE).unwrap());
    let log = cluster.log(0);
    assert!(log.contains("there is no other replica") && log.contains("syros inspect"), "{log}");
    assert_eq!(set_aside(&data), 0);
}

/// The view in the file of a replica is its own: it is not taken from another.
#[test]
fn a_first_start_is_refused_where_a_view_was_reached() {
    let (_alone, scratch) = (alone(), Scratch::new("not-new"));
    let data = scratch.0.join("data");
    fs::create_dir_all(&data).unwrap();
    let mut disk = FileDisk::open(&data.join("view")).unwrap();
    let mut bytes = 7_u64.to_le_bytes().to_vec();
    bytes.extend_from_slice(&5_u64.to_le_bytes());
    bytes.push(ReplicaId(0).0);
    write_atomically(&mut disk, "view", &bytes).unwrap();
    drop(disk);
    let port = crate::common::free_ports();
    let config = scratch.0.join("node.toml");
    let replicas = format!("[\"127.0.0.1:{port}\"]");
    let listen = format!("[listen]\nredis = \"127.0.0.1:{}\"", port + 1);
    fs::write(
        &config,
        format!("cluster = 5\nreplicas = {replicas}\nreplica = 0\ndirectory = \"data\"\n{listen}\n"),
    )
    .unwrap();
    let output = run(syros().args(["server", "--bootstrap", "--config"]).arg(&config));
    assert!(!output.status.success() && text(&output).contains("has reached view 7"), "{}", text(&output));
}

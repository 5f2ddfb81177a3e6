//! Data directories on file systems that run full.

use crate::common::{Redis, Scratch, run, syros, text, wait_for};
use crate::setup::{GIVE_UP_AFTER, PATIENCE, alone, say, sleep};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};
use syros_bench::cluster::{Cluster, ClusterOptions, directory};

/// Size of the file system, in MiB.
const MEBIBYTES: u64 = 24;

/// A small file system of its own.
struct Small(PathBuf);

impl Small {
    /// None, and a line that says why, if this machine does not let us.
    fn mount(test: &str, scratch: &Scratch, at: PathBuf) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            say(&format!("test {test} is skipped: mounting a file system takes root"));
            return None;
        }
        let image = scratch.0.join(format!("image-{}", at.file_name().unwrap().display()));
        File::create(&image).unwrap().set_len(MEBIBYTES << 20).unwrap();
        std::fs::create_dir_all(&at).unwrap();
        for command in [
            Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image),
            Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at),
        ] {
            let name = command.get_program().display().to_string();
            if !std::env::split_paths(&std::env::var_os("PATH").unwrap())
                .any(|path| path.join(&name).exists())
            {
                say(&format!("test {test} is skipped: there is no {name} (Debian: e2fsprogs, mount)"));
                return None;
            }
            let output = run(command);
            if !output.status.success() {
                say(&format!("test {test} is skipped: {name}: {}", text(&output)));
                return None;
            }
        }
        Some(Self(at))
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes all space that is left.
    fn fill(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.ballast()).unwrap();
        let mut piece = vec![7; 1 << 20];
        while !piece.is_empty() {
            if file.write_all(&piece).and_then(|()| file.sync_all()).is_err() {
                piece.truncate(piece.len() / 2);
            }
        }
    }

    /// Takes all inodes that are left.
    fn take_inodes(&self) {
        std::fs::create_dir(self.ballast()).unwrap();
        while File::create(self.ballast().join(self.inodes().to_string())).is_ok() {}
    }

    /// Gives them back.
    fn give_inodes(&self) {
        std::fs::remove_dir_all(self.ballast()).unwrap();
    }

    /// Those that are left.
    fn inodes(&self) -> u64 {
        rustix::fs::statvfs(&self.0).unwrap().f_ffree
    }

    /// Gives it back.
    fn clear(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The nodes have ended, but the system may take a moment to notice that nobody uses it any more.
        for _ in 0..50 {
            if run(Command::new("umount").arg(&self.0)).status.success() {
                return;
            }
            sleep(20);
        }
        say(&format!("{} is still mounted", self.0.display()));
    }
}

/// A cluster on loopback; the data of node 0 is on a small file system.
struct Setup {
    // In the order in which they must go.
    cluster: Cluster,
    small: Small,
    _scratch: Scratch,
    _alone: MutexGuard<'static, ()>,
}

fn start(test: &str, replicas: usize) -> Option<Setup> {
    let (alone, scratch) = (alone(), Scratch::new(test));
    let small = Small::mount(test, &scratch, directory(&scratch.0.join("cluster"), 0))?;
    let mut cluster = Cluster::start(ClusterOptions {
        program: syros().get_program().into(),
        directory: scratch.0.join("cluster"),
        replicas,
        spare: 0,
        namespaces: false,
        regions: None,
        settings: format!("[timing]\noperation-timeout = \"{}ms\"", GIVE_UP_AFTER.as_millis()),
    })
    .unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    Some(Setup { cluster, small, _scratch: scratch, _alone: alone })
}

impl Setup {
    fn redis(&self, node: usize) -> Redis {
        Redis::connect_to(self.cluster.redis_address(node), GIVE_UP_AFTER * 2).unwrap()
    }

    /// Makes node 0 the leader.
    fn lead_by_first(&mut self) {
        for _ in 0..6 {
            let leader = self.cluster.wait_until_well(PATIENCE).unwrap();
            if leader == 0 {
                return;
            }
            self.cluster.kill(leader).unwrap();
            let is_led = || self.cluster.leader().filter(|new| *new != leader);
            wait_for("a new leader", is_led);
            self.cluster.restart(leader).unwrap();
        }
        panic!("node 0 does not come to lead");
    }
}

/// Sets keys until that is refused; gives the first key refused, and why. A record that finds room in what the
/// file system has given to the log already is no mistake.
fn fill_up(redis: &mut Redis) -> (usize, String) {
    let value = "x".repeat(10_000);
    (0..1000)
        .find_map(|number| {
            let answer = redis.ask(&["SET", &format!("key{number}"), &value]);
            (answer != "+OK").then_some((number, answer))
        })
        .expect("the disk is full")
}

#[test]
fn a_full_disk_is_named_reads_go_on_and_a_restart_recovers() {
    let Some(mut setup) = start("full", 1) else { return };
    let mut redis = setup.redis(0);
    for number in 0..50 {
        assert_eq!(redis.ask(&["SET", &format!("before{number}"), "value"]), "+OK");
    }
    setup.small.fill();
    let (refused, _) = fill_up(&mut redis);
    let errors = [redis.ask(&["SET", "after", "1"]), redis.ask(&["INCR", "counter"])];
    for error in &errors {
        assert!(error.starts_with("-TRYAGAIN") && error.contains("disk"), "{error}");
    }
    for number in 0..50 {
        assert_eq!(redis.ask(&["GET", &format!("before{number}")]), "value");
    }
    let log = setup.cluster.log(0);
    assert!(log.contains("is nearly full"), "{log}");

    setup.small.clear();
    setup.cluster.kill(0).unwrap();
    setup.cluster.restart(0).unwrap();
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    let mut redis = setup.redis(0);
    for number in 0..50 {
        assert_eq!(redis.ask(&["GET", &format!("before{number}")]), "value");
    }
    for number in 0..refused {
        assert_eq!(redis.ask(&["STRLEN", &format!("key{number}")]), ":10000", "key{number} of {refused}");
    }
    assert_eq!(redis.ask(&["GET", "after"]), "nil");
    assert_eq!(redis.ask(&["INCR", "counter"]), ":1");
}

#[test]
fn space_that_returns_is_used_without_a_restart() {
    let Some(setup) = start("returns", 1) else { return };
    let mut redis = setup.redis(0);
    setup.small.fill();
    let (refused, _) = fill_up(&mut redis);
    setup.small.clear();
    wait_for("an update", || (redis.ask(&["SET", "k", "v"]) == "+OK").then_some(()));
    assert!(setup.cluster.log(0).contains("has space again"));
    for number in 0..refused {
        assert_eq!(redis.ask(&["STRLEN", &format!("key{number}")]), ":10000", "key{number} of {refused}");
    }
}

#[test]
fn a_file_system_without_inodes_is_named_and_nothing_flaps() {
    let Some(setup) = start("inodes", 1) else { return };
    let mut redis = setup.redis(0);
    assert_eq!(redis.ask(&["INCR", "counter"]), ":1");
    setup.small.take_inodes();
    wait_for("a refusal", || (redis.ask(&["SET", "k", "v"]) != "+OK").then_some(()));
    // The thread that looks after the disk looks at it ten times a second.
    sleep(1500);
    assert!(redis.ask(&["SET", "k", "v"]).starts_with("-TRYAGAIN"));
    assert_eq!(redis.ask(&["GET", "counter"]), "1");
    let info = redis.ask(&["INFO"]);
    assert!(info.contains("disk_free_inodes:0\r\n") && info.contains("disk_is_short:1\r\n"), "{info}");
    let log = setup.cluster.log(0);
    assert_eq!(log.matches("is nearly out of inodes").count(), 1, "{log}");
    assert!(!log.contains("is nearly full") && !log.contains("has space again"), "{log}");

    setup.small.give_inodes();
    wait_for("an update", || (redis.ask(&["SET", "k", "v"]) == "+OK").then_some(()));
    let log = setup.cluster.log(0);
    assert_eq!(log.matches("has space again").count(), 1, "{log}");
}

#[test]
fn a_follower_without_space_holds_nobody_up() {
    let Some(mut setup) = start("follower", 3) else { return };
    let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
    if leader == 0 {
        setup.cluster.kill(0).unwrap();
        wait_for("a new leader", || setup.cluster.leader().filter(|new| *new != 0));
        setup.cluster.restart(0).unwrap();
        assert_ne!(setup.cluster.wait_until_well(PATIENCE).unwrap(), 0);
    }
    let mut redis = setup.redis(1);
    setup.small.fill();
    let value = "x".repeat(10_000);
    for number in 0..300 {
        let (set, increment) =
            (redis.ask(&["SET", &format!("key{number}"), &value]), redis.ask(&["INCR", "counter"]));
        assert_eq!((set.as_str(), increment), ("+OK", format!(":{}", number + 1)));
    }
    let has_failed = || setup.cluster.log(0).contains("takes no updates until the disk takes writes again");
    wait_for("an error in the log of the node without space", || has_failed().then_some(()));
    assert_eq!(setup.redis(0).ask(&["GET", "counter"]), "300", "also through the node without space");

    setup.small.clear();
    setup.cluster.kill(0).unwrap();
    setup.cluster.restart(0).unwrap();
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    assert_eq!(setup.redis(0).ask(&["INCR", "counter"]), ":301");
}

#[test]
fn a_leader_without_space_gives_way() {
    let Some(mut setup) = start("leader", 3) else { return };
    setup.lead_by_first();
    let mut redis = setup.redis(1);
    assert_eq!(redis.ask(&["INCR", "counter"]), ":1");
    setup.small.fill();
    let value = "x".repeat(10_000);
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut last = String::new();
    for number in 0.. {
        last = redis.ask(&["SET", &format!("key{number}"), &value]);
        let has_failed = setup.cluster.log(0).contains("takes no updates");
        if (has_failed && last == "+OK") || Instant::now() > deadline {
            break;
        }
        sleep(5);
    }
    assert_eq!(last, "+OK", "two of three disks have space, and nothing can be written");
    // The others may have taken that key while the first still leads. Until it has handed over it refuses what only a
    // leader can do, and what it has refused is not done: the counter goes up once.
    wait_for("a leader with space", || {
        let answer = redis.ask(&["INCR", "counter"]);
        assert!(answer == ":2" || answer.starts_with("-TRYAGAIN"), "{answer}");
        (answer == ":2").then_some(())
    });
}

/// What 11cfba6 did: every write hung for 10 s and ended UNKNOWN, and GET and DBSIZE timed out.
#[test]
fn with_all_disks_full_reads_and_deletions_go_on_and_writes_are_refused_at_once() {
    let (_alone, scratch) = (alone(), Scratch::new("all-full"));
    let place = scratch.0.join("cluster");
    let mut smalls = Vec::new();
    for node in 0..3 {
        let Some(small) = Small::mount("all-full", &scratch, directory(&place, node)) else { return };
        smalls.push(small);
    }
    let mut cluster = Cluster::start(ClusterOptions {
        program: syros().get_program().into(),
        directory: place,
        replicas: 3,
        spare: 0,
        namespaces: false,
        regions: None,
        settings: String::new(),
    })
    .unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    let connect = |cluster: &Cluster| Redis::connect_to(cluster.redis_address(1), GIVE_UP_AFTER * 4).unwrap();
    let mut redis = connect(&cluster);
    for number in 0..50 {
        assert_eq!(redis.ask(&["SET", &format!("before{number}"), "value"]), "+OK");
    }
    // The leader last: else it hands over while its disk is being filled, and what fills it takes the reserve that the
    // record of the new view gives up.
    let leader = cluster.wait_until_well(PATIENCE).unwrap();
    for node in [(leader + 1) % 3, (leader + 2) % 3, leader] {
        smalls[node].fill();
        sleep(500);
    }
    wait_for("a refusal", || (redis.ask(&["SET", "k", "v"]) != "+OK").then_some(()));
    // Each node looks at its own disk.
    sleep(500);
    let started = Instant::now();
    for words in [&["SET", "after", "1"][..], &["INCR", "counter"], &["MSET", "a", "1", "b", "2"]] {
        let error = redis.ask(words);
        assert!(error.starts_with("-TRYAGAIN") && error.contains("disk.reserve"), "{words:?}: {error}");
    }
    for number in 0..50 {
        assert_eq!(redis.ask(&["GET", &format!("before{number}")]), "value");
    }
    assert_eq!(redis.ask(&["DEL", "before0"]), ":1");
    let size = redis.ask(&["DBSIZE"]);
    assert!(size.starts_with(':'), "{size}");
    assert_eq!(redis.ask(&["GET", "after"]), "nil");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());

    let leader = cluster.wait_until_well(PATIENCE).unwrap();
    cluster.kill(leader).unwrap();
    wait_for("a new leader", || cluster.leader().filter(|new| *new != leader));
    cluster.restart(leader).unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    let mut redis = connect(&cluster);
    assert_eq!(redis.ask(&["GET", "before1"]), "value");
    assert_eq!(redis.ask(&["FLUSHALL"]), "+OK");
    assert_eq!(redis.ask(&["DBSIZE"]), ":0");

    smalls.iter().for_each(Small::clear);
    wait_for("an update", || (redis.ask(&["SET", "k", "v"]) == "+OK").then_some(()));
    assert_eq!(redis.ask(&["INCR", "counter"]), ":1");
    drop(cluster);
}

//! Backups of clusters that serve, and new clusters that are made from them: every key, whatever the size of the new cluster;
//! backups that are damaged, cut short, or of something else.

mod common;

use common::{Redis, Scratch, engine, free_ports, kill, run, syros, text, wait_for, wait_for_end};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use syros_bench::cluster::{Cluster, ClusterOptions};

const PATIENCE: Duration = Duration::from_secs(60);

/// The nodes of a new cluster.
struct Nodes {
    dir: PathBuf,
    port: u16,
    processes: Vec<Option<Child>>,
}

impl Nodes {
    fn new(scratch: &Scratch, name: &str, size: u16) -> Self {
        let (dir, port) = (scratch.0.join(name), free_ports());
        fs::create_dir_all(&dir).unwrap();
        let replicas: Vec<String> =
            (0..size).map(|node| format!("\"127.0.0.1:{}\"", port + 100 + node)).collect();
        for node in 0..size {
            let text = format!(
                "cluster = 7\nreplica = {node}\nreplicas = [{}]\ndirectory = \"data-{node}\"\nengine = \"{}\"\n\
                 [listen]\nredis = \"127.0.0.1:{}\"\n",
                replicas.join(", "),
                engine(),
                port + node
            );
            fs::write(dir.join(format!("node-{node}.toml")), text).unwrap();
        }
        Self { dir, port, processes: (0..size).map(|_| None).collect() }
    }

    fn config(&self, node: usize) -> PathBuf {
        self.dir.join(format!("node-{node}.toml"))
    }

    fn restore(&self, node: usize, backup: &Path) -> Output {
        run(syros().arg("restore").arg(backup).arg("--config").arg(self.config(node)))
    }

    /// Makes all nodes from a backup; what the new cluster is called.
    fn restore_all(&self, backup: &Path) -> String {
        let mut names: Vec<String> = Vec::new();
        for node in 0..self.processes.len() {
            let output = self.restore(node, backup);
            assert!(output.status.success(), "{}", text(&output));
            let told = text(&output);
            let (_, name) = told.split_once("write cluster = ").unwrap();
            names.push(name.split(' ').next().unwrap().to_owned());
        }
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        names.swap_remove(0)
    }

    /// Names the cluster in the configuration of a node.
    fn name_cluster(&self, node: usize, name: &str) {
        let config = fs::read_to_string(self.config(node)).unwrap();
        fs::write(self.config(node), config.replace("cluster = 7\n", &format!("cluster = {name}\n")))
            .unwrap();
    }

    fn start(&mut self, node: usize, options: &[&str]) {
        let log = fs::File::options().create(true).append(true).open(self.dir.join(format!("log-{node}")));
        let mut command = syros();
        command.arg("server").arg("--config").arg(self.config(node)).args(options);
        let process = command.stdout(Stdio::null()).stderr(log.unwrap()).spawn().unwrap();
        self.processes[node] = Some(process);
    }

    fn start_all(&mut self, options: &[&str]) {
        (0..self.processes.len()).for_each(|node| self.start(node, options));
    }

    fn log(&self, node: usize) -> String {
        fs::read_to_string(self.dir.join(format!("log-{node}"))).unwrap_or_default()
    }

    /// A connection to a node that serves.
    fn connect(&self, node: usize) -> Redis {
        wait_for("a node that serves", || {
            let mut redis = Redis::try_connect(self.port + node as u16).ok()?;
            (redis.try_ask(&["GET", "no key"]).ok()? == "nil").then_some(redis)
        })
    }

    fn stop(&mut self, node: usize) {
        if let Some(mut process) = self.processes[node].take() {
            kill(process.id().try_into().unwrap(), Signal::TERM);
            wait_for_end(&mut process);
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn cluster(scratch: &Scratch) -> Cluster {
    cluster_with(scratch, "")
}

/// A cluster whose configuration has these sections as well.
fn cluster_with(scratch: &Scratch, sections: &str) -> Cluster {
    let mut cluster = Cluster::start(ClusterOptions {
        program: env!("CARGO_BIN_EXE_syros").into(),
        directory: scratch.0.join("old"),
        replicas: 3,
        spare: 0,
        namespaces: false,
        regions: None,
        settings: format!("engine = \"{}\"\n{sections}", engine()),
    })
    .unwrap();
    cluster.wait_until_well(PATIENCE).unwrap();
    cluster
}

fn connect(cluster: &Cluster) -> Redis {
    Redis::connect_to(cluster.redis_address(0), PATIENCE).unwrap()
}

/// `syros backup` of the cluster.
fn backup(cluster: &Cluster, target: &Path) -> Command {
    let mut command = syros();
    command.arg("backup").arg(target).arg("--addr").arg(cluster.redis_address(1).to_string());
    command
}

const STRINGS: usize = 500;

/// Data of all kinds, in two databases.
fn fill(redis: &mut Redis) {
    for key in 0..STRINGS {
        assert_eq!(redis.ask(&["SET", &format!("string-{key}"), &format!("value-{key}")]), "+OK");
    }
    for (words, reply) in [
        (&["HSET", "hash", "a", "1", "b", "2"][..], ":2"),
        (&["RPUSH", "list", "x", "y", "z"], ":3"),
        (&["SADD", "set", "m", "n"], ":2"),
        (&["ZADD", "sorted", "1", "one", "2", "two"], ":2"),
        (&["XADD", "stream", "5-1", "field", "entry"], "5-1"),
        (&["SET", "mortal", "for an hour", "EX", "3600"], "+OK"),
        (&["SELECT", "3"], "+OK"),
        (&["SET", "elsewhere", "in database 3"], "+OK"),
        (&["SELECT", "0"], "+OK"),
    ] {
        assert_eq!(redis.ask(words), reply, "{words:?}");
    }
    // Large enough to lie in pages.
    for first in (0..3_000).step_by(100) {
        let fields: Vec<String> = (first..first + 100).map(|field| format!("field-{field}")).collect();
        let words: Vec<&str> =
            ["HSET", "large"].into_iter().chain(fields.iter().flat_map(|field| [&field[..], "v"])).collect();
        assert_eq!(redis.ask(&words), ":100");
    }
}

/// Everything of [`fill`] is there, and in the first database so many `others`.
fn check(redis: &mut Redis, others: usize) {
    for key in 0..STRINGS {
        assert_eq!(redis.ask(&["GET", &format!("string-{key}")]), format!("value-{key}"));
    }
    for (words, reply) in [
        (&["HGET", "hash", "b"][..], "2"),
        (&["LINDEX", "list", "-1"], "z"),
        (&["SCARD", "set"], ":2"),
        (&["ZSCORE", "sorted", "two"], "2"),
        (&["XLEN", "stream"], ":1"),
        (&["GET", "mortal"], "for an hour"),
        (&["HLEN", "large"], ":3000"),
        (&["HGET", "large", "field-2999"], "v"),
        (&["SELECT", "3"], "+OK"),
        (&["GET", "elsewhere"], "in database 3"),
        (&["DBSIZE"], ":1"),
        (&["SELECT", "0"], "+OK"),
        (&["DBSIZE"], &format!(":{}", STRINGS + 7 + others)),
    ] {
        assert_eq!(redis.ask(words), reply, "{words:?}");
    }
    let left: u64 = redis.ask(&["TTL", "mortal"]).trim_start_matches(':').parse().unwrap();
    assert!((1..=3_600).contains(&left), "{left}");
}

fn counter(redis: &mut Redis) -> u64 {
    redis.ask(&["GET", "counter"]).parse().unwrap()
}

#[test]
fn a_cluster_is_backed_up_under_load_and_comes_back_in_any_size() {
    let scratch = Scratch::new("backup");
    let old = cluster(&scratch);
    fill(&mut connect(&old));
    let (acknowledged, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let count = |redis: &mut Redis| {
        let reply = redis.ask(&["INCR", "counter"]);
        acknowledged.store(reply.trim_start_matches(':').parse().unwrap(), Ordering::SeqCst);
    };
    count(&mut connect(&old));
    // The replicas have a snapshot from now on, which is too old for the backup that counts.
    assert!(run(&mut backup(&old, &scratch.0.join("earlier"))).status.success());
    let target = scratch.0.join("backup");
    let (before, after) = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut redis = connect(&old);
            while !ends.load(Ordering::SeqCst) {
                count(&mut redis);
            }
        });
        wait_for("some updates", || (acknowledged.load(Ordering::SeqCst) > 100).then_some(()));
        let before = acknowledged.load(Ordering::SeqCst);
        let output = run(&mut backup(&old, &target));
        let after = acknowledged.load(Ordering::SeqCst);
        ends.store(true, Ordering::SeqCst);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains(&format!("keys        {}", STRINGS + 9)), "{}", text(&output));
        (before, after)
    });
    let output = run(syros().args(["backup", "verify"]).arg(&target));
    assert!(output.status.success() && text(&output).contains("is intact"), "{}", text(&output));
    drop(old);

    let mut counted = Vec::new();
    for size in [3, 1, 5] {
        let mut new = Nodes::new(&scratch, &format!("new-{size}"), size);
        let name = new.restore_all(&target);
        // Node 0 knows the cluster by its new name, the others by the one that they were restored with.
        new.name_cluster(0, &name);
        let refused = new.restore(0, &target);
        assert!(!refused.status.success() && text(&refused).contains("is not empty"), "{}", text(&refused));
        new.start_all(&["--bootstrap"]);
        let last = usize::from(size) - 1;
        check(&mut new.connect(last), 1);
        counted.push(counter(&mut new.connect(last)));
        // It goes on from there, and keeps all of it.
        assert_eq!(new.connect(0).ask(&["SET", "new", "key"]), "+OK");
        (0..=last).for_each(|node| new.stop(node));
        new.start_all(&[]);
        let mut redis = new.connect(last);
        assert_eq!(redis.ask(&["GET", "new"]), "key");
        assert_eq!(redis.ask(&["DEL", "new"]), ":1");
        check(&mut redis, 1);
        // A node whose disk is lost gets everything from the others, and comes back by no backup.
        if size == 3 {
            new.stop(1);
            fs::remove_dir_all(new.dir.join("data-1")).unwrap();
            assert!(new.restore(1, &target).status.success());
            new.start(1, &["--bootstrap"]);
            wait_for_end(new.processes[1].as_mut().unwrap());
            assert!(new.log(1).contains("was wiped or exchanged"), "{}", new.log(1));
            new.start(1, &["--replace"]);
            wait_for_end(new.processes[1].as_mut().unwrap());
            assert!(new.log(1).contains("has no identity, and data in"), "{}", new.log(1));
            fs::remove_dir_all(new.dir.join("data-1")).unwrap();
            new.name_cluster(1, &name);
            new.start(1, &["--replace"]);
            check(&mut new.connect(1), 1);
            // The views of this cluster are of its second configuration; those of the next cluster begin anew.
            let again = scratch.0.join("again");
            let address = format!("127.0.0.1:{}", new.port);
            let output = run(syros().arg("backup").arg(&again).args(["--addr", &address]));
            assert!(output.status.success(), "{}", text(&output));
            let mut next = Nodes::new(&scratch, "next", 1);
            next.restore_all(&again);
            next.start_all(&["--bootstrap"]);
            check(&mut next.connect(0), 1);
        }
    }
    assert!(counted.iter().all(|count| *count == counted[0]), "all have one moment: {counted:?}");
    assert!((before..=after).contains(&counted[0]), "{before} <= {} <= {after}", counted[0]);
}

/// Otherwise the empty ones, or those of another moment, could be a majority.
#[test]
fn nodes_of_different_backups_and_of_none_form_no_cluster() {
    let scratch = Scratch::new("backups-mixed");
    let old = cluster(&scratch);
    fill(&mut connect(&old));
    let targets = [scratch.0.join("one"), scratch.0.join("two")];
    for target in &targets {
        assert!(run(&mut backup(&old, target)).status.success());
    }
    drop(old);
    let mut new = Nodes::new(&scratch, "new", 3);
    (0..2).for_each(|node| assert!(new.restore(node, &targets[node]).status.success()));
    new.start_all(&["--bootstrap"]);
    for node in 0..3 {
        wait_for("a refusal", || new.log(node).contains("belongs to cluster").then_some(()));
        assert!(Redis::try_connect(new.port + node as u16).is_err(), "node {node} serves");
    }
    // Two of three are not enough either.
    (0..3).for_each(|node| new.stop(node));
    fs::remove_dir_all(new.dir.join("data-1")).unwrap();
    assert!(new.restore(1, &targets[0]).status.success());
    new.start_all(&["--bootstrap"]);
    std::thread::sleep(Duration::from_secs(2));
    assert!((0..3).all(|node| Redis::try_connect(new.port + node).is_err()), "an empty node is among them");
    new.stop(2);
    fs::remove_dir_all(new.dir.join("data-2")).unwrap();
    assert!(new.restore(2, &targets[0]).status.success());
    new.start(2, &["--bootstrap"]);
    check(&mut new.connect(2), 0);
}

#[test]
fn a_flipped_bit_and_a_backup_that_was_killed_are_refused() {
    let scratch = Scratch::new("backup-damaged");
    let old = cluster(&scratch);
    fill(&mut connect(&old));
    let target = scratch.0.join("backup");
    assert!(run(&mut backup(&old, &target)).status.success());
    let part = target.join("data-00001");
    let intact = fs::read(&part).unwrap();
    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 4;
    fs::write(&part, flipped).unwrap();
    let new = Nodes::new(&scratch, "new", 1);
    for output in [run(syros().args(["backup", "verify"]).arg(&target)), new.restore(0, &target)] {
        let told = text(&output);
        let names = told.contains(&part.display().to_string()) && told.contains("is damaged at offset");
        assert!(!output.status.success() && names, "{told}");
    }
    // Nothing stays of it, so that another backup can be restored there.
    assert_eq!(fs::read_dir(new.dir.join("data-0")).unwrap().count(), 0);
    fs::write(&part, intact).unwrap();
    assert!(new.restore(0, &target).status.success());

    // What the engine in memory wrote, no engine on disk reads, and the other way round.
    let other = if engine() == "memory" { "disk" } else { "memory" };
    let wrong = Nodes::new(&scratch, "wrong", 1);
    let config = fs::read_to_string(wrong.config(0)).unwrap();
    let config = config.replace(&format!("engine = \"{}\"", engine()), &format!("engine = \"{other}\""));
    fs::write(wrong.config(0), config).unwrap();
    let refused = wrong.restore(0, &target);
    assert!(!refused.status.success() && text(&refused).contains("set engine ="), "{}", text(&refused));

    // Slow enough to be killed in the middle.
    let mut redis = connect(&old);
    let value = "x".repeat(1 << 20);
    (0..8).for_each(|key| assert_eq!(redis.ask(&["SET", &format!("big-{key}"), &value]), "+OK"));
    let half = scratch.0.join("half");
    let mut process = backup(&old, &half).args(["--rate", "1"]).stderr(Stdio::null()).spawn().unwrap();
    wait_for("a part", || fs::metadata(half.join("data-00001")).ok().filter(|file| file.len() > 100));
    process.kill().unwrap();
    process.wait().unwrap();
    for output in [run(syros().args(["backup", "verify"]).arg(&half)), new.restore(0, &half)] {
        let told = text(&output);
        assert!(!output.status.success() && told.contains("holds no finished backup"), "{told}");
    }
    let again = run(&mut backup(&old, &half));
    assert!(!again.status.success() && text(&again).contains("is not empty"), "{}", text(&again));
}

#[test]
fn a_node_that_dies_in_the_middle_goes_on_when_it_is_back_or_the_backup_fails() {
    let scratch = Scratch::new("backup-node-dies");
    let mut old = cluster(&scratch);
    let mut redis = connect(&old);
    let value = "x".repeat(1 << 20);
    (0..8).for_each(|key| assert_eq!(redis.ask(&["SET", &format!("big-{key}"), &value]), "+OK"));
    for comes_back in [true, false] {
        let target = scratch.0.join(format!("backup-{comes_back}"));
        let mut command = backup(&old, &target);
        command.args(["--rate", "1", "--replica", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        wait_for("a part", || fs::metadata(target.join("data-00001")).ok().filter(|file| file.len() > 100));
        old.kill(2).unwrap();
        if comes_back {
            old.restart(2).unwrap();
        }
        let status = wait_for_end(&mut process);
        let told = text(&process.wait_with_output().unwrap());
        // An engine on disk writes its snapshot files for others only, and keeps none when it starts.
        if comes_back && engine() == "memory" {
            assert!(status.success() && told.contains("trying again"), "{told}");
            let output = run(syros().args(["backup", "verify"]).arg(&target));
            assert!(output.status.success(), "{}", text(&output));
        } else {
            assert!(!status.success() && told.contains("there is no backup in"), "{told}");
            assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "the space is free again");
        }
        if comes_back {
            old.wait_until_well(PATIENCE).unwrap();
        }
    }
}

/// One wins; the other is told, and removes nothing of the winner's.
#[test]
fn of_two_backups_into_one_directory_one_is_made() {
    let scratch = Scratch::new("backup-twice");
    let old = cluster(&scratch);
    fill(&mut connect(&old));
    let target = scratch.0.join("backup");
    let start = || backup(&old, &target).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ended: Vec<(bool, String)> = [start(), start()]
        .map(|process| process.wait_with_output().unwrap())
        .iter()
        .map(|output| (output.status.success(), text(output)))
        .collect();
    assert_eq!(ended.iter().filter(|(won, _)| *won).count(), 1, "{ended:?}");
    let (_, told) = ended.iter().find(|(won, _)| !won).unwrap();
    assert!(told.contains("another command makes a backup in") || told.contains("is not empty"), "{told}");
    assert!(run(syros().args(["backup", "verify"]).arg(&target)).status.success());
    assert!(!target.join("claim").exists());
}

/// A replica does not answer the fifth one, which says why.
#[test]
fn a_fifth_backup_of_one_replica_at_a_time_is_told_why_there_is_none() {
    let scratch = Scratch::new("backup-fifth");
    let old = cluster(&scratch);
    let mut redis = connect(&old);
    let value = "x".repeat(1 << 20);
    (0..60).for_each(|key| assert_eq!(redis.ask(&["SET", &format!("big-{key}"), &value]), "+OK"));
    let slow = |number: u32| {
        let mut command = backup(&old, &scratch.0.join(number.to_string()));
        command.args(["--rate", "1", "--replica", "2"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let has = |number: u32, file: &str| scratch.0.join(number.to_string()).join(file).exists();
    // One has a snapshot taken and copies it. Others copy it, too, or wait for a later one.
    let mut others = vec![slow(0)];
    wait_for("one that copies", || has(0, "data-00001").then_some(()));
    others.extend((1..4).map(slow));
    wait_for("four that ask", || (0..4).all(|number| has(number, "claim")).then_some(()));
    let target = scratch.0.join("fifth");
    let output = run(backup(&old, &target).args(["--replica", "2"]));
    let told = text(&output);
    assert!(!output.status.success() && told.contains("lets 4 commands copy it at a time"), "{told}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{told}");
    for process in &mut others {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn only_who_knows_the_secret_gets_a_backup() {
    let scratch = Scratch::new("backup-secret");
    let dev = common::Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let mut command = syros();
    let target = scratch.0.join("backup");
    command.arg("backup").arg(&target).arg("--addr").arg(format!("127.0.0.1:{}", dev.port));
    let refused = run(&mut command);
    assert!(!refused.status.success() && text(&refused).contains("--secret-file"), "{}", text(&refused));
    let output = run(command.arg("--secret-file").arg(scratch.0.join("dev/secret")));
    assert!(output.status.success(), "{}", text(&output));
    dev.stop();
}

fn recover(directories: &[PathBuf], options: &[&str]) -> Output {
    run(syros().arg("recover").args(directories).args(options))
}

#[test]
fn what_one_of_three_knows_comes_back() {
    let scratch = Scratch::new("recover");
    let mut old = cluster(&scratch);
    fill(&mut connect(&old));
    // Everybody has executed all of it.
    old.wait_until_well(PATIENCE).unwrap();
    let directories: Vec<PathBuf> = (0..3).map(|node| old.directory(node).join("data")).collect();
    let in_use = recover(&directories[2..], &[]);
    assert!(!in_use.status.success() && text(&in_use).contains("in use by process"), "{}", text(&in_use));
    (0..3).for_each(|node| old.kill(node).unwrap());
    let majority = recover(&directories[..2], &[]);
    let told = text(&majority);
    assert!(!majority.status.success() && told.contains("2 of 3 members, a majority"), "{told}");
    let twice = recover(&[directories[2].clone(), directories[2].clone()], &[]);
    assert!(!twice.status.success() && text(&twice).contains("so is another one"), "{}", text(&twice));

    let target = scratch.0.join("rest");
    let target = target.to_str().unwrap();
    let told = recover(&directories[2..], &[]);
    assert!(told.status.success() && text(&told).contains("nothing was written"), "{}", text(&told));
    assert!(text(&told).contains("replicas without a directory: 0, 1"), "{}", text(&told));
    assert!(!recover(&directories[2..], &["--to", target]).status.success(), "not without --force");
    for place in [directories[2].clone(), directories[2].join("rest"), scratch.0.clone()] {
        let inside = recover(&directories[2..], &["--to", place.to_str().unwrap(), "--force"]);
        let told = text(&inside);
        assert!(!inside.status.success() && told.contains("the data directory"), "{told}");
        assert!(!directories[2].join("rest").exists());
    }
    assert!(!Path::new(target).exists());
    let made = recover(&directories[2..], &["--to", target, "--force"]);
    assert!(made.status.success() && text(&made).contains("was made of what is left"), "{}", text(&made));

    for size in [3, 1] {
        let mut new = Nodes::new(&scratch, &format!("new-{size}"), size);
        new.restore_all(Path::new(target));
        new.start_all(&["--bootstrap"]);
        let mut redis = new.connect(usize::from(size) - 1);
        check(&mut redis, 0);
        assert_eq!(redis.ask(&["SET", "new", "key"]), "+OK");
        (0..usize::from(size)).for_each(|node| new.stop(node));
        new.start_all(&[]);
        assert_eq!(new.connect(0).ask(&["GET", "new"]), "key");
    }
    // What is left stays what it was: with another node the old cluster goes on.
    old.restart(1).unwrap();
    old.restart(2).unwrap();
    let mut redis = wait_for("the old cluster", || {
        let mut redis = Redis::connect_to(old.redis_address(2), PATIENCE).ok()?;
        (redis.try_ask(&["GET", "no key"]).ok()? == "nil").then_some(redis)
    });
    check(&mut redis, 0);
}

/// All of them were acknowledged. Ordering takes a second here: unless the machine is that slow, they are in durability logs and
/// in no log.
#[test]
fn updates_that_were_never_ordered_come_back_from_one_of_three() {
    let scratch = Scratch::new("recover-dlog");
    let mut old = cluster_with(&scratch, "[timing]\norder-delay = \"1s\"\nresend = \"2s\"\n");
    let mut redis = connect(&old);
    for key in 0..100 {
        assert_eq!(redis.ask(&["SET", &format!("key-{key}"), "acknowledged"]), "+OK");
    }
    // Two of three may have acknowledged the last ones.
    wait_for("that all hold all", || {
        let held: Option<Vec<(u64, u64)>> = old
            .reports()
            .into_iter()
            .map(|report| report.map(|report| (report.op_number, report.dlog_length)))
            .collect();
        held.filter(|held| held.iter().all(|of_one| *of_one == held[0]))
    });
    (0..3).for_each(|node| old.kill(node).unwrap());
    let rest = scratch.0.join("rest");
    let options = ["--to", rest.to_str().unwrap(), "--force"];
    let told = text(&recover(&[old.directory(1).join("data")], &options));
    let mut new = Nodes::new(&scratch, "new", 3);
    new.restore_all(&rest);
    new.start_all(&["--bootstrap"]);
    let mut redis = new.connect(2);
    for key in 0..100 {
        assert_eq!(redis.ask(&["GET", &format!("key-{key}")]), "acknowledged", "{told}");
    }
}

/// What stands behind a word in what a command told, up to the next blank.
fn told_behind<'a>(told: &'a str, word: &str) -> &'a str {
    let (_, rest) = told.split_once(word).unwrap_or_else(|| panic!("'{word}' is not in: {told}"));
    rest.trim_start().split([' ', ',', '\n']).next().unwrap()
}

/// What a cluster of one node counts that is made of a backup up to a moment, and what `syros restore` tells of it.
fn restored_until(scratch: &Scratch, backup: &Path, until: &str) -> (u64, String) {
    let name = format!("until-{}", until.replace(':', "-"));
    let mut new = Nodes::new(scratch, &name, 1);
    let output =
        run(syros().arg("restore").arg(backup).arg("--config").arg(new.config(0)).args(["--until", until]));
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    new.start_all(&["--bootstrap"]);
    let counted = counter(&mut new.connect(0));
    new.stop(0);
    fs::remove_dir_all(&new.dir).unwrap();
    (counted, told)
}

#[test]
fn a_backup_goes_on_with_the_log_and_is_restored_as_of_any_entry_and_moment() {
    let scratch = Scratch::new("backup-log");
    let mut old = cluster(&scratch);
    fill(&mut connect(&old));
    let mut redis = connect(&old);
    let mut count = |until: u64| loop {
        let reply = redis.ask(&["INCR", "counter"]);
        if reply == format!(":{until}") {
            return;
        }
    };
    count(1);
    let target = scratch.0.join("backup");
    let mut command = backup(&old, &target);
    command.args(["--follow", "--interval", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut follower = command.spawn().unwrap();
    wait_for("a backup", || target.join("manifest").exists().then_some(()));
    count(200);
    // Whoever is asked for the log dies: another one has kept what is still to be copied.
    let dies = (1..3).find(|node| {
        old.reports()[*node]
            .as_ref()
            .is_some_and(|report| report.role == syros_protocol::message::RoleName::Follower)
    });
    let dies = dies.expect("two of three follow");
    old.kill(dies).unwrap();
    count(400);
    old.restart(dies).unwrap();
    old.wait_until_well(PATIENCE).unwrap();
    // While one goes on with it, nobody else does.
    let refused = run(syros()
        .args(["backup", "continue"])
        .arg(&target)
        .args(["--addr", &old.redis_address(1).to_string()]));
    assert!(
        !refused.status.success() && text(&refused).contains("another process continues"),
        "{}",
        text(&refused)
    );
    kill(follower.id().try_into().unwrap(), Signal::INT);
    let status = wait_for_end(&mut follower);
    let told = text(&follower.wait_with_output().unwrap());
    assert!(status.success(), "{told}");

    // It goes on once more, and so far as a backup of all data that was made meanwhile.
    count(450);
    let all = scratch.0.join("all");
    let output = run(&mut backup(&old, &all));
    assert!(output.status.success(), "{}", text(&output));
    let (last, digest) = (
        told_behind(&text(&output), "last entry").to_owned(),
        told_behind(&text(&output), "digest").to_owned(),
    );
    let go_on = || {
        run(syros()
            .args(["backup", "continue"])
            .arg(&target)
            .args(["--addr", &old.redis_address(1).to_string()]))
    };
    let output = go_on();
    assert!(output.status.success(), "{}", text(&output));
    let output = run(syros().args(["backup", "verify"]).arg(&target));
    let told = text(&output);
    assert!(output.status.success() && told.contains("is intact"), "{told}");
    let (_, covered) = told.split_once("covers").unwrap();
    let first: u64 = told_behind(covered, "entry").parse().unwrap();
    let (counted, told) = restored_until(&scratch, &target, &last);
    assert_eq!((counted, told_behind(&told, "digest")), (450, &digest[..]), "{told}");

    // One entry more is one more, unless it only lets time move on.
    let middle = first + (last.parse::<u64>().unwrap() - first) / 2;
    let at: Vec<(u64, String)> =
        (middle..middle + 3).map(|entry| restored_until(&scratch, &target, &entry.to_string())).collect();
    assert!(at.windows(2).all(|two| two[1].0 - two[0].0 <= 1) && at[2].0 > at[0].0, "{at:?}");
    let moment = told_behind(told_behind_all(&at[1].1, "holds entry"), "of").to_owned();
    let (by_moment, told) = restored_until(&scratch, &target, &moment);
    assert!(by_moment >= at[1].0 && told.contains(&moment), "{told}");

    for until in ["1", "99999999", "2001-01-01T00:00:00Z", "2101-01-01T00:00:00Z"] {
        let new = Nodes::new(&scratch, "refused", 1);
        let output = run(syros()
            .arg("restore")
            .arg(&target)
            .arg("--config")
            .arg(new.config(0))
            .args(["--until", until]));
        let told = text(&output);
        assert!(!output.status.success() && told.contains(&format!("it covers entry {first} of")), "{told}");
    }
    let exported = run(syros().arg("export").arg(&target).arg(scratch.0.join("dump.rdb")));
    assert!(
        !exported.status.success() && text(&exported).contains("was continued with a log"),
        "{}",
        text(&exported)
    );
}

/// What stands behind some words.
fn told_behind_all<'a>(told: &'a str, words: &str) -> &'a str {
    told.split_once(words).unwrap().1
}

/// Sections of a cluster that keeps nothing in memory that all members hold, and whose logs are cut often.
const CUT_OFTEN: &str = "[limits]\nlog-keep = \"0\"\nsnapshot-log = \"1MiB\"\n[disk-engine]\nmemtable = \"1MiB\"\n\
                         [disk]\nwal-segment = \"64KiB\"\n";

/// What a node tells in INFO.
fn info(cluster: &Cluster, node: usize, name: &str) -> u64 {
    let mut redis = Redis::connect_to(cluster.redis_address(node), PATIENCE).unwrap();
    told_behind(&redis.ask(&["INFO"]), &format!("{name}:")).trim().parse().unwrap()
}

/// Each member tells what it has dropped from memory, also one that was started again meanwhile, and after its log was cut.
#[test]
fn a_backup_is_continued_with_the_logs_on_disk() {
    let scratch = Scratch::new("backup-disk");
    let mut old = cluster_with(&scratch, CUT_OFTEN);
    let target = scratch.0.join("backup");
    assert!(run(&mut backup(&old, &target)).status.success());
    let mut redis = connect(&old);
    let filler = "x".repeat(1_000);
    for number in 1..=5_000 {
        assert_eq!(redis.ask(&["SET", &format!("filler-{}", number % 50), &filler]), "+OK");
        if number % 10 == 0 {
            assert_eq!(redis.ask(&["INCR", "counter"]), format!(":{}", number / 10));
        }
    }
    let dies = (0..3).find(|node| old.leader() != Some(*node)).unwrap();
    old.kill(dies).unwrap();
    old.restart(dies).unwrap();
    old.wait_until_well(PATIENCE).unwrap();
    // A log that was cut does not begin with the first record.
    wait_for("logs that are cut", || {
        let is_cut =
            |node: &usize| !old.directory(*node).join("data/wal/wal-00000000000000000001.log").exists();
        (0..3).filter(is_cut).count().eq(&3).then_some(())
    });
    let all = scratch.0.join("all");
    let output = run(&mut backup(&old, &all));
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    let (last, digest) =
        (told_behind(&told, "last entry").to_owned(), told_behind(&told, "digest").to_owned());
    let mut middles = Vec::new();
    for node in 0..3 {
        let copy = scratch.0.join(format!("copy-{node}"));
        fs::create_dir(&copy).unwrap();
        for file in fs::read_dir(&target).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        // Only this one is asked.
        let output = run(syros().args(["backup", "continue"]).arg(&copy).args([
            "--addr",
            &old.redis_address(node).to_string(),
            "--replica",
            &node.to_string(),
        ]));
        let told = text(&output);
        assert!(output.status.success() && !told.contains("trying another"), "{told}");
        assert!(run(syros().args(["backup", "verify"]).arg(&copy)).status.success());
        let (counted, told) = restored_until(&scratch, &copy, &last);
        assert_eq!((counted, told_behind(&told, "digest")), (500, &digest[..]), "{told}");
        let middle = last.parse::<u64>().unwrap() / 2;
        let (earlier, told) = restored_until(&scratch, &copy, &middle.to_string());
        assert!((100..400).contains(&earlier), "{earlier}: {told}");
        middles.push((earlier, told_behind(&told, "digest").to_owned()));
        // Ten entries later there is one more, or two if time has moved on.
        let (later, told) = restored_until(&scratch, &copy, &(middle + 11).to_string());
        assert!((earlier + 1..=earlier + 2).contains(&later), "{later} after {earlier}: {told}");
    }
    assert!(middles.iter().all(|middle| *middle == middles[0]), "{middles:?}");
    assert!((0..3).all(|node| info(&old, node, "log_oldest_entry") <= 10), "all is on disk");
}

/// The end of the log that a cluster keeps is short, so that it soon has not what would follow.
#[test]
fn a_backup_that_ends_before_the_log_begins_cannot_be_continued_and_stays() {
    let scratch = Scratch::new("backup-gone");
    let old = cluster_with(&scratch, &format!("{CUT_OFTEN}keep-log = \"0\"\n"));
    let target = scratch.0.join("backup");
    let output = run(&mut backup(&old, &target));
    assert!(output.status.success(), "{}", text(&output));
    let ended: u64 = told_behind(&text(&output), "last entry").parse().unwrap();
    let mut redis = connect(&old);
    let value = "x".repeat(1 << 20);
    (0..8).for_each(|key| assert_eq!(redis.ask(&["SET", &format!("big-{key}"), &value]), "+OK"));
    // The next updates let what is due be cut.
    wait_for("logs that are cut", || {
        assert_eq!(redis.ask(&["SET", "key", &value]), "+OK");
        (0..3).all(|node| info(&old, node, "log_oldest_entry") > ended).then_some(())
    });
    let output = run(syros()
        .args(["backup", "continue"])
        .arg(&target)
        .args(["--addr", &old.redis_address(1).to_string()]));
    let told = text(&output);
    assert!(
        !output.status.success()
            && told.contains("the backup ends with entry")
            && told.contains("no replica that answers has entries before")
            && told.contains("it cannot be continued. Make a new one")
            && told.contains("disk.keep-log"),
        "{told}"
    );
    assert!(run(syros().args(["backup", "verify"]).arg(&target)).status.success());
    // What was restored from it is another cluster, and its log does not follow either.
    drop(old);
    let mut new = Nodes::new(&scratch, "new", 1);
    new.restore_all(&target);
    new.start_all(&["--bootstrap"]);
    new.connect(0);
    let address = format!("127.0.0.1:{}", new.port);
    let output = run(syros().args(["backup", "continue"]).arg(&target).args(["--addr", &address]));
    assert!(!output.status.success() && text(&output).contains("belongs to cluster"), "{}", text(&output));
}

/// Somebody makes a new cluster with the configuration files of the old one: its number is the same, and its log another one.
#[test]
fn a_backup_is_not_continued_with_a_new_cluster_of_the_same_number() {
    let scratch = Scratch::new("backup-anew");
    let old = cluster(&scratch);
    let mut redis = connect(&old);
    (0..200).for_each(|number| {
        assert_eq!(redis.ask(&["RPUSH", "list", &number.to_string()]), format!(":{}", number + 1));
    });
    let target = scratch.0.join("backup");
    let output = run(&mut backup(&old, &target));
    assert!(output.status.success(), "{}", text(&output));
    drop((redis, old));
    fs::remove_dir_all(scratch.0.join("old")).unwrap();
    let new = cluster(&scratch);
    let mut redis = connect(&new);
    let refused = |because: &str| {
        let mut command = syros();
        command.args(["backup", "continue"]).arg(&target);
        let output = run(command.args(["--addr", &new.redis_address(1).to_string()]));
        let told = text(&output);
        assert!(!output.status.success() && told.contains(because), "{told}");
    };
    assert_eq!(redis.ask(&["RPUSH", "list", "new"]), ":1");
    refused("it has another history");
    (0..600).for_each(|number| {
        assert_eq!(redis.ask(&["RPUSH", "list", &number.to_string()]), format!(":{}", number + 2));
    });
    refused("it has another history");
    assert!(run(syros().args(["backup", "verify"]).arg(&target)).status.success());
}

//! `syros server` and `syros gateway` as an operator runs them.

mod common;

use common::{Dev, Redis, Scratch, free_ports, kill, run, syros, text, wait_for, wait_for_end};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Nodes that the test starts itself.
struct Nodes {
    dir: PathBuf,
    port: u16,
    processes: Vec<Option<Child>>,
}

impl Nodes {
    fn new(scratch: &Scratch, count: usize) -> Self {
        let nodes = Self {
            dir: scratch.0.clone(),
            port: free_ports(),
            processes: (0..count).map(|_| None).collect(),
        };
        (0..count).for_each(|node| nodes.configure(node, "cluster = 7", ""));
        nodes
    }

    fn cluster(&self) -> String {
        let ports =
            (0..self.processes.len()).map(|node| format!("127.0.0.1:{}", self.port + 100 + node as u16));
        ports.collect::<Vec<_>>().join(",")
    }

    fn configure(&self, node: usize, cluster: &str, more: &str) {
        let redis = self.port + node as u16;
        let replicas = self.cluster().replace(',', "\", \"");
        let text = format!(
            "{cluster}\nreplica = {node}\nreplicas = [\"{replicas}\"]\ndirectory = \"data-{node}\"\n{more}\n\
             [listen]\nredis = \"127.0.0.1:{redis}\"\n"
        );
        std::fs::write(self.config(node), text).unwrap();
    }

    fn config(&self, node: usize) -> PathBuf {
        self.dir.join(format!("node-{node}.toml"))
    }

    fn start(&mut self, node: usize, options: &[&str]) {
        let mut command = syros();
        command.arg("server").arg("--config").arg(self.config(node)).args(options).stderr(Stdio::null());
        self.processes[node] = Some(command.spawn().unwrap());
    }

    /// Starts a node that should refuse to; returns what it said.
    fn refused(&self, node: usize, options: &[&str]) -> String {
        let output = run(syros().arg("server").arg("--config").arg(self.config(node)).args(options));
        assert!(matches!(output.status.code(), Some(1 | 78)), "{}", text(&output));
        text(&output)
    }

    fn stop(&mut self, node: usize, signal: Signal) {
        let mut process = self.processes[node].take().unwrap();
        kill(process.id().try_into().unwrap(), signal);
        let status = wait_for_end(&mut process);
        assert_eq!(status.success(), signal == Signal::TERM, "{status}");
    }

    fn set(&self, node: usize, key: &str, value: &str) {
        wait_for("a node that takes updates", || {
            let mut redis = Redis::try_connect(self.port + node as u16).ok()?;
            (redis.try_ask(&["SET", key, value]).ok()? == "+OK").then_some(())
        });
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

#[test]
fn a_lost_directory_is_not_made_anew() {
    let scratch = Scratch::new("lost");
    let mut nodes = Nodes::new(&scratch, 1);
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("holds no replica") && refused.contains("--bootstrap"), "{refused}");
    nodes.start(0, &["--bootstrap"]);
    nodes.set(0, "k", "v");
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("is in use by process "), "{refused}");
    nodes.stop(0, Signal::TERM);
    let refused = nodes.refused(0, &["--bootstrap"]);
    assert!(refused.contains("belongs to replica 0 of 1 of cluster 0000000000000007 ("), "{refused}");
    nodes.configure(0, "cluster = 8", "");
    let refused = nodes.refused(0, &[]);
    assert!(
        refused.contains("but the configuration says replica 0 of 1 of cluster 0000000000000008"),
        "{refused}"
    );
    nodes.configure(0, "cluster = 7", "");
    nodes.start(0, &[]);
    nodes.set(0, "k2", "v");
    assert_eq!(Redis::connect(nodes.port).ask(&["GET", "k"]), "v");
    nodes.stop(0, Signal::KILL);

    std::fs::remove_dir_all(scratch.0.join("data-0").join("wal")).unwrap();
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("there is no write-ahead log"), "{refused}");
    std::fs::remove_dir_all(scratch.0.join("data-0")).unwrap();
    assert!(nodes.refused(0, &[]).contains("holds no replica"));
}

fn first_segment(directory: &Path) -> PathBuf {
    let entries = std::fs::read_dir(directory.join("wal")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths.remove(0)
}

#[test]
fn a_damaged_log_is_refused_with_its_place() {
    let scratch = Scratch::new("rot");
    let mut nodes = Nodes::new(&scratch, 1);
    nodes.start(0, &["--bootstrap"]);
    for number in 0..50 {
        nodes.set(0, &format!("k{number}"), "value");
    }
    nodes.stop(0, Signal::TERM);
    let segment = first_segment(&scratch.0.join("data-0"));
    let good = std::fs::read(&segment).unwrap();
    // Behind that, there is only room.
    let written = syros_wal::recover_segment(&good).unwrap().valid_bytes;
    let mut rotten = good.clone();
    rotten[written / 2] ^= 0x10;
    std::fs::write(&segment, &rotten).unwrap();
    let refused = nodes.refused(0, &[]);
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert!(
        refused.contains("is damaged") && refused.contains(name) && refused.contains("offset"),
        "{refused}"
    );

    // A torn tail is another matter: that is what a crash leaves.
    let mut torn = good;
    torn[written..written + 6].copy_from_slice(&[7, 0, 0, 0, 1, 2]);
    std::fs::write(&segment, torn).unwrap();
    nodes.start(0, &[]);
    nodes.set(0, "k", "v");
    assert_eq!(Redis::connect(nodes.port).ask(&["GET", "k49"]), "value");
    nodes.stop(0, Signal::TERM);
}

#[test]
fn a_wrong_configuration_names_file_and_key() {
    let scratch = Scratch::new("config");
    let nodes = Nodes::new(&scratch, 1);
    nodes.configure(0, "cluster = 7\ncolour = \"blue\"", "");
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("node-0.toml: key 'colour': unknown"), "{refused}");
    nodes.configure(0, "cluster = 7", "durability = \"hope\"");
    let refused = nodes.refused(0, &[]);
    let complaint = "key 'durability': \"hope\" is not one of \"fsync\", \"replicated\"";
    assert!(refused.contains(complaint), "{refused}");
    std::fs::remove_file(nodes.config(0)).unwrap();
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("cannot read") && refused.contains("node-0.toml"), "{refused}");
    let endless = run(syros().args(["server", "--config", "/dev/zero"]));
    let refused = text(&endless);
    assert!(!endless.status.success(), "{refused}");
    assert!(refused.contains("cannot read /dev/zero: it has more than 1048576 bytes"), "{refused}");
}

#[test]
fn a_directory_belongs_to_the_engine_that_wrote_it() {
    let scratch = Scratch::new("engine");
    let mut nodes = Nodes::new(&scratch, 1);
    nodes.configure(0, "cluster = 7", "engine = \"disk\"");
    nodes.start(0, &["--bootstrap"]);
    nodes.set(0, "k", "v");
    nodes.stop(0, Signal::TERM);
    nodes.configure(0, "cluster = 7", "engine = \"memory\"");
    let refused = nodes.refused(0, &[]);
    let complaint = "was written by engine disk, but the configuration says engine memory";
    assert!(refused.contains(complaint), "{refused}");
    nodes.configure(0, "cluster = 7", "engine = \"paper\"");
    let refused = nodes.refused(0, &[]);
    assert!(refused.contains("\"paper\" is not one of \"memory\", \"disk\", \"rocksdb\""), "{refused}");
    nodes.configure(0, "cluster = 7", "engine = \"disk\"");
    nodes.start(0, &[]);
    nodes.set(0, "l", "w");
    assert_eq!(Redis::connect(nodes.port).ask(&["GET", "k"]), "v");
    nodes.stop(0, Signal::TERM);
}

/// An engine on disk keeps no number of its keys: INFO counts them.
#[test]
fn info_counts_the_keys_of_an_engine_on_disk() {
    let scratch = Scratch::new("count");
    let mut nodes = Nodes::new(&scratch, 1);
    nodes.configure(0, "cluster = 7", "engine = \"disk\"");
    nodes.start(0, &["--bootstrap"]);
    nodes.set(0, "first", "v");
    let mut redis = Redis::connect(nodes.port);
    for number in 0..100 {
        let key = format!("key:{}", number % 20);
        assert_eq!(redis.ask(&["SET", &key, "v"]), "+OK");
        assert_eq!(redis.ask(&["GETSET", &key, "w"]), "v");
    }
    for number in 0..5 {
        assert_eq!(redis.ask(&["DEL", &format!("key:{number}")]), ":1");
        assert_eq!(redis.ask(&["EXPIRE", &format!("key:{}", 5 + number), "1000"]), ":1");
    }
    let keyspace = |redis: &mut Redis| redis.ask(&["INFO", "keyspace"]);
    assert_eq!(redis.ask(&["DBSIZE"]), ":16");
    assert_eq!(keyspace(&mut redis), "# Keyspace\r\ndb0:keys=16,expires=5,avg_ttl=0\r\n");
    nodes.stop(0, Signal::TERM);
    nodes.start(0, &[]);
    nodes.set(0, "first", "w");
    let mut redis = Redis::connect(nodes.port);
    assert_eq!(redis.ask(&["DBSIZE"]), ":16");
    assert_eq!(keyspace(&mut redis), "# Keyspace\r\ndb0:keys=16,expires=5,avg_ttl=0\r\n");
    assert!(redis.ask(&["INFO"]).contains("\r\ndb0:keys=16,expires=5,avg_ttl=0\r\n"));
    nodes.stop(0, Signal::TERM);
}

/// One number of a hash is a short command, and some KiB to be written: checkpoints come by what is in memory, however little of
/// the log that is. The nodes stood still for good otherwise, because clients waited for a checkpoint that was not due.
#[test]
fn short_updates_of_long_records_do_not_stop_an_engine_on_disk() {
    let scratch = Scratch::new("long-records");
    let mut nodes = Nodes::new(&scratch, 1);
    nodes.configure(0, "cluster = 7", "engine = \"disk\"\n[disk-engine]\nmemtable = \"1MiB\"\n");
    nodes.start(0, &["--bootstrap"]);
    nodes.set(0, "first", "v");
    let mut redis = Redis::connect(nodes.port);
    let value = "v".repeat(60);
    for number in 0..100 {
        redis.ask(&["HSET", "hash", &format!("field:{number}"), &value]);
    }
    // 14 MiB of records, from 100 KiB of log.
    for number in 1..=2_000 {
        assert_eq!(redis.ask(&["HINCRBY", "hash", "number", "1"]), format!(":{number}"));
    }
    // What is removed afterwards is written, too.
    for number in 0..20_000 {
        let list = format!("list:{}", number % 4);
        redis.ask(&["RPUSH", &list, &value, &value, &value, &value]);
    }
    assert_eq!(redis.ask(&["DEL", "list:0", "list:1", "list:2", "list:3"]), ":4");
    assert_eq!(redis.ask(&["HGET", "hash", "number"]), "2000");
    nodes.stop(0, Signal::TERM);
}

/// A store on disk that is not what was written is set aside, and the others have everything.
#[test]
fn a_damaged_store_is_repaired_from_the_others() {
    let scratch = Scratch::new("damaged-store");
    let mut nodes = Nodes::new(&scratch, 3);
    let settings = "engine = \"disk\"\n[disk-engine]\nmemtable = \"1MiB\"\n";
    (0..3).for_each(|node| nodes.configure(node, "cluster = 7", settings));
    (0..3).for_each(|node| nodes.start(node, &["--bootstrap"]));
    nodes.set(0, "first", "v");
    let value = "v".repeat(10_000);
    let mut redis = Redis::connect(nodes.port);
    for number in 0..600 {
        assert_eq!(redis.ask(&["SET", &format!("k{number}"), &value]), "+OK");
    }
    let tables = |node: usize| {
        let tables = scratch.0.join(format!("data-{node}/engine/1/tables"));
        let tables = std::fs::read_dir(tables).into_iter().flatten().flatten();
        tables.map(|table| table.path()).collect::<Vec<_>>()
    };
    wait_for("a checkpoint", || (!tables(2).is_empty()).then_some(()));
    nodes.stop(2, Signal::KILL);
    for table in tables(2) {
        let mut bytes = std::fs::read(&table).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        std::fs::write(&table, bytes).unwrap();
    }
    nodes.start(2, &[]);
    wait_for("the repaired node", || {
        let mut redis = Redis::try_connect(nodes.port + 2).ok()?;
        let first = redis.try_ask(&["READ", "stale", "GET", "first"]).ok()?;
        let last = redis.try_ask(&["READ", "stale", "GET", "k599"]).ok()?;
        (first == "v" && last == value).then_some(())
    });
    assert!(scratch.0.join("data-2/damaged-1/engine").exists(), "the damaged store is kept");
    (0..3).for_each(|node| nodes.stop(node, Signal::TERM));
}

#[test]
fn a_gateway_serves_the_cluster_and_survives_its_leader() {
    let scratch = Scratch::new("gateway");
    let mut nodes = Nodes::new(&scratch, 3);
    (0..3).for_each(|node| nodes.start(node, &["--bootstrap"]));
    nodes.set(0, "k", "v");
    let port = nodes.port + 50;
    let mut command = syros();
    command.args(["gateway", "--cluster", &nodes.cluster(), "--port", &port.to_string()]);
    let mut gateway = command.stderr(Stdio::null()).spawn().unwrap();
    let mut redis = wait_for("the gateway", || Redis::try_connect(port).ok());
    assert_eq!(redis.ask(&["GET", "k"]), "v");
    assert_eq!(redis.ask(&["INCR", "n"]), ":1");
    let info = redis.ask(&["INFO", "syros"]);
    let leader = info.lines().find_map(|line| line.strip_prefix("leader:")).unwrap();
    let leader: usize = leader.trim_end().parse().unwrap();
    nodes.stop(leader, Signal::KILL);
    let value = redis.ask(&["INCR", "n"]);
    assert_eq!(value, ":2");
    assert_eq!(redis.ask(&["SET", "k", "w"]), "+OK");
    assert_eq!(redis.ask(&["GET", "k"]), "w");

    let output = run(syros().args(["status", "--json", "--addr", &format!("127.0.0.1:{port}")]));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "a replica is down: {lines}");
    let told = text(&output);
    assert!(
        told.contains("2 of 3 replicas are known to take part; it stops when another one fails"),
        "{told}"
    );
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert_eq!(lines.matches("\"role\":\"down\"").count(), 1, "{lines}");
    assert_eq!(lines.matches("\"role\":\"leader\"").count(), 1, "{lines}");
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
}

#[test]
fn a_gateway_to_the_wrong_place_says_so() {
    let port = free_ports();
    let list = format!("127.0.0.1:{port},127.0.0.1:{},127.0.0.1:{}", port + 1, port + 2);
    let options =
        ["gateway", "--cluster", &list, "--port", &(port + 3).to_string(), "--connect-timeout", "1"];
    let output = run(syros().args(options));
    assert!(
        !output.status.success() && text(&output).contains("no replica can be used"),
        "{}",
        text(&output)
    );
}

/// A process has several ports, and each is easily taken for another one.
#[test]
fn a_command_at_the_wrong_port_is_told_which_one_that_is() {
    let scratch = Scratch::new("ports");
    let dev = Dev::start(&scratch.0.join("dev"), free_ports(), &[]);
    let node = &dev.nodes[0];
    let told = |arguments: &[&str]| {
        let output = run(syros().args(arguments));
        assert!(!output.status.success(), "{}", text(&output));
        text(&output)
    };
    let at = |port: u16| format!("127.0.0.1:{port}");
    assert!(
        Redis::connect(node.replica)
            .ask(&["GET", "k"])
            .starts_with("-ERR this port of Syros is for its nodes")
    );
    for arguments in [
        &["status", "--addr", &at(node.replica)][..],
        &["lead", "1", "--addr", &at(node.replica)],
        &["import", "--from", &format!("redis://{}", at(node.replica)), "--to", &at(node.redis)],
    ] {
        let told = told(arguments);
        assert!(told.contains("this port of Syros is for its nodes"), "{told}");
    }
    let told_of = told(&["status", "--replicas", &at(node.redis)]);
    assert!(told_of.contains("It is a port for Redis clients"), "{told_of}");
    for port in [node.redis, node.replica] {
        let told_of = told(&["health", &at(port)]);
        assert!(told_of.contains("where syros health asks that for metrics"), "{told_of}");
    }
    assert!(dev.stop().success());
}

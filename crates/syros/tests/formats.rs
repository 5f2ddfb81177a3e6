//! Directories that earlier versions wrote: a node reads them, writes on, and reads them again.
//!
//! `fixtures/memory` and `fixtures/disk` were written by commit 168d50a: directory formats 1 and 2, log format 2, with a
//! snapshot and with a checkpoint of the engine on disk. The room behind their last records has been cut off.
//! `fixtures/memory-log-1` is the first one with its log in format 1, that is, without marks.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{Redis, Scratch, copy_directory, free_ports, kill, run, syros, text, wait_for, wait_for_end};
use rustix::process::Signal;

/// Keys `key:0` and so on, of which one was deleted.
const KEYS: usize = 25;
const DELETED: usize = 3;

struct Node {
    scratch: Scratch,
    port: u16,
    process: Option<Child>,
}

impl Node {
    /// A node on a copy of a fixture.
    fn on(fixture: &str, engine: &str, test: &str) -> Self {
        let scratch = Scratch::new(&format!("{test}-{fixture}"));
        let port = free_ports();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        copy_directory(&from, &scratch.0.join("data"));
        let config = format!(
            "cluster = 7\nreplica = 0\nreplicas = [\"127.0.0.1:{}\"]\ndirectory = \"data\"\nengine = \"{engine}\"\n\
             [disk]\nwal-segment = \"64KiB\"\nreserve = \"0\"\n[listen]\nredis = \"127.0.0.1:{port}\"\n",
            port + 100
        );
        std::fs::write(scratch.0.join("node.toml"), config).unwrap();
        Self { scratch, port, process: None }
    }

    fn start(&mut self) -> Redis {
        let mut command = syros();
        command.arg("server").arg("--config").arg(self.scratch.0.join("node.toml")).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        wait_for("a node that serves", || {
            let mut redis = Redis::try_connect(self.port).ok()?;
            (redis.try_ask(&["GET", "probe"]).ok()? == "1").then_some(redis)
        })
    }

    fn stop(&mut self, signal: Signal) {
        let mut process = self.process.take().unwrap();
        kill(process.id().try_into().unwrap(), signal);
        wait_for_end(&mut process);
    }

    fn data(&self) -> PathBuf {
        self.scratch.0.join("data")
    }

    /// The value of a line of the identity file.
    fn identity(&self, key: &str) -> String {
        let text = std::fs::read_to_string(self.data().join("identity")).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
        value.unwrap_or_else(|| panic!("{key} is missing in {text}")).to_owned()
    }

    /// The version of each segment's format, oldest segment first.
    fn log_versions(&self) -> Vec<u8> {
        let entries = std::fs::read_dir(self.data().join("wal")).unwrap();
        let mut segments: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        segments.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        segments.sort();
        segments.iter().map(|segment| std::fs::read(segment).unwrap()[8]).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn expect_values(redis: &mut Redis, counter: &str, new: &str) {
    for key in 0..KEYS {
        let expected = if key == DELETED { "nil".to_owned() } else { format!("value of {key}") };
        assert_eq!(redis.ask(&["GET", &format!("key:{key}")]), expected);
    }
    assert_eq!(redis.ask(&["GET", "large"]), "small now");
    assert_eq!(redis.ask(&["GET", "counter"]), counter);
    assert_eq!(redis.ask(&["GET", "new"]), new);
}

/// Every value is found, more are written, and all of them are found again after a stop and after a crash.
fn is_upgraded(fixture: &str, engine: &str, log_version: u8) {
    let mut node = Node::on(fixture, engine, "upgraded");
    let disk = node.identity("disk");
    assert_eq!(node.log_versions(), [log_version]);
    let mut redis = node.start();
    expect_values(&mut redis, "7", "nil");
    assert_eq!(redis.ask(&["INCR", "counter"]), ":8");
    assert_eq!(redis.ask(&["SET", "new", "value"]), "+OK");
    node.stop(Signal::KILL);
    assert_eq!((node.identity("format"), node.identity("incarnation")), ("3".to_owned(), "1".to_owned()));
    assert_eq!((node.identity("group"), node.identity("epoch")), ("0".to_owned(), "0".to_owned()));
    assert_eq!((node.identity("node"), node.identity("nodes")), (disk.clone(), disk.clone()));
    assert_eq!(node.log_versions(), [log_version, 4], "it goes on in a new segment");
    let mut redis = node.start();
    expect_values(&mut redis, "8", "value");
    assert_eq!(redis.ask(&["INCR", "counter"]), ":9");
    node.stop(Signal::TERM);
    let mut redis = node.start();
    expect_values(&mut redis, "9", "value");
    assert_eq!((node.identity("node"), node.identity("incarnation")), (disk, "3".to_owned()));
}

#[test]
fn a_directory_of_format_1_with_keys_in_memory_is_upgraded() {
    is_upgraded("memory", "memory", 2);
}

#[test]
fn a_log_of_format_1_is_upgraded() {
    is_upgraded("memory-log-1", "memory", 1);
}

#[test]
fn a_directory_of_format_2_with_keys_on_disk_is_upgraded() {
    is_upgraded("disk", "disk", 2);
}

#[test]
fn a_directory_of_a_later_format_or_configuration_is_refused_by_name() {
    let node = Node::on("memory", "memory", "refused");
    let file = node.data().join("identity");
    let text_of_before = std::fs::read_to_string(&file).unwrap();
    for (identity, complaint) in [
        (
            text_of_before.replace("format = 1", "format = 4"),
            "has format 4, this version of Syros reads formats 1 to 3",
        ),
        (
            text_of_before
                .replace("format = 1", "format = 3\nengine = memory\nincarnation = 9\ngroup = 7\nepoch = 0"),
            "it names group 7, epoch 0; here it is group 0, epoch 0",
        ),
    ] {
        std::fs::write(&file, identity).unwrap();
        let refused = run(syros().arg("server").arg("--config").arg(node.scratch.0.join("node.toml")));
        assert!(!refused.status.success() && text(&refused).contains(complaint), "{}", text(&refused));
    }
}

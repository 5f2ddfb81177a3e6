//! The log of a process as an operator and a collector of logs see it.

mod common;

use common::{PATIENCE, Redis, Scratch, free_ports, kill, run, syros, text, wait_for, wait_for_end};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A group of one.
struct Node {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Node {
    /// Starts it, with its log in a file, and waits until it takes updates.
    fn start(scratch: &Scratch, options: &[&str]) -> Self {
        let log = scratch.0.join("log");
        let file = File::create(&log).unwrap();
        let mut node = Self::with_stderr(scratch, options, file.into());
        node.log = log;
        node
    }

    fn with_stderr(scratch: &Scratch, options: &[&str], stderr: Stdio) -> Self {
        let (port, config) = (free_ports(), scratch.0.join("node.toml"));
        let replica = port + 100;
        let settings = format!(
            "cluster = 9\nreplica = 0\nreplicas = [\"127.0.0.1:{replica}\"]\ndirectory = \"data\"\n\
             [listen]\nredis = \"127.0.0.1:{port}\"\n"
        );
        std::fs::write(&config, settings).unwrap();
        let mut command = syros();
        command.arg("server").arg("--config").arg(&config).arg("--bootstrap").args(options).stderr(stderr);
        let node = Self { process: command.spawn().unwrap(), port, log: PathBuf::new() };
        node.must_serve();
        node
    }

    fn must_serve(&self) {
        wait_for("a node that takes updates", || {
            (Redis::try_connect(self.port).ok()?.try_ask(&["SET", "key", "1"]).ok()? == "+OK").then_some(())
        });
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// What any peer may send to the port for the other nodes.
    fn send_garbage(&self, count: usize) {
        for _ in 0..count {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port + 100)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let _ = stream.write_all(b"GET /\n2026-01-01T00:00:00.000Z ERROR forged \x1b[2J\r\n\r\n");
            // It has been logged when the connection is closed.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }

    fn stop(&mut self) {
        kill(self.process.id().try_into().unwrap(), Signal::TERM);
        assert!(wait_for_end(&mut self.process).success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn objects(log: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let lines: Vec<Value> = log.lines().map(parse).collect();
    for line in &lines {
        for name in ["time", "level", "target", "message"] {
            assert!(line[name].is_string(), "{name} in {line}");
        }
    }
    lines
}

/// Lines of `log` about peers that are refused.
fn refusals(log: &str) -> usize {
    log.lines().filter(|line| line.contains("WARN") && line.contains("127.0.0.1:")).count()
}

#[test]
fn every_line_is_an_object_and_strangers_forge_none() {
    let scratch = Scratch::new("json");
    let mut node = Node::start(&scratch, &["--log-format", "json", "--log-level", "debug"]);
    node.send_garbage(5);
    // A command that is a line of its own, with an end of a line in it.
    let mut redis = Redis::connect(node.port);
    assert!(redis.ask(&["CLIENT\n{\"level\":\"error\"}", "\u{1b}[2J"]).starts_with('-'));
    node.stop();
    let lines = objects(&node.log());
    assert!(lines.iter().all(|line| line["level"] != "error"), "{lines:?}");
    assert!(lines.iter().any(|line| line["level"] == "warn"), "{lines:?}");
    let is_of_loop = |target: &str| target.starts_with("syros_runtime::event_loop");
    assert!(lines.iter().any(|line| line["target"].as_str().is_some_and(is_of_loop)), "{lines:?}");
}

#[test]
fn why_a_node_does_not_start_is_an_object_too() {
    let scratch = Scratch::new("json-refused");
    let config = scratch.0.join("node.toml");
    let settings = "cluster = 9\nreplica = 0\nreplicas = [\"127.0.0.1:1\"]\ndirectory = \"no\\nwhere\"\n";
    std::fs::write(&config, settings).unwrap();
    let start =
        |format: &str| run(syros().arg("server").arg("--config").arg(&config).args(["--log-format", format]));
    let output = start("json");
    assert!(!output.status.success());
    let lines = objects(&String::from_utf8_lossy(&output.stderr));
    let last = lines.last().unwrap();
    assert!(last["level"] == "error" && last["error"].as_str().unwrap().contains("--bootstrap"), "{last}");
    let output = start("human");
    assert!(!output.status.success() && text(&output).contains("syros: "), "{}", text(&output));
}

#[test]
fn what_is_no_level_or_format_is_named_with_what_would_be_one() {
    for (option, value, complaint) in [
        ("--log-level", "chatty", "\"chatty\" is not one of \"error\", \"warn\", \"info\""),
        ("--log-level", "info,syros_wal=loud", "\"loud\" is not one of"),
        ("--log-format", "xml", "\"xml\" is not one of \"human\", \"json\""),
        ("--log-lines", "-1", "'-1'"),
    ] {
        for command in ["server", "gateway", "dev"] {
            let needed = match command {
                "server" => ["--config", "none"],
                "gateway" => ["--cluster", "127.0.0.1:1"],
                _ => ["--dir", "none"],
            };
            let output = run(syros().arg(command).args(needed).arg(format!("{option}={value}")));
            assert_eq!(output.status.code(), Some(2), "{command} {}", text(&output));
            assert!(text(&output).contains(complaint), "{command} {option}: {}", text(&output));
        }
    }
}

#[test]
fn garbage_cannot_fill_the_log() {
    let scratch = Scratch::new("flood");
    let mut node = Node::start(&scratch, &["--log-lines", "5"]);
    node.send_garbage(300);
    node.stop();
    let log = node.log();
    // Two call sites may be reached, and the minute may change once.
    assert!((1..=20).contains(&refusals(&log)), "{log}");
    assert!(!log.contains("\nforged") && !log.contains('\u{1b}'), "{log}");

    let scratch = Scratch::new("flood-shown");
    let mut node = Node::start(&scratch, &["--log-lines", "0"]);
    node.send_garbage(300);
    node.stop();
    assert!(refusals(&node.log()) >= 300, "{}", node.log());
}

#[test]
fn a_log_that_is_full_or_gone_ends_nothing() {
    let scratch = Scratch::new("full");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut node = Node::with_stderr(&scratch, &[], full.into());
    node.send_garbage(5);
    node.must_serve();
    node.stop();

    let scratch = Scratch::new("gone");
    let mut node = Node::with_stderr(&scratch, &[], Stdio::piped());
    drop(node.process.stderr.take());
    node.send_garbage(5);
    node.must_serve();
    node.stop();
}

/// Nobody reads the pipe, and each connection writes several lines: the node answers all the same, and tells what is missing
/// as soon as there is a reader.
#[test]
fn a_reader_that_does_not_read_stops_nothing() {
    let scratch = Scratch::new("blocked");
    let options = ["--log-level", "trace", "--log-lines", "0"];
    let mut node = Node::with_stderr(&scratch, &options, Stdio::piped());
    // Some MB: more than pipe and queue hold.
    node.send_garbage(4000);
    node.must_serve();
    let (mut stderr, read) = (node.process.stderr.take().unwrap(), Arc::<Mutex<String>>::default());
    let text = Arc::clone(&read);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            text.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    wait_for("a line that tells of lost lines", || {
        node.must_serve();
        read.lock().unwrap().contains(" lost=").then_some(())
    });
    node.stop();
    reader.join().unwrap();
    let text = read.lock().unwrap();
    assert!(text.lines().all(|line| line.starts_with("20") && line.contains('Z')), "a line is torn");
    assert!(text.contains(" TRACE "), "an operation can be followed");
    assert!(text.lines().last().unwrap().contains("this node has stopped"), "the last line is written");
}

/// What stands before the message in calls of the macros of `tracing`: the fields.
fn calls(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            calls(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let call = |rest: &str| rest.split('"').next().unwrap_or_default().to_owned();
            for level in ["error", "warn", "info", "debug", "trace"] {
                found.extend(text.split(&format!("tracing::{level}!(")).skip(1).map(call));
            }
        }
    }
}

/// A field with the name of a member that every object has would hide that member.
#[test]
fn no_field_has_the_name_of_what_every_line_has() {
    let (crates, mut found) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Vec::new());
    for name in ["runtime", "cli", "syros"] {
        calls(&crates.join(name).join("src"), &mut found);
    }
    assert!(found.len() > 60, "{} calls were found, which are too few", found.len());
    for call in found {
        for name in ["time", "level", "target", "message", "suppressed", "lost"] {
            let words = call.split(|character: char| {
                !character.is_alphanumeric() && character != '_' && character != '='
            });
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            assert!(!words.windows(2).any(|pair| pair == [name, "="]), "{name} in {call}");
        }
    }
}

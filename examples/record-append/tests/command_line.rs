//! The program on the command line, as its help shows it.

mod common;

use common::{Scratch, free_ports, program, wait_for};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

/// `record-append cluster`, until it is dropped.
struct Running(Child, String);

impl Running {
    fn start(directory: &Path, port: u16) -> Self {
        let mut command = program();
        command.args(["cluster", "--port", &port.to_string(), "--dir"]).arg(directory);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("three nodes listen on 127.0.0.1:"), "{line}");
        let nodes = format!("--nodes=127.0.0.1:{port},127.0.0.1:{},127.0.0.1:{}", port + 1, port + 2);
        Self(process, nodes)
    }

    /// What the program prints, or complains of.
    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = program().args(arguments).arg(&self.1).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_help_shows() {
    let scratch = Scratch::new("command-line");
    let (directory, port) = (scratch.0.join("data"), free_ports());
    let cluster = Running::start(&directory, port);
    assert_eq!(cluster.ask(&["append", "log", "first", "second"]), Ok(String::new()));
    assert_eq!(cluster.ask(&["append-at", "log", "third"]), Ok("2\n".to_owned()));
    let mut seq = program();
    seq.args(["append", "numbers", &cluster.1]).stdin(Stdio::piped());
    let mut seq = seq.spawn().unwrap();
    seq.stdin.take().unwrap().write_all(b"1\n2\n\n4").unwrap();
    assert!(seq.wait().unwrap().success());
    assert_eq!(cluster.ask(&["read", "numbers"]).as_deref(), Ok("1\n2\n\n4\n"));
    assert_eq!(cluster.ask(&["append", "gone", "x"]), Ok(String::new()));
    assert_eq!(cluster.ask(&["remove", "gone"]), Ok(String::new()));
    // All nodes at once, with no word of it.
    drop(cluster);
    let cluster = Running::start(&directory, port);
    assert_eq!(cluster.ask(&["read", "log", "--from", "1", "--count", "1"]).as_deref(), Ok("second\n"));
    for policy in ["leader", "meta", "quorum", "auto"] {
        assert_eq!(cluster.ask(&["read", "log", "--reads", policy]).as_deref(), Ok("first\nsecond\nthird\n"));
    }
    assert_eq!(cluster.ask(&["length", "log"]).as_deref(), Ok("3\n"));
    assert_eq!(cluster.ask(&["list"]).as_deref(), Ok("3\tlog\n4\tnumbers\n"));

    let status = cluster.ask(&["status"]).unwrap();
    let count = |role: &str| status.lines().filter(|line| line.contains(role)).count();
    assert_eq!((count("leader of view"), count("follower of view")), (1, 2), "{status}");

    let long = "n".repeat(256);
    let refused = cluster.ask(&["length", &long]).unwrap_err();
    assert_eq!(refused, "record-append: the name of the file has 256 bytes; 1 to 255 are allowed\n");
    let refused = program().args(["cluster", "--dir"]).arg(&directory).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("is in use by process "), "{refused}");
}

#[test]
fn the_data_of_others_is_left_alone() {
    let scratch = Scratch::new("others");
    let port = free_ports();
    let cluster = Running::start(&scratch.0.join("data"), port);
    // A cluster that answers has been formed: its nodes are told to form no other.
    assert_eq!(cluster.ask(&["append", "log", "first"]), Ok(String::new()));
    drop(cluster);
    let node = scratch.0.join("data/node-1");
    let number = std::fs::read_to_string(scratch.0.join("data/cluster")).unwrap();
    let number = u64::from_str_radix(number.trim(), 16).unwrap().to_string();
    let nodes = format!("127.0.0.1:{port},127.0.0.1:{},127.0.0.1:{}", port + 1, port + 2);
    let start = |options: &[&str]| {
        wait_for("a directory that nobody uses", || {
            let mut command = program();
            command.args(["node", "--id", "1", "--nodes", &nodes, "--cluster", &number, "--dir"]);
            let output = command.arg(&node).args(options).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            (!text.contains("in use")).then_some(text)
        })
    };
    let refused = start(&["--fast-quorum", "majority"]);
    assert!(refused.contains("fast quorum supermajority"), "{refused}");
    assert!(refused.contains("engine machine record-append"), "{refused}");
    let refused = start(&["--bootstrap"]);
    assert!(refused.contains("start it without --bootstrap"), "{refused}");
    // A node that lost its data does not begin anew.
    std::fs::remove_dir_all(&node).unwrap();
    let refused = program()
        .args(["cluster", "--port", &port.to_string(), "--dir"])
        .arg(scratch.0.join("data"))
        .output()
        .unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("node 1: directory") && refused.contains("holds no replica"), "{refused}");
}

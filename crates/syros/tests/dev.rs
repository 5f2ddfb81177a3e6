//! `syros dev`: the first thing anybody runs.

mod common;

use common::{Dev, Redis, Scratch, free_ports, is_running, kill, run, syros, text, wait_for};
use rustix::process::Signal;
use std::net::{Ipv4Addr, TcpListener};

#[test]
fn exec_runs_with_the_cluster_ready_and_passes_its_status_on() {
    let (scratch, port) = (Scratch::new("exec"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = |exec: &str, more: &[&str]| {
        let mut command = syros();
        command.arg("dev").arg("--dir").arg(&dir).args(["--port", &port.to_string(), "--exec", exec]);
        run(command.args(more))
    };
    let script = "echo {port} {ports} {cluster}; exit 7";
    let output = dev(script, &[]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let (p, r) = (port, port + 100);
    let expected =
        format!("{p} {p},{},{} 127.0.0.1:{r},127.0.0.1:{},127.0.0.1:{}\n", p + 1, p + 2, r + 1, r + 2);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);

    // A second run finds the same cluster, and says so when it is asked for another.
    let output = dev("kill -TERM $$", &[]);
    assert_eq!(output.status.code(), Some(128 + 15), "{}", text(&output));
    for (option, value, has) in [
        ("--replicas", "5", "3"),
        ("--durability", "replicated", "fsync"),
        ("--fast-quorum", "supermajority", "mixed"),
        ("--fast-quorum", "majority", "mixed"),
    ] {
        let output = dev("true", &[option, value]);
        let complaint = format!("was made with {option} {has}, not {value}");
        assert!(!output.status.success() && text(&output).contains(&complaint), "{}", text(&output));
    }
    let output = dev("true", &["--replicas", "1", "--fresh"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn data_is_there_again_after_a_stop() {
    let (scratch, port) = (Scratch::new("again"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    assert_eq!(Redis::connect(port).ask(&["SET", "greeting", "hello"]), "+OK");
    assert!(dev.stop().success());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    for node in &dev.nodes {
        assert_eq!(Redis::connect(node.redis).ask(&["GET", "greeting"]), "hello");
    }
    assert!(dev.stop().success());
}

#[test]
fn a_cluster_in_memory_says_that_it_is_gone() {
    let (scratch, port) = (Scratch::new("memory"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = Dev::start(&dir, port, &["--durability", "replicated", "--replicas", "5"]);
    assert_eq!(dev.nodes.len(), 5);
    assert_eq!(Redis::connect(port + 4).ask(&["SET", "k", "v"]), "+OK");
    assert!(dev.stop().success());
    let again = run(syros().arg("dev").arg("--dir").arg(&dir));
    assert!(!again.status.success() && text(&again).contains("--fresh"), "{}", text(&again));
    let dev = Dev::start(&dir, port, &["--durability", "replicated", "--fresh"]);
    assert_eq!(Redis::connect(port).ask(&["GET", "k"]), "nil");
    drop(dev);
}

#[test]
fn a_busy_port_and_a_strange_directory_are_named() {
    let (scratch, port) = (Scratch::new("busy"), free_ports());
    let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, port + 1)).unwrap();
    let dir = scratch.0.join("cluster");
    let output = run(syros().arg("dev").arg("--dir").arg(&dir).args(["--port", &port.to_string()]));
    let complaint = format!("port {} is in use already", port + 1);
    assert!(!output.status.success() && text(&output).contains(&complaint), "{}", text(&output));
    drop(busy);

    std::fs::write(scratch.0.join("thesis.tex"), "important").unwrap();
    let output = run(syros().arg("dev").arg("--dir").arg(&scratch.0).arg("--fresh"));
    assert!(!output.status.success() && text(&output).contains("thesis.tex"), "{}", text(&output));
}

#[test]
fn nodes_do_not_outlive_a_killed_dev() {
    let (scratch, port) = (Scratch::new("orphans"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    let nodes = dev.nodes.clone();
    kill(dev.process.id().try_into().unwrap(), Signal::KILL);
    for node in nodes {
        wait_for("the end of a node", || (!is_running(node.pid)).then_some(()));
    }
}

#[test]
fn regions_that_are_not_known_are_refused() {
    let (scratch, port) = (Scratch::new("regions"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = |regions: &str, more: &[&str]| {
        let mut command = syros();
        command.arg("dev").arg("--dir").arg(&dir).args(["--port", &port.to_string(), "--regions", regions]);
        run(command.args(more))
    };
    for (regions, more, complaint) in [
        ("atlantis", &["--exec", "true"][..], "five-continents"),
        ("far-leader", &["--replicas", "3", "--exec", "true"], "far-leader has 5 replicas"),
        ("far-leader", &["--exec", "echo {cluster:rome}"], "no clients are in 'rome', but in wisconsin"),
    ] {
        let output = dev(regions, more);
        assert!(!output.status.success() && text(&output).contains(complaint), "{}", text(&output));
        assert!(!dir.exists(), "it made something");
    }
}

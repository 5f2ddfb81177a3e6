//! Who is a member: disks that were wiped, two nodes with one id, settings that differ, secrets, and strangers that take
//! up the replicas' port.

mod common;

use common::nodes::Nodes;
use common::{PATIENCE, Scratch, copy_directory, run, syros, text, wait_for};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use syros_protocol::formation::Stage;
use syros_types::NodeId;
use syros_types::ReplicaId;
use syros_wire::{Channel, HandshakeMessage, Hello, Sender, VERSION, VERSION_MIN, put_frame};

/// FOUND A1: what was acknowledged was nil, for good.
#[test]
fn a_wiped_disk_does_not_come_back_with_bootstrap() {
    let scratch = Scratch::new("wiped");
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "first", "1"));
    nodes.stop(1, Signal::TERM);
    nodes.set(0, "precious", "gold");
    nodes.stop(0, Signal::KILL);
    nodes.stop(2, Signal::TERM);
    std::fs::rename(scratch.0.join("data-2"), scratch.0.join("away")).unwrap();

    nodes.start(2, &["--bootstrap"]);
    nodes.wait_for_log(2, "this node waits for replica 0, replica 1 to be started");
    nodes.start(1, &[]);
    let log = nodes.refused(2);
    assert!(
        log.contains("a directory was wiped or exchanged, or two nodes are started as replica 2"),
        "{log}"
    );

    // The old directory is taken.
    std::fs::remove_dir_all(scratch.0.join("data-2")).unwrap();
    std::fs::rename(scratch.0.join("away"), scratch.0.join("data-2")).unwrap();
    nodes.start(2, &[]);
    assert_eq!(nodes.get(1, "precious"), "gold");
    nodes.start(0, &[]);
    assert_eq!(nodes.get(0, "precious"), "gold");
}

#[test]
fn a_wiped_leader_is_refused_too_and_the_others_go_on() {
    let scratch = Scratch::new("wiped-leader");
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    nodes.set(0, "k", "v");
    nodes.stop(0, Signal::KILL);
    std::fs::remove_dir_all(scratch.0.join("data-0")).unwrap();
    nodes.start(0, &["--bootstrap"]);
    let log = nodes.refused(0);
    assert!(log.contains("replica 0"), "{log}");
    nodes.set(1, "k2", "v2");
    assert_eq!(nodes.get(2, "k"), "v");
}

#[test]
fn a_cluster_is_formed_by_all_nodes_and_not_before() {
    let scratch = Scratch::new("forming");
    let mut nodes = Nodes::new(&scratch);
    nodes.start(0, &["--bootstrap"]);
    nodes.start(1, &["--bootstrap"]);
    nodes.wait_for_log(0, "waits for replica 2 to be started with a new data directory");
    assert!(!nodes.connects(0), "it serves clients before there is a cluster");
    // A first start may be interrupted, and goes on.
    nodes.stop(1, Signal::KILL);
    nodes.start(1, &[]);
    nodes.start(2, &["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "k", "v"));
    // From now on it is enough that a majority is there.
    (0..3).for_each(|node| nodes.stop(node, Signal::KILL));
    nodes.start(1, &[]);
    nodes.start(2, &[]);
    assert_eq!(nodes.get(2, "k"), "v");
}

#[test]
fn two_nodes_with_one_id_are_not_both_taken() {
    let scratch = Scratch::new("twins");
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    nodes.set(2, "k", "v");
    // Another machine with the configuration of node 2.
    nodes.configure(3, 2, "", "");
    nodes.start(3, &["--bootstrap"]);
    let log = nodes.refused(3);
    assert!(log.contains("two nodes are started as replica 2"), "{log}");
    nodes.set(2, "k", "w");
    // A copy of the directory has the same disk, and runs at the same time: neither is counted.
    let _ = std::fs::remove_dir_all(scratch.0.join("data-3"));
    copy_directory(&scratch.0.join("data-2"), &scratch.0.join("data-3"));
    nodes.start(3, &[]);
    wait_for("a word about two processes", || {
        (0..2).any(|node| nodes.log(node).contains("two processes run as replica 2")).then_some(())
    });
    nodes.set(0, "k", "x");
}

/// One that waited would take the place of a node that is merely started anew.
#[test]
fn a_node_that_runs_is_not_waited_for_to_be_away() {
    let scratch = Scratch::new("alive");
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "k", "v"));
    nodes.configure(3, 2, "", "");
    nodes.start(3, &["--replace"]);
    let log = nodes.refused(3);
    assert!(log.contains("the node that is replica 2 runs, and goes on answering"), "{log}");
    // It has its place after it was started anew.
    nodes.stop(2, Signal::KILL);
    nodes.start(2, &[]);
    assert_eq!(nodes.get(2, "k"), "v");
    // Nor does a later start wait, which needs no option.
    nodes.start(3, &[]);
    let log = nodes.refused(3);
    assert_eq!(log.matches("goes on answering").count(), 2, "{log}");
    // When it is stopped for good, another one takes its place.
    nodes.stop(2, Signal::KILL);
    nodes.start(3, &[]);
    assert_eq!(nodes.get(3, "k"), "v");
}

/// Without a secret. Only one node is left to say so.
#[test]
fn a_node_that_was_away_while_the_cluster_shrank_ends() {
    let scratch = Scratch::new("shrunk");
    let mut nodes = Nodes::new(&scratch);
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "k", "v"));
    nodes.stop(2, Signal::KILL);
    nodes.set(0, "k", "w");
    let address = format!("127.0.0.1:{}", nodes.port);
    let removed = run(syros().args(["member", "remove", "1", "2", "--addr", &address]));
    assert!(removed.status.success(), "{}", text(&removed));
    let log = nodes.refused(1);
    assert!(log.contains("was removed from the cluster"), "{log}");
    nodes.start(2, &[]);
    let log = nodes.refused(2);
    assert!(log.contains("replica 2, this node, was removed from the cluster in epoch 1"), "{log}");
    assert_eq!(nodes.get(0, "k"), "w");
}

/// A data directory that is put back has forgotten what it acknowledged since.
#[test]
fn an_earlier_life_of_a_node_is_not_counted() {
    let scratch = Scratch::new("lives");
    let mut nodes = Nodes::new(&scratch);
    let [data, copy, older] = ["data-2", "copy", "older"].map(|name| scratch.0.join(name));
    nodes.start_all(&["--bootstrap"]);
    nodes.set(2, "k", "v");
    nodes.stop(2, Signal::TERM);
    copy_directory(&data, &older);
    for value in ["w", "x"] {
        nodes.start(2, &[]);
        nodes.set(2, "k", value);
        nodes.stop(2, Signal::TERM);
        if value == "w" {
            copy_directory(&data, &copy);
        }
    }
    let starts = |directory: &Path| {
        let text = std::fs::read_to_string(directory.join("identity")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("incarnation = "));
        line.and_then(|number| number.parse::<u64>().ok()).unwrap()
    };
    let last = starts(&data);
    assert_eq!((starts(&older), starts(&copy)), (last - 2, last - 1));
    // The one copy comes back as the start before the last one, the other as another process of the last one.
    for directory in [&older, &copy] {
        let start = starts(directory) + 1;
        std::fs::remove_dir_all(&data).unwrap();
        copy_directory(directory, &data);
        nodes.start(2, &[]);
        for node in 0..2 {
            nodes.wait_for_log(node, &format!("says that this is its start number {start}, and a later one"));
        }
        nodes.wait_for_log(2, "it refuses this node: ");
        nodes.stop(2, Signal::KILL);
    }
    nodes.set(0, "k", "y");
    assert_eq!(nodes.get(1, "k"), "y");
}

/// FOUND A2: a leader with a long lease gave stale reads.
#[test]
fn settings_that_must_agree_are_compared_by_name() {
    let scratch = Scratch::new("settings");
    let mut nodes = Nodes::new(&scratch);
    nodes.configure(0, 0, "", "[timing]\nlease = \"10s\"\nsuspect-after = \"11s\"");
    nodes.start_all(&["--bootstrap"]);
    nodes.wait_for_log(1, "its lease is 10s, here it is 200ms");
    nodes.wait_for_log(0, "its lease is 200ms, here it is 10s");
    nodes.stop(0, Signal::TERM);
    nodes.configure(0, 0, "", "[timing]\nclock-drift-ppm = 1");
    nodes.start(0, &[]);
    nodes.wait_for_log(1, "its clock-drift-ppm is 1, here it is 10000");
    nodes.stop(0, Signal::TERM);
    nodes.configure(0, 0, "", "[timing]\nsession-timeout = \"20s\"");
    nodes.start(0, &[]);
    nodes.wait_for_log(1, "its session-timeout is 20s, here it is 600s");
    nodes.stop(0, Signal::TERM);
    nodes.configure(0, 0, "", "");
    nodes.start(0, &[]);
    nodes.set(0, "k", "v");
}

fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// FOUND B3: whoever reached the port could say that it is a replica.
#[test]
fn only_who_knows_the_secret_is_a_replica() {
    let scratch = Scratch::new("secret");
    let mut nodes = Nodes::new(&scratch);
    write_secret(&scratch.0.join("right"), "0123456789abcdef\n");
    write_secret(&scratch.0.join("wrong"), "0123456789abcdeX\n");
    (0..3).for_each(|node| nodes.configure(node, node, "secret-file = \"right\"", ""));
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "k", "v"));
    for (file, complaint) in [
        ("secret-file = \"wrong\"", "does not know the cluster's secret"),
        ("", "has no secret, this node has one"),
    ] {
        nodes.stop(2, Signal::TERM);
        nodes.configure(2, 2, file, "");
        nodes.start(2, &[]);
        nodes.wait_for_log(0, complaint);
    }
    nodes.stop(2, Signal::TERM);
    nodes.configure(2, 2, "secret-file = \"right\"", "");
    nodes.start(2, &[]);
    nodes.set(2, "k", "w");

    let addr = format!("127.0.0.1:{}", nodes.port);
    let lead = |more: &[&str]| run(syros().args(["lead", "1", "--addr", &addr]).args(more));
    let refused = lead(&[]);
    assert!(!refused.status.success() && text(&refused).contains("--secret-file"), "{}", text(&refused));
    let wrong = scratch.0.join("wrong");
    let refused = lead(&["--secret-file", wrong.to_str().unwrap()]);
    assert!(text(&refused).contains("does not prove that it knows the secret"), "{}", text(&refused));
    let right = scratch.0.join("right");
    wait_for("replica 1 to lead", || {
        lead(&["--secret-file", right.to_str().unwrap()]).status.success().then_some(())
    });
    // Who sends the request all the same, without a proof, is not heard.
    std::fs::set_permissions(&right, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = lead(&["--secret-file", right.to_str().unwrap()]);
    assert!(text(&refused).contains("can be read by others than its owner"), "{}", text(&refused));
}

/// FOUND B5: idle connections to the replicas' port kept the replicas out.
#[test]
fn strangers_on_the_replicas_port_keep_no_member_out() {
    const STRANGERS: usize = 600;
    let scratch = Scratch::new("strangers");
    let mut nodes = Nodes::new(&scratch);
    (0..3).for_each(|node| nodes.configure(node, node, "", "[limits]\nconnections = 20"));
    nodes.start_all(&["--bootstrap"]);
    (0..3).for_each(|node| nodes.set(node, "k", "v"));
    nodes.stop(1, Signal::KILL);
    nodes.stop(2, Signal::KILL);
    let port = SocketAddr::from((Ipv4Addr::LOCALHOST, nodes.port + 100));
    let strangers: Vec<TcpStream> =
        (0..STRANGERS).map(|_| TcpStream::connect_timeout(&port, PATIENCE).unwrap()).collect();
    nodes.start(1, &[]);
    nodes.set(0, "k", "w");
    assert_eq!(nodes.get(1, "k"), "w");
    drop(strangers);
}

/// The next frame of a handshake, without its channel.
fn handshake_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut frame).unwrap();
    frame.split_off(1)
}

/// A member that has voted says nothing more before it hears more. What it has said may arrive in one piece with its
/// handshake, and is then all that the node gets.
#[test]
fn a_handshake_that_arrives_in_one_piece_is_taken_as_a_whole() {
    let scratch = Scratch::new("one-piece");
    let mut nodes = Nodes::new(&scratch);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, nodes.port + 100)).unwrap();
    nodes.start(1, &["--bootstrap"]);
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let theirs = Hello::decode(&handshake_frame(&mut stream)).unwrap();
    let Sender::Replica(mut member) = theirs.sender else { panic!("it is a member") };
    member.declaration.replica = ReplicaId(0);
    member.declaration.node = NodeId::new(member.declaration.node.number() ^ 1).unwrap();
    member.process ^= 1;
    let ours = Hello { sender: Sender::Replica(member), ..theirs };
    let mut piece = Vec::new();
    put_frame(&mut piece, Channel::Handshake, |out| ours.encode(out));
    for step in [HandshakeMessage::Welcome(None), HandshakeMessage::Stage(Stage::New)] {
        put_frame(&mut piece, Channel::Handshake, |out| step.encode(out));
    }
    stream.write_all(&piece).unwrap();
    let step = HandshakeMessage::decode(&handshake_frame(&mut stream)).unwrap();
    assert!(matches!(step, HandshakeMessage::Stage(_)), "{step:?}");
    nodes.stop(1, Signal::KILL);
}

/// A cluster is upgraded one node after the other: a node whose peer speaks the version of the wire format before this
/// one connects to it anew, in that version.
#[test]
fn a_node_of_the_version_before_is_met_in_its_version() {
    let scratch = Scratch::new("version-before");
    let mut nodes = Nodes::new(&scratch);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, nodes.port + 100)).unwrap();
    listener.set_nonblocking(true).unwrap();
    nodes.start(1, &["--bootstrap"]);
    for version in [VERSION, VERSION_MIN] {
        let (mut stream, _) = wait_for("a connection", || listener.accept().ok());
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let bytes = handshake_frame(&mut stream);
        assert_eq!(Hello::version_of_answer(&bytes), version);
        let theirs = Hello::decode(&bytes).unwrap();
        let Sender::Replica(mut member) = theirs.sender else { panic!("it is a member") };
        member.declaration.replica = ReplicaId(0);
        member.declaration.node = NodeId::new(member.declaration.node.number() ^ 1).unwrap();
        member.process ^= 1;
        let ours = Hello { sender: Sender::Replica(member), ..theirs };
        let mut answer = Vec::new();
        put_frame(&mut answer, Channel::Handshake, |out| ours.encode_as(VERSION_MIN, out));
        stream.write_all(&answer).unwrap();
    }
    let log = nodes.log(1);
    assert!(log.contains("it speaks wire format version 4; connecting anew in that"), "{log}");
}

//! Three nodes, four clients that append to one file, and nodes that are killed: what was acknowledged is there, once,
//! on every node, and each client's records are in its order.

mod common;

use common::{Cluster, NODES, Scratch, wait_for};
use record_append::{Error, Files};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use syros_client::{Options, ReadPolicy};

const WRITERS: usize = 4;
const FILE: &[u8] = b"log";
/// Long, so that there soon is more log than is kept.
const RECORD_BYTES: usize = 4000;

/// What a writer knows of its records, which are numbered from 0.
#[derive(Default)]
struct Writer {
    /// How many it has sent.
    sent: usize,
    /// Those of which it was not told whether they are there.
    unknown: Vec<usize>,
    /// Where some of them are.
    places: Vec<(usize, u64)>,
}

fn record(writer: usize, number: usize) -> Vec<u8> {
    let mut record = format!("{writer}/{number}/").into_bytes();
    record.resize(RECORD_BYTES, b'.');
    record
}

impl Writer {
    /// Writes until it is told to stop, and not more than all writers together may.
    fn write(&mut self, writer: usize, files: &Files, stop: &AtomicBool, most: &AtomicUsize) {
        while !stop.load(Ordering::Relaxed) {
            if self.sent * WRITERS >= most.load(Ordering::Relaxed) {
                // It waits for the test, and for nothing that a node does.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let number = self.sent;
            self.sent += 1;
            let record = record(writer, number);
            let result = if number % 8 == 7 {
                files.append_at(FILE, &record).map(|place| self.places.push((number, place)))
            } else {
                files.append(FILE, &record)
            };
            match result {
                Ok(()) => {}
                Err(Error::Client(_)) => self.unknown.push(number),
                Err(error) => panic!("writer {writer}: {error}"),
            }
        }
    }

    /// Checks where its records are, by their numbers.
    fn check(&self, writer: usize, places: &HashMap<usize, Vec<u64>>) {
        let mut last = None;
        for number in 0..self.sent {
            let found = places.get(&number).map_or(&[][..], Vec::as_slice);
            if self.unknown.contains(&number) {
                assert!(found.len() <= 1, "{writer}/{number}: {found:?}");
                continue;
            }
            assert_eq!(found.len(), 1, "{writer}/{number}: {found:?}");
            assert!(last < Some(found[0]), "{writer}/{number} is at {found:?}, the one before at {last:?}");
            last = Some(found[0]);
        }
        for (number, place) in &self.places {
            assert_eq!(places[number], [*place], "{writer}/{number} was said to be elsewhere");
        }
    }
}

/// Checks the whole file.
fn check(writers: &[Writer], records: &[Vec<u8>]) {
    let mut places: Vec<HashMap<usize, Vec<u64>>> = (0..WRITERS).map(|_| HashMap::new()).collect();
    for (place, found) in records.iter().enumerate() {
        let text = String::from_utf8_lossy(found);
        let mut parts = text.split('/').map(|part| part.parse::<usize>().ok());
        let (Some(Some(writer)), Some(Some(number))) = (parts.next(), parts.next()) else {
            panic!("nobody wrote {text}")
        };
        assert_eq!(*found, record(writer, number));
        places[writer].entry(number).or_default().push(place as u64);
    }
    for (id, writer) in writers.iter().enumerate() {
        writer.check(id, &places[id]);
    }
}

fn connect(addresses: &[SocketAddr]) -> Files {
    wait_for("a connection", || Files::connect(addresses, Options::default()).ok())
}

/// The state of one node alone: whoever listens where the others are not is not asked.
fn connect_to_one(addresses: &[SocketAddr], id: usize) -> Files {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let addresses: Vec<SocketAddr> =
        (0..NODES).map(|other| if other == id { addresses[id] } else { nowhere }).collect();
    connect(&addresses).reading(ReadPolicy::Stale)
}

/// Checks that every node has the file as it should be.
fn check_every_node(cluster: &Cluster, writers: &[Writer]) {
    let records = connect(&cluster.addresses).read(FILE, 0, u64::MAX).unwrap();
    check(writers, &records);
    for id in 0..NODES {
        let files = connect_to_one(&cluster.addresses, id);
        let found = wait_for("a node that has everything", || {
            let found = files.read(FILE, 0, u64::MAX).ok()?;
            (found.len() >= records.len()).then_some(found)
        });
        assert!(found == records, "node {id} has something else");
    }
}

#[test]
fn acknowledged_records_survive_in_order_and_once() {
    let scratch = Scratch::new("crashes");
    let options = ["--snapshot-log", "65536", "--log-keep", "65536"];
    let mut cluster = Cluster::start(&scratch.0, &options);
    let files = connect(&cluster.addresses);
    // A node that is slow to fetch what it lacks must not find a file that is full by then.
    let (stop, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::default()).collect();
    std::thread::scope(|scope| {
        for (id, writer) in writers.iter_mut().enumerate() {
            let (files, stop, most) = (connect(&cluster.addresses), &stop, &most);
            scope.spawn(move || writer.write(id, &files, stop, most));
        }
        // More than is kept of the log, ten times.
        let more = || {
            most.fetch_add(5_000, Ordering::Relaxed);
            let before = wait_for("a length", || files.length(FILE).ok());
            wait_for("more records", || (files.length(FILE).ok()? > before + 160).then_some(()));
        };
        more();
        // A follower, then the leader: whoever leads by then, one of the two is it or was.
        for id in [2, 0] {
            cluster.kill(id);
            more();
            cluster.start_node(id, false);
            // It lacks more than the others have in memory.
            let all = wait_for("a length", || files.length(FILE).ok());
            let one = connect_to_one(&cluster.addresses, id);
            wait_for("a node that has what it lacked", || {
                one.length(FILE).is_ok_and(|length| length >= all).then_some(())
            });
            more();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (sent, unknown) = writers
        .iter()
        .fold((0, 0), |(sent, unknown), writer| (sent + writer.sent, unknown + writer.unknown.len()));
    println!("{sent} records, of which {unknown} may be there or not");
    assert!(unknown <= 2 * WRITERS, "{unknown} of {sent} records unknown");
    check_every_node(&cluster, &writers);

    (0..NODES).for_each(|id| cluster.kill(id));
    (0..NODES).for_each(|id| cluster.start_node(id, false));
    check_every_node(&cluster, &writers);
    let log: String = (0..NODES).map(|id| cluster.log(id)).collect();
    assert!(log.contains("has loaded its snapshot"), "a snapshot was read back");
    assert!(!log.contains("damaged"), "nothing was damaged");
}

#[test]
fn in_every_mode() {
    for mode in ["majority", "supermajority-comm", "curp"] {
        a_leader_is_killed(mode);
    }
}

fn a_leader_is_killed(mode: &str) {
    let scratch = Scratch::new(mode);
    let mut cluster = Cluster::start(&scratch.0, &["--fast-quorum", mode]);
    let stop = AtomicBool::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::default()).collect();
    std::thread::scope(|scope| {
        for (id, writer) in writers.iter_mut().enumerate() {
            let (files, stop) = (connect(&cluster.addresses), &stop);
            scope.spawn(move || writer.write(id, &files, stop, &AtomicUsize::new(usize::MAX)));
        }
        let files = connect(&cluster.addresses);
        let length = |least: u64| wait_for("records", || (files.length(FILE).ok()? >= least).then_some(()));
        length(50);
        cluster.kill(0);
        length(100);
        cluster.start_node(0, false);
        files.remove(b"another").unwrap();
        stop.store(true, Ordering::Relaxed);
    });
    check_every_node(&cluster, &writers);
}

//! The load generator and the client library against real nodes.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use syros_bench::{Error, Failures, Options, run};
use syros_client::{Access, Client, Endpoint, Reply, status};
use syros_protocol::replica::Durability;
use syros_runtime::{FrontConfig, Node, NodeConfig, Stopper, StoreConfig, replica_config};
use syros_types::{FastQuorum, Group, ReplicaId};

/// Nodes of one cluster, on threads of this process.
struct Nodes {
    addresses: Vec<SocketAddr>,
    stoppers: Vec<Stopper>,
    threads: Vec<std::thread::JoinHandle<()>>,
    directory: PathBuf,
}

impl Nodes {
    fn start(name: &str, size: usize, fast_quorum: FastQuorum, durability: Durability) -> Self {
        let group = Group::new(size).unwrap();
        // Held until all are chosen, so that none is chosen twice.
        let ports: Vec<TcpListener> = (0..size).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<SocketAddr> = ports.iter().map(|port| port.local_addr().unwrap()).collect();
        drop(ports);
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let mut nodes = Self { addresses, stoppers: Vec::new(), threads: Vec::new(), directory };
        for replica in group.members() {
            let node = Node::start(nodes.config(group, replica, fast_quorum, durability)).unwrap();
            nodes.stoppers.push(node.stopper());
            nodes.threads.push(std::thread::spawn(move || node.run().unwrap()));
        }
        nodes
    }

    fn config(
        &self,
        group: Group,
        replica: ReplicaId,
        fast_quorum: FastQuorum,
        durability: Durability,
    ) -> NodeConfig {
        let mut settings = replica_config(group, replica);
        settings.configuration.mode = fast_quorum;
        settings.durability = durability;
        NodeConfig {
            cluster: 5,
            replicas: self.addresses.iter().map(SocketAddr::to_string).collect(),
            listen_redis: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            listen_replicas: self.addresses[replica.index()],
            directory: self.directory.join(replica.0.to_string()),
            first_start: Some(syros_runtime::FirstStart::Bootstrap),
            secret: None,
            tls: None,
            replica: settings,
            front: FrontConfig::default(),
            store: StoreConfig::default(),
            engine: Default::default(),
            maxmemory: None,
            eviction: Default::default(),
        }
    }

    fn options(&self) -> Options {
        let endpoints = self.addresses.iter().map(|address| Endpoint::from(*address)).collect();
        Options {
            writers: 20,
            connections: 4,
            warm_up: Duration::from_millis(200),
            duration: Duration::from_millis(500),
            replica_pids: vec![std::process::id()],
            ..Options::new(endpoints)
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.stoppers.iter().for_each(|stopper| stopper.stop("the test is over"));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_load_of_writes_and_reads_is_measured() {
    let nodes = Nodes::start("load", 3, FastQuorum::Majority, Durability::Replicated);
    let report = run(&Options { reads_percent: 30, ..nodes.options() }).unwrap();
    assert_eq!(report.failures, Failures::default());
    let (writes, reads) = (report.writes.unwrap(), report.reads.unwrap());
    assert_eq!(writes.count + reads.count, report.operations);
    assert!(reads.count > 0 && writes.count > reads.count);
    assert!(writes.p50 > 0.0 && writes.p50 <= writes.p99 && writes.p99 <= writes.max);
    assert!(report.replica_micros_per_operation().unwrap() > 0.0);
    assert!(report.seconds >= 0.5);
    // The leader has executed what was answered.
    let applied = status(nodes.addresses[0], Access::default(), Duration::from_secs(5)).unwrap().applied;
    assert!(applied > 0, "nothing applied");
}

#[test]
fn a_load_ends_after_the_operations_asked_for() {
    let nodes = Nodes::start("count", 1, FastQuorum::Majority, Durability::Fsync);
    let options = Options { operations: Some(100), duration: Duration::from_secs(60), ..nodes.options() };
    let report = run(&options).unwrap();
    assert!(report.operations >= 100 && report.operations < 100 + 20);
    assert!(report.reads.is_none());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let options = Options::new(vec![Endpoint::from(SocketAddr::from(([127, 0, 0, 1], 1)))]);
    let refused = |options: Options| run(&options).unwrap_err();
    assert!(matches!(refused(Options { connections: 0, ..options.clone() }), Error::Connections { .. }));
    assert!(matches!(refused(Options { writers: 5, ..options.clone() }), Error::Connections { .. }));
    assert!(matches!(refused(Options { keys: 0, ..options.clone() }), Error::Workload(_)));
    assert!(matches!(refused(Options { reads_percent: 101, ..options.clone() }), Error::ReadsPercent(101)));
    assert!(matches!(refused(Options { value_bytes: 1 << 30, ..options.clone() }), Error::ValueBytes(_)));
    let mut options = options;
    options.client.connect_timeout = Duration::from_millis(100);
    assert!(matches!(run(&options).unwrap_err(), Error::Unreachable(..)));
}

/// Every method of the library, against the real commands.
fn exercise(client: &Client) {
    let seconds = Duration::from_secs;
    assert_eq!(client.get("a").wait(), Ok(None));
    assert_eq!(client.set("a", "1").wait(), Ok(()));
    assert_eq!(client.get("a").wait(), Ok(Some(b"1".to_vec())));
    assert_eq!(client.increment("a", 41).wait(), Ok(42));
    assert_eq!(client.increment_blindly("a", 1).wait(), Ok(()));
    assert_eq!(client.append("a", "!").wait(), Ok(3));
    assert!(client.increment("a", 1).wait().is_err());
    assert_eq!(client.length("a").wait(), Ok(3));
    assert_eq!(client.replace("a", "new").wait(), Ok(Some(b"43!".to_vec())));
    assert_eq!(client.set_if_absent("a", "x").wait(), Ok(false));
    assert_eq!(client.set_if_absent("b", "x").wait(), Ok(true));
    assert_eq!(client.set_many(&[("c", "3"), ("d", "4")]).wait(), Ok(()));
    let values = client.get_many(&["c", "missing", "d"]).wait();
    assert_eq!(values, Ok(vec![Some(b"3".to_vec()), None, Some(b"4".to_vec())]));
    assert_eq!(client.time_to_live("a").wait(), Ok(None));
    assert_eq!(client.expire("a", seconds(100)).wait(), Ok(true));
    let left = client.time_to_live("a").wait().unwrap().unwrap();
    assert!(left > seconds(90) && left <= seconds(100));
    assert_eq!(client.persist("a").wait(), Ok(true));
    assert_eq!(client.time_to_live("a").wait(), Ok(None));
    assert_eq!(client.set_for("brief", "x", seconds(100)).wait(), Ok(()));
    assert!(client.time_to_live("brief").wait().unwrap().is_some());
    assert_eq!(client.exists("a").wait(), Ok(true));
    assert_eq!(client.delete("a").wait(), Ok(true));
    assert_eq!(client.delete("a").wait(), Ok(false));
    assert_eq!(client.delete_blindly("b").wait(), Ok(()));
    assert_eq!(client.exists("b").wait(), Ok(false));
    assert_eq!(client.delete_many(&["c", "d", "e"]).wait(), Ok(2));
    assert_eq!(client.command(&[b"DBSIZE"]).wait(), Ok(Reply::Integer(1)));
}

#[test]
fn the_library_agrees_with_the_commands_in_majority_mode() {
    let nodes = Nodes::start("majority", 3, FastQuorum::Majority, Durability::Fsync);
    exercise(&Client::connect(&nodes.addresses, syros_client::Options::default()).unwrap().wait().unwrap());
}

#[test]
fn the_library_agrees_with_the_commands_in_supermajority_mode() {
    let nodes = Nodes::start("supermajority", 5, FastQuorum::Supermajority, Durability::Replicated);
    exercise(&Client::connect(&nodes.addresses, syros_client::Options::default()).unwrap().wait().unwrap());
}

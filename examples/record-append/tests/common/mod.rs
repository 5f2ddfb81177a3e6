//! What the process tests share. Every process is ended by its own id, and everything that waits has a deadline.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes of a cluster.
pub(crate) const NODES: usize = 3;

/// The program under test.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_record-append"))
}

/// A directory of its own, deleted at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("record-append-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The first of some ports that are free now, below the range that the system gives to outgoing connections.
pub(crate) fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 1000).unwrap();
    loop {
        let first = 20_000 + (process * 7 + NEXT.fetch_add(1, Ordering::Relaxed)) % 1000 * 10;
        if (first..first + 7).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return first;
        }
    }
}

/// Waits until `ready` gives something.
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Three nodes, each a process.
pub(crate) struct Cluster {
    directory: PathBuf,
    pub(crate) addresses: Vec<SocketAddr>,
    options: Vec<String>,
    nodes: Vec<Option<Child>>,
}

impl Cluster {
    /// Starts a new one.
    pub(crate) fn start(directory: &Path, options: &[&str]) -> Self {
        let first = free_ports();
        let address = |id: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, first + id as u16));
        let mut cluster = Self {
            directory: directory.to_owned(),
            addresses: (0..NODES).map(address).collect(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            nodes: (0..NODES).map(|_| None).collect(),
        };
        (0..NODES).for_each(|id| cluster.start_node(id, true));
        cluster
    }

    /// Starts a node that does not run.
    pub(crate) fn start_node(&mut self, id: usize, bootstrap: bool) {
        let list: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        let log = File::options().create(true).append(true).open(self.directory.join(format!("log-{id}")));
        let mut command = program();
        command.args(["node", "--verbose", "--nodes", &list.join(","), "--id", &id.to_string(), "--dir"]);
        command.arg(self.directory.join(format!("node-{id}"))).args(&self.options);
        if bootstrap {
            command.arg("--bootstrap");
        }
        self.nodes[id] = Some(command.stderr(Stdio::from(log.unwrap())).spawn().unwrap());
    }

    /// kill -9.
    pub(crate) fn kill(&mut self, id: usize) {
        let mut node = self.nodes[id].take().expect("it runs");
        node.kill().unwrap();
        node.wait().unwrap();
    }

    /// What a node has said so far.
    pub(crate) fn log(&self, id: usize) -> String {
        std::fs::read_to_string(self.directory.join(format!("log-{id}"))).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in self.nodes.iter_mut().flatten() {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

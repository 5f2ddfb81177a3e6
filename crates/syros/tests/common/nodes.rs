//! Nodes with configurations of their own.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use super::{Redis, Scratch, free_ports, kill, syros, wait_for, wait_for_end};

/// Three nodes that the test starts itself.
pub(crate) struct Nodes {
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    pub(crate) processes: Vec<Option<Child>>,
}

impl Nodes {
    pub(crate) fn new(scratch: &Scratch) -> Self {
        let nodes = Self { dir: scratch.0.clone(), port: free_ports(), processes: vec![None, None, None] };
        (0..3).for_each(|node| nodes.configure(node, node, "", ""));
        nodes
    }

    /// Node `node` says that it is replica `replica`. `root` are lines of the root table, `more` whole sections.
    pub(crate) fn configure(&self, node: usize, replica: usize, root: &str, more: &str) {
        let replicas: Vec<String> =
            (0..3).map(|node| format!("\"127.0.0.1:{}\"", self.port + 100 + node)).collect();
        let text = format!(
            "cluster = 7\nreplica = {replica}\nreplicas = [{}]\ndirectory = \"data-{node}\"\n{root}\n\
             [listen]\nredis = \"127.0.0.1:{}\"\nreplicas = \"127.0.0.1:{}\"\n{more}\n",
            replicas.join(", "),
            self.port + node as u16,
            self.port + 100 + node as u16,
        );
        std::fs::write(self.dir.join(format!("node-{node}.toml")), text).unwrap();
    }

    pub(crate) fn start(&mut self, node: usize, options: &[&str]) {
        if self.processes.len() <= node {
            self.processes.resize_with(node + 1, || None);
        }
        let log = self.dir.join(format!("log-{node}"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = syros();
        command.arg("server").arg("--config").arg(self.dir.join(format!("node-{node}.toml")));
        command.args(options).stdout(Stdio::null()).stderr(log);
        self.processes[node] = Some(command.spawn().unwrap());
    }

    pub(crate) fn start_all(&mut self, options: &[&str]) {
        (0..3).for_each(|node| self.start(node, options));
    }

    pub(crate) fn log(&self, node: usize) -> String {
        std::fs::read_to_string(self.dir.join(format!("log-{node}"))).unwrap_or_default()
    }

    pub(crate) fn wait_for_log(&self, node: usize, words: &str) {
        wait_for(&format!("'{words}' in the log of node {node}"), || {
            self.log(node).contains(words).then_some(())
        });
    }

    pub(crate) fn stop(&mut self, node: usize, signal: Signal) {
        let mut process = self.processes[node].take().unwrap();
        kill(process.id().try_into().unwrap(), signal);
        wait_for_end(&mut process);
    }

    /// Waits until a node has ended by itself with an error, and returns its log.
    pub(crate) fn refused(&mut self, node: usize) -> String {
        let status = wait_for_end(self.processes[node].as_mut().unwrap());
        self.processes[node] = None;
        let log = self.log(node);
        assert_eq!(status.code(), Some(78), "{log}");
        log
    }

    pub(crate) fn set(&self, node: usize, key: &str, value: &str) {
        wait_for("a node that takes updates", || {
            let mut redis = Redis::try_connect(self.port + node as u16).ok()?;
            (redis.try_ask(&["SET", key, value]).ok()? == "+OK").then_some(())
        });
    }

    pub(crate) fn get(&self, node: usize, key: &str) -> String {
        wait_for("a node that answers reads", || {
            let mut redis = Redis::try_connect(self.port + node as u16).ok()?;
            redis.try_ask(&["GET", key]).ok().filter(|reply| !reply.starts_with('-'))
        })
    }

    pub(crate) fn connects(&self, node: usize) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port + node as u16)).is_ok()
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

//! A cluster of real processes on this machine, and what can be done to them: killed, stopped, cut off.

mod error;
mod network;

pub use error::Error;
pub use network::LinkEnd;

use core::time::Duration;
use network::Network;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use syros_client::{Access, StatusReport, status};
use syros_protocol::message::RoleName;
use syros_regions::Regions;
use syros_relay::Relay;
use syros_types::ReplicaId;

/// A replica that does not tell its status within this time counts as away.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// How often a cluster that is waited for is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Lines of a node's log that are shown if the node has ended.
const LINES_SHOWN: usize = 5;

/// Seed of the jitter and the losses of lines: which ones there are makes no difference.
const RELAY_SEED: u64 = 1;

/// What cluster to start.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The program `syros`.
    pub program: PathBuf,
    /// Where everything is kept: configuration, log and data of every node, see [`Cluster::directory`].
    /// Must not hold a cluster yet.
    pub directory: PathBuf,
    /// 1, 3, 5, 7 or 9.
    pub replicas: usize,
    /// So many nodes more have a place in the network: [`Cluster::grow`] starts them.
    pub spare: usize,
    /// Each node has a network namespace of its own, so that links can be cut; else all are on loopback.
    pub namespaces: bool,
    /// The nodes are in these regions, whose replicas they are: they reach each other through a
    /// [`Relay`]. Not with namespaces.
    pub regions: Option<Regions>,
    /// Further lines of every node's configuration file, none of them in its table `listen`.
    pub settings: String,
}

/// Processes of one cluster. They are killed when it is dropped, and end by themselves when this
/// process ends in any way; the directory stays.
///
/// With namespaces, [`Cluster::start`] moves the calling thread, and with it every thread that it starts
/// later, into the clients' namespace: only from there can the nodes be reached.
#[derive(Debug)]
pub struct Cluster {
    options: ClusterOptions,
    network: Network,
    nodes: Vec<Option<Child>>,
    addresses: Vec<SocketAddr>,
    relay: Option<Relay>,
}

impl Cluster {
    /// Starts a new cluster. Does not wait until it is ready: [`Cluster::wait_until_well`] does.
    ///
    /// # Errors
    /// [`Error`]: the network cannot be made, or a process cannot be started.
    ///
    /// # Panics
    /// If there are regions with another number of replicas.
    pub fn start(options: ClusterOptions) -> Result<Self, Error> {
        if options.namespaces && options.regions.is_some() {
            return Err(Error::RegionsInNamespaces);
        }
        let network = Network::new(options.replicas + options.spare, options.namespaces)?;
        let addresses: Vec<SocketAddr> =
            (0..options.replicas).map(|node| network.replica_address(node)).collect();
        let nodes = (0..options.replicas).map(|_| None).collect();
        let relay = options.regions.as_ref().map(|regions| Relay::start(regions, &addresses, RELAY_SEED));
        let relay = relay.transpose().map_err(Error::Relay)?;
        let mut cluster = Self { options, network, nodes, addresses, relay };
        for node in 0..cluster.nodes.len() {
            cluster.configure(node)?;
            cluster.spawn(node, Some("--bootstrap"))?;
        }
        Ok(cluster)
    }

    /// Starts two nodes more, by which the cluster grows. Does not wait until it has: [`Cluster::wait_until_well`] does.
    ///
    /// # Errors
    /// [`Error`]: a process cannot be started.
    ///
    /// # Panics
    /// If there is no place for them in the network.
    pub fn grow(&mut self) -> Result<(), Error> {
        let size = self.nodes.len();
        assert!(size + 2 <= self.options.replicas + self.options.spare, "no place for two nodes more");
        self.addresses.extend([size, size + 1].map(|node| self.network.replica_address(node)));
        for node in [size, size + 1] {
            self.nodes.push(None);
            self.configure(node)?;
            self.spawn(node, Some("--join"))?;
        }
        Ok(())
    }

    /// Has the cluster go on without its two last nodes, and waits until their processes have ended by themselves.
    ///
    /// # Errors
    /// [`Error::Command`] if the cluster does not want that, or [`Error::NotWell`] if a process goes on after `patience`.
    pub fn shrink(&mut self, patience: Duration) -> Result<(), Error> {
        let last = self.nodes.len() - 1;
        let mut remove = Command::new(&self.options.program);
        let gone = [last - 1, last];
        remove.args(["member", "remove"]).args(gone.map(|node| node.to_string()));
        run(remove.arg("--addr").arg(self.redis_address(0).to_string()))?;
        for node in gone {
            self.wait_until_ended(node, patience)?;
        }
        self.nodes.truncate(last - 1);
        self.addresses.truncate(last - 1);
        Ok(())
    }

    /// Where the replicas listen for each other and for Syros clients, in order.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where Syros clients in a region, by its number, reach the replicas, in order. Without regions they are
    /// everywhere where the replicas listen.
    #[must_use]
    pub fn addresses_from(&self, region: usize) -> Vec<SocketAddr> {
        self.relay.as_ref().map_or_else(|| self.addresses.clone(), |relay| relay.addresses_from(region))
    }

    /// Ids of the processes of the nodes that have not been ended, in order.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.nodes.iter().flatten().map(Child::id).collect()
    }

    /// Where a node listens for Redis clients.
    #[must_use]
    pub const fn redis_address(&self, node: usize) -> SocketAddr {
        self.network.redis_address(node)
    }

    /// Everything of one node but its log: `node.toml`, and its data in `data`.
    #[must_use]
    pub fn directory(&self, node: usize) -> PathBuf {
        directory(&self.options.directory, node)
    }

    /// What a node has logged so far.
    #[must_use]
    pub fn log(&self, node: usize) -> String {
        std::fs::read_to_string(self.log_file(node)).unwrap_or_default()
    }

    /// Beside the directory, so that a node whose file system is full can still say so.
    fn log_file(&self, node: usize) -> PathBuf {
        self.directory(node).with_extension("log")
    }

    fn configure(&self, node: usize) -> Result<(), Error> {
        let directory = self.directory(node);
        let relay = self.relay.as_ref();
        let replicas =
            relay.map_or_else(|| self.addresses.clone(), |relay| relay.addresses_for_replica(node));
        let replicas: Vec<String> = replicas.iter().map(|address| format!("\"{address}\"")).collect();
        // Clients are in a network of their own where nodes are.
        let is_local = self.redis_address(node).ip().is_loopback();
        let protection = if is_local { "" } else { "protected-mode = false\n" };
        let text = format!(
            "cluster = {}\nreplica = {node}\nreplicas = [{}]\ndirectory = \"data\"\n{}\n\n[listen]\nredis = \"{}\"\n{protection}",
            u64::from(std::process::id()) + 1,
            replicas.join(", "),
            self.options.settings,
            self.redis_address(node),
        );
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(directory.join("node.toml"), text))
            .map_err(|error| Error::File(directory.clone(), error))
    }

    /// `how` says how it starts for the first time.
    fn spawn(&mut self, node: usize, how: Option<&str>) -> Result<(), Error> {
        let directory = self.directory(node);
        let mut command = self.network.command(node, &self.options.program);
        // A parent that is killed must not leave nodes behind: its end of the pipe closes with it.
        command.args(["server", "--until-stdin-closes", "--config"]).arg(directory.join("node.toml"));
        command.args(how);
        let log = open_log(&self.log_file(node))?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.nodes[node] = Some(command.spawn().map_err(|error| Error::Start(node, error))?);
        Ok(())
    }

    /// Sends a signal to a node.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or whatever the system says.
    fn signal(&self, node: usize, signal: Signal) -> Result<(), Error> {
        let process = self.nodes[node].as_ref().ok_or(Error::NotRunning(node))?;
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).ok_or(Error::NotRunning(node))?;
        kill_process(pid, signal).map_err(|error| Error::Signal(node, error.into()))
    }

    /// Ends a node's process with SIGKILL.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or whatever the system says.
    pub fn kill(&mut self, node: usize) -> Result<(), Error> {
        self.end_by(node, Signal::KILL)
    }

    /// Ends a node's process with SIGTERM and waits until it has ended.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or whatever the system says.
    pub fn end(&mut self, node: usize) -> Result<(), Error> {
        self.end_by(node, Signal::TERM)
    }

    fn end_by(&mut self, node: usize, signal: Signal) -> Result<(), Error> {
        self.signal(node, signal)?;
        if let Some(mut process) = self.nodes[node].take() {
            process.wait().map_err(|error| Error::Signal(node, error))?;
        }
        Ok(())
    }

    /// Waits until a node has ended by itself; true if it had an error.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or [`Error::NotWell`] after `patience`.
    pub fn wait_until_ended(&mut self, node: usize, patience: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + patience;
        loop {
            let process = self.nodes[node].as_mut().ok_or(Error::NotRunning(node))?;
            if let Some(status) = process.try_wait().map_err(|error| Error::Signal(node, error))? {
                self.nodes[node] = None;
                return Ok(!status.success());
            }
            if Instant::now() > deadline {
                return Err(Error::NotWell(patience, format!("node {node} runs")));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Asks the leader to let the next node lead.
    ///
    /// # Errors
    /// [`Error::HandOver`] if it does not answer.
    pub fn hand_over(&self, leader: usize) -> Result<(), Error> {
        let next = ReplicaId(((leader + 1) % self.addresses.len()) as u8);
        let asked =
            syros_client::hand_over(self.addresses[leader], next, Access::default(), Duration::from_secs(2));
        asked.map(drop).map_err(|error| Error::HandOver(leader, error))
    }

    /// Starts a node again that was killed, with the data it had.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn restart(&mut self, node: usize) -> Result<(), Error> {
        assert!(self.nodes[node].is_none(), "node {node} runs");
        self.spawn(node, None)
    }

    /// Stops a node's process with SIGSTOP: it does nothing, but its connections stay.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or whatever the system says.
    pub fn suspend(&self, node: usize) -> Result<(), Error> {
        self.signal(node, Signal::STOP)
    }

    /// Lets a suspended node go on where it was.
    ///
    /// # Errors
    /// [`Error::NotRunning`], or whatever the system says.
    pub fn resume(&self, node: usize) -> Result<(), Error> {
        self.signal(node, Signal::CONT)
    }

    /// Cuts a node off: from now on, whatever it sends and whatever is sent to it is lost without a word.
    ///
    /// # Errors
    /// [`Error`]: the cluster has no namespaces, or a command failed.
    pub fn cut(&self, node: usize) -> Result<(), Error> {
        self.network.set_connected(node, false)
    }

    /// Undoes [`Cluster::cut`].
    ///
    /// # Errors
    /// As there.
    pub fn mend(&self, node: usize) -> Result<(), Error> {
        self.network.set_connected(node, true)
    }

    /// Loses everything sent from `from` to `to` from now on; the other direction goes on.
    ///
    /// # Errors
    /// [`Error`]: the cluster has no namespaces, or a command failed.
    pub fn cut_one_way(&self, from: LinkEnd, to: LinkEnd) -> Result<(), Error> {
        self.network.set_direction(from, to, false)
    }

    /// Undoes [`Cluster::cut_one_way`].
    ///
    /// # Errors
    /// As there.
    pub fn mend_one_way(&self, from: LinkEnd, to: LinkEnd) -> Result<(), Error> {
        self.network.set_direction(from, to, true)
    }

    /// What every replica says of itself; `None` for those that do not answer.
    #[must_use]
    pub fn reports(&self) -> Vec<Option<StatusReport>> {
        self.addresses
            .iter()
            .map(|address| status(*address, Access::default(), STATUS_TIMEOUT).ok())
            .collect()
    }

    /// The leader of the newest view that has one.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let reports = self.reports();
        let leaders = reports.iter().enumerate().filter_map(|(node, report)| Some((node, report.as_ref()?)));
        let leaders = leaders.filter(|(_, report)| report.role == RoleName::Leader);
        leaders.max_by_key(|(_, report)| report.view).map(|(node, _)| node)
    }

    /// Waits until every replica takes part in one view and has what the leader had committed when it was
    /// first asked. Returns the leader.
    ///
    /// # Errors
    /// [`Error::NotWell`] after `patience`, [`Error::Ended`] if a process has ended by itself.
    pub fn wait_until_well(&mut self, patience: Duration) -> Result<usize, Error> {
        let deadline = Instant::now() + patience;
        let mut target = None;
        loop {
            self.check_processes()?;
            let reports = self.reports();
            match leader_if_caught_up(&reports, target) {
                Ok((leader, commit)) if target.is_some() || commit == 0 => return Ok(leader),
                Ok((_, commit)) => target = Some(commit),
                Err(problem) if Instant::now() > deadline => return Err(Error::NotWell(patience, problem)),
                Err(_) => {
                    // Only what was committed in the view that all will be in counts.
                    let leader = reports.iter().flatten().find(|report| report.role == RoleName::Leader);
                    target = target.or(leader.map(|leader| leader.commit));
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Checks that no process has ended that was not killed.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn check_processes(&mut self) -> Result<(), Error> {
        for node in 0..self.nodes.len() {
            let Some(process) = &mut self.nodes[node] else { continue };
            if let Ok(Some(status)) = process.try_wait() {
                return Err(Error::Ended { node, status, last: last_lines(&self.log(node)) });
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.nodes.iter_mut().flatten() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The last lines of a log.
pub(crate) fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n  ")
}

/// Two free addresses on loopback for each of so many servers; those of different servers differ in more than the port.
pub(crate) fn free_addresses(servers: usize) -> Result<Vec<[SocketAddr; 2]>, Error> {
    let network = Network::new(servers, false)?;
    Ok((0..servers).map(|node| [network.redis_address(node), network.replica_address(node)]).collect())
}

/// Everything of one node, in a cluster's directory.
#[must_use]
pub fn directory(cluster: &Path, node: usize) -> PathBuf {
    cluster.join(format!("node-{node}"))
}

pub(crate) fn open_log(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| Error::File(path.to_path_buf(), error))
}

/// The leader and what it has committed, if all replicas are in its view and have committed `target`; else
/// what is missing.
fn leader_if_caught_up(
    reports: &[Option<StatusReport>],
    target: Option<u64>,
) -> Result<(usize, u64), String> {
    let mut leader = None;
    for (node, report) in reports.iter().enumerate() {
        let Some(report) = report else { return Err(format!("node {node} does not answer")) };
        match report.role {
            RoleName::Leader => leader = Some((node, report)),
            RoleName::Follower => {}
            RoleName::ViewChange | RoleName::Recovering => {
                return Err(format!("node {node}: {}", report.role));
            }
        }
    }
    let Some((node, leader)) = leader else { return Err("no node leads".to_owned()) };
    for (other, report) in reports.iter().flatten().enumerate() {
        if report.view != leader.view {
            return Err(format!("node {other} is in view {}, node {node} in {}", report.view, leader.view));
        }
        if target.is_some_and(|target| report.commit < target) {
            return Err(format!("node {other} has committed {} operations only", report.commit));
        }
    }
    Ok((node, leader.commit))
}

/// Runs a command to its end; what it printed is the error if it fails.
fn run(command: &mut Command) -> Result<(), Error> {
    let text = format!("{command:?}").replace('"', "");
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Error::Command { command: text.clone(), problem: error.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command { command: text, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(role: RoleName, view: u64, commit: u64) -> Option<StatusReport> {
        Some(StatusReport { role, view, commit, ..StatusReport::default() })
    }

    #[test]
    fn a_cluster_is_well_when_all_are_in_one_view_and_have_caught_up() {
        let leader = || report(RoleName::Leader, 4, 100);
        let follower = |view, commit| report(RoleName::Follower, view, commit);
        let leader_if_caught_up =
            |reports: [Option<StatusReport>; 3]| leader_if_caught_up(&reports, Some(90));
        assert_eq!(leader_if_caught_up([follower(4, 90), leader(), follower(4, 120)]), Ok((1, 100)));
        assert!(
            leader_if_caught_up([None, leader(), follower(4, 90)])
                .unwrap_err()
                .contains("node 0 does not answer")
        );
        assert!(
            leader_if_caught_up([follower(3, 90), leader(), follower(4, 90)]).unwrap_err().contains("view 3")
        );
        assert!(
            leader_if_caught_up([follower(4, 89), leader(), follower(4, 90)]).unwrap_err().contains("89")
        );
        assert!(leader_if_caught_up([follower(4, 90), follower(4, 90), follower(4, 90)]).is_err());
        assert!(
            leader_if_caught_up([report(RoleName::Recovering, 4, 90), leader(), follower(4, 90)]).is_err()
        );
    }
}

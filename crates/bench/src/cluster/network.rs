//! Where the nodes of a cluster are: on loopback, or each in a network namespace of its own.
//!
//! ```text
//!  namespace "syros-PID-K-0"      "syros-PID-K-1"     ..     "syros-PID-K-clients"
//!    eth0 10.77.0.1                eth0 10.77.0.2             port-0  port-1  ..
//!      └──────────── veth pairs ─────────┴──────────────────── bridge br0 10.77.0.254
//! ```
//!
//! The bridge has a namespace of its own too, so that nothing is added to the machine's network and none of
//! its firewall rules has a say. Nothing but iproute2 is needed. A node is cut off by taking its port of
//! the bridge out of service. One direction is cut at the sender, by giving it a hardware address for
//! the receiver that nobody has: packets leave and are lost, as on a bad line.

use super::error::Error;
use super::run;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports of every node, each on an address of its own. Below those that the system gives to outgoing
/// connections.
const REDIS_PORT: u16 = 16_379;
const REPLICA_PORT: u16 = 17_379;

/// Number of the clients' place in addresses.
const CLIENTS: u8 = 254;

/// A hardware address that nobody has.
const NOBODY: &str = "02:53:59:00:00:00";

/// All names begin with this; what a process has left that no longer runs is found by it.
const PREFIX: &str = "syros-";

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// A node.
    Node(usize),
    /// All clients.
    Clients,
}

/// Clusters that this process has started.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) enum Network {
    /// Node i is at the i-th address after this one.
    Loopback(Ipv4Addr),
    Namespaces(Namespaces),
}

/// Namespaces, deleted with it.
#[derive(Debug)]
pub(super) struct Namespaces {
    prefix: String,
    nodes: usize,
}

impl Network {
    pub(super) fn new(nodes: usize, namespaces: bool) -> Result<Self, Error> {
        if namespaces { Namespaces::new(nodes).map(Self::Namespaces) } else { loopback(nodes) }
    }

    const fn address(&self, node: usize) -> IpAddr {
        IpAddr::V4(match self {
            Self::Loopback(first) => {
                let [a, b, c, d] = first.octets();
                Ipv4Addr::new(a, b, c, d + node as u8)
            }
            Self::Namespaces(_) => address(LinkEnd::Node(node)),
        })
    }

    pub(super) const fn replica_address(&self, node: usize) -> SocketAddr {
        SocketAddr::new(self.address(node), REPLICA_PORT)
    }

    pub(super) const fn redis_address(&self, node: usize) -> SocketAddr {
        SocketAddr::new(self.address(node), REDIS_PORT)
    }

    /// Runs `program` where the node is, as a direct child.
    pub(super) fn command(&self, node: usize, program: &Path) -> Command {
        match self {
            Self::Loopback(_) => Command::new(program),
            Self::Namespaces(namespaces) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &namespaces.name(LinkEnd::Node(node))]).arg(program);
                command
            }
        }
    }

    fn namespaces(&self) -> Result<&Namespaces, Error> {
        match self {
            Self::Loopback(_) => Err(Error::NoLinks),
            Self::Namespaces(namespaces) => Ok(namespaces),
        }
    }

    /// Whether anything gets through to and from a node.
    pub(super) fn set_connected(&self, node: usize, is_connected: bool) -> Result<(), Error> {
        let namespaces = self.namespaces()?;
        // States of the spanning tree protocol: disabled, forwarding.
        let state = if is_connected { "3" } else { "0" };
        let mut command = Command::new("bridge");
        command.args(["-n", &namespaces.name(LinkEnd::Clients), "link", "set", "dev", &port(node)]);
        run(command.args(["state", state]))
    }

    /// Whether what `from` sends gets through to `to`.
    pub(super) fn set_direction(&self, from: LinkEnd, to: LinkEnd, is_connected: bool) -> Result<(), Error> {
        let hardware = if is_connected { hardware(to) } else { NOBODY.to_owned() };
        self.namespaces()?.set_neighbour(from, to, &hardware)
    }
}

impl Namespaces {
    fn new(nodes: usize) -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        delete_left_over()?;
        let count = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let namespaces = Self { prefix: format!("{PREFIX}{}-{count}-", std::process::id()), nodes };
        namespaces.make()?;
        namespaces.enter()?;
        Ok(namespaces)
    }

    fn name(&self, place: LinkEnd) -> String {
        match place {
            LinkEnd::Node(node) => format!("{}{node}", self.prefix),
            LinkEnd::Clients => format!("{}clients", self.prefix),
        }
    }

    fn ends(&self) -> impl Iterator<Item = LinkEnd> + Clone + use<> {
        (0..self.nodes).map(LinkEnd::Node).chain([LinkEnd::Clients])
    }

    fn make(&self) -> Result<(), Error> {
        for place in self.ends() {
            run(Command::new("ip").args(["netns", "add", &self.name(place)]))
                .map_err(|error| Error::NoNamespaces(error.to_string()))?;
            self.ip(place, "link set lo up")?;
        }
        let hub = LinkEnd::Clients;
        self.ip(hub, &format!("link add br0 address {} type bridge", hardware(hub)))?;
        self.ip(hub, &format!("address add {}/24 dev br0", address(hub)))?;
        self.ip(hub, "link set br0 up")?;
        for node in 0..self.nodes {
            let (place, port) = (LinkEnd::Node(node), port(node));
            let name = self.name(place);
            let pair = format!("link add {port} type veth peer name eth0 address {}", hardware(place));
            self.ip(hub, &format!("{pair} netns {name}"))?;
            self.ip(hub, &format!("link set {port} master br0 up"))?;
            self.ip(place, &format!("address add {}/24 dev eth0", address(place)))?;
            self.ip(place, "link set eth0 up")?;
        }
        // Hardware addresses are known from the start: no time is lost, nor any packet, asking for them.
        for from in self.ends() {
            for to in self.ends().filter(|to| *to != from) {
                self.set_neighbour(from, to, &hardware(to))?;
            }
        }
        Ok(())
    }

    fn ip(&self, place: LinkEnd, words: &str) -> Result<(), Error> {
        run(Command::new("ip").args(["-n", &self.name(place)]).args(words.split(' ')))
    }

    fn set_neighbour(&self, from: LinkEnd, to: LinkEnd, hardware: &str) -> Result<(), Error> {
        let device = if from == LinkEnd::Clients { "br0" } else { "eth0" };
        let to = address(to);
        self.ip(from, &format!("neighbour replace {to} lladdr {hardware} nud permanent dev {device}"))
    }

    /// Moves the calling thread to the clients.
    fn enter(&self) -> Result<(), Error> {
        let path = Path::new("/run/netns").join(self.name(LinkEnd::Clients));
        let file = File::open(&path).map_err(|error| Error::File(path.clone(), error))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::File(path, error.into()))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for place in self.ends() {
            let mut command = Command::new("ip");
            command.args(["netns", "delete", &self.name(place)]);
            let _ = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

/// Deletes namespaces of processes that were killed.
fn delete_left_over() -> Result<(), Error> {
    let unusable = |error: std::io::Error| Error::NoNamespaces(format!("ip netns list: {error}"));
    let output = Command::new("ip").args(["netns", "list"]).output().map_err(unusable)?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(name) = line.split(' ').next() else { continue };
        let Some((pid, _)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            // Another process may be doing the same.
            let _ = run(Command::new("ip").args(["netns", "delete", name]));
        }
    }
    Ok(())
}

const fn number(place: LinkEnd) -> u8 {
    match place {
        LinkEnd::Node(node) => node as u8 + 1,
        LinkEnd::Clients => CLIENTS,
    }
}

const fn address(place: LinkEnd) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number(place))
}

fn hardware(place: LinkEnd) -> String {
    format!("02:53:59:00:00:{:02x}", number(place))
}

fn port(node: usize) -> String {
    format!("port-{node}")
}

/// Addresses on loopback that nobody listens on: all of 127.0.0.0/8 is this machine.
fn loopback(nodes: usize) -> Result<Network, Error> {
    let is_free = |address: Ipv4Addr| {
        [REDIS_PORT, REPLICA_PORT].iter().all(|port| TcpListener::bind((address, *port)).is_ok())
    };
    for _ in 0..1000 {
        let count = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        // Different for clusters of one process, and most likely for those of different ones.
        let [_, _, high, low] = std::process::id().wrapping_mul(31).wrapping_add(count).to_be_bytes();
        let first = Ipv4Addr::new(127, high.max(1), low, 1);
        if (0..nodes).all(|node| is_free(Ipv4Addr::new(127, high.max(1), low, node as u8 + 1))) {
            return Ok(Network::Loopback(first));
        }
    }
    Err(Error::NoAddress)
}

//! What options name: addresses, sizes of groups, durabilities, engines.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::ValueEnum;
use syros_protocol::replica::Durability;
use syros_runtime::EngineKind;
use syros_types::Group;

/// Checks that `address` is `host:port`.
///
/// # Errors
/// It is not, or there is no such port.
pub fn check_address(address: &str) -> Result<(), String> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse());
    match port {
        Some(Ok(1..=u16::MAX)) => Ok(()),
        _ => Err(format!("\"{address}\" is not host:port with a port from 1 to 65535")),
    }
}

/// Checks that each of a group's addresses is that of another node, however they are spelt. (Which names lead to one address only
/// the name server knows, and that may change: nodes find out when they connect.)
///
/// # Errors
/// Two are the same; both are named, with their positions.
pub fn check_different(addresses: &[String]) -> Result<(), String> {
    for (later, address) in addresses.iter().enumerate() {
        let place = Place::of(address);
        let Some(earlier) = addresses[..later].iter().position(|other| Place::of(other).is_same(&place))
        else {
            continue;
        };
        return Err(if addresses[earlier] == *address {
            format!(
                "{address} is listed twice, as replica {earlier} and as replica {later}: each replica is a node of its own"
            )
        } else {
            format!(
                "replica {earlier}, {}, and replica {later}, {address}, are one address: each replica is a node of its own",
                addresses[earlier]
            )
        });
    }
    Ok(())
}

/// Where a node is, without how that is spelt.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Address(SocketAddr),
    Name { host: String, port: Option<u16> },
}

impl Place {
    fn of(address: &str) -> Self {
        if let Ok(address) = address.parse::<SocketAddr>() {
            return Self::Address(SocketAddr::new(address.ip().to_canonical(), address.port()));
        }
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        Self::Name { host, port: port.parse().ok() }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(address), Self::Name { host, port })
            | (Self::Name { host, port }, Self::Address(address)) => {
                // The one name that leads to the same addresses everywhere.
                let loopbacks = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                host == "localhost" && *port == Some(address.port()) && loopbacks.contains(&address.ip())
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// The size of a group: 1, 3, 5, 7 or 9.
///
/// # Errors
/// It is no number, or another one.
pub fn parse_group(text: &str) -> Result<Group, String> {
    let size = text.parse().map_err(|_| "a number is expected".to_owned())?;
    Group::new(size).map_err(|problem| problem.to_string())
}

/// [`Durability`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityName {
    /// After it is on the disks of f + 1 replicas
    Fsync,
    /// After it is in the memory of f + 1 replicas
    Replicated,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Fsync => Self::Fsync,
            DurabilityName::Replicated => Self::Replicated,
        }
    }
}

/// [`EngineKind`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineName {
    /// In memory; the disk has log and snapshots
    Memory,
    /// On disk, in a log-structured merge tree
    Disk,
    /// On disk, in RocksDB, if it was built in
    #[value(name = "rocksdb")]
    RocksDb,
}

impl From<EngineName> for EngineKind {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Memory => Self::Memory,
            EngineName::Disk => Self::Disk,
            EngineName::RocksDb => Self::RocksDb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_different;

    fn check(addresses: &[&str]) -> Result<(), String> {
        check_different(&addresses.iter().map(|&address| address.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn one_node_in_two_spellings_is_found_and_both_are_named() {
        for [first, second] in [
            ["db1:7379", "DB1:7379"],
            ["db1:7379", "db1.:7379"],
            ["db1:7379", "db1:07379"],
            ["localhost:7379", "127.0.0.1:7379"],
            ["[::1]:7379", "LOCALHOST:7379"],
            ["10.0.0.1:7379", "[::ffff:10.0.0.1]:7379"],
            ["[::1]:7379", "[0:0:0:0:0:0:0:1]:7379"],
        ] {
            let problem = check(&["other:1", first, second]).unwrap_err();
            let told = format!("replica 1, {first}, and replica 2, {second}, are one address");
            assert!(problem.starts_with(&told), "{problem}");
        }
        let problem = check(&["a:1", "b:2", "a:1"]).unwrap_err();
        assert!(problem.starts_with("a:1 is listed twice, as replica 0 and as replica 2"), "{problem}");
    }

    #[test]
    fn nodes_that_may_be_different_are_taken() {
        for others in [
            ["db1:7379", "db1:7380"],
            ["127.0.0.1:7379", "[::1]:7379"],
            ["localhost:7379", "127.0.0.1:7380"],
            ["localhost:7379", "127.0.0.2:7379"],
            ["db1:7379", "db1.example.com:7379"],
        ] {
            assert_eq!(check(&others), Ok(()), "{others:?}");
        }
    }
}

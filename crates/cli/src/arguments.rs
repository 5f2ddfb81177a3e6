//! What options name: addresses, sizes of groups, durabilities, engines.

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

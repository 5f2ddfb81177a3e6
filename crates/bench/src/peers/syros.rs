//! A cluster of Syros that is asked through its Redis port. (Its own clients are what `compare` has.)

use super::resp_client::RespFleet;
use super::{PeerError, System};
use crate::cluster::{Cluster, ClusterOptions};
use crate::fleet::Fleet;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use syros_types::Prng;

/// How long a cluster may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A cluster of Syros that is asked through its Redis port.
#[derive(Debug)]
pub(super) struct SyrosResp {
    cluster: Cluster,
    /// Clients connect to all nodes, not only to the leader.
    spread: bool,
    /// The leader when clients connected last, and its view.
    leader: Option<(usize, u64)>,
}

impl SyrosResp {
    /// Starts it, and waits until it is ready.
    pub(super) fn start(
        program: PathBuf,
        directory: &Path,
        replicas: usize,
        settings: String,
        spread: bool,
    ) -> Result<Self, PeerError> {
        let cluster = Cluster::start(ClusterOptions {
            program,
            directory: directory.to_path_buf(),
            replicas,
            spare: 0,
            namespaces: false,
            regions: None,
            settings,
        })?;
        let mut syros = Self { cluster, spread, leader: None };
        syros.find_leader()?;
        Ok(syros)
    }

    /// Waits until all replicas are in one view; its leader, and the view.
    fn find_leader(&mut self) -> Result<(usize, u64), PeerError> {
        let leader = self.cluster.wait_until_well(READY_WITHIN)?;
        let report = self.cluster.reports().into_iter().nth(leader).flatten();
        Ok((leader, report.ok_or(PeerError::Leader)?.view))
    }
}

impl System for SyrosResp {
    fn processes(&self) -> Vec<u32> {
        self.cluster.processes()
    }

    fn check(&mut self) -> Result<(), PeerError> {
        self.cluster.check_processes()?;
        let leader = self.find_leader()?;
        if self.leader.is_none_or(|before| before == leader) { Ok(()) } else { Err(PeerError::Leader) }
    }

    fn fleet(
        &mut self,
        clients: usize,
        connections: usize,
        value_bytes: usize,
        prng: &mut Prng,
    ) -> Result<Box<dyn Fleet>, PeerError> {
        let leader = self.find_leader()?;
        self.leader = Some(leader);
        let nodes = if self.spread { 0..self.cluster.addresses().len() } else { leader.0..leader.0 + 1 };
        let servers: Vec<SocketAddr> = nodes.map(|node| self.cluster.redis_address(node)).collect();
        let fleet = RespFleet::new(&servers, (clients, connections), value_bytes, None, prng);
        Ok(Box::new(fleet.map_err(|error| PeerError::Connect(error.to_string()))?))
    }
}

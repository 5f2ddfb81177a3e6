//! What load to make.

use crate::error::Error;
use core::time::Duration;
use syros_client::Endpoint;
use syros_experiment::{Distribution, Mix, Workload};
use syros_types::Prng;
use syros_types::limits::VALUE_BYTES_MAX;

/// What load to make, and how long. The fields' names are the names of the command line's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every replica, in the order of the group.
    pub endpoints: Vec<Endpoint>,
    /// Operations in flight at any time, over all connections.
    pub writers: usize,
    /// Clients that the writers are spread over: each has a session and a connection to every replica.
    pub connections: usize,
    /// Length of a value, in bytes.
    pub value_bytes: usize,
    /// Number of different keys.
    pub keys: u64,
    /// How often each key is chosen.
    pub distribution: Distribution,
    /// Reads (GET) among the operations, in percent; the others are writes (SET).
    pub reads_percent: u8,
    /// Load of this long comes first and is not measured.
    pub warm_up: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// Ends the measurement after so many operations, if that is before `duration`.
    pub operations: Option<u64>,
    /// Seed of the choice of keys.
    pub seed: u64,
    /// Processes of the replicas, if they run on this machine, whose CPU time is to be measured.
    pub replica_pids: Vec<u32>,
    /// Settings of the clients.
    pub client: syros_client::Options,
}

impl Options {
    /// The defaults: 50 writers on 10 connections, for 10 seconds after 2, small values, writes only.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            writers: 50,
            connections: 10,
            value_bytes: 16,
            keys: 100_000,
            distribution: Distribution::Uniform,
            reads_percent: 0,
            warm_up: Duration::from_secs(2),
            duration: Duration::from_secs(10),
            operations: None,
            seed: 1,
            replica_pids: Vec::new(),
            client: syros_client::Options::default(),
        }
    }

    /// Checks what cannot be right whatever the cluster is.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.connections == 0 || self.connections > self.writers {
            return Err(Error::Connections { connections: self.connections, writers: self.writers });
        }
        if self.reads_percent > 100 {
            return Err(Error::ReadsPercent(self.reads_percent));
        }
        let mix = Mix { reads_percent: self.reads_percent };
        Workload::new(mix, self.distribution, self.keys, Prng::new(self.seed))?;
        if self.value_bytes > VALUE_BYTES_MAX {
            return Err(Error::ValueBytes(self.value_bytes));
        }
        Ok(())
    }
}

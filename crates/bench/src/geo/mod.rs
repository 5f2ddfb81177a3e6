//! Experiments with distance, with real processes: a cluster in regions, and clients in regions.
//!
//! Clients are closed loops: each asks for its next operation when the last one has ended, and has one in
//! flight only, so that it can be told how that one was answered.

mod error;
mod run;

pub use error::GeoError;

use crate::clients::key_name;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::Error;
use core::time::Duration;
use rustix::process::{Resource, getrlimit};
use std::path::PathBuf;
use syros_client::{Client, Options, Settings};
use syros_experiment::{Distribution, Mix, Row, Workload};
use syros_regions::Regions;
use syros_relay::CONNECTIONS_MAX;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Group, Prng, Protocol};

/// How long the cluster may take to become ready, besides [`ROUND_TRIPS`].
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Whatever waits for something far away waits for so many of the longest round trips more.
const ROUND_TRIPS: u32 = 10;

/// Open files besides connections: listening sockets of up to 16 regions for up to 9 replicas, the nodes' logs
/// and pipes, and what a process has anyway.
const FILES_BESIDES: usize = 16 * Group::SIZE_MAX + 88;

/// Keys that are written at a time before the measurement.
const LOADED_AT_ONCE: u64 = 2048;

/// The replica that is to lead: the first of the regions.
const LEADER: usize = 0;

/// What clients ask for, and how long.
#[derive(Clone, Debug)]
pub struct GeoLoad {
    /// Reads and updates.
    pub mix: Mix,
    /// How often each key is chosen.
    pub distribution: Distribution,
    /// Number of keys, all of which have been written before.
    pub keys: u64,
    /// Length of a value, in bytes.
    pub value_bytes: usize,
    /// Clients in each region that has any.
    pub clients: usize,
    /// Load of this long comes first and is not measured.
    pub warm_up: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// Ends the measurement after so many operations, over all clients, if that is before `duration`.
    pub operations: Option<u64>,
    /// Seed of all choices of the clients.
    pub seed: u64,
}

impl GeoLoad {
    /// Checks what cannot be right whatever the cluster is.
    ///
    /// # Errors
    /// [`GeoError`] names it.
    pub fn check(&self, regions: &Regions) -> Result<(), GeoError> {
        if self.clients == 0 {
            return Err(GeoError::NoClients);
        }
        if self.value_bytes > VALUE_BYTES_MAX {
            return Err(GeoError::Client(Error::ValueBytes(self.value_bytes)));
        }
        let size = regions.group().size();
        let clients = self.clients.saturating_mul(regions.clients().len());
        let connections = clients.saturating_mul(size).saturating_add(size * size);
        if connections > CONNECTIONS_MAX {
            return Err(GeoError::Connections { clients, connections });
        }
        // A client's end of a connection, and the two of the relay.
        let files = 3 * connections + FILES_BESIDES;
        if let Some(limit) = getrlimit(Resource::Nofile).maximum.filter(|limit| files as u64 > *limit) {
            return Err(GeoError::Files { files, limit });
        }
        Workload::new(self.mix, self.distribution, self.keys, Prng::new(0))?;
        Ok(())
    }
}

/// A cluster in regions, for one protocol.
#[derive(Debug)]
pub struct GeoCluster {
    cluster: Cluster,
    regions: Regions,
    protocol: Protocol,
    /// Keys that have been written.
    loaded: u64,
}

impl GeoCluster {
    /// Starts one in a directory that holds none yet, and waits until it is ready. It keeps its data in memory.
    /// `settings` are further lines of the configuration of every node, where `timing` must suit the regions.
    ///
    /// # Errors
    /// [`GeoError::Cluster`]; [`GeoError::Leader`] if it is not the first replica that leads.
    pub fn start(
        program: PathBuf,
        directory: PathBuf,
        regions: &Regions,
        protocol: Protocol,
        settings: &str,
    ) -> Result<Self, GeoError> {
        let cluster = Cluster::start(ClusterOptions {
            program,
            directory,
            replicas: regions.group().size(),
            spare: 0,
            namespaces: false,
            regions: Some(regions.clone()),
            settings: format!("durability = \"replicated\"\nprotocol = \"{}\"\n{settings}", protocol.name),
        })?;
        let mut cluster = Self { cluster, regions: regions.clone(), protocol, loaded: 0 };
        cluster.wait()?;
        Ok(cluster)
    }

    /// Measures: one row for each region that has clients. Calls `is_interrupted` now and then, and ends early
    /// when it says so.
    ///
    /// # Errors
    /// [`GeoError`]: there is nothing to ask for, something is wrong with the cluster, or another replica led
    /// in the end. Operations that fail are none: they are in the rows.
    pub fn run(&mut self, load: &GeoLoad, is_interrupted: &dyn Fn() -> bool) -> Result<Vec<Row>, GeoError> {
        load.check(&self.regions)?;
        self.load_keys(load, is_interrupted)?;
        self.wait()?;
        let rows = run::run(self, load, is_interrupted)?;
        self.cluster.check_processes()?;
        self.check_leader(self.cluster.leader())?;
        Ok(rows)
    }

    /// Writes what has not been written yet, from where no line delays it.
    fn load_keys(&mut self, load: &GeoLoad, is_interrupted: &dyn Fn() -> bool) -> Result<(), GeoError> {
        if self.loaded >= load.keys {
            return Ok(());
        }
        let patience = READY_WITHIN + self.far();
        let mut options = self.client_options();
        (options.settings.give_up_after, options.settings.resend) = (patience, patience);
        let client = Client::connect(self.cluster.addresses(), options)?.wait()?;
        let value = vec![b'v'; load.value_bytes];
        while self.loaded < load.keys {
            if is_interrupted() {
                return Err(GeoError::Interrupted);
            }
            let next = load.keys.min(self.loaded + LOADED_AT_ONCE);
            let written: Vec<_> = (self.loaded..next)
                .map(|number| client.set(key_name(number).as_bytes(), value.clone()))
                .collect();
            for write in written {
                write.wait().map_err(GeoError::Write)?;
            }
            self.loaded = next;
        }
        Ok(())
    }

    /// Waits until all replicas are in one view and have what was committed.
    fn wait(&mut self) -> Result<(), GeoError> {
        let leader = self.cluster.wait_until_well(READY_WITHIN + self.far())?;
        self.check_leader(Some(leader))
    }

    fn check_leader(&self, leader: Option<usize>) -> Result<(), GeoError> {
        if leader == Some(LEADER) { Ok(()) } else { Err(GeoError::Leader(leader)) }
    }

    /// Reads that the leader was asked for and that had to wait, since it started.
    fn slow_reads(&self) -> Result<u64, GeoError> {
        let leader = self.cluster.reports().into_iter().nth(LEADER).flatten();
        leader.map(|leader| leader.slow_reads).ok_or(GeoError::Leader(None))
    }

    /// What distance adds to how long something is waited for.
    fn far(&self) -> Duration {
        ROUND_TRIPS * self.regions.longest_round_trip_of_clients()
    }

    /// Settings of clients that are as far away as these regions may be.
    fn client_options(&self) -> Options {
        let defaults = Options::default();
        Options {
            connect_timeout: defaults.connect_timeout + self.far(),
            dial_timeout: defaults.dial_timeout + self.far(),
            settings: Settings {
                resend: defaults.settings.resend * self.regions.patience_of_clients(),
                give_up_after: READY_WITHIN + self.far(),
                read_policy: self.protocol.reads,
                write_policy: self.protocol.writes,
                ..defaults.settings
            },
            ..defaults
        }
    }
}

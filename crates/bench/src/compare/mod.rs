//! Protocols side by side: the same load on a cluster of each, in turns.
//!
//! A [`Contender`] is a cluster of real processes that runs one protocol; [`Contender::run`] puts a [`CompareLoad`] on
//! it and says what came of it ([`Sample`]). A [`Comparison`] has the samples of all contenders and all
//! rounds under one load, and relates them to those of one of them; [`page`] draws them.

mod comparison;
mod error;
mod facts;
mod load;
mod native;
pub(crate) mod page;
mod sample;

pub use comparison::{Comparison, Entry, Metric, Spread, order};
pub use error::CompareError;
pub use facts::{Facts, machine};
pub use load::WAITING_MAX;
pub(crate) use load::{INTERRUPT_INTERVAL, run as run_load};
pub use page::page;
pub(crate) use page::{escape, titled_page};
pub use sample::{Line, Sample};

use crate::clients::{Clients, Operations, Request};
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::Error;
use core::time::Duration;
use native::NativeFleet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::PathBuf;
use std::time::Instant;
use syros_client::{Endpoint, Options, Outcome, Settings, StatusReport};
use syros_experiment::{APPENDS_PER_KEY, Blend, KeyChoice, OperationKind, OperationStream};
use syros_protocol::message::RoleName;
use syros_regions::Regions;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Prng, Protocol};

/// How long a cluster may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Records that are being written at a time before the measurement.
const FILLED_AT_ONCE: u64 = 1024;

/// Most clients: each is looked at in every turn of the one thread that runs them.
const CLIENTS_MAX: u64 = 4096;

/// Most records: their names have 12 digits.
const KEYS_MAX: u64 = 1_000_000_000;

/// Most operations per second that can be asked for: more than one thread can send.
const RATE_MAX: u64 = 10_000_000;

/// Open files of this process besides connections: those of the clusters' processes and what there is anyway.
const FILES_BESIDES: u64 = 256;

/// What clients ask for, how fast, and how long.
#[derive(Clone, Debug)]
pub struct CompareLoad {
    /// Kinds of operations.
    pub blend: Blend,
    /// How often each record is chosen.
    pub choice: KeyChoice,
    /// Clients, each with one operation at a time.
    pub clients: usize,
    /// Sessions that clients share, each with a connection to every replica, as the threads of an application do;
    /// `None`: each client has one of its own.
    pub connections: Option<usize>,
    /// Number of records, all of which are written before; a load phase begins without any.
    pub keys: u64,
    /// Length of a value, in bytes.
    pub value_bytes: usize,
    /// Operations per second that are asked for, over all clients, however fast they are answered (an open
    /// loop); `None`: each client asks when the last operation has ended (a closed loop).
    pub rate: Option<u64>,
    /// Load of this long comes first and is not measured.
    pub warm_up: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// Followers that are killed when the clients are connected, and started again in the end.
    pub failed: usize,
    /// Seed of all choices of the clients.
    pub seed: u64,
}

fn within(name: &'static str, value: u64, min: u64, max: u64) -> Result<(), CompareError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(CompareError::Number { name, value, min, max }) }
}

impl CompareLoad {
    /// Checks what cannot be right whatever the cluster is, whose replicas may be far from everybody, and raises this
    /// process's limit of open files if it must be.
    ///
    /// # Errors
    /// [`CompareError`] names it.
    pub fn check(&self, replicas: usize, are_far: bool) -> Result<(), CompareError> {
        within("clients", self.clients as u64, 1, CLIENTS_MAX)?;
        within("connections", self.sessions() as u64, 1, self.clients as u64)?;
        within("failed", self.failed as u64, 0, replicas.saturating_sub(1) as u64 / 2)?;
        within("keys", self.keys, 1, KEYS_MAX)?;
        within("value-bytes", self.value_bytes as u64, 0, VALUE_BYTES_MAX as u64)?;
        if self.blend.files() > 0 {
            within("value-bytes", self.value_bytes as u64, 0, VALUE_BYTES_MAX as u64 / APPENDS_PER_KEY)?;
        }
        if let Some(rate) = self.rate {
            within("rate", rate, 1, RATE_MAX)?;
        }
        if self.duration.is_zero() {
            return Err(CompareError::NoDuration);
        }
        // A client's end of a connection, and the two of the relay.
        let ends = if are_far { 3 } else { 1 };
        let files = (ends * self.sessions() as u64).saturating_mul(replicas as u64) + FILES_BESIDES;
        let limit = getrlimit(Resource::Nofile);
        if let Some(limit) = limit.maximum.filter(|limit| files > *limit) {
            return Err(CompareError::Files { files, limit });
        }
        if limit.current.is_some_and(|current| files > current) {
            // If it cannot be, the first client that gets no connection says so.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        }
        OperationStream::new(self.blend, self.choice, self.keys, Prng::new(0))?;
        Ok(())
    }

    /// Sessions of all clients together.
    pub(crate) fn sessions(&self) -> usize {
        self.connections.unwrap_or(self.clients)
    }

    /// Records that there are when the load begins.
    const fn records(&self, is_load: bool) -> u64 {
        if is_load { 0 } else { self.keys }
    }
}

/// A cluster that runs one protocol.
#[derive(Debug)]
pub struct Contender {
    cluster: Cluster,
    protocol: Protocol,
    /// The region of the clients, if there are any.
    region: Option<usize>,
    /// The store has exactly the records below this, besides counters, if anything is known of it.
    filled: Option<u64>,
    value_bytes: usize,
}

impl Contender {
    /// Starts a cluster in a directory that holds none yet, and waits until it is ready. `settings` are further
    /// lines of the configuration of every node, such as durability and engine; tables come last. With `regions`, which
    /// have so many replicas, everybody is as far from everybody else as they say, the clients in the first one that has
    /// any.
    ///
    /// # Errors
    /// [`CompareError::Cluster`].
    pub fn start(
        program: PathBuf,
        directory: PathBuf,
        protocol: Protocol,
        replicas: usize,
        settings: &str,
        regions: Option<Regions>,
    ) -> Result<Self, CompareError> {
        let region = regions.as_ref().and_then(|regions| regions.clients().first().copied());
        let cluster = Cluster::start(ClusterOptions {
            program,
            directory,
            replicas: protocol.replicas(replicas),
            spare: 0,
            namespaces: false,
            regions,
            settings: format!("protocol = \"{}\"\n{settings}", protocol.name),
        })?;
        let mut contender = Self { cluster, protocol, region, filled: Some(0), value_bytes: 0 };
        contender.leader()?;
        Ok(contender)
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Number of replicas.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.cluster.addresses().len()
    }

    /// Puts the load on the cluster and measures. Calls `is_interrupted` several times a second with the number of
    /// operations answered so far, and ends early when it says so.
    ///
    /// # Errors
    /// [`CompareError`]: there is nothing to ask for, something is wrong with the cluster, or it changed its leader
    /// meanwhile. Operations that fail are no error: they are in the sample.
    pub fn run(
        &mut self,
        load: &CompareLoad,
        is_interrupted: &dyn Fn(u64) -> bool,
    ) -> Result<Sample, CompareError> {
        load.check(self.replicas(), self.region.is_some())?;
        self.fill(load, is_interrupted)?;
        let before = self.leader()?;
        let measured = self.fleet(load).and_then(|mut fleet| {
            self.kill_followers(load.failed, usize::from(before.replica))?;
            load::run(&mut fleet, &self.cluster.processes(), load, is_interrupted)
        });
        let adds =
            load.blend.percent(OperationKind::Insert) > 0 || load.blend.percent(OperationKind::Append) > 0;
        if measured.is_err() || adds {
            self.filled = None;
        }
        let mut sample = measured?;
        self.cluster.check_processes()?;
        let after =
            self.cluster.reports().into_iter().flatten().find(|report| report.role == RoleName::Leader);
        self.restart_followers(load.failed, usize::from(before.replica))?;
        match after {
            Some(after) if after.view == before.view && after.replica == before.replica => {
                sample.wait_of_reads(after.slow_reads.saturating_sub(before.slow_reads));
                Ok(sample)
            }
            after => Err(CompareError::Leader { before: before.view, after: after.map(|after| after.view) }),
        }
    }

    /// The last so many followers of a leader.
    fn last_followers(&self, count: usize, leader: usize) -> Vec<usize> {
        (0..self.replicas()).rev().filter(|node| *node != leader).take(count).collect()
    }

    fn kill_followers(&mut self, count: usize, leader: usize) -> Result<(), CompareError> {
        for node in self.last_followers(count, leader) {
            self.cluster.kill(node)?;
        }
        Ok(())
    }

    fn restart_followers(&mut self, count: usize, leader: usize) -> Result<(), CompareError> {
        for node in self.last_followers(count, leader) {
            self.cluster.restart(node)?;
        }
        Ok(())
    }

    /// Waits until all replicas are in one view and have what was committed; what the leader then says of itself.
    fn leader(&mut self) -> Result<StatusReport, CompareError> {
        let leader = self.cluster.wait_until_well(READY_WITHIN)?;
        let report = self.cluster.reports().into_iter().nth(leader).flatten();
        report.ok_or(CompareError::Leader { before: 0, after: None })
    }

    /// The clients of a load, connected.
    fn fleet(&self, load: &CompareLoad) -> Result<NativeFleet, CompareError> {
        // Not the seed of what the clients ask for.
        let mut prng = Prng::new(!load.seed);
        let settings = self.client_settings(load.sessions(), &mut prng);
        let fleet =
            NativeFleet::new(settings, load.clients, load.value_bytes, self.protocol.reads, &mut prng);
        Ok(fleet?)
    }

    /// Settings of clients, each with a seed of its own.
    fn client_settings(&self, clients: usize, prng: &mut Prng) -> Vec<(Vec<Endpoint>, Options)> {
        let addresses = self.cluster.addresses_from(self.region.unwrap_or_default());
        let endpoints: Vec<Endpoint> = addresses.into_iter().map(Endpoint::from).collect();
        let Protocol { reads: read_policy, writes: write_policy, .. } = self.protocol;
        let settings = Settings { read_policy, write_policy, ..Settings::default() };
        let options =
            (0..clients).map(|_| Options { seed: Some(prng.next_u64()), ..settings.clone().into() });
        options.map(|options| (endpoints.clone(), options)).collect()
    }

    /// Makes the store hold the records that the load begins with, and nothing else.
    fn fill(&mut self, load: &CompareLoad, is_interrupted: &dyn Fn(u64) -> bool) -> Result<(), CompareError> {
        let wanted = load.records(load.blend.is_load());
        if self.filled == Some(wanted) && self.value_bytes == load.value_bytes {
            return Ok(());
        }
        let mut prng = Prng::new(load.seed);
        let mut clients = Clients::new(self.client_settings(1, &mut prng))?;
        clients.connect(Options::default().connect_timeout)?;
        let mut operations = Operations::new(load.value_bytes, &mut prng);
        let empty = [Request::FlushAll];
        if self.filled != Some(0) {
            carry_out(&mut clients, &mut operations, empty.into_iter(), is_interrupted)?;
        }
        carry_out(&mut clients, &mut operations, (0..wanted).map(Request::Set), is_interrupted)?;
        (self.filled, self.value_bytes) = (Some(wanted), load.value_bytes);
        Ok(())
    }
}

/// Has the only client carry out requests, some at a time.
fn carry_out(
    clients: &mut Clients,
    operations: &mut Operations,
    requests: impl Iterator<Item = Request>,
    is_interrupted: &dyn Fn(u64) -> bool,
) -> Result<(), CompareError> {
    let (mut requests, mut completions) = (requests.peekable(), Vec::new());
    let (mut asked, mut ended, mut failed) = (0, 0, 0);
    while requests.peek().is_some() || ended < asked {
        while asked - ended < FILLED_AT_ONCE
            && let Some(request) = requests.next()
        {
            operations.ask(clients.active(0), request, asked);
            asked += 1;
        }
        if is_interrupted(0) {
            return Err(CompareError::Interrupted);
        }
        clients.turn(Instant::now() + INTERRUPT_INTERVAL, &mut completions)?;
        for completion in completions.drain(..) {
            ended += 1;
            failed += u64::from(!matches!(completion.outcome, Outcome::Done | Outcome::Reply(_)));
        }
    }
    if failed == 0 { Ok(()) } else { Err(CompareError::Fill { failed, of: asked }) }
}

impl From<std::io::Error> for CompareError {
    fn from(error: std::io::Error) -> Self {
        Self::Client(Error::System(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> CompareLoad {
        CompareLoad {
            blend: "a".parse().unwrap(),
            choice: "uniform".parse().unwrap(),
            clients: 10,
            connections: None,
            keys: 1,
            value_bytes: 100,
            rate: None,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            failed: 0,
            seed: 1,
        }
    }

    #[test]
    fn what_cannot_be_is_named_with_its_limit() {
        assert!(load().check(5, true).is_ok());
        for (wrong, complaint) in [
            (CompareLoad { clients: 0, ..load() }, "clients: 0 is not from 1 to 4096"),
            (CompareLoad { clients: 5_000, ..load() }, "clients: 5000 is not from 1 to 4096"),
            (CompareLoad { connections: Some(0), ..load() }, "connections: 0 is not from 1 to 10"),
            (CompareLoad { connections: Some(11), ..load() }, "connections: 11 is not from 1 to 10"),
            (CompareLoad { failed: 3, ..load() }, "failed: 3 is not from 0 to 2"),
            (CompareLoad { keys: 0, ..load() }, "keys: 0 is not from 1 to 1000000000"),
            (
                CompareLoad { value_bytes: usize::MAX, ..load() },
                "value-bytes: 18446744073709551615 is not from 0",
            ),
            (
                CompareLoad { blend: "record-append".parse().unwrap(), value_bytes: 20_000, ..load() },
                "value-bytes: 20000 is not from 0 to 16777",
            ),
            (CompareLoad { rate: Some(0), ..load() }, "rate: 0 is not from 1 to 10000000"),
            (CompareLoad { duration: Duration::ZERO, ..load() }, "duration: 0 s"),
        ] {
            assert!(wrong.check(5, false).unwrap_err().to_string().contains(complaint), "{complaint}");
        }
    }
}

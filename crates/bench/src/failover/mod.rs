//! How long a cluster takes no writes when its leader fails.

mod report;
mod writers;

pub use report::{FailoverReport, Round};

use crate::cluster::{self, Cluster, ClusterOptions};
use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;
use syros_client::ConnectError;
use syros_types::Prng;
use writers::Writers;

/// How long the cluster may take to get ready, to take writes again, and to be whole again.
const PATIENCE: Duration = Duration::from_secs(60);

/// A leader that has failed stays away for this long at least, longer if no writes succeed before.
const AWAY: Duration = Duration::from_secs(1);

/// Undisturbed time before a fault, and a random time on top, lest all faults hit one moment of the
/// heartbeat.
const CALM: Duration = Duration::from_millis(200);
const CALM_MORE: Duration = Duration::from_millis(100);

/// How often writers that are waited for are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its process is killed with SIGKILL, and started again.
    Kill,
    /// Its process is stopped with SIGSTOP, and goes on later.
    Stop,
    /// Its links are cut, those to the clients too, and mended.
    Cut,
    /// Its process is ended with SIGTERM, as for maintenance, and started again.
    End,
    /// It is asked to let another lead, as `syros lead` does.
    Lead,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Kill, Self::Stop, Self::Cut, Self::End, Self::Lead];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cut => "cut",
            Self::End => "end",
            Self::Lead => "lead",
        })
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|fault| fault.to_string() == text);
        found.ok_or_else(|| "'kill', 'stop', 'cut', 'end' or 'lead' is expected".to_owned())
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct FailoverOptions {
    /// The program `syros`.
    pub program: PathBuf,
    /// Where the cluster keeps everything. Must not hold a cluster yet.
    pub directory: PathBuf,
    /// Replicas in the group: 3, 5, 7 or 9.
    pub replicas: usize,
    /// `fsync` or `replicated`, as in the configuration file.
    pub durability: String,
    /// Further lines of every node's configuration file.
    pub settings: String,
    /// What happens to the leader.
    pub fault: Fault,
    /// How often.
    pub rounds: usize,
    /// Clients that write, each with one write in flight.
    pub writers: usize,
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum FailoverError {
    /// There must be at least one.
    None(&'static str),
    /// A group of so many has nobody to take over.
    Alone(usize),
    /// Something cannot be done to the cluster.
    Cluster(cluster::Error),
    /// A client cannot be made.
    Connect(ConnectError),
    /// There was no write for this long after the fault.
    NoWrites(Duration),
    /// What was written cannot be read back.
    ReadBack(syros_client::Error),
    /// The caller wanted no more.
    Interrupted,
}

impl fmt::Display for FailoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(what) => write!(f, "the number of {what} must be at least 1"),
            Self::Alone(replicas) => {
                write!(f, "in a group of {replicas} nobody can take over: 3, 5, 7 or 9 replicas are needed")
            }
            Self::Cluster(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::NoWrites(patience) => write!(f, "not every writer could write again within {patience:?}"),
            Self::ReadBack(error) => write!(f, "what was written cannot be read back: {error}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for FailoverError {}

impl From<cluster::Error> for FailoverError {
    fn from(error: cluster::Error) -> Self {
        Self::Cluster(error)
    }
}

/// Starts a cluster, has its leader fail again and again under load, and reads everything back at the end.
/// Calls `progress` after every round, and ends early when `is_interrupted` says so.
///
/// # Errors
/// [`FailoverError`]. Lost writes are none: they are in the report.
pub fn failover(
    options: &FailoverOptions,
    mut progress: impl FnMut(usize, &Round),
    is_interrupted: impl Fn() -> bool,
) -> Result<FailoverReport, FailoverError> {
    for (number, what) in [(options.rounds, "rounds"), (options.writers, "writers")] {
        if number == 0 {
            return Err(FailoverError::None(what));
        }
    }
    if options.replicas < 3 {
        return Err(FailoverError::Alone(options.replicas));
    }
    let mut cluster = Cluster::start(ClusterOptions {
        program: options.program.clone(),
        directory: options.directory.clone(),
        replicas: options.replicas,
        spare: 0,
        namespaces: options.fault == Fault::Cut,
        regions: None,
        settings: format!("durability = \"{}\"\n{}", options.durability, options.settings),
    })?;
    cluster.wait_until_well(PATIENCE)?;
    let writers = Writers::start(cluster.addresses(), options.writers).map_err(FailoverError::Connect)?;
    let mut prng = Prng::new(u64::from(std::process::id()));
    let mut rounds = Vec::with_capacity(options.rounds);
    for number in 1..=options.rounds {
        let round = one_round(options.fault, &mut cluster, &writers, &mut prng, &is_interrupted)?;
        progress(number, &round);
        rounds.push(round);
    }
    let written = writers.stop();
    cluster.wait_until_well(PATIENCE)?;
    let lost = written.count_lost(cluster.addresses())?;
    Ok(FailoverReport {
        fault: options.fault,
        replicas: options.replicas,
        durability: options.durability.clone(),
        writers: options.writers,
        rounds,
        writes: written.acknowledged(),
        failed: written.failed(),
        lost,
    })
}

fn one_round(
    fault: Fault,
    cluster: &mut Cluster,
    writers: &Writers,
    prng: &mut Prng,
    is_interrupted: &impl Fn() -> bool,
) -> Result<Round, FailoverError> {
    let leader = cluster.wait_until_well(PATIENCE)?;
    let more = Duration::from_micros(prng.below(CALM_MORE.as_micros() as u64));
    std::thread::sleep(CALM + more);
    let failed_at = Instant::now();
    match fault {
        Fault::Kill => cluster.kill(leader)?,
        Fault::Stop => cluster.suspend(leader)?,
        Fault::Cut => cluster.cut(leader)?,
        Fault::End => cluster.end(leader)?,
        Fault::Lead => cluster.hand_over(leader)?,
    }
    // A cut takes a command: it happens at some time before now.
    let done_at = Instant::now();
    loop {
        std::thread::sleep(POLL_INTERVAL);
        if is_interrupted() {
            return Err(FailoverError::Interrupted);
        }
        let passed = done_at.elapsed();
        if passed >= AWAY && writers.all_wrote_since(done_at + AWAY / 2) {
            break;
        }
        if passed > PATIENCE {
            return Err(FailoverError::NoWrites(PATIENCE));
        }
    }
    let back_at = Instant::now();
    match fault {
        Fault::Kill | Fault::End => cluster.restart(leader)?,
        Fault::Stop => cluster.resume(leader)?,
        Fault::Cut => cluster.mend(leader)?,
        Fault::Lead => {}
    }
    cluster.wait_until_well(PATIENCE)?;
    let well_at = Instant::now();
    Ok(Round {
        leader,
        outage: writers.longest_gap(failed_at, back_at),
        one_writer: writers.longest_gap_of_one(failed_at, back_at),
        return_outage: writers.longest_gap(back_at, well_at),
        catch_up: well_at - back_at,
    })
}

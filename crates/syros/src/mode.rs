//! `syros mode`: which updates take one round trip, and the change of that while the cluster serves.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use syros_client::{Endpoint, StatusError};
use syros_types::{FastQuorum, Group, View};

use crate::cluster::{ANSWER_TIMEOUT, Cluster, ClusterOptions, view_of_majority};
use crate::status::order;

/// Within this time the view has begun that goes by the new mode: a view change between live replicas takes milliseconds.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `syros mode`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros mode                                     shows by which mode the cluster of the node at 127.0.0.1:6379 goes
  syros mode mixed                               has it go by another one
  syros mode majority --addr db1:6379,db2:6379   whichever of them answers tells about all replicas
  syros mode mixed --secret-file syros-data/secret

  majority   SET and other overwrites of one key take one round trip, all else up to two
  mixed      everything takes one round trip that finds nothing pending on its keys

The leader begins a new view, which takes milliseconds; requests under way are not lost, and none fails. The mode stays
when nodes are started again, whatever fast-quorum in their configuration says. Exit status 0: the cluster goes by the mode.")]
pub(crate) struct Options {
    /// The mode to go by; none: show the present one
    mode: Option<Mode>,
    #[command(flatten)]
    cluster: ClusterOptions,
}

/// The modes that the mode of a running cluster can be changed to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Majority,
    Mixed,
}

impl From<Mode> for FastQuorum {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Majority => Self::Majority,
            Mode::Mixed => Self::Mixed,
        }
    }
}

/// Shows the mode, or has the leader change it and waits until it has.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let cluster = options.cluster.open()?;
    let (leader, report) = cluster.leader()?;
    let present = report.fast_quorum;
    let Some(mode) = options.mode.map(FastQuorum::from) else {
        syros_cli::tell!("{present}");
        return Ok(ExitCode::SUCCESS);
    };
    if present == mode {
        syros_cli::tell!("the cluster goes by {mode} already");
        return Ok(ExitCode::SUCCESS);
    }
    if !present.may_become(mode) {
        return Err(format!(
            "the mode of a cluster with {present} cannot be changed: only majority and mixed become each other"
        ));
    }
    refuse_old_builds(&cluster)?;
    let group = Group::new(usize::from(report.replicas)).map_err(|error| error.to_string())?;
    let ask = |leader: &str| {
        order(leader, |address| syros_client::change_mode(address, mode, cluster.access(), ANSWER_TIMEOUT))
    };
    let changed = cluster.change(leader, CHANGE_TIMEOUT, ask, |reports| {
        view_of_majority(reports, group, |report| report.fast_quorum == mode)
    })?;
    let Some(view) = changed else {
        return Err(format!(
            "no view that goes by {mode} has begun with a majority after {} s: too few replicas may be there (syros \
             status tells), and the change may still come when they are back",
            CHANGE_TIMEOUT.as_secs()
        ));
    };
    syros_cli::tell!("the cluster goes by {mode} from view {} on", View(view));
    Ok(ExitCode::SUCCESS)
}

/// A replica whose build knows of no such change would be left behind by it.
fn refuse_old_builds(cluster: &Cluster) -> Result<(), String> {
    for (id, replica) in cluster.replicas.iter().enumerate() {
        let knows = |endpoint: Endpoint| {
            let ask =
                |address| syros_client::knows_changes_of_mode(address, cluster.access(), ANSWER_TIMEOUT);
            endpoint.ask(ask)
        };
        match Endpoint::resolve(replica).map_err(StatusError::Io).and_then(knows) {
            Ok(()) => {}
            Err(error @ StatusError::TooOld { .. }) => {
                return Err(format!(
                    "replica {id} at {replica}: {error}; it could not take part any more. Upgrade it first"
                ));
            }
            Err(problem) => syros_cli::say!(
                "syros: replica {id} at {replica} is down ({problem}); if its build is older than that of the others, \
                 upgrade it before you start it again"
            ),
        }
    }
    Ok(())
}

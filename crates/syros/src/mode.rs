//! `syros mode`: which updates take one round trip, and the change of that while the cluster serves.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use syros_cli::tls::TlsOptions;
use syros_client::{Access, Endpoint, StatusError, StatusReport};
use syros_protocol::message::RoleName;
use syros_runtime::REDIS_ADDRESS;
use syros_types::{FastQuorum, View};

use crate::secret;
use crate::status::{leader_of, order, parse_address, poll, replicas_of, reports_of};

/// How long a replica may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Within this time the view has begun that goes by the new mode: a view change between live replicas takes milliseconds.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long there may be no leader.
const LEADER_TIMEOUT: Duration = Duration::from_secs(3);

/// A leader that has not changed the mode after this long is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

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
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    addr: Vec<String>,
    /// File with the cluster's secret, if the nodes have one (secret-file in their configuration)
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
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
    let secret = options.secret_file.as_deref().map(secret::read).transpose()?;
    let credentials = options.tls.credentials()?;
    let access = Access { secret: secret.as_ref(), credentials: credentials.as_ref() };
    let replicas = replicas_of(&options.addr, access.credentials)?;
    // One that has just died has a successor within a second.
    let Some((leader, report)) = poll(LEADER_TIMEOUT, || leader_of(reports_of(&replicas, access))) else {
        return Err(format!(
            "no replica has led for {} s: too few may be there; syros status tells",
            LEADER_TIMEOUT.as_secs()
        ));
    };
    let present = report.fast_quorum;
    let Some(mode) = options.mode.map(FastQuorum::from) else {
        println!("{present}");
        return Ok(ExitCode::SUCCESS);
    };
    if present == mode {
        println!("the cluster goes by {mode} already");
        return Ok(ExitCode::SUCCESS);
    }
    if !present.may_become(mode) {
        return Err(format!(
            "the mode of a cluster with {present} cannot be changed: only majority and mixed become each other"
        ));
    }
    refuse_old_builds(&replicas, access)?;
    let ask = |leader: &str| {
        order(leader, |address| syros_client::change_mode(address, mode, access, ANSWER_TIMEOUT))
    };
    ask(leader)?;
    let mut asked_at = Instant::now();
    let changed = poll(CHANGE_TIMEOUT, || {
        let reports = reports_of(&replicas, access);
        if let Some(view) = view_of_majority(&reports, replicas.len(), mode) {
            return Some(Ok(view));
        }
        // The leader that was asked may have given way to another one just then.
        if asked_at.elapsed() > ASK_AGAIN
            && let Some((leader, report)) = leader_of(reports)
            && report.fast_quorum != mode
        {
            asked_at = Instant::now();
            return ask(leader).err().map(Err);
        }
        None
    });
    let Some(view) = changed.transpose()? else {
        return Err(format!(
            "no view that goes by {mode} has begun with a majority after {} s: too few replicas may be there (syros \
             status tells), and the change may still come when they are back",
            CHANGE_TIMEOUT.as_secs()
        ));
    };
    println!("the cluster goes by {mode} from view {} on", View(view));
    Ok(ExitCode::SUCCESS)
}

/// The newest view that goes by this mode, if a majority takes part in it: only that outlives its leader.
fn view_of_majority(reports: &[(&String, StatusReport)], replicas: usize, mode: FastQuorum) -> Option<u64> {
    let views = || reports.iter().filter_map(|(_, report)| view_of(report, mode));
    let newest = views().max()?;
    (views().filter(|view| *view == newest).count() > replicas / 2).then_some(newest)
}

/// The view that a replica takes part in, if that goes by this mode.
fn view_of(report: &StatusReport, mode: FastQuorum) -> Option<u64> {
    let takes_part = matches!(report.role, RoleName::Leader | RoleName::Follower);
    (takes_part && report.fast_quorum == mode).then_some(report.view)
}

/// A replica whose build knows of no such change would be left behind by it.
fn refuse_old_builds(replicas: &[String], access: Access<'_>) -> Result<(), String> {
    for (id, replica) in replicas.iter().enumerate() {
        let knows = |endpoint: Endpoint| {
            syros_client::knows_changes_of_mode(endpoint.current(), access, ANSWER_TIMEOUT)
        };
        match Endpoint::resolve(replica).map_err(StatusError::Io).and_then(knows) {
            Ok(()) => {}
            Err(error @ StatusError::TooOld { .. }) => {
                return Err(format!(
                    "replica {id} at {replica}: {error}; it could not take part any more. Upgrade it first"
                ));
            }
            Err(problem) => eprintln!(
                "syros: replica {id} at {replica} is down ({problem}); if its build is older than that of the others, \
                 upgrade it before you start it again"
            ),
        }
    }
    Ok(())
}

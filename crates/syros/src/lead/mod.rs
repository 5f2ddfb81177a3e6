//! `syros lead`: a planned change of leaders, now or whenever clients would wait less.

mod auto;
mod choice;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use syros_cli::parse_duration;
use syros_client::StatusReport;
use syros_protocol::message::RoleName;
use syros_types::{ReplicaId, View};

use crate::cluster::{ANSWER_TIMEOUT, Cluster, ClusterOptions};
use crate::status::{order, poll, query};

/// Within this time the new leader leads: a view change between live replicas takes milliseconds.
const LEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of `syros lead`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros lead 2                                   in the cluster of the node at 127.0.0.1:6379
  syros lead 0 --addr db1:6379,db2:6379          whichever of them answers tells about all replicas
  syros lead 2 --secret-file syros-data/secret   where the nodes have a secret, as those of syros dev do
  syros lead --auto --addr eu:6379,us:6379,ap:6379
                                                 goes on, and moves the lead to where those nodes' clients wait least
  syros lead --auto --prefer 1,2 --addr db1:6379,db2:6379,db3:6379
                                                 goes on, and has replica 1 lead whenever it can, or else replica 2
  syros lead --auto --dry-run --addr eu:6379,us:6379,ap:6379
                                                 only says when it would

Requests under way are not lost, and none fails: they wait for the new leader. A node that is told to end
(SIGTERM) while it leads hands over by itself. Exit status 0: the replica leads.

With --auto the command runs until it is ended, best as a service beside one of the nodes. It asks the nodes and gateways of
--addr, all of whose clients are to count, how much they are asked for and how far each replica is from them (INFO syros).
Run one of them: two would undo each other's moves.")]
pub(crate) struct Options {
    /// The replica that is to lead
    #[arg(required_unless_present = "is_on")]
    id: Option<u8>,
    #[command(flatten)]
    auto: AutoOptions,
    #[command(flatten)]
    cluster: ClusterOptions,
}

/// What `syros lead --auto` goes by.
#[derive(Args, Debug)]
struct AutoOptions {
    /// Move the lead to where clients wait least, again and again
    #[arg(long = "auto", conflicts_with = "id")]
    is_on: bool,
    /// Have the first of these replicas lead that can, whatever clients wait. One that is not in the list leads while none of these can
    #[arg(long, value_name = "ID,..", value_delimiter = ',', requires = "is_on")]
    prefer: Vec<u8>,
    /// Only say when the lead would move
    #[arg(long, requires = "is_on")]
    dry_run: bool,
    /// How often the front ends are asked
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time, requires = "is_on")]
    every: Duration,
    /// How long another replica must have been better
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_time, requires = "is_on")]
    lasts: Duration,
    /// The share of the mean wait of an operation that another replica must save, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0, value_parser = parse_percent, requires = "is_on")]
    gain: f64,
    /// The least time of that wait that it must save
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = parse_time, requires = "is_on")]
    least: Duration,
    /// How long the lead stays after a move; twice as long after each move to where it was of late
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_time, requires = "is_on")]
    pause: Duration,
    /// Operations a second, over all front ends, below which the lead stays where it is
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = parse_rate, requires = "is_on")]
    rate_min: f64,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "a time such as 5s or 2ms, and not 0".to_owned())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (1.0..=99.0).contains(percent));
    percent.ok_or_else(|| "a number from 1 to 99".to_owned())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.01..=1e9).contains(rate));
    rate.ok_or_else(|| "a number from 0.01 to 1000000000".to_owned())
}

/// Has a replica take over, and waits until it has; or watches the cluster.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let Some(id) = options.id else { return auto::run(options) };
    syros_cli::tell!("{}", move_to(&options.cluster.open()?, id)?);
    Ok(ExitCode::SUCCESS)
}

/// Has this replica take over, and waits until it has; what has come of it.
fn move_to(cluster: &Cluster, id: u8) -> Result<String, String> {
    let (replicas, access) = (&cluster.replicas, cluster.access());
    let query = |address: &str| query(address, access);
    let Some(next) = replicas.get(usize::from(id)) else {
        return Err(format!(
            "there is no replica {id}: the cluster has replicas 0 to {}",
            replicas.len() - 1
        ));
    };
    let target = query(next).map_err(|problem| format!("replica {id} at {next} is down: {problem}"))?;
    if target.role == RoleName::Leader {
        return Ok(format!("replica {id} leads view {} already", View(target.view)));
    }
    let leads = |address: &&String| query(address).is_ok_and(|report| report.role == RoleName::Leader);
    let leader = replicas.iter().find(leads).ok_or("no replica leads at the moment; try again")?;
    let began = Instant::now();
    order(leader, |address| syros_client::hand_over(address, ReplicaId(id), access, ANSWER_TIMEOUT))?;
    let led = poll(LEAD_TIMEOUT, || match query(next) {
        Ok(StatusReport { role: RoleName::Leader, view, .. }) => Some(view),
        _ => None,
    });
    let Some(view) = led else {
        return Err(format!(
            "replica {id} does not lead after {} s: the leader at {leader} may have had no answer from it lately",
            LEAD_TIMEOUT.as_secs()
        ));
    };
    Ok(format!("replica {id} leads view {}, after {} ms", View(view), began.elapsed().as_millis()))
}
